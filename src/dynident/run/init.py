"""`dynident init`: a run file from a robot and its logs."""

from __future__ import annotations

import json
import shlex
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from dynident.errors import InputError

if TYPE_CHECKING:
    from dynident.run.found_logs import Split


def run_init(options: Namespace) -> int:
    """`dynident init`."""
    from dynident.files import check_target, write_text
    from dynident.robot import load_robot
    from dynident.run.found_logs import split_logs
    from dynident.run.init_text import run_file_text
    from dynident.run.run_file import read_run_file
    from dynident.run.shared import progress_bar

    target = Path(options.output)
    check_target(target)
    if target.suffix.lower() not in (".yaml", ".yml"):
        raise InputError(f"{target}: a run file must end in .yaml")
    if target.exists() and not options.fresh:
        raise InputError(f"{target}: is there already; give another name with -o, or --fresh to replace it")
    if target.resolve() == Path(options.robot).resolve():
        raise InputError(f"{target}: is the robot itself; give the run file another name with -o")
    robot = load_robot(options.robot)
    with progress_bar(options.quiet or options.json) as progress:
        split = split_logs(
            options.logs, robot, validation=options.validation, columns=options.columns, progress=progress
        )
    write_text(target, run_file_text(robot, options.robot, target, split, options.columns))
    read_run_file(target)  # what init writes, run understands
    if options.json:
        print(json.dumps(_answer(target, robot.name, split)))
    elif not options.quiet:
        _print(target, split)
    return 0


def _answer(target: Path, robot: str, split: Split) -> dict[str, object]:
    return {
        "file": str(target),
        "robot": robot,
        "training": [str(log.path) for log in split.training],
        "validation": [str(log.path) for log in split.validation],
        "why": split.why,
        "left_out": [{"path": str(log.path), "reason": log.reason} for log in split.left_out],
    }


def _print(target: Path, split: Split) -> None:
    from rich.text import Text

    from dynident.report.inspection import page_console
    from dynident.report.words import printable

    console = page_console()
    roles = (("training", split.training, ""), ("validation", split.validation, f" ({split.why})"))
    for role, logs, why in roles:
        names = ", ".join(log.path.name for log in logs)
        console.print(
            Text(printable(f"{role}: {names or 'none; record a log of another motion'}{why if logs else ''}"))
        )
    for log in split.left_out:
        console.print(Text(printable(f"left out: {log.path.name}: {log.reason}"), style="yellow"))
    console.print(
        f"Run file: {target}\nNext: look it through, then {shlex.join(['dynident', 'run', str(target)])}",
        soft_wrap=True,
    )
