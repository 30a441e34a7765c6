"""The `dynident` command: 0 when all is well, 2 and one clear message when the input is not."""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Any

from dynident._version import __version__
from dynident.cli.arguments import Parser, add_arguments, complain, parsed_options
from dynident.errors import DynidentError, InputError, suggestion

_EPILOG = "Robots are files (.urdf, .xml, .yaml) or bundled names; `dynident inspect --list` shows those."
# Verb -> what it does, and its module of cli: for `step`, options record `StepArguments` and function `run_step`
# (options -> exit code). Only the module of the chosen verb is imported.
VERBS = {
    "inspect": ("what a robot is and which of its parameters can be identified", "inspect"),
    "check": ("diagnose logs and suggest fixes", "check"),
    "identify": ("parameters of a robot from logs of its motion", "identify"),
    "validate": ("prediction errors of an identified model on held-out logs", "fits"),
    "predict": ("torque of a log from position and time", "fits"),
    "payload": ("mass, center and inertia of what the tool carries", "fits"),
    "gains": ("drive gains from logs without and with a known payload", "gains"),
    "export": ("an identified model as URDF, MJCF, YAML or C", "export"),
    "report": ("regenerate the HTML report of a fit", "fits"),
    "compare": ("two runs or more side by side: errors, parameters, data, options", "fits"),
    "init": ("a run file, with comments, from a robot and its logs", "init"),
    "run": ("what a run file says: identify, validate, export, report", "run"),
    "demo": ("everything once, on logs that come with dynident", "run"),
    "simulate": ("a motion on the MuJoCo plant, logged as a controller would", "simulate"),
    "excite": ("an optimal excitation trajectory within the limits of a robot", "excite"),
    "drives": ("armature, friction, bias and delay of joints from position commands", "drives"),
    "replay": ("a simulated robot under logged commands, beside measured positions", "drives"),
    "step": ("inertia and friction from voltage-step tests, one joint at a time", "step"),
    "gravity": ("mass moments from quasi-static gravity tests, on a machine or from logs", "experiment_verbs"),
    "live": ("parameters or payload while the robot works", "live"),
    "friction": ("friction of joints from constant-velocity tests", "experiment_verbs"),
    "oscillate": ("weights and inertias from free-oscillation tests", "experiment_verbs"),
    "papers": ("tables and figures of five classic papers, beside the printed values", "papers"),
}


def options_of(verb: str) -> Any:
    """The options record of a verb."""
    return _of_verb(verb, f"{verb.capitalize()}Arguments")


def _of_verb(verb: str, name: str) -> Any:
    return getattr(importlib.import_module(f"dynident.cli.{VERBS[verb][1]}"), name)


def verb_parser(verb: str) -> Parser:
    """The parser of a verb, from its options record."""
    text = VERBS[verb][0]
    parser = Parser(prog=f"dynident {verb}", description=f"{text[0].upper()}{text[1:]}.", epilog=_EPILOG)
    add_arguments(parser, options_of(verb))
    return parser


_KEPT_MEMORY = 32 * 2**20  # bytes; larger arrays come from the system and go back to it
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt in malloc.h


def _keep_freed_memory() -> None:
    """Arrays that are freed stay with the process where the C library can be told so.

    A pass makes arrays of some hundred kilobytes block after block. Given back each time, all their pages would be
    mapped and cleared again for the next block, which took a tenth of the time of a fit.
    """
    import ctypes  # help needs none of this

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _KEPT_MEMORY)
        mallopt(_TRIM_THRESHOLD, _KEPT_MEMORY)


def _run(verb: str, words: Sequence[str]) -> int:
    _keep_freed_memory()
    code: int = _of_verb(verb, f"run_{verb}")(parsed_options(verb_parser(verb), options_of(verb), words))
    sys.stdout.flush()
    return code


def _without_verb(words: Sequence[str]) -> int:
    """Help and version; anything else is refused."""
    parser = Parser(prog="dynident", description="The true dynamics of your robot.", epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"dynident {__version__}")
    group = parser.add_subparsers(metavar="VERB")
    for verb, (text, *_) in VERBS.items():
        group.add_parser(verb, help=text)
    if not words:
        parser.print_help()
        return 0
    first = words[0]
    if not first.startswith("-"):
        raise InputError(f"unknown verb '{first}'{suggestion(first, VERBS)}")
    name = first.split("=")[0]
    if name not in parser._option_string_actions:
        known = {flag for verb in VERBS for flag in verb_parser(verb)._option_string_actions}
        if name in known:
            raise InputError(f"argument '{first}' belongs behind the verb: dynident VERB {first}")
    parser.parse_args([first])
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    # Small matrices gain nothing by threads, and threads that wait take processor time. A setting of the user counts.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Garbage in cycles is rare here, and each search for it goes through all that was imported; the last one, when the
    # process ends, for memory that goes back to the system anyway.
    gc.set_threshold(200_000, 10, 10)
    atexit.register(gc.freeze)
    words = list(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name that the terminal cannot show must not stop the page
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return _run(words[0], words[1:]) if words and words[0] in VERBS else _without_verb(words)
    except DynidentError as error:
        complain(error)
        return 2
    except BrokenPipeError:  # the reader of our output left; nothing is wrong
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # a full disk, a closed terminal
        complain(f"cannot write the answer ({error.strerror or error})")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    except MemoryError:
        complain("out of memory; give large logs as Parquet, which is streamed")
        return 2
    except KeyboardInterrupt as stop:
        complain(f"interrupted{f'; {stop}' if str(stop) else ''}")
        return 130


if __name__ == "__main__":
    sys.exit(main())
