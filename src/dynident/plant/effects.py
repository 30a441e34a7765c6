"""Effects of real gears and mountings by name, as machines that are simulated may have them.

The names are those of the parameters that identification finds: `stop0.3_1` is the friction of element 1 that winds up
over 0.3 mrad, `load_2` its Coulomb friction per load of element 2, `tilt_x` the tilt of the base about x.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynident.errors import InputError, UnknownNameError
from dynident.plant.places import element_places
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
