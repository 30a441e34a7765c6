"""Viscous and Coulomb friction that change with the temperature of a joint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
    r"""What friction gains with temperature.

    .. math:: \phi(v, T) = F_{vT}\,v\,\frac{1 - e^{-b (T - T_0)}}{b} + F_{cT} \tanh(v / w)\,(T - T_0)

    Lubricants thin out as exp(-b T), b about 0.02 to 0.04 per kelvin (Bittencourt & Axelsson 2014). With
    b = -F_vT / F_v viscous friction is F_v exp(-b (T - T_0)) exactly; with b = 0 it is linear in T. So a fit is linear
    first, and once more with the b that it gave: what is linear alone is off by (b (T - T_0))^2 / 2, 8 % of viscous
    friction at 0.04 per kelvin and ten kelvin, many standard deviations; an error of b enters only with that small
    factor. Both coefficients are slopes at T_0 in either case. Coulomb friction follows no such law, and rises in some
    gears: linear. With the mean of the training as T_0 the new columns are nearly orthogonal to those of F_v and F_c,
    which then are friction at T_0. Where no temperature is known, friction is that at T_0.

    Args:
        *scales: Reference temperature [°C] and thinning b [1/K] of each element, in turn.
        only: Labels of the elements.
    """

    name = "temperature"

    def __init__(self, *scales: float, only: tuple[str, ...] | None = None) -> None:
        super().__init__(*scales, only=only)
        if only is None or len(scales) != 2 * len(only) or not np.isfinite(scales).all():
            raise InputError(
                f"term {self.key} needs a reference temperature [°C] and the thinning [1/K] of each of its elements, "
                "as in temperature(31.5,0.02,40,0)@1|2; identify adds it by itself where logs have temp1, temp2, .."
            )

    @staticmethod
    def about(laws: Mapping[str, tuple[float, float]]) -> TemperatureFriction:
        """The term of some elements, given reference temperature [°C] and thinning [1/K] by label."""
        return TemperatureFriction(*(number for law in laws.values() for number in law), only=tuple(laws))

    @property
    def laws(self) -> dict[str, tuple[float, float]]:
        """Reference temperature [°C] and thinning [1/K] by label."""
        return dict(zip(self.only or (), zip(self.scales[::2], self.scales[1::2], strict=True), strict=True))

    def restricted_to(self, labels: Sequence[str]) -> TemperatureFriction:
        """The same term for some of its elements."""
        return TemperatureFriction.about({label: self.laws[label] for label in labels})

    def elements(self, robot: Robot) -> list[tuple[Element, float, float]]:
        """The elements, each with its reference temperature [°C] and thinning [1/K]."""
        able = {element.label: element for element in elements_with_friction(robot)}
        for label in self.laws:
            if label not in able:
                raise UnknownNameError(f"element of term {self.name}", label, able)
        return [(able[label], *law) for label, law in self.laws.items()]

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
            for element, reference, _ in self.elements(robot)
            for own, symbol in _SYMBOLS.items()
        )

    def places(self, robot: Robot) -> tuple[Place, ...]:
        """Rows that an element acts on."""
        return tuple(
            (int(row), len(_SYMBOLS) * number + k)
            for number, (element, *_) in enumerate(self.elements(robot))
            for k in range(len(_SYMBOLS))
            for row in np.flatnonzero(element.torque[list(robot.moving)])
        )

    def follow(self, robot: Robot, links: LinkTorque | None) -> Follower:
        """Velocity and its sign, times the deviation from the reference."""
        own = self.elements(robot)
        directions = np.array([motion_of(robot, element) for element, *_ in own])
        widths = np.array([_SMOOTHING * (METERS_PER_RADIAN if e.prismatic else 1.0) for e, *_ in own])[:, None]
        references, thinnings = (np.array([law[k] for _, *law in own])[:, None] for k in range(2))
        joints = [joint_of(robot, element) for element, *_ in own]
        lines = [
            (len(_SYMBOLS) * number + k, float(element.torque[row]))
            for number, (element, *_) in enumerate(own)
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
            # Without a thinning the quotient is its limit.
            steep = np.where(thinnings == 0.0, 1.0, thinnings)
            thinned = np.where(thinnings == 0.0, above, -np.expm1(-steep * above) / steep)
            found = np.stack([velocity * thinned, np.tanh(velocity / widths) * above], axis=1)
            return np.asarray(found.reshape(-1, len(samples))[picked] * shares)

        return follower


def joint_of(robot: Robot, element: Element) -> int:
    """Place among the moving joints of the one whose temperature an element has: its own, or that it follows most."""
    numbers = [str(joint.number) for joint in robot.moving_joints]
    number = element.label.removeprefix("m")
    return numbers.index(number) if number in numbers else int(np.argmax(np.abs(motion_of(robot, element))))
