"""`dynident run` and `dynident demo`: all steps at once, from logs to exported models."""

from __future__ import annotations

import shlex
import warnings
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynident.cli.arguments import command, output_argument, print_answer, warn
from dynident.errors import InputError
from dynident.options import REQUIRED, Answer, Quiet, option

if TYPE_CHECKING:
    from dynident.cli.export import ExportArguments
    from dynident.cli.run_file import RunFile


@dataclass(frozen=True, kw_only=True)
class RunArguments(Quiet, Answer):
    """`dynident run` on the command line."""

    file: str = option(REQUIRED, "run file, as init writes it", positional=True, metavar="FILE")
    fresh: bool = option(False, "start fresh: do not continue the earlier run in the output folder", recorded=False)


def run_run(options: RunArguments) -> int:
    """`dynident run`."""
    from dynident.cli.export import export_answer, export_into, print_exported
    from dynident.cli.identify import identify_answer, identify_into_folder, print_identification
    from dynident.cli.run_file import read_run_file

    plan = read_run_file(options.file)
    identify = replace(plan.identify, fresh=options.fresh, json=options.json, quiet=options.quiet)
    if plan.export is not None:
        _check_export(plan.export)
    changed = changed_logs(plan)
    if changed and not options.json:
        for words in changed:
            warn(words)
    columns = [("columns", identify.columns)] if identify.columns else []
    files = [("run file", plan.source), ("robot", identify.robot), *columns]
    fit = identify_into_folder(identify, command("run", options), files, changed)
    written: list[Any] = []
    bodies: list[Any] = []
    if plan.export is not None:
        export_into(plan.export, written, bodies)
    out = Path(identify.output)

    def answer() -> dict[str, Any]:
        exported = None if plan.export is None else export_answer(written, bodies)
        return {"run": plan.source, "changed": changed, "identify": identify_answer(fit, out), "export": exported}

    def show() -> None:
        print_identification(fit, out)
        if plan.export is not None:
            print()
            print_exported(written, bodies)

    return print_answer(options, answer, show)


def _check_export(export: ExportArguments) -> None:
    """Refuse before the identification what the export would refuse after it."""
    from dynident.cli.export import parse_bounds
    from dynident.export.fit_export import FORMATS, check_export

    check_export(export)
    parse_bounds(export.mass, export.total_mass)
    for target in (getattr(export, form) for form in FORMATS if getattr(export, form) is not None):
        folder = Path(target).parent
        if not folder.is_dir() and folder.resolve() != Path(export.fit).resolve():
            raise InputError(f"{target}: the folder {folder} does not exist; create it, or export into the output")


def changed_logs(plan: RunFile) -> list[str]:
    """Logs that are not what they were when the run file was written, in words."""
    from dynident.cli.inputs import read_robot
    from dynident.logs import LogWarning
    from dynident.logs.read import stream_log

    changed = []
    robot = read_robot(plan.identify.robot, plan.identify)
    for path, digest in plan.hashes.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LogWarning)  # which identify reports
            found = stream_log(path, robot, columns=plan.identify.columns, topics=plan.identify.topic).digest
        if found != digest:
            changed.append(
                f"{path} has changed since the run file was written (SHA-256 {digest[:12]} then, {found[:12]} now); "
                "the result will differ"
            )
    return changed


# ----------------------------------------------------------------------------------------------------------------------
# `dynident demo`: identify an arm from logs that come with dynident, and find what its tool carries.

LOGS = ("arm.yaml", "fourier_1.csv.gz", "fourier_2.csv.gz", "wandering.csv.gz", "payload.csv.gz")


def demo_folder() -> Path:
    """The files of the demo: in the installed package, or in the examples of a checkout.

    Raises:
        InputError: Where an installation has lost them.
    """
    package = Path(str(resources.files("dynident")))
    for folder in (package / "cli" / "demo_logs", package.parents[1] / "examples" / "demo"):
        if all((folder / name).is_file() for name in LOGS):
            return folder
    raise InputError("the logs of the demo are not there; install dynident again, or take examples/demo of its source")


@dataclass(frozen=True, kw_only=True)
class DemoArguments(Quiet, Answer):
    """`dynident demo` on the command line."""

    output: str = output_argument("dynident-demo", "folder for fit.yaml and report.html", "OUT")


def run_demo(options: DemoArguments) -> int:
    """`dynident demo`."""
    from dynident.cli.identify import IdentifyArguments, identify_answer, identify_into_folder, print_identification
    from dynident.logs import read_log
    from dynident.payload.identification import identify_payload
    from dynident.report.payload import payload_text
    from dynident.report.text import print_prose

    arm, first, second, other, loaded = (str(demo_folder() / name) for name in LOGS)
    out = Path(options.output)
    identify = IdentifyArguments(
        robot=arm,
        logs=(first, second),
        output=options.output,
        validation=(other,),
        json=options.json,
        quiet=options.quiet,
    )
    fit = identify_into_folder(identify, command("demo", options), [("robot", arm)])
    payload = identify_payload(fit, [read_log(loaded, fit.robot, role="validation")])

    def show() -> None:
        print_identification(fit, out)
        print("\nThe same arm with 2 kg on its tool:")
        print_prose(payload_text(payload, fit.robot.name))
        print("\nNext, with your own robot and logs:")
        print("  dynident check ROBOT LOG..    diagnose logs and suggest fixes")
        print("  dynident init ROBOT FOLDER    a run file to edit, and to repeat")
        print(f"  dynident export {shlex.quote(str(out))} --urdf arm.urdf")

    return print_answer(options, lambda: {"identify": identify_answer(fit, out), "payload": payload.as_dict()}, show)
