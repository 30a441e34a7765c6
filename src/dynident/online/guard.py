"""`Guard`: lets each instant of a stream pass once and in order, and counts what it keeps back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.online.sources.source import Samples
from dynident.online.state import Counters
from dynident.online.thresholds import THRESHOLDS

_TYPICAL_STEPS = 64  # whose median is the typical one
_FIRST_STEPS = 16  # the same at the beginning; before, nothing is known about gaps


class Guard:
    """Order, repetition and gaps of a stream by its stamps, and by its sequence numbers where it has some.

    One stamp that is far off, in either direction, must not make all that follow look late: it is kept back, and only
    when the next ones go on from there is it taken as the sender's new clock. Stamps are then shifted, so that those
    which the guard lets pass always rise.

    Args:
        tally: What it counts into.
        last: Stamp of the last sample that has been used already [s]; None for a stream that begins.
    """

    def __init__(self, tally: Counters, last: float | None = None) -> None:
        self._tally = tally
        self._last = last
        self._number: int | None = None
        self._shift = 0.0
        self._other: tuple[float, int] | None = None  # last stamp on another clock, and samples in order there
        self._step: float | None = None
        self._steps: list[float] = []

    def admit(self, block: Samples) -> Samples | None:
        """Those samples of a block that are new, with stamps that rise; None when there is none."""
        if self._all_well(block.time, block.sequence):
            return self._shift_stamps(block, None)
        numbers = [-1] * len(block.time) if block.sequence is None else block.sequence.tolist()
        stamps = block.time.tolist()
        passed, shifts = [], []
        for place, (stamp, number) in enumerate(zip(stamps, numbers, strict=True)):
            if self._one(stamp, number):
                passed.append(place)
                shifts.append(self._shift)
        return self._shift_stamps(block.chosen(passed), np.array(shifts)) if passed else None

    def _shift_stamps(self, block: Samples, shifts: Array | None) -> Samples:
        if shifts is None:
            return block if self._shift == 0.0 else replace(block, time=block.time + self._shift)
        return replace(block, time=block.time + shifts) if shifts.any() else block

    def _all_well(self, time: Array, sequence: NDArray[np.int64] | None) -> bool:
        """The quick way for long blocks of a log: nothing to count, nothing to keep back."""
        if len(time) < _TYPICAL_STEPS or sequence is not None or self._step is None or self._last is None:
            return False
        steps = np.diff(time, prepend=self._last - self._shift)
        if not (steps.min() > 0.0 and steps.max() <= THRESHOLDS.gap_steps * self._step):
            return False
        self._last, self._other = float(time[-1]) + self._shift, None
        self._step = float(np.median(steps[-_TYPICAL_STEPS:]))
        return True

    def _one(self, stamp: float, number: int) -> bool:
        """Whether a sample may pass."""
        time = stamp + self._shift
        if self._last is None:
            self._accept(time, number)
            return True
        if time == self._last:
            self._tally.repeated += 1
            return False
        if self._last < time <= self._last + THRESHOLDS.clock_ahead_s:
            self._count_gap(time - self._last, number)
            self._accept(time, number)
            return True
        if not self._is_confirmed(stamp):
            self._tally.late += 1
            return False
        self._tally.restarts += 1
        self._shift = self._last + THRESHOLDS.pause_s - stamp
        self._number = None
        self._accept(stamp + self._shift, number)
        return True

    def _accept(self, time: float, number: int) -> None:
        if self._last is not None:
            self._steps.append(time - self._last)
            if len(self._steps) == (_FIRST_STEPS if self._step is None else _TYPICAL_STEPS):
                self._step = sorted(self._steps)[len(self._steps) // 2]
                self._steps.clear()
        self._last, self._other = time, None
        self._number = number if number >= 0 else None

    def _is_confirmed(self, stamp: float) -> bool:
        """Whether enough samples in a row have come in order on another clock."""
        before, count = self._other if self._other is not None else (stamp, 0)
        in_order = count == 0 or before < stamp <= before + THRESHOLDS.clock_ahead_s
        self._other = (stamp, count + 1 if in_order else 1)
        return self._other[1] >= THRESHOLDS.confirming_samples

    def _count_gap(self, gap: float, number: int) -> None:
        """Count what must have been sent since the last sample."""
        if number >= 0 and self._number is not None:
            self._tally.dropped += max(0, number - self._number - 1)
        elif number < 0 and self._step is not None and THRESHOLDS.gap_steps * self._step < gap < THRESHOLDS.pause_s:
            self._tally.dropped += max(0, round(gap / self._step) - 1)
