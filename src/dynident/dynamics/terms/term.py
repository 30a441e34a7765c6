"""A term: an effect that contributes named columns to one linear model, tau = W chi.

A term says which columns it has for a robot and, on any number type, what they add to the torque at the actuated
coordinates and to the energy.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.state import State
from dynident.errors import InputError
from dynident.robot.algebra import Number
from dynident.robot.model import Element, Robot

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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Term) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)

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
    return _all_columns(robot, tuple(terms))


@functools.lru_cache(maxsize=64)
def _all_columns(robot: Robot, terms: tuple[Term, ...]) -> tuple[Column, ...]:
    return tuple(column for term in terms for column in term.columns(robot))


# ----------------------------------------------------------------------------------------------------------------------
# Terms that are evaluated along a motion: with memory, with higher derivatives, or around a linearization point.
#
# They are linear in their coefficients like all others, so they are columns like all others. But a sample alone does
# not give their value: friction that winds up depends on the motion before, friction that grows with the load on the
# torque that the links need. So they follow a motion, block after block.

Place = tuple[int, int]  # row (actuated coordinate) and column within the term


@dataclass(frozen=True, eq=False)
class MotionSamples:
    """Samples of motion that follow each other in time: what terms see of it.

    Filters and kernels take the samples of one joint after the other, so arrays in Fortran order are read without a
    copy; any order will do. They are made for every block of a log, and not copied.

    Attributes:
        q: (n_samples, n_joints) positions of the moving joints [rad or m].
        dq: (n_samples, n_joints) [rad/s or m/s].
        ddq: (n_samples, n_joints) [rad/s² or m/s²].
        dddq: (n_samples, n_joints) jerk [rad/s³ or m/s³]; (n_samples, 0) where nothing asks for it.
        restart: Whether a stretch of motion begins, so that nothing before it counts.
        temperature: (n_samples, n_joints) of the joints [°C]; None where it is not known.
    """

    q: Array
    dq: Array
    ddq: Array
    dddq: Array
    restart: bool
    temperature: Array | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.q)

    @staticmethod
    def of_stretch(q: Array, dq: Array, ddq: Array) -> MotionSamples:
        """A whole stretch of motion, (n_samples, n_joints) each, without jerk."""
        return MotionSamples(q, dq, ddq, np.zeros((len(q), 0)), restart=True)


class LinkTorque(Protocol):
    """The torque of the links that some terms are linear around; see `dynamics.linearization`."""

    def torque(self, samples: MotionSamples) -> Array:
        """At the actuated coordinates, (n_samples, n_joints)."""
        ...

    def torque_at(self, q: Array, dq: Array, ddq: Array, robot: Robot | None = None) -> Array:
        """The same in another state, or for a robot that differs in how it stands."""
        ...


Follower = Callable[[MotionSamples], Array]  # the next samples to columns first: (n_places, n_samples)


class AlongTerm(Term):
    """A term that follows a motion.

    Args:
        *scales: Its numbers.
        only: Labels of the elements it is for; None for all that have friction.

    Attributes:
        needs_linearization_point: Whether it is linear only around an estimate of the links.
        needs_jerk: Whether it looks at the third derivative.
    """

    needs_linearization_point = False
    needs_jerk = False

    def __init__(self, *scales: float, only: tuple[str, ...] | None = None) -> None:
        self.scales, self.only = scales, only

    @property
    def key(self) -> str:
        """Name, numbers and elements."""
        numbers = f"({','.join(f'{x:.12g}' for x in self.scales)})" if self.scales else ""
        return f"{self.name}{numbers}" + ("" if self.only is None else f"@{'|'.join(self.only)}")

    def restricted_to(self, labels: Sequence[str]) -> AlongTerm:
        """The same term for these elements or joints alone."""
        return type(self)(*self.scales, only=tuple(labels))

    def torque(self, state: State) -> Iterator[Entry]:
        """Not from a state alone."""
        raise self.no_state()

    def no_state(self) -> InputError:
        """The error for somebody who wants its value in a single state."""
        return InputError(
            f"term {self.key} follows a motion in time and has no value in a single state; use it in identify, "
            "validate and predict"
        )

    @abstractmethod
    def places(self, robot: Robot) -> tuple[Place, ...]:
        """Where its columns act."""

    @abstractmethod
    def follow(self, robot: Robot, links: LinkTorque | None) -> Follower:
        """Begin to follow a motion, given the torque of the links where it is linear around them."""


def all_places(robot: Robot, terms: Sequence[AlongTerm]) -> list[Place]:
    """Row and column of each line of `TermCourse.columns_first`, columns counted over all terms."""
    result, first = [], 0
    for term in terms:
        result += [(row, first + column) for row, column in term.places(robot)]
        first += len(term.columns(robot))
    return result
