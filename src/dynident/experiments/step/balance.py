"""Inertia, damping and friction of a joint from the torque balance along its steps, weight and held joints included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynident.checks import Array
from dynident.dynamics.evaluate import gravity_torque, mass_matrix, regressor
from dynident.dynamics.terms import all_columns, resolve_terms
from dynident.experiments.answer import ExperimentError
from dynident.experiments.step.poses import directions, feels_gravity, motor_inertia
from dynident.experiments.step.record import StepRecord, driven_positions
from dynident.experiments.step.response import FEWEST, StepResponse, alike, first_moving, position_noise
from dynident.experiments.step.torque import JointNumbers
from dynident.plant.drives import Motors
from dynident.robot.model import Robot

WEIGHT_STD = 0.2  # relative standard deviation of described masses, centers and inertias, unless told otherwise
_ROUNDED = 1.0 / np.sqrt(12.0)  # standard deviation of rounding, in counts
_TURN_SHARE = 0.02  # share of the travel by which a joint that turns round comes back
_FAINT = 1e-3  # of the noise, below which a direction of the weight changes no position
_LAST = 10  # part of the time before the step that counts as rest
_LATE = 2.0  # standard deviations of chi-square by which lost momentum must exceed none


@dataclass(frozen=True)
class Balance:
    """What the steps of one motor tell, the others held at one place.

    Attributes:
        numbers: Inertia, damping, Coulomb friction and offset.
        responses: The same as A and U of each step, with what is left of its positions.
        curves: (n_samples,) each: positions that the numbers give.
    """

    numbers: JointNumbers
    responses: tuple[StepResponse, ...]
    curves: tuple[Array, ...]


@dataclass(frozen=True)
class _Rows:
    """One record, integrated twice in time since the step; torque times time squared, (n_samples,) each.

    Attributes:
        begin: Index of the sample at which the step came.
        fitted: Indices of the samples in motion, one way.
        time: [s].
        s: Time since the step [s].
        drive: Torque of the motor, less what weight and the motion of held joints take as described.
        inertia: Column of Me: distance, weighted by how the inertia changes as held joints give way.
        distance: Column of B: the distance integrated once.
        sign: Of the motion.
        weight: (n_samples, n_parameters), change of the drive per standard deviation of each described parameter.
        held: (n_samples, n_motors), the same for the motion of held joints.
        noise: Standard deviation of the positions [rad or m].
        rest: Standard deviation of the position before the step.
        tilt: Standard deviation of a constant torque that rounded positions of held joints leave in the weight.
    """

    begin: int
    fitted: Array
    time: Array
    s: Array
    drive: Array
    inertia: Array
    distance: Array
    sign: float
    weight: Array
    held: Array
    noise: float
    rest: float
    tilt: float


def torque_balance(
    robot: Robot,
    motors: Motors,
    records: Sequence[StepRecord],
    *,
    values: str | None = None,
    weight_std: float = WEIGHT_STD,
    counts: Mapping[int, float] | None = None,
    what: Sequence[str] = (),
) -> Balance:
    r"""Numbers of a motor from all its steps at one place of the others, by linear least squares.

    .. math:: K u = M_e \ddot\theta + \sum_j M_{ij} \ddot q_j + B \dot\theta + T_c \operatorname{sign}\dot\theta
        + T_0 + g(q)

    Integrated twice in time, with measured positions and the voltage that was really held in each sample, only
    positions are left. What the description says of the weight g and of the coupling inertias :math:`M_{ij}` is a prior
    with a relative standard deviation: steps long enough, or of both signs, correct it, and where they cannot, the
    numbers are as uncertain as it is.

    Args:
        robot: The robot.
        motors: Its motors.
        records: Steps of one motor with two different voltages or more.
        values: What is known of the robot.
        weight_std: Relative standard deviation of that; 0 takes it as exact.
        counts: Resolution of the encoders by place in `robot.joint_names`, as far as it is known [rad or m].
        what: Names of the records in messages.
    """
    motor = records[0].motor
    own = motors.for_joints(robot.joint_names)
    gain = float(np.asarray(own.torque_constant)[motor] / np.asarray(own.resistance)[motor])
    lag = float(np.asarray(own.inductance)[motor] / np.asarray(own.resistance)[motor])
    names = what or [record.label for record in records]
    spread = _spread(robot, values, weight_std) if feels_gravity(robot, motor) else None
    rows = [
        _rows(robot, record, records[0].pose, gain, lag, values, spread, weight_std, counts or {}, name)
        for record, name in zip(records, names, strict=True)
    ]
    fit = _solve(rows)
    # A current that lags behind back-EMF drives on: it looks like less inertia.
    inertia = float(fit.values[0]) + lag * float(own.braking[motor])
    covariance = np.array(fit.covariance)
    covariance[0, 0] += _pose_variance(robot, records[0], values, counts or {})
    numbers = JointNumbers(inertia, float(fit.values[1]), float(fit.values[2]), float(fit.values[3]), covariance, fit.misfit)
    return Balance(numbers, *_shown(records, rows, fit, gain))


# --- one record -----------------------------------------------------------------------------------------------------


def _rows(
    robot: Robot,
    record: StepRecord,
    pose: Array,
    gain: float,
    lag: float,
    values: str | None,
    spread: Array | None,
    inertia_std: float,
    counts: Mapping[int, float],
    what: str,
) -> _Rows:
    motor, time, q = record.motor, record.time, record.joints(robot)
    first = first_moving(record.position, time, record.step, what)
    last, sign = _one_way(record.position, first, what)
    if last - first < FEWEST:
        raise ExperimentError(
            f"{what}: only {last - first} samples in motion one way, {FEWEST} are needed; record longer or faster, or "
            "apply another voltage"
        )
    begin = max(int(np.searchsorted(time, record.step + 1e-9)) - 1, 0)
    rest = _rest(record, begin)
    theta = record.position - np.mean(rest)
    s = np.maximum(time - time[begin], 0.0)
    drive = gain * _held_twice(time, record.held(robot, gain, values), begin, lag)
    drive -= _twice(time, gravity_torque(robot, q, values)[:, motor], begin)
    held = _held_joints(robot, q, motor, values)
    noise = max(position_noise(theta[first:last]), _ROUNDED * counts.get(motor, 0.0), 1e-9)
    return _Rows(
        begin,
        np.arange(first, last),
        time,
        s,
        drive - held.sum(axis=1),
        _ratio_path(robot, q, theta, motor, pose, values),
        _once(time, theta, begin),
        sign,
        np.zeros((len(time), 0)) if spread is None else _weight_columns(robot, time, q, motor, begin, spread),
        inertia_std * held,
        noise,
        # Readings that are rounded repeat one another; noisy ones average out.
        noise / np.sqrt(len(rest)) if noise > counts.get(motor, 0.0) else noise,
        _tilt(robot, record, values, counts),
    )


def _rest(record: StepRecord, begin: int) -> Array:
    """Positions just before the step, when what holds the joint has settled."""
    return record.position[max(begin + 1 - max((begin + 1) // _LAST, 5), 0) : begin + 1]


def _one_way(position: Array, first: int, what: str) -> tuple[int, float]:
    """Where a motion that began at `first` turns round or ends, and its sign."""
    moved = position - position[max(first - 1, 0)]
    sign = float(np.sign(moved[-1]))
    ahead = np.maximum.accumulate(sign * moved)
    back = np.flatnonzero(ahead - sign * moved > _TURN_SHARE * ahead[-1])
    back = back[back >= first]
    if not len(back):
        return len(position), sign
    return int(np.argmax((sign * moved)[: back[0] + 1])) + 1, sign


def _once(time: Array, signal: Array, begin: int) -> Array:
    """Integral of a smooth signal since the step, by a cubic spline; 0 before."""
    from scipy.interpolate import CubicSpline

    whole = CubicSpline(time[begin:], signal[begin:]).antiderivative()(time[begin:])
    return np.concatenate([np.zeros((begin, *signal.shape[1:])), whole])


def _twice(time: Array, signal: Array, begin: int) -> Array:
    """Integral of the integral of the same."""
    from scipy.interpolate import CubicSpline

    whole = CubicSpline(time[begin:], signal[begin:]).antiderivative(2)(time[begin:])
    return np.concatenate([np.zeros((begin, *signal.shape[1:])), whole])


def _held_twice(time: Array, voltage: Array, begin: int, lag: float) -> Array:
    """Integral of the integral of a voltage that is held in each sample, as a current with a time constant follows it."""
    h, u = np.diff(time[begin:]), voltage[begin:-1]
    once = np.concatenate([[0.0], np.cumsum(u * h)])
    twice = np.concatenate([[0.0], np.cumsum(once[:-1] * h + 0.5 * u * h**2)])
    if lag > 0.0:
        current = np.empty(len(u) + 1)
        current[0] = voltage[begin - 1] if begin else 0.0
        for k, (level, part) in enumerate(zip(u, np.exp(-h / lag), strict=True)):
            current[k + 1] = level + (current[k] - level) * part
        twice -= lag * (once - lag * (current - current[0]) - current[0] * (time[begin:] - time[begin]))
    return np.concatenate([np.zeros(begin), twice])


def _ratio_path(robot: Robot, q: Array, theta: Array, motor: int, pose: Array, values: str | None) -> Array:
    """Distance of the driven coordinate, each part weighted by the inertia there over that at the pose."""
    if len(robot.moving) == 1:
        return theta
    ratio = motor_inertia(robot, q, motor, values) / motor_inertia(robot, pose, motor, values)[0]
    path = np.cumsum(0.5 * (ratio[1:] + ratio[:-1]) * np.diff(theta))
    return np.concatenate([theta[:1], theta[0] + path])


def _held_joints(robot: Robot, q: Array, motor: int, values: str | None) -> Array:
    """What the motion of each held motor takes from the drive, integrated twice, (n_samples, n_motors)."""
    T, places = directions(robot), driven_positions(robot, q)
    row = np.einsum("i,kij,mj->km", T[motor], mass_matrix(robot, q, values), T)
    row[:, motor] = 0.0
    parts = 0.5 * (row[1:] + row[:-1]) * np.diff(places, axis=0)
    return np.concatenate([np.zeros((1, parts.shape[1])), np.cumsum(parts, axis=0)])


def _spread(robot: Robot, values: str | None, share: float) -> Array:
    """Standard deviation of each rigid parameter that makes weight: of a link's mass, and of its first moments alike."""
    known = robot.value_set(values)
    std = []
    for column in all_columns(robot, resolve_terms("rigid")):
        number = column.name.removeprefix(column.symbol)
        moments = [known.get(f"{symbol}{number}", 0.0) for symbol in ("MX", "MY", "MZ")]
        size = {"M": abs(known.get(column.name, 0.0))}
        size |= dict.fromkeys(("MX", "MY", "MZ"), float(np.linalg.norm(moments)))
        std.append(share * size.get(column.symbol, 0.0) if column.fixed is None else 0.0)
    return np.array(std)


def _weight_columns(robot: Robot, time: Array, q: Array, motor: int, begin: int, spread: Array) -> Array:
    still = np.zeros_like(q)
    W = regressor(robot, q, still, still, "rigid")[:, motor][:, spread > 0.0] * spread[spread > 0.0]
    return _twice(time, W, begin)


def _tilt(robot: Robot, record: StepRecord, values: str | None, counts: Mapping[int, float]) -> float:
    """Standard deviation of the weight that follows from rounded positions of the held joints."""
    steps = np.array([counts.get(j, 0.0) for j in range(len(robot.moving))])
    steps[record.motor] = 0.0  # it moves: what its encoder rounds averages out
    shifted = record.pose + np.diag(steps)
    change = gravity_torque(robot, shifted, values)[:, record.motor]
    change = change - gravity_torque(robot, record.pose[None], values)[0, record.motor]
    return float(_ROUNDED * np.linalg.norm(change))


def _pose_variance(robot: Robot, record: StepRecord, values: str | None, counts: Mapping[int, float]) -> float:
    """Of the inertia, by rounded positions of the held joints."""
    steps = np.array([counts.get(j, 0.0) for j in range(len(robot.moving))])
    change = motor_inertia(robot, record.pose + np.diag(steps), record.motor, values)
    change = change - motor_inertia(robot, record.pose, record.motor, values)[0]
    return float(_ROUNDED**2 * change @ change)


# --- all records of a configuration ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Fit:
    """Estimates of a configuration.

    Attributes:
        values: (4,) Me, B, Tc, T0.
        covariance: (4, 4).
        left: (n_samples,) of each record: positions that the numbers give, minus the measured ones.
        lost: (n_records,) momentum lost at the start of each step [N·m·s].
        lost_covariance: (n_records, n_records).
        misfit: Residual over the noise of the positions.
    """

    values: Array
    covariance: Array
    left: tuple[Array, ...]
    lost: Array
    lost_covariance: Array
    misfit: float


def _solve(rows: Sequence[_Rows]) -> _Fit:
    """Least squares with priors; momentum that static friction takes at the start is free only where it is seen."""
    both = len({one.sign for one in rows}) > 1 and len(rows) > 2
    late = _estimate(rows, both=both, late=True)
    excess = float(late.lost @ np.linalg.pinv(late.lost_covariance) @ late.lost)
    seen = excess > len(rows) + _LATE * np.sqrt(2.0 * len(rows))
    return late if seen else _estimate(rows, both=both, late=False)


def _columns(rows: Sequence[_Rows], rough: Array, *, both: bool, late: bool) -> tuple[list[Array], Array, int]:
    """Columns of each record (n_samples, n), which of them have a prior of one around zero, and how many are shared.

    Shared: Me, B, Tc, T0 where steps of both signs tell it, weight, held joints. Of each record: start, a constant
    torque, and with `late` the momentum lost. `rough` are Me and B, for the size of noise and the start.
    """
    stacked = np.vstack([one.weight[one.fitted] for one in rows])
    noise = np.mean([one.noise for one in rows]) * rough[0]
    _, sizes, V = np.linalg.svd(stacked, full_matrices=False)
    V = V[sizes > _FAINT * noise].T
    n, found = len(rows), []
    for k, one in enumerate(rows):
        half = 0.5 * one.s**2
        shared = [one.inertia, one.distance, one.sign * half, *([half] if both else [])]
        alone = np.zeros((len(one.s), n, 2 + late))
        start = one.rest * (rough[0] + rough[1] * one.s)  # where it rested is in the distance and in its integral
        alone[:, k] = np.stack([start, one.tilt * half, one.s][: 2 + late], axis=1)
        by_kind = alone.transpose(0, 2, 1).reshape(len(one.s), -1)
        found.append(np.column_stack([*shared, one.weight @ V, one.held, by_kind]))
    flat = 3 + both
    prior = np.ones(found[0].shape[1])
    prior[:flat] = 0.0
    if late:
        prior[-n:] = 0.0
    return found, prior, flat


def _rough(rows: Sequence[_Rows]) -> Array:
    """Me and B with nothing else but Coulomb friction, (2,)."""
    X = np.vstack([np.stack([one.inertia, one.distance, one.sign * one.s**2], axis=1)[one.fitted] for one in rows])
    size = np.linalg.norm(X, axis=0)
    y = np.concatenate([one.drive[one.fitted] for one in rows])
    return np.asarray(np.abs(np.linalg.lstsq(X / size, y, rcond=None)[0] / size)[:2])


def _estimate(rows: Sequence[_Rows], *, both: bool, late: bool) -> _Fit:
    noise = np.concatenate([np.full(len(one.fitted), one.noise) for one in rows])
    rough, widened = _rough(rows), 1.0
    for _ in range(4):  # the noise in torque follows from the inertia, and its size from what is left
        columns, prior, flat = _columns(rows, rough, both=both, late=late)
        rate = float(rough[1] / rough[0])
        columns = [_whitened(own, one, rate) for own, one in zip(columns, rows, strict=True)]
        drives = [_whitened(one.drive, one, rate) for one in rows]
        X = np.vstack([own[one.fitted] for own, one in zip(columns, rows, strict=True)])
        y = np.concatenate([drive[one.fitted] for drive, one in zip(drives, rows, strict=True)])
        weight = 1.0 / (rough[0] * noise * widened)
        A = np.vstack([X * weight[:, None], np.diag(prior)])
        size = np.linalg.norm(A, axis=0)
        left, sizes, right = np.linalg.svd(A / size, full_matrices=False)
        G = right.T / np.maximum(sizes, 1e-15 * sizes[0])
        p = G @ (left[: len(y)].T @ (y * weight)) / size
        rough = np.maximum(np.abs(p[:2]), 1e-12)
        rest = (X @ p - y) / (rough[0] * noise)
        parts = np.split(rest, np.cumsum([len(one.fitted) for one in rows])[:-1])
        misfit = float(np.sqrt(rest @ rest / max(len(rest) - len(p), 1)))
        widened = max(1.0, misfit) * np.sqrt(np.mean([alike(part) for part in parts]))
    covariance = G @ G.T / np.outer(size, size)
    values, own = np.zeros(4), np.zeros((4, 4))
    values[:flat], own[:flat, :flat] = p[:flat], covariance[:flat, :flat]
    n = len(rows) if late else 0
    lost, lost_covariance = (p[-n:], covariance[-n:, -n:]) if n else (np.zeros(len(rows)), np.eye(len(rows)))
    residuals = tuple((own @ p - drive) / p[0] for own, drive in zip(columns, drives, strict=True))
    return _Fit(values, own, residuals, lost, lost_covariance, misfit)


def _whitened(x: Array, one: _Rows, rate: float) -> Array:
    r"""Integrals since the step, (n_samples, ..), without what damping makes of the noise.

    An error e of the position is :math:`M_e (e + A \int e)` in the balance, with A = B/Me; the inverse of that operator,
    a high-pass filter, is applied to both sides, so that Me e is left.
    """
    from scipy.signal import lfilter

    half = 0.5 * max(rate, 0.0) * float(np.mean(np.diff(one.time)))
    start = x[one.begin]
    filtered = lfilter([1.0 / (1.0 + half), -1.0 / (1.0 + half)], [1.0, -(1.0 - half) / (1.0 + half)], x[one.begin :] - start, axis=0)
    decay = ((1.0 - half) / (1.0 + half)) ** np.arange(len(x) - one.begin)
    return np.concatenate([x[: one.begin] * 0.0, filtered + np.multiply.outer(decay, start)])


def _shown(
    records: Sequence[StepRecord], rows: Sequence[_Rows], fit: _Fit, gain: float
) -> tuple[tuple[StepResponse, ...], tuple[Array, ...]]:
    """A and U of each step as the numbers say, and the positions that they give."""
    Me, B, Tc, T0 = fit.values
    responses, curves = [], []
    for record, one, left, lost in zip(records, rows, fit.left, fit.lost, strict=True):
        U = (gain * record.voltage - Tc * one.sign - T0) / Me
        slopes = np.array([[-B / Me**2, 1.0 / Me, 0.0, 0.0], [-U / Me, 0.0, -one.sign / Me, -1.0 / Me]])
        start, last = float(np.mean(_rest(record, one.begin))), one.fitted[-1]
        responses.append(
            StepResponse(
                float(B / Me),
                float(U),
                slopes @ fit.covariance @ slopes.T,
                float(record.step + lost / (Me * U)),
                start,
                float(np.sqrt(np.mean(left[one.fitted] ** 2))),
                one.noise,
                float(record.time[last] - record.step),
                float(record.position[last] - start),
            )
        )
        curves.append(np.where(np.arange(len(left)) > one.begin, record.position - left, start))
    return tuple(responses), tuple(curves)
