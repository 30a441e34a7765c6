r"""The band of a log, from its acceleration spectrum: where acceleration stops being motion and becomes noise.

A motion's acceleration spectrum falls or is flat; white noise of the positions (steps of an encoder, jitter of the
stamps times velocity) rises with :math:`f^4`. Between them lies a valley. Above it noise adds up to the share

.. math:: \lambda(f) = \int_{f_v}^{f} A\,df \Big/ \int_0^{f_v} A\,df,

by which errors in variables shrink inertias. The band ends where that share reaches a hundredth, and in any case at
eighteen typical frequencies of the motion, unless columns of the regressor turn faster than the joints (`columns`).
Where no valley is seen and there is enough acceleration above the motion for noise to hide in, torque has to decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.display import brief
from dynident.identifiability.excitation_quality import REST_VELOCITY
from dynident.signals.spectrum import Spectrum
from dynident.signals.thresholds import THRESHOLDS

_PER_OCTAVE = 3
_UP = 2 * _PER_OCTAVE  # bins over which a rise is looked at
_LEAKAGE = 2.0  # lines by which a Hann window blurs a spectrum


@dataclass(frozen=True)
class BandEvidence:
    """What the positions of a log say about its band.

    Attributes:
        typical: Frequency below which 90 % of the fastest joint's kinetic energy lies [Hz]; zero without motion.
        valley: Frequency above which acceleration is noise [Hz]; infinite where no noise is seen.
        limit: Frequency at which noise reaches a hundredth of the acceleration's power [Hz], infinite if it never does;
            where no noise is seen, all that lies above four typical frequencies is taken for noise.
        hump: The limit if a rise that comes down again is noise too, such as filtered noise [Hz]; infinite where there
            is no such rise or where it does not matter.
        floor: Band below which there are too few equations [Hz].
        turning: Effective (RMS) velocities of the joints that turn, all together [rad/s].
        median: Frequency below which 90 % of a joint's kinetic energy lies, median over the joints that move [Hz]: in
            a short log the noise of a joint that hardly moves looks fast.
    """

    typical: float
    valley: float
    limit: float
    hump: float
    floor: float
    turning: float = 0.0
    median: float = 0.0

    @property
    def decided(self) -> bool:
        """Whether the positions tell how much band their noise allows."""
        harmless = self.limit >= THRESHOLDS.max_band_factor * self.typical  # whatever of it may be noise
        return bool((harmless or np.isfinite(self.valley)) and np.isinf(self.hump))


@brief
@dataclass(frozen=True)
class BandChoice:
    """A band and why it is that.

    Attributes:
        band: The band [Hz].
        reason: In few words.
        candidates: Bands among which torque is to decide, the lowest first [Hz]; empty where positions have decided.
        errors: Relative error of each candidate on held-out blocks, in one common band; empty where none was tried.
        without_noise: Band that the motion could use if noise of the positions left it [Hz]; 0 where it does.
    """

    band: float
    reason: str
    candidates: tuple[float, ...] = ()
    errors: tuple[float, ...] = ()
    without_noise: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        tried = [{"band": b, "relative_error": e} for b, e in zip(self.candidates, self.errors, strict=False)]
        return {"band": self.band, "reason": self.reason, "tried": tried}


def prediction_band(found: BandEvidence, trained: float) -> float:
    """Band in which a model predicts a log [Hz]: that of its training, unless faster motion would not pass it.

    Args:
        found: What the positions of the log say.
        trained: Band of the training [Hz].
    """
    return max(trained, THRESHOLDS.min_band_factor * found.median)


def choose_by_noise(found: BandEvidence, widest: float, columns: float = 0.0) -> BandChoice:
    """The band that motion, noise, equations and columns ask for.

    Args:
        found: What the positions say.
        widest: What the rate of the log allows [Hz].
        columns: What columns of the regressor need, as far as noise permits [Hz].
    """
    wanted = max(THRESHOLDS.max_band_factor * found.typical, THRESHOLDS.min_band_hz)
    if not found.decided:
        tried = {max(factor * found.typical, columns, found.floor) for factor in THRESHOLDS.band_factors}
        tried |= {max(found.hump, found.floor)} if np.isfinite(found.hump) else set()
        candidates = tuple(sorted({min(band, widest) for band in tried}))
        if np.isfinite(found.hump):
            careful, reason = found.hump, "a rise of the acceleration spectrum may be noise; the band if it is"
        else:
            careful = max(THRESHOLDS.undecided_band_factor * found.typical, THRESHOLDS.min_band_hz)
            reason = f"no noise in sight; {THRESHOLDS.undecided_band_factor:g} times the motion's typical frequency"
        return BandChoice(min(max(careful, columns, found.floor), widest), reason, candidates)
    band, reason = wanted, f"{THRESHOLDS.max_band_factor:g} times the motion's typical frequency"
    if found.typical == 0.0:
        reason = "no joint moves"
    if columns > band:
        band, reason = columns, "columns of the regressor turn faster than the joints"
    free = min(band, widest)  # what the motion could use without noise
    if max(found.limit, THRESHOLDS.min_band_factor * found.typical) < band:
        band = max(found.limit, THRESHOLDS.min_band_factor * found.typical)
        reason = f"above {found.valley:.2g} Hz the acceleration is noise, 1 % of its power at {found.limit:.2g} Hz"
        if np.isinf(found.valley):
            reason = f"up to {found.limit:.2g} Hz noise cannot be 1 % of the acceleration's power"
    if found.floor > band and found.typical > 0.0:
        band, reason = found.floor, f"a shorter one would leave too few equations ({reason})"
    if band > widest:
        return BandChoice(widest, f"all that the rate allows ({reason})")
    wider = (float(np.sqrt(band * free)), free) if free > THRESHOLDS.min_wider_band * band else ()
    return BandChoice(band, reason, (band, *wider) if wider else (), without_noise=free if wider else 0.0)


def equation_floor(stretches: Sequence[float]) -> float:
    """Lowest band that leaves a hundred rows per joint [Hz].

    One stretch of T seconds needs 25 / T. Of several, each loses its ends to the filters, and those that are too short
    for them do not count: the longest k stretches give 25 - ends = band sum(T) - k ends.

    Args:
        stretches: Lengths of the stretches between gaps [s].
    """
    lengths = np.sort(np.asarray(stretches, dtype=np.float64))[::-1]
    lengths = lengths[lengths > 0.0]
    if not len(lengths):
        return 0.0
    lost = THRESHOLDS.filter_end_periods * np.arange(len(lengths))
    return float(np.min((THRESHOLDS.min_band_seconds + lost) / np.cumsum(lengths)))


def band_evidence(
    spectrum: Spectrum,
    ranges: Array,
    radians: Array,
    stretches: Sequence[float],
    rest_velocity: float = REST_VELOCITY,
    pool: BandEvidence | None = None,
    power: Array | None = None,
) -> BandEvidence:
    """Read a spectrum.

    Logs of one robot share encoders and drives, and their equations are solved together. So noise and equations are
    those of all of them, as far as a pool is given. The motion is a log's own where its spectrum is fine enough to tell
    it from theirs, but joints that are far slower than in another log do not raise it: they wobble at frequencies that
    say nothing about the motion.

    Args:
        spectrum: Of a log, or of several together.
        ranges: (n_joints,) from the lowest to the highest position of each joint [rad or m].
        radians: (n_joints,) what counts as a radian, `Robot.radians`; slides are compared with slides [rad or m].
        stretches: Lengths of the stretches between gaps [s].
        rest_velocity: A joint whose effective velocity is lower is held and has no vote [rad/s, or a tenth in m/s].
        pool: What several logs, this one among them, say together.
        power: (n_joints,) velocity power of each joint in that of these logs that moves it most [(rad/s)² or (m/s)²].
    """
    floor = equation_floor(stretches)
    velocity = np.sqrt(spectrum.below(spectrum.velocity, np.inf))  # root mean square, (n_joints,)
    moves = (ranges > THRESHOLDS.standstill_rad * radians) & (velocity > 0.0)
    fast = moves & (velocity > rest_velocity * radians)
    moves = fast if fast.any() else moves
    for kind in (radians == 1.0, radians != 1.0):
        fastest = velocity[moves & kind].max(initial=0.0)
        moves = moves & (~kind | (velocity**2 > THRESHOLDS.min_power_share * fastest**2))
    if not moves.any():
        return (
            BandEvidence(0.0, np.inf, np.inf, np.inf, floor) if pool is None else replace(pool, turning=0.0, median=0.0)
        )
    turning = float(velocity[moves & (radians == 1.0)].sum())
    moving = replace(spectrum, velocity=spectrum.velocity[moves], acceleration=spectrum.acceleration[moves])
    if pool is not None:
        frequencies = _typical(moving, pool.valley)
        typical = float(frequencies.max())
        if typical > pool.typical and power is not None:
            counts = velocity[moves] ** 2 >= (1.0 - THRESHOLDS.typical_energy_share) * power[moves]
            typical = max(float(frequencies[counts].max()) if counts.any() else 0.0, pool.typical)
        alike = abs(typical - pool.typical) <= _LEAKAGE * spectrum.resolution
        median = float(np.median(frequencies))
        return replace(pool, typical=pool.typical if alike else typical, turning=turning, median=median)
    valley, hump = _valley(moving)
    frequencies = _typical(moving, valley)
    typical, median = float(frequencies.max()), float(np.median(frequencies))
    limit = _noise_limit(moving, valley if np.isfinite(valley) else THRESHOLDS.min_band_factor * typical)
    if np.isfinite(hump):
        hump = max(_noise_limit(moving, hump), THRESHOLDS.min_band_factor * float(_typical(moving, hump).max()))
    hump = hump if hump < THRESHOLDS.max_band_factor * typical else np.inf
    return BandEvidence(typical, valley, limit, hump, floor, turning, median)


def _typical(moving: Spectrum, valley: float) -> Array:
    """Frequency below which most of the kinetic energy of each joint lies, of that below the valley [Hz]."""
    energy = THRESHOLDS.typical_energy_share * moving.below(moving.velocity, valley)
    return moving.frequency_of(moving.velocity, energy)


def _noise_limit(moving: Spectrum, valley: float) -> float:
    """Frequency at which the share of noise, in the median joint, passes what is tolerated [Hz]."""
    motion = moving.below(moving.acceleration, valley)[:, None]
    noise = np.median(moving.below(moving.acceleration, moving.edges) / np.maximum(motion, 1e-300), axis=0) - 1.0
    return float(np.interp(THRESHOLDS.max_noise_share, noise, moving.edges, right=np.inf))


def _valley(moving: Spectrum) -> tuple[float, float]:
    """Where noise begins, and where a rise begins that comes down again below that [Hz]; infinite where there is none.

    Looked for above the frequency at which the fastest joint has most of its velocity.
    """
    low, high = 4.0 * moving.resolution, 0.9 * moving.edges[-1]
    if not 0.0 < low < high:
        return np.inf, np.inf
    edges = low * 2.0 ** (np.arange(int(np.log2(high / low) * _PER_OCTAVE) + 1) / _PER_OCTAVE)
    center = np.sqrt(edges[:-1] * edges[1:])
    if len(center) <= _UP:
        return np.inf, np.inf
    velocity, level = (
        np.diff(moving.below(own, edges)) / np.diff(edges) for own in (moving.velocity, moving.acceleration)
    )
    start = int(np.argmax(velocity, axis=1).max())
    # Mean over joints in decibels: one bad encoder does not decide.
    curve = (10.0 * np.log10(np.maximum(level, 1e-300))).mean(0)
    hump = np.inf
    for k in range(start + 1, len(center) - _UP):
        own = curve[k : k + _UP + 1]
        gradual = np.diff(own).max() < THRESHOLDS.line_rise_db and own[-1] - own[0] <= THRESHOLDS.max_noise_rise_db
        if not (gradual and own[-1] - own[0] >= THRESHOLDS.noise_rise_db and own[_UP // 2] > own[0]):
            continue
        if np.max(np.maximum.accumulate(curve[k:]) - curve[k:]) < THRESHOLDS.motion_fall_db:
            return float(center[k]), hump
        hump = min(hump, float(center[k]))
    return np.inf, hump
