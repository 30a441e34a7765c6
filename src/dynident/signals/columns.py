r"""The bandwidth that columns of the regressor need along a motion.

Joints that turn far make columns that turn faster than the joints: :math:`\sin(q_1 + q_2 + q_3)` at up to three times
the rate of one joint, products with inertia tensors at twice that. Rows are exact only where the two low-passes that
torque passes, and columns pass once, differ by nothing: by :math:`g = (1 - H_2) H_1`, with :math:`H_1` the low-pass at
the band and :math:`H_2` the one at twice the band through which positions and torque have gone before.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.dynamics.evaluate import regressor
from dynident.robot.model import Robot
from dynident.signals.kernels import low_pass_kernel
from dynident.signals.thresholds import THRESHOLDS

COLUMN_SAMPLES = 512  # of a motion, at most, that columns are looked at along
KINEMATIC_FACTOR = 2.0  # positions are derived at this many times the band
_MOST_SAMPLES = 8192  # of a motion that is a function of time
_MOST_NUMBERS = 4_000_000  # of a regressor in memory
_FAINT = 1e-9  # share of the strongest column's power below which a change of another is rounding
_STEPS = 12  # bands tried per octave


def column_bandwidth(robot: Robot, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, rate: float) -> float:
    """Smallest band from which on the filters treat every rigid-body column and its torque alike [Hz].

    The mismatch of a column with power spectrum S is sqrt(sum g(f / band)^2 S / sum S); it is to stay below
    `max_column_mismatch`. Friction is not looked at: the sign of a velocity has no bandwidth.

    Args:
        robot: The robot.
        q, dq, ddq: (n_samples, n_joints) at equal intervals of time [rad or m, and per s, s^2].
        rate: Samples per second.

    Returns:
        The band, zero for columns that do not change; at most half the rate.
    """
    q, dq, ddq = (np.asarray(x, dtype=np.float64) for x in (q, dq, ddq))
    n = min(len(q), max(16, _MOST_NUMBERS // regressor(robot, q[:1], dq[:1], ddq[:1], "rigid").size))
    first = (len(q) - n) // 2
    own = slice(first, first + n)
    columns = regressor(robot, q[own], dq[own], ddq[own], "rigid").reshape(n, -1)
    size = float(np.max((columns**2).sum(0), initial=1e-300)) * n  # of the strongest column, as a power spectrum has it
    columns = columns[:, columns.any(0)]
    columns = columns - columns.mean(0)
    S = np.abs(np.fft.rfft(columns * np.hanning(n + 2)[1:-1, None], axis=0)) ** 2  # (n_f, n_columns)
    S = S[:, S.sum(0) > _FAINT * size]
    if not S.shape[1]:
        return 0.0
    f = np.fft.rfftfreq(n, 1.0 / rate)
    bands = 0.5 * rate * 2.0 ** (-np.arange(_STEPS * int(np.log2(n)) + 1) / _STEPS)  # the widest first
    mismatch = np.sqrt((_gain(f / bands[:, None]) ** 2 @ (S / S.sum(0))).max(1))
    bad = np.flatnonzero(mismatch > THRESHOLDS.max_column_mismatch)
    return float(bands[max(bad[0] - 1, 0)]) if len(bad) else 0.0


def bandwidth_along(
    robot: Robot, sample: Callable[[Array], tuple[Array, Array, Array]], duration: float, fastest: float
) -> float:
    """`column_bandwidth` in the fastest part of a motion that is a function of time [Hz].

    Args:
        robot: The robot.
        sample: Times (n,) [s] -> q, dq, ddq, (n, n_joints) each.
        duration: Length of the motion [s].
        fastest: Highest frequency of the joints' motion [Hz].
    """
    times = np.linspace(0.0, duration, int(np.ceil(8.0 * fastest * duration)) + 1)
    dq = sample(times)[1]
    turns = [joint.kind == "revolute" for joint in robot.moving_joints]
    rate = 4.0 * max(turning_band(float(np.abs(dq[:, turns]).sum(1).max(initial=0.0))), 2.0 * fastest)
    length = min(duration, _MOST_SAMPLES / rate)
    start = np.clip(times[np.argmax((dq**2).sum(1))] - 0.5 * length, 0.0, duration - length)
    return column_bandwidth(robot, *sample(start + np.arange(int(length * rate)) / rate), rate)


def turning_band(velocity: float) -> float:
    """A band that is wide enough for all columns whatever they are [Hz].

    Entries of an inertia tensor turn twice as fast as their link, and a link no faster than all joints together; the
    filters treat alike what turns at up to half the band.

    Args:
        velocity: Of all joints together, the sum of what each turns at [rad/s].
    """
    return 2.0 * 2.0 * velocity / (2.0 * np.pi)


def _gain(share: Array) -> Array:
    """g at frequencies that are given as shares of the band."""
    places, gain = _gain_table()
    return np.interp(share, places, gain, right=0.0)


@functools.cache
def _gain_table() -> tuple[Array, Array]:
    rate = 64.0  # of a band of one: kernels at the rates of logs have much the same response
    places = np.linspace(0.0, 4.0, 401)
    rows, motion = (low_pass_kernel(cutoff, rate).response(places, rate).real for cutoff in (1.0, KINEMATIC_FACTOR))
    return places, np.abs((1.0 - motion) * rows)
