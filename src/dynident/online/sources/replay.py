"""Recorded samples at the pace at which they were taken, or any other."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from os import PathLike

import numpy as np

from dynident.arrays import Array
from dynident.errors import InputError
from dynident.logs.file import LogFile
from dynident.logs.log import Log, LogSource, check_locked
from dynident.logs.read import Columns, stream_log
from dynident.logs.tables import LogWarning
from dynident.online.options import MOST_TOGETHER
from dynident.online.sources.source import POLL, Samples, Source, signals_of
from dynident.online.state import Counters
from dynident.online.thresholds import THRESHOLDS
from dynident.robot.model import Robot


def check_pace(pace: float) -> float:
    """A pace: 1 as recorded, 10 ten times as fast, infinity as fast as possible.

    Raises:
        InputError: For anything but a positive number.
    """
    if isinstance(pace, bool) or not isinstance(pace, int | float) or math.isnan(pace) or pace <= 0.0:
        raise InputError(f"pace is {pace!r}; expected 1 (as recorded), another positive number, or max")
    return float(pace)


def paced_blocks(blocks: Iterable[Samples], pace: float, tally: Counters) -> Iterator[Samples | None]:
    """The samples, each not before its time has come; None at least every 0.1 s while waiting.

    Args:
        blocks: Samples as fast as they can be had.
        pace: How many times as fast as their stamps say; infinity never waits.
        tally: Counts those that were handed on.
    """
    for block in _pace(blocks, pace):
        tally.received += 0 if block is None else len(block)
        yield block


def _pace(blocks: Iterable[Samples], pace: float) -> Iterator[Samples | None]:
    if math.isinf(pace):
        for block in blocks:
            for first in range(0, len(block), MOST_TOGETHER):
                yield block.chosen(slice(first, first + MOST_TOGETHER))
        return
    zero: float | None = None  # real time at which a stamp of zero is due
    for block in blocks:
        due = block.time / pace
        if zero is None and len(due):
            zero = time.perf_counter() - float(due[0])
        done = 0
        while done < len(block):
            assert zero is not None
            now = time.perf_counter() - zero
            # Stamps of a damaged log may jump; what comes after such a sample is due with it at the latest.
            waiting = np.flatnonzero(due[done : done + MOST_TOGETHER] > now)
            ready = done + (int(waiting[0]) if len(waiting) else min(MOST_TOGETHER, len(block) - done))
            if ready > done:
                arrived = due[done:ready] + zero
                yield replace(block.chosen(slice(done, ready)), arrived=arrived)
                done = ready
            elif due[done] - now > THRESHOLDS.clock_ahead_s:  # a jump of the clock, for which nobody wants to wait
                zero -= float(due[done]) - now
            else:
                time.sleep(min(POLL, float(due[done]) - now))
                yield None


# ----------------------------------------------------------------------------------------------------------------------
# Logs as streams: any file that dynident reads, in bounded memory, at any pace.

AnyLog = LogSource | str | PathLike[str]


class Replay(Source):
    """One log, or several one after the other, as if the robot was at work.

    Rows that a reader of logs would refuse the whole file for (numbers that are not finite, time that runs back) are
    counted and left out, as in any other stream. The first log keeps its stamps; the others follow it.

    Args:
        robot: The robot.
        logs: The logs, or paths of them.
        pace: 1 as recorded, 10 ten times as fast, infinity as fast as possible.
        columns: Column file or mapping for files with other column names.
        start: Leave out samples before this time of each log [s].
        stop: Leave out samples after this time of each log [s].

    Raises:
        LogError: Naming the file and what it lacks.
    """

    def __init__(
        self,
        robot: Robot,
        logs: AnyLog | Sequence[AnyLog],
        *,
        pace: float = math.inf,
        columns: Columns = None,
        start: float | None = None,
        stop: float | None = None,
    ) -> None:
        several = list(logs) if isinstance(logs, list | tuple) else [logs]
        self.robot, self.pace, self.tally = robot, check_pace(pace), Counters()
        self._until = -math.inf
        self._window = (-math.inf if start is None else start, math.inf if stop is None else stop)
        self._logs: list[LogSource] = [
            log if hasattr(log, "blocks") else _open_log(log, robot, columns)  # type: ignore[arg-type,misc]
            for log in several
        ]
        self.label = ", ".join(log.label for log in self._logs)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of results should know about the logs."""
        return tuple(words for log in self._logs for words in getattr(log, "warnings", ()))

    def blocks(self) -> Iterator[Samples | None]:
        """All samples, each at its time."""
        return paced_blocks(self._samples(), self.pace, self.tally)

    def skip(self, until: float) -> None:
        """Leave out samples with stamps up to this [s], which an earlier run has seen."""
        self._until = until

    def _samples(self) -> Iterator[Samples]:
        """The samples of all logs on one clock."""
        shift, last = 0.0, None
        for log in self._logs:
            first = True
            for rows in _raw(log):
                block = self._sound(rows)
                if first and last is not None and len(block):
                    shift = last + THRESHOLDS.pause_s - float(block.time[0])
                first = first and not len(block)
                block = replace(block, time=block.time + shift) if shift else block
                last = float(block.time[-1]) if len(block) else last
                new = block.time > self._until
                if new.any():
                    yield block if new.all() else block.chosen(new)

    def _sound(self, rows: Log) -> Samples:
        """The rows of the window whose numbers can be used."""
        check_locked(rows, self.robot)
        values = signals_of(rows, self.robot)
        good = (np.abs(values) <= THRESHOLDS.largest_signal).all(axis=1)
        good &= np.abs(rows.time) <= THRESHOLDS.latest_stamp_s
        if not good.all():
            count = int((~good).sum())
            self.tally.received += count
            self.tally.refuse(f"{rows.label}: has numbers that are not finite", count)
        good &= (rows.time >= self._window[0]) & (rows.time <= self._window[1])
        block = Samples.of_signals(rows.time, values, len(self.robot.joint_names))
        return block if good.all() else block.chosen(good)


def _open_log(path: str | PathLike[str], robot: Robot, columns: Columns) -> LogFile:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LogWarning)  # they can be had from the source
        # One pass needs no copy of a text's numbers for the next.
        return replace(stream_log(path, robot, columns=columns), kept=None)


def _raw(log: LogSource) -> Iterator[Log]:
    """A log's rows as they are, where it can give them so."""
    if not isinstance(log, LogFile):
        yield from log.blocks()
        return
    for block in log.rows():
        channels: dict[str, Array] = dict(zip(log.names, block[1:], strict=True))
        yield Log(log.source, "", block[0], channels, log.unused, log.role, log.label)
