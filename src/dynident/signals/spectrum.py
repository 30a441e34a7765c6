"""Spectra of velocity and acceleration of a log: how fast it moves, and where noise of the positions begins.

Positions are differenced, windowed and transformed piece by piece along a stream, in memory that does not grow
with the log (Welch 1967).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.arrays import Array, record
from dynident.signals.thresholds import THRESHOLDS

_LOOKED_AT = 2000.0  # [Hz] rate at which motion is looked at; noise shows far above what robots do
_FINE = 4  # times as many frequencies as samples, for short pieces
_PIECE = 65536  # samples of a piece at that rate
_PER_E = 64  # bins for a factor of e in frequency


@record
class Spectrum:
    """Power spectral densities of the joints of a log, in bins of frequency no wider than a hundredth of it or so.

    Attributes:
        edges: (n + 1,) borders of the bins [Hz].
        velocity: (n_joints, n) one-sided, without what may be white noise of the positions [(rad/s)²/Hz or m].
        acceleration: (n_joints, n) one-sided, as it is [(rad/s²)²/Hz or m].
        resolution: Spacing of frequencies that the data can distinguish [Hz].
        seconds: Length of the data [s].
    """

    edges: Array
    velocity: Array
    acceleration: Array
    resolution: float
    seconds: float

    def below(self, density: Array, f: Array | float) -> Array:
        """Power of each joint below some frequencies, (n_joints, n_f) or (n_joints,)."""
        return np.array([np.interp(f, self.edges, own) for own in self._sums(density)])

    def frequency_of(self, density: Array, power: Array) -> Array:
        """Frequency below which each joint has some power, (n_joints,) [Hz]."""
        parts = zip(power, self._sums(density), strict=True)
        return np.array([np.interp(wanted, own, self.edges) for wanted, own in parts])

    def _sums(self, density: Array) -> Array:
        return np.concatenate([np.zeros((len(density), 1)), np.cumsum(density * np.diff(self.edges), axis=1)], axis=1)


def pool_spectra(spectra: Sequence[Spectrum]) -> Spectrum:
    """What several logs of one robot show together, each for the time that it lasts."""
    finest = max(spectra, key=lambda one: len(one.edges))
    edges = finest.edges[finest.edges <= min(one.edges[-1] for one in spectra)]
    total = np.zeros((2, len(finest.velocity), len(edges) - 1))
    for one in spectra:
        for own, density in zip(total, (one.velocity, one.acceleration), strict=True):
            own += one.seconds * np.diff(one.below(density, edges), axis=1) / np.diff(edges)
    seconds = sum(one.seconds for one in spectra)
    velocity, acceleration = total / max(seconds, 1e-300)
    return Spectrum(edges, velocity, acceleration, min(one.resolution for one in spectra), seconds)


class MotionSpectrum:
    """One-sided power spectral densities of each joint's velocity and acceleration, averaged over pieces of a log.

    Args:
        n_joints: Number of joints.
        rate: Samples per second of the log, or nearly.
    """

    def __init__(self, n_joints: int, rate: float) -> None:
        self.raw_rate = rate
        self.level = max(1, int(rate / _LOOKED_AT))  # samples averaged into one
        self.rate = rate / self.level
        self._held = np.zeros((n_joints + 1, 0))  # stamps above positions
        self._sums: dict[int, Array] = {}  # length of transforms -> (2, n_joints, n_f), weighted by samples
        self._samples = 0
        self._longest = 0  # samples of the longest piece

    def push(self, time: Array, q: Array) -> None:
        """More samples of a stretch: stamps (n,) and positions (n_joints, n) [rad or m]."""
        self._held = np.concatenate([self._held, np.vstack([time, q])], axis=1)
        piece = _PIECE * self.level
        while self._held.shape[1] > piece:
            self._add(self._held[:, : piece + 1])
            self._held = self._held[:, piece:]

    def cut(self) -> None:
        """The stretch ends."""
        if self._held.shape[1] > THRESHOLDS.min_stretch_samples:
            self._add(self._held)
        self._held = self._held[:, :0]

    def _add(self, samples: Array) -> None:
        time, q = samples[0], samples[1:]
        # Rows that were dropped or are missing leave holes: a piece has more grid points than samples, but not many.
        count = min(int((time[-1] - time[0]) * self.raw_rate + THRESHOLDS.uniform_step_share) + 1, 2 * len(time))
        even = time[0] + np.arange(count) / self.raw_rate
        jitters = len(time) != count or np.abs(time - even).max() > THRESHOLDS.uniform_step_share / self.raw_rate
        whole = count // self.level * self.level
        n = whole // self.level - 2
        if n < THRESHOLDS.min_stretch_samples // 2:
            return
        window = np.hanning(n + 2)[1:-1]
        # Zeros behind a short piece make its frequencies fine enough for shares of power to be read between them.
        length = 1 << (max(n, min(_FINE * n, _PIECE // 4)) - 1).bit_length()
        scale = 2.0 / (self.rate * (window @ window))
        if length not in self._sums:
            self._sums[length] = np.zeros((2, len(q), length // 2 + 1))
        for joint, own in enumerate(q):  # one after the other: transforms of all would take many times their memory
            # Stamps that jitter would look like fast motion.
            positions = np.interp(even, time, own) if jitters else own
            leveled = positions[:whole].reshape(-1, self.level).mean(1)
            for order in (1, 2):  # each windowed by itself: leakage of the one, integrated, would hide the other
                derivative = np.diff(leveled, order)[:n] * self.rate**order
                power = np.abs(np.fft.rfft(derivative * window, length)) ** 2
                self._sums[length][order - 1, joint] += n * scale * power
        self._samples += n
        self._longest = max(self._longest, n)

    @property
    def resolution(self) -> float:
        """Spacing of frequencies that the longest piece can distinguish [Hz]."""
        return self.rate / max(self._longest, 1)

    def spectrum(self) -> Spectrum:
        """The densities in bins; ends the stretch."""
        f, V, A = self.densities()
        half = 0.5 * (f[1] - f[0])
        # White noise of the positions has a density of velocity that goes with f^2; what the upper half holds, all has.
        upper = slice(max(1, len(f) // 2), None)
        white = np.median(V[:, upper] / f[upper] ** 2, axis=1)[:, None] * f**2
        V = np.where(THRESHOLDS.above_noise * white < V, V, 0.0)
        # Bins are single lines at first, then as many as take frequency a small step further.
        number = np.arange(len(f))
        steps = np.floor(_PER_E * np.log(np.maximum(number, 1)))
        first = np.flatnonzero((number <= _PER_E) | (np.diff(steps, prepend=-1.0) > 0.0))
        edges = np.concatenate([f[first] - half, [f[-1] + half]])
        counts = np.diff(first, append=len(f))
        V, A = (np.add.reduceat(own, first, axis=1) / counts for own in (V, A))
        return Spectrum(edges, V, A, self.resolution, self._samples / self.rate)

    def densities(self) -> tuple[Array, Array, Array]:
        """Frequencies (n_f,) [Hz] and densities (n_joints, n_f) of velocity and acceleration; ends the stretch.

        In (rad/s)^2/Hz and (rad/s^2)^2/Hz, or the same of m.
        """
        self.cut()
        length = max(self._sums, default=2)
        f = np.asarray(np.fft.rfftfreq(length, 1.0 / self.rate), dtype=np.float64)
        total = np.zeros((2, len(self._held) - 1, len(f)))
        for own, sums in self._sums.items():  # shorter pieces have coarser frequencies
            coarse = np.fft.rfftfreq(own, 1.0 / self.rate)
            finer = [[np.interp(f, coarse, row) for row in part] for part in sums]
            total += sums if own == length else np.array(finer)
        velocity, acceleration = total / max(self._samples, 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            leveling = np.sin(np.pi * f / self.rate) / (self.level * np.sin(np.pi * f / self.raw_rate))
        seen = np.where(f > 0.0, leveling, 1.0) ** 2  # what averaging leaves, and differences over derivatives
        difference = np.sinc(f / self.rate) ** 2
        return f, velocity / (seen * difference), acceleration / (seen * difference**2)
