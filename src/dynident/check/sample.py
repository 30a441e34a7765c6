"""`Sample`: filtered motion and torque at moments spread over the logs, enough to compare explanations quickly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array, Mask
from dynident.signals.observe import Observations
from dynident.signals.rows import too_short

DELAYS = np.linspace(-0.15, 0.15, 61)  # [s] by which torque may be late
LAG = 1.0  # periods of the band, over which filtered noise forgets itself
MOMENTS = 2400  # of all logs together: some tens of rows for each parameter of an arm
_MOVING = 0.1  # of a joint's effective speed: slower, and friction that no basic column describes rules the torque


@dataclass(frozen=True, eq=False)
class Sample:
    """Moments of a log.

    Attributes:
        q, dq, ddq: (n_moments, n_joints).
        tau: (n_moments, n_joints), torque at the actuated coordinates.
        late: (n_delays, n_moments, n_joints), torque later by each of `DELAYS`.
        around: (2, 3, n_moments, n_joints), positions, speeds and accelerations `LAG` periods of the band before and
            after, whose noise is another one.
        rest_speed: A joint slower than this is at rest [rad/s or m/s].
    """

    q: Array
    dq: Array
    ddq: Array
    tau: Array
    late: Array
    around: Array
    rest_speed: float

    @property
    def moving(self) -> Mask:
        """(n_moments, n_joints), whether a joint moves well enough for its torque to count."""
        return self.faster(_MOVING)

    def faster(self, share: float) -> Mask:
        """(n_moments, n_joints), whether a joint moves faster than this share of its effective speed."""
        speed = np.sqrt(np.mean(self.dq**2, axis=0))
        return np.asarray(np.abs(self.dq) > np.maximum(self.rest_speed, share * speed))


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
        places = np.arange(len(block.inner))
        lag = max(1, round(LAG * block.rate / one.band))
        reach = max(int(DELAYS[-1] * block.rate) + 1, lag)  # from the ends of a block, where a neighbour is missing
        keep = block.inner & ((block.first + places) % every == 0) & (places >= reach) & (places < len(places) - reach)
        late = _shifted(block.tau[0], np.flatnonzero(keep), DELAYS * block.rate)
        motion, places = np.stack([block.q, block.dq, block.ddq]), np.flatnonzero(keep)
        around = np.stack([motion[:, places - lag], motion[:, places + lag]])
        parts.append((*motion[:, places], block.tau[0][places], late, around))
    if not parts:
        raise too_short(one)
    q, dq, ddq, tau, late, around = (np.concatenate(own, axis=-2) for own in zip(*parts, strict=True))
    return Sample(q, dq, ddq, tau, late, around, one.options.rest_speed)


def _shifted(tau: Array, places: NDArray[np.int_], shifts: Array) -> Array:
    """Torque (n, n_joints) at places shifted by parts of samples, (n_shifts, n_places, n_joints)."""
    whole = np.floor(shifts).astype(int)
    share = (shifts - whole)[:, None, None]
    first = np.minimum(places + whole[:, None], len(tau) - 2)
    before, after = (tau[first + i] for i in (0, 1))
    return np.asarray(before + share * (after - before))
