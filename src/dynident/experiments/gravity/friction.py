"""What the averages took away: friction of a slow run, and how it depends on the load."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.arrays import Array, on_one_thread
from dynident.experiments.gravity.fourier import FourierFit, alike

_SURE = 4.0  # deviations from which on a slope is one
_SHOWS = 0.1  # of the friction: less change over the loads seen is not worth a word


@dataclass(frozen=True)
class SlowFriction:
    """Half the difference of both ways.

    Attributes:
        level: Its mean over the places [N·m or N].
        slope: Friction per weight on the joint, F = F0 + slope |weight|.
        slope_std: Deviation of the slope; infinite where the weight hardly changes.
        change: How much of the friction the slope makes over the weights seen [N·m or N].
    """

    level: float
    slope: float
    slope_std: float
    change: float

    @property
    def loaded(self) -> bool:
        """Whether friction depends on the load."""
        return abs(self.slope) > _SURE * self.slope_std and abs(self.change) > _SHOWS * abs(self.level)

    @property
    def left(self) -> float:
        """What averages may keep of it when it follows the motor's torque instead of the weight [N·m or N].

        With F = F0 + k |tau|, half the sum of both ways is g + k F where the weight outweighs friction.
        """
        return abs(self.slope * self.level) if self.loaded else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        std = self.slope_std if math.isfinite(self.slope_std) else None
        return {"level": self.level, "per_load": self.slope, "per_load_std": std, "depends_on_load": self.loaded}


def frictions(fit: FourierFit) -> Array:
    """(n_places,) half the difference of both ways, of what the fit leaves [N·m or N]: angles may differ a little."""
    run = fit.run
    return run.half_difference(run.tau - fit.torque(run.angle))


@on_one_thread
def slow_friction(fit: FourierFit) -> SlowFriction:
    """Friction of the run behind a fit."""
    run = fit.run
    friction = frictions(fit)
    level = float(friction.mean())
    weight = fit.torque(run.angles)
    if fit.order:
        weight = weight - fit.coefficients[0]  # the offset is no load
    size = np.abs(weight)
    if np.ptp(size) < 1e-9 * max(float(size.max()), 1.0):
        return SlowFriction(level, 0.0, math.inf, 0.0)
    A = np.column_stack([np.ones_like(size), size])
    project = np.linalg.pinv(A)
    found = project @ friction
    rest = friction - A @ found
    variance = float(rest @ rest) / max(len(rest) - 2, 1) * alike(rest)
    std = math.sqrt(variance * float(project[1] @ project[1]))
    return SlowFriction(level, float(found[1]), std, float(found[1] * np.ptp(size)))
