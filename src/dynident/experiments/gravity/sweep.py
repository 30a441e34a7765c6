"""`Sweep`: one joint goes slowly there and back while the others are held."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, frozen
from dynident.errors import InputError

RAMP = 1.0  # [s] in which the speed is reached
REST = 0.5  # [s] at rest before, at the turn and after, in which the arm calms down


@dataclass(frozen=True, eq=False)
class Sweep:
    """A slow motion of one joint, as a `Motion` that a controller can follow.

    Attributes:
        joint: Place in the robot's moving joints.
        pose: (n_moving,) where the joints are held [rad or m]; the swept joint's own entry is the middle of its range.
        lower: Where it starts [rad or m].
        upper: Where it turns.
        speed: In between [rad/s or m/s].
    """

    joint: int
    pose: Array
    lower: float
    upper: float
    speed: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "pose", frozen(self.pose))
        if not (self.upper > self.lower and math.isfinite(self.upper - self.lower)):
            raise InputError(f"a sweep goes from {self.lower:g} to {self.upper:g}; expected a range")
        if not (self.speed > 0.0 and math.isfinite(self.speed)):
            raise InputError(f"the speed of a sweep is {self.speed:g}; expected a positive number [rad/s or m/s]")

    @property
    def cruise(self) -> float:
        """Time at full speed, one way [s]."""
        return max((self.upper - self.lower) / self.speed - RAMP, 0.0)

    @property
    def duration(self) -> float:
        """There and back [s]."""
        return 2.0 * self._one_way + 3.0 * REST

    @property
    def _one_way(self) -> float:
        return self.cruise + 2.0 * RAMP

    def sample(self, t: ArrayLike, /) -> tuple[Array, Array, Array]:
        """Positions, speeds and accelerations at times (n,), (n, n_moving) each."""
        times = np.atleast_1d(np.asarray(t, dtype=np.float64))
        back = REST + self._one_way + REST
        there = self._leg(times - REST)
        again = self._leg(times - back)
        motion = [np.tile(self.pose, (len(times), 1)), *np.zeros((2, len(times), len(self.pose)))]
        for kind, (ahead, home) in enumerate(zip(there, again, strict=True)):
            motion[kind][:, self.joint] = ahead - home + (self.lower if kind == 0 else 0.0)
        return motion[0], motion[1], motion[2]

    def _leg(self, t: Array) -> tuple[Array, Array, Array]:
        """Way, speed and acceleration of going the range once, from time 0; speed rises as half a cosine."""
        # A range that is too short for full speed is gone at a lower one, in two ramps.
        speed = min(self.speed, (self.upper - self.lower) / RAMP)
        up, down = np.clip(t, 0.0, RAMP), np.clip(t - RAMP - self.cruise, 0.0, RAMP)
        even, w = np.clip(t - RAMP, 0.0, self.cruise), math.pi / RAMP
        way = 0.5 * (up - np.sin(w * up) / w) + even + 0.5 * (down + np.sin(w * down) / w)
        moving = (t > 0.0) & (t < self._one_way)
        rate = 0.5 * (1.0 - np.cos(w * up)) - 0.5 * (1.0 - np.cos(w * down))
        bend = 0.5 * w * (np.sin(w * up) - np.sin(w * down))
        return speed * way, np.where(moving, speed * rate, 0.0), np.where(moving, speed * bend, 0.0)
