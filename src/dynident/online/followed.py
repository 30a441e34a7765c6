"""Columns of terms that follow the motion, along a stream: friction that winds up or grows with the load."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from dynident.arrays import Array, Mask
from dynident.dynamics.along import Course, MotionSamples, Reference, all_places
from dynident.dynamics.terms import all_columns, along_terms, state_terms
from dynident.online.causal import MOST_FILLED
from dynident.online.known import Known

Instant = tuple[float, Array, Array, Array, Array]  # time, q, dq, ddq, load


class GivenLoad(Reference):
    """Links whose torque is known already: the rows that are made anyway contain it.

    Attributes:
        given: (n_samples, n_joints) torque of the next samples, or None to evaluate it.
    """

    given: Array | None = None

    def torque(self, samples: MotionSamples) -> Array:
        """As given, where it is."""
        return super().torque(samples) if self.given is None else self.given


class FollowedColumns:
    """The columns at instants that come one by one or many at once; the result is the same.

    They are evaluated a box at a time: what one call costs is hardly more for four instants than for one. Friction that
    grows with the load is evaluated without the payload: a robot that was identified without one says little about what
    it adds (`session="load"` estimates that anew).

    Args:
        known: The robot with its values, and the links that its load is taken from.
        sample_time: Time between instants [s].

    Attributes:
        columns: Base parameter of each line.
        channels: Joint of each line.
        links: (n,) base values of the links alone, whose torque is the load; None where nothing asks for it, or where
            parameters of fixed value add to it.
    """

    def __init__(self, known: Known, sample_time: float) -> None:
        base, robot = known.base, known.base.robot
        terms = along_terms(base.terms)
        self._longest = (MOST_FILLED + 1.5) * sample_time
        self._reference = None if known.reference is None else GivenLoad(robot, known.reference)
        self._course = Course(robot, terms, self._reference)
        first = len(all_columns(robot, state_terms(base.terms)))
        position = {column: i for i, column in enumerate(base.independent)}
        places = all_places(robot, terms)
        self.columns = [position[first + column] for _, column in places]
        self.channels = [row for row, _ in places]
        self.links: Array | None = None
        if known.reference is not None and not any(column.fixed for column in base.columns):
            rigid = [column.term == "rigid" for column in base.columns]
            self.links = np.asarray(base.K[:, rigid] @ known.reference)
        self._jerk = any(term.needs_jerk for term in terms)
        self._held: list[Instant] = []
        self._sum = np.zeros(len(places))
        self._last, self._acceleration = -np.inf, np.zeros(len(robot.joint_names))

    def add(self, time: float, q: Array, dq: Array, ddq: Array, load: Array) -> None:
        """One more instant of a box, (n_joints,) each; the load is that of `links`."""
        self._held.append((time, q, dq, ddq, load))

    def box_sum(self) -> Array:
        """(n_lines,) sum over the instants since the last call."""
        self._evaluate()
        found, self._sum = self._sum, np.zeros(len(self._sum))
        return found

    def _evaluate(self) -> None:
        if self._held:
            time, *motion = (np.array(part) for part in zip(*self._held, strict=True))
            self._held.clear()
            self._sum += self.columns_first(time, *motion).sum(1)

    def columns_first(self, time: Array, q: Array, dq: Array, ddq: Array, load: Array) -> Array:
        """(n_lines, n) at the next instants; motion and load are (n, n_joints). After a gap everything begins anew."""
        steps = np.diff(time, prepend=self._last)
        fresh = (steps > self._longest) | (steps <= 0.0)
        jerk = self._jerks(steps, ddq, fresh) if self._jerk else np.zeros((len(time), 0))
        borders = [0, *(int(i) for i in np.flatnonzero(fresh) if i > 0), len(time)]
        parts = []
        for a, b in itertools.pairwise(borders):
            if self._reference is not None:
                self._reference.given = None if self.links is None else load[a:b]
            samples = MotionSamples(q[a:b], dq[a:b], ddq[a:b], jerk[a:b], bool(fresh[a]))
            parts.append(self._course.columns_first(samples))
        self._last, self._acceleration = float(time[-1]), ddq[-1].copy()
        return np.concatenate(parts, axis=1)

    def _jerks(self, steps: Array, ddq: Array, fresh: Mask) -> Array:
        """(n, n_joints) by the last two accelerations: half a sample late, which the band does not see."""
        change = np.diff(ddq, axis=0, prepend=self._acceleration[None])
        return np.asarray(change / np.where(fresh, np.inf, steps)[:, None])

    def as_arrays(self) -> dict[str, Any]:
        """The memory as plain arrays, for checkpoints."""
        self._evaluate()
        arrays = {f"course{i}": kept for i, kept in enumerate(self._course.remembered())}
        last = {"last": np.array(self._last), "acceleration": self._acceleration.copy()}
        return arrays | last | {"sum": self._sum.copy()}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Continue from what `as_arrays` gave."""
        self._held.clear()
        self._course.recall([arrays[f"course{i}"] for i in range(len(self._course.remembered()))])
        self._last, self._acceleration = float(arrays["last"]), np.array(arrays["acceleration"])
        self._sum = np.array(arrays["sum"])
