r"""Energy and power models: identification without accelerations (Gautier, Khalil, Restrepo 1995, eq. 10-12).

What the motors do between two instants is stored as energy or lost to friction,

.. math:: \int_{t_a}^{t_b} \Gamma^T \dot q_m\,dt = H(t_b) - H(t_a) + \int_{t_a}^{t_b} \Gamma_f^T \dot q_m\,dt

and both sides are linear in the parameters: one row for each interval. The power model is the same at every instant,
with the derivative moved to the filter: the row of H passes the derivative of a low-pass, all else the low-pass itself.
The rows are an `Information` with the channel "energy" or "power", for every estimator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, as_samples, record
from dynident.dynamics.evaluate import energy_regressor, joint_torque, regressor
from dynident.dynamics.terms import Term, TermsLike, all_columns, resolve_terms
from dynident.errors import InputError
from dynident.estimate.covariance import LagSums
from dynident.estimate.thresholds import THRESHOLDS
from dynident.identifiability.base_regressor import BaseRegressor
from dynident.information.information import Information
from dynident.information.row_source import accumulate_rows
from dynident.robot.model import Robot
from dynident.signals.fir import FilterStream
from dynident.signals.kernels import low_pass_kernel
from dynident.signals.observations import MotionBlock, Observations
from dynident.signals.rows import ROWS_PER_BAND, row_step

_BLOCK = 4096  # samples turned into energies at a time
FindIntervals = Callable[[MotionBlock], list[tuple[int, int]]]


@record
class EnergyRows:
    """Rows of the energy or power model.

    Attributes:
        information: The rows, over the robot's base parameters.
        intervals: (n_rows, 2) from where to where each row goes [s]; instants twice for the power model.
        rank: Base parameters' directions that they determine.
        condition: Condition with columns scaled to unit norm, over those directions.
        undetermined: Base parameters that they leave open.
        inflation: Rows that weigh as much as one independent row: intervals overlap, filtered instants are alike, and
            what the model leaves follows itself.
    """

    information: Information
    intervals: Array
    rank: int
    condition: float
    undetermined: tuple[str, ...]
    inflation: float

    def __repr__(self) -> str:
        """Rows, rank and condition."""
        n = self.information.coordinates.n
        return f"EnergyRows({len(self.intervals)} rows, rank {self.rank} of {n}, condition {self.condition:.3g})"


class EnergyBalance:
    """Stored energy and lost power of a robot as linear functions of its base parameters.

    Args:
        robot: The robot.
        terms: Terms of the model; default rigid, Ia, Fv, Fc, Fo.
    """

    def __init__(self, robot: Robot, terms: TermsLike = None) -> None:
        self.robot, self.terms = robot, resolve_terms(terms, robot)
        self.regressor = BaseRegressor.of(robot, self.terms)
        self.independent = list(self.regressor.coordinates.independent)
        described = all_columns(robot, self.terms)
        self.fixed = np.array([column.fixed or 0.0 for column in described])
        self.losing = tuple(term for term in self.terms if not _stores(term))
        names = {column.name for column in all_columns(robot, self.losing)}
        self.lost_columns = [j for j, column in enumerate(described) if column.name in names]
        self.coupling = robot.moving_coupling

    @property
    def n(self) -> int:
        """Number of base parameters."""
        return len(self.independent)

    def signals(self, q: Array, dq: Array, tau: Array) -> tuple[Array, Array]:
        """What rows are made of, (n_samples, n + 1) each with the right-hand side last.

        Args:
            q: Joint positions, (n_samples, n_joints).
            dq: Joint velocities.
            tau: Torque at the actuated coordinates.

        Returns:
            Energy [J] and power [W]: the change of the first plus the integral of the second is a row.
        """
        stored = energy_regressor(self.robot, q, dq, self.terms)
        lost = np.zeros_like(stored)
        if self.lost_columns:
            W = regressor(self.robot, q, dq, np.zeros_like(q), self.losing)
            lost[:, self.lost_columns] = np.einsum("njc,nj->nc", W, dq @ self.coupling.T)
        power = np.sum(joint_torque(self.robot, tau) * dq, axis=1) - lost @ self.fixed
        energy = np.column_stack([stored[:, self.independent], -stored @ self.fixed])
        return energy, np.column_stack([lost[:, self.independent], power])

    def exposure(self, dq: Array) -> Array:
        """(n_samples, n_joints) squared velocity of each motor: by it white noise of its torque enters the power."""
        return np.asarray((dq @ self.coupling.T) ** 2)

    def rows(self, made: Array, intervals: Array, channel: str, label: str, inflation: float) -> EnergyRows:
        """The rows as information, each weighted by its own noise.

        Args:
            made: (n_rows, n + 1 + n_joints): the row with its right-hand side, then the `exposure` it is made of.
            intervals: (n_rows, 2) [s].
            channel: Name of the channel.
            label: Where the data came from.
            inflation: Rows that are alike by the way they are made.

        Raises:
            InputError: When there are fewer rows than parameters.
        """
        rows, exposure = made[:, : self.n + 1], made[:, self.n + 1 :]
        if len(rows) < self.n:
            raise InputError(
                f"{label}: gives {len(rows)} {channel} rows for {self.n} parameters; use shorter intervals, more "
                "overlap, a longer log or fewer terms"
            )
        plain = self._information(rows, channel, label).solve()
        rows = rows * _weights(rows[:, -1] - rows[:, :-1] @ plain.values, exposure)[:, None]
        information = self._information(rows, channel, label)
        found = information.solve()
        left = LagSums(1)
        left.add(0, rows[:, -1] - rows[:, :-1] @ found.values)
        alike = max(inflation, float(left.correlation((channel,)).inflation[0]), 1.0)
        return EnergyRows(information, intervals, found.rank, found.condition, found.undetermined, alike)

    def _information(self, rows: Array, channel: str, label: str) -> Information:
        coordinates, definitions = self.regressor.coordinates, self.regressor.definitions
        return accumulate_rows(
            rows[:, None, :-1], rows[:, None, -1], coordinates, channels=[channel], definitions=definitions, label=label
        )


def _weights(residual: Array, exposure: Array) -> Array:
    r"""(n_rows,) weights of rows whose noise differs, with a mean square of one.

    Noise of the torque enters a row by the velocity, :math:`var_k = \sum_j v_j \int \dot q_j^2 dt`: rows of fast motion
    are noisier. The variances v >= 0 follow from the squared residuals (feasible generalized least squares).

    Args:
        residual: (n_rows,) of plain least squares.
        exposure: (n_rows, n_joints).
    """
    from scipy.optimize import nnls

    square = residual**2
    # A row at rest has no noise by this, but rounding; nothing weighs more than a hundred typical rows.
    mean = exposure.mean(axis=0)
    expected = np.full(len(square), square.mean())
    if square.any() and mean.any():
        moves = mean > 0.0
        share = nnls(exposure[:, moves] / mean[moves], square)[0]
        expected = exposure[:, moves] / mean[moves] @ share
    expected = np.maximum(expected, THRESHOLDS.min_energy_variance * expected.mean())
    if not expected.any():
        return np.ones(len(square))
    weights = 1.0 / np.sqrt(expected)
    return np.asarray(weights / np.sqrt(np.mean(weights**2)))


def _stores(term: Term) -> bool:
    """Whether a term has an energy; what has none is integrated."""
    return any(getattr(type(term), name) is not getattr(Term, name) for name in ("kinetic", "potential"))


def energy_rows(
    robot: Robot,
    time: ArrayLike,
    q: ArrayLike,
    dq: ArrayLike,
    tau: ArrayLike,
    terms: TermsLike = None,
    *,
    intervals: ArrayLike | None = None,
    length: float | None = None,
    overlap: float = 0.0,
    label: str = "data",
) -> EnergyRows:
    """Rows of the energy model from arrays.

    Args:
        robot: The robot.
        time: (n_samples,) regular stamps [s].
        q: Joint positions, (n_samples, n_joints).
        dq: Joint velocities; accelerations are not needed.
        tau: Torque at the actuated coordinates.
        terms: Terms of the model; default rigid, Ia, Fv, Fc, Fo.
        intervals: (n_rows, 2) from where to where each row goes [s]; the nearest samples are taken.
        length: Length of intervals [s], where none are given; default such that there are ten rows per parameter.
        overlap: Share of an interval that the next one has in common with it.
        label: Where the data came from.
    """
    balance = EnergyBalance(robot, terms)
    motion = _motion_of_arrays(robot, time, q, dq, tau)
    find = _interval_finder(balance.n, len(motion) / motion.rate, intervals, length, overlap)
    return _energy_rows_of(balance, _short_blocks([motion]), find, label)


def observed_energy(
    observations: Observations,
    terms: TermsLike = None,
    *,
    intervals: ArrayLike | None = None,
    length: float | None = None,
    overlap: float = 0.0,
) -> EnergyRows:
    """Rows of the energy model from a log, in bounded memory; see `energy_rows`."""
    balance = EnergyBalance(observations.robot, terms)
    duration = max(observations.survey.duration - 2.0 * observations.reach, 0.0)
    find = _interval_finder(balance.n, duration, intervals, length, overlap)
    return _energy_rows_of(balance, _short_blocks(observations.motion()), find, observations.log.label)


def power_rows(
    robot: Robot,
    time: ArrayLike,
    q: ArrayLike,
    dq: ArrayLike,
    tau: ArrayLike,
    terms: TermsLike = None,
    *,
    band: float,
    label: str = "data",
) -> EnergyRows:
    """Rows of the power model from arrays, low-passed at `band` [Hz]; for the other arguments see `energy_rows`."""
    motion = _motion_of_arrays(robot, time, q, dq, tau)
    return _power_rows_of(EnergyBalance(robot, terms), _short_blocks([motion]), band, label)


def observed_power(observations: Observations, terms: TermsLike = None) -> EnergyRows:
    """Rows of the power model from a log, low-passed at its band, in bounded memory."""
    balance = EnergyBalance(observations.robot, terms)
    blocks = _short_blocks(observations.motion())
    return _power_rows_of(balance, blocks, observations.band, observations.log.label, row_step(observations))


def _motion_of_arrays(robot: Robot, time: ArrayLike, q: ArrayLike, dq: ArrayLike, tau: ArrayLike) -> MotionBlock:
    """Checked arrays as one stretch of motion without accelerations."""
    stamps = np.asarray(time, dtype=np.float64)
    if stamps.ndim != 1 or len(stamps) < 2 or not np.isfinite(stamps).all():
        raise InputError("time must be one stamp per sample, at least two and all finite")
    steps = np.diff(stamps)
    if steps.min() <= 0.0 or steps.max() > 1.01 * steps.min():
        raise InputError("time must rise in regular steps; observe() makes a log regular")
    names = robot.joint_names
    positions, velocities, torques = (
        as_samples(x, what, names, len(stamps)) for x, what in ((q, "q"), (dq, "dq"), (tau, "tau"))
    )
    none = np.zeros_like(positions)
    return MotionBlock(
        positions,
        velocities,
        none,
        none,
        restart=True,
        tau=torques[None],
        inner=np.ones(len(stamps), dtype=bool),
        last=True,
        start=float(stamps[0]),
        first=0,
        rate=(len(stamps) - 1) / float(stamps[-1] - stamps[0]),
    )


def _short_blocks(motion: Iterable[MotionBlock]) -> Iterator[MotionBlock]:
    """Motion in blocks of which few are held at a time."""
    for block in motion:
        for first in range(0, len(block), _BLOCK):
            yield block.part(first, first + _BLOCK)


def _interval_finder(
    n: int, duration: float, intervals: ArrayLike | None, length: float | None, overlap: float
) -> FindIntervals:
    """What finds begin and end, as sample numbers of a stretch, of the intervals that begin or end in a block."""
    if not 0.0 <= overlap < 1.0:
        raise InputError(f"overlap is {overlap}; expected a share from 0 to below 1")
    if intervals is not None and length is not None:
        raise InputError("give intervals or their length, not both")
    if length is not None and not 0.0 < length < np.inf:
        raise InputError(f"length is {length}; expected a positive time [s]")
    given = None if intervals is None else np.asarray(intervals, dtype=np.float64)
    if given is not None and (given.ndim != 2 or given.shape[1] != 2 or not len(given)):
        raise InputError(f"intervals must have shape (n_rows, 2), begin and end [s]; got {given.shape}")
    if given is not None and not (np.diff(given, axis=1) > 0.0).all():
        raise InputError("an interval must end after it begins")
    seconds = length or duration / (THRESHOLDS.energy_rows_per_parameter * n) / (1.0 - overlap)

    def find(block: MotionBlock) -> list[tuple[int, int]]:
        first, last = block.first, block.first + len(block)
        if given is not None:
            places = np.round((given - block.start) * block.rate).astype(int)
            near = ((places >= first) & (places < last)).any(1)
            return [(int(begin), int(end)) for begin, end in places[near]]
        span = max(2, round(seconds * block.rate))
        step = max(1, round(span * (1.0 - overlap)))
        begins = np.arange(max(0, -(-(first - span) // step)) * step, last, step)
        near = ((begins >= first) & (begins < last)) | ((begins + span >= first) & (begins + span < last))
        return [(int(begin), int(begin) + span) for begin in begins[near]]

    return find


def _energy_rows_of(
    balance: EnergyBalance, blocks: Iterator[MotionBlock], find: FindIntervals, label: str
) -> EnergyRows:
    """One row for each interval that lies within a stretch; none begins or ends where filters lack measured samples."""
    rows: list[Array] = []
    intervals: list[tuple[float, float]] = []
    begun: dict[tuple[int, int], tuple[float, Array]] = {}
    before: tuple[Array, Array] | None = None  # power and integral at the last sample of the block before
    for block in blocks:
        if block.first == 0:
            begun, before = {}, None
        stored, lost = balance.signals(block.q, block.dq, block.tau[0])
        flow = np.column_stack([lost, balance.exposure(block.dq)])
        state = _integral(flow, block.rate, before)
        before = flow[-1], state[-1].copy()
        state[:, : stored.shape[1]] += stored
        time = block.time
        for key in find(block):
            here, there = key[0] - block.first, key[1] - block.first
            if 0 <= here < len(state) and block.inner[here]:
                begun[key] = float(time[here]), state[here]
            if 0 <= there < len(state) and block.inner[there] and key in begun:
                start, value = begun.pop(key)
                rows.append(state[there] - value)
                intervals.append((start, float(time[there])))
    if not rows:
        raise InputError(f"{label}: no interval lies within a stretch of usable samples; use shorter ones")
    spans, made = np.array(intervals), np.array(rows)
    return balance.rows(made, spans, "energy", label, _overlap(spans))


def _integral(power: Array, rate: float, before: tuple[Array, Array] | None) -> Array:
    """Trapezoidal integral up to each sample, continued from the part before, (n_samples, k)."""
    first, so_far = (power[0], np.zeros(power.shape[1])) if before is None else before
    after = np.vstack([power[:1] if before is None else first[None], power])
    steps = 0.5 * (after[1:] + after[:-1]) / rate
    if before is None:
        steps[0] = 0.0
    return np.asarray(so_far + np.cumsum(steps, axis=0))


def _overlap(spans: Array) -> float:
    """How many intervals lie over each other on average: their lengths together over the time they cover."""
    covered, until = 0.0, -np.inf
    for start, stop in spans[np.argsort(spans[:, 0])]:
        covered += max(0.0, stop - max(start, until))
        until = max(until, stop)
    return float(np.sum(spans[:, 1] - spans[:, 0]) / covered)


def _power_rows_of(
    balance: EnergyBalance, blocks: Iterator[MotionBlock], band: float, label: str, wanted: int | None = None
) -> EnergyRows:
    """Rows of the power model: derivative of the low-passed energy plus low-passed losses against low-passed power."""
    rows = [np.zeros((0, balance.n + 1 + len(balance.coupling)))]
    times = [np.zeros(0)]
    stream: FilterStream | None = None
    per_band = ROWS_PER_BAND
    for block in blocks:
        step = wanted or max(1, int(block.rate / (ROWS_PER_BAND * band)))
        per_band = block.rate / (step * band)
        if stream is None:
            derivative, low_pass = (low_pass_kernel(band, block.rate, order) for order in (1, 0))
            widths = (balance.n + 1, balance.n + 1 + block.dq.shape[1])
            stream = FilterStream([(widths[0], [derivative]), (widths[1], [low_pass])], block.rate, step)
        signals = np.hstack([*balance.signals(block.q, block.dq, block.tau[0]), balance.exposure(block.dq)])
        (stored, flow), inner, first = stream.push(np.ascontiguousarray(signals.T), block.last, block.inner)
        flow[0][: balance.n + 1] += stored[0]
        rows.append(flow[0].T[inner])
        times.append(block.start + (first + np.flatnonzero(inner)) * step / block.rate)
        stream = None if block.last else stream
    instants = np.concatenate(times)
    intervals = np.column_stack([instants, instants])
    return balance.rows(np.concatenate(rows), intervals, "power", label, max(1.0, 0.5 * per_band))
