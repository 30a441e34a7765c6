"""`dynident check`: a look at logs, with a robot or without one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynident.cli.arguments import complain, output_argument
from dynident.diagnostics.options import CheckOptions
from dynident.errors import InputError
from dynident.options import REQUIRED, Answer, LockedJoints, LogReading, Quiet, given_options, option, plain_options

if TYPE_CHECKING:
    from dynident.estimate.records import Diagnosis

_ROBOTS = (".urdf", ".yaml", ".yml", ".xacro")


@dataclass(frozen=True, kw_only=True)
class CheckArguments(CheckOptions, LogReading, LockedJoints, Quiet, Answer):
    """`dynident check` on the command line."""

    words: tuple[str, ...] = option(
        REQUIRED,
        "robot file or bundled name, and its logs; without a robot, only what is in the logs is shown",
        positional=True,
        many=True,
        metavar="[ROBOT] LOG",
    )
    output: str | None = output_argument(None, "overlay of the robot that puts right what was found", "F.yaml")
    all: bool = option(False, "show what is fine as well")


def run_check(options: CheckArguments) -> int:
    """`dynident check`."""
    from dynident.cli.inputs import parse_window

    start, stop = parse_window(options.window)
    how: dict[str, Any] = {"columns": options.columns, "start": start, "stop": stop}
    first, *others = options.words
    if not _is_robot(first, others):
        given = given_options(options)
        for name in ("output", "band", "delay", "rest_speed", "locked", "fixed_base", "xacro_arg"):
            if name in given:
                raise InputError(f"--{name.replace('_', '-')} needs a robot: dynident check ROBOT LOG..")
        return _preview(options, how)
    if not others:
        raise InputError(f"{first}: check needs a LOG behind the robot")
    return _check(options, first, others, how)


def _is_robot(word: str, others: Sequence[str]) -> bool:
    """Whether the first word of the verb is a robot; an .xml is one if a log follows."""
    from dynident.robot.load import is_path

    suffix = Path(word).suffix.lower()
    return not is_path(word) or suffix in _ROBOTS or (suffix == ".xml" and bool(others))


def _preview(options: CheckArguments, how: dict[str, Any]) -> int:
    """What is in logs, without a robot."""
    from dynident.diagnostics.log_preview import preview
    from dynident.logs.read import stream_log
    from dynident.report.terminal import page_console
    from dynident.report.terminal.diagnosis import print_preview

    found = [preview(stream_log(path, **how)) for path in options.words]
    if options.json:
        print(json.dumps({"logs": [one.as_dict() for one in found]}, allow_nan=False))
        return 0
    console = page_console()
    for one in found:
        print_preview(one, console)
    return 0


def _check(options: CheckArguments, given: str, paths: Sequence[str], how: dict[str, Any]) -> int:
    """Look for mistakes in logs of a robot.

    Args:
        options: Of the command line.
        given: How the user called the robot.
        paths: The logs.
        how: Columns and window of the logs.
    """
    from dynident.cli.inputs import load_locked, progress_bar
    from dynident.diagnostics.diagnosing import check_logs
    from dynident.files import check_target, write_text
    from dynident.logs.read import short_names, stream_log
    from dynident.report.terminal import page_console
    from dynident.report.terminal.diagnosis import print_diagnosis
    from dynident.robot.load import is_path

    robot = load_locked(given, options)
    if options.output is not None:
        check_target(options.output)
        if Path(options.output).suffix.lower() not in (".yaml", ".yml"):
            raise InputError(f"{options.output}: -o writes an overlay of the robot; give it a name that ends in .yaml")
        if is_path(given) and Path(options.output).resolve() == Path(given).resolve():
            raise InputError(f"{options.output}: is the robot itself; give the overlay that stands on it another name")
    logs = [stream_log(path, robot, **how) for path in paths]
    with progress_bar(options.quiet or options.json) as progress:
        found = check_logs(robot, logs, **plain_options(options, CheckOptions) | {"progress": progress})
    written = options.output is not None and bool(found.fix)
    if options.output is not None and found.fix:
        write_text(options.output, overlay_text(given, options.output, found))
    if options.json:
        print(json.dumps(found.as_dict(), allow_nan=False))
        return 0
    names = short_names(logs)
    print_diagnosis(found, page_console(), names, every=options.all)
    if written:
        print(f"Overlay: {options.output} (use it as the robot)")
    elif found.fix:
        print("\nOverlay that puts it right (write it with -o FILE.yaml, and use that as the robot):\n")
        print(overlay_text(given, "overlay.yaml", found), end="")
    if options.output is not None and not written:
        complain(f"{options.output} was not written: nothing was found that an overlay mends")
    return 0


def overlay_text(robot: str, target: str, found: Diagnosis) -> str:
    """The overlay that puts right what was found.

    Args:
        robot: Robot file or bundled name.
        target: Where the overlay will stand; a robot file in the same folder is named without it.
        found: The diagnosis.
    """
    from dynident.robot.load import is_path
    from dynident.robot.storage import yaml_text

    base = robot
    if is_path(robot):
        path, folder = Path(robot).resolve(), Path(target).resolve().parent
        base = path.name if path.parent == folder else str(path)
    return yaml_text({"base": base, **found.fix})
