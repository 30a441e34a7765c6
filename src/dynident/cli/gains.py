"""`dynident gains`: drive gains from logs without and with a known payload."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dynident.cli.arguments import command, output_argument, robot_argument
from dynident.errors import InputError
from dynident.options import REQUIRED, Answer, LockedJoints, LogReading, Quiet, option, plain_options
from dynident.payload.options import GainOptions

_ROBOT = "robot.yaml"  # the robot with the gains, in the output folder


@dataclass(frozen=True, kw_only=True)
class GainsArguments(GainOptions, LogReading, LockedJoints, Quiet, Answer):
    """`dynident gains` on the command line."""

    robot: str = robot_argument()
    logs: tuple[str, ...] = option(REQUIRED, "logs with the payload", positional=True, many=True, metavar="LOG")
    output: str | None = output_argument(
        None, "folder for result.json, report.html and robot.yaml, the robot with these gains", "OUT"
    )


def run_gains(options: GainsArguments) -> int:
    """`dynident gains`."""
    from dynident.cli.experiment import show_answer
    from dynident.cli.inputs import logs_of, robot_of
    from dynident.export.overlay import export_drive_gains
    from dynident.payload.gains_from_logs import drive_gains_from_logs
    from dynident.report.gains import gains_html, gains_text

    robot = robot_of(options)
    out = None if options.output is None else Path(options.output)
    if out is not None and out.exists() and not out.is_dir():
        raise InputError(f"{out}: is a file; -o needs a folder for result.json, report.html and robot.yaml")
    loaded = logs_of(options.logs, robot, options, "train")
    unloaded = logs_of(options.unloaded, robot, options, "train")  # type: ignore[arg-type]  # paths of logs
    found = drive_gains_from_logs(robot, loaded, **plain_options(options, GainOptions) | {"unloaded": unloaded})
    answer: dict[str, Any] = found.as_dict()
    if found.kind != "i":
        words = "torque was logged, not current: multiply its columns by the factors (scale: in a column file)"
        found = replace(found, notes=(*found.notes, words))
    elif out is not None and robot.locked and robot.drive.gains is None:
        words = "no robot.yaml: gains of the locked joints are not known; give drive_gains in the robot file"
        found = replace(found, notes=(*found.notes, words))
    elif out is not None:
        out.mkdir(parents=True, exist_ok=True)
        note = f"By {command('gains', options)}; {found.known} known. Tolerances are standard deviations."
        export_drive_gains(found.robot, out / _ROBOT, note=note)
        answer["files"] = {"robot": str(out / _ROBOT)}
        found = replace(found, notes=(*found.notes, f"robot with these gains: {out / _ROBOT}"))
    answer["notes"] = list(found.notes)
    return show_answer(options, answer, lambda: gains_text(found), lambda: gains_html(found, command("gains", options)))
