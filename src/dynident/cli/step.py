"""`dynident step`: its options, motors from options or a YAML file, and the answer."""

from __future__ import annotations

import dataclasses
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynident.cli.experiment import (
    SIMULATED,
    ExperimentArguments,
    bench,
    machine,
    parse_levels,
    parse_pose,
    read_logs,
    refuse_given,
    show_result,
    split_names,
    true_values,
)
from dynident.errors import InputError, UnknownNameError
from dynident.experiments.options import StepOptions
from dynident.limits import LIMITS
from dynident.options import LogReading, Options, option, plain_options
from dynident.readers import reader

if TYPE_CHECKING:
    from dynident.arrays import Array
    from dynident.experiments.bench import Bench
    from dynident.experiments.step.result import Configuration, FeedforwardRun, StepResult
    from dynident.plant import Motors
    from dynident.robot import Robot

_EACH = "one number, or one per joint"


@dataclass(frozen=True, kw_only=True)
class MotorOptions(Options):
    """The motors of a machine, at the joint side unless at the shaft."""

    motors: str | None = option(None, "the numbers below, by their long names", metavar="FILE.yaml")
    gain: str | None = option(
        None,
        f"torque per voltage K = Kt/Ra at the joint [N·m/V], {_EACH}",
        metavar="X[,X..]",
        shown="the effort limit at 10 V",
    )
    kt: str | None = option(None, f"torque constant [N·m/A], {_EACH}", metavar="X[,X..]")
    ra: str | None = option(None, f"resistance [Ohm], {_EACH}", metavar="X[,X..]")
    ke: str | None = option(None, f"back-EMF constant [V·s/rad], {_EACH}", metavar="X[,X..]")
    inductance: str | None = option(None, f"[H], {_EACH}", metavar="X[,X..]")
    voltage_limit: str | None = option(None, f"[V], {_EACH}", metavar="X[,X..]")
    shaft: bool = option(False, "these numbers are at the motor shaft, not at the joint")


@dataclass(frozen=True, kw_only=True)
class StepArguments(StepOptions, MotorOptions, ExperimentArguments, LogReading):
    """`dynident step` on the command line."""

    logs: tuple[str, ...] = option(
        (),
        "recorded steps instead of a machine: logs with t, q1.. and the voltage u of the driven motor",
        flags=("--from",),
        many=True,
        metavar="LOG",
    )
    unbounded: bool = option(False, "let a simulated machine run beyond its position limits; velocity limits stay")
    unloaded: str | None = option(
        None,
        "folder of the same test without payload: its poses and voltages are repeated, the difference is the payload",
        metavar="OUT",
    )
    track: bool = option(
        False, "then follow a cubic of 30 degrees in 0.3 s by feedforward alone, joint by joint and all together"
    )
    computed: str | None = option(
        None, "with --track: a set of parameters computed before, to compare with", metavar="SET"
    )


_OPTIONS = {
    "gain": "gain",
    "torque_constant": "kt",
    "resistance": "ra",
    "back_emf": "ke",
    "inductance": "inductance",
    "voltage_limit": "voltage_limit",
}
_AT = ("joint", "shaft")


def motors_of(options: MotorOptions, robot: Robot, *, simulated: bool) -> tuple[Motors, bool, str]:
    """Motors, whether their back-EMF is known, and where the numbers come from.

    Args:
        options: Their numbers.
        robot: The robot.
        simulated: Whether the machine is simulated, so that it may have motors of our choice.
    """
    import numpy as np

    from dynident.experiments.step.controller import default_motors

    given: dict[str, Array] = {}
    at = "shaft" if options.shaft else "joint"
    if options.motors is not None:
        at, given = _from_file(Path(options.motors), robot, at)
    for name, key in _OPTIONS.items():
        text = getattr(options, key)
        if text is not None:
            if name in given:
                raise InputError(f"--{key.replace('_', '-')} is also in {options.motors}; give it once")
            given[name] = _numbers(text, f"--{key.replace('_', '-')}", robot)
    if "inductance" in given and "resistance" not in given:
        raise InputError("an inductance needs the resistance: give --kt and --ra with it")
    electrical = [name for name in ("gain", "torque_constant", "resistance") if name in given]
    if not electrical:
        if not simulated:
            raise InputError("the torque of a voltage is not known: give --gain, or --kt and --ra (or --motors)")
        base = default_motors(robot)
        given.setdefault("voltage_limit", np.asarray(base.voltage_limit))
        return (
            _motors(robot, "joint", {**given, "gain": np.asarray(base.torque_constant)}),
            "back_emf" in given,
            "assumed",
        )
    if "gain" in given and len(electrical) > 1:
        raise InputError("--gain is Kt/Ra already; give it, or --kt and --ra")
    if "gain" not in given and len(electrical) < 2:
        raise InputError("torque constant and resistance belong together: give --kt and --ra, or --gain")
    return _motors(robot, at, given), "back_emf" in given, "given"


def _motors(robot: Robot, at: str, given: dict[str, Array]) -> Motors:
    import numpy as np

    from dynident.plant import Motors

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


@reader("motors", InputError)
def _from_file(path: Path, robot: Robot, at: str) -> tuple[str, dict[str, Array]]:
    from dynident.schema import parse_yaml, read_text

    content = parse_yaml(read_text(path), str(path))
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
    import numpy as np

    names, variables = robot.joint_names, robot.position_names
    if isinstance(value, dict):
        for key in value:
            if key not in names and key not in variables:
                raise UnknownNameError(f"joint in {what}", str(key), names)
        value = [value.get(name, value.get(variable)) for name, variable in zip(names, variables, strict=True)]
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    try:
        numbers = np.array([float(part) for part in parts])
        if not np.isfinite(numbers).all():
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{what}: expected a number, or one for each of {', '.join(names)}") from None
    if len(numbers) not in (1, len(names)):
        raise InputError(f"{what}: has {len(numbers)} numbers; expected one, or one for each of {', '.join(names)}")
    return numbers[0] if len(numbers) == 1 else numbers


# ----------------------------------------------------------------------------------------------------------------------
# `dynident step`: inertia and friction from steps of voltage, on a machine or from logs.

RATE = 1.0 / 2.4e-3  # [Hz], the paper's
ENCODER = 65536.0  # counts per turn
TRACK_RATE = 250.0  # [Hz], the paper's
_TRACKS = "tracking"


def run_step(options: StepArguments) -> int:
    """`dynident step`."""
    import numpy as np

    from dynident.cli.inputs import robot_of
    from dynident.experiments.bench import Bounds
    from dynident.experiments.step.analysis import step_payload
    from dynident.experiments.step.procedure import StepExperiment

    robot, simulated = robot_of(options), options.plant is None and not options.logs
    motors, emf_known, source = motors_of(options, robot, simulated=simulated)
    how = _step_options(options, robot, emf_known)
    unloaded = None if options.unloaded is None else _read_unloaded(Path(options.unloaded), robot)
    if unloaded is not None:
        repeat = [(one.motor, one.pose) for one in unloaded[0]]
        how = dataclasses.replace(how, repeat=repeat, voltages=unloaded[1])
    experiment = StepExperiment(robot, motors, how)
    if options.logs:
        found = experiment.analyze(experiment.read(read_logs(options, robot)))
    else:
        plant = machine(options, robot, rate=RATE, encoder=ENCODER, motors=motors)
        limits = Bounds.of(robot)
        if options.unbounded:
            if not simulated:
                raise InputError("--unbounded is for a simulated machine; a real one keeps its limits")
            limits = Bounds(np.full_like(limits.lower, -np.inf), np.full_like(limits.upper, np.inf), limits.velocity)
        with bench(options, plant, bounds=limits) as made:
            found = experiment.perform(made)
            tracks = _track(options, robot, motors, made, found) if options.track else []
        found = found.with_tracks(tracks)
    found = dataclasses.replace(found, motors_from=source)
    if unloaded is not None:
        found = found.with_payload(*step_payload(robot, found.inertias, unloaded[0]))
    if simulated and options.payload is None:  # the truth of a robot with a body on its tool is another
        found = found.beside(true_values(options, robot))
    return show_result("step", options, found)


def _step_options(options: StepArguments, robot: Robot, emf_known: bool) -> StepOptions:
    from dynident.experiments.step.tracking import check_computed

    _check_options(options)
    if options.values is not None:
        robot.value_set(options.values)  # which refuses an unknown name
    if options.computed is not None:
        check_computed(robot, options.computed)  # before the machine moves
    how = plain_options(options, StepOptions)
    how |= {"joints": split_names(options.joints), "emf_known": emf_known}
    how["voltages"] = parse_levels(how["voltages"], "--volts", "voltages such as 0.8,0.5 or q1=0.8:0.5,q2=0.8:0.4")
    how["poses"] = None if options.poses is None else [parse_pose(text, robot) for text in how["poses"]]
    return StepOptions(**how)


def _check_options(options: StepArguments) -> None:
    """Refuse options that would not be used."""
    if options.logs:
        names = ("plant", "voltages", "duration", "settle", "configurations", "bandwidth", "still", "joints")
        refuse_given(options, (*names, *SIMULATED), "shapes a test on a machine; leave it out with --from")
        if options.poses or options.track or options.for_payload or options.unbounded:
            raise InputError("--pose, --track, --for-payload, --unbounded need a machine; leave them out with --from")
    else:
        refuse_given(options, ("columns", "topic", "window"), "belongs to logs: give them with --from LOG..")
    if options.poses and options.configurations is not None:
        raise InputError("--pose says where to test, --configurations how many places to choose; leave one of them out")
    if options.computed is not None and not options.track:
        raise InputError("--computed belongs to --track")


@reader("step test", InputError)
def _read_unloaded(folder: Path, robot: Robot) -> tuple[list[Configuration], dict[str, list[float]]]:
    """Inertias and voltages of an earlier test."""
    import numpy as np

    from dynident.experiments.step.result import Configuration
    from dynident.schema import parse_json, read_text

    names = ("result.json", "answer.json")  # the second before 0.5
    path = next((folder / name for name in names if (folder / name).is_file()), folder / names[0])
    path = path if folder.is_dir() else folder
    try:
        found = parse_json(read_text(path, LIMITS.record_bytes, "such a file"))
        inertias, voltages = [], {}
        for row in found["configurations"]:
            motor = robot.joint_names.index(row["joint"])
            known = (float(row["inertia"]), float(row["inertia_std"]))
            if not np.isfinite([*known, *row["pose"]]).all():
                raise ValueError
            inertias.append(Configuration.of_inertia(motor, np.array(row["pose"]), *known))
            voltages[row["joint"]] = [float(step["voltage"]) for step in row["steps"]]
    except Exception:  # a damaged file can make any part of it fail
        raise InputError(
            f"--unloaded {folder}: expected the folder (result.json) of a step test of {robot.name} with two voltages"
        ) from None
    return inertias, voltages


def _track(
    options: StepArguments, robot: Robot, motors: Motors, made: Bench, result: StepResult
) -> list[FeedforwardRun]:
    """The feedforward check; a simulated machine is commanded at the paper's rate, and its drives do not saturate."""
    import numpy as np

    from dynident.experiments.bench import Bench
    from dynident.experiments.step.tracking import tracking_check

    if options.plant is not None:
        return tracking_check(made, motors, result, options.computed)
    strong = dataclasses.replace(motors, voltage_limit=np.inf)
    plant = machine(options, robot, rate=TRACK_RATE, encoder=ENCODER, motors=strong)
    folder = None if options.output is None else Path(options.output) / _TRACKS
    if folder is not None and options.fresh and folder.is_dir():
        shutil.rmtree(folder)
    return tracking_check(Bench(plant, folder=folder), strong, result, options.computed)
