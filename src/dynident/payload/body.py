"""A body that is fixed to the tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass

import numpy as np

from dynident.arrays import Array
from dynident.display import brief
from dynident.errors import InputError, UnknownNameError
from dynident.robot.model import Robot, Transform
from dynident.robot.parameters import LINK_SYMBOLS, from_classical, in_frame, to_classical
from dynident.robot.physicality import violations


@brief
@dataclass(frozen=True)
class Payload:
    """A rigid body in the tool frame.

    Attributes:
        mass: [kg].
        com: Center of mass [m].
        inertia: XX XY XZ YY YZ ZZ about the center of mass, axes parallel to the tool's [kg·m²].
        strict: Whether physically inconsistent inertia is refused.
    """

    mass: float
    com: Sequence[float] | Array = (0.0, 0.0, 0.0)
    inertia: Sequence[float] | Array = (0.0,) * 6
    strict: InitVar[bool] = True

    def __post_init__(self, strict: bool) -> None:
        for name, shape in (("mass", ()), ("com", (3,)), ("inertia", (6,))):
            given = getattr(self, name)
            value = np.asarray(given, dtype=np.float64)
            if value.shape != shape or not np.isfinite(value).all():
                raise InputError(f"{name} of the payload must be finite, with shape {shape}; got {given!r}")
            object.__setattr__(self, name, tuple(value.tolist()) if shape else float(value))
        if not self.mass > 0.0:
            raise InputError(f"mass of the payload is {self.mass:g} kg; expected more than zero")
        broken = violations(from_classical(self.mass, np.zeros(3), self._matrix), "payload") if strict else []
        if broken:
            raise InputError(
                f"inertia of the payload is not physically consistent: {broken[0].condition} "
                f"({broken[0].value:.4g} kg·m²); "
                "expected XX XY XZ YY YZ ZZ about the center of mass (Payload.from_standard takes those about the tool)"
            )

    @staticmethod
    def from_standard(values: Mapping[str, float]) -> Payload:
        """A payload from its standard parameters (XX, .. MX, .. M) about the origin of the tool frame, as in papers.

        Rounding of printed numbers may leave inertia about the center of mass that is inconsistent; that is allowed.
        """
        for name in values:
            if name not in LINK_SYMBOLS:
                raise UnknownNameError("standard parameter of a payload", name, LINK_SYMBOLS)
        mass, center, inertia = to_classical([values.get(symbol, 0.0) for symbol in LINK_SYMBOLS])
        return Payload(float(mass), center, inertia[(0, 0, 0, 1, 1, 2), (0, 1, 2, 1, 2, 2)], strict=False)

    @property
    def _matrix(self) -> Array:
        """(3, 3) inertia about the center of mass."""
        return np.array(self.inertia)[[[0, 1, 2], [1, 3, 4], [2, 4, 5]]]

    @property
    def standard(self) -> Array:
        """(10,) standard parameters about the origin of the tool frame."""
        return from_classical(self.mass, self.com, self._matrix)

    def on(self, robot: Robot) -> tuple[int, Array]:
        """The link that carries it and what it adds to that link's standard parameters (10,)."""
        link, frame = tool_link(robot)
        return link, in_frame(self.standard, frame.rotation, frame.translation)

    def at(self, robot: Robot) -> dict[str, float]:
        """What it adds to the standard parameters of the robot's tool link, by name."""
        link, chi = self.on(robot)
        number = robot.joints[link].number
        return {f"{symbol}{number}": float(x) for symbol, x in zip(LINK_SYMBOLS, chi, strict=True)}


def tool_link(robot: Robot) -> tuple[int, Transform]:
    """Index of the link that carries the tool, and the tool frame in it."""
    if robot.tool is None:
        raise InputError(
            f"robot {robot.name} has several branches; say in its file which link carries the tool (tool:)"
        )
    return robot.tool


def known_numbers(given: str | float | Sequence[float]) -> list[float]:
    """1, 4 or 10 finite numbers of a payload: its mass, its center, XX XY XZ YY YZ ZZ about it.

    Args:
        given: A number, a sequence, or a text with commas.
    """
    parts: Sequence[object] = [given]
    if not isinstance(given, int | float):
        parts = given.split(",") if isinstance(given, str) else list(given)
    try:
        numbers = [float(part) for part in parts]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) not in (1, 4, 10) or not np.isfinite(numbers).all():
        raise InputError(f"known is {given}; expected MASS, MASS,CX,CY,CZ or those and six inertias")
    if not numbers[0] > 0.0:
        raise InputError(f"known mass of the payload is {numbers[0]:g} kg; expected more than zero")
    return numbers
