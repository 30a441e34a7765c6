"""Friction as a linear function of its parameters at given speeds: eq. (7) for one joint, eq. (8) for two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.friction_terms import METRES_PER_RADIAN, SMOOTHING, Moving, PointwiseLaw
from dynident.dynamics.terms import resolve_terms
from dynident.errors import InputError
from dynident.experiments.velocity.groups import Group
from dynident.experiments.velocity.points import Point

SHAPES = ("stribeck", "sign", "quadratic", "cubic")  # laws of speed that constant velocities can tell


@dataclass(frozen=True, eq=False)
class Columns:
    """The parameters of a group and what each adds to torque.

    Attributes:
        names: Of the parameters.
        units: Of the parameters.
        values: (n_points, n, n_columns) torque at the actuated coordinates per unit of each parameter.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Array


def shapes(text: str | Sequence[str] | None) -> tuple[PointwiseLaw, ...]:
    """Laws beside viscous and Coulomb friction from their names, such as "stribeck(0.2)"."""
    if not text:
        return ()
    found = []
    for law in resolve_terms(text):
        if law.name not in SHAPES or not isinstance(law, PointwiseLaw):
            raise InputError(f"{law.name} does not show at constant velocity; expected among {', '.join(SHAPES)}")
        found.append(law)
    return tuple(found)


def friction_columns(
    group: Group, speed: Array, odd: Array, laws: Sequence[PointwiseLaw] = (), *, offset: bool = True
) -> Columns:
    """What each parameter adds to the friction at given speeds.

    Viscous and Coulomb friction of every element, an offset of every actuated coordinate, and further laws.

    Args:
        group: The joints.
        speed: (n_points, n) joint speeds.
        odd: (n_points,) whether offsets have cancelled.
        laws: Further laws.
        offset: Whether there are offsets at all.
    """
    names, units, values = [], [], []
    for element, direction, push in zip(group.elements, group.directions, group.pushes, strict=True):
        v = speed @ direction
        sliding = element.prismatic
        kinds = [("Fv", v, "N·s/m" if sliding else "N·m·s/rad"), ("Fc", np.sign(v), "N" if sliding else "N·m")]
        # The offset of an element that acts on two motors is the sum of theirs.
        if offset and np.count_nonzero(push) == 1 and not odd.all():
            kinds.append(("Fo", 1.0 - odd, "N" if sliding else "N·m"))
        for symbol, phi, unit in kinds:
            if symbol in element.names:
                names.append(element.names[symbol])
                units.append(unit)
                values.append(np.outer(phi, push))
        for law in laws:
            for name, unit, phi in _law_columns(law, element.label, v, sliding=sliding):
                names.append(name)
                units.append(unit)
                values.append(np.outer(phi, push))
    return Columns(tuple(names), tuple(units), np.stack(values, axis=-1))


def _law_columns(law: PointwiseLaw, label: str, v: Array, *, sliding: bool) -> list[tuple[str, str, Array]]:
    nothing = np.zeros((0, len(v)))
    moving = Moving(np.zeros((1, len(v))), v[None], nothing, nothing, restart=True)
    radian = METRES_PER_RADIAN if sliding else 1.0
    found = law.at(moving, np.array([[radian]]))
    if law.name == "stribeck":
        # Its sign is smoothed about standstill for filtered logs; a joint that keeps its speed slips for certain.
        found = [phi / np.abs(np.tanh(v / radian / SMOOTHING)) for phi in found]
    kinds = law.kinds()
    return [
        (f"{kind.symbol}_{label}", kind.sliding_unit if sliding else kind.unit, phi[0])
        for kind, phi in zip(kinds, found, strict=True)
    ]


def stacked(points: Sequence[Point]) -> tuple[Array, Array, Array, Array]:
    """Speeds (m, n), torques (m, n), deviations of the means (m, n), and whether points are odd (m,)."""
    speed = np.array([point.speed for point in points])
    torque = np.array([point.torque for point in points])
    return speed, torque, np.array([point.std for point in points]), np.array([float(point.odd) for point in points])
