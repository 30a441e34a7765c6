"""Statistics of the channels of a log as they came, and of the motion of its joints, gathered block by block."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array, Mask, record
from dynident.logs.columns import kind_of, number_of
from dynident.signals.thresholds import THRESHOLDS


@dataclass(frozen=True)
class ChannelStatistics:
    """The values of one channel, in its unit.

    Attributes:
        n_samples: Finite values.
        lowest: Smallest value; NaN if none is finite.
        highest: Largest value.
        rms: Root of the mean square.
        std: Standard deviation.
        step: Smallest difference between neighbors that differ; 0 if none do.
        repeated_share: Share of values that equal the one before.
        n_faults: Values that are NaN or infinite.
        first_fault: Row of the first of them, counted from 1, and what it is; None without any.
        low_share: Share of the samples in motion at which the value stays at its lowest.
        high_share: The same at its highest.
    """

    n_samples: int
    lowest: float
    highest: float
    rms: float
    std: float
    step: float
    repeated_share: float
    n_faults: int
    first_fault: tuple[int, float] | None
    low_share: float
    high_share: float

    @property
    def ends(self) -> tuple[float, ...]:
        """The ends of its range at which it stays in motion; zero is none: there a drive is off."""
        if not self.step or self.range < THRESHOLDS.min_levels * self.step:
            return ()
        shares = (self.lowest, self.low_share), (self.highest, self.high_share)
        zero = 1e-3 * self.range
        return tuple(x for x, share in shares if share > THRESHOLDS.min_saturated_share and abs(x) > zero)

    @property
    def saturated_share(self) -> float:
        """Share of the samples in motion at which it stays at these ends."""
        shares = {self.lowest: self.low_share, self.highest: self.high_share}
        return sum(shares[end] for end in self.ends)

    @property
    def constant(self) -> bool:
        """Whether it never changes."""
        return self.lowest == self.highest

    @property
    def range(self) -> float:
        """From the smallest to the largest value."""
        return self.highest - self.lowest


@dataclass(frozen=True)
class RepeatStatistics:
    """Rows of which all values but the stamp equal those of the row before.

    Attributes:
        n_short: Such rows in runs of at most `max_stutter_rows`, which a stuttering logger writes.
        n_long: Such rows in longer runs: standstill, or a logger that hangs.
        longest: Rows of the longest run.
        jump: Largest step of a position out of a longer run, over its largest step elsewhere.
    """

    n_short: int
    n_long: int
    longest: int
    jump: float

    @property
    def n_repeated(self) -> int:
        """All such rows."""
        return self.n_short + self.n_long


class ChannelAccumulator:
    """Statistics of the channels so far.

    Args:
        names: Name of each row of a block, "t" first.
        positions: Rows whose jumps tell a logger that hung from a robot that stood.
    """

    def __init__(self, names: Sequence[str], positions: Sequence[int]) -> None:
        k = len(names)
        self.names = tuple(names)
        self.n_samples = 0
        self._before = np.full((k, 1), math.nan)
        self._lowest, self._highest = np.full(k, math.inf), np.full(k, -math.inf)
        self._origin = np.full(k, math.nan)  # sums are taken from here, so that they do not cancel
        self._sums = np.zeros((2, k))
        self._finite, self._repeated = np.zeros(k, dtype=np.int64), np.zeros(k, dtype=np.int64)
        self._step = np.full(k, math.inf)
        self._first_fault: dict[int, tuple[int, float]] = {}
        self._at_low, self._at_high = np.zeros(k, dtype=np.int64), np.zeros(k, dtype=np.int64)
        self._in_motion = np.zeros(k, dtype=np.int64)
        self._positions = list(positions)
        self._open_run = 0  # rows of the run of equal rows that reaches the end of the last block
        self._run_lengths = np.zeros(3, dtype=np.int64)  # rows in short runs, in longer ones, in the longest
        self._jump, self._usual_step = np.zeros(len(positions)), np.zeros(len(positions))

    def add(self, block: Array, moving: Mask) -> None:
        """The next values, (n_names, n), and whether the joint of each moves, of the same shape."""
        clean, faulty = block, ~np.isfinite(block)
        if faulty.any():
            clean = np.where(faulty, math.nan, block)
            self._count_faults(block, faulty)
        self._finite += block.shape[1] - np.count_nonzero(faulty, axis=1)
        steps = np.abs(np.diff(clean, axis=1, prepend=self._before))
        same = steps == 0.0
        self._repeated += np.count_nonzero(same, axis=1)
        self._step = np.minimum(self._step, np.fmin.reduce(np.where(same, math.inf, steps), axis=1, initial=math.inf))
        self._count_ends(clean, same & moving)
        self._in_motion += np.count_nonzero(moving, axis=1)
        self._origin = np.where(np.isnan(self._origin), _first_finite(clean), self._origin)
        shifted = clean - self._origin[:, None]
        if clean is not block:
            shifted[faulty] = 0.0
        self._sums += shifted.sum(1), np.einsum("kn,kn->k", shifted, shifted)
        self._add_runs(same[1:].all(0) if len(self.names) > 1 else same[0], steps)
        self.n_samples += block.shape[1]
        self._before = clean[:, -1:].copy()

    def _count_faults(self, block: Array, faulty: Mask) -> None:
        for row in np.flatnonzero(faulty.any(1)).tolist():
            i = int(np.argmax(faulty[row]))
            self._first_fault.setdefault(row, (self.n_samples + i + 1, float(block[row, i])))

    def _count_ends(self, clean: Array, stays: Mask) -> None:
        """How often values stay at the ends of their range, which a later block may widen."""
        low, high = np.fmin.reduce(clean, axis=1), np.fmax.reduce(clean, axis=1)
        self._at_low[low < self._lowest] = 0
        self._at_high[high > self._highest] = 0
        self._lowest, self._highest = np.fmin(self._lowest, low), np.fmax(self._highest, high)
        self._at_low += np.count_nonzero(stays & (clean == self._lowest[:, None]), axis=1)
        self._at_high += np.count_nonzero(stays & (clean == self._highest[:, None]), axis=1)

    def statistics(self) -> dict[str, ChannelStatistics]:
        """The records by name."""
        return {name: self._statistics(row) for row, name in enumerate(self.names)}

    def _statistics(self, row: int) -> ChannelStatistics:
        n = int(self._finite[row])
        mean, square = self._sums[:, row] / n if n else (math.nan, math.nan)
        variance = max(0.0, square - mean * mean) if n else math.nan
        step = float(self._step[row])
        low, high = (float(x[row]) / max(1, int(self._in_motion[row])) for x in (self._at_low, self._at_high))
        return ChannelStatistics(
            n_samples=n,
            lowest=float(self._lowest[row]) if n else math.nan,
            highest=float(self._highest[row]) if n else math.nan,
            rms=math.sqrt(variance + (self._origin[row] + mean) ** 2),
            std=math.sqrt(variance),
            step=step if math.isfinite(step) else 0.0,
            repeated_share=float(self._repeated[row] / max(1, self.n_samples - 1)),
            n_faults=self.n_samples - n,
            first_fault=self._first_fault.get(row),
            low_share=low,
            high_share=high,
        )

    def _add_runs(self, same: Mask, steps: Array) -> None:
        """Whether each row equals the one before, (n,), and the size of each channel's step to it, (n_names, n)."""
        breaks = np.flatnonzero(~same)
        own = steps[self._positions]
        if not len(breaks):
            self._open_run += len(same)
            return
        lengths = np.diff(breaks, prepend=-1 - self._open_run) - 1
        run_ends = breaks[lengths > THRESHOLDS.max_stutter_rows]  # rows at which a long run ends
        self._count_runs(lengths)
        if len(run_ends):
            self._jump = np.maximum(self._jump, np.fmax.reduce(own[:, run_ends], axis=1, initial=0.0))
            own[:, run_ends] = 0.0
        self._usual_step = np.maximum(self._usual_step, np.fmax.reduce(own, axis=1, initial=0.0))
        self._open_run = len(same) - 1 - int(breaks[-1])

    def _count_runs(self, lengths: NDArray[np.intp]) -> None:
        short = lengths <= THRESHOLDS.max_stutter_rows
        self._run_lengths[:2] += lengths[short].sum(), lengths[~short].sum()
        self._run_lengths[2] = max(self._run_lengths[2], lengths.max())

    def repeats(self) -> RepeatStatistics:
        """The record of repeated rows, with the run that ends the log."""
        self._count_runs(np.array([self._open_run]))
        self._open_run = 0
        moves = self._usual_step > 0.0
        ratios = self._jump[moves] / self._usual_step[moves]
        n_short, n_long, longest = map(int, self._run_lengths)
        return RepeatStatistics(n_short, n_long, longest, float(ratios.max(initial=0.0)))


def _first_finite(clean: Array) -> Array:
    """The first number of each row that is not NaN; NaN without any."""
    places = np.argmax(~np.isnan(clean), axis=1)
    first: Array = clean[np.arange(len(clean)), places]
    return first


@record
class JointStatistics:
    """How the joints of a log move; joints by number.

    Attributes:
        numbers: Joints with a position.
        kind: "q", or "qm" for positions of motor shafts.
        moving_share: Share of the samples in which each of them moves.
        rest_share: Share of the samples in which none moves.
        max_velocity: Largest velocity of each, over a window [rad/s or m/s].
        with_velocity: Joints whose measured velocity was compared.
        max_measured_velocity: Largest measured velocity of each of these, over a window.
        correlation: (n_with_velocity, n_joints) of measured velocities with those of the positions.
        slope: (n_with_velocity,) measured velocity per velocity of the own position; NaN if that never moves.
    """

    numbers: tuple[int, ...]
    kind: str
    moving_share: Mapping[int, float]
    rest_share: float
    max_velocity: Mapping[int, float]
    with_velocity: tuple[int, ...]
    max_measured_velocity: Mapping[int, float]
    correlation: Array
    slope: Array


class JointAccumulator:
    """Statistics of the motion so far.

    Positions and the integrals of measured velocities are averaged over the same short windows, and the differences
    from window to window are compared: both have then passed the same filter, whatever the stamps are like.

    Args:
        names: Name of each row of a block.
        step: Typical step of time [s].
        gap: A longer step is a gap [s].
        gears: Turns of the motor per turn of each joint, by its number; for positions of motor shafts.
        rest_velocity: A slower joint is at rest [rad/s or m/s].
    """

    def __init__(
        self, names: Sequence[str], step: float, gap: float, gears: Mapping[int, float], rest_velocity: float
    ) -> None:
        kinds = {kind_of(name) for name in names}
        self.kind = "qm" if "qm" in kinds and "q" not in kinds else "q"
        place = {name: row for row, name in enumerate(names)}
        self.numbers = tuple(sorted(number_of(name) for name in names if kind_of(name) == self.kind))
        self.with_velocity = tuple(j for j in self.numbers if f"d{self.kind}{j}" in place)
        self.positions = [place[f"{self.kind}{j}"] for j in self.numbers]
        self._rates = [place[f"d{self.kind}{j}"] for j in self.with_velocity]
        gear = [abs(gears.get(j, 1.0)) if self.kind == "qm" else 1.0 for j in self.numbers]
        self._rest = rest_velocity * np.array(gear)[:, None]
        self._size = max(1, round(THRESHOLDS.position_window_s / step)) if step > 0.0 else 1
        self._gap = gap
        n, m = len(self.numbers), len(self.with_velocity)
        self._travel, self._rate = np.zeros((m, 1)), np.zeros((m, 1))  # integral and value of the last velocities
        self._window = np.full((1 + n + m, 1), math.nan)  # means of time, positions and integrals in the last window
        self._comparable = False  # with the next window
        self._moving, self._any, self._n = np.zeros(n, dtype=np.int64), 0, 0
        self._max_velocity, self._max_measured = np.zeros(n), np.zeros(m)
        self._qq, self._vq, self._vv = np.zeros(n), np.zeros((m, n)), np.zeros(m)

    def add(self, time: Array, steps: Array, block: Array) -> Mask:
        """The next samples: stamps, steps to them and all rows; returns whether each joint moves, (n_joints, n)."""
        q, broken = block[self.positions], ~((steps > 0.0) & (steps <= self._gap))
        travel, faulty = self._integral(np.where(broken, 0.0, steps), block[self._rates])
        edges = np.arange(0, len(time), self._size)
        if len(edges) > 1 and len(time) - edges[-1] < self._size / 2:
            edges = edges[:-1]  # what remains joins the last window
        counts = np.diff(edges, append=len(time))
        with np.errstate(invalid="ignore"):
            means = np.add.reduceat(np.vstack([time, q, travel]), edges, axis=1) / counts
        sound = np.add.reduceat((broken | faulty).astype(np.int64), edges) == 0
        moving = np.repeat(self._compare(means, sound), counts, axis=1)
        self._moving += np.count_nonzero(moving, axis=1)
        self._any += int(np.count_nonzero(moving.any(0)))
        self._n += len(time)
        return moving

    def _integral(self, steps: Array, rates: Array) -> tuple[Array, Mask]:
        """Where the measured velocities lead, (n_velocities, n), and where one of them is no number, (n,)."""
        faulty = ~np.isfinite(rates)
        rates = np.where(faulty, 0.0, rates)
        mean = 0.5 * (np.hstack([self._rate, rates[:, :-1]]) + rates)
        travel = self._travel + np.cumsum(mean * steps, axis=1)
        self._travel, self._rate = travel[:, -1:], rates[:, -1:]
        unusable: Mask = np.logical_or.reduce(faulty, axis=0)
        return travel, unusable

    def _compare(self, means: Array, sound: Mask) -> Mask:
        """Take in the windows of a block, (1 + n_joints + n_velocities, n); returns which joints move when."""
        n = len(self.numbers)
        with np.errstate(invalid="ignore", divide="ignore"):
            change = np.diff(means, axis=1, prepend=self._window)
            velocity = change[1:] / change[0]
        together = sound & np.concatenate([[self._comparable], sound[:-1]]) & np.isfinite(change).all(0)
        self._window, self._comparable = means[:, -1:], bool(sound[-1])
        velocity = np.where((change[0] > 0.0) & np.isfinite(velocity), np.abs(velocity), 0.0)
        moves = velocity[:n] > self._rest
        moves[:, :-1] |= moves[:, 1:]  # a window moves with the way into it and out of it
        dq, dp = change[1 : 1 + n, together], change[1 + n :, together]
        self._max_velocity = np.maximum(self._max_velocity, velocity[:n, together].max(1, initial=0.0))
        self._max_measured = np.maximum(self._max_measured, velocity[n:, together].max(1, initial=0.0))
        self._qq += np.einsum("jn,jn->j", dq, dq)
        self._vv += np.einsum("jn,jn->j", dp, dp)
        self._vq += np.einsum("in,jn->ij", dp, dq)  # too little for the threads of a matrix product
        return moves

    def statistics(self) -> JointStatistics:
        """The record."""
        own = [self.numbers.index(j) for j in self.with_velocity]
        sizes = np.sqrt(np.outer(self._vv, self._qq))
        with np.errstate(invalid="ignore", divide="ignore"):
            correlation = np.where(sizes > 0.0, self._vq / sizes, 0.0)
            slope = self._vq[np.arange(len(own)), own] / self._qq[own]
        return JointStatistics(
            numbers=self.numbers,
            kind=self.kind,
            moving_share={j: float(k) / max(1, self._n) for j, k in zip(self.numbers, self._moving, strict=True)},
            rest_share=1.0 - self._any / max(1, self._n),
            max_velocity=dict(zip(self.numbers, self._max_velocity.tolist(), strict=True)),
            with_velocity=self.with_velocity,
            max_measured_velocity=dict(zip(self.with_velocity, self._max_measured.tolist(), strict=True)),
            correlation=correlation,
            slope=slope,
        )
