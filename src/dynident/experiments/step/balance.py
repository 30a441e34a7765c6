"""Inertia, damping and friction of a joint from the torque balance along its steps, weight and held joints included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.experiments.step.integrals import Description, StepIntegrals, step_integrals
from dynident.experiments.step.records import StepRecord
from dynident.experiments.step.response import StepResponse, joint_estimate, variance_inflation
from dynident.experiments.step.result import Configuration
from dynident.experiments.thresholds import STEP

_WAVES = 16  # cosines that make up slow motion
_MEMORY = 0.25  # of a record, over which slow motion is alike
_ROUNDS = 5  # of weights that follow from what the round before found
_SMALLEST = 1e-15  # share of the largest singular value that is distinguished from zero


def torque_balance(known: Description, records: Sequence[StepRecord], what: Sequence[str] = ()) -> Configuration:
    r"""Numbers of a motor from all its steps at one place of the others, by linear least squares.

    .. math:: K u = M_e \ddot\theta + \sum_j M_{ij} \ddot q_j + B \dot\theta + T_c \operatorname{sign}\dot\theta
        + T_0 + g(q)

    Integrated twice in time, with measured positions and the voltage that was really held in each sample, only
    positions are left. What the description says of the weight g and of the coupling inertias :math:`M_{ij}` is a prior
    with a relative standard deviation: steps long enough, or of both signs, correct it, and where they cannot, the
    numbers are as uncertain as it is.

    Args:
        known: What is known of the machine before.
        records: Steps of one motor with two different voltages or more.
        what: Names of the records in messages.
    """
    names = what or [record.label for record in records]
    rows = [step_integrals(known, record, name) for record, name in zip(records, names, strict=True)]
    fit = _solve(rows)
    own = known.motors.for_joints(known.robot.joint_names)
    # A current that lags behind back-EMF drives on: it looks like less inertia.
    values, covariance = np.array(fit.values), np.array(fit.covariance)
    values[0] += known.lag * float(own.braking[known.motor])
    covariance[0, 0] += known.pose_variance()
    fitted = (tuple(records), *_responses_and_curves(records, rows, fit, known.gain))
    numbers = joint_estimate(values, covariance)
    return Configuration(known.motor, known.pose, numbers, *fitted, misfit=fit.misfit, described=fit.described)


@dataclass(frozen=True)
class _Fit:
    """Estimates of a configuration.

    Attributes:
        values: (4,) Me, B, Tc, T0.
        covariance: (4, 4).
        described: (4,) part of the standard deviations that comes from the description, the same at every pose.
        left: (n_samples,) of each record: positions that the numbers give, minus the measured ones.
        lost: (n_records,) momentum lost at the start of each step [N·m·s].
        lost_covariance: (n_records, n_records).
        misfit: Residual over the noise of the positions.
    """

    values: Array
    covariance: Array
    described: Array
    left: tuple[Array, ...]
    lost: Array
    lost_covariance: Array
    misfit: float


def _solve(rows: Sequence[StepIntegrals]) -> _Fit:
    """Least squares with priors; momentum that static friction takes at the start is free only where it is seen."""
    both = len({one.sign for one in rows}) > 1 and len(rows) > 2
    late = _estimate(rows, both=both, late=True)
    excess = float(late.lost @ np.linalg.pinv(late.lost_covariance) @ late.lost)
    seen = excess > len(rows) + STEP.lost_momentum_std * np.sqrt(2.0 * len(rows))
    return late if seen else _estimate(rows, both=both, late=False)


def _columns(
    rows: Sequence[StepIntegrals], rough: Array, stretch: float, *, both: bool, late: bool
) -> tuple[list[Array], Array, slice]:
    """Columns of each record (n_samples, n), which of them have a prior of one around zero, and where weight stands.

    Shared: Me, B, Tc, T0 where steps of both signs tell it, weight, held joints. Of each record: start, a constant
    torque, and with `late` the momentum lost. `rough` are Me and B, for the size of noise and the start; weight is
    `stretch` times as uncertain as described.
    """
    stacked = np.vstack([one.weight[one.fitted] for one in rows])
    noise = np.mean([one.noise for one in rows]) * rough[0]
    _, sizes, V = np.linalg.svd(stacked, full_matrices=False)
    V = stretch * V[sizes > STEP.faint_share * noise].T
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
    return found, prior, slice(flat, flat + V.shape[1])


def _rough(rows: Sequence[StepIntegrals]) -> Array:
    """Me and B with nothing else but Coulomb friction, (2,)."""
    X = np.vstack([np.stack([one.inertia, one.distance, one.sign * one.s**2], axis=1)[one.fitted] for one in rows])
    size = np.linalg.norm(X, axis=0)
    y = np.concatenate([one.drive[one.fitted] for one in rows])
    return np.asarray(np.abs(np.linalg.lstsq(X / size, y, rcond=None)[0] / size)[:2])


def _estimate(rows: Sequence[StepIntegrals], *, both: bool, late: bool) -> _Fit:
    """All columns by weighted least squares; noise, damping and prior of the weight follow from the round before."""
    noise = np.concatenate([np.full(len(one.fitted), one.noise) for one in rows])
    rough, widened, stretch = _rough(rows), 1.0, 1.0
    for _ in range(_ROUNDS):
        columns, prior, weights = _columns(rows, rough, stretch, both=both, late=late)
        rate = float(rough[1] / rough[0])
        columns = [_whiten(own, one, rate) for own, one in zip(columns, rows, strict=True)]
        drives = [_whiten(one.drive, one, rate) for one in rows]
        X = np.vstack([own[one.fitted] for own, one in zip(columns, rows, strict=True)])
        y = np.concatenate([drive[one.fitted] for drive, one in zip(drives, rows, strict=True)])
        weight = 1.0 / (rough[0] * noise * widened)
        gain = _gain(X * weight[:, None], prior)
        beta = gain[:, : len(y)] @ (y * weight)
        rough = np.maximum(np.abs(beta[:2]), 1e-12)
        left = (X @ beta - y) / (rough[0] * noise)
        misfit = float(np.sqrt(left @ left / max(len(left) - len(beta), 1)))
        # Neighboring residuals that are alike count as fewer.
        widened = max(1.0, misfit) * float(
            np.sqrt(np.mean([variance_inflation(part) for part in np.split(left, _ends(rows))]))
        )
        # Weight that is further off than described says itself how far.
        stretch *= max(1.0, float(np.sqrt(np.mean(beta[weights] ** 2)))) if weights.stop > weights.start else 1.0
    n, count = weights.start, len(rows)
    covariance = gain @ gain.T + _slow_covariance(rows, gain[:, : len(y)] * weight, rate)
    values, own, described = np.zeros(4), np.zeros((4, 4)), np.zeros(4)
    values[:n], own[:n, :n] = beta[:n], covariance[:n, :n]
    described[:n] = np.linalg.norm(gain[:n, len(y) :][:, weights], axis=1)
    lost = beta[-count:] if late else np.zeros(count)
    residuals = tuple((block @ beta - drive) / beta[0] for block, drive in zip(columns, drives, strict=True))
    return _Fit(values, own, described, residuals, lost, covariance[-count:, -count:], misfit)


def _slow_covariance(rows: Sequence[StepIntegrals], gain: Array, rate: float) -> Array:
    """Covariance of the estimates by slow motion of held joints within the counts of their encoders.

    Args:
        rows: The records.
        gain: (n, n_rows), change of the estimates per change of each fitted row.
        rate: B/Me.
    """
    waves = np.arange(_WAVES)
    power = 1.0 / (1.0 + (np.pi * _MEMORY * waves) ** 2)  # of a correlation that fades
    size = np.sqrt(np.where(waves > 0, 2.0, 1.0) * power / power.sum())
    found = np.zeros((len(gain), len(gain)))
    for one, own in zip(rows, np.split(gain, _ends(rows), axis=1), strict=True):
        motion = size * np.cos(np.pi * waves * one.s[:, None] / one.s[one.fitted[-1]])
        change = own @ _whiten(one.hidden[:, None] * motion, one, rate)[one.fitted]
        found += change @ change.T
    return found


def _ends(rows: Sequence[StepIntegrals]) -> Array:
    """Where the fitted rows of one record end and those of the next begin, (n_records - 1,)."""
    return np.cumsum([len(one.fitted) for one in rows])[:-1]


def _gain(X: Array, prior: Array) -> Array:
    """Estimates per unit of each row of X and of each prior, (n, n_rows + n): their squares sum to the covariance."""
    A = np.vstack([X, np.diag(prior)])
    size = np.linalg.norm(A, axis=0)
    left, sizes, right = np.linalg.svd(A / size, full_matrices=False)
    return np.asarray((right.T / np.maximum(sizes, _SMALLEST * sizes[0])) @ left.T / size[:, None])


def _whiten(x: Array, one: StepIntegrals, rate: float) -> Array:
    r"""Integrals since the step, (n_samples, ..), without what damping makes of the noise.

    An error e of the position is :math:`M_e (e + A \int e)` in the balance, with A = B/Me; the inverse of that
    operator, a high-pass filter, is applied to both sides, so that Me e is left.
    """
    from scipy.signal import lfilter

    half = 0.5 * max(rate, 0.0) * float(np.mean(np.diff(one.time)))
    start = x[one.begin]
    filtered = lfilter(
        [1.0 / (1.0 + half), -1.0 / (1.0 + half)], [1.0, -(1.0 - half) / (1.0 + half)], x[one.begin :] - start, axis=0
    )
    decay = ((1.0 - half) / (1.0 + half)) ** np.arange(len(x) - one.begin)
    return np.concatenate([x[: one.begin] * 0.0, filtered + np.multiply.outer(decay, start)])


def _responses_and_curves(
    records: Sequence[StepRecord], rows: Sequence[StepIntegrals], fit: _Fit, gain: float
) -> tuple[tuple[StepResponse, ...], tuple[Array, ...]]:
    """A and U of each step as the numbers say, and the positions that they give."""
    Me, B, Tc, T0 = fit.values
    responses, curves = [], []
    for record, one, left, lost in zip(records, rows, fit.left, fit.lost, strict=True):
        U = (gain * record.voltage - Tc * one.sign - T0) / Me
        duration = float(record.time[one.fitted[-1]] - record.step)
        delay = float(np.clip(lost / (Me * U), -duration, duration)) if U else 0.0
        slopes = np.array([[-B / Me**2, 1.0 / Me, 0.0, 0.0], [-U / Me, 0.0, -one.sign / Me, -1.0 / Me]])
        responses.append(
            StepResponse(
                float(B / Me),
                float(U),
                slopes @ fit.covariance @ slopes.T,
                record.step + delay,
                one.start,
                float(np.sqrt(np.mean(left[one.fitted] ** 2))),
                one.noise,
                duration,
                float(record.position[one.fitted[-1]] - one.start),
            )
        )
        curves.append(np.where(np.arange(len(left)) > one.begin, record.position - left, one.start))
    return tuple(responses), tuple(curves)
