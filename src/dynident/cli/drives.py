"""`dynident drives` and `dynident replay`: drives from position commands, and how near a simulated robot comes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynident.cli.arguments import command, output_argument, print_answer, warn
from dynident.drives.options import DrivesOptions
from dynident.errors import InputError
from dynident.options import REQUIRED, Answer, LockedJoints, LogReading, Options, Quiet, option, plain_options

if TYPE_CHECKING:
    from dynident.arrays import Array
    from dynident.drives.replay import DriveValues
    from dynident.robot import Robot

_GAIN = "of the position controller, one number or one for each joint; over those of the robot file"


@dataclass(frozen=True, kw_only=True)
class PdGains(Options):
    """Of verbs that take position commands."""

    kp: str | None = option(None, f"position gains {_GAIN}", metavar="NUMBER|K1,K2,..", unit="N·m/rad or N/m")
    kd: str | None = option(None, f"velocity gains {_GAIN}", metavar="NUMBER|K1,K2,..", unit="N·m·s/rad or N·s/m")


@dataclass(frozen=True, kw_only=True)
class DrivesArguments(DrivesOptions, PdGains, LogReading, LockedJoints, Quiet, Answer):
    """`dynident drives` on the command line."""

    robot: str = option(
        REQUIRED,
        "robot file or bundled robot; or a fit, whose links are known and whose friction becomes viscous and Coulomb's",
        positional=True,
        metavar="ROBOT",
    )
    logs: tuple[str, ...] = option(
        REQUIRED, "logs with position commands (target1, ..) or torque", positional=True, many=True, metavar="LOG"
    )
    validation: tuple[str, ...] = option((), "validation logs; not used for fitting", many=True, metavar="LOG")
    output: str | None = output_argument(None, "folder for drives.yaml, model.xml and report.html", "OUT")


def run_drives(options: DrivesArguments) -> int:
    """`dynident drives`."""
    from dataclasses import replace

    from dynident.cli.inputs import logs_of, progress_bar, robot_of
    from dynident.drives.identification import identify_drives
    from dynident.drives.storage import is_fit
    from dynident.estimate.storage import load_fit
    from dynident.files import check_results
    from dynident.report.drives import drives_text
    from dynident.report.text import print_prose

    fit = load_fit(options.robot) if is_fit(options.robot) else None
    if fit is not None and options.locked:
        raise InputError("--locked has no meaning for a fit, whose locked joints are known; leave it out")
    robot = robot_with_gains(robot_of(options) if fit is None else fit.robot, options)
    if fit is not None:
        fit = replace(fit, base=replace(fit.base, robot=robot))
    logs = logs_of(options.logs, robot, options, "train")
    held_out = logs_of(options.validation, robot, options, "validation")
    if options.output is not None:
        check_results(options.output, ("drives.yaml", "model.xml", "report.html"))
    with progress_bar(options.json) as progress:
        found = identify_drives(
            robot if fit is None else fit,
            [*logs, *held_out],
            **plain_options(options, DrivesOptions) | {"progress": progress},
        )
    if options.output is not None:
        _write(found, held_out or logs, options)

    def show() -> None:
        print_prose(drives_text(found))
        for warning in found.warnings:
            warn(warning)
        if options.output is not None:
            print(f"Report: {Path(options.output) / 'report.html'}")

    return print_answer(options, found.to_dict, show)


def _write(found: Any, evaluated: Any, options: DrivesArguments) -> None:
    """The drives, a model that replays them, and the page."""
    from dynident.drives.identification import values_of
    from dynident.drives.replay import ClosedLoopReplay, commands_of
    from dynident.drives.storage import drives_path, drives_yaml
    from dynident.export.mjcf import drives_mjcf
    from dynident.files import write_together
    from dynident.report.drives import drives_html

    stretches = [stretch for log in evaluated for stretch in commands_of(log, found.robot, options.horizon)]
    courses = ClosedLoopReplay(found.robot, stretches).positions([values_of(found.robot, {}, 0.0), found.drives])
    page = drives_html(found, stretches, courses, command("drives", options))
    texts = {
        "drives.yaml": drives_yaml(found, drives_path(str(options.output))),
        "model.xml": drives_mjcf(found),
        "report.html": page,
    }
    write_together(str(options.output), {name: text.encode() for name, text in texts.items()})


@dataclass(frozen=True, kw_only=True)
class ReplayArguments(PdGains, LogReading, LockedJoints, Quiet, Answer):
    """`dynident replay` on the command line."""

    model: str = option(
        REQUIRED,
        "what is simulated: drives or a fit (folder or YAML file), or a robot file (URDF, MJCF, ..)",
        positional=True,
        metavar="MODEL",
    )
    logs: tuple[str, ...] = option(
        REQUIRED, "logs with position commands (target1, ..) or torque", positional=True, many=True, metavar="LOG"
    )
    against: str | None = option(None, "another model whose replay stands beside", metavar="MODEL")
    delay: float | None = option(
        None, "delay of commands", unit="s", least=0.0, metavar="SECONDS", shown="that of the drives, or none"
    )
    horizon: float | None = option(
        None,
        "time after which the replay of logs with torque begins again at the measured motion",
        unit="s",
        minimum=0.0,
        metavar="SECONDS",
        shown="0.2",
    )
    output: str | None = output_argument(None, "HTML page with the curves", "PAGE.html")


def run_replay(options: ReplayArguments) -> int:
    """`dynident replay`."""
    from dynident.cli.inputs import logs_of
    from dynident.drives.replay import ClosedLoopReplay, commands_of, errors_of
    from dynident.files import check_target, write_text
    from dynident.report.drives import replay_html, replay_text
    from dynident.report.text import print_prose

    if options.output is not None:
        check_target(options.output)
    robot, values = _model(options.model, options)
    logs = logs_of(options.logs, robot, options, "validation")
    stretches = [stretch for log in logs for stretch in commands_of(log, robot, options.horizon)]
    courses = {options.model: ClosedLoopReplay(robot, stretches).positions([values])}
    if options.against is not None:
        other, others_values = _model(options.against, options)
        if other.joint_names != robot.joint_names:
            raise InputError(
                f"{options.against}: has joints {', '.join(other.joint_names)}; expected those of {options.model}: "
                f"{', '.join(robot.joint_names)}"
            )
        courses[options.against] = ClosedLoopReplay(other, stretches).positions([others_values])
    errors = {label: errors_of(stretches, own)[0] for label, own in courses.items()}
    if options.output is not None:
        write_text(options.output, replay_html(robot, stretches, courses, errors, command("replay", options)))
    labels = list(dict.fromkeys(one.label for one in stretches))

    def answer() -> dict[str, Any]:
        found = {
            label: {
                "rms": one.total,
                "joints": {
                    name: {"rms": rms, "mad": mad}
                    for name, rms, mad in zip(robot.joint_names, one.rms.tolist(), one.mad.tolist(), strict=True)
                },
            }
            for label, one in errors.items()
        }
        beside = {"against": found[options.against]} if options.against is not None else {}
        return {"robot": robot.name, "logs": labels, **found[options.model], "delay": values.delay, **beside}

    def show() -> None:
        print_prose(replay_text(robot, errors, labels))
        if options.output is not None:
            print(f"Report: {options.output}")

    return print_answer(options, answer, show)


def _model(path: str, options: ReplayArguments) -> tuple[Robot, DriveValues]:
    """A robot and what is simulated of it."""
    from dataclasses import replace

    from dynident.cli.inputs import load_locked
    from dynident.drives.equivalent import plain_model
    from dynident.drives.identification import values_of
    from dynident.drives.storage import drives_path, is_drives, is_fit, load_drives
    from dynident.estimate.storage import load_fit

    if is_drives(path):
        found = load_drives(drives_path(path))
        robot, values = robot_with_gains(found.robot, options), found.drives
    else:
        plain = plain_model(load_fit(path)).robot if is_fit(path) else load_locked(path, options)
        robot = robot_with_gains(plain, options)
        values = values_of(robot, {}, 0.0)
    return robot, values if options.delay is None else replace(values, delay=options.delay)


def robot_with_gains(robot: Robot, options: PdGains) -> Robot:
    """The robot with gains of its position controller as given."""
    from dynident.drives.linear import with_gains

    found = given_gains(robot, options)
    return robot if found is None else with_gains(robot, *found)


def given_gains(robot: Robot, options: PdGains) -> tuple[Array, Array] | None:
    """(n_joints,) position and velocity gains as given, one of them that of the robot file; None without any."""
    import numpy as np

    if options.kp is None and options.kd is None:
        return None
    n, found = len(robot.joint_names), []
    for flag, text, known in (("--kp", options.kp, robot.drive.kp), ("--kd", options.kd, robot.drive.kd)):
        if text is None:
            if known is None:
                raise InputError(f"{flag} is missing; a position controller has both gains (0 for none)")
            found.append(known[list(robot.moving)])
            continue
        try:
            numbers = [float(word) for word in text.split(",")]
        except ValueError:
            raise InputError(f"{flag} {text}: expected a number, or {n} of them separated by commas") from None
        if len(numbers) not in (1, n) or not np.isfinite(numbers).all() or min(numbers) < 0.0:
            raise InputError(
                f"{flag} {text}: expected a number that is not negative, or {n} of them, one for each joint"
            )
        found.append(np.broadcast_to(numbers, (n,)).copy())
    return found[0], found[1]
