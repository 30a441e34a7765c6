"""Laws of friction sample by sample: what an element takes from a joint at one moment, in plain numbers.

They are written without a look at the columns by which identification describes the same effects: a machine that is
simulated by the code that identifies it would prove nothing.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

from dynident.errors import InputError
from dynident.plant.effects import Effect


class Force(ABC):
    """A torque that an element's motion meets.

    Args:
        effect: Name and value.
        unit: Motion of the element that counts as a radian, 1 for one that turns [rad or m].

    Attributes:
        stiffness: Largest torque per way [N·m/rad or N/m].
        damping: Largest torque per speed, where that does not grow with the motion itself.
    """

    stiffness = 0.0
    damping = 0.0

    def __init__(self, effect: Effect, unit: float) -> None:
        self.effect, self.value, self.unit = effect, effect.value, unit

    def start(self, position: float) -> None:  # noqa: B027 - most laws have no memory
        """Forget all motion before this position [rad or m]."""

    @abstractmethod
    def torque(self, position: float, speed: float, load: float) -> float:
        """Torque against the motion [N·m or N]; `load` is what the element carries."""

    def moved(self, position: float) -> None:  # noqa: B027 - most laws have no memory
        """A time step has ended here."""


class StopForce(Force):
    """A spring that slips: Prandtl's element. Its far end is dragged along once it is wound up by its radius."""

    def __init__(self, effect: Effect, unit: float) -> None:
        super().__init__(effect, unit)
        self.radius = 1e-3 * effect.number * unit
        self.stiffness = abs(self.value) / self.radius
        self.end = 0.0

    def start(self, position: float) -> None:
        """Unwound."""
        self.end = position

    def torque(self, position: float, speed: float, load: float) -> float:
        """Of the spring, as far as it does not slip."""
        wound = (position - self.end) / self.radius
        return self.value * max(-1.0, min(1.0, wound))

    def moved(self, position: float) -> None:
        """The far end follows."""
        if position - self.end > self.radius:
            self.end = position - self.radius
        elif position - self.end < -self.radius:
            self.end = position + self.radius


class SignForce(Force):
    """Friction that comes up with the speed."""

    def __init__(self, effect: Effect, unit: float) -> None:
        super().__init__(effect, unit)
        self.speed = effect.number * unit
        self.damping = abs(self.value) / self.speed

    def torque(self, position: float, speed: float, load: float) -> float:
        """Within three times its speed nearly all is there."""
        return self.value * math.tanh(speed / self.speed)


class LoadViscousForce(Force):
    """Viscous friction in proportion to the load."""

    def torque(self, position: float, speed: float, load: float) -> float:
        """Per N·m of load."""
        return self.value * abs(load) * speed


class AsymmetricForce(Force):
    """Coulomb friction Fc + a one way and Fc - a the other: at rest too it holds from -(Fc - a) to Fc + a."""

    def torque(self, position: float, speed: float, load: float) -> float:
        """The same either way; friction does the rest."""
        return self.value


class QuadraticForce(Force):
    """As in a churning oil."""

    def torque(self, position: float, speed: float, load: float) -> float:
        """The square, against the motion."""
        return self.value * speed * abs(speed)


class CubicForce(Force):
    """A viscous friction that grows with the square of the speed."""

    def torque(self, position: float, speed: float, load: float) -> float:
        """The cube."""
        return self.value * speed * speed * speed


class WaveForce(Force):
    """Torque that repeats so many times per turn: eccentric gears, teeth, cogging."""

    def __init__(self, effect: Effect, unit: float) -> None:
        super().__init__(effect, unit)
        self.number = effect.number / unit
        self.shift = 0.0 if effect.wave == "s" else 0.5 * math.pi
        self.stiffness = abs(self.value) * self.number

    def torque(self, position: float, speed: float, load: float) -> float:
        """A sine, or a quarter wave before it."""
        return self.value * math.sin(self.number * position + self.shift)


class Grip(ABC):
    """Dry friction beyond the Coulomb friction of the robot's values; it holds at rest as that does."""

    def __init__(self, effect: Effect, unit: float) -> None:
        self.effect, self.value, self.unit = effect, effect.value, unit

    @abstractmethod
    def level(self, speed: float, load: float) -> float:
        """The most it can take [N·m or N]."""


class StribeckGrip(Grip):
    """Friction that falls as motion sets in."""

    def level(self, speed: float, load: float) -> float:
        """All of it at rest."""
        share = speed / (self.effect.number * self.unit)
        return self.value * math.exp(-share * share)


class LoadGrip(Grip):
    """Friction in proportion to the load, as teeth and bearings have it."""

    def level(self, speed: float, load: float) -> float:
        """Either way of the load."""
        return self.value * abs(load)


FORCES: dict[str, type[Force]] = {
    "stop": StopForce,
    "sign": SignForce,
    "loadv": LoadViscousForce,
    "asymmetric": AsymmetricForce,
    "quadratic": QuadraticForce,
    "cubic": CubicForce,
    "harmonics": WaveForce,
    "ripple": WaveForce,
}
GRIPS: dict[str, type[Grip]] = {"stribeck": StribeckGrip, "load": LoadGrip}


def check_dry(label: str, coulomb: float, share: float, grips: Sequence[Grip], asymmetric: float) -> None:
    """Dry friction brakes at every speed and load, in both directions.

    Args:
        label: The element.
        coulomb: Its Coulomb friction, in the sign of its values.
        share: Its torque direction as a multiple of its direction of motion; friction brakes where both agree.
        grips: What comes on top.
        asymmetric: Half the difference between the directions.
    """
    way = math.copysign(1.0, share)
    pushing = [grip for grip in grips if way * grip.value < 0.0]
    left = way * coulomb + sum(way * grip.value for grip in pushing if not isinstance(grip, LoadGrip))
    for grip in pushing:
        if left < 0.0 or isinstance(grip, LoadGrip):
            raise InputError(
                f"effect {grip.effect.name} is {grip.value:g} where Coulomb friction is {coulomb:g}: friction would "
                "push; dry friction can only brake"
            )
    if abs(asymmetric) > abs(coulomb):
        raise InputError(
            f"effect asymmetric_{label} is {asymmetric:g} where Coulomb friction is {coulomb:g}: friction would push "
            "in one direction; give at most the Coulomb friction"
        )
