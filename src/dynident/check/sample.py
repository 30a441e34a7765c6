"""`Sample`: filtered motion and torque at moments spread over the logs, enough to compare explanations quickly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.checks import Array
from dynident.signals.fir import Mask
from dynident.signals.observe import Observations

MOMENTS = 2400  # of all logs together: some tens of rows for each parameter of an arm
_MOVING = 0.1  # of a joint's effective speed: slower, and friction that no basic column describes rules the torque


@dataclass(frozen=True, eq=False)
class Sample:
    """Moments of a log.

    Attributes:
        q, dq, ddq: (n_joints, n_moments), by joint.
        tau: (n_joints, n_moments), torque at the actuated coordinates.
        rest_speed: A joint slower than this is at rest [rad/s or m/s].
    """

    q: Array
    dq: Array
    ddq: Array
    tau: Array
    rest_speed: float

    @property
    def moving(self) -> Mask:
        """(n_joints, n_moments), whether a joint moves well enough for its torque to count."""
        speed = np.sqrt(np.mean(self.dq**2, axis=1, keepdims=True))
        return np.asarray(np.abs(self.dq) > np.maximum(self.rest_speed, _MOVING * speed))


def samples(observations: Sequence[Observations], moments: int = MOMENTS) -> list[Sample]:
    """Moments at equal distances in time of each log, away from gaps.

    Args:
        observations: The logs.
        moments: How many at most, of all logs together.
    """
    total = sum(sum(one.survey.stretches) / one.survey.grid.rate for one in observations)
    return [_of_log(one, moments / total) for one in observations]


def _of_log(one: Observations, per_second: float) -> Sample:
    parts: list[tuple[Array, ...]] = []
    for block in one.motion():
        every = max(1, round(block.rate / per_second))
        keep = block.inner & ((block.first + np.arange(len(block.inner))) % every == 0)
        parts.append(tuple(x[:, keep] for x in (block.q, block.dq, block.ddq, block.tau[0])))
    q, dq, ddq, tau = (np.concatenate(own, axis=1) for own in zip(*parts, strict=True))
    return Sample(q, dq, ddq, tau, one.options.rest_speed)
