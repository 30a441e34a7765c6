"""Joints by name, and where those that are not under test are held."""

from __future__ import annotations

import math

import numpy as np

from dynident.arrays import Array
from dynident.errors import UnknownNameError
from dynident.experiments.bench import Bounds
from dynident.robot.model import Robot


def joint_place(robot: Robot, name: str, kind: str = "joint") -> int:
    """Place among the moving joints of one that is given by name or variable (q5).

    Args:
        robot: The robot.
        name: Name or variable.
        kind: What the joint is wanted for, for the message.

    Raises:
        UnknownNameError: For a name that is none.
    """
    for names in (robot.joint_names, robot.position_names):
        if name in names:
            return names.index(name)
    raise UnknownNameError(kind, name, (*robot.joint_names, *robot.position_names))


def home_pose(robot: Robot) -> Array:
    """(n_moving,) the middle of each joint's range; zero for one that can make a whole turn."""
    if robot.closure is not None:
        return np.array(robot.closure.reference[list(robot.moving)])
    bounds = Bounds.of(robot)
    room = bounds.upper - bounds.lower
    with np.errstate(invalid="ignore"):
        return np.where(room < 2.0 * math.pi, 0.5 * (bounds.lower + bounds.upper), 0.0)
