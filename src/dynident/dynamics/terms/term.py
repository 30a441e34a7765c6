"""A term: an effect that contributes named columns to one linear model, tau = W chi.

A term says which columns it has for a robot and, on any number type, what they add to the torque at the actuated
coordinates and to the energy.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from dynident.arrays import Array, frozen
from dynident.errors import InputError
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


# ----------------------------------------------------------------------------------------------------------------------
# Terms that are evaluated along a motion: with memory, with higher derivatives, or around a reference estimate.
#
# They are linear in their coefficients like all others, so they are columns like all others. But a sample alone does
# not
# give their value: friction that winds up depends on the motion before, friction that grows with the load on the torque
# that the links need. So they follow a motion, block after block.

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
    """

    q: Array
    dq: Array
    ddq: Array
    dddq: Array
    restart: bool

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.q)

    @staticmethod
    def of_stretch(q: Array, dq: Array, ddq: Array) -> MotionSamples:
        """A whole stretch of motion, (n_samples, n_joints) each, without jerk."""
        return MotionSamples(q, dq, ddq, np.zeros((len(q), 0)), restart=True)


class Reference:
    """The links as an earlier fit saw them: what load-dependent friction, tilt and zero offsets are linear around.

    Args:
        robot: The robot.
        chi: (10 n_links,) standard parameters of its links.
    """

    def __init__(self, robot: Robot, chi: Array) -> None:
        self.robot, self.chi = robot, frozen(chi)
        self._seen: tuple[MotionSamples, Array] | None = None

    @property
    def fingerprint(self) -> str:
        """Columns with different references do not mix."""
        return hashlib.sha256(self.chi.tobytes()).hexdigest()[:12]

    def torque(self, samples: MotionSamples) -> Array:
        """Torque of the links at the actuated coordinates, (n_samples, n_joints); several terms may ask for it."""
        if self._seen is None or self._seen[0] is not samples:
            self._seen = samples, self.torque_at(samples.q, samples.dq, samples.ddq)
        return self._seen[1]

    def torque_at(self, q: Array, dq: Array, ddq: Array, robot: Robot | None = None) -> Array:
        """The same in another state, or for a robot that differs in how it stands."""
        from dynident.dynamics.evaluate import inverse_dynamics  # which evaluates terms, and so knows this module

        return inverse_dynamics(robot or self.robot, q, dq, ddq, "rigid", self.chi)


Follower = Callable[[MotionSamples], Array]  # the next samples to columns first: (n_places, n_samples)


class Memory(Protocol):
    """What counts of the motion so far, as one array."""

    def remembered(self) -> Array:
        """A copy of it; empty where nothing counts."""
        ...

    def recall(self, kept: Array) -> None:
        """Continue from what `remembered` gave."""
        ...


class Following:
    """A follower whose memory can be kept, for those who stop and go on later.

    Args:
        run: The follower.
        memory: What it remembers.
    """

    def __init__(self, run: Follower, memory: Memory) -> None:
        self._run, self.memory = run, memory

    def __call__(self, samples: MotionSamples) -> Array:
        """Columns first, (n_places, n_samples), of the next samples."""
        return self._run(samples)


class AlongTerm(Term):
    """A term that follows a motion.

    Args:
        *scales: Its numbers.
        only: Labels of the elements it is for; None for all that have friction.

    Attributes:
        needs_reference: Whether it is linear only around a reference estimate.
        needs_jerk: Whether it looks at the third derivative.
    """

    needs_reference = False
    needs_jerk = False

    def __init__(self, *scales: float, only: tuple[str, ...] | None = None) -> None:
        self.scales, self.only = scales, only

    @property
    def key(self) -> str:
        """Name, numbers and elements."""
        numbers = f"({','.join(f'{x:.12g}' for x in self.scales)})" if self.scales else ""
        return f"{self.name}{numbers}" + ("" if self.only is None else f"@{'|'.join(self.only)}")

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
        """Where its columns are felt."""

    @abstractmethod
    def follow(self, robot: Robot, reference: Reference | None) -> Follower:
        """Begin to follow a motion."""


class Course:
    """The columns of several terms along a motion.

    Args:
        robot: The robot.
        terms: Terms that follow.
        reference: What some are linear around.
    """

    def __init__(self, robot: Robot, terms: Sequence[AlongTerm], reference: Reference | None = None) -> None:
        lacking = [term.key for term in terms if term.needs_reference and reference is None]
        if lacking:
            raise InputError(f"term {lacking[0]} needs the torque of the links as a reference; identify gives it one")
        self._followers = [term.follow(robot, reference) for term in terms]

    def columns_first(self, samples: MotionSamples) -> Array:
        """(n_places, n_samples) of the next samples, term after term in the order of their places."""
        parts = [follower(samples) for follower in self._followers]
        return np.concatenate([np.zeros((0, len(samples))), *parts])

    def remembered(self) -> list[Array]:
        """What each term that can remember anything does of the motion so far."""
        return [one.memory.remembered() for one in self._followers if isinstance(one, Following)]

    def recall(self, kept: Sequence[Array]) -> None:
        """Continue from what `remembered` gave."""
        own = [one.memory for one in self._followers if isinstance(one, Following)]
        for memory, array in zip(own, kept, strict=True):
            memory.recall(array)


def all_places(robot: Robot, terms: Sequence[AlongTerm]) -> list[Place]:
    """Row and column of each line of `Course.columns_first`, columns counted over all terms."""
    result, first = [], 0
    for term in terms:
        result += [(row, first + column) for row, column in term.places(robot)]
        first += len(term.columns(robot))
    return result
