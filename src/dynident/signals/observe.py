"""`Observations`: motion and torque of a log, filtered alike, ready to become rows of the linear model.

Positions are low-passed and differentiated at twice the band, torque is low-passed with the same kernel, and both are
brought to a lower rate. Rows then come from parallel filtering (Gautier et al. 1995, section 4.3): every column of the
regressor and the torque pass one more low-pass at the band, and are decimated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynident.checks import Array
from dynident.errors import InputError
from dynident.identifiability.base import BaseParameters
from dynident.logs.log import Log, LogError
from dynident.robot.model import Robot
from dynident.signals.grid import Stretch, Timing, uniform_stretches
from dynident.signals.kernels import Kernel, low_pass_kernel

KINEMATIC_FACTOR = 2.0  # positions are derived at this many times the band
_PER_BAND = 16.0  # samples per second kept for the regressor, in units of the band
_ROWS_PER_BAND = 4.0  # rows per second, in units of the band
_BLOCK = 4096  # regressor samples in memory at a time
_TYPICAL_SHARE = 0.9  # of a motion's kinetic energy lies below its typical frequency
_BAND_FACTOR = 12.0  # the band reaches this many typical frequencies


@dataclass(frozen=True)
class SignalOptions:
    """How logs become observations.

    Attributes:
        band: Frequency up to which motion and torque are compared [Hz]; None chooses it from the data.
        delay: Time by which torque is stamped late against position [s].
        rest_speed: A joint slower than this is at rest, and its torque (held by friction) is not used [rad/s or m/s].
    """

    band: float | None = None
    delay: float = 0.0
    rest_speed: float = 0.01


@dataclass(frozen=True)
class Piece:
    """A stretch of filtered motion at a uniform, reduced rate.

    Attributes:
        start: Time of the first sample [s].
        rate: Samples per second.
        q, dq, ddq: (n_samples, n_joints).
        tau: Torque at the actuated coordinates, filtered like the positions, or None.
        reach: Half-length of the kernels that made them [s].
    """

    start: float
    rate: float
    q: Array
    dq: Array
    ddq: Array
    tau: Array | None
    reach: float


@dataclass(frozen=True)
class Rows:
    """Rows of the linear model.

    Attributes:
        time: (n_rows,) [s].
        W: (n_rows, n_joints, n) over the base columns.
        tau: (n_rows, n_joints), zero where the log has no torque.
        moving: (n_rows, n_joints), whether the joint is in motion.
        inner: (n_rows,), whether the filters saw only measured samples; near the ends of a stretch they did not.
    """

    time: Array
    W: Array
    tau: Array
    moving: NDArray[np.bool_]
    inner: NDArray[np.bool_]

    @property
    def usable(self) -> NDArray[np.bool_]:
        """(n_rows, n_joints), the rows that estimation uses: joints in motion, away from the ends."""
        return self.moving & self.inner[:, None]


@dataclass(frozen=True)
class Observations:
    """A log after the signal pipeline; only `observe` makes them.

    Attributes:
        robot: The robot.
        label: Name of the log.
        digest: Hash of the log.
        band: Band of the rows [Hz].
        options: What shaped it.
        timing: What was found in the stamps.
        pieces: Filtered motion, a piece per stretch without gaps.
    """

    robot: Robot
    label: str
    digest: str
    band: float
    options: SignalOptions
    timing: Timing
    pieces: tuple[Piece, ...]

    def rows(self, base: BaseParameters, *, every: bool = False) -> Iterator[Rows]:
        """Rows of the model in blocks, in order; memory does not grow with the length of the log.

        Args:
            base: Base parameters whose columns are wanted.
            every: One row per sample of the pieces instead of the decimated rate.
        """
        for piece in self.pieces:
            kernel, step = self._row_filter(piece, every)
            yield from _piece_rows(piece, base, kernel, step, self.options.rest_speed)

    def torque_rows(self, further_delay: float = 0.0) -> Array:
        """The torque of all rows, (n_rows, n_joints), as if it were stamped later still by `further_delay` [s]."""
        parts = []
        for piece in self.pieces:
            kernel, step = self._row_filter(piece, every=False)
            if piece.tau is not None and len(piece.q) > 2 * kernel.centre:
                parts.append(kernel.apply(_shifted(piece.tau, further_delay * piece.rate), piece.rate, step))
        if not parts:
            raise InputError(f"{self.label} has no torque, or no stretch long enough for its band")
        return np.concatenate(parts)

    def _row_filter(self, piece: Piece, every: bool) -> tuple[Kernel, int]:
        """The kernel that makes rows of a piece, and their distance in samples."""
        step = 1 if every else max(1, int(piece.rate / (_ROWS_PER_BAND * self.band)))
        return low_pass_kernel(self.band, piece.rate), step


def observe(log: Log, robot: Robot, options: SignalOptions | None = None, *, torque: bool = True) -> Observations:
    """Clean, resample and filter a log.

    Args:
        log: The log.
        robot: The robot.
        options: Band, delay, rest speed.
        torque: Whether torque is wanted; prediction uses position and time only.
    """
    options = options or SignalOptions()
    stretches, timing = uniform_stretches(log, robot, torque=torque)
    band = options.band or typical_band(stretches)
    band = min(band, timing.rate / (2.0 * KINEMATIC_FACTOR) * 0.9)
    kernels = [low_pass_kernel(KINEMATIC_FACTOR * band, timing.rate, order) for order in range(3)]
    long_enough = [stretch for stretch in stretches if len(stretch.q) > kernels[0].centre]
    if not long_enough:
        need = f"more than {kernels[0].centre / timing.rate:.3g} s without a gap"
        raise LogError(log.source, f"no stretch is long enough for a band of {band:.3g} Hz, which takes {need}")
    dropped = sum(len(stretch.q) for stretch in stretches) - sum(len(stretch.q) for stretch in long_enough)
    timing = replace(timing, too_short=timing.too_short + dropped)
    pieces = tuple(_piece(stretch, kernels, band, options.delay) for stretch in long_enough)
    return Observations(robot, log.label, log.digest, band, options, timing, pieces)


def typical_band(stretches: list[Stretch]) -> float:
    """A band from the motion itself: a multiple of the frequency below which most of its kinetic energy lies [Hz]."""
    highest = 0.0
    for stretch in stretches:
        speed = np.diff(stretch.q, axis=0) * np.hanning(len(stretch.q) - 1)[:, None]
        power = np.abs(np.fft.rfft(speed, axis=0)) ** 2
        total = power.sum(0)
        moved = total > 1e-6 * total.max(initial=0.0)
        share = np.cumsum(power[:, moved], axis=0) / total[moved]
        frequency = np.fft.rfftfreq(len(speed), 1.0 / stretch.rate)
        if share.shape[1]:
            highest = max(highest, float(frequency[np.argmax(share >= _TYPICAL_SHARE, axis=0)].max()))
    return max(_BAND_FACTOR * highest, 1.0)


def _piece(stretch: Stretch, kernels: list[Kernel], band: float, delay: float) -> Piece:
    """A stretch filtered and differentiated by the kernels of order 0, 1 and 2, at a reduced rate."""
    step = max(1, int(stretch.rate / (_PER_BAND * band)))
    q, dq, ddq = (kernel.apply(stretch.q, stretch.rate, step) for kernel in kernels)
    tau = None
    if stretch.tau is not None:
        tau = _shifted(kernels[0].apply(stretch.tau, stretch.rate), delay * stretch.rate)[::step]
    return Piece(stretch.start, stretch.rate / step, q, dq, ddq, tau, kernels[0].centre / stretch.rate)


def _shifted(x: Array, samples: float) -> Array:
    """The signal `samples` later in its own record, between samples by cubic interpolation; ends are held."""
    if samples == 0.0:
        return x
    places = np.clip(np.arange(len(x)) + samples, 0.0, len(x) - 1.0)
    left = np.clip(np.floor(places).astype(int), 1, len(x) - 3)
    u = (places - left)[:, None]
    a, b, c, d = (x[left + k] for k in (-1, 0, 1, 2))
    # Catmull-Rom: exact for parabolas, enough for a signal that was low-passed far below the rate.
    return np.asarray(b + 0.5 * u * (c - a + u * (2 * a - 5 * b + 4 * c - d + u * (3 * (b - c) + d - a))))


def _piece_rows(piece: Piece, base: BaseParameters, kernel: Kernel, step: int, rest_speed: float) -> Iterator[Rows]:
    """Parallel filtering in blocks: each block is made with as much overlap as the kernel is long."""
    n = len(piece.q)
    halo = kernel.centre
    if n <= 2 * halo:
        return
    block = max(step, _BLOCK // step * step)
    for first in range(0, n, block):
        low, high = max(0, first - halo), min(n, first + block + halo)
        part = slice(low, high)
        W = np.ascontiguousarray(base.regressor(piece.q[part], piece.dq[part], piece.ddq[part]))
        tau = np.zeros_like(piece.q[part]) if piece.tau is None else piece.tau[part]
        moving = (np.abs(piece.dq[part]) > rest_speed).astype(np.float64)
        stacked = np.concatenate([W.reshape(len(W), -1), tau, moving], axis=1)
        # Ends inside the piece have real samples as halo; only the piece's own ends are continued by the kernel.
        kept = kernel.apply(stacked, piece.rate, step, first - low)
        count = -(-(min(first + block, n) - first) // step)
        kept = kept[:count]
        k, joints = base.n, piece.q.shape[1]
        place = (first + step * np.arange(len(kept))) / piece.rate  # from the beginning of the piece [s]
        reach = piece.reach + halo / piece.rate
        yield Rows(
            piece.start + place,
            kept[:, : k * joints].reshape(-1, joints, k),
            kept[:, k * joints : (k + 1) * joints],
            kept[:, (k + 1) * joints :] > 0.5,
            (place >= reach) & (place <= (n - 1) / piece.rate - reach),
        )
