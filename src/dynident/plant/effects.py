"""Effects of real gears and mountings by name, as machines that are simulated may have them.

The names are those of the parameters that identification finds: `stop0.3_1` is the friction of element 1 that winds up
over 0.3 mrad, `load_2` its Coulomb friction per load of element 2, `tilt_x` the tilt of the base about x.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.terms.friction import play_step
from dynident.dynamics.terms.friction_laws import FRICTION_LAWS, ElementMotion, FrictionLaw
from dynident.errors import InputError, UnknownNameError
from dynident.plant.mjcf_writer import element_places
from dynident.robot.model import Robot

_NAME = re.compile(r"(?P<law>[a-z]+)((?P<number>\d+\.?\d*(e[+-]?\d+)?)(?P<wave>[cs])?)?_(?P<label>\w+)")


@dataclass(frozen=True)
class Effect:
    """One effect of a machine.

    Attributes:
        name: As the parameter is called.
        law: The name without number and place: "stop", "load", "tilt" ...
        number: What follows the law: radius [mrad], velocity [rad/s] or waves per turn; 0 for laws without.
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
    ordered = sorted(FRICTION_LAWS.values(), key=lambda law: (law.scale == "none", law.scale == "waves"))
    starts = [
        f"{_name_with_number(law, number)}{part}"
        for law in ordered
        for part in (wave if wave and law.wavy else law.shapes)
    ]
    names = [f"{start}_{label}" for start in starts for label in labels]
    return names + [f"tilt_{axis}" for axis in tilt_axes(robot)] + [f"zero_{label}" for label in joint_labels(robot)]


def _name_with_number(law: FrictionLaw, number: str = "") -> str:
    """Name of a law with a number, or with one as an example; waves per turn are whole ones there."""
    if law.scale == "none":
        return law.name
    example = math.floor(law.examples[0]) if law.wavy else law.named_per_scale * law.examples[0]
    return f"{law.name}{number or f'{example:g}'}"


def tilt_axes(robot: Robot) -> str:
    """The base axes across gravity, about which a base can be tilted."""
    if not np.any(robot.gravity):
        return ""
    down = int(np.argmax(np.abs(robot.gravity)))
    return "xyz"[:down] + "xyz"[down + 1 :]


def joint_labels(robot: Robot) -> list[str]:
    """Numbers of the moving joints, as names of their positions' offsets end."""
    return [str(joint.number) for joint in robot.moving_joints]


def _effect(robot: Robot, name: str, value: object) -> Effect:
    parts = _NAME.fullmatch(name)
    number, wave = ("", "") if parts is None else (parts["number"] or "", parts["wave"] or "")
    valid = effect_names(robot, number, wave)
    if parts is None or name not in valid:
        raise UnknownNameError("effect", name, valid)
    if isinstance(value, bool | str) or not isinstance(value, int | float | np.number) or not math.isfinite(value):
        raise InputError(f"effect {name} is {value!r}; expected a finite number")
    if number and not float(number) > 0.0:
        law = FRICTION_LAWS[parts["law"]]
        example = f"{_name_with_number(law)}{next(iter(law.shapes))}_{parts['label']}"
        raise InputError(f"effect {name}: its number must be positive, as in {example}")
    return Effect(name, parts["law"], float(number or 0.0), wave, parts["label"], float(value))


# ----------------------------------------------------------------------------------------------------------------------
# Laws of friction sample by sample: what an element takes from a joint at one time, in plain numbers.
#
# The formulas are those of `dynamics.terms.friction_laws`, on floats. What the plant adds is its own: MuJoCo makes dry
# friction stick and slip where a column of the regressor smooths the sign, springs slip between time steps, and a
# springy drive follows its acceleration with a lag. Tests write the laws out once more beside it.


class PlantFunctions:
    """Functions of the plant's numbers, floats."""

    sin, tanh, exp, log = (staticmethod(f) for f in (math.sin, math.tanh, math.exp, math.log))

    @staticmethod
    def cos(x: float) -> float:
        """The sine a quarter turn further; as `math.cos`, but logs simulated earlier repeat to the last bit."""
        return math.sin(x + 0.5 * math.pi)

    @staticmethod
    def sign(x: float) -> float:
        """-1, 0 or 1."""
        return math.copysign(1.0, x) if x else 0.0


PLANT_FUNCTIONS = PlantFunctions()
_SLOW = 2.0**-30  # [rad/s or m/s] far below every scale of a law


class FrictionEffect:
    """A law of friction at work on an element of the plant.

    Args:
        effect: Name and value.
        unit: Motion of the element that counts as a radian, 1 for one that turns [rad or m].

    Attributes:
        effect: As given.
        law: The law.
        stiffness: Largest torque per way [N·m/rad or N/m].
        damping: Slope of the torque at standstill, over velocity [N·m·s/rad or N·s/m]; 0 of dry friction.
    """

    def __init__(self, effect: Effect, unit: float) -> None:
        self.effect, self.value, self.law = effect, effect.value, FRICTION_LAWS[effect.law]
        number = 1.0 / self.law.named_per_scale * effect.number
        self._scale = number / unit if self.law.wavy else number * unit
        self._motion = ElementMotion(
            functions=PLANT_FUNCTIONS, sticks=True
        )  # in the element's own unit, as the scale is
        self._end = 0.0
        size = abs(self.value)
        self.stiffness = size * self._scale if self.law.wavy else size / self._scale if self.law.remembers else 0.0
        ahead, behind = (self.torque(0.0, sign * _SLOW, 0.0) for sign in (1.0, -1.0))
        self.damping = abs(ahead - behind) / (2.0 * _SLOW)  # levels and torque of the position cancel

    def start(self, position: float) -> None:
        """Forget all motion before this position [rad or m]: springs unwound."""
        self._end = position

    def torque(self, position: float, velocity: float, load: float) -> float:
        """Torque against the motion [N·m or N]; of dry friction the most it can take. `load` is what it carries."""
        motion = self._motion
        motion.position, motion.velocity, motion.load = position, velocity, load
        if self.law.remembers:
            motion.wound = max(-1.0, min(1.0, (position - self._end) / self._scale))
        return float(self.law.torque(self.effect.wave, self.value, motion, self._scale))

    def move(self, position: float) -> None:
        """A time step has ended here: the slipping end of a spring follows."""
        if self.law.remembers:
            self._end = play_step(self._end, position, self._scale)


def check_dry(label: str, coulomb: float, share: float, grips: Sequence[FrictionEffect], asymmetric: float) -> None:
    """Dry friction brakes at every velocity and load, in both directions.

    Args:
        label: The element.
        coulomb: Its Coulomb friction, in the sign of its values.
        share: Its torque direction as a multiple of its direction of motion; friction brakes where both agree.
        grips: Dry friction that comes on top.
        asymmetric: Half the difference between the directions.
    """
    way = math.copysign(1.0, share)
    pushing = [grip for grip in grips if way * grip.value < 0.0]
    remaining = way * coulomb + sum(way * grip.value for grip in pushing if not grip.law.needs_load)
    for grip in pushing:
        if remaining < 0.0 or grip.law.needs_load:
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
        velocity: v_s, at which most of the difference is gone [rad/s or m/s].
    """

    ratio: float = 1.4
    velocity: float = 0.02

    def __post_init__(self) -> None:
        if not (self.ratio >= 1.0 and np.isfinite(self.ratio)):
            raise InputError(f"breakaway ratio is {self.ratio}; expected 1 or more, static friction over kinetic")
        if not (self.velocity > 0.0 and np.isfinite(self.velocity)):
            raise InputError(f"breakaway velocity is {self.velocity}; expected a positive velocity")

    def limit(self, coulomb: Array, velocity: Array) -> Array:
        """The largest friction torque at a velocity."""
        return np.asarray(coulomb * (1.0 + (self.ratio - 1.0) * np.exp(-((velocity / self.velocity) ** 2))))
