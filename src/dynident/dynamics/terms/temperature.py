"""Viscous and Coulomb friction that change with the temperature of a joint."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.terms.friction import elements_with_friction, motion_of
from dynident.dynamics.terms.term import AlongTerm, Column, Follower, LinkTorque, MotionSamples, Place, element_place
from dynident.errors import InputError, UnknownNameError
from dynident.robot.model import METERS_PER_RADIAN, Element, Robot
from dynident.robot.parameters import element_unit

_SYMBOLS = {"Fv": "FvT", "Fc": "FcT"}
_SMOOTHING = 0.02  # [rad/s], as that of Coulomb friction beside which it stands
_WORDS = {"Fv": "viscous friction", "Fc": "Coulomb friction"}


class TemperatureFriction(AlongTerm):
    r"""What friction gains per kelvin above a reference temperature.

    .. math:: \phi(v, T) = (F_{vT} v + F_{cT} \tanh(v / w)) (T - T_0)

    Lubricants thin out with temperature, about as exp(-b T) with b of 0.02 to 0.04 per kelvin (Bittencourt & Axelsson
    2014). To first order around T_0 that is F_v (1 - b (T - T_0)): linear in the coefficients, so that one pass serves,
    with an error of (b (T - T_0))^2 / 2, 2 % of viscous friction ten kelvin from the reference at 0.02 and 8 % at 0.04.
    An exponential would need F_v to be known first, and would force its sign and law on Coulomb friction too, which
    rises in some gears. With the mean of the training as T_0 the new columns are nearly orthogonal to those of F_v and
    F_c, which then are friction at T_0. Where no temperature is known, friction is that at T_0.

    Args:
        *scales: Reference temperature of each element [°C].
        only: Labels of the elements.
    """

    name = "temperature"

    def __init__(self, *scales: float, only: tuple[str, ...] | None = None) -> None:
        super().__init__(*scales, only=only)
        if only is None or len(scales) != len(only) or not np.isfinite(scales).all():
            raise InputError(
                f"term {self.key} needs a reference temperature for each of its elements [°C], as in "
                "temperature(31.5,40)@1|2; identify adds it by itself where logs have temp1, temp2, .."
            )

    def restricted_to(self, labels: Sequence[str]) -> TemperatureFriction:
        """The same term for some of its elements."""
        assert self.only is not None
        references = dict(zip(self.only, self.scales, strict=True))
        return TemperatureFriction(*(references[label] for label in labels), only=tuple(labels))

    def elements(self, robot: Robot) -> list[tuple[Element, float]]:
        """The elements, each with its reference temperature [°C]."""
        able = {element.label: element for element in elements_with_friction(robot)}
        assert self.only is not None
        for label in self.only:
            if label not in able:
                raise UnknownNameError(f"element of term {self.name}", label, able)
        return [(able[label], reference) for label, reference in zip(self.only, self.scales, strict=True)]

    def columns(self, robot: Robot) -> tuple[Column, ...]:
        """Viscous and Coulomb friction of each element."""
        return tuple(
            Column(
                name=f"{symbol}_{element.label}",
                unit=f"{element_unit(own, element.prismatic)}/K",
                symbol=f"{symbol}_",
                place=element.label,
                term=self.name,
                meaning=f"{_WORDS[own]} per kelvin above {reference:.4g} °C of {element_place(robot, element)}",
            )
            for element, reference in self.elements(robot)
            for own, symbol in _SYMBOLS.items()
        )

    def places(self, robot: Robot) -> tuple[Place, ...]:
        """Rows that an element acts on."""
        return tuple(
            (int(row), len(_SYMBOLS) * number + k)
            for number, (element, _) in enumerate(self.elements(robot))
            for k in range(len(_SYMBOLS))
            for row in np.flatnonzero(element.torque[list(robot.moving)])
        )

    def follow(self, robot: Robot, links: LinkTorque | None) -> Follower:
        """Velocity and its sign, times the deviation from the reference."""
        own = self.elements(robot)
        directions = np.array([motion_of(robot, element) for element, _ in own])
        widths = np.array([_SMOOTHING * (METERS_PER_RADIAN if e.prismatic else 1.0) for e, _ in own])[:, None]
        references = np.array([reference for _, reference in own])[:, None]
        joints = [joint_of(robot, element) for element, _ in own]
        lines = [
            (len(_SYMBOLS) * number + k, float(element.torque[row]))
            for number, (element, _) in enumerate(own)
            for k in range(len(_SYMBOLS))
            for row in robot.moving
            if element.torque[row]
        ]
        picked, shares = [line for line, _ in lines], np.array([share for _, share in lines])[:, None]

        def follower(samples: MotionSamples) -> Array:
            if samples.temperature is None:
                return np.zeros((len(picked), len(samples)))
            velocity = directions @ samples.dq.T
            above = samples.temperature.T[joints] - references
            found = np.stack([velocity * above, np.tanh(velocity / widths) * above], axis=1)
            return np.asarray(found.reshape(-1, len(samples))[picked] * shares)

        return follower


def joint_of(robot: Robot, element: Element) -> int:
    """Place among the moving joints of the one whose temperature an element has: its own, or that it follows most."""
    numbers = [str(joint.number) for joint in robot.moving_joints]
    number = element.label.removeprefix("m")
    return numbers.index(number) if number in numbers else int(np.argmax(np.abs(motion_of(robot, element))))
