"""A body that is fixed to the tool."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.errors import InputError
from dynident.robot.model import Robot
from dynident.robot.parameters import from_classical, in_frame
from dynident.robot.physicality import violations


@dataclass(frozen=True)
class Payload:
    """A rigid body in the tool frame.

    Attributes:
        mass: [kg].
        com: Centre of mass [m].
        inertia: XX XY XZ YY YZ ZZ about the centre of mass, axes parallel to the tool's [kg·m²].
    """

    mass: float
    com: tuple[float, float, float] = (0.0, 0.0, 0.0)
    inertia: tuple[float, float, float, float, float, float] = (0.0,) * 6

    def __post_init__(self) -> None:
        numbers = (self.mass, *self.com, *self.inertia)
        if len(self.com) != 3 or len(self.inertia) != 6 or not np.all(np.isfinite(numbers)):
            raise InputError(f"payload {numbers}: expected a mass, three and six finite numbers")
        broken = violations(self.parameters, "payload")
        if broken or not self.mass > 0.0:
            raise InputError(f"{broken[0] if broken else f'payload: mass is {self.mass}'}; give a body that can exist")

    @property
    def parameters(self) -> Array:
        """Standard parameters (10,) in the tool frame."""
        xx, xy, xz, yy, yz, zz = self.inertia
        return from_classical(self.mass, self.com, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])

    def on(self, robot: Robot) -> tuple[int, Array]:
        """The link that carries it and what it adds to that link's standard parameters (10,)."""
        if robot.tool is None:
            raise InputError(
                f"robot {robot.name} has several branches; say in its file which link carries the tool (tool:)"
            )
        link, frame = robot.tool
        return link, in_frame(self.parameters, frame.rotation, frame.translation)
