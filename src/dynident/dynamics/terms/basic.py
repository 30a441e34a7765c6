"""Terms that are functions of the state: rigid links, rotor inertia, viscous and Coulomb friction, offset.

Rigid links and rotor inertia store energy; friction and offsets do not.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping

from dynident.dynamics.state import State
from dynident.dynamics.terms.friction_laws import coulomb, viscous
from dynident.dynamics.terms.term import Column, Entry, Term, element_place
from dynident.errors import InputError
from dynident.robot.algebra import Number, mul, total
from dynident.robot.model import METERS_PER_RADIAN, Element, Robot
from dynident.robot.parameters import LINK_SYMBOLS, LINK_UNITS, MEANINGS, element_unit


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
    def law(self, element: Element, velocity: Number, acceleration: Number, state: State) -> Number:
        """phi of an element, from its velocity and acceleration."""

    def torque(self, state: State) -> Iterator[Entry]:
        """The law along each element's torque direction."""
        for column, element in enumerate(self.elements(state.robot)):
            number = self.law(element, state.along(element, "velocity"), state.along(element, "acceleration"), state)
            for row, share in enumerate(state.rows_of(element)):
                if share:
                    yield row, column, mul(share, number)


class RotorInertia(ElementTerm):
    """Inertia of the motors' rotors, referred to the joint side."""

    name = "Ia"

    def law(self, element: Element, velocity: Number, acceleration: Number, state: State) -> Number:
        """The element's acceleration."""
        return acceleration

    def kinetic(self, state: State) -> Iterator[tuple[int, Number]]:
        """Half the squared velocity of each rotor."""
        for column, element in enumerate(self.elements(state.robot)):
            velocity = state.along(element, "velocity")
            yield column, mul(0.5, mul(velocity, velocity))


class Viscous(ElementTerm):
    """Viscous friction."""

    name = "Fv"

    def law(self, element: Element, velocity: Number, acceleration: Number, state: State) -> Number:
        """The element's velocity."""
        return viscous(velocity)


class Coulomb(ElementTerm):
    r"""Coulomb friction with the exact sign of the velocity, or smoothed about standstill.

    .. math:: \phi(v) = \tanh(v / w)

    with w the smoothing velocity of joints that turn [rad/s] or of those that slide [m/s].

    Args:
        smoothing: Velocity at which the sign of a joint that turns reaches tanh(1) [rad/s]; 0 is the exact sign.
        sliding: The same of a joint that slides [m/s]; None for `METERS_PER_RADIAN` times `smoothing`.
        widths: The same of single elements by their labels [rad/s or m/s]; those of other elements are as above.
    """

    name = "Fc"

    def __init__(
        self, smoothing: float = 0.0, sliding: float | None = None, *, widths: Mapping[str, float] | None = None
    ) -> None:
        for width in (smoothing, sliding, *(widths or {}).values()):
            if width is not None and (isinstance(width, str) or not 0.0 <= width < math.inf):
                raise InputError(f"smoothing of Fc is {width}; expected zero or a positive velocity")
        self.smoothing = float(smoothing)
        self.sliding = METERS_PER_RADIAN * self.smoothing if sliding is None else float(sliding)
        self.widths = {label: float(width) for label, width in (widths or {}).items()}

    @property
    def key(self) -> str:
        """Name and smoothing; that of slides where it is not the usual one, those of elements where they are given."""
        if self.widths:
            return f"Fc({','.join(f'{label}={width!r}' for label, width in self.widths.items())})"
        if math.isclose(self.sliding, METERS_PER_RADIAN * self.smoothing, rel_tol=1e-9):
            return f"Fc({self.smoothing!r})" if self.smoothing else "Fc"
        return f"Fc({self.smoothing!r},{self.sliding!r})"

    def key_on(self, robot: Robot) -> str:
        """Name and smoothing in the joints' own units: one number where it is the same for all elements."""
        if self.widths:
            return self.key
        slides = any(element.prismatic for element in self.elements(robot))
        if slides and self.sliding != self.smoothing:
            return f"Fc({self.smoothing!r},{self.sliding!r})"
        return f"Fc({self.smoothing!r})" if self.smoothing else "Fc"

    def width(self, element: Element) -> float:
        """Velocity at which the sign reaches tanh(1) on an element [rad/s or m/s]; 0 is the exact sign."""
        return self.widths.get(element.label, self.sliding if element.prismatic else self.smoothing)

    def law(self, element: Element, velocity: Number, acceleration: Number, state: State) -> Number:
        """The sign of the element's velocity."""
        return coulomb(velocity, self.width(element), state.functions)


class Offset(ElementTerm):
    """Constant torque: current offset, asymmetric friction."""

    name = "Fo"

    def law(self, element: Element, velocity: Number, acceleration: Number, state: State) -> Number:
        """One."""
        return 1.0
