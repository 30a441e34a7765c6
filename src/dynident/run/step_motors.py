"""Motors of `dynident step`: from options, from a YAML file, or those of a simulated machine."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.errors import InputError, UnknownNameError
from dynident.experiments.step.voltages import default_motors
from dynident.plant import Motors
from dynident.robot import Robot

_OPTIONS = {
    "gain": "gain",
    "torque_constant": "kt",
    "resistance": "ra",
    "back_emf": "ke",
    "inductance": "inductance",
    "voltage_limit": "voltage_limit",
}
_AT = ("joint", "shaft")


def motors_of(options: Namespace, robot: Robot, *, simulated: bool) -> tuple[Motors, bool, str]:
    """Motors, whether their back-EMF is known, and where the numbers come from.

    Args:
        options: motors (a file), gain, kt, ra, ke, inductance, voltage_limit, shaft.
        robot: The robot.
        simulated: Whether the machine is simulated, so that it may have motors of our choice.
    """
    given: dict[str, Array] = {}
    at = "shaft" if options.shaft else "joint"
    if options.motors is not None:
        at, given = _from_file(Path(options.motors), robot, at)
    for name, option in _OPTIONS.items():
        text = getattr(options, option)
        if text is not None:
            if name in given:
                raise InputError(f"--{option.replace('_', '-')} is also in {options.motors}; give it once")
            given[name] = _numbers(text, f"--{option.replace('_', '-')}", robot)
    if "inductance" in given and "resistance" not in given:
        raise InputError("an inductance needs the resistance: give --kt and --ra with it")
    electrical = [name for name in ("gain", "torque_constant", "resistance") if name in given]
    if not electrical:
        if not simulated:
            raise InputError("the torque of a voltage is not known: give --gain, or --kt and --ra (or --motors)")
        base = default_motors(robot)
        given.setdefault("voltage_limit", np.asarray(base.voltage_limit))
        return (
            _made(robot, "joint", {**given, "gain": np.asarray(base.torque_constant)}),
            "back_emf" in given,
            "assumed",
        )
    if "gain" in given and len(electrical) > 1:
        raise InputError("--gain is Kt/Ra already; give it, or --kt and --ra")
    if "gain" not in given and len(electrical) < 2:
        raise InputError("torque constant and resistance belong together: give --kt and --ra, or --gain")
    return _made(robot, at, given), "back_emf" in given, "given"


def _made(robot: Robot, at: str, given: dict[str, Array]) -> Motors:
    constant = given.get("torque_constant", given.get("gain"))
    resistance = given.get("resistance", np.array(1.0))  # K = Kt/Ra alone is that of one Ohm
    assert constant is not None
    numbers = (
        given.get("back_emf", np.array(0.0)),
        given.get("inductance", np.array(0.0)),
        given.get("voltage_limit", np.array(np.inf)),
    )
    if at == "shaft":
        return Motors.at_shaft(robot, constant, resistance, *numbers)
    return Motors(constant, resistance, *numbers).for_joints(robot.joint_names)


def _from_file(path: Path, robot: Robot, at: str) -> tuple[str, dict[str, Array]]:
    import yaml

    if not path.is_file():
        raise InputError(f"{path}: no such file; check the path")
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{path}: cannot be read as YAML ({str(error).splitlines()[0]})") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected names and numbers, such as torque_constant: [1.2, 0.8]")
    found: dict[str, Array] = {}
    for name, value in content.items():
        if name == "at":
            if value not in _AT:
                raise InputError(f"{path}: at is '{value}'; expected joint or shaft")
            at = str(value)
        elif name in _OPTIONS:
            found[name] = _numbers(value, f"{path}: {name}", robot)
        else:
            raise UnknownNameError(f"entry of {path}", str(name), ("at", *_OPTIONS))
    return at, found


def _numbers(value: Any, what: str, robot: Robot) -> Array:
    """One number for all joints, or one for each: text, a number, a list, or a mapping by joint."""
    names, variables = robot.joint_names, robot.position_names
    if isinstance(value, dict):
        for key in value:
            if key not in names and key not in variables:
                raise UnknownNameError(f"joint in {what}", str(key), names)
        value = [value.get(name, value.get(variable)) for name, variable in zip(names, variables, strict=True)]
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    try:
        numbers = np.array([float(part) for part in parts])
    except (TypeError, ValueError):
        raise InputError(f"{what}: expected a number, or one for each of {', '.join(names)}") from None
    if len(numbers) not in (1, len(names)):
        raise InputError(f"{what}: has {len(numbers)} numbers; expected one, or one for each of {', '.join(names)}")
    return numbers[0] if len(numbers) == 1 else numbers
