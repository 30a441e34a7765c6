"""Dry friction that holds better than it slides."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.errors import InputError


@dataclass(frozen=True)
class Breakaway:
    r"""Static above kinetic friction, with Stribeck's fall in between.

    .. math:: F(v) = F_c\,(1 + (r - 1)\,e^{-(v/v_s)^2})

    Attributes:
        ratio: r, static to kinetic friction; at least 1.
        speed: v_s, at which most of the difference is gone [rad/s or m/s].
    """

    ratio: float = 1.4
    speed: float = 0.02

    def __post_init__(self) -> None:
        if not (self.ratio >= 1.0 and np.isfinite(self.ratio)):
            raise InputError(f"breakaway ratio is {self.ratio}; expected 1 or more, static friction over kinetic")
        if not (self.speed > 0.0 and np.isfinite(self.speed)):
            raise InputError(f"breakaway speed is {self.speed}; expected a positive speed")

    def limit(self, coulomb: Array, speed: Array) -> Array:
        """The largest friction torque at a speed."""
        return np.asarray(coulomb * (1.0 + (self.ratio - 1.0) * np.exp(-((speed / self.speed) ** 2))))
