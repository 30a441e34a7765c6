"""Natural modes from sampled positions: counted periods as in the paper, and a fit to all joints at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array, on_one_thread, record
from dynident.experiments.thresholds import OSCILLATION

ComplexArray = NDArray[np.complex128]
_SHORT = 240  # samples of the first look, whose cost grows with the third power
_LONG = 1500  # samples of the fit


@record
class Modes:
    r"""Damped sinusoids that all joints share, ``q(t) = mean + sum of e^{s t}``.

    Attributes:
        square: (n_modes,) rising: \|s\|², the squared natural frequency [1/s²]; viscous friction does not change
            the product of all of them.
        square_std: (n_modes,) their standard deviations.
        decay: (n_modes,) real part of s [1/s]; negative for a swing that dies away.
        size: (n_modes, n_joints) amplitude at the start [rad or m].
        shape: (n_modes, n_joints) complex amplitudes at the start: a joint moves by the real part of shape e^{s t}.
        mean: (n_joints,) the position that the joints swing about.
        mean_std: (n_joints,) its standard deviations.
        noise: (n_joints,) root mean square of what the modes leave of single samples [rad or m].
        covariance: Of all numbers of the fit: decay and frequency of each mode; then for each joint its mean, and the
            real and the negative imaginary part of its shape in each mode.
        log_product: Logarithm of the product of the squares.
        log_product_std: Its standard deviation.
        residual: Root mean square of what the modes leave [rad or m].
    """

    square: Array
    square_std: Array
    decay: Array
    size: Array
    mean: Array
    mean_std: Array
    shape: ComplexArray
    noise: Array
    covariance: Array
    log_product: float
    log_product_std: float
    residual: float

    @property
    def poles(self) -> ComplexArray:
        """s of each mode, (n_modes,) [1/s]."""
        return np.asarray(self.decay + 1j * np.sqrt(self.square - self.decay**2))

    @property
    def known(self) -> bool:
        """Whether every mode stands out of what the modes leave, and its frequency is known."""
        strongest = self.size.max(axis=1)
        return bool(
            (strongest > OSCILLATION.mode_ratio * self.residual).all() and (self.square_std < 0.05 * self.square).all()
        )

    @property
    def clear(self) -> bool:
        """Whether every mode is known, and strong enough beside the others in some joint."""
        strongest = self.size.max(axis=1)
        return bool(self.known and (strongest > OSCILLATION.clear_share * strongest.max()).all())


def crossings(time: Array, x: Array, level: float = 0.0) -> Array:
    """Times at which a signal goes through a level, on straight lines between samples [s]."""
    above = x > level
    k = np.flatnonzero(above[1:] != above[:-1])
    return np.asarray(time[k] + (level - x[k]) / (x[k + 1] - x[k]) * (time[k + 1] - time[k]))


def counted_periods(time: Array, x: Array, level: float = 0.0) -> float:
    """Periods in the whole record from the first and last crossing of the level; 0 with less than two crossings."""
    found = crossings(time, x, level)
    if len(found) < 2:
        return 0.0
    return float((len(found) - 1) / 2.0 * (time[-1] - time[0]) / (found[-1] - found[0]))


@on_one_thread
def fit_modes(time: Array, q: Array, count: int, fastest: float, slowest: float = 0.0) -> Modes | None:
    """The natural modes of a record.

    The poles come from the shift invariance of the record's Hankel matrix, all joints stacked (ESPRIT), and are then
    refined by least squares on the positions, where amplitudes and mean are solved for inside.

    Args:
        time: (n_samples,) evenly spaced [s].
        q: (n_samples, n_joints) [rad or m].
        count: Number of modes.
        fastest: A frequency that none of them exceeds [rad/s].
        slowest: A frequency that all of them exceed [rad/s]: slower poles are a drift.

    Returns:
        The modes, or None where the record does not swing in as many.
    """
    step = float(time[-1] - time[0]) / (len(time) - 1)
    widest = max(1, int(np.pi / (2.0 * max(fastest, 1e-3) * step)))
    start = _poles(*_block_means(time, q, min(widest, max(1, len(time) // _SHORT))), count, slowest)
    if start is None:
        return None
    stamps, x = _block_means(time, q, min(widest, max(1, len(time) // _LONG)))
    found = _refine(stamps, x, start)
    if found is None or len(stamps) == len(time):
        return found
    basis = _basis(time - time[0], np.stack([found.decay, found.poles.imag], axis=1))
    rest = q - basis @ np.linalg.lstsq(basis, q, rcond=None)[0]
    return replace(found, noise=rest.std(axis=0))


def _block_means(time: Array, q: Array, width: int) -> tuple[Array, Array]:
    """Means of neighbors: sinusoids stay sinusoids of the same poles, while noise and rounding average out."""
    whole = len(time) // width * width
    return (
        np.asarray(time[:whole].reshape(-1, width).mean(axis=1)),
        np.asarray(q[:whole].reshape(-1, width, q.shape[1]).mean(axis=1)),
    )


def _poles(time: Array, x: Array, count: int, slowest: float) -> Array | None:
    """(count, 2) decay and frequency of each mode, or None."""
    rows = min(len(time) // 2, 2 * _SHORT)
    order = 2 * count + (3 if slowest else 1)  # the mean is a pole at one, and a drift may take two
    if rows <= order:
        return None
    scale = np.ptp(x, axis=0)
    if not scale.any():
        return None
    scaled = (x - x.mean(axis=0)) / max(float(scale.max()), 1e-300)
    blocks = [np.lib.stride_tricks.sliding_window_view(column, rows) for column in scaled.T]
    U = np.linalg.svd(np.concatenate(blocks, axis=0).T, full_matrices=False)[0][:, :order]
    z = np.linalg.eigvals(np.linalg.lstsq(U[:-1], U[1:], rcond=None)[0])
    s = np.log(z[np.abs(z) > 1e-6].astype(np.complex128)) / float(time[1] - time[0])
    swinging = s[s.imag > max(slowest, OSCILLATION.turn_share * 2.0 * np.pi / float(time[-1] - time[0]))]
    if len(swinging) < count:
        return None
    weight = np.abs(_amplitudes(time, scaled, np.stack([swinging.real, swinging.imag], axis=1))).max(axis=1)
    best = swinging[np.argsort(-weight)[:count]]
    return np.stack([best.real, best.imag], axis=1)


def _amplitudes(time: Array, x: Array, poles: Array) -> Array:
    """(n_modes, n_joints) amplitudes at the start of given poles."""
    values = np.linalg.lstsq(_basis(time - time[0], poles), x, rcond=None)[0][1:]
    return np.asarray(np.hypot(values[0::2], values[1::2]))


def _basis(time: Array, poles: Array) -> Array:
    """(n_samples, 1 + 2 n_modes): one, and a damped cosine and sine for each mode."""
    parts = [np.ones_like(time)]
    for decay, frequency in poles:
        hull = np.exp(np.clip(decay * time, -50.0, 50.0))
        parts += [hull * np.cos(frequency * time), hull * np.sin(frequency * time)]
    return np.stack(parts, axis=1)


def _refine(time: Array, x: Array, start: Array) -> Modes | None:
    from scipy.optimize import least_squares

    t = time - time[0]
    size = float(np.ptp(x, axis=0).max())
    scaled = x / size
    scale = np.stack([np.full(len(start), 1.0 / t[-1]), np.full(len(start), 1.0 / t[-1])], axis=1)

    def rest(steps: Array) -> Array:
        basis = _basis(t, start + scale * steps.reshape(-1, 2))
        values = np.linalg.lstsq(basis, scaled, rcond=None)[0]
        return np.asarray((scaled - basis @ values).ravel())

    found = least_squares(rest, np.zeros(start.size), method="lm", xtol=1e-14, ftol=1e-14, max_nfev=60 * start.size)
    poles = start + scale * found.x.reshape(-1, 2)
    poles = poles[np.argsort((poles**2).sum(axis=1))]
    # A decay, or less of a turn than could be determined.
    if np.abs(poles[:, 1]).min() < OSCILLATION.turn_share * 2.0 * np.pi / t[-1]:
        return None
    return _record(t, x, poles)


def _record(t: Array, x: Array, poles: Array) -> Modes | None:
    """The modes of given poles, with the covariance of a least-squares fit whose joints have noise of their own."""
    count, joints = len(poles), x.shape[1]
    basis = _basis(t, poles)
    Q, R = np.linalg.qr(basis)
    if not np.abs(np.diag(R)).min() > 1e-12 * np.abs(R).max():
        return None
    values = np.linalg.solve(R, Q.T @ x)  # (1 + 2 n_modes, n_joints)
    rest = x - basis @ values
    noise = np.sqrt((rest**2).sum(axis=0) / max(1.0, len(t) - len(values) - 2.0 * count / joints))
    slopes = [_by_poles(t, basis, own) for own in values.T]  # (n_samples, 2 n_modes) each
    bare = [slope - Q @ (Q.T @ slope) for slope in slopes]  # what amplitudes and mean do not make up for
    try:
        inverse = np.linalg.inv(sum(one.T @ one for one in bare))
    except np.linalg.LinAlgError:
        return None
    of_poles = inverse @ sum(own**2 * one.T @ one for own, one in zip(noise, bare, strict=True)) @ inverse
    follow = -np.concatenate([np.eye(2 * count), *(np.linalg.solve(R, Q.T @ slope) for slope in slopes)])
    follow[: 2 * count] *= -1.0
    covariance = follow @ of_poles @ follow.T
    open_ones = np.linalg.inv(R) @ np.linalg.inv(R).T
    for j, own in enumerate(noise):
        place = slice(2 * count + j * len(values), 2 * count + (j + 1) * len(values))
        covariance[place, place] += own**2 * open_ones
    square = (poles**2).sum(axis=1)
    by_pole = np.zeros((count, 2 * count))  # of the logarithm of each square
    for i, (decay, frequency) in enumerate(poles):
        by_pole[i, 2 * i : 2 * i + 2] = 2.0 * decay / square[i], 2.0 * frequency / square[i]
    of_logs = by_pole @ of_poles @ by_pole.T
    means = 2 * count + len(values) * np.arange(joints)
    return Modes(
        square=square,
        square_std=square * np.sqrt(np.diag(of_logs)),
        decay=poles[:, 0],
        size=np.hypot(values[1::2], values[2::2]),
        mean=values[0],
        mean_std=np.sqrt(np.diag(covariance)[means]),
        shape=np.asarray(values[1::2] - 1j * values[2::2]),
        noise=noise,
        covariance=covariance,
        log_product=float(np.log(square).sum()),
        log_product_std=float(np.sqrt(max(0.0, of_logs.sum()))),
        residual=float(np.sqrt(np.mean(noise**2))),
    )


def _by_poles(t: Array, basis: Array, values: Array) -> Array:
    """(n_samples, 2 n_modes) how the motion of one joint changes with the decay and the frequency of each mode."""
    columns = []
    for i in range(len(values) // 2):
        cosine, sine = basis[:, 1 + 2 * i], basis[:, 2 + 2 * i]
        c, d = values[1 + 2 * i], values[2 + 2 * i]
        columns += [t * (c * cosine + d * sine), t * (d * cosine - c * sine)]
    return np.stack(columns, axis=1)
