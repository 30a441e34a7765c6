"""What verbs share: options into robots, logs, windows and positions, and a progress bar."""

from __future__ import annotations

import dataclasses
import importlib.util
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from dynident.errors import DynidentError, InputError
from dynident.readers import reader

if TYPE_CHECKING:
    from dynident.estimate.fit import Fit
    from dynident.logs import LogSource
    from dynident.options import LockedJoints, LogReading, Progress, RobotReading
    from dynident.payload.body import Payload
    from dynident.plant import Plant
    from dynident.robot import Robot

Read = TypeVar("Read")
Reading = TypeVar("Reading", bound="LogReading")


def robot_of(options: Any) -> Robot:
    """The robot of `robot`, with the joints of `locked` held."""
    return load_locked(options.robot, options)


def load_locked(given: str, options: LockedJoints) -> Robot:
    """A robot by file or name, read as the options say, with the joints of `locked` held."""
    robot, locked = read_robot(given, options), parse_positions(options.locked)
    return robot.lock(**locked) if locked else robot


def read_robot(given: str, options: RobotReading) -> Robot:
    """A robot by file or name, with the arguments of a xacro file."""
    from dynident.robot import load_robot

    args: dict[str, str] = {}
    for text in options.xacro_arg:
        name, sign, value = text.partition(":=")
        if not sign or not name.strip():
            raise InputError(f"--xacro-arg {text}: expected NAME:=VALUE, such as ur_type:=ur5e")
        if name.strip() in args:
            raise InputError(f"--xacro-arg {text}: {name.strip()} is given twice")
        args[name.strip()] = value
    return load_robot(given, fixed_base=options.fixed_base, xacro_args=args)


def parse_positions(text: str, option: str = "--locked") -> dict[str, float]:
    """Joint positions from `q4=0.5,q1=pi/2`."""
    return parse_by_joint(text, option, parse_number, "joint=position, such as q4=0.5")


def parse_by_joint(text: str, option: str, read: Callable[[str], Read], expected: str) -> dict[str, Read]:
    """What `read` makes of the words behind each joint in `q4=..,q1=..`."""
    found: dict[str, Read] = {}
    for part in filter(None, (item.strip() for item in text.split(","))):
        name, equals, value = part.partition("=")
        if not equals:
            raise InputError(f"{option} {part}: expected {expected}")
        if name.strip() in found:
            word = "locked" if option == "--locked" else "given"
            raise InputError(f"{option} {part}: {name.strip()} is {word} twice")
        try:
            found[name.strip()] = read(value)
        except InputError as error:
            raise InputError(f"{option} {part}: {error}") from None
    return found


def parse_number(text: str) -> float:
    """A number from `0.5` or `pi/2`."""
    from dynident.robot.expressions import ExpressionError, evaluate

    try:
        return float(evaluate(text.strip(), {}))
    except ExpressionError as error:
        raise InputError(str(error)) from None


def logs_of(
    paths: Sequence[str], robot: Robot, options: Any, role: Any, *, positions_only: bool = False
) -> list[LogSource]:
    """Logs by path, read as `columns` and `window` say."""
    from dynident.logs import LogWarning, open_log

    start, stop = parse_window(options.window)
    how: dict[str, Any] = {"columns": options.columns, "start": start, "stop": stop, "role": role}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LogWarning)  # every answer carries what the logs have to say
        return [
            open_log(path, robot, **how, topics=topics_for(path, options), positions_only=positions_only)
            for path in paths
        ]


def with_topics_of(options: Reading, fit: Fit) -> Reading:
    """The options of a verb, with the topics of bags that the fit was made from where none are given."""
    known: Any = fit.provenance.options.get("topic", ()) if fit.provenance is not None else ()
    if options.topic or not known or not any(map(_is_bag, _logs_in(options))):
        return options
    return dataclasses.replace(options, topic=tuple(known))


def topics_for(path: str, options: LogReading) -> tuple[str, ...]:
    """The topics to read of a log; none where it is no bag, but others beside it are."""
    return options.topic if _is_bag(path) or not any(map(_is_bag, _logs_in(options))) else ()


def _is_bag(path: str) -> bool:
    from dynident.logs.read import is_bag

    return is_bag(Path(path))


def _logs_in(options: LogReading) -> list[str]:
    """The logs that a verb was given, among other words."""
    several = [getattr(options, name, ()) for name in ("words", "logs", "validation", "unloaded")]
    return [*(word for words in several for word in words), *filter(None, [getattr(options, "log", None)])]


def print_columns(logs: Sequence[LogSource], robot: Robot | None, *, every: bool = False) -> None:
    """Print what the columns of logs were taken for, once for logs that are alike; of plain names only with `every`."""
    from dynident.logs.log import columns_of
    from dynident.report.terminal import page_console
    from dynident.report.terminal.diagnosis import print_column_table

    shown: list[object] = []
    for log in logs:
        columns = columns_of(log)
        alike = [(column.header, column.channel, column.unit, column.scale) for column in columns]
        renamed = any(
            column.header.partition(" ")[0] not in (column.channel, "time", "timestamp") for column in columns
        )
        if columns and alike not in shown and (every or renamed):
            shown.append(alike)
            print_column_table(log.label, columns, robot, page_console())


def parse_window(text: str | None) -> tuple[float | None, float | None]:
    """Start and stop from `2:8.5`, either of which may be left out."""
    if text is None:
        return None, None
    complaint = f"--window {text}: expected START:STOP in seconds, such as 2:8.5 or 2:"
    start, stop = parse_interval(text, complaint)
    if not all(x is None or math.isfinite(x) for x in (start, stop)):
        raise InputError(complaint)
    if start is not None and stop is not None and start >= stop:
        raise InputError(f"--window {text}: starts at {start:g} s and stops at {stop:g} s; expected START before STOP")
    return start, stop


def parse_interval(text: str, complaint: str) -> tuple[float | None, float | None]:
    """Two numbers from `1.5:4`, either of which may be left out."""
    first, colon, last = text.partition(":")
    if not colon:
        raise InputError(complaint)
    try:
        return float(first) if first.strip() else None, float(last) if last.strip() else None
    except ValueError:
        raise InputError(complaint) from None


def check_positive(value: float | None, name: str) -> None:
    """Refuse a number that is given and not positive."""
    if value is not None and not (math.isfinite(value) and value > 0.0):
        raise InputError(f"{name} is {value}; expected a positive number")


def plant_values(options: Any) -> dict[str, Any]:
    """Options of a simulated machine whose values are more than a word: payload, effects, kinds of channels."""
    if options.payload is None and options.payload_at:
        raise InputError("--payload-at needs --payload")
    return {
        "payload": parse_payload(options.payload),
        "effects": parse_effects(options.effects),
        "kinds": None if options.kinds is None else [part.strip() for part in options.kinds.split(",")],
    }


def parse_payload(text: str | None) -> Payload | None:
    """A payload from `mass`, `mass,cx,cy,cz` or those and `Ixx,Ixy,Ixz,Iyy,Iyz,Izz`; None where none is given."""
    from dynident.payload.body import Payload

    if text is None:
        return None
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, 4, 10):
        raise InputError(f"--payload {text}: expected MASS, MASS,CX,CY,CZ or those and six inertias")
    padded = [*numbers, *([0.0] * (10 - len(numbers)))]
    return Payload(padded[0], padded[1:4], padded[4:])


def parse_effects(text: str | None) -> dict[str, float] | None:
    """Effects from `stop0.3_1=4,load_2=0.05`, or from a YAML file of such names and values; None without any."""
    if text is None:
        return None
    if "=" not in text:
        if not Path(text).exists():
            raise InputError(f"--effects {text}: no such file; expected a YAML file, or stop0.3_1=4,load_2=0.05")
        return _effects_file(text)
    example = "name=number, such as stop0.3_1=4"

    def size(number: str) -> float:
        try:
            return float(number)
        except ValueError:
            raise InputError(f"expected {example}") from None

    return parse_by_joint(text, "--effects", size, example)


@reader("effects", InputError)
def _effects_file(path: str) -> dict[str, float]:
    from dynident.robot.expressions import robot_file_reader
    from dynident.schema import parse_yaml, read_text

    numbers = robot_file_reader(path)
    return {name: numbers.number(value, name) for name, value in parse_yaml(read_text(Path(path)), path).items()}


@contextmanager
def progress_bar(silent: bool) -> Iterator[Progress | None]:
    """A progress bar on stderr, on a terminal only; of `what: details`, the details are shown and may change."""
    if silent or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress as Bar, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def show(what: str, done: int, total: int) -> None:
            name, _, details = what.partition(": ")
            if name not in tasks:
                tasks[name] = bar.add_task(name, total=total)
            bar.update(tasks[name], description=details or name, completed=done, total=total)

        yield show


# ----------------------------------------------------------------------------------------------------------------------
# `--plant FILE.py:NAME`: the machine that a user's own Python file makes.


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
        from dynident.experiments.bench import problem

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
