"""Whether a link's ten parameters can belong to a body of positive density."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.robot.model import Joint, Robot
from dynident.robot.parameters import LINK_SYMBOLS, inertia_matrix, to_classical

_MOST_PLACES = 8  # that a sentence lists


@dataclass(frozen=True)
class Violation:
    """One condition that parameters break.

    Attributes:
        place: The link or joint, such as "link 3 (elbow)".
        condition: The condition in words.
        value: The offending number.
        unit: Its unit.
    """

    place: str
    condition: str
    value: float
    unit: str

    def __str__(self) -> str:
        """A sentence naming place, condition and number."""
        return f"{self.place}: {self.condition} ({self.value:.4g} {self.unit})"


def pseudo_inertia(chi: ArrayLike) -> Array:
    """The 4x4 second-moment matrix [[Sigma, m c], [m c', m]] of each link, (..., 4, 4).

    Sigma = tr(I)/2 E - I. It is positive definite exactly when the parameters belong to a body of positive density.
    """
    chi = np.asarray(chi, dtype=np.float64)
    inertia = inertia_matrix(chi)
    sigma = 0.5 * np.trace(inertia, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - inertia
    first = chi[..., 6:9, None]
    top = np.concatenate([sigma, first], -1)
    bottom = np.concatenate([np.swapaxes(first, -1, -2), chi[..., 9, None, None]], -1)
    return np.concatenate([top, bottom], -2)


def violations(chi: ArrayLike, place: str, tolerance: float = 1e-9) -> list[Violation]:
    """The conditions that one link's parameters (10,) break; empty for a physical (or massless) link.

    Args:
        chi: Standard parameters of the link, about its frame origin.
        place: Words for the link in the messages.
        tolerance: Share of the link's own size below which a negative number is rounding.
    """
    chi = np.asarray(chi, dtype=np.float64)
    if not chi.any():
        return []
    mass, _, about_center = to_classical(chi)
    found: list[Violation] = []
    if mass <= 0.0:
        found.append(Violation(place, "mass must be positive", float(mass), "kg"))
        return found
    size = float(np.abs(about_center).max())
    slack = tolerance * max(size, float(np.abs(chi[:6]).max()))
    principal = np.linalg.eigvalsh(about_center)
    if principal[0] < -slack:
        text = "inertia about the center of mass must not be negative"
        found.append(Violation(place, text, float(principal[0]), "kg·m²"))
    excess = principal[0] + principal[1] - principal[2]
    if excess < -slack:
        text = "triangle inequality: the two smaller principal inertias must reach the largest"
        found.append(Violation(place, text, float(excess), "kg·m²"))
    lowest = float(np.linalg.eigvalsh(pseudo_inertia(chi))[0])
    if lowest < -tolerance * max(1.0, float(np.abs(chi).max())):
        found.append(Violation(place, "pseudo-inertia must not have a negative eigenvalue", lowest, "mixed"))
    return found


def complete_links(robot: Robot, values: str | None = None) -> list[int]:
    """Indices of the links of which a value set gives all ten numbers; about others nothing can be said."""
    found = robot.value_set(values)
    return [
        i for i, joint in enumerate(robot.joints) if all(f"{symbol}{joint.number}" in found for symbol in LINK_SYMBOLS)
    ]


def without_body(robot: Robot) -> frozenset[int]:
    """Indices of the links whose ten parameters are fixed at zero: joints that carry no body of their own."""
    numbers = [joint.number for joint in robot.joints]
    return frozenset(i for i, n in enumerate(numbers) if all(robot.fixed.get(f"{s}{n}") == 0.0 for s in LINK_SYMBOLS))


def physical_violations(robot: Robot, values: str | None = None) -> list[Violation]:
    """The conditions that a value set breaks, link by link; links that are given only in part are left out."""
    chi = robot.link_parameters(values)
    return [
        violation
        for i in complete_links(robot, values)
        for violation in violations(chi[i], link_label(robot.joints[i]))
    ]


def sentences(found: Iterable[Violation]) -> list[str]:
    """One sentence for all places that break the same conditions, with the numbers of the worst."""
    by_place: dict[str, list[Violation]] = {}
    for violation in found:
        by_place.setdefault(violation.place, []).append(violation)
    kinds: dict[tuple[str, ...], list[str]] = {}
    for place, broken in by_place.items():
        kinds.setdefault(tuple(one.condition for one in broken), []).append(place)
    result = []
    for places in kinds.values():
        rows = zip(*(by_place[place] for place in places), strict=True)  # the same condition at every place
        worst = [min(row, key=lambda one: one.value) for row in rows]
        words = "; ".join(f"{one.condition} ({one.value:.4g} {one.unit})" for one in worst)
        if len(places) == 1:
            result.append(f"{places[0]}: {words}")
        else:
            shown = places if len(places) <= _MOST_PLACES else [*places[: _MOST_PLACES - 1], "others"]
            result.append(f"{len(places)} bodies ({', '.join(shown)}; numbers of the worst): {words}")
    return result


def link_label(joint: Joint) -> str:
    """Such as `link 3 (elbow)`."""
    return f"link {joint.number}" + ("" if joint.link == str(joint.number) else f" ({joint.link})")
