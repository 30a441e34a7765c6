"""`look`: one pass over a log that refuses nothing, from which the preview and the findings are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynident.arrays import ReadOnlyDict
from dynident.check.clock import Clock, ClockTally, typical_step
from dynident.check.motion import Motion, MotionTally
from dynident.check.raw import Raw, kind_of, number_of, raw
from dynident.check.tally import ChannelTally, Flags, Repeats, Values
from dynident.errors import InputError
from dynident.logs.source import LogSource
from dynident.robot.model import Robot


@dataclass(frozen=True)
class Look:
    """What one pass over a log brought to light.

    Attributes:
        raw: The log, its channels and where they came from.
        clock: Its stamps.
        values: Its channels, "t" first.
        repeats: Rows that repeat.
        motion: How its joints move.
    """

    raw: Raw
    clock: Clock
    values: Mapping[str, Values]
    repeats: Repeats
    motion: Motion


def look(log: LogSource, robot: Robot | None = None) -> Look:
    """Go through a log once, in memory that does not grow with it.

    NaN, infinite numbers and time that runs backwards are counted, not refused.

    Args:
        log: The log; open it with `stream_log`, since `read_log` refuses what is to be seen here.
        robot: For the gear ratios, where the log has positions of motor shafts only.

    Raises:
        LogError: If a row cannot be read at all.
        InputError: If the window of the log has no sample.
    """
    one = raw(log)
    tallies: _Tallies | None = None
    for block in one.blocks():
        if tallies is None:
            tallies = _Tallies(one, typical_step(block[0]), robot)
        tallies.feed(block)
    if tallies is None:
        raise InputError(f"{log.source}: has no sample in the window; widen it")
    return tallies.finish()


class _Tallies:
    """All that is gathered in a pass."""

    def __init__(self, one: Raw, step: float, robot: Robot | None) -> None:
        self.raw = one
        self.clock = ClockTally(step)
        self.motion = MotionTally(one.names, self.clock.step, self.clock.gap, _gears(robot))
        self.channels = ChannelTally(one.names, self.motion.positions)
        joints = self.motion.joints
        numbers = [0 if kind_of(name) == "t" else number_of(name) for name in one.names]
        self._joint = [joints.index(number) if number in joints else len(joints) for number in numbers]

    def feed(self, block: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> None:
        """The next rows, (n_names, n)."""
        time, steps = self.clock.feed(block[0])
        moving = self.motion.feed(time, steps, block)
        # What belongs to no joint, or to one without a position, is looked at throughout.
        everywhere: Flags = np.ones((1, block.shape[1]), dtype=bool)
        self.channels.feed(block, np.vstack([moving, everywhere])[self._joint])

    def finish(self) -> Look:
        """The record."""
        values = ReadOnlyDict(self.channels.values())
        return Look(self.raw, self.clock.finish(), values, self.channels.repeats(), self.motion.finish())


def _gears(robot: Robot | None) -> dict[int, float]:
    if robot is None:
        return {}
    return {robot.joints[j].number: float(robot.drive.gear_ratios[i]) for i, j in enumerate(robot.active)}
