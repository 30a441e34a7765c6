"""Columns of terms that follow the motion, along a stream: friction that winds up or grows with the load."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from dynident.checks import Array, frozen
from dynident.dynamics.along import Course, Reference, Samples, all_places
from dynident.dynamics.terms import all_columns, along_terms, state_terms
from dynident.estimate.payload_fit import tool_matrix
from dynident.online.causal import MOST_FILLED
from dynident.online.known import Known
from dynident.signals.fir import Mask

Instant = tuple[float, Array, Array, Array]  # time, q, dq, ddq


class FollowedColumns:
    """The columns at instants that come one by one or many at once; the result is the same.

    They are evaluated a box at a time: what one call costs is hardly more for four instants than for one.

    Args:
        known: The robot with its values, and the links that its load is taken from.
        sample_time: Time between instants [s].

    Attributes:
        columns: Base parameter of each line.
        channels: Joint of each line.
        around_load: Whether some columns change with the payload.
    """

    def __init__(self, known: Known, sample_time: float) -> None:
        base, robot = known.base, known.base.robot
        terms = along_terms(base.terms)
        self._known, self._longest = known, (MOST_FILLED + 1.5) * sample_time
        self._reference = None if known.reference is None else Reference(robot, known.reference)
        self._course = Course(robot, terms, self._reference)
        first = len(all_columns(robot, state_terms(base.terms)))
        position = {column: i for i, column in enumerate(base.independent)}
        places = all_places(robot, terms)
        self.columns = [position[first + column] for _, column in places]
        self.channels = [row for row, _ in places]
        self.around_load = any(term.needs_reference for term in terms)
        self._tool = tool_matrix(base) if self.around_load else np.zeros((0, 10))
        self.payload = np.zeros(10)
        self._jerk = any(term.needs_jerk for term in terms)
        self._held: list[Instant] = []
        self._sum = np.zeros(len(places))
        self._last, self._acceleration = -np.inf, np.zeros(len(robot.joint_names))

    def add(self, time: float, q: Array, dq: Array, ddq: Array) -> None:
        """One more instant of a box, (n_joints,) each."""
        self._held.append((time, q, dq, ddq))

    def box_sum(self) -> Array:
        """(n_lines,) sum over the instants since the last call."""
        self._evaluate()
        found, self._sum = self._sum, np.zeros(len(self._sum))
        return found

    def _evaluate(self) -> None:
        if self._held:
            time, *motion = (np.array(part) for part in zip(*self._held, strict=True))
            self._held.clear()
            self._sum += self.along(time, *motion).sum(1)

    def along(self, time: Array, q: Array, dq: Array, ddq: Array) -> Array:
        """(n_lines, n) at the next instants; motion is (n, n_joints). After a gap everything begins anew."""
        steps = np.diff(time, prepend=self._last)
        fresh = (steps > self._longest) | (steps <= 0.0)
        jerk = self._jerks(steps, ddq, fresh) if self._jerk else np.zeros((0, len(time)))
        borders = [0, *(int(i) for i in np.flatnonzero(fresh) if i > 0), len(time)]
        parts = [
            self._course.columns(Samples(q[a:b].T, dq[a:b].T, ddq[a:b].T, jerk[:, a:b], bool(fresh[a])))
            for a, b in itertools.pairwise(borders)
        ]
        self._last, self._acceleration = float(time[-1]), ddq[-1].copy()
        return np.concatenate(parts, axis=1)

    def _jerks(self, steps: Array, ddq: Array, fresh: Mask) -> Array:
        """(n_joints, n) by the last two accelerations: half a sample late, which the band does not see."""
        change = np.diff(ddq, axis=0, prepend=self._acceleration[None]) / np.where(fresh, np.inf, steps)[:, None]
        return np.asarray(change.T)

    def carry(self, payload: Array) -> None:
        """From now on the gears carry this payload as well, (10,) standard parameters in the tool frame."""
        self._evaluate()
        if self._reference is not None:
            self.payload = np.array(payload)
            self._reference.chi = frozen(np.asarray(self._known.reference) + self._tool @ self.payload)

    def as_arrays(self) -> dict[str, Any]:
        """The memory as plain arrays, for checkpoints."""
        self._evaluate()
        arrays = {f"course{i}": kept for i, kept in enumerate(self._course.remembered())}
        last = {"last": np.array(self._last), "acceleration": self._acceleration.copy()}
        return arrays | last | {"sum": self._sum.copy(), "payload": self.payload.copy()}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Continue from what `as_arrays` gave."""
        self._held.clear()
        self._course.recall([arrays[f"course{i}"] for i in range(len(self._course.remembered()))])
        self._last, self._acceleration = float(arrays["last"]), np.array(arrays["acceleration"])
        self._sum = np.array(arrays["sum"])
        self.carry(arrays["payload"])
