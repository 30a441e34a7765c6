"""`Sample`: filtered motion and torque at moments spread over the logs, enough to compare explanations quickly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynident.checks import Array
from dynident.signals.fir import Mask
from dynident.signals.observe import Observations

MOMENTS = 2400  # of all logs together: some tens of rows for each parameter of an arm
_MOVING = 0.1  # of a joint's effective speed: slower, and friction that no basic column describes rules the torque


@dataclass(frozen=True, eq=False)
class Sample:
    """Moments of several logs.

    Attributes:
        q, dq, ddq: (n_joints, n_moments), by joint.
        tau: (n_joints, n_moments), torque at the actuated coordinates.
        log: (n_moments,) number of the log each moment is from.
        rest_speed: A joint slower than this is at rest [rad/s or m/s].
    """

    q: Array
    dq: Array
    ddq: Array
    tau: Array
    log: Array
    rest_speed: float

    @property
    def moving(self) -> Mask:
        """(n_joints, n_moments), whether a joint moves well enough for its torque to count."""
        speed = np.sqrt(np.mean(self.dq**2, axis=1, keepdims=True))
        return np.asarray(np.abs(self.dq) > np.maximum(self.rest_speed, _MOVING * speed))

    def only(self, keep: Mask) -> Sample:
        """Some of the moments."""
        parts = {name: getattr(self, name)[:, keep] for name in ("q", "dq", "ddq", "tau")}
        return replace(self, **parts, log=self.log[keep])


def sample(observations: Sequence[Observations], moments: int = MOMENTS) -> Sample:
    """Moments at equal distances in time, away from gaps, from all logs alike.

    Args:
        observations: The logs.
        moments: How many at most.
    """
    total = sum(sum(one.survey.stretches) / one.survey.grid.rate for one in observations)
    parts: list[tuple[Array, ...]] = []
    numbers: list[int] = []
    for number, one in enumerate(observations):
        for block in one.motion():
            every = max(1, round(total * block.rate / moments))
            keep = block.inner & ((block.first + np.arange(len(block.inner))) % every == 0)
            parts.append(tuple(x[:, keep] for x in (block.q, block.dq, block.ddq, block.tau[0])))
            numbers += [number] * int(keep.sum())
    q, dq, ddq, tau = (np.concatenate(own, axis=1) for own in zip(*parts, strict=True))
    return Sample(q, dq, ddq, tau, np.array(numbers), observations[0].options.rest_speed)
