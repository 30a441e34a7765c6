"""Random, well-scaled states on which structural questions are decided."""

from __future__ import annotations

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.closure import closure_of
from dynident.dynamics.loop_assembly import all_active, assembly
from dynident.errors import InputError
from dynident.robot.model import Robot

VELOCITY, ACCELERATION = (
    3.0,
    10.0,
)  # sizes at which inertia, centrifugal effects and gravity weigh about the same
_CLEAR = 0.05  # pivot: how far from a singular pose of its loops a robot is put
_ATTEMPTS = 12


def reach(robot: Robot) -> float:
    """A length typical of the robot [m]: its largest joint offset, one meter where all are zero."""
    offsets = [np.abs(part.translation).max() for joint in robot.joints for part in (joint.before, joint.after)]
    largest = float(max(offsets))
    return largest if largest > 0.0 else 1.0


def random_states(robot: Robot, n_samples: int, seed: int = 20) -> tuple[Array, Array, Array]:
    """Positions, velocities and accelerations of the moving joints, (n_samples, n_joints) each.

    Limits are ignored on purpose: what can be identified is a property of the structure.
    """
    rng = np.random.default_rng(seed)
    shape = (n_samples, len(robot.moving))
    slides = np.array([joint.kind == "prismatic" for joint in robot.moving_joints])
    size = np.where(slides, reach(robot), np.pi)
    unit = np.where(slides, reach(robot), 1.0)
    q = rng.uniform(-1.0, 1.0, shape) * size
    if robot.closure is not None:
        q = closed_poses(robot, q, size, rng)
    return q, rng.normal(0.0, VELOCITY, shape) * unit, rng.normal(0.0, ACCELERATION, shape) * unit


def closed_poses(robot: Robot, q: Array, size: Array, rng: np.random.Generator) -> Array:
    """As many poses as given at which the loops close well: those given, then others ever nearer to the branch.

    Args:
        robot: The robot, whose loops are closed numerically.
        q: Poses, (n_samples, n_joints).
        size: (n_joints,) how far others may lie from the branch [rad or m].
        rng: Of the others.

    Raises:
        InputError: When too few poses are found.
    """
    center = closure_of(robot).reference[list(robot.moving)]
    kept, wanted = q[:0], len(q)
    for attempt in range(_ATTEMPTS):
        kept = np.concatenate([kept, q[assembly(robot).pivots(all_active(robot, q)) > _CLEAR]])
        if len(kept) >= wanted:
            return kept[:wanted]
        q = center + rng.uniform(-1.0, 1.0, (4 * wanted, q.shape[1])) * size * 0.7**attempt
    held = ", ".join(robot.joints[robot.active[i]].variable for i in robot.locked)
    remedy = f"lock {held} elsewhere" if held else "give a branch away from singular poses"
    raise InputError(f"robot {robot.name}: its loops close at hardly any pose near their branch; {remedy}")
