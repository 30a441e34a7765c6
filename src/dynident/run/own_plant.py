"""`--plant FILE.py:NAME`: the machine that a user's own Python file makes."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dynident.errors import DynidentError, InputError
from dynident.experiments.machine import problem

if TYPE_CHECKING:
    from dynident.plant import Plant
    from dynident.robot import Robot


def own_plant(text: str, robot: Robot) -> Plant:
    """The plant that a user's Python file makes.

    Args:
        text: ``FILE.py:NAME``; NAME is a plant, or a function from the robot to one.
        robot: The robot as described.

    Raises:
        InputError: When the file fails, or what it makes is no plant of this robot.
    """
    from dynident.plant import Plant

    file, colon, name = text.rpartition(":")
    path = Path(file)
    if not colon or not path.is_file():
        raise InputError(f"--plant {text}: expected FILE.py:NAME, a Python file and the name of its plant")
    module = _module(text, path)
    if not hasattr(module, name):
        raise InputError(f"--plant {text}: {path} has no {name}")
    made = getattr(module, name)
    plant = _call(text, f"{name} failed", made, robot) if callable(made) else made
    needed = [part for part in dir(Plant) if not part.startswith("_")]
    missing = [part for part in needed if not hasattr(plant, part)]
    if missing:
        raise InputError(f"--plant {text}: it lacks {', '.join(missing)}; a plant has {', '.join(needed)}")
    _check(text, plant, robot)
    return plant  # type: ignore[no-any-return]


def _module(text: str, path: Path) -> ModuleType:
    """The file as a module, which finds others beside it as a script does."""
    own = f"_plant_{path.stem}"  # a file may have the name of a module that others need
    spec = importlib.util.spec_from_file_location(own, path)
    if spec is None or spec.loader is None:
        raise InputError(f"--plant {text}: {path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[own] = module
    sys.path.append(str(path.resolve().parent))
    _call(text, f"{path} cannot be run", spec.loader.exec_module, module)
    return module


def _call(text: str, what: str, function: Any, *values: object) -> Any:
    try:
        return function(*values)
    except DynidentError:
        raise
    except (Exception, SystemExit) as error:  # a user's own code: anything
        raise InputError(f"--plant {text}: {what}: {problem(error)}") from error


def _check(text: str, plant: Plant, robot: Robot) -> None:
    """Refuse a plant of another robot, or of one with other joints locked: all numbers would go to the wrong joints."""
    theirs = getattr(plant.robot, "joint_names", None)
    if theirs != robot.joint_names:
        has = "none" if theirs is None else ", ".join(theirs)
        raise InputError(
            f"--plant {text}: its robot moves {has}; {robot.name} as given moves {', '.join(robot.joint_names)}; "
            "make the plant with the robot that its function gets"
        )
    if not (isinstance(plant.sample_time, int | float) and 0.0 < plant.sample_time < 1.0):
        raise InputError(f"--plant {text}: its sample_time is {plant.sample_time}; expected seconds, such as 0.002")
