"""Repeats of a motion: parts of logs that go through the same states once more.

A model that was fitted to one of them has seen the other, so they are left out together; and what residuals of repeats
have in common is no noise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.arrays import Array, Mask, record
from dynident.signals.observations import Observations
from dynident.signals.thresholds import THRESHOLDS

_HARDLY = 1e-2  # share of the fastest joint's effective velocity below which a joint is held, and shakes


@record
class MotionStates:
    """States along some logs, evenly spaced in time.

    Attributes:
        states: (n, 2 n_joints) positions and velocities.
        time: (n,) stamps [s].
        log: (n,) number of the log of each.
        fastest: (n_joints,) largest velocity of each joint.
        period: Of the typical frequency of the motion [s].
    """

    states: Array
    time: Array
    log: Array
    fastest: Array
    period: float


def motion_states(observations: Sequence[Observations], seconds: float = np.inf) -> MotionStates:
    """States of logs, as many per period as tell a repeat, and not more than can be compared with each other.

    Args:
        observations: The logs.
        seconds: Length of the part of each log that is looked at [s].
    """
    typical = float(np.median([one.survey.typical for one in observations]))
    total = sum(min(one.survey.duration, seconds) for one in observations)
    period = 1.0 / typical if typical > 0.0 else total
    spacing = max(THRESHOLDS.repeat_spacing * period, total / THRESHOLDS.max_states)
    found: list[tuple[Array, Array, Array]] = []
    fastest = np.zeros(len(observations[0].robot.joint_names))
    for number, one in enumerate(observations):
        for block in one.motion():
            end = int(np.searchsorted(block.time, one.survey.start + seconds, side="right"))
            if not end:
                break
            step = max(1, round(spacing * block.rate))
            own = slice(-block.first % step, end, step)
            fastest = np.maximum(fastest, np.abs(block.dq[:end]).max(0))
            time = block.time[own]
            found.append((np.hstack([block.q[own], block.dq[own]]), time, np.full(len(time), float(number))))
    states, stamps, logs = (np.concatenate(part) for part in zip(*found, strict=True))
    return MotionStates(states, stamps, logs, fastest, period)


def find_repeats(found: MotionStates) -> Mask:
    """Which states repeat which others: (n, n), True where the motion around state j goes as that around state i did.

    States are compared in standard deviations of positions and velocities, RMS over the joints that move. Between two
    samples a motion is taken to be straight. Where a single state recurs, motions may cross: half a period must agree.
    """
    n_joints = found.states.shape[1] // 2
    spread = found.states.std(0)
    moving = np.tile(spread[n_joints:] > _HARDLY * spread[n_joints:].max(initial=0.0), 2) & (spread > 0.0)
    if not moving.any() or len(found.states) < 2:
        return np.zeros((len(found.states),) * 2, dtype=bool)
    x = found.states[:, moving] / (spread[moving] * np.sqrt(np.count_nonzero(moving)))
    same_log = found.log[1:] == found.log[:-1]
    steps = np.diff(x, axis=0) * same_log[:, None]
    # Half a step to either side, along the motion.
    half = 0.25 * (np.vstack([steps, np.zeros((1, x.shape[1]))]) + np.vstack([np.zeros((1, x.shape[1])), steps]))
    square, length = (x**2).sum(1), np.maximum((half**2).sum(1), 1e-300)
    along = x @ half.T - (x * half).sum(1)
    share = np.clip(along / length, -1.0, 1.0)
    away = square[:, None] + square - 2.0 * (x @ x.T) - share * (2.0 * along - share * length)
    spacing = float(np.median(np.diff(found.time)[same_log])) if same_log.any() else found.period
    near = (found.log[:, None] == found.log) & (np.abs(found.time[:, None] - found.time) < 0.5 * found.period)
    return _lasting((away < THRESHOLDS.repeat_distance**2) & ~near, round(0.5 * found.period / spacing))


def _lasting(matches: Mask, run: int) -> Mask:
    """The matches that belong to as many in a row: state i + k matches j + k."""
    begins = matches.copy()
    for k in range(1, run):
        begins[:-k, :-k] &= matches[k:, k:]
        begins[-k:] = begins[:, -k:] = False
    lasting = begins.copy()
    for k in range(1, run):
        lasting[k:, k:] |= begins[:-k, :-k]
    return lasting
