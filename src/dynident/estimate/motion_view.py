"""Speeds and accelerations of a stretch of a log, by plain differences and as filtered: what filtering is for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from dynident.arrays import Array, frozen
from dynident.logs.log import joint_positions
from dynident.signals.observe import Observations

SECONDS = 4.0  # of the stretch
_LEAD, _LATEST = 0.1, 60.0  # share of the log, and time [s], after which it begins
_RAW, _FILTERED = "motion_raw", "motion_filtered"


@dataclass(frozen=True)
class MotionView:
    """A stretch of the first training log; arrays are (n, n_joints) but the times (n,).

    Attributes:
        raw_time: Stamps of the log [s].
        raw_speed: Differences of neighbouring positions.
        raw_acceleration: Differences of those.
        time: Stamps of the filtered motion [s].
        speed: As the equations have it.
        acceleration: As the equations have it.
    """

    raw_time: Array
    raw_speed: Array
    raw_acceleration: Array
    time: Array
    speed: Array
    acceleration: Array

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def stored(self) -> dict[str, Array]:
        """Arrays from which `from_stored` makes the record again."""
        return {
            _RAW: np.vstack([self.raw_time, self.raw_speed.T, self.raw_acceleration.T]),
            _FILTERED: np.vstack([self.time, self.speed.T, self.acceleration.T]),
        }

    @staticmethod
    def from_stored(arrays: Mapping[str, Array], n_joints: int) -> MotionView | None:
        """The record of `stored`; None where there is none."""
        if _RAW not in arrays or _FILTERED not in arrays:
            return None
        cuts = [1, 1 + n_joints]
        raw, filtered = (np.split(arrays[name], cuts) for name in (_RAW, _FILTERED))
        return MotionView(raw[0][0], raw[1].T, raw[2].T, filtered[0][0], filtered[1].T, filtered[2].T)


def motion_view(one: Observations) -> MotionView | None:
    """Look at a stretch of a log; None where it has too few rows to differentiate."""
    start = one.survey.start + min(_LEAD * one.survey.duration, _LATEST)
    stop = start + SECONDS
    blocks = list(takewhile(lambda block: block.time[0] <= stop, one.log.blocks()))
    time = np.concatenate([block.time for block in blocks])
    q = np.concatenate([joint_positions(block, one.robot) for block in blocks])
    fresh = np.concatenate([[True], np.diff(time) > 0.0])  # a stamp twice has no difference
    own = fresh & (time >= start) & (time <= stop)
    time, q = time[own], q[own]
    if len(time) < 3:
        return None
    speed = np.diff(q, axis=0) / np.diff(time)[:, None]
    acceleration = np.diff(speed, axis=0) / (0.5 * (time[2:] - time[:-2]))[:, None]
    parts = [
        (inside, motion.time, motion.dq, motion.ddq)
        for motion in takewhile(lambda motion: motion.time[0] <= stop, one.motion(()))
        if (inside := (motion.time >= start) & (motion.time <= stop)).any()
    ]
    if not parts:
        return None
    filtered = [np.concatenate([part[k][part[0]] for part in parts]) for k in (1, 2, 3)]
    return MotionView(time[1:-1], speed[1:], acceleration, *filtered)
