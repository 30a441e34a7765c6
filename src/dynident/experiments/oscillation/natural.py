"""The control law that lets a machine swing: the model's torque, and a spring that scales with the model's inertia."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, frozen
from dynident.dynamics.single_state import torque_law
from dynident.dynamics.terms import TermsLike
from dynident.plant.controllers import Quantity
from dynident.plant.protocol import Reading
from dynident.robot.model import Robot

# Of the acceleration times the squared sample time: 1/2 gets to the next sample, and 1/12 less makes up for torque that
# goes there in a straight line, which is the mean of neighbours and so too small by that where it is curved.
AHEAD = 1 / 2 - 1 / 12


class NaturalControl:
    r"""Torque of the model and nothing that brakes, eq. (14) and (20).

    .. math:: \tau = \tilde A(q)\,u + \tilde c(q, \dot q) + \tilde g(q), \qquad u = -k_p (q - q_d)

    With kp = 0 it is the open loop of the gravity stage. A torque that acts late feeds energy into the swing (a delay d
    of a spring k is a damper of -k d), so the law is worked out for the state that the machine will have when the
    torque is reached: one sample ahead, with the speed as measured and the acceleration u.

    Args:
        robot: The robot.
        terms: Terms of the model.
        weight: (n_columns,) parameters of the model's gravity.
        motion: (n_columns,) parameters of its inertia, Coriolis and centrifugal torque.
        kp: Proportional gain [1/s²], a number or a matrix (n_moving, n_moving); 0 for the open loop.
        target: (n_moving,) q_d [rad or m]; needed with kp only.
        ahead: Predict the state at the next sample; False for the plain law of the paper.
    """

    quantity: Quantity = "torque"

    def __init__(
        self,
        robot: Robot,
        terms: TermsLike,
        weight: Array,
        motion: Array,
        kp: float | Array = 0.0,
        target: ArrayLike | None = None,
        *,
        ahead: bool = True,
    ) -> None:
        self._law = torque_law(robot, terms, weight, motion)
        self._target = frozen(np.zeros(len(robot.moving)) if target is None else target)
        self.kp, self._ahead, self._step = kp, ahead, 0.0

    def start(self, sample_time: float) -> None:
        """Know how far ahead the torque is reached."""
        self._step = sample_time if self._ahead else 0.0

    def command(self, time: float, reading: Reading) -> Array:
        """The torque for the state at the next sample."""
        h, q, dq = self._step, reading.q, reading.dq
        if not np.any(self.kp):
            return np.array(self._law(*(q + h * dq).tolist(), *dq.tolist(), *[0.0] * len(q)))
        push = self._push(q)
        later, speed = q + h * dq + AHEAD * h * h * push, dq + h * push
        return np.array(self._law(*later.tolist(), *speed.tolist(), *self._push(later).tolist()))

    def _push(self, q: Array) -> Array:
        """u, the acceleration that is asked for."""
        return np.asarray(-np.dot(self.kp, q - self._target))
