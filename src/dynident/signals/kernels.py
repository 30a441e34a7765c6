r"""Symmetric FIR kernels: low-pass and derivatives without phase, and the classical differentiators.

A kernel of derivative order d estimates the d-th derivative at its center from samples on both sides:
y_k = sum_j taps_j x_{k+j-center} / T^d, with T the sampling time. Moments are exact: a smoother reproduces constants
(DC gain one, to rounding), a first derivative ramps, a second derivative parabolas.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynident.arrays import Array, frozen
from dynident.display import brief
from dynident.errors import InputError

Shape = Literal["smooth", "butterworth"]
_WINDOW = 4  # power of the window 1 - u^2: smooth at its ends, so that derivatives of the kernel are good as well
_REACH = 1.8  # half-length of a low-pass kernel in periods of its cutoff
_FINE = 64  # places per sample at which a kernel is made and differentiated
_BUTTERWORTH_REACH = 4.0  # of a Butterworth kernel, which decays by 85 in each period of its cutoff
_WIDE = 0.35  # share of the rate up to which what has passed it is differentiated: the best of 0.2 to 0.45
_HELD_POINTS = 4  # of Gauss-Legendre over a sample that is held: enough for a low-pass that spans several
_FLAT = 2  # even moments that vanish: the response is one but for the sixth power of frequency


@brief
@dataclass(frozen=True)
class FirKernel:
    """An FIR kernel.

    Attributes:
        name: In words.
        taps: (length,), in the order of the samples.
        order: Derivative it gives.
        center: Index of the sample at which the result holds; the last one for a causal kernel without delay.
    """

    name: str
    taps: Array
    order: int
    center: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "taps", frozen(self.taps))

    @property
    def noise_gain(self) -> float:
        """Standard deviation of the result for white noise of standard deviation one, times T^order."""
        return float(np.linalg.norm(self.taps))

    def response(self, frequency: Array, rate: float) -> Array:
        """Complex response divided by the ideal derivative's (2 pi i f)^order; one means perfect."""
        w = 2.0 * np.pi * np.asarray(frequency, dtype=np.float64) / rate
        places = np.arange(len(self.taps)) - self.center
        actual = np.exp(1j * np.outer(w, places)) @ self.taps
        at_zero = places.astype(np.float64) ** self.order @ self.taps / math.factorial(self.order)
        return np.where(w == 0.0, at_zero, actual / np.where(w == 0.0, 1.0, (1j * w) ** self.order))

    def then(self, other: FirKernel) -> FirKernel:
        """Both kernels one after the other, as one."""
        name = f"{self.name}, {other.name}"
        taps = np.convolve(self.taps, other.taps)
        return FirKernel(name, taps, self.order + other.order, self.center + other.center)


def polynomial_kernel(half_width: int, degree: int, order: int, *, causal: bool = False, name: str = "") -> FirKernel:
    """Derivative of the least-squares polynomial through 2 half_width + 1 samples (Savitzky & Golay 1964).

    `half_width` 2, degree 2, order 1 is Khosla & Kanade's five-point differentiator; `half_width` 1 is the central
    difference.

    Args:
        half_width: Samples on each side.
        degree: Degree of the polynomial.
        order: Derivative.
        causal: Give the center's derivative half_width samples late, when all samples are known.
        name: In words.
    """
    if degree < order or 2 * half_width < degree:
        raise InputError(f"a polynomial of degree {degree} does not fit {2 * half_width + 1} samples and order {order}")
    places = np.arange(-half_width, half_width + 1, dtype=np.float64)
    vandermonde = np.vander(places, degree + 1, increasing=True)
    taps = np.linalg.pinv(vandermonde)[order] * float(np.prod(np.arange(1, order + 1)))
    center = 2 * half_width if causal else half_width
    return FirKernel(name or f"polynomial of degree {degree} over {2 * half_width + 1} samples", taps, order, center)


@functools.lru_cache(maxsize=256)
def low_pass_kernel(
    cutoff: float, rate: float, order: int = 0, *, shift: float = 0.0, shape: Shape = "smooth"
) -> FirKernel:
    """Low-pass, or derivative of the low-passed signal: a windowed sinc and its exact derivatives.

    Args:
        cutoff: Frequency of half amplitude [Hz].
        rate: Sampling rate [Hz].
        order: Derivative of the result.
        shift: Give the result as it will be this much later [s]; undoes a delay, between samples as well.
        shape: "smooth", which is flat up to near its cutoff, or "butterworth", one of second order forwards and
            backwards, without phase: :math:`1 / (1 + (f / f_c)^4)` where f is small beside the rate.
    """
    if not 0.0 < cutoff < rate / 2.0:
        raise InputError(f"a cutoff of {cutoff:g} Hz must lie between 0 and half the rate, {rate / 2.0:g} Hz")
    if shape == "butterworth":
        # What passes it is differentiated and shifted as all of the spectrum that the rate has.
        wide = low_pass_kernel(_WIDE * rate, rate, order, shift=shift)
        return dataclasses.replace(
            wide.then(_butterworth(cutoff, rate)), name=f"Butterworth at {cutoff:g} Hz" + "'" * order
        )
    # A rate is known but to rounding, which blocks of a log do otherwise than the whole: it must not make a tap.
    span = max(2, int(np.ceil(_REACH * rate / cutoff - 1e-9)))
    half = span + int(np.ceil(abs(shift) * rate - 1e-9))
    places = np.arange(-half, half + 1, dtype=np.float64) - shift * rate
    taps = _smooth_kernel(places, 2.0 * cutoff / rate, span + 1.0, order)
    name = f"low-pass at {cutoff:g} Hz" + ("'" * order)
    return FirKernel(name, _exact_moments(taps, places, order), order, half)


@functools.lru_cache(maxsize=64)
def _butterworth(cutoff: float, rate: float) -> FirKernel:
    """A Butterworth filter of second order run forwards and backwards, as taps: the correlation of its response."""
    K = np.tan(np.pi * cutoff / rate)
    scale = 1.0 / (1.0 + np.sqrt(2.0) * K + K**2)
    back, twice_back = 2.0 * (K**2 - 1.0) * scale, (1.0 - np.sqrt(2.0) * K + K**2) * scale
    half = max(2, int(np.ceil(_BUTTERWORTH_REACH * rate / cutoff)))
    response = np.zeros(half + 2)  # two samples of rest first
    given = np.concatenate([[0.0, 0.0, 1.0, 2.0, 1.0], np.zeros(half)]) * K**2 * scale
    for k in range(2, half + 2):
        response[k] = given[k] - back * response[k - 1] - twice_back * response[k - 2]
    taps = np.correlate(response, response, "full")
    return FirKernel(f"Butterworth at {cutoff:g} Hz", taps / taps.sum(), 0, len(response) - 1)


@functools.lru_cache(maxsize=256)
def held_low_pass_kernel(cutoff: float, rate: float, *, shift: float = 0.0, shape: Shape = "smooth") -> FirKernel:
    """Low-pass of a signal of which each sample holds until the next one, as commands do.

    Args:
        cutoff: Frequency of half amplitude [Hz].
        rate: Sampling rate [Hz].
        shift: Give the result as it will be this much later [s].
        shape: See `low_pass_kernel`.
    """
    places, weights = np.polynomial.legendre.leggauss(_HELD_POINTS)
    shifts = [shift - 0.5 * (1.0 + x) / rate for x in places.tolist()]
    parts = [low_pass_kernel(cutoff, rate, shift=own, shape=shape) for own in shifts]
    half = max(part.center for part in parts)
    taps = sum(0.5 * w * np.pad(part.taps, half - part.center) for w, part in zip(weights, parts, strict=True))
    return FirKernel(f"{parts[0].name}, samples held", np.asarray(taps), 0, half)


def _smooth_kernel(places: Array, band: float, span: float, order: int) -> Array:
    """The windowed sinc as a smooth function, or its derivative of the given order, at some places [samples]."""
    return np.interp(places, *_fine_kernel(band, span, order), left=0.0, right=0.0)


@functools.lru_cache(maxsize=16)  # a search for the delay asks for the same one at many places
def _fine_kernel(band: float, span: float, order: int) -> tuple[Array, Array]:
    """Places [samples] and values of that function, closely spaced."""
    if order:
        grid, smooth = _fine_kernel(band, span, order - 1)
        return grid, frozen(-np.gradient(smooth, 1.0 / _FINE))  # convolving with h' is correlating with -h'
    grid = np.arange(-(int(span) + 2) * _FINE, (int(span) + 2) * _FINE + 1) / _FINE
    smooth = np.sinc(band * grid) * np.clip(1.0 - (grid / span) ** 2, 0.0, None) ** _WINDOW
    # Torque passes the kernel as it is, but the sine of a position only as the sine of what has passed: where the
    # response is not one they differ. The window alone bends it by 0.4 % in the band, parameters by a tenth of that.
    powers = (grid / span) ** (2 * np.arange(_FLAT + 1)[:, None])
    smooth = smooth * (np.linalg.solve((powers * smooth) @ powers.T, np.eye(_FLAT + 1)[0]) @ powers)
    return frozen(grid), frozen(smooth)


def _exact_moments(taps: Array, places: Array, order: int) -> Array:
    """The nearest taps with exact moments: 0 below the order, order! at it, and no shift."""
    scaled = (places / len(places))[:, None] ** np.arange(max(order, 1) + 1)
    wanted = np.zeros(scaled.shape[1])
    wanted[order] = float(np.prod(np.arange(1, order + 1))) / float(len(places)) ** order
    taps = taps * (wanted[order] / (scaled[:, order] @ taps))  # first the overall scale, then the smallest correction
    return np.asarray(taps + scaled @ np.linalg.solve(scaled.T @ scaled, wanted - scaled.T @ taps))


FIVE_POINT = polynomial_kernel(2, 2, 1, name="five-point least squares")
FIVE_POINT_CAUSAL = polynomial_kernel(2, 2, 1, causal=True, name="five-point least squares, causal")
CENTRAL = polynomial_kernel(1, 2, 1, name="central difference")
NINE_POINT = polynomial_kernel(4, 4, 1, name="Savitzky-Golay, 9 samples, degree 4")


def differentiator_table(rate: float, band: float) -> list[dict[str, float | str]]:
    """Noise gain, amplitude and phase error of the differentiators at the edge of a band, at the data's rate.

    Args:
        rate: Sampling rate [Hz].
        band: Frequency at which amplitude and phase are evaluated [Hz].

    Returns:
        One row each with name, noise (rms of the velocity for white position noise of one unit) [1/s], amplitude (one
        is perfect) and phase [deg].
    """
    kernels = [
        CENTRAL,
        FIVE_POINT,
        FIVE_POINT_CAUSAL,
        NINE_POINT,
        low_pass_kernel(min(2.0 * band, 0.45 * rate), rate, 1),
    ]
    rows: list[dict[str, float | str]] = []
    for kernel in kernels:
        at_band = kernel.response(np.array([band]), rate)[0]
        rows.append(
            {
                "name": kernel.name,
                "noise": kernel.noise_gain * rate**kernel.order,
                "amplitude": float(abs(at_band)),
                "phase": float(np.degrees(np.angle(at_band))),
            }
        )
    return rows
