"""Effects of real gears and mountings by name, as machines that are simulated may have them.

The names are those of the parameters that identification finds: `stop0.3_1` is the friction of element 1 that winds up
over 0.3 mrad, `load_2` its Coulomb friction per load of element 2, `tilt_x` the tilt of the base about x.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.errors import InputError, UnknownNameError
from dynident.plant.mjcf_writer import element_places
from dynident.robot.model import Robot

WITH_NUMBER = {"stop": "0.3", "stribeck": "0.2", "sign": "0.2"}  # what is said after the name: [mrad], [rad/s]
WAVES = {"harmonics": "1", "ripple": "30"}  # waves per turn, then c or s
PLAIN = ("load", "loadv", "asymmetric", "quadratic", "cubic", "jerk")
_NAME = re.compile(r"(?P<law>[a-z]+)((?P<number>\d+\.?\d*(e[+-]?\d+)?)(?P<wave>[cs])?)?_(?P<label>\w+)")


@dataclass(frozen=True)
class Effect:
    """One effect.

    Attributes:
        name: As the parameter is called.
        law: The name without number and place: "stop", "load", "tilt" ...
        number: What follows the law: radius [mrad], speed [rad/s] or waves per turn; 0 for laws without.
        wave: "c" or "s" for the cosine or sine of waves, else empty.
        label: Element, joint or axis that has it.
        value: The parameter.
    """

    name: str
    law: str
    number: float
    wave: str
    label: str
    value: float


def read_effects(robot: Robot, given: Mapping[str, float] | None) -> tuple[Effect, ...]:
    """The effects of a machine from their names and values; those of value zero are none.

    Raises:
        UnknownNameError: For a name that is none, with the nearest one that is.
        InputError: For a value that cannot be.
    """
    found = []
    for name, value in (given or {}).items():
        effect = _effect(robot, str(name), value)
        if effect.value:
            found.append(effect)
    return tuple(found)


def effect_names(robot: Robot, number: str = "", wave: str = "") -> list[str]:
    """Every name for a robot, with a number that is wanted or one as an example."""
    labels = [place.label for place in element_places(robot, {})]
    laws = [f"{law}{number or example}" for law, example in WITH_NUMBER.items()]
    laws += [f"{law}{number or example}{part}" for law, example in WAVES.items() for part in (wave or "cs")]
    names = [f"{law}_{label}" for law in (*laws, *PLAIN) for label in labels]
    return names + [f"tilt_{axis}" for axis in tilt_axes(robot)] + [f"zero_{label}" for label in joint_labels(robot)]


def tilt_axes(robot: Robot) -> str:
    """The base axes across gravity, about which a base can be tilted."""
    if not np.any(robot.gravity):
        return ""
    down = int(np.argmax(np.abs(robot.gravity)))
    return "xyz"[:down] + "xyz"[down + 1 :]


def joint_labels(robot: Robot) -> list[str]:
    """Numbers of the moving joints, as names of their positions' offsets end."""
    return [str(robot.joints[robot.active[i]].number) for i in robot.moving]


def _effect(robot: Robot, name: str, value: object) -> Effect:
    parts = _NAME.fullmatch(name)
    number, wave = ("", "") if parts is None else (parts["number"] or "", parts["wave"] or "")
    valid = effect_names(robot, number, wave)
    if parts is None or name not in valid:
        raise UnknownNameError("effect", name, valid)
    if isinstance(value, bool | str) or not isinstance(value, int | float | np.number) or not math.isfinite(value):
        raise InputError(f"effect {name} is {value!r}; expected a finite number")
    if number and not float(number) > 0.0:
        raise InputError(f"effect {name}: its number must be positive, as in {_example(parts['law'])}_{parts['label']}")
    return Effect(name, parts["law"], float(number or 0.0), wave, parts["label"], float(value))


def _example(law: str) -> str:
    return law + (WITH_NUMBER.get(law) or f"{WAVES[law]}c")


# ----------------------------------------------------------------------------------------------------------------------
# Laws of friction sample by sample: what an element takes from a joint at one moment, in plain numbers.
#
# They are written without a look at the columns by which identification describes the same effects: a machine that is
# simulated by the code that identifies it would prove nothing.


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


# ----------------------------------------------------------------------------------------------------------------------
# Dry friction that holds better than it slides.


@dataclass(frozen=True)
class Breakaway:
    r"""Static above kinetic friction, with Stribeck's fall in between.

    .. math:: F(v) = F_c\,(1 + (r - 1)\,e^{-(v/v_s)^2})

    Attributes:
        ratio: r, static to kinetic friction; at least 1.
        speed: v_s, at which most of the difference is gone [rad/s or m/s].
    """

    ratio: float = 1.4
    speed: float = 0.02

    def __post_init__(self) -> None:
        if not (self.ratio >= 1.0 and np.isfinite(self.ratio)):
            raise InputError(f"breakaway ratio is {self.ratio}; expected 1 or more, static friction over kinetic")
        if not (self.speed > 0.0 and np.isfinite(self.speed)):
            raise InputError(f"breakaway speed is {self.speed}; expected a positive speed")

    def limit(self, coulomb: Array, speed: Array) -> Array:
        """The largest friction torque at a speed."""
        return np.asarray(coulomb * (1.0 + (self.ratio - 1.0) * np.exp(-((speed / self.speed) ** 2))))
