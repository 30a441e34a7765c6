"""The answer of a joint to a step of voltage, and the two constants that a recorded one tells."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, record
from dynident.errors import InputError
from dynident.experiments.options import TAYLOR_TERMS, check_terms
from dynident.experiments.protocol import ExperimentError
from dynident.experiments.thresholds import STEP
from dynident.information.parameter_estimate import ParameterEstimate

FEWEST = 20  # samples after the onset
_NEAR = 0.5  # |A t| below which the series is used
_LEAST = 1e-6  # [rad or m] that counts as motion, however fine the encoder
_GRID, _FEW = 40, 50  # values of A from which a search starts, and samples that tell which
_FASTEST = 40.0  # largest A t of the search: beyond, the record shows a constant velocity only


@record
class StepResponse:
    r"""A fitted answer to a step.

    .. math:: \ddot\theta + A\dot\theta = U, \quad
        \theta(t) = \theta_0 + \frac{U}{A^2}\left(e^{-A s} + A s - 1\right), \quad s = t - t_0

    Attributes:
        A: Damping over inertia [1/s].
        U: Acceleration at the start [rad/s² or m/s²].
        covariance: (2, 2) of A and U.
        onset: t0, when it began to move, on the clock of the record [s].
        start: θ0, where it was before [rad or m].
        rms: Of what the fit leaves [rad or m].
        noise: Standard deviation of the position readings, from neighboring samples [rad or m].
        duration: From the onset to the end of the record [s].
        travel: How far it went [rad or m].
        terms: Number of terms of Taylor's series; None for the exact solution.
    """

    A: float
    U: float
    covariance: Array
    onset: float
    start: float
    rms: float
    noise: float
    duration: float
    travel: float
    terms: int | None = None

    def at(self, time: ArrayLike) -> Array:
        """Positions at times on the clock of the record."""
        s = np.maximum(np.asarray(time, dtype=np.float64) - self.onset, 0.0)
        return np.asarray(self.start + displacement(s, self.A, self.U, self.terms))


def displacement(s: Array, A: float, U: float, terms: int | None = None) -> Array:
    """How far a joint is after a time s, U s² phi(A s); with `terms`, Taylor's series cut there (Kim 1990, eq. 19)."""
    return np.asarray(U * s * s * _shape(A * s, terms)[0])


def _shape(x: Array, terms: int | None) -> tuple[Array, Array]:
    """phi(x) = (e^-x + x - 1) / x² and its derivative; with `terms`, of the series sum (-x)^k / (k + 2)!."""
    count = TAYLOR_TERMS[1] if terms is None else terms  # exact to rounding where the closed form would cancel
    phi, slope = np.zeros_like(x), np.zeros_like(x)
    for k in range(count - 1, -1, -1):
        slope = slope * -x - phi  # Horner's rule and its derivative
        phi = phi * -x + 1.0 / math.factorial(k + 2)
    far = np.abs(x) > _NEAR
    if terms is None and far.any():
        y = x[far]
        phi[far] = (np.expm1(-y) + y) / y**2
        slope[far] = -np.expm1(-y) / y**2 - 2.0 * (np.expm1(-y) + y) / y**3
    return phi, slope


def fit_response(
    time: ArrayLike,
    position: ArrayLike,
    step: float,
    *,
    lag: float = 0.0,
    terms: int | None = None,
    what: str = "step",
) -> StepResponse:
    """A and U from time and position alone.

    The onset of motion is found: only samples beyond it are fitted, with the moment and the position at which the
    motion began free, so that static friction and a slow current do not matter. Where that moment is, within its
    standard deviation, the one at which the voltage came, it is taken as known, which tells A and U four times better.

    Args:
        time: (n_samples,) [s].
        position: (n_samples,) of the driven coordinate [rad or m].
        step: When the voltage was applied [s]; earlier samples are at rest.
        lag: By how much the current is late, L/R [s].
        terms: None for the exact solution by nonlinear least squares; a number for Taylor's series with so many terms.
        what: Name of the record in messages.

    Raises:
        ExperimentError: When it does not move, or stops too soon.
    """
    t, theta = np.asarray(time, dtype=np.float64), np.asarray(position, dtype=np.float64)
    _check(t, theta, terms, what)
    rest = theta[t <= step + 1e-9]
    start = float(np.mean(rest)) if len(rest) else float(theta[0])
    first = first_moving(theta, t, step, what)
    if len(theta) - first < FEWEST:
        raise ExperimentError(
            f"{what}: only {len(theta) - first} samples after it began to move, {FEWEST} are needed; record longer or "
            "faster, or apply less voltage"
        )
    begin = float(t[first - 1] if first else t[0])
    t, theta = t[first:], theta[first:]
    noise = position_noise(theta)
    # Samples at rest on an encoder count repeat one another; noisy ones average out.
    weight = math.sqrt(len(rest)) if len(rest) > 1 and np.ptp(rest) > 0.0 else 1.0
    p, covariance = _exact(t, theta, start, weight, noise, begin)
    if abs(p[2] - step - lag) <= STEP.same_onset_std * math.sqrt(covariance[2, 2]):
        p, covariance = _exact(t, theta, start, weight, noise, begin, step + lag)
    A, U, onset, origin = (float(x) for x in p)
    if terms is not None:
        A, U = _fit_series(t - onset, theta - origin, terms)
        left = theta - origin - displacement(t - onset, A, U, terms)
        covariance = _covariance(_jacobian(t - onset, A, U, terms)[:, :2], left, noise, np.zeros(2))
    left = theta - origin - displacement(t - onset, A, U, terms)
    rms, travel = float(np.sqrt(np.mean(left**2))), float(theta[-1] - start)
    return StepResponse(A, U, covariance[:2, :2], onset, origin, rms, noise, float(t[-1] - onset), travel, terms)


def _check(t: Array, theta: Array, terms: int | None, what: str) -> None:
    if t.shape != theta.shape or t.ndim != 1 or not (np.isfinite(t).all() and np.isfinite(theta).all()):
        raise InputError(f"{what}: time and position must be finite numbers, one each per sample")
    if len(t) < FEWEST or not (np.diff(t) > 0.0).all():
        raise InputError(f"{what}: {len(t)} samples; expected {FEWEST} or more with times that rise")
    if terms is not None:
        check_terms(terms)


def first_moving(position: Array, time: Array, step: float, what: str) -> int:
    """Index of the sample from which a joint is in motion: beyond noise and encoder counts, for good.

    Raises:
        ExperimentError: When it does not move.
    """
    rest = position[time <= step + 1e-9]
    theta = position - (np.mean(rest) if len(rest) else position[0])
    jumps = np.abs(np.diff(theta))
    count = float(np.min(jumps[jumps > 0.0], initial=np.inf))
    travel = float(theta[-1])
    least = max(STEP.moving_std * (float(np.std(rest)) if len(rest) > 1 else 0.0), STEP.moving_counts * count, _LEAST)
    if abs(travel) <= 4.0 * least:
        raise ExperimentError(
            f"{what}: did not move (by {abs(travel):.2g} rad or m); static friction holds it, apply more voltage"
        )
    still = np.flatnonzero(theta * np.sign(travel) < max(least, STEP.onset_share * abs(travel)))
    return int(still[-1]) + 1 if len(still) else 0


def position_noise(theta: Array) -> float:
    """Standard deviation of white noise on a smooth curve, by fourth differences (squared coefficients sum to 70)."""
    return float(np.sqrt(np.mean(np.diff(theta, 4) ** 2) / 70.0))


def _exact(
    t: Array, theta: Array, start: float, weight: float, noise: float, begin: float, onset: float | None = None
) -> tuple[Array, Array]:
    """A, U, t0, θ0 by nonlinear least squares, and their covariance.

    Args:
        t: Times of the samples in motion.
        theta: Positions there.
        start: Position at rest before.
        weight: Of that position: it tells θ0 as `weight`² samples would.
        noise: Standard deviation of the readings.
        begin: Guess of the onset.
        onset: The onset where it is known.
    """
    from scipy.optimize import least_squares

    guess = _guess(t - (begin if onset is None else onset), theta - start)
    size = float(np.abs(theta - start).max())  # so that the solver sees numbers of order one
    free = np.array([True, True, onset is None, True])

    def whole(p: Array) -> Array:
        return p if onset is None else np.array([p[0], p[1], onset, p[2]])

    def left(p: Array) -> Array:
        A, U, t0, origin = whole(p)
        return np.append(theta - origin - displacement(t - t0, A, U), weight * (origin - start)) / size

    def jacobian(p: Array) -> Array:
        A, U, t0, _ = whole(p)
        return np.vstack([-_jacobian(t - t0, A, U, None), [0.0, 0.0, 0.0, weight]])[:, free] / size

    first = np.array([*guess, begin, start])[free]
    found = least_squares(left, first, jacobian, x_scale="jac", method="lm", xtol=1e-14, ftol=1e-14, gtol=1e-14)
    p = whole(found.x)
    J, rest = _jacobian(t - p[2], p[0], p[1], None)[:, free], size * found.fun[:-1]
    prior = np.array([0.0, 0.0, 0.0, weight / max(noise, 1e-12)])[free]
    covariance = np.zeros((4, 4))
    covariance[np.ix_(free, free)] = _covariance(J, rest, noise, prior)
    return p, covariance


def _guess(s: Array, far: Array) -> tuple[float, float]:
    """A and U from where to start: the best of a row of A, with the U that suits each."""
    every = max(1, len(s) // _FEW)
    s, far = s[::-every], far[::-every]  # from the end, which tells most
    rates = np.concatenate([[0.0], np.geomspace(1e-2, _FASTEST, _GRID)]) / s[0]
    units = [displacement(s, rate, 1.0) for rate in rates]
    fits = [float(unit @ far) / float(unit @ unit) for unit in units]
    costs = [float(np.sum((far - U * unit) ** 2)) for U, unit in zip(fits, units, strict=True)]
    best = int(np.argmin(costs))
    return float(rates[best]), fits[best]


def _fit_series(s: Array, far: Array, terms: int) -> tuple[float, float]:
    """A and U of the cut series: two terms are linear, each further one starts from the one before."""
    from scipy.optimize import least_squares

    X = np.stack([s**2 / 2.0, s**3 / 6.0], axis=1)
    size = np.linalg.norm(X, axis=0)
    U, product = np.linalg.lstsq(X / size, far, rcond=None)[0] / size
    p = np.array([-product / U, U])
    scale = float(np.abs(far).max())
    for count in range(3, terms + 1):

        def left(p: Array, count: int = count) -> Array:
            return np.asarray((far - displacement(s, p[0], p[1], count)) / scale)

        def jacobian(p: Array, count: int = count) -> Array:
            return -_jacobian(s, p[0], p[1], count)[:, :2] / scale

        p = least_squares(left, p, jacobian, x_scale="jac", method="lm", xtol=1e-12, ftol=1e-12).x
    return float(p[0]), float(p[1])


def _jacobian(s: Array, A: float, U: float, terms: int | None) -> Array:
    """Derivatives of the position by A, U, t0 and θ0, (n, 4)."""
    phi, slope = _shape(A * s, terms)
    velocity = U * s * (2.0 * phi + A * s * slope)
    return np.stack([U * s**3 * slope, s * s * phi, -velocity, np.ones_like(s)], axis=1)


def _covariance(J: Array, left: Array, noise: float, prior: Array) -> Array:
    """Of the fitted numbers: neighboring residuals that are alike count as fewer."""
    n = len(left)
    variance = float(left @ left) / max(n - J.shape[1], 1)
    size = np.maximum(np.linalg.norm(J, axis=0), 1e-300)
    normal = (J / size).T @ (J / size) / max(variance * variance_inflation(left), noise**2 * 1e-6, 1e-300)
    normal += np.diag((prior / size) ** 2)
    return np.asarray(np.linalg.pinv(normal) / np.outer(size, size))


def variance_inflation(left: Array) -> float:
    """By how much the variance of a mean exceeds that of independent residuals, at least 1."""
    centered = left - left.mean()
    power = float(centered @ centered)
    total = 1.0
    for lag in range(1, len(left) // 4):
        share = float(centered[lag:] @ centered[:-lag]) / power if power > 0.0 else 0.0
        if share <= 0.0:
            break
        total += 2.0 * share
    return total


# ----------------------------------------------------------------------------------------------------------------------
# Inertia, damping and Coulomb friction of a joint from its answers to several voltages.


_JOINT_UNITS = {
    "inertia": "kg·m² or kg",  # Me, of the driven coordinate
    "damping": "N·m·s/rad or N·s/m",  # B = Me A, viscous friction and back-EMF together
    "coulomb": "N·m or N",  # Tc
    "offset": "N·m or N",  # constant torque of one sign, determined by steps in both directions; 0 with one direction
}


def joint_estimate(values: Array, covariance: Array) -> ParameterEstimate:
    """The first numbers of a joint, the others locked: inertia, damping, coulomb, offset."""
    names = tuple(_JOINT_UNITS)[: len(values)]
    units = tuple(_JOINT_UNITS[name] for name in names)
    return ParameterEstimate(names, units, values, covariance, np.ones(len(values), dtype=bool))


def differing(voltages: Sequence[float]) -> bool:
    """Whether voltages differ enough in size to distinguish inertia from friction."""
    sizes = np.abs(voltages)
    return bool(np.ptp(sizes) > STEP.same_voltage_share * np.max(sizes))


def joint_numbers(
    gain: float, voltages: Sequence[float], responses: Sequence[StepResponse]
) -> tuple[ParameterEstimate, float]:
    r"""Combine the answers to two voltages or more (Kim 1990, eq. 15 and 16).

    .. math:: U_k = (K V_k - T_c\,\operatorname{sign}\dot\theta_k - T_0) / M_e, \quad A_k = B / M_e

    With two voltages Me = K (V1 - V2)/(U1 - U2) and Tc = K V1 - Me U1; with all A and U and their covariances it is the
    generalized least-squares solution, which knows that A is the same for all.

    Args:
        gain: K = Kt/Ra, torque per voltage [N·m/V].
        voltages: Of each answer [V].
        responses: The answers.

    Returns:
        Inertia, damping, coulomb and offset, and by how many standard deviations the answers differ from one inertia,
        damping and friction; 0 when nothing is left to compare.
    """
    from scipy.optimize import least_squares

    if len(voltages) != len(responses) or len(voltages) < 2 or not differing(voltages):
        raise InputError("inertia, damping and friction are three unknowns: they need steps of two different voltages")
    drive = gain * np.asarray(voltages, dtype=np.float64)
    U, A = (np.array([getattr(one, name) for one in responses]) for name in ("U", "A"))
    sign = np.sign(U)
    both = bool((sign > 0.0).any() and (sign < 0.0).any() and len(drive) > 2)
    columns = np.stack([U, sign, *((np.ones(len(U)),) if both else ())], axis=1)
    linear = np.linalg.lstsq(columns, drive, rcond=None)[0]
    Me, Tc = float(linear[0]), float(linear[1])
    p = np.array([Me, Me * float(np.mean(A)), Tc, *((float(linear[2]),) if both else ())])
    whiten = [np.linalg.inv(np.linalg.cholesky(_regular(one.covariance))) for one in responses]

    def residual(p: Array) -> Array:
        models = [[p[1] / p[0], (drive[k] - p[2] * sign[k] - (p[3] if both else 0.0)) / p[0]] for k in range(len(U))]
        return np.concatenate(
            [white @ (m - np.array([A[k], U[k]])) for k, (white, m) in enumerate(zip(whiten, models, strict=True))]
        )

    def slopes(p: Array) -> Array:
        found = []
        for k, white in enumerate(whiten):
            level = p[3] if both else 0.0
            slope = np.zeros((2, len(p)))
            slope[:, 0] = -p[1] / p[0] ** 2, -(drive[k] - p[2] * sign[k] - level) / p[0] ** 2
            slope[0, 1], slope[1, 2] = 1.0 / p[0], -sign[k] / p[0]
            slope[1, 3:] = -1.0 / p[0]
            found.append(white @ slope)
        return np.vstack(found)

    tolerances = dict.fromkeys(("xtol", "ftol", "gtol"), 1e-14)
    found = least_squares(residual, p, slopes, x_scale="jac", method="lm", **tolerances)
    spare = len(found.fun) - len(p)
    misfit = float(np.sqrt(found.fun @ found.fun / spare)) if spare else 0.0
    slope = slopes(found.x)
    scale = np.maximum(np.linalg.norm(slope, axis=0), 1e-300)
    own = np.linalg.pinv((slope / scale).T @ (slope / scale)) / np.outer(scale, scale) * max(1.0, misfit) ** 2
    values, covariance = np.zeros(4), np.zeros((4, 4))
    values[: len(p)], covariance[: len(p), : len(p)] = found.x, own
    return joint_estimate(values, covariance), misfit


def _regular(covariance: Array) -> Array:
    """A covariance whose inverse exists: data without any noise has none otherwise."""
    size = np.sqrt(np.maximum(np.diagonal(covariance), 1e-30))
    unit = covariance / np.outer(size, size)
    return np.asarray((unit + 1e-12 * np.eye(len(unit))) * np.outer(size, size))
