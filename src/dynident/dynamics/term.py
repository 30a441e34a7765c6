"""A term: an effect that contributes named columns to one linear model, tau = W chi.

A term says which columns it has for a robot and, on any number type, what they add to the torque at the actuated
coordinates and to the energy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynident.robot.algebra import Number
from dynident.robot.model import Element, Robot

if TYPE_CHECKING:
    from dynident.dynamics.equations import State

Entry = tuple[int, int, Number]  # row (actuated coordinate), column within the term, number


@dataclass(frozen=True)
class Column:
    """A column of the regressor and the parameter that multiplies it.

    Attributes:
        name: Parameter name, such as ZZ3 or Fvm6.
        unit: Unit of the parameter.
        symbol: The name without its number: ZZ, Fv.
        place: The number: "3", "m6".
        term: Name of the term it belongs to.
        meaning: In words, with the link's or joint's own name.
        fixed: Known value that is not to be estimated, or None.
    """

    name: str
    unit: str
    symbol: str
    place: str
    term: str
    meaning: str
    fixed: float | None = None


class Term(ABC):
    """An effect that is linear in its parameters."""

    name: str

    @property
    def key(self) -> str:
        """Identity of the term with its options; terms with equal keys make equal columns."""
        return self.name

    def key_on(self, robot: Robot) -> str:
        """The key with its numbers in the units of a robot's own joints, as files keep it."""
        return self.key

    @abstractmethod
    def columns(self, robot: Robot) -> tuple[Column, ...]:
        """The columns this term has for a robot."""

    @abstractmethod
    def torque(self, state: State) -> Iterator[Entry]:
        """Entries of the term's columns in the torque at the actuated coordinates."""

    def kinetic(self, state: State) -> Iterator[tuple[int, Number]]:
        """Entries (column, number) in the kinetic energy."""
        return iter(())

    def potential(self, state: State) -> Iterator[tuple[int, Number]]:
        """Entries (column, number) in the potential energy."""
        return iter(())


def element_place(robot: Robot, element: Element) -> str:
    """Where an element is, in words: the joint's own name, or the motor of a joint."""
    labels = {joint.number: joint.name for joint in robot.joints}
    number = element.label.removeprefix("m")
    where = labels.get(int(number), element.label) if number.isdigit() else element.label
    return f"motor of {where}" if element.label.startswith("m") else where


def all_columns(robot: Robot, terms: Sequence[Term]) -> tuple[Column, ...]:
    """Columns of all terms, in order."""
    return tuple(column for term in terms for column in term.columns(robot))
