"""Columns of terms that follow the motion, along a stream: friction that winds up or grows with the load."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dynident.arrays import Array, Mask, gather_arrays, restore_parts
from dynident.dynamics.evaluate import inverse_dynamics, parameters
from dynident.dynamics.jit.numpy_kernel import chosen_backend
from dynident.dynamics.linearization import LinearizationPoint, TermCourse
from dynident.dynamics.terms import Coulomb, Term
from dynident.dynamics.terms.friction import motion_of
from dynident.dynamics.terms.friction_laws import FRICTION_LAWS
from dynident.dynamics.terms.term import MotionSamples
from dynident.identifiability.base_regressor import BaseRegressor
from dynident.online.filters import FilteredMotion
from dynident.online.prior import Prior
from dynident.online.thresholds import THRESHOLDS
from dynident.robot.model import Robot

Instant = tuple[float, Array, Array, Array, Array]  # time, q, dq, ddq, load


class FollowedColumns:
    """The columns at instants that come one by one or many at once; the result is the same.

    They are evaluated a box at a time: what one call costs is hardly more for four instants than for one. Friction that
    grows with the load is evaluated without the payload: a robot that was identified without one says little about what
    it adds (`session="load"` estimates that again).

    Args:
        known: The robot with its values, and the links that its load is taken from.
        sample_time: Time between instants [s].

    Attributes:
        columns: Base parameter of each line.
        channels: Joint of each line.
        links: (n,) base values of the links alone, whose torque is the load; None where nothing asks for it, or where
            parameters of fixed value add to it.
    """

    def __init__(self, known: Prior, sample_time: float) -> None:
        base, robot = known.base, known.base.robot
        regressor = BaseRegressor.of(robot, base.terms)
        self._longest = THRESHOLDS.longest_gap_s(sample_time)
        self._reference = None if known.reference is None else LinearizationPoint(robot, known.reference)
        self._course = TermCourse(robot, regressor.along, self._reference)
        self.columns = [column for _, column in regressor.along_places]
        self.channels = [output for output, _ in regressor.along_places]
        self.links: Array | None = None
        if known.reference is not None and not any(column.fixed for column in base.columns):
            rigid = [column.term == "rigid" for column in base.columns]
            self.links = np.asarray(base.K[:, rigid] @ known.reference)
        self._jerk = any(term.needs_jerk for term in regressor.along)
        self._held: list[Instant] = []
        self._sum = np.zeros(len(self.columns))
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
        """(n_lines, n) at the next instants; motion and load are (n, n_joints). After a gap everything begins again."""
        steps = np.diff(time, prepend=self._last)
        fresh = (steps > self._longest) | (steps <= 0.0)
        jerk = self._jerks(steps, ddq, fresh) if self._jerk else np.zeros((len(time), 0))
        borders = [0, *(int(i) for i in np.flatnonzero(fresh) if i > 0), len(time)]
        parts = []
        for a, b in itertools.pairwise(borders):
            samples = MotionSamples(q[a:b], dq[a:b], ddq[a:b], jerk[a:b], bool(fresh[a]))
            if self._reference is not None and self.links is not None:  # the rows that are made anyway contain it
                self._reference.set_torque(samples, load[a:b])
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


# ----------------------------------------------------------------------------------------------------------------------
# The two identifier structures of Khosla & Kanade 1987, section 3.4: where the torque comes from that the model is
# compared with.
#
# Both drive the estimation by a difference of torques on one and the same motion, so one estimator serves both:
#
# .. math:: \varepsilon = \tau - W(q, \dot q, \ddot q)\,\hat\beta = W \Delta\beta
#
# Input error (series): the robot's outputs are fed to the inverse model and the applied torque is compared. Output
# error
# (parallel): a system and a model, both as inverse dynamics, see the same motion; nothing has to be simulated forwards.


class SeriesStructure:
    """The torque that was measured or applied (series structure, figure 1); the base of other structures."""

    name = "input-error"

    def torque(self, q: Array, dq: Array, ddq: Array, tau: Array) -> Array:
        """Torque to compare the model with, (n_samples, n_joints), from filtered motion and filtered torque."""
        return tau


class ParallelStructure(SeriesStructure):
    """The torque of a system that is itself inverse dynamics (parallel structure, figure 2); for studies.

    Args:
        robot: The robot.
        terms: Terms that the system has.
        values: The system's parameters: a value set's name, a mapping, a vector, or None for the robot's own.
    """

    name = "output-error"

    def __init__(self, robot: Robot, terms: tuple[Term, ...], values: str | Mapping[str, float] | Array | None) -> None:
        self.robot, self.terms = robot, terms
        self.values = parameters(robot, terms, values)

    def torque(self, q: Array, dq: Array, ddq: Array, tau: Array) -> Array:
        """The system's torque on the same motion; the given torque is not looked at."""
        return inverse_dynamics(self.robot, q, dq, ddq, self.terms, self.values)


# ----------------------------------------------------------------------------------------------------------------------
# Motion into rows: the stacked rows of all joints at one instant, weighted once and for all, over the unknowns.

# Dry friction holds a joint at rest with any torque below its own; without it the rows of a joint at rest are exact.
DRY = ("Fc", *(law.name for law in FRICTION_LAWS.values() if law.holds_at_rest))


class RowMaker:
    """Makes rows over base parameters, or over fewer unknowns around known values.

    Columns and torque are averaged over the instants of a box, which is the parallel filtering of Gautier et al. 1995
    with the simplest of filters: both sides of the equations pass it, columns that jump with the sign of dq too.

    The sign of a filtered velocity jumps, the torque of dry friction has passed the filters: rows that they smear a
    reversal over are left out, as off-line. To wait for the reversals to come would cost their reach in latency, to
    leave out rows behind them alone would keep half of the wrong ones. The filters let only motion pass that is slow
    beside them, so a box foretells reversals by itself: with mean velocity v and acceleration a of an element, the next
    or last one is v / a away, to a few per cent of the reach. Nothing has to be remembered from box to box.

    Args:
        known: The model, and the weight of each joint.
        chart: (n, k) from the unknowns to base parameters, which are then looked for around the known values; None for
            the base parameters themselves.
        rest_velocity: A joint slower than this is at rest [rad/s or m/s].
        structure: Where the torque comes from.
        box: Instants that make one row of each joint.
        reach: From the middle of a box to reversals that spoil it [s].
        followed: The columns of terms that follow the motion; None where the model has none.
    """

    def __init__(
        self,
        known: Prior,
        chart: Array | None,
        rest_velocity: float,
        structure: SeriesStructure,
        box: int,
        reach: float = 0.0,
        followed: FollowedColumns | None = None,
    ) -> None:
        base = known.base
        self.reach = reach
        self.rest_velocity, self.structure, self.box, self.followed = rest_velocity, structure, box, followed
        self.regressor = BaseRegressor.of(base.robot, base.terms)
        self.n, self.n_joints = base.n, len(base.robot.joint_names)
        self.k = self.n if chart is None else chart.shape[1]
        self.dry = any(term.name in DRY for term in base.terms)
        self._roots = 1.0 / known.sigma
        self._turn: Array | None = None
        if chart is not None:  # [W | tau] becomes [W chart | tau - W beta]
            self._turn = np.zeros((self.k + 1, self.n + 1))
            self._turn[:-1, :-1], self._turn[-1, :-1], self._turn[-1, -1] = chart.T, -known.beta, 1.0
        self._plain = type(structure) is SeriesStructure and not self.regressor.fixed_values
        padded = _padded_width(self.n_joints)
        self._rest = np.zeros(self.n_joints)  # the load of joints at rest: nothing slides
        self._inputs, self._weights = np.zeros(3 * self.n_joints), np.zeros(padded)
        self._raw, self._sum, self._slab = (aligned_zeros(self.n + 1, padded) for _ in range(3))
        self._short = aligned_zeros(self.k + 1, padded)
        self._fill = self.regressor.bound(self._inputs, self._raw)
        self.slab = self._slab if chart is None else self._short  # where `rows` puts them
        self.count = 0  # instants in the box so far
        self.moving = np.ones(self.n_joints, dtype=bool)  # which joints moved at all of them, away from reversals
        elements = [one for one in Coulomb().elements(base.robot) if not one.solved.any()] if self.dry else []
        self._directions = np.array([motion_of(base.robot, one) for one in elements]).reshape(-1, self.n_joints)
        self._acts = np.array([one.torque[list(base.robot.moving)] for one in elements]).reshape(-1, self.n_joints) != 0
        self._motion = np.zeros((2, self.n_joints))  # sums of dq and ddq over the instants of the box

    def add(self, time: float, q: Array, dq: Array, ddq: Array, tau: Array) -> bool:
        """One more instant, (n_joints,) each; True when the box is full: `rows` is then to be called."""
        n, inputs = self.n_joints, self._inputs
        self.moving &= np.abs(dq) > self.rest_velocity
        self.count += 1
        if self.moving.any():
            inputs[:n], inputs[n : 2 * n], inputs[2 * n :] = q, dq, ddq
            self._motion += inputs[n:].reshape(2, n)
            self._fill()
            self._raw[-1, :n] = tau if self._plain else self._torque(q[None], dq[None], ddq[None], tau[None])[0]
            if self.box > 1:
                self._sum += self._raw
        if self.followed is not None:  # at rest as well: springs stay wound up
            links = self.followed.links if self.moving.any() else None
            self.followed.add(time, q, dq, ddq, self._rest if links is None else links @ self._raw[:-1, :n])
        if self.count < self.box:
            return False
        if self.reach > 0.0:
            self.moving &= ~self._near_reversal(*self._motion)
        self._motion[:] = 0.0
        return True

    def _near_reversal(self, dq: Array, ddq: Array) -> Mask:
        """(.., n_joints) outputs that an element acts on which reverses soon or has just reversed.

        Args:
            dq: (.., n_joints) mean velocity of a box, or its sum; the same of both.
            ddq: (.., n_joints) mean acceleration.
        """
        near = np.abs(dq @ self._directions.T) < self.reach * np.abs(ddq @ self._directions.T)
        return np.asarray(near @ self._acts)

    def rows(self) -> tuple[Array, Array, int] | None:
        """Rows of a full box over the unknowns and over base parameters, (.., padded n_joints), and how many they are.

        None when no joint moved throughout. The arrays are written over by the next call.
        """
        moving, self.count = self.moving, 0
        total = self._sum if self.box > 1 else self._raw
        if self.followed is not None:
            total[self.followed.columns, self.followed.channels] = self.followed.box_sum()
        if not moving.any():
            self._sum[:] = 0.0
            self.moving = np.ones(self.n_joints, dtype=bool)
            return None
        roots = self._roots / self.box
        self._weights[: self.n_joints] = roots * moving if self.dry else roots
        np.multiply(total, self._weights, out=self._slab)
        count = int(np.count_nonzero(moving)) if self.dry else self.n_joints
        self._sum[:] = 0.0
        self.moving = np.ones(self.n_joints, dtype=bool)
        if self._turn is None:
            return self._slab, self._slab, count
        np.matmul(self._turn, self._slab, out=self._short)
        return self._short, self._slab, count

    def many(self, motion: FilteredMotion) -> tuple[Mask, Array, Array, Array]:
        """Rows of whole boxes, (n_boxes * box, n_joints) of motion.

        Returns:
            (n_boxes, n_joints) joints that moved throughout, rows over the unknowns and over base parameters,
            (.., n_kept, n_joints) for boxes with any, and (n_kept,) how many rows each has.
        """
        boxes = (-1, self.box, self.n_joints)
        moving: Mask = np.all((np.abs(motion.dq) > self.rest_velocity).reshape(boxes), axis=1)
        if self.reach > 0.0:
            moving &= ~self._near_reversal(*(x.reshape(boxes).sum(1) for x in (motion.dq, motion.ddq)))
        kept = moving.any(1)
        chosen = np.repeat(kept, self.box)
        q, dq, ddq = (x[chosen] for x in (motion.q, motion.dq, motion.ddq))
        rows = np.zeros((self.n + 1, len(q), self.n_joints))
        if len(q):
            columns_first = self.regressor.columns_first([*q.T, *dq.T, *ddq.T])
            for channel, lines in enumerate(self.regressor.lines()):
                rows[list(self.regressor.columns[channel]), :, channel] = columns_first[lines]
            rows[-1] = self._torque(q, dq, ddq, motion.tau[chosen])
        if self.followed is not None:
            load = np.zeros_like(motion.q)
            if self.followed.links is not None:
                load[chosen] = np.tensordot(self.followed.links, rows[:-1], 1)
            beside = self.followed.columns_first(motion.time, motion.q, motion.dq, motion.ddq, load)
            rows[self.followed.columns, :, self.followed.channels] = beside[:, chosen]
        rows = rows.reshape(self.n + 1, -1, self.box, self.n_joints).mean(2)
        rows *= self._roots * moving[kept] if self.dry else self._roots
        counts = moving[kept].sum(1) if self.dry else np.full(rows.shape[1], self.n_joints)
        return moving, rows if self._turn is None else np.tensordot(self._turn, rows, 1), rows, counts

    def as_arrays(self) -> dict[str, Any]:
        """The box in the making, for checkpoints."""
        own = {"sum": self._sum.copy(), "moving": self.moving.copy(), "count": np.array(self.count)}
        own |= {"motion": self._motion.copy()}
        return own | gather_arrays({"followed": self.followed})

    def restore(self, arrays: dict[str, Any]) -> None:
        """Continue from what `as_arrays` gave."""
        self._sum[:] = arrays["sum"]
        self.moving, self.count = np.array(arrays["moving"], dtype=bool), int(arrays["count"])
        self._motion[:] = arrays.get("motion", 0.0)  # checkpoints of earlier versions have none
        restore_parts({"followed": self.followed}, arrays)

    def _torque(self, q: Array, dq: Array, ddq: Array, tau: Array) -> Array:
        """Torque for the right-hand side, without what parameters of fixed value make."""
        torque, regressor = self.structure.torque(q, dq, ddq, tau), self.regressor
        if not regressor.fixed_values:
            return torque
        own = regressor.of_state, regressor.fixed_values
        return np.asarray(torque - inverse_dynamics(regressor.robot, q, dq, ddq, *own))


def _padded_width(n: int) -> int:
    """Rows filled up to whole vectors of the processor."""
    if chosen_backend() == "numpy":
        return n
    from dynident.dynamics.jit.vector_ir import lanes

    return -(-n // lanes()) * lanes()


def aligned_zeros(rows: int, columns: int) -> Array:
    """Zeros that begin on a cache line."""
    if chosen_backend() == "numpy":
        return np.zeros((rows, columns))
    from dynident.dynamics.jit.llvm_kernel import aligned_array

    return aligned_array(rows * columns).reshape(rows, columns)


def absorber(R: Array, slab: Array) -> Callable[[], None]:
    """A function that absorbs what a slab (p, padded n_rows) holds by then into R; the slab is destroyed."""
    if chosen_backend() == "numpy":
        from dynident.information.factor import absorb

        return lambda: absorb(R, slab)
    from dynident.information.householder import absorb_function

    run, p, rows = absorb_function(), len(R), slab.shape[1]
    target, source = R.ctypes.data, slab.ctypes.data

    def absorbed() -> None:
        run(target, p, source, rows, rows, p)

    return absorbed
