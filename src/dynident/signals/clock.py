"""`ClockStatistics`: the stamps of a log as they came, gathered block by block."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.signals.grid import Grid
from dynident.signals.thresholds import THRESHOLDS

_MEDIAN_STEPS = 1 << 15  # steps remembered, evenly spread, for the median
_NAMED_GAPS = 10  # whose times are remembered
TIME_UNITS = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@dataclass(frozen=True)
class ClockStatistics:
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
        irregular_share: Share of them that differ from the typical step by more than half of it.
        n_backward_steps: Steps back.
        first_backward_step: Row of the first of them, and the stamps before and at it; None without any.
        n_equal_stamps: Rows with the stamp of the row before.
        n_gaps: Steps that are gaps.
        gap_times: Where the first gaps begin.
        gap_seconds: Time within gaps, all together.
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
    irregular_share: float
    n_backward_steps: int
    first_backward_step: tuple[int, float, float] | None
    n_equal_stamps: int
    n_gaps: int
    gap_times: tuple[float, ...]
    gap_seconds: float

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
    if not step > 0.0 or THRESHOLDS.min_rate_hz <= 1.0 / step <= THRESHOLDS.max_rate_hz:
        return "s"
    rates = {unit: 1.0 / (step * size) for unit, size in TIME_UNITS.items()}
    sensible = [unit for unit, rate in rates.items() if THRESHOLDS.min_rate_hz <= rate <= THRESHOLDS.max_rate_hz]
    return min(sensible, key=lambda unit: abs(math.log(rates[unit] / THRESHOLDS.usual_rate_hz)), default="s")


class ClockAccumulator:
    """Statistics of the stamps so far.

    Args:
        step: Typical step of the first stamps, as they are; NaN if not known.
    """

    def __init__(self, step: float) -> None:
        self.unit = likely_unit(step)
        self.size = TIME_UNITS.get(self.unit, 1.0)
        self.step = step * self.size
        self.gap = Grid(1.0 / self.step, irregular=False).gap if self.step > 0.0 else math.inf
        self.n_samples = 0
        self._before = math.nan
        self._first, self._last = math.inf, -math.inf
        self._shortest, self._longest, self._longest_after = math.inf, -math.inf, math.nan
        self._sums = np.zeros(4)  # usual steps: number, sum, sum of squares, how many are irregular
        self._n_backward = self._n_equal = self._n_gaps = 0
        self._first_backward: tuple[int, float, float] | None = None
        self._gap_times: list[float] = []
        self._gap_seconds = 0.0
        self._steps, self._n_steps, self._every = np.zeros(0), 0, 1  # evenly spread ones of all so far

    def add(self, stamps: Array) -> tuple[Array, Array]:
        """The next stamps; returns them [s], and the step to each [s], NaN for the first."""
        time = np.where(np.isfinite(stamps), stamps * self.size, math.nan)
        before = np.concatenate([[self._before], time[:-1]])
        steps = time - before
        self._first = min(self._first, float(np.fmin.reduce(time)))
        self._last = max(self._last, float(np.fmax.reduce(time)))
        forward = steps[steps > 0.0]
        self._shortest = min(self._shortest, float(forward.min(initial=math.inf)))
        self._remember_steps(forward)
        usual = forward[forward <= self.gap]
        irregular = np.count_nonzero(np.abs(usual - self.step) > THRESHOLDS.irregular_step_share * self.step)
        self._sums += np.array([len(usual), usual.sum(), np.square(usual).sum(), irregular])
        self._n_equal += int(np.count_nonzero(steps == 0.0))
        self._count_backward_steps(before, time)
        self._count_gaps(before, steps)
        self.n_samples += len(time)
        self._before = float(time[-1])
        return time, steps

    def _remember_steps(self, steps: Array) -> None:
        """A bounded number of steps, evenly spread over all that came."""
        self._steps = np.concatenate([self._steps, steps[-self._n_steps % self._every :: self._every]])
        self._n_steps += len(steps)
        while len(self._steps) > 2 * _MEDIAN_STEPS:
            self._steps, self._every = self._steps[::2], 2 * self._every

    def _count_backward_steps(self, before: Array, time: Array) -> None:
        back = time < before
        if back.any() and self._first_backward is None:
            i = int(np.argmax(back))
            self._first_backward = self.n_samples + i + 1, float(before[i]), float(time[i])
        self._n_backward += int(np.count_nonzero(back))

    def _count_gaps(self, before: Array, steps: Array) -> None:
        if np.fmax.reduce(steps) > self._longest:
            i = int(np.nanargmax(steps))
            self._longest, self._longest_after = float(steps[i]), float(before[i])
        gaps = np.flatnonzero(steps > self.gap)
        self._gap_times.extend(before[gaps[: _NAMED_GAPS - len(self._gap_times)]].tolist())
        self._n_gaps += len(gaps)
        self._gap_seconds += float(steps[gaps].sum())

    def statistics(self) -> ClockStatistics:
        """The record."""
        count, total, squares, irregular = self._sums
        mean = float(total / count) if count else math.nan
        spread = math.sqrt(max(0.0, squares / count - mean * mean)) / mean if count else math.nan
        return ClockStatistics(
            unit=self.unit,
            n_samples=self.n_samples,
            first=self._first if math.isfinite(self._first) else math.nan,
            last=self._last if math.isfinite(self._last) else math.nan,
            step=float(np.median(self._steps)) if len(self._steps) else math.nan,
            shortest=self._shortest,
            longest=self._longest,
            longest_after=self._longest_after,
            spread=spread,
            irregular_share=float(irregular / count) if count else math.nan,
            n_backward_steps=self._n_backward,
            first_backward_step=self._first_backward,
            n_equal_stamps=self._n_equal,
            n_gaps=self._n_gaps,
            gap_times=tuple(self._gap_times),
            gap_seconds=self._gap_seconds,
        )
