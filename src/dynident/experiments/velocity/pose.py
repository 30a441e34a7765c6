"""Where the other joints are held: where gravity does least on the joints under test."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.evaluate import gravity_torque
from dynident.errors import InputError, UnknownNameError
from dynident.experiments.bench import Bounds
from dynident.experiments.velocity.groups import Group

_TRIES = 200  # poses that are compared
_PLACES = 7  # along the range of each joint under test
_FREE = 1.5  # [rad or m] to either side of zero of a joint without limits


def quiet_pose(group: Group, bounds: Bounds, span: Array, given: Mapping[str, float] | None = None) -> Array:
    """(n_moving,) a pose within the limits at which gravity, by the robot's own values, does least on some joints.

    Nobody looks for collisions.

    Args:
        group: The joints under test; they stand in the middle of their range.
        bounds: Limits of the moving joints.
        span: (n, 2) range of the joints under test.
        given: Positions of other joints by name or variable, which are kept.
    """
    robot = group.robot
    lower = np.where(np.isinf(bounds.lower), np.minimum(-_FREE, bounds.upper - 2 * _FREE), bounds.lower)
    upper = np.where(np.isinf(bounds.upper), np.maximum(_FREE, lower + 2 * _FREE), bounds.upper)
    # The middle half: far from the ends, where cables pull and nobody expects a joint.
    drawn = np.random.default_rng(0).uniform(0.25, 0.75, (_TRIES, len(lower)))
    poses = lower + np.vstack([np.full(len(lower), 0.5), drawn]) * (upper - lower)
    for place, position in _given(group, given, bounds).items():
        poses[:, place] = position
    poses[:, list(group.places)] = span.mean(axis=1)
    grids = np.meshgrid(*[np.linspace(low, high, _PLACES) for low, high in span.tolist()])
    points = np.stack([grid.ravel() for grid in grids], axis=1)
    every = np.repeat(poses, len(points), axis=0)
    every[:, list(group.places)] = np.tile(points, (len(poses), 1))
    load = gravity_torque(robot, every)[:, list(group.places)].reshape(len(poses), len(points), -1)
    size = np.sqrt(np.mean(load**2, axis=(1, 2)))
    # Rounded, so that where gravity does nothing anywhere the middle of the limits is taken.
    best = int(np.argmin(np.round(size / max(float(size.max()), 1e-12), 3)))
    return np.asarray(poses[best])


def _given(group: Group, given: Mapping[str, float] | None, bounds: Bounds) -> dict[int, float]:
    robot, found = group.robot, {}
    for name, position in (given or {}).items():
        names = robot.position_names if name in robot.position_names else robot.joint_names
        if name not in names:
            raise UnknownNameError("joint", name, robot.position_names)
        place = names.index(name)
        if place in group.places:
            continue
        if not bounds.lower[place] <= position <= bounds.upper[place]:
            raise InputError(
                f"{name} is to be held at {position:g}; its limits are {bounds.lower[place]:g} to "
                f"{bounds.upper[place]:g}"
            )
        found[place] = float(position)
    return found
