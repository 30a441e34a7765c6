"""Random, well-scaled states on which structural questions are decided."""

from __future__ import annotations

import numpy as np

from dynident.checks import Array
from dynident.robot.model import Robot

SPEED, ACCELERATION = (
    3.0,
    10.0,
)  # sizes at which inertia, centrifugal effects and gravity weigh about the same


def reach(robot: Robot) -> float:
    """A length typical of the robot [m]: its largest joint offset, one metre where all are zero."""
    offsets = [np.abs(part.translation).max() for joint in robot.joints for part in (joint.before, joint.after)]
    largest = float(max(offsets))
    return largest if largest > 0.0 else 1.0


def random_states(robot: Robot, n_samples: int, seed: int = 20) -> tuple[Array, Array, Array]:
    """Positions, speeds and accelerations of the moving joints, (n_samples, n_joints) each.

    Limits are ignored on purpose: what can be identified is a property of the structure.
    """
    rng = np.random.default_rng(seed)
    shape = (n_samples, len(robot.moving))
    slides = np.array([robot.joints[robot.active[i]].kind == "prismatic" for i in robot.moving])
    size = np.where(slides, reach(robot), np.pi)
    unit = np.where(slides, reach(robot), 1.0)
    q = rng.uniform(-1.0, 1.0, shape) * size
    return q, rng.normal(0.0, SPEED, shape) * unit, rng.normal(0.0, ACCELERATION, shape) * unit
