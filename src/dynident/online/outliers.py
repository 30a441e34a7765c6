"""Positions that jump: steps that no joint velocity explains, from encoder glitches and from logs glued together.

A sample that jumps waits for the next one, which shows what it was. If that goes on from the sample before, the jump
was a glitch and is dropped; if it goes on from the jump, the motion does, and the filters start again as after a gap.
If it steps on as far as the jump itself, the joint is simply faster than its limit says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.online.thresholds import THRESHOLDS
from dynident.robot.model import Robot

Part = tuple[bool, Array, Array]  # whether the filters are to start again, stamps (n,), signals (n, width)


def velocity_limits(robot: Robot) -> Array:
    """(n_joints,) velocities that moving joints do not exceed, with a margin [rad/s or m/s]."""
    found = []
    for place in robot.moving:
        joint = robot.joints[robot.active[place]]
        default = THRESHOLDS.sliding_velocity_m_s if joint.kind == "prismatic" else THRESHOLDS.velocity_rad_s
        found.append(
            THRESHOLDS.velocity_margin * joint.limits.velocity if joint.limits.velocity else default
        )  # some files state zero
    return np.array(found)


class OutlierGate:
    """Lets samples pass, except those that jump.

    Args:
        limits: (n_joints,) largest velocity of each joint [rad/s or m/s].
        sample_time: Time between samples [s].

    Attributes:
        jumps: Times that the motion went on elsewhere.
        glitches: Samples that were dropped.
        late: Samples that came after one that waited, but with an earlier stamp or the same.
    """

    def __init__(self, limits: Array, sample_time: float) -> None:
        self.step, self.longest, self.n = sample_time, THRESHOLDS.longest_gap_s(sample_time), len(limits)
        self.limits = np.array(limits)
        self._bounds = self.limits.tolist()
        self.jumps = self.glitches = self.late = 0
        self._time, self._q = -np.inf, [0.0] * self.n  # of the last sample that passed
        self._waiting: tuple[float, Array] | None = None

    def passes(self, time: float, values: Array) -> bool:
        """Let a sample pass where there is nothing to decide, the usual and quick case; else it is for `push`."""
        gap = time - self._time
        if self._waiting is not None or not 0.0 < gap <= self.longest:
            return False
        reach, q = max(gap, self.step), values[: self.n].tolist()
        for new, old, bound in zip(q, self._q, self._bounds, strict=True):
            if abs(new - old) > bound * reach:
                return False
        self._time, self._q = time, q
        return True

    def push(self, time: float, values: Array) -> list[Part]:
        """One sample (width,), positions first; what may go on to the filters, perhaps with the one that waited."""
        if self._waiting is not None:
            return self._decide(*self._waiting, time, values)
        if self._is_explained(self._time, self._q, time, values):
            return [self._pass_on(time, values)]
        self._waiting = time, values
        return []

    def push_many(self, time: Array, values: Array) -> Iterator[Part]:
        """Many samples (n, width); the same as one after the other."""
        start = 0
        while start < len(time):
            stop = start if self._waiting is not None else self._quiet(time, values, start)
            if stop > start:
                self._time, self._q = float(time[stop - 1]), values[stop - 1, : self.n].tolist()
                yield False, time[start:stop], values[start:stop]
                start = stop
            else:
                yield from self.push(float(time[start]), values[start])
                start += 1

    def _quiet(self, time: Array, values: Array, start: int) -> int:
        """End of the samples from `start` on that all follow each other without a jump."""
        q = np.vstack([self._q, values[start:, : self.n]])
        gaps = np.diff(time[start:], prepend=self._time)
        steps = np.abs(np.diff(q, axis=0)) > self.limits * np.maximum(gaps, self.step)[:, None]
        bad = np.flatnonzero((steps.any(1) & (gaps <= self.longest)) | (gaps <= 0.0))
        return start + (int(bad[0]) if len(bad) else len(gaps))

    def _is_explained(self, before: float, q: Array | list[float], time: float, values: Array) -> bool:
        """Whether a joint's velocity explains the step, or stamps say that it is none."""
        gap = time - before
        if not 0.0 < gap <= self.longest:
            return True
        return bool((np.abs(values[: self.n] - np.asarray(q)) <= self.limits * max(gap, self.step)).all())

    def _pass_on(self, time: float, values: Array, restart: bool = False) -> Part:
        if time > self._time or time < self._time - THRESHOLDS.clock_set_back_s:  # a late one is the filters' to count
            self._time, self._q = time, values[: self.n].tolist()
        return restart, np.array([time]), values[None]

    def _decide(self, jumped: float, others: Array, time: float, values: Array) -> list[Part]:
        """What the sample that waited was, by the next one."""
        q, pending, gap = values[: self.n], others[: self.n], time - jumped
        if gap <= 0.0 and time > jumped - THRESHOLDS.clock_set_back_s:  # late or repeated: it shows nothing
            self.late += 1
            return []
        if self._is_explained(self._time, self._q, time, values):
            self._waiting = None
            self.glitches += 1
            return [self._pass_on(time, values)]
        if self._is_explained(jumped, pending, time, values):
            self._waiting = None
            self.jumps += 1
            return [self._pass_on(jumped, others, restart=True), self._pass_on(time, values)]
        velocities = (
            (pending - np.array(self._q)) / max(jumped - self._time, self.step),
            (q - pending) / max(gap, self.step),
        )
        if (np.abs(velocities[1] - velocities[0]) <= self.limits).all():  # a fast joint: from now on it is believed
            self._waiting = None
            self.limits = np.maximum(self.limits, THRESHOLDS.velocity_margin * np.maximum(*np.abs(velocities)))
            self._bounds = self.limits.tolist()
            return [self._pass_on(jumped, others), self._pass_on(time, values)]
        self.glitches += 1
        self._waiting = time, values
        return []

    def as_arrays(self) -> dict[str, Any]:
        """The memory as plain arrays, for checkpoints."""
        waiting = np.zeros(0) if self._waiting is None else np.array([self._waiting[0], *self._waiting[1]])
        counts = np.array([self.jumps, self.glitches, self.late], dtype=np.int64)
        last = np.array([self._time, *self._q])
        return {"limits": self.limits.copy(), "last": last, "waiting": waiting, "counts": counts}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Continue from what `as_arrays` gave."""
        self.limits, waiting = np.array(arrays["limits"]), np.array(arrays["waiting"])
        self._bounds = self.limits.tolist()
        self._time, self._q = float(arrays["last"][0]), arrays["last"][1:].tolist()
        self._waiting = (float(waiting[0]), waiting[1:]) if len(waiting) else None
        self.jumps, self.glitches, self.late = (int(x) for x in arrays["counts"])
