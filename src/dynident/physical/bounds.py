"""What a user knows about a robot's bodies beyond physics: bounds on masses and on centers of mass.

All of them are convex in the standard parameters: a center within a box or an ellipsoid is a bound on the first
moments that grows with the mass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, frozen
from dynident.display import brief
from dynident.errors import InputError, UnknownNameError
from dynident.physical.cones import Kind
from dynident.robot.model import Robot
from dynident.robot.physicality import link_label, without_body

Three = Sequence[float] | Array


class Bound(ABC):
    """A bound on bodies of a robot: b + A chi lies in a cone, chi (n_links, 10) the standard parameters of links."""

    @abstractmethod
    def cone(self, robot: Robot) -> tuple[Kind, Array, Array]:
        """The cone, A (m, n_links, 10) and b (m,)."""


def link_index(robot: Robot, link: int | str) -> int:
    """Place of a link in the robot, by the number or the label of the link."""
    for i, joint in enumerate(robot.joints):
        if link == joint.number or str(link) in (str(joint.number), joint.link):
            if i in without_body(robot):
                raise InputError(f"{link_label(joint)} is only a joint, without a body; bound another link")
            return i
    raise UnknownNameError("link", str(link), [joint.link for joint in robot.joints])


def _interval(lower: float | None, upper: float | None, what: str) -> None:
    if lower is None and upper is None:
        raise InputError(f"the bound on {what} bounds nothing; give lower, upper or both")
    for value in (lower, upper):
        if value is not None and not np.isfinite(value):
            raise InputError(f"the bound on {what} is {value}; expected a finite number, or None for no bound")
    if lower is not None and upper is not None and lower > upper:
        raise InputError(f"the bound on {what} is empty: from {lower:g} to {upper:g}")


def _between(row: Array, lower: float | None, upper: float | None) -> tuple[Kind, Array, Array]:
    """lower <= row · chi <= upper."""
    A = [row] * (lower is not None) + [-row] * (upper is not None)
    b = [-lower] if lower is not None else []
    b += [upper] if upper is not None else []
    return "nonnegative", np.array(A), np.array(b)


@dataclass(frozen=True)
class MassBound(Bound):
    """The mass of one link [kg], None where open.

    Attributes:
        link: Number or label of the link.
        lower, upper: [kg].
    """

    link: int | str
    lower: float | None = None
    upper: float | None = None

    def __post_init__(self) -> None:
        _interval(self.lower, self.upper, f"the mass of link {self.link}")

    def __str__(self) -> str:
        """In words."""
        return f"mass of link {self.link} {_words(self.lower, self.upper)} kg"

    def cone(self, robot: Robot) -> tuple[Kind, Array, Array]:
        """An interval."""
        row = np.zeros((robot.n_links, 10))
        row[link_index(robot, self.link), 9] = 1.0
        return _between(row, self.lower, self.upper)


@dataclass(frozen=True)
class TotalMassBound(Bound):
    """The mass of all moving links together [kg], None where open."""

    lower: float | None = None
    upper: float | None = None

    def __post_init__(self) -> None:
        _interval(self.lower, self.upper, "the total mass")

    def __str__(self) -> str:
        """In words."""
        return f"total mass {_words(self.lower, self.upper)} kg"

    def cone(self, robot: Robot) -> tuple[Kind, Array, Array]:
        """An interval."""
        row = np.zeros((robot.n_links, 10))
        row[:, 9] = 1.0
        return _between(row, self.lower, self.upper)


@brief
@dataclass(frozen=True)
class CenterBox(Bound):
    """The center of mass of a link lies in a box parallel to the link frame.

    Attributes:
        link: Number or label of the link.
        lower, upper: (3,) corners in the link frame [m].
    """

    link: int | str
    lower: Three
    upper: Three

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            object.__setattr__(self, name, _point(getattr(self, name), f"{name} of the box of link {self.link}"))
        if np.any(np.asarray(self.lower) > np.asarray(self.upper)):
            raise InputError(f"the box of link {self.link} is empty: a lower corner is above the upper one")

    def __str__(self) -> str:
        """In words."""
        return f"center of link {self.link} in the box {_numbers(self.lower)} to {_numbers(self.upper)} m"

    def cone(self, robot: Robot) -> tuple[Kind, Array, Array]:
        """Six planes: MX - lower M >= 0 and so on."""
        A = np.zeros((6, robot.n_links, 10))
        i = link_index(robot, self.link)
        A[:3, i, 6:9], A[:3, i, 9] = np.eye(3), -np.asarray(self.lower)
        A[3:, i, 6:9], A[3:, i, 9] = -np.eye(3), np.asarray(self.upper)
        return "nonnegative", A, np.zeros(6)


@brief
@dataclass(frozen=True)
class CenterEllipsoid(Bound):
    """The center of mass of a link lies in an ellipsoid along the axes of the link frame.

    Attributes:
        link: Number or label of the link.
        center: (3,) in the link frame [m].
        radii: (3,) half axes [m].
    """

    link: int | str
    center: Three
    radii: Three

    def __post_init__(self) -> None:
        for name in ("center", "radii"):
            object.__setattr__(self, name, _point(getattr(self, name), f"{name} of the ellipsoid of link {self.link}"))
        if np.any(np.asarray(self.radii) <= 0.0):
            raise InputError(f"the ellipsoid of link {self.link} has a half axis that is not positive")

    def __str__(self) -> str:
        """In words."""
        where = f"the ellipsoid at {_numbers(self.center)}, half axes {_numbers(self.radii)} m"
        return f"center of link {self.link} in {where}"

    def cone(self, robot: Robot) -> tuple[Kind, Array, Array]:
        """|| (first moment - M center) / radii || <= M."""
        A = np.zeros((4, robot.n_links, 10))
        i = link_index(robot, self.link)
        A[0, i, 9] = 1.0
        A[1:, i, 6:9] = np.diag(1.0 / np.asarray(self.radii))
        A[1:, i, 9] = -np.asarray(self.center) / np.asarray(self.radii)
        return "second order", A, np.zeros(4)


def _point(value: Three, name: str) -> Array:
    point = np.asarray(value, dtype=np.float64)
    if point.shape != (3,) or not np.isfinite(point).all():
        raise InputError(f"{name} must be three finite numbers; got {value!r}")
    return frozen(point)


def _words(lower: float | None, upper: float | None) -> str:
    if lower is None:
        return f"at most {upper:g}"
    return f"at least {lower:g}" if upper is None else f"from {lower:g} to {upper:g}"


def _numbers(values: Three) -> str:
    return f"({', '.join(f'{x:g}' for x in values)})"
