"""Terms that are functions of the state: rigid links, rotor inertia, viscous and Coulomb friction, offset.

Rigid links and rotor inertia store energy; friction and offsets do not.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dynident.dynamics.term import Column, Entry, Term, element_place
from dynident.errors import InputError
from dynident.robot.algebra import Number, is_number, mul, total
from dynident.robot.model import Element, Robot
from dynident.robot.parameters import LINK_SYMBOLS, LINK_UNITS, MEANINGS, element_unit

if TYPE_CHECKING:
    from dynident.dynamics.equations import State


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
        result = []
        for element in self.elements(robot):
            result.append(
                Column(
                    name=element.names[self.name],
                    unit=element_unit(self.name, element.prismatic),
                    symbol=self.name,
                    place=element.names[self.name].removeprefix(self.name),
                    term=self.name,
                    meaning=f"{MEANINGS[self.name]} of {element_place(robot, element)}",
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
