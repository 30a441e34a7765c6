"""`dynident fleet`: identify many robots from all of their logs, and follow their friction."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynident.cli.arguments import complain, output_argument, print_answer
from dynident.errors import InputError
from dynident.fleet.options import FleetAnalysisOptions, FleetRunOptions, FleetWatchOptions
from dynident.options import REQUIRED, Answer, Options, Quiet, option, option_fields, plain_options

if TYPE_CHECKING:
    from dynident.fleet.analysis import FleetAnalysis
    from dynident.fleet.running import FleetRun

TASKS = ("init", "run", "report", "watch", "export")


@dataclass(frozen=True, kw_only=True)
class FleetInitOptions(Options):
    """Of `dynident fleet init`."""

    HELP_GROUP = "fleet init"

    robot: str | None = option(None, "robot file or bundled name", metavar="ROBOT")
    overwrite: bool = option(False, "replace a fleet file that is there already")


@dataclass(frozen=True, kw_only=True)
class FleetExportOptions(Options):
    """Of `dynident fleet export`."""

    HELP_GROUP = "fleet export"

    formats: str = option("urdf", "files of each robot, separated by commas: urdf, mjcf, yaml, c", metavar="LIST")
    robots: str | None = option(None, "serial numbers, separated by commas", metavar="LIST", shown="all")


@dataclass(frozen=True, kw_only=True)
class FleetArguments(FleetExportOptions, FleetWatchOptions, FleetRunOptions, FleetInitOptions, Quiet, Answer):
    """`dynident fleet` on the command line."""

    task: str = option(
        REQUIRED,
        "init (draft a fleet file from a folder of logs), run (identify what is new), report (write pages), watch "
        "(print new alarms as JSON lines) or export (model files of all robots)",
        positional=True,
        choices=TASKS,
        metavar="TASK",
    )
    source: str = option(
        REQUIRED,
        "for init a folder of logs, for run a fleet file, else the store",
        positional=True,
        metavar="FOLDER|FLEET.yaml|STORE",
    )
    output: str | None = output_argument(
        None, "for init the fleet file, for run the store, for export a folder", "OUT", shown="fleet.yaml for init"
    )


_OWN: dict[str, Any] = {
    "init": FleetInitOptions,
    "run": FleetRunOptions,
    "report": FleetAnalysisOptions,
    "watch": FleetWatchOptions,
    "export": FleetExportOptions,
}


def run_fleet(options: FleetArguments) -> int:
    """`dynident fleet`."""
    shared = {"task", "source", "output", *option_fields(Quiet), *option_fields(Answer)}
    own = option_fields(_OWN[options.task])
    given = {name for name in option_fields(FleetArguments) if getattr(options, name) != _default(name)}
    for name in sorted(given - shared - set(own)):
        flag = name.replace("_", "-")
        raise InputError(f"--{flag} has no meaning with fleet {options.task}; leave it out")
    if options.task in ("report", "watch") and options.output is not None:
        raise InputError(f"-o has no meaning with fleet {options.task}, whose files stand in the store; leave it out")
    if options.task in ("run", "export") and options.output is None:
        raise InputError(f"fleet {options.task} needs -o {'STORE' if options.task == 'run' else 'FOLDER'}")
    return {"init": _init, "run": _run, "report": _report, "watch": _watch, "export": _export}[options.task](options)


def _default(name: str) -> Any:
    return option_fields(FleetArguments)[name].default


def _init(options: FleetArguments) -> int:
    from dynident.files import check_target, write_text
    from dynident.fleet.draft import draft_fleet_file
    from dynident.fleet.fleet_file import read_fleet_file
    from dynident.report.text import plural
    from dynident.robot.load import load_robot

    if options.robot is None:
        raise InputError("fleet init needs --robot ROBOT, a robot file or bundled name")
    load_robot(options.robot)
    target = Path(options.output or "fleet.yaml")
    check_target(target)
    if target.exists() and not options.overwrite:
        raise InputError(f"{target}: is there already; give another name with -o, or --overwrite to replace it")
    text, n_logs, robots = draft_fleet_file(options.source, options.robot, target)
    write_text(target, text)
    read_fleet_file(target)

    def show() -> None:
        print(f"{plural(n_logs, 'log')} of {plural(len(robots), 'robot')}: {', '.join(robots[:5])}", end="")
        print(f"{', ..' if len(robots) > 5 else ''}\nFleet file: {target}")
        print(f"Next: look it through, then {shlex.join(['dynident', 'fleet', 'run', str(target), '-o', 'store'])}")

    return print_answer(options, lambda: {"file": str(target), "logs": n_logs, "robots": robots}, show)


def _run(options: FleetArguments) -> int:
    from dynident.cli.inputs import progress_bar
    from dynident.fleet.running import run_fleet as run

    with progress_bar(options.quiet or options.json) as progress:
        how = plain_options(options, FleetRunOptions) | {"progress": progress}
        done = run(options.source, str(options.output), **how)
    print_answer(options, done.as_dict, lambda: _show_run(done))
    return 1 if done.failed or done.unfinished else 0


def _show_run(done: FleetRun) -> None:
    print(f"{done.finished} logs done, {done.known} known before; {done.robots} robots with parameters")
    for what, named in (("failed", done.failed), ("not finished", done.unfinished)):
        for place, (uri, why) in enumerate(named.items()):
            if place == 20:
                print(f"  and {len(named) - place} more")
                break
            print(f"  {what}: {why if uri in why else f'{uri}: {why}'}")
    print(f"Store: {done.store}\nNext:  {shlex.join(['dynident', 'fleet', 'report', done.store])}")


def _analysis(options: FleetArguments) -> FleetAnalysis:
    from dynident.fleet.analysis import analyze_fleet

    return analyze_fleet(options.source, **plain_options(options, FleetAnalysisOptions))


def _report(options: FleetArguments) -> int:
    from dynident.cli.inputs import progress_bar
    from dynident.fleet.pages import fleet_sections, write_fleet_pages

    found = _analysis(options)
    found.save()
    with progress_bar(options.quiet or options.json) as progress:
        page = write_fleet_pages(found, progress)

    def show() -> None:
        from dynident.report.terminal import page_console, print_parts

        console = page_console()
        for section in fleet_sections(found):
            print_parts([section], console)
        console.print(f"Page: {page}", soft_wrap=True)

    def answer() -> dict[str, Any]:
        robots = [{key: value for key, value in row.items() if key != "signature"} for row in found.robots]
        looked = {"histories": len(found.changes), "too_short": found.too_short, "level": found.level}
        return {"alarms": found.alarms(), "robots": robots, **looked, "page": str(page)}

    return print_answer(options, answer, show)


def _watch(options: FleetArguments) -> int:
    from dynident.fleet.watching import alarm_lines, watch_fleet

    alarms, found = watch_fleet(options.source, **plain_options(options, FleetWatchOptions))
    if options.json:
        print_answer(options, lambda: {"alarms": alarms, "histories": len(found.changes)}, lambda: None)
    elif not options.quiet:
        sys.stdout.write(alarm_lines(alarms))
    return 1 if alarms else 0


def _export(options: FleetArguments) -> int:
    from dynident.fleet.exporting import export_fleet

    formats = [part.strip() for part in options.formats.split(",") if part.strip()]
    robots = [part.strip() for part in (options.robots or "").split(",") if part.strip()]
    written, failed = export_fleet(options.source, str(options.output), formats, robots)
    from dynident.report.text import plural

    def show() -> None:
        print(f"{plural(len(written), 'robot')}: {', '.join(formats)} in {options.output}")

    print_answer(options, lambda: {"written": written, "failed": failed}, show)
    if failed and not options.json:
        for serial, why in failed.items():
            complain(f"robot {serial}: {why}")
    return 1 if failed else 0
