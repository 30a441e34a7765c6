"""A link's identified parameters on the bodies of a file: what is fixed to it may have bodies of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.export.exported import ExportError
from dynident.robot.parameters import to_classical
from dynident.robot.physicality import violations

_SAME = 1e-12  # share of its own size by which a number may differ and still be the one in the file


@dataclass(frozen=True)
class Share:
    """What becomes of the bodies of one link.

    Attributes:
        own: (10,) parameters of the body that moves with the joint itself.
        emptied: Names of the bodies fixed to it that give theirs to it.
    """

    own: Array
    emptied: tuple[str, ...] = ()


def shared(link: Array, fixed: Mapping[str, Array], label: str) -> Share:
    """Bodies fixed to a link keep what they have and the link's own body gets the rest, or all of it.

    Args:
        link: (10,) parameters of the whole link, in its frame.
        fixed: Parameters of the bodies fixed to it, in the same frame, by name.
        label: The link, for messages.
    """
    heavy = {name: chi for name, chi in fixed.items() if np.any(chi)}
    rest = link - sum(heavy.values(), np.zeros(10))
    if not heavy or not (violations(rest, label) or not rest[9] > 0.0):
        return Share(rest)
    return Share(link, tuple(heavy))


def same(new: Array, old: Array) -> bool:
    """Whether two links' parameters (10,) differ by rounding alone: inertia, first moment and mass each."""
    blocks = (slice(0, 6), slice(6, 9), slice(9, 10))
    return all(np.abs(new[b] - old[b]).max() <= _SAME * np.abs(old[b]).max() for b in blocks)


def classical(chi: Array, label: str, form: str) -> tuple[float, Array, Array]:
    """Mass [kg], centre of mass (3,) [m] and inertia about it (3, 3) [kg·m²], as files have them.

    Raises:
        ExportError: For parameters that have no such form: without mass there is no centre of it.
    """
    mass, centre, inertia = to_classical(chi)
    if mass < 0.0 or (mass == 0.0 and np.any(chi)):
        raise ExportError(
            f"{label}: mass is {float(mass):.4g} kg, and {form} describes bodies that have some; base parameters alone "
            "are no bodies, export the values of a physically consistent fit"
        )
    return float(mass), centre, inertia


def merged_words(label: str, emptied: tuple[str, ...]) -> str:
    """The warning for bodies that gave theirs to another."""
    names = ", ".join(emptied)
    return f"{label}: holds the masses of {names} as well, because what would be left beside them is no body"


def text(*numbers: float) -> str:
    """Numbers that are read back to the last bit."""
    return " ".join(repr(float(x) + 0.0) for x in numbers)
