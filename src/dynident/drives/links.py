"""The torque of known links as columns, and the rows of logs without it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.terms.term import AlongTerm, Column, Follower, LinkTorque, Place
from dynident.robot.model import Robot
from dynident.robot.parameters import LINK_SYMBOLS


class KnownLinks(AlongTerm):
    """The torque that links of known parameters need: a column for each joint, whose coefficient is one.

    A controller whose gains are s times what they are taken for has coefficients of 1 / s.
    """

    name = "links"
    needs_linearization_point = True

    def columns(self, robot: Robot) -> tuple[Column, ...]:
        """One per moving joint."""
        return tuple(
            Column(link_scale_name(joint.number), "", "links_", str(joint.number), self.name, f"links at {joint.name}")
            for joint in robot.moving_joints
        )

    def places(self, robot: Robot) -> tuple[Place, ...]:
        """Each joint needs its own."""
        return tuple((row, row) for row in range(len(robot.moving)))

    def follow(self, robot: Robot, links: LinkTorque | None) -> Follower:
        """Inverse dynamics of the links."""
        assert links is not None
        return lambda samples: np.ascontiguousarray(links.torque(samples).T)


def link_scale_name(number: int) -> str:
    """Name of the coefficient of a joint's link torque."""
    return f"links_{number}"


def link_values(robot: Robot) -> Array:
    """(10 n_links,) standard parameters of the links as the robot's file has them."""
    values = robot.value_set()
    return np.array([values.get(f"{symbol}{joint.number}", 0.0) for joint in robot.joints for symbol in LINK_SYMBOLS])


def known_coefficients(names: Sequence[str]) -> Array:
    """(n,) one for the torque of the links, zero for all that is to be found."""
    return np.array([1.0 if name.startswith("links_") else 0.0 for name in names])
