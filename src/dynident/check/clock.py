"""`ClockTally`: what the stamps of a log are like, gathered block by block."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.signals.grid import Grid

SLOWEST, FASTEST = 5.0, 1e5  # [Hz] rates that a log of a robot may have
_USUAL_RATE = 500.0  # [Hz] of two units that both make sense, the one that brings the rate nearer to this
_OFF = 0.5  # share of a step by which another is plainly not the same
_SAMPLED = 1 << 15  # steps kept, evenly spread, for the median
_NAMED = 10  # gaps whose times are kept
UNITS = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@dataclass(frozen=True)
class Clock:
    """The stamps of a log; times in seconds, rows counted from 1.

    Attributes:
        unit: Unit that the stamps were taken to be in: "s" as said, or "ms", "us", "ns" where only that makes sense.
        n_samples: Rows.
        first: Smallest stamp.
        last: Largest stamp.
        step: Median step.
        shortest: Smallest step forward.
        longest: Largest step.
        longest_after: Where it begins.
        spread: Standard deviation of the steps that are no gaps, over their mean.
        off: Share of them that differ from the typical step by more than half of it.
        backwards: Steps back.
        turned: Row of the first of them, and the stamps before and at it; None without any.
        equal: Rows with the stamp of the row before.
        gaps: Steps that are gaps.
        gap_times: Where the first gaps begin.
        missing: Time within gaps, all together.
    """

    unit: str
    n_samples: int
    first: float
    last: float
    step: float
    shortest: float
    longest: float
    longest_after: float
    spread: float
    off: float
    backwards: int
    turned: tuple[int, float, float] | None
    equal: int
    gaps: int
    gap_times: tuple[float, ...]
    missing: float

    @property
    def duration(self) -> float:
        """From the smallest stamp to the largest [s]."""
        return self.last - self.first

    @property
    def rate(self) -> float:
        """Median sampling rate [Hz]."""
        return 1.0 / self.step if self.step > 0.0 else math.nan


def typical_step(time: Array) -> float:
    """The median of the steps forward; NaN without any."""
    steps = np.diff(time)
    steps = steps[np.isfinite(steps) & (steps > 0.0)]
    return float(np.median(steps)) if len(steps) else math.nan


def likely_unit(step: float) -> str:
    """The unit in which a typical step makes sense: "s" if it does as it is, or if nothing does."""
    if not step > 0.0 or SLOWEST <= 1.0 / step <= FASTEST:
        return "s"
    rates = {unit: 1.0 / (step * size) for unit, size in UNITS.items()}
    sensible = [unit for unit, rate in rates.items() if SLOWEST <= rate <= FASTEST]
    return min(sensible, key=lambda unit: abs(math.log(rates[unit] / _USUAL_RATE)), default="s")


class ClockTally:
    """Stamps so far.

    Args:
        step: Typical step of the first stamps, as they are; NaN if not known.
    """

    def __init__(self, step: float) -> None:
        self.unit = likely_unit(step)
        self.size = UNITS.get(self.unit, 1.0)
        self.step = step * self.size
        self.gap = Grid(1.0 / self.step, irregular=False).gap if self.step > 0.0 else math.inf
        self.n_samples = 0
        self._before = math.nan
        self._first, self._last = math.inf, -math.inf
        self._shortest, self._longest, self._longest_after = math.inf, -math.inf, math.nan
        self._sums = np.zeros(4)  # usual steps: number, sum, sum of squares, how many are off
        self._backwards = self._equal = self._gaps = 0
        self._turned: tuple[int, float, float] | None = None
        self._gap_times: list[float] = []
        self._missing = 0.0
        self._steps = _Spread()

    def feed(self, stamps: Array) -> tuple[Array, Array]:
        """The next stamps; returns them [s], and the step to each [s], NaN for the first."""
        time = np.where(np.isfinite(stamps), stamps * self.size, math.nan)
        before = np.concatenate([[self._before], time[:-1]])
        steps = time - before
        self._first = min(self._first, float(np.fmin.reduce(time)))
        self._last = max(self._last, float(np.fmax.reduce(time)))
        forward = steps[steps > 0.0]
        self._shortest = min(self._shortest, float(forward.min(initial=math.inf)))
        self._steps.feed(forward)
        usual = forward[forward <= self.gap]
        off = np.count_nonzero(np.abs(usual - self.step) > _OFF * self.step)
        self._sums += np.array([len(usual), usual.sum(), np.square(usual).sum(), off])
        self._equal += int(np.count_nonzero(steps == 0.0))
        self._note_back(before, time)
        self._note_gaps(before, steps)
        self.n_samples += len(time)
        self._before = float(time[-1])
        return time, steps

    def _note_back(self, before: Array, time: Array) -> None:
        back = time < before
        if back.any() and self._turned is None:
            i = int(np.argmax(back))
            self._turned = self.n_samples + i + 1, float(before[i]), float(time[i])
        self._backwards += int(np.count_nonzero(back))

    def _note_gaps(self, before: Array, steps: Array) -> None:
        if np.fmax.reduce(steps) > self._longest:
            i = int(np.nanargmax(steps))
            self._longest, self._longest_after = float(steps[i]), float(before[i])
        gaps = np.flatnonzero(steps > self.gap)
        self._gap_times.extend(before[gaps[: _NAMED - len(self._gap_times)]].tolist())
        self._gaps += len(gaps)
        self._missing += float(steps[gaps].sum())

    def finish(self) -> Clock:
        """The record."""
        count, total, squares, off = self._sums
        mean = float(total / count) if count else math.nan
        spread = math.sqrt(max(0.0, squares / count - mean * mean)) / mean if count else math.nan
        return Clock(
            unit=self.unit,
            n_samples=self.n_samples,
            first=self._first if math.isfinite(self._first) else math.nan,
            last=self._last if math.isfinite(self._last) else math.nan,
            step=self._steps.median(),
            shortest=self._shortest,
            longest=self._longest,
            longest_after=self._longest_after,
            spread=spread,
            off=float(off / count) if count else math.nan,
            backwards=self._backwards,
            turned=self._turned,
            equal=self._equal,
            gaps=self._gaps,
            gap_times=tuple(self._gap_times),
            missing=self._missing,
        )


class _Spread:
    """A bounded number of values, evenly spread over all that came."""

    def __init__(self) -> None:
        self._kept = np.zeros(0)
        self._every, self._seen = 1, 0

    def feed(self, values: Array) -> None:
        """More values."""
        taken = values[-self._seen % self._every :: self._every]
        self._seen += len(values)
        self._kept = np.concatenate([self._kept, taken])
        while len(self._kept) > 2 * _SAMPLED:
            self._kept, self._every = self._kept[::2], 2 * self._every

    def median(self) -> float:
        """NaN without values."""
        return float(np.median(self._kept)) if len(self._kept) else math.nan
