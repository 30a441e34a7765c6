"""`Steady`: a controller for slow sweeps that carries a weight nobody told it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.evaluate import inverse_dynamics
from dynident.plant.controllers import ComputedTorque
from dynident.plant.protocol import Reading

_INTEGRAL = 0.25  # of the bandwidth: how fast it takes over what springs would have to hold


class Steady(ComputedTorque):
    """Inverse dynamics with the robot's own values, and an integral that takes over what they get wrong.

    Without the integral a weight that is not known would bend the springs, and the arm would not be where it should;
    with springs alone, joint by joint, the arm would swing for seconds after each change of speed.
    """

    def _prepare(self, q: Array, dq: Array, ddq: Array) -> None:
        # Viscous friction of the wanted velocity: that of the measured one drives a joint that has less of it.
        values = self.values if isinstance(self.values, Mapping) else self.robot.value_set(self.values)
        self.values = {name: x for name, x in values.items() if not name.startswith("Fv")}
        super()._prepare(q, dq, ddq)
        self._friction = self._friction + inverse_dynamics(self.robot, q, dq, ddq, "Fv", values)
        self._sum = np.zeros(q.shape[1])

    def _torque(self, k: int, reading: Reading, error: Array, speed_error: Array) -> Array:
        self._sum += error * self._sample_time
        more = _INTEGRAL * self.bandwidth * self._sum
        return super()._torque(k, reading, error + more, speed_error)
