"""A plausible body for each link, from geometry alone: what to think of a link before any data.

A cylinder of the density of a geared arm (castings, motors and air) from the link's joint to the next one, as thick as
arms of that reach are. It gives every link a size, which scales what is compared, and a body to lean towards where
neither data nor nominal values say anything.
"""

from __future__ import annotations

import numpy as np

from dynident.arrays import Array
from dynident.robot.model import Robot
from dynident.robot.parameters import from_classical

DENSITY = 1500.0  # [kg/m³] of the whole volume: arms of 17 to 240 kg come out within a factor of three
SLENDERNESS = 0.05  # radius of a link over the length of the stretched arm


def stretched_length(robot: Robot) -> float:
    """Length of the longest chain of joint offsets [m]; one metre where all are zero."""
    along = np.zeros(robot.n_links)
    for i, joint in enumerate(robot.joints):
        before = 0.0 if joint.parent < 0 else along[joint.parent]
        along[i] = before + sum(float(np.linalg.norm(part.translation)) for part in (joint.before, joint.after))
    longest = float(along.max())
    if robot.tool is not None:
        longest = max(longest, float(along[robot.tool[0]] + np.linalg.norm(robot.tool[1].translation)))
    return longest if longest > 0.0 else 1.0


def link_ends(robot: Robot) -> Array:
    """(n_links, 2, 3) where a link begins and where it carries on, in its own frame [m].

    It begins at its own joint and carries on at the farthest joint (or tool) that it carries.
    """
    ends = np.zeros((robot.n_links, 2, 3))
    for i, joint in enumerate(robot.joints):
        begin = -joint.after.rotation.T @ joint.after.translation
        carried = [other.before.translation for other in robot.joints if other.parent == i]
        if robot.tool is not None and robot.tool[0] == i:
            carried.append(robot.tool[1].translation)
        far = max(carried, key=lambda point: float(np.linalg.norm(point - begin)), default=np.zeros(3))
        ends[i] = begin, far
    return ends


def plausible_bodies(robot: Robot) -> Array:
    """Standard parameters of a plausible body for each link, (n_links, 10)."""
    radius = SLENDERNESS * stretched_length(robot)
    bodies = []
    for begin, end in link_ends(robot):
        span = float(np.linalg.norm(end - begin))
        axis = (end - begin) / span if span > 1e-9 else np.array([0.0, 0.0, 1.0])
        length = span + 2.0 * radius  # housings reach beyond the axes they hold
        mass = DENSITY * np.pi * radius**2 * length
        across = np.eye(3) - np.outer(axis, axis)
        inertia = mass * (0.5 * radius**2 * np.outer(axis, axis) + (radius**2 / 4.0 + length**2 / 12.0) * across)
        bodies.append(from_classical(mass, 0.5 * (begin + end), inertia))
    return np.array(bodies)
