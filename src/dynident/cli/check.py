"""`dynident check`: a look at logs, with a robot or without one."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynident.cli.arguments import command, output_argument, warn
from dynident.diagnostics.options import CheckOptions
from dynident.errors import InputError
from dynident.options import REQUIRED, Answer, LockedJoints, LogReading, Quiet, given_options, option, plain_options

if TYPE_CHECKING:
    from dynident.estimate.records import Diagnosis
    from dynident.logs.file import LogFile
    from dynident.robot import Robot

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
    output: str | None = output_argument(
        None, "overlay of the robot that corrects what was found, or column file where columns are in doubt", "F.yaml"
    )
    report: str | None = option(None, "page with channels, joints, raw ranges and signals", metavar="F.html")
    all: bool = option(False, "show what is fine as well")


def run_check(options: CheckArguments) -> int:
    """`dynident check`."""
    from dynident.cli.inputs import parse_window

    start, stop = parse_window(options.window)
    how: dict[str, Any] = {"columns": options.columns, "start": start, "stop": stop}
    first, *others = options.words
    if not _is_robot(first, others):
        given = given_options(options)
        for name in ("band", "delay", "rest_velocity", "locked", "fixed_base", "xacro_arg"):
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
    from dynident.cli.inputs import print_columns, topics_for
    from dynident.diagnostics.log_preview import preview
    from dynident.files import write_text
    from dynident.logs.bag import list_topics
    from dynident.logs.log import LogError
    from dynident.logs.read import is_bag, stream_log
    from dynident.report.log_check import check_html
    from dynident.report.terminal import page_console
    from dynident.report.terminal.diagnosis import column_rows, print_preview, print_reasons, print_topics

    check_output(options.output)
    check_page(options.report)
    topics = {path: list_topics(Path(path)) for path in options.words if is_bag(Path(path))}
    logs: list[LogFile] = []
    try:
        with column_file_for(options, None, options.words):
            for path in options.words:
                chosen = [one for one in topics.get(path, ()) if one.topic in options.topic or not options.topic]
                try:
                    logs.append(stream_log(path, **how, topics=topics_for(path, options)))
                except LogError:  # a bag tells the names of joints, which mean nothing without a robot
                    if options.output is not None or not any(one.channels for one in chosen):
                        raise
            found = [preview(log) for log in logs]
    except LogError:
        if not options.json:
            for path, own in topics.items():
                print_topics(path, own, page_console())
        raise
    if options.report is not None:
        write_text(options.report, check_html(logs, command=command("check", options)))
    if options.output is not None:
        doubtful = next((log.source for log in logs if log.unused), None)
        if doubtful is None:
            raise InputError("--output needs a robot where all columns are understood: dynident check ROBOT LOG..")
        write_column_file(options, None, doubtful)
    if options.json:
        own_columns = [{"columns": column_rows(log.columns, None), "warnings": list(log.warnings)} for log in logs]
        plain = [one.as_dict() | more for one, more in zip(found, own_columns, strict=True)]
        listed = {path: [one.as_dict() for one in own] for path, own in topics.items()}
        print(json.dumps({"logs": plain} | ({"topics": listed} if topics else {}), allow_nan=False))
        return 0
    if options.quiet:
        return 0
    console = page_console()
    for path, own in topics.items():
        print_topics(path, own, console)
    for one, log in zip(found, logs, strict=True):
        print_preview(one, console, log.reasons)
        print_columns([log], None)
        print_reasons(log, console)
    print_page(options)
    return 0


def _check(options: CheckArguments, given: str, paths: Sequence[str], how: dict[str, Any]) -> int:
    """Look for mistakes in logs of a robot.

    Args:
        options: Of the command line.
        given: How the user called the robot.
        paths: The logs.
        how: Columns and window of the logs.
    """
    from dynident.cli.inputs import load_locked, print_columns, progress_bar, topics_for
    from dynident.diagnostics.diagnosing import check_logs
    from dynident.files import write_text
    from dynident.logs.read import short_names, stream_log
    from dynident.report.log_check import check_html
    from dynident.report.terminal import page_console
    from dynident.report.terminal.diagnosis import column_rows, print_diagnosis, print_reasons

    robot = load_locked(given, options)
    check_output(options.output)
    check_page(options.report)
    with column_file_for(options, robot, paths):
        logs = [stream_log(path, robot, **how, topics=topics_for(path, options)) for path in paths]
        with progress_bar(options.quiet or options.json) as progress:
            found = check_logs(robot, logs, **plain_options(options, CheckOptions) | {"progress": progress})
    written, code = options.output is not None and bool(found.fix), int(found.severity == "stop")
    doubtful = next((log for log in logs if log.reasons or (log.unused and found.severity == "stop")), None)
    if options.output is not None and not written and doubtful is not None:
        write_column_file(options, robot, doubtful.source)
    if options.output is not None and found.fix:
        write_text(options.output, overlay_text(given, options.output, found))
    if options.report is not None:
        write_text(options.report, check_html(logs, robot, found, command("check", options)))
    if options.json:
        columns = {log.label: column_rows(log.columns, robot) for log in logs}
        print(json.dumps(found.as_dict() | {"columns": columns}, allow_nan=False))
        return code
    if options.output is not None and not written and doubtful is None:
        warn(f"{options.output} was not written: nothing was found that an overlay corrects")
    if options.quiet:
        return code
    names = short_names(logs)
    print_columns(logs, robot, every=options.all)
    for log in logs:
        print_reasons(log, page_console())
    print_diagnosis(found, page_console(), names, every=options.all)
    print_page(options)
    if written:
        print(f"Overlay: {options.output} (use it as the robot)")
    elif found.fix:
        print("\nOverlay that corrects it (write it with -o FILE.yaml, and use that as the robot):\n")
        print(overlay_text(given, "overlay.yaml", found), end="")
    return code


def check_output(path: str | None) -> None:
    """Refuse a file for the answer that cannot be written, or has another ending than YAML."""
    from dynident.files import check_target

    if path is None:
        return
    check_target(path)
    if Path(path).suffix.lower() not in (".yaml", ".yml"):
        raise InputError(f"{path}: -o writes an overlay or a column file; give it a name that ends in .yaml")


def check_page(path: str | None) -> None:
    """Refuse a page that cannot be written, or has another ending than HTML."""
    from dynident.files import check_target

    if path is None:
        return
    check_target(path)
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{path}: --report writes a page; give it a name that ends in .html")


def print_page(options: CheckArguments) -> None:
    """Print where the page is."""
    if options.report is not None:
        print(f"Page: {options.report}")


@contextmanager
def column_file_for(options: CheckArguments, robot: Robot | None, paths: Sequence[str]) -> Iterator[None]:
    """Where a log cannot be used because its columns are in doubt, write a proposed column file as well."""
    from dynident.logs.log import LogError
    from dynident.logs.tables import LogWarning

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LogWarning)  # the page shows them
            yield
    except LogError as error:
        source = next((path for path in paths if path == error.source), None)
        if options.output is None or source is None:
            raise
        try:
            write_column_file(options, robot, source)
        except LogError:  # not a table at all
            raise error from None
        raise


def write_column_file(options: CheckArguments, robot: Robot | None, path: str) -> None:
    """Write a proposed column file of a log, and say so."""
    from dynident.cli.inputs import topics_for
    from dynident.files import write_text
    from dynident.logs.read import propose_columns
    from dynident.logs.tables import LogWarning

    assert options.output is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LogWarning)
        write_text(
            options.output, propose_columns(path, robot, columns=options.columns, topics=topics_for(path, options))
        )
    if not options.json:
        print(f"Column file: {options.output} (see its lines with '?', then use it with --columns)")


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
