"""`Trial`: how well the equations of a robot explain its logs if some columns mean something else than they say.

It looks at `TrialSamples`, filtered motion and torque at times spread over the logs, enough to compare hypotheses
quickly.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array, Mask, on_one_thread
from dynident.dynamics.evaluate import inverse_dynamics
from dynident.identifiability.base import BaseParameters
from dynident.identifiability.base_regressor import BaseRegressor
from dynident.information.factor import Factor, absorb
from dynident.information.solution import trust_as_driven
from dynident.signals.observations import Observations
from dynident.signals.rows import too_short
from dynident.signals.thresholds import THRESHOLDS as SIGNALS

DELAYS = np.linspace(-0.15, 0.15, 61)  # [s] by which torque may be late
_LAG_PERIODS = 1.0  # of the bandwidth, over which filtered noise forgets itself
_N_SAMPLES = 2400  # of all logs together: some tens of rows for each parameter of an arm
_N_FOLDS = 4  # parts of a log that are held out in turn
_MIN_VELOCITY_SHARE = 0.1  # of a joint's rms velocity: below it, friction that no basic column describes rules


@dataclass(frozen=True, eq=False)
class TrialSamples:
    """Samples of a log.

    Attributes:
        q, dq, ddq: (n_samples, n_joints).
        tau: (n_samples, n_joints), torque at the actuated coordinates.
        late: (n_delays, n_samples, n_joints), torque later by each of `DELAYS`.
        around: (2, 3, n_samples, n_joints), positions, velocities and accelerations one period of the bandwidth before
            and after, whose noise is another one.
        rest_velocity: A joint slower than this is at rest [rad/s or m/s].
        saturated: (n_samples, n_joints), whether a torque is at the end of its range; None where none is.
    """

    q: Array
    dq: Array
    ddq: Array
    tau: Array
    late: Array
    around: Array
    rest_velocity: float
    saturated: Mask | None = None

    @classmethod
    def of(cls, observations: Observations, per_second: float) -> TrialSamples:
        """So many samples per second of a log, away from gaps."""
        parts: list[tuple[Array, ...]] = []
        marks: list[Mask] = []
        for block in observations.motion():
            every = max(1, round(block.rate / per_second))
            places = np.arange(len(block.inner))
            lag = max(1, round(_LAG_PERIODS * block.rate / observations.band))
            reach = max(int(DELAYS[-1] * block.rate) + 1, lag)  # from the ends of a block, where a neighbor is missing
            whole = (places >= reach) & (places < len(places) - reach)
            places = np.flatnonzero(block.inner & ((block.first + places) % every == 0) & whole)
            late = _shift_torque(block.tau[0], places, DELAYS * block.rate)
            motion = np.stack([block.q, block.dq, block.ddq])
            around = np.stack([motion[:, places - lag], motion[:, places + lag]])
            parts.append((*motion[:, places], block.tau[0][places], late, around))
            if block.saturated is not None:
                marks.append(block.saturated[places] > SIGNALS.saturated_row_share)
        if not parts:
            raise too_short(observations)
        q, dq, ddq, tau, late, around = (np.concatenate(own, axis=-2) for own in zip(*parts, strict=True))
        saturated = np.concatenate(marks) if marks else None
        return cls(q, dq, ddq, tau, late, around, observations.options.rest_velocity, saturated)

    def folds(self, turns: int = 1) -> list[TrialSamples]:
        """The samples in parts that leave each other out.

        Args:
            turns: How often each part comes along the log. A part in one piece is new motion to a fit of the others,
                where slices of a motion are known by their neighbors.
        """
        segment = np.arange(len(self.q)) * _N_FOLDS * turns // max(len(self.q), 1)
        own = [segment % _N_FOLDS == fold for fold in range(_N_FOLDS)]
        return [
            replace(
                self,
                q=self.q[k],
                dq=self.dq[k],
                ddq=self.ddq[k],
                tau=self.tau[k],
                late=self.late[:, k],
                around=self.around[:, :, k],
                saturated=None if self.saturated is None else self.saturated[k],
            )
            for k in own
        ]

    @functools.cached_property
    def moving(self) -> Mask:
        """(n_samples, n_joints), whether a joint moves well enough for its torque to count."""
        return self.faster(_MIN_VELOCITY_SHARE)

    def torque_products(self, used: Mask) -> Array:
        """Sums of tau tau' over the samples used of each joint, (n_joints, n_joints, n_joints), the joint first."""
        key = used.tobytes()
        if key not in self._products:
            self._products[key] = (self.tau.T * used.T[:, None, :]) @ self.tau
        return self._products[key]

    @functools.cached_property
    def _products(self) -> dict[bytes, Array]:
        return {}

    def faster(self, share: float) -> Mask:
        """(n_samples, n_joints), whether a joint moves faster than this share of its rms velocity."""
        rms = np.sqrt(np.mean(self.dq**2, axis=0))
        moves = np.abs(self.dq) > np.maximum(self.rest_velocity, share * rms)
        return np.asarray(moves if self.saturated is None else moves & ~self.saturated)


def trial_samples(observations: Sequence[Observations], n_samples: int = _N_SAMPLES) -> list[TrialSamples]:
    """Samples at equal distances in time of each log, away from gaps.

    Args:
        observations: The logs.
        n_samples: How many at most, of all logs together.
    """
    seconds = sum(sum(log.survey.stretches) / log.survey.grid.rate for log in observations)
    return [TrialSamples.of(log, n_samples / seconds) for log in observations]


def _shift_torque(tau: Array, places: NDArray[np.int_], shifts: Array) -> Array:
    """Torque (n, n_joints) at places shifted by parts of samples, (n_shifts, n_places, n_joints)."""
    whole = np.floor(shifts).astype(int)
    share = (shifts - whole)[:, None, None]
    first = np.minimum(places + whole[:, None], len(tau) - 2)
    before, after = (tau[first + i] for i in (0, 1))
    return np.asarray(before + share * (after - before))


# ----------------------------------------------------------------------------------------------------------------------
# `Trial`. Every hypothesis is a linear map of positions and one of torques, so one pass over the samples answers all
# torque maps at once. A fit counts only with friction that dissipates: a joint whose torque has the wrong sign is
# explained as well as before by friction that drives it, and by nothing else.

_N_REWEIGHTINGS = 3  # of the fit: the weight of a joint is the residual of the fit before
_MIN_RESIDUAL_SHARE = 1e-3  # of its torque that always stays of a joint
MIN_SAMPLES = 30  # a joint that moves in fewer explains nothing
_NO_TORQUE = 1e-12  # [N·m or N] a joint without a motor has no more, and says nothing of its own
_FAINT = 1e-5  # of a column's size: what holds its parameter where nothing else does
TrialRows = tuple[Sequence[Factor], Array]  # factors of a log by output; and (n, n): output j has torques[j] @ tau


@dataclass(frozen=True)
class TrialFit:
    """What a hypothesis leaves of the torque.

    Attributes:
        residual_share: (n_joints,) residual over torque of each joint, at samples in motion; 1 for joints that hardly
            move or have no torque.
        n_samples: (n_joints,) samples behind it.
        values: (n,) base parameters of the fit.
        residual_rms: (n_joints,) residual torque [N·m or N].
    """

    residual_share: Array
    n_samples: Array
    values: Array
    residual_rms: Array

    @property
    def score(self) -> float:
        """Sum over joints of the logarithm of the residual share: joints count alike, however strong they are.

        Held-out torque that a model makes worse is not explained, by how much does not matter: its share counts as 1.
        """
        return float(np.log(np.minimum(self.residual_share, 1.0)).sum())

    @property
    def total_share(self) -> float:
        """Residual share of the torque of all joints together that move and have torque; 1 without any."""
        evaluated = self.residual_share != 1.0
        residual = self.residual_rms[evaluated]
        torque = float(np.linalg.norm(residual / self.residual_share[evaluated]))
        return float(np.linalg.norm(residual)) / torque if torque > 0.0 else 1.0


@dataclass(frozen=True)
class HeldOut(TrialFit):
    """What models of the other parts leave of each part of logs, all parts together.

    Attributes:
        parts: The same of each part.
    """

    parts: tuple[TrialFit, ...]

    @property
    def mean_score(self) -> float:
        """Mean score of the parts: they count alike, where one that no model explains would rule all together."""
        return float(np.mean([part.score for part in self.parts]))


class Trial:
    """Tries hypotheses about logs.

    Args:
        base: Base parameters of the robot.

    Attributes:
        columns: Base parameters that each output depends on.
    """

    def __init__(self, base: BaseParameters) -> None:
        self.base, self.robot = base, base.robot
        self._regressor = BaseRegressor.of(base.robot, base.terms)
        self.columns = [np.array(own, dtype=int) for own in self._regressor.columns]
        self._places = [np.ix_([*own, base.n], [*own, base.n]) for own in self.columns]
        self._rigid = np.array([base.columns[i].term == "rigid" for i in base.independent])
        self._bounded = np.array([base.columns[i].symbol in ("Fv", "Fc") for i in base.independent])

    @on_one_thread
    def compress(
        self,
        samples: TrialSamples,
        positions: Array,
        about: Array,
        clock: float = 1.0,
        upside_down: bool = False,
        every: int = 1,
    ) -> tuple[Factor, ...]:
        """The samples of a log under one map of the positions: factors that answer for any map of the torques.

        Args:
            samples: The samples.
            positions: (n_joints, n_joints): joint positions are positions @ logged ones.
            about: (n_joints,) joint positions that are logged as zero, from which positions are counted.
            clock: Length of a logged second [s].
            upside_down: Whether gravity points the other way.
            every: One of so many samples is used.

        Returns:
            For each output the factor of [columns, all torques, torque that is known].
        """
        own = slice(None, None, every)
        q = (samples.q[own] - about) @ positions.T + about
        dq, ddq = samples.dq[own] @ positions.T / clock, samples.ddq[own] @ positions.T / clock**2
        tau, used = samples.tau[own], self._used(samples, positions)[own]
        columns = self.columns_first(q, dq, ddq)
        if upside_down:  # the equations are linear in gravity, which is all that remains of them at rest
            still = np.zeros_like(q)
            for lines, which, weight in zip(columns, self.columns, self.columns_first(q, still, still), strict=True):
                lines -= 2.0 * np.where(self._rigid[which, None], weight, 0.0)
        known = self._known(q, dq, ddq)
        factors = []
        for channel, lines in enumerate(columns):
            rows = np.concatenate([lines, tau.T, known[None, :, channel]])
            R = np.zeros((len(rows), len(rows)))
            absorb(R, np.ascontiguousarray(rows[:, used[:, channel]]))
            factors.append(Factor(tuple(self.columns[channel]), R, int(used[:, channel].sum())))
        return tuple(factors)

    def _known(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Torque of known values, (n_samples, n_joints)."""
        if fixed := self._regressor.fixed_values:
            return inverse_dynamics(self.robot, q, dq, ddq, self._regressor.of_state, fixed)
        return np.zeros_like(q)

    def torque_size(self, logs: Sequence[tuple[TrialSamples, Array, Array]]) -> tuple[Array, Array]:
        """Samples of each joint, at least one, and size of its torque, (n_joints,) each, as `bound` has them.

        Args:
            logs: The samples of each log, and the maps of its positions and torques.
        """
        used = [self._used(samples, positions) for samples, positions, _ in logs]
        products = [own[0].torque_products(moving) for own, moving in zip(logs, used, strict=True)]
        torques = [own[2] for own in logs]
        squares = sum(np.einsum("ja,jab,jb->j", T, G, T) for T, G in zip(torques, products, strict=True))
        counts = np.maximum(sum(moving.sum(0) for moving in used), 1)
        return counts, np.asarray(np.sqrt(np.maximum(squares / counts, _NO_TORQUE**2)))

    def rows_as_logged(self, samples: Sequence[TrialSamples]) -> list[TrialRows]:
        """The samples of logs with all columns as they say."""
        n = len(self.robot.joint_names)
        return [(self.compress(own, np.eye(n), np.zeros(n)), np.eye(n)) for own in samples]

    @property
    def knows_torque(self) -> bool:
        """Whether parameters of fixed value have torque of their own."""
        return bool(self._regressor.fixed_values)

    @staticmethod
    def _used(samples: TrialSamples, positions: Array) -> Mask:
        """(n_samples, n_joints), whether a joint's equation counts: one that moves well is meant, torque is no end."""
        used = np.asarray((samples.moving @ np.abs(positions).T) > 0.0)
        return used if samples.saturated is None else used & ~samples.saturated

    @on_one_thread
    def columns_first(self, q: Array, dq: Array, ddq: Array) -> list[Array]:
        """The columns that each output depends on, (n_columns, n_samples) each; `columns` says which they are."""
        found = self._regressor.columns_first([*q.T, *dq.T, *ddq.T])
        return [found[lines] for lines in self._regressor.lines()]

    @on_one_thread
    def delayed_residuals(self, samples: Sequence[TrialSamples], motion: float) -> tuple[Array, Array]:
        """Residuals of later torque, of each joint's own equations and of all together.

        Args:
            samples: The samples of each log.
            motion: Share of its rms velocity that a joint must exceed: in slow motion friction passes for delay.

        Returns:
            Residuals of each joint's own equations, (n_joints, n_delays); and products of the residuals of one model of
            all joints, (n_joints, n_delays, n_joints, n_delays), each joint over its least own residual: if joint j is
            late by delay d[j], the sum of products[j, d[j], k, d[k]] over j and k is the square of the residual.
        """
        n_delays = len(samples[0].late)
        total = [np.zeros((len(own) + n_delays,) * 2) for own in self.columns]
        for part in samples:
            used = part.faster(motion)
            known = self._known(part.q, part.dq, part.ddq)
            for channel, lines in enumerate(self.columns_first(part.q, part.dq, part.ddq)):
                rows = np.concatenate([lines, part.late[:, :, channel] - known[:, channel]])
                absorb(total[channel], np.ascontiguousarray(rows[:, used[:, channel]]))
        ends = [len(own) for own in self.columns]
        alone = [np.linalg.norm(R[end:, end:], axis=0) for R, end in zip(total, ends, strict=True)]
        # Of the triangle of a joint, the upper rows have columns and torques; in the lower ones is torque alone.
        places, wide = np.cumsum([0, *ends]), len(ends) * n_delays
        columns, torques = np.zeros((places[-1], self.base.n)), np.zeros((places[-1], wide))
        lower = np.zeros((wide, wide))
        for j, (R, own, residual) in enumerate(zip(total, self.columns, alone, strict=True)):
            scaled, upper = R / max(float(residual.min()), 1e-12), slice(places[j], places[j + 1])
            late = slice(j * n_delays, (j + 1) * n_delays)
            columns[upper, own], torques[upper, late] = scaled[: ends[j], : ends[j]], scaled[: ends[j], ends[j] :]
            lower[late, late] = scaled[ends[j] :, ends[j] :]
        Q = np.linalg.qr(columns)[0]
        rest = torques - Q @ (Q.T @ torques)
        products = rest.T @ rest + lower.T @ lower
        return np.array(alone), products.reshape(len(ends), n_delays, len(ends), n_delays)

    @on_one_thread
    def fit(self, logs: Sequence[TrialRows], *, dissipates: bool = True) -> TrialFit:
        """One model of all logs, whose friction dissipates unless it need not."""
        start, joints = self.bound(logs), self._equations(logs)
        counts, sigma = start.n_samples, start.residual_rms
        size = self._torque_rms(logs, _right_squares(joints), counts)
        products = [rows.T @ rows for rows in joints]
        for _ in range(_N_REWEIGHTINGS):
            values = self._solve(products, trust_as_driven(sigma, size > _NO_TORQUE), self._bounded & dissipates)
            sigma = np.maximum(np.sqrt(self._residual_squares(joints, values) / counts), _MIN_RESIDUAL_SHARE * size)
        return TrialFit(_shares(sigma, size, counts), counts, values, sigma)

    @on_one_thread
    def bound(self, logs: Sequence[TrialRows], whole: tuple[Array, Array] | None = None) -> TrialFit:
        """What no model of all logs goes below: each joint of each log explained by its own equations alone.

        Args:
            logs: The equations.
            whole: Samples and size of the torque of each joint, (n_joints,) each, where these equations are a part of
                them, which leaves no more than all of them do.
        """
        squares = np.zeros(
            (2, len(self.columns))
        )  # of what the columns of a joint's own equations leave, and of its torque
        for factors, torques in logs:
            for j, own in enumerate(self.columns):
                z = self._mixed(factors[j], torques[j])
                squares[:, j] += float(z[len(own) :] @ z[len(own) :]), float(z @ z)
        counts, size = whole or (counts := self._counts(logs), self._torque_rms(logs, squares[1], counts))
        sigma = np.maximum(np.sqrt(squares[0] / counts), _MIN_RESIDUAL_SHARE * size)
        return TrialFit(_shares(sigma, size, counts), counts, np.zeros(self.base.n), sigma)

    @on_one_thread
    def held_out(
        self, folds: Sequence[Sequence[TrialRows]], *, beside: Sequence[TrialRows] = (), dissipates: bool = True
    ) -> HeldOut:
        """What models of the other parts leave of each part.

        Args:
            folds: The equations of all logs in each part.
            beside: Equations of more logs, which all models see.
            dissipates: Whether friction must.
        """
        every = [rows for fold in folds for rows in fold]
        counts, joints = self._counts(every), self._equations(every)
        parts = []
        for left_out, fold in enumerate(folds):
            others = [*beside, *(rows for k, other in enumerate(folds) if k != left_out for rows in other)]
            parts.append(self.evaluate(self.fit(others, dissipates=dissipates).values, fold))
        sigma = np.sqrt(sum(part.residual_rms**2 * part.n_samples for part in parts) / counts)
        shares = _shares(sigma, self._torque_rms(every, _right_squares(joints), counts), counts)
        return HeldOut(shares, counts, np.zeros(self.base.n), sigma, tuple(parts))

    @on_one_thread
    def evaluate(self, values: Array, logs: Sequence[TrialRows]) -> TrialFit:
        """What given values leave of the torque."""
        counts, joints = self._counts(logs), self._equations(logs)
        sigma = np.sqrt(self._residual_squares(joints, values) / counts)
        return TrialFit(
            _shares(sigma, self._torque_rms(logs, _right_squares(joints), counts), counts), counts, values, sigma
        )

    def driving_joints(self, fit: TrialFit, symbols: Sequence[str] = ("Fv", "Fc")) -> tuple[int, ...]:
        """Joints with one of these friction parameters, their own or their motor's, below zero."""
        names = [(self.base.columns[i].symbol, self.base.columns[i].place) for i in self.base.independent]
        wrong = {place for (symbol, place), x in zip(names, fit.values, strict=True) if symbol in symbols and x < 0.0}
        own = [{f"{joint.number}", f"m{joint.number}"} for joint in self.robot.moving_joints]
        return tuple(j for j, places in enumerate(own) if places & wrong)

    @on_one_thread
    def weighted_rows(self, logs: Sequence[TrialRows], fit: TrialFit) -> Array:
        """The equations of all joints, each row over the residual of its joint, (n_rows, n)."""
        return self._stack(self._equations(logs), fit.residual_rms)[:, :-1]

    def _counts(self, logs: Sequence[TrialRows]) -> Array:
        """(n_joints,) samples of each joint, at least one."""
        return np.asarray(np.maximum(np.sum([[one.n_rows for one in factors] for factors, _ in logs], axis=0), 1))

    def _equations(self, logs: Sequence[TrialRows]) -> list[Array]:
        """The equations [A | z] of each joint over all logs, (n_rows, k + 1); the last row no value explains."""
        joints = []
        for j, own in enumerate(self.columns):
            k = len(own)
            mixed = [self._mixed(factors[j], torques[j]) for factors, torques in logs]
            upper = [
                np.column_stack([factors[j].R[:k, :k], z[:k]]) for (factors, _), z in zip(logs, mixed, strict=True)
            ]
            rest = np.append(np.zeros(k), np.sqrt(sum(z[k:] @ z[k:] for z in mixed)))
            joints.append(np.concatenate([*upper, rest[None]]))
        return joints

    @staticmethod
    def _mixed(factor: Factor, torque: Array) -> Array:
        """Right side of the equations of an output that has this torque, that of known values taken off, (n_rows,)."""
        n = len(torque)
        return np.asarray(factor.R[:, -n - 1 : -1] @ torque - factor.R[:, -1])

    def _torque_rms(self, logs: Sequence[TrialRows], squares: Array, counts: Array) -> Array:
        """(n_joints,) size of the torque of each joint's equations, that of known values among it.

        Args:
            logs: The equations.
            squares: (n_joints,) of their right sides.
            counts: (n_joints,) samples behind them.
        """
        if self._regressor.fixed_values:  # a hypothesis that makes known torque large explains nothing by it
            squares = np.array(
                [
                    sum(float(np.sum((factors[j].R[:, len(own) : -1] @ torques[j]) ** 2)) for factors, torques in logs)
                    for j, own in enumerate(self.columns)
                ]
            )
        return np.asarray(np.sqrt(np.maximum(squares / counts, _NO_TORQUE**2)))

    def _residual_squares(self, joints: Sequence[Array], values: Array) -> Array:
        """(n_joints,) square of the residual torque of values."""
        own = zip(joints, self.columns, strict=True)
        return np.array([float(np.sum((rows[:, :-1] @ values[k] - rows[:, -1]) ** 2)) for rows, k in own])

    def _stack(self, joints: Sequence[Array], sigma: Array) -> Array:
        """The equations of all joints, each over a size of its own, (n_rows, n + 1)."""
        parts = []
        for rows, own, size in zip(joints, self.columns, sigma, strict=True):
            wide = np.zeros((len(rows) - 1, self.base.n + 1))
            wide[:, [*own, self.base.n]] = rows[:-1] / size
            parts.append(wide)
        return np.concatenate(parts)

    def _solve(self, products: Sequence[Array], sigma: Array, bounded: Mask) -> Array:
        """Weighted least squares with parameters of which some are not negative, (n,).

        Args:
            products: [A | z]' [A | z] of each joint. Directions that they lose to rounding explain nothing.
            sigma: (n_joints,) what each joint's equations are divided by.
            bounded: (n,) which parameters are not negative.
        """
        n, free = self.base.n, int(np.count_nonzero(~bounded))
        total = np.zeros((n + 1, n + 1))
        for product, own, size in zip(products, self._places, sigma, strict=True):
            total[own] += product / size**2
        sizes = np.sqrt(np.diag(total)[:n])
        sizes = np.where(sizes > 0.0, sizes, 1.0)
        order = np.argsort(bounded, kind="stable")  # free ones first
        scaled = total[:n, :n] / np.outer(sizes, sizes) + _FAINT**2 * np.eye(n)  # holds what does not show
        R = np.asarray(np.linalg.cholesky(scaled[np.ix_(order, order)]).T, dtype=np.float64)
        # Solving with a triangular matrix is substitution, whoever does it.
        z = np.asarray(np.linalg.solve(R.T, (total[:n, n] / sizes)[order]), dtype=np.float64)
        values = np.zeros(n)
        positive = _solve_not_negative(R[free:, free:], z[free:]) if free < n else np.zeros(0)
        values[order[free:]] = positive
        values[order[:free]] = np.linalg.solve(R[:free, :free], z[:free] - R[:free, free:] @ positive)
        return values / sizes


def _right_squares(joints: Sequence[Array]) -> Array:
    """(n_joints,) squares of the right sides of equations [A | z]."""
    return np.array([float(rows[:, -1] @ rows[:, -1]) for rows in joints])


def _shares(sigma: Array, size: Array, counts: Array) -> Array:
    """Residual over torque of each joint; 1 for joints that hardly move or have no torque."""
    evaluated = (counts >= MIN_SAMPLES) & (size > _NO_TORQUE)
    return np.where(evaluated, np.maximum(sigma / size, _MIN_RESIDUAL_SHARE), 1.0)


def _solve_not_negative(R: Array, z: Array) -> Array:
    """The x >= 0 with the least |R x - z|, for a triangle R (n, n): that of least squares where it is not negative."""
    found = np.asarray(np.linalg.solve(R, z), dtype=np.float64)
    if (found >= 0.0).all():
        return found
    from scipy.optimize import nnls  # takes a quarter of a second to load

    return np.asarray(nnls(R, z)[0])
