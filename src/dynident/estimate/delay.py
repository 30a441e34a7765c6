"""Delay between torque and position, found by asking which one leaves the smallest residual."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.checks import Array, frozen
from dynident.identifiability.base import BaseParameters
from dynident.information.rows import accumulate_rows
from dynident.signals.observe import Observations

LARGEST_DELAY = 0.02  # [s]
_STEPS = 17  # delays tried
_MOST_ROWS = 6000  # rows used: minutes of motion, enough to tell milliseconds
_WORTH = 2e-3  # share by which a delay must lower the residual to be believed


@dataclass(frozen=True)
class DelayEstimate:
    """Time by which torque is stamped late against position.

    Attributes:
        delay: Best delay [s]; zero when the data prefers none clearly.
        gain: Share by which it lowers the weighted residual.
        tried: (n,) delays tried [s].
        residual: (n,) weighted residual of each, as a share of that without delay.
        reason: Why the delay is what it is, in words.
    """

    delay: float
    gain: float
    tried: Array
    residual: Array
    reason: str


def estimate_delay(observations: Sequence[Observations], base: BaseParameters) -> DelayEstimate:
    """The delay that training data prefers, beyond the one the observations already allow for.

    The regressor is made once; for each delay only the torque is shifted and the fit repeated. What counts is the total
    residual torque: joints that carry weight and inertia tell the delay, while in small ones the lag of friction passes
    for it.
    """
    blocks = [list(one.rows(base)) for one in observations]
    W = np.concatenate([rows.W for part in blocks for rows in part])
    used = np.concatenate([rows.usable for part in blocks for rows in part])
    keep = slice(0, _MOST_ROWS)
    tried = np.linspace(-LARGEST_DELAY, LARGEST_DELAY, _STEPS)

    def residual(delay: float) -> float:
        tau = np.concatenate([one.torque_rows(delay) for one in observations])
        masked = W[keep] * used[keep][:, :, None], tau[keep] * used[keep]
        solution = accumulate_rows(*masked, base, channels=base.robot.joint_names).solve(weighting="equal")
        return float(np.linalg.norm(solution.sigma[used[keep].any(0)]))

    values = np.array([residual(float(delay)) for delay in tried])
    values = values / values[_STEPS // 2]
    best = int(np.argmin(values))
    if best in (0, _STEPS - 1):
        reason = f"the best delay lies beyond {1e3 * LARGEST_DELAY:.0f} ms; check the stamps, none is used"
        return DelayEstimate(0.0, 0.0, frozen(tried), frozen(values), reason)
    left, here, right = values[best - 1 : best + 2] ** 2  # variance is a parabola in the delay, deviation is not
    vertex = 0.5 * (left - right) / (left - 2.0 * here + right)
    delay = float(tried[best] + vertex * (tried[1] - tried[0]))
    gain = 1.0 - float(np.sqrt(max(here - 0.25 * (left - right) * vertex, 0.0)))
    if gain < _WORTH:
        reason = f"no delay lowers the residual by more than {100 * _WORTH:g} %; none is used"
        return DelayEstimate(0.0, gain, frozen(tried), frozen(values), reason)
    reason = f"torque is {1e3 * delay:+.1f} ms late against position, which lowers the residual by {100 * gain:.1f} %"
    return DelayEstimate(delay, gain, frozen(tried), frozen(values), reason)
