r"""The two identifier structures of Khosla & Kanade 1987, section 3.4: where the torque comes from that the model is
compared with.

Both drive the estimation by a difference of torques on one and the same motion, so one estimator serves both:

.. math:: \varepsilon = \tau - W(q, \dot q, \ddot q)\,\hat\beta = W \Delta\beta

Input error (series): the robot's outputs are fed to the inverse model and the applied torque is compared. Output error
(parallel): a system and a model, both as inverse dynamics, see the same motion; nothing has to be simulated forwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from dynident.arrays import Array
from dynident.dynamics.evaluate import inverse_dynamics, parameters
from dynident.dynamics.terms import Term
from dynident.robot.model import Robot


class Structure(Protocol):
    """Where the torque comes from."""

    name: str

    def torque(self, q: Array, dq: Array, ddq: Array, tau: Array) -> Array:
        """Torque to compare the model with, (n_samples, n_joints), from filtered motion and filtered torque."""
        ...


class SeriesStructure:
    """The torque that was measured or applied (series structure, figure 1)."""

    name = "input-error"

    def torque(self, q: Array, dq: Array, ddq: Array, tau: Array) -> Array:
        """The torque as it is."""
        return tau


class ParallelStructure:
    """The torque of a system that is itself inverse dynamics (parallel structure, figure 2); for studies.

    Args:
        robot: The robot.
        terms: Terms that the system has.
        values: The system's parameters: a value set's name, a mapping, a vector, or None for the robot's own.
    """

    name = "output-error"

    def __init__(self, robot: Robot, terms: tuple[Term, ...], values: str | Mapping[str, float] | Array | None) -> None:
        self.robot, self.terms = robot, terms
        self.values = parameters(robot, terms, values)

    def torque(self, q: Array, dq: Array, ddq: Array, tau: Array) -> Array:
        """The system's torque on the same motion; the given torque is not looked at."""
        return inverse_dynamics(self.robot, q, dq, ddq, self.terms, self.values)
