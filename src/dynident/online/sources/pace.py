"""Recorded samples at the pace at which they were taken, or any other."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from dynident.errors import InputError
from dynident.online.sources.source import MOST, POLL, Samples
from dynident.online.stream_counters import Tally

_LONGEST_WAIT = 60.0  # [s] a longer pause in a log is a jump of its clock, for which nobody wants to wait


def check_speed(speed: float) -> float:
    """A pace: 1 as recorded, 10 ten times as fast, infinity as fast as possible.

    Raises:
        InputError: For anything but a positive number.
    """
    if isinstance(speed, bool) or not isinstance(speed, int | float) or math.isnan(speed) or speed <= 0.0:
        raise InputError(f"speed is {speed!r}; expected 1 (as recorded), another positive number, or max")
    return float(speed)


class Paced:
    """A source whose samples are recorded or computed, handed on at a pace.

    Args:
        speed: See `check_speed`.

    Attributes:
        tally: Counts what was handed on, and what of it is malformed.
    """

    def __init__(self, speed: float) -> None:
        self.speed, self.tally = check_speed(speed), Tally()
        self._until = -math.inf

    def blocks(self) -> Iterator[Samples | None]:
        """All samples, each at its time."""
        for block in paced(self._samples(), self.speed):
            self.tally.received += 0 if block is None else len(block)
            yield block

    def skip(self, until: float) -> None:
        """Leave out samples with stamps up to this [s], which an earlier run has seen."""
        self._until = until

    def close(self) -> None:
        """Nothing to give back."""

    def _samples(self) -> Iterator[Samples]:
        """The samples as fast as they can be had, without those up to `_until`."""
        raise NotImplementedError


def paced(blocks: Iterable[Samples], speed: float) -> Iterator[Samples | None]:
    """The samples, each not before its time has come; None at least every 0.1 s while waiting.

    Args:
        blocks: Samples as fast as they can be had.
        speed: How many times as fast as their stamps say; infinity never waits.
    """
    if math.isinf(speed):
        for block in blocks:
            for first in range(0, len(block), MOST):
                yield block.chosen(slice(first, first + MOST))
        return
    zero: float | None = None  # real time at which a stamp of zero is due
    for block in blocks:
        due = block.time / speed
        if zero is None and len(due):
            zero = time.perf_counter() - float(due[0])
        done = 0
        while done < len(block):
            assert zero is not None
            now = time.perf_counter() - zero
            # Stamps of a damaged log may jump; what comes after such a sample is due with it at the latest.
            waiting = np.flatnonzero(due[done : done + MOST] > now)
            ready = done + (int(waiting[0]) if len(waiting) else min(MOST, len(block) - done))
            if ready > done:
                arrived = due[done:ready] + zero
                yield replace(block.chosen(slice(done, ready)), arrived=arrived)
                done = ready
            elif due[done] - now > _LONGEST_WAIT:
                zero -= float(due[done]) - now
            else:
                time.sleep(min(POLL, float(due[done]) - now))
                yield None
