"""`Sample`: filtered motion and torque at moments spread over the logs, enough to compare explanations quickly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array, Mask, on_one_thread
from dynident.dynamics.evaluate import inverse_dynamics
from dynident.identifiability.base import BaseParameters
from dynident.identifiability.base_regressor import BaseRegressor
from dynident.information.factor import absorb
from dynident.signals.observations import Observations
from dynident.signals.rows import too_short

DELAYS = np.linspace(-0.15, 0.15, 61)  # [s] by which torque may be late
LAG = 1.0  # periods of the band, over which filtered noise forgets itself
MOMENTS = 2400  # of all logs together: some tens of rows for each parameter of an arm
_MOVING = 0.1  # of a joint's effective speed: slower, and friction that no basic column describes rules the torque


@dataclass(frozen=True, eq=False)
class Sample:
    """Moments of a log.

    Attributes:
        q, dq, ddq: (n_moments, n_joints).
        tau: (n_moments, n_joints), torque at the actuated coordinates.
        late: (n_delays, n_moments, n_joints), torque later by each of `DELAYS`.
        around: (2, 3, n_moments, n_joints), positions, speeds and accelerations `LAG` periods of the band before and
            after, whose noise is another one.
        rest_speed: A joint slower than this is at rest [rad/s or m/s].
    """

    q: Array
    dq: Array
    ddq: Array
    tau: Array
    late: Array
    around: Array
    rest_speed: float

    @property
    def moving(self) -> Mask:
        """(n_moments, n_joints), whether a joint moves well enough for its torque to count."""
        return self.faster(_MOVING)

    def faster(self, share: float) -> Mask:
        """(n_moments, n_joints), whether a joint moves faster than this share of its effective speed."""
        speed = np.sqrt(np.mean(self.dq**2, axis=0))
        return np.asarray(np.abs(self.dq) > np.maximum(self.rest_speed, share * speed))


def samples(observations: Sequence[Observations], moments: int = MOMENTS) -> list[Sample]:
    """Moments at equal distances in time of each log, away from gaps.

    Args:
        observations: The logs.
        moments: How many at most, of all logs together.
    """
    total = sum(sum(one.survey.stretches) / one.survey.grid.rate for one in observations)
    return [_of_log(one, moments / total) for one in observations]


def _of_log(one: Observations, per_second: float) -> Sample:
    parts: list[tuple[Array, ...]] = []
    for block in one.motion():
        every = max(1, round(block.rate / per_second))
        places = np.arange(len(block.inner))
        lag = max(1, round(LAG * block.rate / one.band))
        reach = max(int(DELAYS[-1] * block.rate) + 1, lag)  # from the ends of a block, where a neighbour is missing
        keep = block.inner & ((block.first + places) % every == 0) & (places >= reach) & (places < len(places) - reach)
        late = _shifted(block.tau[0], np.flatnonzero(keep), DELAYS * block.rate)
        motion, places = np.stack([block.q, block.dq, block.ddq]), np.flatnonzero(keep)
        around = np.stack([motion[:, places - lag], motion[:, places + lag]])
        parts.append((*motion[:, places], block.tau[0][places], late, around))
    if not parts:
        raise too_short(one)
    q, dq, ddq, tau, late, around = (np.concatenate(own, axis=-2) for own in zip(*parts, strict=True))
    return Sample(q, dq, ddq, tau, late, around, one.options.rest_speed)


def _shifted(tau: Array, places: NDArray[np.int_], shifts: Array) -> Array:
    """Torque (n, n_joints) at places shifted by parts of samples, (n_shifts, n_places, n_joints)."""
    whole = np.floor(shifts).astype(int)
    share = (shifts - whole)[:, None, None]
    first = np.minimum(places + whole[:, None], len(tau) - 2)
    before, after = (tau[first + i] for i in (0, 1))
    return np.asarray(before + share * (after - before))


# ----------------------------------------------------------------------------------------------------------------------
# `Trial`: how well the equations of a robot explain its logs if some columns mean something else than they say.
#
# Every explanation is a linear map of positions and one of torques, so one look at the moments of a sample answers all
# torque maps at once. A fit counts only with friction that takes energy: a joint whose torque has the wrong sign is
# explained as well as before by friction that drives it, and by nothing else.

_PASSES = 3  # of the fit: the weight of a joint is what the fit before left of it
_LEAST = 1e-3  # share of its torque that is always left of a joint
FEW = 30  # moments: a joint that moves in fewer explains nothing
_FAINT = 1e-6  # of a column's size: what holds its parameter where nothing else does


@dataclass(frozen=True)
class Left:
    """What an explanation leaves of the torque.

    Attributes:
        shares: (n_joints,) residual over torque of each joint, at moments in motion.
        rows: (n_joints,) moments behind it.
        values: (n,) base parameters of the fit.
        deviations: (n_joints,) residual torque.
    """

    shares: Array
    rows: Array
    values: Array
    deviations: Array

    @property
    def score(self) -> float:
        """Sum over joints of the logarithm of what is left: joints count alike, however strong they are."""
        return float(np.log(self.shares).sum())


@dataclass(frozen=True, eq=False)
class Seen:
    """The moments of a log under one map of the positions, compressed: they answer for any map of the torques.

    Attributes:
        triangles: For each row of the equations the factor of [columns, all torques, torque that is known].
        rows: (n_joints,) moments in motion.
    """

    triangles: tuple[Array, ...]
    rows: Array


class Trial:
    """Tries explanations of logs.

    Args:
        base: Base parameters of the robot.
    """

    def __init__(self, base: BaseParameters) -> None:
        self.base, self.robot = base, base.robot
        self._regressor = BaseRegressor.of(base.robot, base.terms)
        self._columns = [np.array(own, dtype=int) for own in self._regressor.columns]
        self._rigid = np.array([base.columns[i].term == "rigid" for i in base.independent])
        self._bounded = np.array([base.columns[i].symbol in ("Fv", "Fc") for i in base.independent])

    @on_one_thread
    def seen(
        self, sample: Sample, positions: Array, about: Array, clock: float = 1.0, upside_down: bool = False
    ) -> Seen:
        """The moments of a log with other positions.

        Args:
            sample: The moments.
            positions: (n_joints, n_joints): joint positions are positions @ logged ones.
            about: (n_joints,) joint positions that are logged as zero, from which positions are counted.
            clock: Length of a logged second [s].
            upside_down: Whether gravity points the other way.
        """
        q = (sample.q - about) @ positions.T + about
        dq, ddq = sample.dq @ positions.T / clock, sample.ddq @ positions.T / clock**2
        used = (sample.moving @ np.abs(positions).T) > 0.0
        columns = self.columns_first(q, dq, ddq)
        if upside_down:  # the equations are linear in gravity, which is all that is left of them at rest
            still = np.zeros_like(q)
            for felt, own, weight in zip(columns, self._columns, self.columns_first(q, still, still), strict=True):
                felt -= 2.0 * np.where(self._rigid[own, None], weight, 0.0)
        known = np.zeros_like(q)
        if fixed := self._regressor.fixed_values:
            known = inverse_dynamics(self.robot, q, dq, ddq, self._regressor.of_state, fixed)
        triangles = []
        for channel, felt in enumerate(columns):
            rows = np.concatenate([felt, sample.tau.T, known[None, :, channel]])
            triangle = np.zeros((len(rows), len(rows)))
            absorb(triangle, np.ascontiguousarray(rows[:, used[:, channel]]))
            triangles.append(triangle)
        return Seen(tuple(triangles), used.sum(0))

    @on_one_thread
    def columns_first(self, q: Array, dq: Array, ddq: Array) -> list[Array]:
        """The columns that each output depends on, (n_felt, n_moments) each; `felt` says which they are."""
        found = self._regressor.columns_first([*q.T, *dq.T, *ddq.T])
        return [found[lines] for lines in self._regressor.lines()]

    @property
    def felt(self) -> list[Array]:
        """Base parameters that each row feels."""
        return self._columns

    @on_one_thread
    def left_late(self, samples: Sequence[Sample], motion: float) -> tuple[Array, Array]:
        """What fits leave of later torque, of each joint's own equations and of all together.

        Args:
            samples: The moments of each log.
            motion: Share of its effective speed that a joint must exceed: in slow motion friction passes for delay.

        Returns:
            Residuals of each joint's own equations, (n_joints, n_delays); and products of what one model of all joints
            leaves, (n_joints, n_delays, n_joints, n_delays), each joint over its least own residual: if joint j is late
            by delay d[j], the sum of products[j, d[j], k, d[k]] over j and k is the square of what is left.
        """
        n_delays = len(samples[0].late)
        total = [np.zeros((len(own) + n_delays,) * 2) for own in self._columns]
        for sample in samples:
            used = sample.faster(motion)
            for channel, felt in enumerate(self.columns_first(sample.q, sample.dq, sample.ddq)):
                rows = np.concatenate([felt, sample.late[:, :, channel]])
                absorb(total[channel], np.ascontiguousarray(rows[:, used[:, channel]]))
        ends = [len(own) for own in self._columns]
        alone = [np.linalg.norm(R[end:, end:], axis=0) for R, end in zip(total, ends, strict=True)]
        n, parts, wide = self.base.n, [], len(ends) * n_delays
        for j, (R, own, left) in enumerate(zip(total, self._columns, alone, strict=True)):
            part, first = np.zeros((len(R), n + wide)), n + j * n_delays
            part[:, [*own, *range(first, first + n_delays)]] = R / max(float(left.min()), 1e-12)
            parts.append(part)
        rest: Array = np.asarray(np.linalg.qr(np.concatenate(parts), mode="r"))[n:, n:]
        return np.array(alone), (rest.T @ rest).reshape(len(ends), n_delays, len(ends), n_delays)

    @on_one_thread
    def left(self, seen: Sequence[tuple[Seen, Array]]) -> Left:
        """What one model of all logs leaves.

        Args:
            seen: For each log its moments, and (n_joints, n_joints): row j of the equations uses torques[j] @ tau.
        """
        counts, parts = self._parts(seen)
        size = np.sqrt(np.maximum([part.size for part in parts] / counts, 1e-24))
        sigma = np.maximum(np.sqrt([part.rest for part in parts] / counts), _LEAST * size)
        for _ in range(_PASSES):
            values = self._fit(parts, sigma)
            squares = np.array([part.squares(values) for part in parts])
            sigma = np.maximum(np.sqrt(squares / counts), _LEAST * size)
        shares = np.where(counts < FEW, 1.0, sigma / size)
        return Left(shares, counts, values, sigma)

    @on_one_thread
    def bound(self, seen: Sequence[tuple[Seen, Array]]) -> Left:
        """What no model of all logs leaves less of: each joint of each log explained by its own equations alone."""
        counts, parts = self._parts(seen)
        size = np.sqrt(np.maximum([part.size for part in parts] / counts, 1e-24))
        sigma = np.maximum(np.sqrt([part.rest for part in parts] / counts), _LEAST * size)
        return Left(np.where(counts < FEW, 1.0, sigma / size), counts, np.zeros(self.base.n), sigma)

    @on_one_thread
    def left_by(self, values: Array, seen: Sequence[tuple[Seen, Array]]) -> Left:
        """What given values leave of the torque."""
        counts, parts = self._parts(seen)
        squares, size = ([part.squares(values) for part in parts], [part.size for part in parts])
        shares = np.sqrt(np.array(squares) / np.maximum(size, 1e-24 * counts))
        shares = np.where(counts < FEW, 1.0, np.maximum(shares, _LEAST))
        return Left(shares, counts, values, np.sqrt(np.array(squares) / counts))

    def _parts(self, seen: Sequence[tuple[Seen, Array]]) -> tuple[Array, list[_Rows]]:
        """How many moments each joint has, and its equations."""
        rows = [[(one.triangles[j], how[j]) for one, how in seen] for j in range(len(self._columns))]
        counts = np.maximum(np.sum([one.rows for one, _ in seen], axis=0), 1)
        return counts, [_Rows.of(own, part) for own, part in zip(self._columns, rows, strict=True)]

    @on_one_thread
    def conditioned(self, seen: Sequence[tuple[Seen, Array]], left: Left) -> tuple[Array, Array]:
        """The equations of all joints, each row over what is left of its joint: (rows, n), and the torque, (rows,)."""
        _, parts = self._parts(seen)
        rows, torque = [], []
        for part, size in zip(parts, left.deviations, strict=True):
            wide = np.zeros((len(part.z), self.base.n))
            wide[:, part.columns] = part.A / size
            rows.append(wide)
            torque.append(part.z / size)
        return np.concatenate(rows), np.concatenate(torque)

    def _fit(self, parts: Sequence[_Rows], sigma: Array) -> Array:
        """Weighted least squares with friction that is not negative, (n,)."""
        n, free = self.base.n, int(np.count_nonzero(~self._bounded))
        whole = np.zeros((sum(len(part.z) for part in parts), n + 1))
        first = 0
        for part, size in zip(parts, sigma, strict=True):
            own = slice(first, first + len(part.z))
            whole[own, part.columns] = part.A / size
            whole[own, -1] = part.z / size
            first = own.stop
        order = np.argsort(self._bounded, kind="stable")  # free ones first
        sizes = np.linalg.norm(whole[:, :n], axis=0)
        weak = np.hstack(
            [np.diag(_FAINT * np.where(sizes > 0.0, sizes, 1.0)), np.zeros((n, 1))]
        )  # holds what is not seen
        R: Array = np.asarray(np.linalg.qr(np.concatenate([whole, weak])[:, [*order, n]], mode="r"))
        values = np.zeros(n)
        positive = _not_negative(R[free:n, free:n], R[free:n, -1])
        values[order[free:]] = positive
        # Solving with a triangular matrix is back substitution, whoever does it.
        values[order[:free]] = np.linalg.solve(R[:free, :free], R[:free, -1] - R[:free, free:-1] @ positive)
        return values


def _not_negative(R: Array, z: Array) -> Array:
    """The x >= 0 with the least |R x - z|, for a triangle R (n, n): that of least squares where it is not negative."""
    found = np.asarray(np.linalg.solve(R, z), dtype=np.float64)
    if (found >= 0.0).all():
        return found
    from scipy.optimize import nnls  # takes a quarter of a second to load

    return np.asarray(nnls(R, z)[0])


@dataclass(frozen=True, eq=False)
class _Rows:
    """The equations of one joint over all logs: A values[columns] = z, and what no value explains."""

    columns: Array
    A: Array
    z: Array
    rest: float

    @classmethod
    def of(cls, columns: Array, logs: Sequence[tuple[Array, Array]]) -> _Rows:
        m = len(columns)
        mixed = [triangle[:, m:] @ np.append(how, -1.0) for triangle, how in logs]
        A = np.concatenate([triangle[:m, :m] for triangle, _ in logs])
        z = np.concatenate([one[:m] for one in mixed])
        return cls(columns, A, z, float(sum(one[m:] @ one[m:] for one in mixed)))

    @property
    def size(self) -> float:
        """Square of all torque."""
        return float(self.z @ self.z) + self.rest

    def squares(self, values: Array) -> float:
        """Square of the torque that values leave."""
        return float(np.sum((self.A @ values[self.columns] - self.z) ** 2)) + self.rest
