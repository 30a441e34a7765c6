"""`dynident check`: a look at logs, with a robot or without one."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from dynident.diagnostics.diagnosing import Progress, check_logs
from dynident.diagnostics.log_preview import preview
from dynident.errors import InputError
from dynident.estimate.records import Checkup
from dynident.files import check_target, write_text
from dynident.logs.read import short_names, stream_log
from dynident.report.terminal import page_console
from dynident.report.terminal.diagnosis import print_checkup, print_preview
from dynident.robot.load import bundled_names
from dynident.robot.model import Robot
from dynident.robot.storage import yaml_text
from dynident.signals.observations import SignalOptions

_ROBOTS = (".urdf", ".yaml", ".yml")


def is_robot(word: str, others: Sequence[str]) -> bool:
    """Whether the first word of the verb is a robot; an .xml is one if a log follows."""
    suffix = Path(word).suffix.lower()
    return word in bundled_names() or suffix in _ROBOTS or (suffix == ".xml" and bool(others))


def run_preview(paths: Sequence[str], how: dict[str, Any], *, as_json: bool) -> int:
    """What is in logs, without a robot."""
    found = [preview(stream_log(path, **how)) for path in paths]
    if as_json:
        print(json.dumps({"logs": [one.as_dict() for one in found]}, allow_nan=False))
        return 0
    console = page_console()
    for one in found:
        print_preview(one, console)
    return 0


def run_check(
    robot: Robot,
    given: str,
    options: Namespace,
    how: dict[str, Any],
    progress: Callable[[bool], AbstractContextManager[Progress | None]],
) -> int:
    """Look for mistakes in logs of a robot.

    Args:
        robot: The robot.
        given: How the user called it.
        options: Of the command line.
        how: Columns and window of the logs.
        progress: Makes a progress bar, or with True none.
    """
    if options.output is not None:
        check_target(options.output)
        if Path(options.output).suffix.lower() not in (".yaml", ".yml"):
            raise InputError(f"{options.output}: -o writes an overlay of the robot; give it a name that ends in .yaml")
        if given not in bundled_names() and Path(options.output).resolve() == Path(given).resolve():
            raise InputError(f"{options.output}: is the robot itself; give the overlay that stands on it another name")
    logs = [stream_log(path, robot, **how) for path in options.words[1:]]
    signals = SignalOptions(
        band=options.band,
        delay=options.delay or 0.0,
        rest_speed=SignalOptions.rest_speed if options.rest_speed is None else options.rest_speed,
    )
    with progress(options.quiet or options.json) as told:
        found = check_logs(robot, logs, signals=signals, progress=told)
    written = options.output is not None and bool(found.fix)
    if written:
        write_text(options.output, overlay_text(given, options.output, found))
    if options.json:
        print(json.dumps(found.as_dict(), allow_nan=False))
        return 0
    names = short_names(logs)
    print_checkup(found, page_console(), names, every=options.all)
    if written:
        print(f"Overlay: {options.output} (use it as the robot)")
    elif found.fix:
        print("\nOverlay that puts it right (write it with -o FILE.yaml, and use that as the robot):\n")
        print(overlay_text(given, "overlay.yaml", found), end="")
    if options.output is not None and not written:
        print(f"dynident: {options.output} was not written: nothing was found that an overlay mends", file=sys.stderr)
    return 0


def overlay_text(robot: str, target: str, found: Checkup) -> str:
    """The overlay that puts right what was found.

    Args:
        robot: Robot file or bundled name.
        target: Where the overlay will stand; a robot file in the same folder is named without it.
        found: The check-up.
    """
    base = robot
    if robot not in bundled_names():
        path, folder = Path(robot).resolve(), Path(target).resolve().parent
        base = path.name if path.parent == folder else str(path)
    return yaml_text({"base": base, **found.fix})
