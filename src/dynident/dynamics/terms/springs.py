"""The springs that a robot's description declares, as a term that stores energy."""

from __future__ import annotations

from collections.abc import Iterator

from dynident.dynamics.state import State
from dynident.dynamics.terms.term import Column, Entry, Term
from dynident.errors import InputError
from dynident.robot.algebra import Number, mul, total
from dynident.robot.model import Robot
from dynident.robot.springs import SPRING_MEANINGS, Spring


class Springs(Term):
    """Springs and counterbalances of the robot's description; values that it gives are known."""

    name = "spring"

    def columns(self, robot: Robot) -> tuple[Column, ...]:
        """One or two columns per spring.

        Raises:
            InputError: For a robot that declares none.
        """
        if not robot.springs:
            raise InputError(
                f"term spring: robot {robot.name} has none; declare them under 'springs' in its file, or take term "
                "stiffness for an unknown linear spring on every joint"
            )
        return tuple(
            Column(
                name=symbol + spring.label,
                unit=spring.unit(symbol),
                symbol=symbol,
                place=spring.label,
                term=self.name,
                meaning=f"{SPRING_MEANINGS[symbol]} of {spring_words(robot, spring)}",
                fixed=robot.fixed.get(symbol + spring.label),
            )
            for spring in robot.springs
            for symbol in spring.symbols
        )

    def torque(self, state: State) -> Iterator[Entry]:
        """Torque against the springs, from the tree joints to the actuated coordinates."""
        column = 0
        for spring in state.robot.springs:
            weights = [
                total(*(mul(to_joint, float(c)) for to_joint, c in zip(row, spring.joints, strict=True)))
                for row in state.tree_to_rows
            ]
            for number in spring.torques(_coordinate(spring, state), state.functions):
                for row, weight in enumerate(weights):
                    yield row, column, mul(weight, number)
                column += 1

    def potential(self, state: State) -> Iterator[tuple[int, Number]]:
        """Energy of the springs."""
        yield from enumerate(
            number
            for spring in state.robot.springs
            for number in spring.energies(_coordinate(spring, state), state.functions)
        )


def _coordinate(spring: Spring, state: State) -> Number:
    return total(*(mul(float(c), x) for c, x in zip(spring.joints, state.positions, strict=True)))


def spring_words(robot: Robot, spring: Spring) -> str:
    """A spring in words: its kind and the joints it acts on."""
    kind = {"linear": "spring", "gas": "gas spring", "hydraulic": "hydraulic counterbalance"}[spring.kind]
    names = [joint.name for joint, c in zip(robot.joints, spring.joints, strict=True) if c]
    return f"{kind} on {', '.join(names)}"
