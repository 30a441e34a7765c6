"""What is no friction in a torque: known from the robot's values or a fit, none at all, or cancelled there and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.evaluate import parameters
from dynident.dynamics.terms import resolve_terms
from dynident.errors import InputError, UnknownNameError
from dynident.estimate.fit import Fit
from dynident.estimate.friction_parts import FRICTION
from dynident.estimate.prediction import TorqueModel
from dynident.robot.model import Robot

Gravity = Literal["cancel", "model", "none"]
Known = Callable[[Array, Array, Array], Array]  # q, dq, ddq (m, n_moving) -> torque at the actuated coordinates
_LINKS = "rigid,Ia"


def known_torque(robot: Robot, gravity: Gravity, fit: Fit | None) -> Known | None:
    """Torque of a motion without friction and offset; None where it cancels between both directions.

    Args:
        robot: The robot.
        gravity: Where it comes from without a fit: "cancel", "model" (the robot's own values) or "none".
        fit: An estimate of the same robot, whose links and rotors are believed.
    """
    if gravity not in get_args(Gravity):
        raise UnknownNameError("gravity", gravity, get_args(Gravity))
    if fit is not None:
        if fit.robot.fingerprint != robot.fingerprint:
            raise InputError(
                f"the fit is of another robot ({fit.robot.name}) than the one under test ({robot.name}), or of other "
                "locked joints; identify the same one"
            )
        return without_friction(fit.model).torque
    if gravity == "cancel":
        return None
    if gravity == "none":
        return lambda q, dq, ddq: np.zeros_like(q)
    chi = parameters(robot, _LINKS)
    if not np.any(chi):
        raise InputError(f"robot {robot.name} has no values of its own to know gravity from; give a fit, or cancel it")
    return TorqueModel(robot, resolve_terms(_LINKS), chi).torque


def without_friction(model: TorqueModel) -> TorqueModel:
    """The model without friction and constant torque."""
    chi: list[float] = []
    terms, first = [], 0
    for term in model.terms:
        count = len(term.columns(model.robot))
        if term.name not in (*FRICTION, "Fo"):
            terms.append(term)
            chi += model.chi[first : first + count].tolist()
        first += count
    return TorqueModel(model.robot, tuple(terms), np.array(chi), model.reference)


def words(gravity: Gravity, fit: Fit | None) -> str:
    """Where gravity comes from, for people."""
    if fit is not None:
        return "from the fit"
    return {
        "cancel": "cancelled between both directions",
        "model": "from the robot's own values",
        "none": "taken as none",
    }[gravity]
