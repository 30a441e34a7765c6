"""Joints of the plant that warm up, and lose viscous friction with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.display import brief
from dynident.errors import InputError


@brief
@dataclass(frozen=True)
class Warming:
    r"""Temperature of the joints since the reset, and what it makes of viscous friction.

    .. math:: T(t) = T_0 + \Delta T\,(1 - e^{-t/\tau}), \quad F_v(T) = F_v\,e^{-b (T - T_0)}

    Attributes:
        rise: Delta T, in the end [K]; one for all joints or (n_moving,).
        time_constant: tau [s].
        thinning: b, what viscous friction loses per kelvin [1/K].
        start: T_0, at which friction is that of the robot's values [°C].
    """

    rise: ArrayLike
    time_constant: float
    thinning: float = 0.02
    start: float = 20.0

    def __post_init__(self) -> None:
        if not np.isfinite(np.asarray(self.rise, dtype=np.float64)).all():
            raise InputError(f"rise of temperature is {self.rise!r}; expected finite numbers [K]")
        if not (self.time_constant > 0.0 and np.isfinite(self.time_constant)):
            raise InputError(f"time constant of warming is {self.time_constant} s; expected a positive time")

    def temperature(self, time: ArrayLike, n_joints: int) -> Array:
        """Temperature of the joints at some times, (n_times, n_joints) [°C]."""
        grown = 1.0 - np.exp(-np.atleast_1d(np.asarray(time, dtype=np.float64)) / self.time_constant)
        rise = np.broadcast_to(np.asarray(self.rise, dtype=np.float64), n_joints)
        return np.asarray(self.start + np.outer(grown, rise))

    def factors(self, time: float, n_joints: int) -> Array:
        """What viscous friction of the joints is multiplied by, (n_joints,)."""
        return np.asarray(np.exp(-self.thinning * (self.temperature(time, n_joints)[0] - self.start)))
