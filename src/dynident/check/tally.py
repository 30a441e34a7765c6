"""`ChannelTally`: what the values of each channel are like, gathered block by block."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array, Mask

STUTTER = 3  # rows: a longer run of equal rows is standstill or a logger that hangs

Flags = Mask
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Values:
    """The values of one channel, in its unit.

    Attributes:
        n_samples: Finite values.
        lowest: Smallest value; NaN if none is finite.
        highest: Largest value.
        rms: Root of the mean square.
        deviation: Standard deviation.
        step: Smallest difference between neighbours that differ; 0 if none do.
        repeated: Share of values that equal the one before.
        faults: Values that are NaN or infinite.
        fault: Row of the first of them, counted from 1, and what it is; None without any.
        at_end: Share of the samples in motion at which the value stays at its lowest or highest, the larger of both.
    """

    n_samples: int
    lowest: float
    highest: float
    rms: float
    deviation: float
    step: float
    repeated: float
    faults: int
    fault: tuple[int, float] | None
    at_end: float

    @property
    def constant(self) -> bool:
        """Whether it never changes."""
        return self.lowest == self.highest

    @property
    def range(self) -> float:
        """From the smallest to the largest value."""
        return self.highest - self.lowest


@dataclass(frozen=True)
class Repeats:
    """Rows of which all values but the stamp equal those of the row before.

    Attributes:
        stutter: Such rows in runs of at most `STUTTER`.
        frozen: Such rows in longer runs.
        longest: Rows of the longest run.
        jump: Largest step of a channel out of a longer run, over its largest step elsewhere.
    """

    stutter: int
    frozen: int
    longest: int
    jump: float


class ChannelTally:
    """Values so far.

    Args:
        names: Name of each row of a block, "t" first.
        watched: Rows whose jumps tell a logger that hung from a robot that stood: the positions.
    """

    def __init__(self, names: Sequence[str], watched: Sequence[int]) -> None:
        k = len(names)
        self.names = tuple(names)
        self.n_samples = 0
        self._before = np.full((k, 1), math.nan)
        self._lowest, self._highest = np.full(k, math.inf), np.full(k, -math.inf)
        self._origin = np.full(k, math.nan)  # sums are taken from here, so that they do not cancel
        self._sums = np.zeros((2, k))
        self._finite, self._repeated = np.zeros(k, dtype=np.int64), np.zeros(k, dtype=np.int64)
        self._step = np.full(k, math.inf)
        self._fault: dict[int, tuple[int, float]] = {}
        self._at_low, self._at_high = np.zeros(k, dtype=np.int64), np.zeros(k, dtype=np.int64)
        self._in_motion = np.zeros(k, dtype=np.int64)
        self._runs = _Runs(list(watched))

    def feed(self, block: Array, moving: Flags) -> None:
        """The next values, (n_names, n), and whether the joint of each moves, of the same shape."""
        clean, faulty = block, ~np.isfinite(block)
        if faulty.any():
            clean = np.where(faulty, math.nan, block)
            self._note_faults(block, faulty)
        self._finite += block.shape[1] - np.count_nonzero(faulty, axis=1)
        steps = np.abs(np.diff(clean, axis=1, prepend=self._before))
        same = steps == 0.0
        self._repeated += np.count_nonzero(same, axis=1)
        self._step = np.minimum(self._step, np.fmin.reduce(np.where(same, math.inf, steps), axis=1, initial=math.inf))
        self._note_ends(clean, same & moving)
        self._in_motion += np.count_nonzero(moving, axis=1)
        self._origin = np.where(np.isnan(self._origin), _first_finite(clean), self._origin)
        shifted = clean - self._origin[:, None]
        if clean is not block:
            shifted[faulty] = 0.0
        self._sums += shifted.sum(1), np.einsum("kn,kn->k", shifted, shifted)
        self._runs.feed(same[1:].all(0) if len(self.names) > 1 else same[0], steps)
        self.n_samples += block.shape[1]
        self._before = clean[:, -1:].copy()

    def _note_faults(self, block: Array, faulty: Flags) -> None:
        for row in np.flatnonzero(faulty.any(1)).tolist():
            i = int(np.argmax(faulty[row]))
            self._fault.setdefault(row, (self.n_samples + i + 1, float(block[row, i])))

    def _note_ends(self, clean: Array, stays: Flags) -> None:
        """How often values stay at the ends of their range, which a later block may widen."""
        low, high = np.fmin.reduce(clean, axis=1), np.fmax.reduce(clean, axis=1)
        self._at_low[low < self._lowest] = 0
        self._at_high[high > self._highest] = 0
        self._lowest, self._highest = np.fmin(self._lowest, low), np.fmax(self._highest, high)
        self._at_low += np.count_nonzero(stays & (clean == self._lowest[:, None]), axis=1)
        self._at_high += np.count_nonzero(stays & (clean == self._highest[:, None]), axis=1)

    def values(self) -> Mapping[str, Values]:
        """The records by name."""
        return {name: self._values(row) for row, name in enumerate(self.names)}

    def _values(self, row: int) -> Values:
        n = int(self._finite[row])
        mean, square = self._sums[:, row] / n if n else (math.nan, math.nan)
        variance = max(0.0, square - mean * mean) if n else math.nan
        step = float(self._step[row])
        ends = max(self._at_low[row], self._at_high[row]) / max(1, self._in_motion[row])
        return Values(
            n_samples=n,
            lowest=float(self._lowest[row]) if n else math.nan,
            highest=float(self._highest[row]) if n else math.nan,
            rms=math.sqrt(variance + (self._origin[row] + mean) ** 2),
            deviation=math.sqrt(variance),
            step=step if math.isfinite(step) else 0.0,
            repeated=float(self._repeated[row] / max(1, self.n_samples - 1)),
            faults=self.n_samples - n,
            fault=self._fault.get(row),
            at_end=float(ends),
        )

    def repeats(self) -> Repeats:
        """The record of repeated rows."""
        return self._runs.finish()


class _Runs:
    """Runs of equal rows so far."""

    def __init__(self, watched: list[int]) -> None:
        self._watched = watched
        self._open = 0  # rows of the run that reaches the end of the last block
        self._stutter = self._frozen = self._longest = 0
        self._jump, self._usual = np.zeros(len(watched)), np.zeros(len(watched))

    def feed(self, same: Flags, steps: Array) -> None:
        """Whether each row equals the one before, (n,), and the size of each channel's step to it, (n_names, n)."""
        breaks = np.flatnonzero(~same)
        own = steps[self._watched]
        if not len(breaks):
            self._open += len(same)
            return
        lengths = np.diff(breaks, prepend=-1 - self._open) - 1
        thawed = breaks[lengths > STUTTER]  # rows at which a long run ends
        self._count(lengths)
        if len(thawed):
            self._jump = np.maximum(self._jump, np.fmax.reduce(own[:, thawed], axis=1, initial=0.0))
            own[:, thawed] = 0.0
        self._usual = np.maximum(self._usual, np.fmax.reduce(own, axis=1, initial=0.0))
        self._open = len(same) - 1 - int(breaks[-1])

    def _count(self, lengths: NDArray[np.intp]) -> None:
        self._stutter += int(lengths[lengths <= STUTTER].sum())
        self._frozen += int(lengths[lengths > STUTTER].sum())
        self._longest = max(self._longest, int(lengths.max()))

    def finish(self) -> Repeats:
        """The record, with the run that ends the log."""
        self._count(np.array([self._open]))
        self._open = 0
        ratios = self._jump[self._usual > 0.0] / self._usual[self._usual > 0.0]
        return Repeats(self._stutter, self._frozen, self._longest, float(ratios.max(initial=0.0)))


def _first_finite(clean: Array) -> Array:
    """The first number of each row that is not NaN; NaN without any."""
    places = np.argmax(~np.isnan(clean), axis=1)
    first: Array = clean[np.arange(len(clean)), places]
    return first
