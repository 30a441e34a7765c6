"""Terms: every effect contributes named columns to one linear model, tau = W chi.

A term says which columns it has for a robot and, on any number type, what they add to the torque at the actuated
coordinates and to the energy. Rigid links and rotor inertia store energy; friction and offsets do not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynident.errors import InputError, UnknownNameError
from dynident.robot.algebra import Number, is_number, mul, total
from dynident.robot.model import Element, Robot
from dynident.robot.parameters import LINK_SYMBOLS, LINK_UNITS, MEANINGS, element_unit

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


class Rigid(Term):
    """The ten standard parameters of each link."""

    name = "rigid"

    def columns(self, robot: Robot) -> tuple[Column, ...]:
        """Ten columns per link, links in tree order."""
        return tuple(
            Column(
                name=f"{symbol}{joint.number}",
                unit=unit,
                symbol=symbol,
                place=str(joint.number),
                term=self.name,
                meaning=f"{MEANINGS[symbol]} of link {joint.link}",
                fixed=robot.fixed.get(f"{symbol}{joint.number}"),
            )
            for joint in robot.joints
            for symbol, unit in zip(LINK_SYMBOLS, LINK_UNITS, strict=True)
        )

    def torque(self, state: State) -> Iterator[Entry]:
        """Torques of the tree joints, brought to the actuated coordinates by the transposed actuation map."""
        for link, by_joint in enumerate(state.rigid_columns()):
            for row in range(state.n_rows):
                parts = [(state.tree_to_rows[row][joint], column) for joint, column in by_joint.items()]
                for k in range(len(LINK_SYMBOLS)):
                    number = total(*(mul(weight, column[k]) for weight, column in parts))
                    yield row, len(LINK_SYMBOLS) * link + k, number

    def kinetic(self, state: State) -> Iterator[tuple[int, Number]]:
        """Kinetic energy of the links."""
        yield from enumerate(number for columns in state.kinetic_columns() for number in columns)

    def potential(self, state: State) -> Iterator[tuple[int, Number]]:
        """Potential energy of the links."""
        yield from enumerate(number for columns in state.potential_columns() for number in columns)


class ElementTerm(Term):
    """A law phi on the elements that carry `name`: column s phi(e · da) (Gautier et al. 1995, eq. 7-8)."""

    def elements(self, robot: Robot) -> list[Element]:
        """The elements with this term's parameter."""
        return [element for element in robot.elements if self.name in element.names]

    def columns(self, robot: Robot) -> tuple[Column, ...]:
        """One column per element."""
        labels = {joint.number: joint.name for joint in robot.joints}
        result = []
        for element in self.elements(robot):
            motor = element.label.startswith("m")
            number = element.label.removeprefix("m")
            where = labels.get(int(number), element.label) if number.isdigit() else element.label
            result.append(
                Column(
                    name=element.names[self.name],
                    unit=element_unit(self.name, element.prismatic),
                    symbol=self.name,
                    place=element.names[self.name].removeprefix(self.name),
                    term=self.name,
                    meaning=f"{MEANINGS[self.name]} of {'motor of ' if motor else ''}{where}",
                    fixed=robot.fixed.get(element.names[self.name]),
                )
            )
        return tuple(result)

    @abstractmethod
    def law(self, speed: Number, acceleration: Number, state: State) -> Number:
        """phi, from the element's speed and acceleration."""

    def torque(self, state: State) -> Iterator[Entry]:
        """The law along each element's torque direction."""
        for column, element in enumerate(self.elements(state.robot)):
            number = self.law(state.along(element, "speed"), state.along(element, "acceleration"), state)
            for row, share in enumerate(state.rows_of(element)):
                if share:
                    yield row, column, mul(share, number)


class RotorInertia(ElementTerm):
    """Inertia of the motors' rotors, referred to the joint side."""

    name = "Ia"

    def law(self, speed: Number, acceleration: Number, state: State) -> Number:
        """The element's acceleration."""
        return acceleration

    def kinetic(self, state: State) -> Iterator[tuple[int, Number]]:
        """Half the squared speed of each rotor."""
        for column, element in enumerate(self.elements(state.robot)):
            speed = state.along(element, "speed")
            yield column, mul(0.5, mul(speed, speed))


class Viscous(ElementTerm):
    """Viscous friction."""

    name = "Fv"

    def law(self, speed: Number, acceleration: Number, state: State) -> Number:
        """The element's speed."""
        return speed


class Coulomb(ElementTerm):
    """Coulomb friction with the exact sign of the speed, or tanh(speed / smoothing).

    Args:
        smoothing: Speed at which the sign reaches tanh(1), in the unit of the joint's speed; 0 is the exact sign.
    """

    name = "Fc"

    def __init__(self, smoothing: float = 0.0) -> None:
        if isinstance(smoothing, str) or not smoothing >= 0.0:
            raise InputError(f"smoothing of Fc is {smoothing}; expected zero or a positive speed")
        self.smoothing = float(smoothing)

    @property
    def key(self) -> str:
        """Name and smoothing."""
        return f"Fc({self.smoothing!r})" if self.smoothing else "Fc"

    def law(self, speed: Number, acceleration: Number, state: State) -> Number:
        """The sign of the element's speed."""
        if is_number(speed, 0):
            return 0.0  # a locked element does not slide
        if self.smoothing:
            return state.functions.tanh(mul(1.0 / self.smoothing, speed))
        return state.functions.sign(speed)


class Offset(ElementTerm):
    """Constant torque: current offset, asymmetric friction."""

    name = "Fo"

    def law(self, speed: Number, acceleration: Number, state: State) -> Number:
        """One."""
        return 1.0


TERMS: dict[str, type[Term]] = {term.name: term for term in (Rigid, RotorInertia, Viscous, Coulomb, Offset)}
DEFAULT_TERMS = ("rigid", "Ia", "Fv", "Fc", "Fo")
TermsLike = str | Iterable["str | Term"] | None


def resolve_terms(terms: TermsLike = None) -> tuple[Term, ...]:
    """Terms from names (`"rigid,Ia"` or a sequence), term objects, or None for the default ones."""
    if terms is None:
        terms = DEFAULT_TERMS
    if isinstance(terms, str):
        terms = [part.strip() for part in terms.split(",")]
    if isinstance(terms, Term):
        terms = [terms]
    if not isinstance(terms, Iterable):
        raise InputError(f"terms is {terms!r}; expected names such as 'rigid,Ia' or a sequence of terms")
    resolved: list[Term] = []
    for term in terms:
        if isinstance(term, Term):
            resolved.append(term)
        else:
            resolved.append(_term(str(term)))
    names = [term.name for term in resolved]
    if not names:
        raise InputError(f"no terms given; choose among {', '.join(TERMS)}")
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"term {name} is given twice")
    return tuple(resolved)


def _term(text: str) -> Term:
    """A term from its key: a name, with its option in brackets where it has one: Fc(0.02)."""
    name, bracket, rest = text.partition("(")
    if name not in TERMS:
        raise UnknownNameError("term", text, TERMS)
    if not bracket:
        return TERMS[name]()
    try:
        option = float(rest.removesuffix(")"))
    except ValueError:
        option = -1.0
    if name != Coulomb.name or not rest.endswith(")") or option < 0.0:
        raise InputError(f"term '{text}' cannot be understood; only Fc has an option, its smoothing speed: Fc(0.02)")
    return Coulomb(option)


def all_columns(robot: Robot, terms: Sequence[Term]) -> tuple[Column, ...]:
    """Columns of all terms, in order."""
    return tuple(column for term in terms for column in term.columns(robot))
