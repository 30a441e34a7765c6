"""`dynident drives` and `dynident replay`: drives from position commands, and how near a simulated robot comes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynident.cli.arguments import command, complain, output_argument, print_answer, robot_argument
from dynident.drives.options import DrivesOptions
from dynident.errors import InputError
from dynident.options import REQUIRED, Answer, LockedJoints, LogReading, Options, Quiet, option, plain_options

if TYPE_CHECKING:
    from dynident.arrays import Array
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

    robot: str = robot_argument()
    logs: tuple[str, ...] = option(
        REQUIRED, "logs with position commands (target1, ..)", positional=True, many=True, metavar="LOG"
    )
    validation: tuple[str, ...] = option((), "validation logs; not used for fitting", many=True, metavar="LOG")
    output: str | None = output_argument(None, "folder for drives.yaml, model.xml and report.html", "OUT")


def run_drives(options: DrivesArguments) -> int:
    """`dynident drives`."""
    from dynident.cli.inputs import logs_of, progress_bar, robot_of
    from dynident.drives.identification import identify_drives
    from dynident.report.drives import drives_text
    from dynident.report.text import print_prose

    robot = robot_with_gains(robot_of(options), options)
    logs = logs_of(options.logs, robot, options, "train")
    held_out = logs_of(options.validation, robot, options, "validation")
    with progress_bar(options.json) as progress:
        found = identify_drives(
            robot, [*logs, *held_out], **plain_options(options, DrivesOptions) | {"progress": progress}
        )
    if options.output is not None:
        _write(found, held_out or logs, options)

    def show() -> None:
        print_prose(drives_text(found))
        for warning in found.warnings:
            complain(warning)
        if options.output is not None:
            print(f"Report: {Path(options.output) / 'report.html'}")

    return print_answer(options, found.to_dict, show)


def _write(found: Any, evaluated: Any, options: DrivesArguments) -> None:
    """The drives, a model that replays them, and the page."""
    from dynident.drives.identification import values_of
    from dynident.drives.replay import ClosedLoopReplay, commands_of
    from dynident.drives.storage import save_drives
    from dynident.export.mjcf import drives_mjcf
    from dynident.files import write_text
    from dynident.report.drives import drives_html

    out = Path(str(options.output))
    try:
        save_drives(found, out)
    except OSError as error:
        raise InputError(f"{out}: cannot be written ({error.strerror}); choose another folder") from None
    write_text(out / "model.xml", drives_mjcf(found))
    stretches = [stretch for log in evaluated for stretch in commands_of(log, found.robot)]
    courses = ClosedLoopReplay(found.robot, stretches).positions([values_of(found.robot, {}, 0.0), found.drives])
    write_text(out / "report.html", drives_html(found, stretches, courses, command("drives", options)))


@dataclass(frozen=True, kw_only=True)
class ReplayArguments(PdGains, LogReading, LockedJoints, Quiet, Answer):
    """`dynident replay` on the command line."""

    model: str = option(
        REQUIRED, "drives.yaml or the folder that drives wrote, or a robot file", positional=True, metavar="MODEL"
    )
    logs: tuple[str, ...] = option(
        REQUIRED, "logs with position commands (target1, ..)", positional=True, many=True, metavar="LOG"
    )
    delay: float | None = option(
        None, "delay of commands", unit="s", metavar="SECONDS", shown="that of the drives, or none"
    )


def run_replay(options: ReplayArguments) -> int:
    """`dynident replay`."""
    from dataclasses import replace

    from dynident.cli.inputs import load_locked, logs_of
    from dynident.drives.identification import values_of
    from dynident.drives.replay import ClosedLoopReplay, commands_of
    from dynident.drives.storage import drives_path, is_drives, load_drives
    from dynident.report.drives import replay_text
    from dynident.report.text import print_prose

    if is_drives(options.model):
        found = load_drives(drives_path(options.model))
        robot, values = robot_with_gains(found.robot, options), found.drives
    else:
        robot = robot_with_gains(load_locked(options.model, options), options)
        values = values_of(robot, {}, 0.0)
    if options.delay is not None:
        values = replace(values, delay=options.delay)
    logs = logs_of(options.logs, robot, options, "validation")
    stretches = [stretch for log in logs for stretch in commands_of(log, robot)]
    (errors,) = ClosedLoopReplay(robot, stretches).errors([values])
    labels = list(dict.fromkeys(one.label for one in stretches))
    joints = {
        name: {"rms": rms, "mad": mad}
        for name, rms, mad in zip(robot.joint_names, errors.rms.tolist(), errors.mad.tolist(), strict=True)
    }
    answer = {"robot": robot.name, "logs": labels, "rms": errors.total, "joints": joints, "delay": values.delay}
    return print_answer(options, lambda: answer, lambda: print_prose(replay_text(robot, errors, labels)))


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
