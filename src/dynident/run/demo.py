"""`dynident demo`: identify an arm from logs that come with dynident, and find what its tool carries."""

from __future__ import annotations

import json
import shlex
from argparse import Namespace
from importlib import resources
from pathlib import Path
from typing import Any

from dynident.errors import InputError

LOGS = ("arm.yaml", "fourier_1.csv.gz", "fourier_2.csv.gz", "wandering.csv.gz", "payload.csv.gz")


def demo_folder() -> Path:
    """The files of the demo: in the installed package, or in the examples of a checkout.

    Raises:
        InputError: Where an installation has lost them.
    """
    package = Path(str(resources.files("dynident")))
    for folder in (package / "run" / "demo_logs", package.parents[1] / "examples" / "demo"):
        if all((folder / name).is_file() for name in LOGS):
            return folder
    raise InputError("the logs of the demo are not there; install dynident again, or take examples/demo of its source")


def run_demo(options: Namespace) -> int:
    """`dynident demo`."""
    from dynident.estimate.payload import identify_payload
    from dynident.logs import read_log
    from dynident.run.identify_verb import identified, identify_answer, print_identified
    from dynident.run.payload import _print as print_payload
    from dynident.run.run import _parsed

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
