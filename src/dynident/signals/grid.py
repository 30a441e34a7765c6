"""From stamps as they came to uniform stretches: repeated rows dropped, gaps cut, the rest resampled."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from dynident.checks import Array
from dynident.logs.log import Log, LogError, joint_positions, joint_speeds, row_torques
from dynident.robot.model import Robot

GAP_STEPS, GAP_SECONDS = 5.0, 0.05  # a step longer than both of these is a gap
_SHORTEST = 16  # samples of a stretch worth keeping
_LONGEST_REPEAT = 3  # rows: a longer run of equal rows is standstill, not a stuttering logger
_UNIFORM = 1e-3  # share of a step by which stamps may differ from a uniform grid


@dataclass(frozen=True)
class Stretch:
    """A uniformly sampled piece of a log.

    Attributes:
        start: Time of the first sample [s].
        rate: Samples per second.
        q: Joint positions, (n_samples, n_joints).
        dq: Measured joint speeds, or None.
        tau: Torque at the actuated coordinates, or None.
    """

    start: float
    rate: float
    q: Array
    dq: Array | None
    tau: Array | None

    @property
    def time(self) -> Array:
        """Stamps of the samples [s]."""
        return self.start + np.arange(len(self.q)) / self.rate


@dataclass(frozen=True)
class Timing:
    """What was found in a log's stamps.

    Attributes:
        rate: Rate of the uniform grid [Hz].
        repeated: Rows dropped because they repeat the one before.
        gaps: Times at which a gap begins [s].
        resampled: Whether stamps were irregular.
        too_short: Samples dropped because their stretch was too short.
    """

    rate: float
    repeated: int
    gaps: tuple[float, ...]
    resampled: bool
    too_short: int


def uniform_stretches(log: Log, robot: Robot, *, torque: bool = True) -> tuple[list[Stretch], Timing]:
    """The log as uniformly sampled stretches.

    Args:
        log: The log.
        robot: The robot.
        torque: Whether torque is wanted; without it the log may have none, and what it has is not looked at.
    """
    fresh = ~_repeats(log)
    t = log.time[fresh]
    signals = [joint_positions(log, robot)[fresh]]
    speeds = joint_speeds(log, robot)
    if speeds is not None:
        signals.append(speeds[fresh])
    if torque:
        signals.append(row_torques(log, robot)[fresh])
    values = np.hstack(signals)
    steps = np.diff(t)
    if len(steps) < _SHORTEST:
        raise LogError(log.source, f"has {len(t)} different samples; at least {_SHORTEST} are needed")
    step = float(np.median(steps))
    cuts = np.flatnonzero(steps > max(GAP_STEPS * step, GAP_SECONDS))
    edges = [0, *(int(cut) + 1 for cut in cuts), len(t)]
    irregular = bool(np.abs(np.delete(steps, cuts) - step).max() > _UNIFORM * step)
    n = signals[0].shape[1]
    stretches: list[Stretch] = []
    short = 0
    for first, last in itertools.pairwise(edges):
        if last - first < _SHORTEST:
            short += last - first
            continue
        own_t, own = t[first:last], values[first:last]
        if irregular:
            count = int((own_t[-1] - own_t[0]) / step) + 1
            own = CubicSpline(own_t, own)(own_t[0] + step * np.arange(count))
        parts = [own[:, i * n : (i + 1) * n] for i in range(len(signals))]
        dq = parts[1] if speeds is not None else None
        tau = parts[-1] if len(parts) > 1 + (speeds is not None) else None
        stretches.append(Stretch(float(own_t[0]), 1.0 / step, parts[0], dq, tau))
    if not stretches:
        raise LogError(log.source, f"no stretch without a gap has {_SHORTEST} samples; check the time column")
    timing = Timing(1.0 / step, int((~fresh).sum()), tuple(float(t[c]) for c in cuts), irregular, short)
    return stretches, timing


def _repeats(log: Log) -> NDArray[np.bool_]:
    """Rows that repeat the one before, by stamp or (in short runs) by value."""
    still = np.diff(log.time) <= 0.0
    same = np.ones(len(log) - 1, dtype=bool)
    for values in log.channels.values():
        same &= np.diff(values) == 0.0
    if log.channels:
        edges = np.flatnonzero(np.diff(np.concatenate([[False], same, [False]]).astype(int)))
        for first, last in zip(edges[::2], edges[1::2], strict=True):
            if last - first > _LONGEST_REPEAT:
                same[first:last] = False
        still = still | same
    return np.concatenate([[False], still])
