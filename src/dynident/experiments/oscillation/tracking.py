"""How well a candidate controls the machine: the check that the paper leaves to the robot's response."""

from __future__ import annotations

import numpy as np

from dynident.checks import Array
from dynident.dynamics.single_state import torque_law
from dynident.experiments.bench import Bench
from dynident.experiments.oscillation.groups import SwingModel
from dynident.experiments.oscillation.natural import AHEAD
from dynident.plant.controllers import Quantity
from dynident.plant.protocol import Reading

REACH = np.radians(30.0)  # [rad or m] of the motion, there and back, alternating from joint to joint
PERIOD = 2.0  # [s]
BANDWIDTH = 5.0  # [rad/s] of the feedback: soft, so that errors of the model show


class ComputedTorqueSwing:
    """Computed torque, eq. (9) and (10), along a cosine there and back.

    Args:
        model: The model's equations.
        weight: (n_columns,) parameters of its gravity.
        motion: (n_columns,) parameters of its inertia.
        start: (n_moving,) where the motion begins and ends [rad or m].
    """

    quantity: Quantity = "torque"

    def __init__(self, model: SwingModel, weight: Array, motion: Array, start: Array) -> None:
        self._law = torque_law(model.robot, model.terms, weight, motion)
        self._start, self._way = start, 0.5 * REACH * (-1.0) ** np.arange(len(start))
        self._step = 0.0

    def start(self, sample_time: float) -> None:
        """Know how far ahead the torque is reached."""
        self._step = sample_time

    def wanted(self, time: float) -> tuple[Array, Array, Array]:
        """Position, speed and acceleration of the motion."""
        w = 2.0 * np.pi / PERIOD
        c, s = np.cos(w * time), np.sin(w * time)
        return self._start + self._way * (1.0 - c), self._way * w * s, self._way * w * w * c

    def command(self, time: float, reading: Reading) -> Array:
        """Torque for the state at the next sample."""
        h = self._step
        target, speed, push = self.wanted(time + h)
        later, fast = reading.q + h * reading.dq + AHEAD * h * h * push, reading.dq + h * push
        u = push + 2.0 * BANDWIDTH * (speed - fast) + BANDWIDTH**2 * (target - later)
        return np.array(self._law(*later.tolist(), *fast.tolist(), *u.tolist()))


def tracking_error(bench: Bench, model: SwingModel, weight: Array, motion: Array, start: Array, label: str) -> float:
    """Root mean square position error of the motion [rad or m]; infinite when it does not get to its end."""
    control = ComputedTorqueSwing(model, weight, motion, start)
    run = bench.run(control, PERIOD, start, label=label)
    if not run.whole:
        return float("inf")
    wanted = np.array([control.wanted(t)[0] for t in run.time])
    return float(np.sqrt(np.mean((run.q - wanted) ** 2)))
