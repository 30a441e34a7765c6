"""`dynident run`: what a run file says, from logs to exported models."""

from __future__ import annotations

import dataclasses
import json
import shlex
import sys
import warnings
from argparse import Namespace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynident.errors import InputError

if TYPE_CHECKING:
    from dynident.cli.run_file import RunFile


def run_run(options: Namespace) -> int:
    """`dynident run`."""
    from dynident.cli.export import export_answer, export_into, print_exported
    from dynident.cli.identify import identified, identify_answer, print_identified
    from dynident.cli.run_file import read_run_file

    plan = read_run_file(options.file)
    common = {"json": options.json, "quiet": options.quiet}
    identify = _parsed(plan.identify_words, fresh=options.fresh, **common)
    export = _parsed(plan.export_words, **common) if plan.targets else None
    _check_export(plan, export)
    changed = changed_logs(plan)
    if changed and not options.json:
        for words in changed:
            print(f"dynident: {words}", file=sys.stderr)
    files = [("run file", plan.source), ("robot", plan.robot), *([("columns", plan.columns)] if plan.columns else [])]
    estimate = identified(identify, shlex.join(["dynident", "run", plan.source]), files, changed)
    written: list[Any] = []
    bodies: list[Any] = []
    if export is not None:
        export_into(export, written, bodies)
    out = Path(plan.output)
    if options.json:
        answer = {"run": plan.source, "changed": changed, "identify": identify_answer(estimate, out)}
        exported = export_answer(written, bodies) if export is not None else None
        print(json.dumps({**answer, "export": exported}, allow_nan=False))
    elif not options.quiet:
        print_identified(estimate, out)
        if export is not None:
            print()
            print_exported(written, bodies)
    return 0


def _parsed(words: list[str], **given: bool) -> Any:
    """Words as the command line understands them."""
    from dynident.cli.arguments import parsed_options
    from dynident.cli.command_line import options_of, verb_parser

    record = options_of(words[0])
    if dataclasses.is_dataclass(record):
        made: Any = parsed_options(verb_parser(words[0]), record, words[1:])
        return dataclasses.replace(made, **given)
    options: Any = verb_parser(words[0]).parse_args(words[1:])
    for name, value in given.items():
        setattr(options, name, value)
    return options


def _check_export(plan: RunFile, export: Namespace | None) -> None:
    """Refuse before the identification what the export would refuse after it."""
    from dynident.cli.export import check_options, parsed_bounds

    if export is None:
        if plan.export:
            raise InputError(f"{plan.source}: export names no file to write; add urdf, mjcf, yaml or c, or remove it")
        return
    check_options(export, [form for form in ("urdf", "mjcf", "yaml", "c") if getattr(export, form) is not None])
    parsed_bounds(export.mass, export.total_mass)
    for target in plan.targets:
        folder = Path(target).parent
        if not folder.is_dir() and folder.resolve() != Path(plan.output).resolve():
            raise InputError(f"{target}: the folder {folder} does not exist; create it, or export into the output")


def changed_logs(plan: RunFile) -> list[str]:
    """Logs that are not what they were when the run file was written, in words."""
    from dynident.logs import LogWarning
    from dynident.logs.read import stream_log
    from dynident.robot import load_robot

    told = []
    robot = load_robot(plan.robot)
    for path, digest in plan.hashes.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LogWarning)  # which identify tells
            found = stream_log(path, robot, columns=plan.columns).digest
        if found != digest:
            told.append(
                f"{path} has changed since the run file was written (SHA-256 {digest[:12]} then, {found[:12]} now); "
                "the result will differ"
            )
    return told


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


def run_demo(options: Namespace) -> int:
    """`dynident demo`."""
    from dynident.cli.fits import _print as print_payload
    from dynident.cli.identify import identified, identify_answer, print_identified
    from dynident.logs import read_log
    from dynident.payload.identification import identify_payload

    arm, first, second, other, loaded = (str(demo_folder() / name) for name in LOGS)
    out = Path(options.output)
    words = ["identify", arm, first, second, "-o", str(out), "--validation", other]
    identify = _parsed(words, json=options.json, quiet=options.quiet)
    command = shlex.join(["dynident", "demo", *([] if options.output == "dynident-demo" else ["-o", str(out)])])
    estimate = identified(identify, command, [("robot", arm)])
    payload = identify_payload(estimate, [read_log(loaded, estimate.robot, role="validation")])
    if options.json:
        answer: dict[str, Any] = {"identify": identify_answer(estimate, out), "payload": payload.as_dict()}
        print(json.dumps(answer, allow_nan=False))
    elif not options.quiet:
        print_identified(estimate, out)
        print("\nThe same arm with 2 kg on its tool:")
        print_payload(payload, estimate.robot.name)
        print("\nNext, with your own robot and logs:")
        print("  dynident check ROBOT LOG..    what is wrong with logs, if anything")
        print("  dynident init ROBOT FOLDER    a run file to edit, and to repeat")
        print(f"  dynident export {shlex.quote(str(out))} --urdf arm.urdf")
    return 0
