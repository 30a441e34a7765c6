"""The `dynident` command: 0 when all is well, 2 and one clear message when the input is not."""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import shutil
import sys
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from dynident._version import __version__
from dynident.cli.arguments import Parser, add_arguments, check_inputs_stay, complain, parsed_options, warn
from dynident.cli.completion import SHELLS, completion_script
from dynident.errors import DynidentError, FileWarning, InputError, suggestion

_ROBOTS = "Robots are files (.urdf, .xml, .yaml, .xacro) or bundled names; `dynident inspect --list` shows those."


class Verb(NamedTuple):
    """A verb of the command line.

    Attributes:
        text: What it does.
        module: Of `cli`: for `step`, it has the options record `StepArguments` and the function `run_step` (options ->
            exit code). Only the module of the chosen verb is imported.
        group: What it is about, in the help.
        example: A command, without the name of the program.
    """

    text: str
    module: str
    group: str
    example: str


_ROBOT, _LOGS, _MODEL, _REPEAT = "your robot", "your logs", "use the model", "repeat"
_EXPERIMENTS, _LIVE, _FLEET, _HELP = "experiments", "live", "many robots", "help"
VERBS = {
    "inspect": Verb(
        "what a robot is and which of its parameters can be identified",
        "inspect",
        _ROBOT,
        "inspect arm.urdf --terms rigid,Ia,Fv,Fc",
    ),
    "excite": Verb(
        "an optimal excitation trajectory within the limits of a robot",
        "excite",
        _ROBOT,
        "excite arm.urdf --duration 20 -o motion.yaml --csv motion.csv",
    ),
    "simulate": Verb(
        "a motion on the MuJoCo plant, logged as a controller would",
        "simulate",
        _ROBOT,
        "simulate arm.urdf motion.yaml -o log.csv --relative-noise 0.02",
    ),
    "check": Verb("diagnose logs and suggest fixes", "check", _LOGS, "check arm.urdf log_1.csv log_2.csv"),
    "identify": Verb(
        "parameters of a robot from logs of its motion",
        "identify",
        _LOGS,
        "identify arm.urdf log_1.csv log_2.csv --validation other.csv -o fit",
    ),
    "drives": Verb(
        "armature, friction, bias and delay of joints from position commands",
        "drives",
        _LOGS,
        "drives arm.xml log.csv --kp 60 --kd 2 -o drives",
    ),
    "validate": Verb(
        "prediction errors of an identified model on held-out logs", "fits", _LOGS, "validate fit other.csv"
    ),
    "export": Verb(
        "an identified model as URDF, MJCF, YAML, C, USD, or for Drake, Isaac Lab and mjlab",
        "export",
        _MODEL,
        "export fit --urdf identified.urdf --c code",
    ),
    "predict": Verb("torque of a log from position and time", "fits", _MODEL, "predict fit log.csv -o torque.csv"),
    "payload": Verb("mass, center and inertia of what the tool carries", "fits", _MODEL, "payload fit loaded.csv"),
    "gains": Verb(
        "drive gains from logs without and with a known payload",
        "gains",
        _LOGS,
        "gains arm.yaml loaded.csv --unloaded empty.csv --known 2.0",
    ),
    "replay": Verb(
        "a simulated robot under logged commands, beside measured positions",
        "drives",
        _MODEL,
        "replay drives log.csv",
    ),
    "sample": Verb(
        "models drawn from the posterior of a fit or of drives, for domain randomization",
        "sample",
        _MODEL,
        "sample drives -n 1000 -o randomized --validation log.csv",
    ),
    "report": Verb("regenerate the HTML report of a fit", "fits", _MODEL, "report fit -o report.html"),
    "compare": Verb(
        "two runs or more side by side: errors, parameters, data, options", "fits", _MODEL, "compare monday friday"
    ),
    "init": Verb("a run file, with comments, from a robot and its logs", "init", _REPEAT, "init arm.urdf logs"),
    "run": Verb("what a run file says: identify, validate, export, report", "run", _REPEAT, "run run.yaml"),
    "demo": Verb("everything once, on logs that come with dynident", "run", _REPEAT, "demo"),
    "papers": Verb(
        "tables and figures of five classic papers, beside the printed values",
        "papers",
        _REPEAT,
        "papers gautier --only table-3 -o gautier.html",
    ),
    "gravity": Verb(
        "mass moments from quasi-static gravity tests, on a machine or from logs",
        "experiment_verbs",
        _EXPERIMENTS,
        "gravity arm.urdf --plant my_robot.py:machine -o gravity",
    ),
    "friction": Verb(
        "friction of joints from constant-velocity tests",
        "experiment_verbs",
        _EXPERIMENTS,
        "friction arm.urdf --plant my_robot.py:machine -o friction",
    ),
    "step": Verb(
        "inertia and friction from voltage-step tests, one joint at a time",
        "step",
        _EXPERIMENTS,
        "step minnesota --locked q1=0,q2=0 --pose q3=0 --volts 0.4,0.2",
    ),
    "oscillate": Verb(
        "weights and inertias from free-oscillation tests",
        "experiment_verbs",
        _EXPERIMENTS,
        "oscillate pendulum-2 --encoder 65536 -o oscillation",
    ),
    "live": Verb(
        "parameters or payload while the robot works", "live", _LIVE, "live udp://127.0.0.1:9870 --robot arm.urdf"
    ),
    "fleet": Verb(
        "parameters, drift and outliers of many robots from all of their logs",
        "fleet",
        _FLEET,
        "fleet run fleet.yaml -o store",
    ),
    "doctor": Verb(
        "versions, packages, compile cache and a self-test, for bug reports", "doctor", _HELP, "doctor --json"
    ),
}


def options_of(verb: str) -> Any:
    """The options record of a verb."""
    return _of_verb(verb, f"{verb.capitalize()}Arguments")


def _of_verb(verb: str, name: str) -> Any:
    return getattr(importlib.import_module(f"dynident.cli.{VERBS[verb].module}"), name)


def verb_parser(verb: str) -> Parser:
    """The parser of a verb, from its options record."""
    text = VERBS[verb].text
    last = f"{textwrap.fill(_ROBOTS, _width())}\n\nExample:\n  dynident {VERBS[verb].example}"
    parser = Parser(prog=f"dynident {verb}", description=f"{text[0].upper()}{text[1:]}.", epilog=last)
    add_arguments(parser, options_of(verb))
    return parser


_KEPT_MEMORY = 32 * 2**20  # bytes; larger arrays come from the system and go back to it
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt in malloc.h


def _keep_freed_memory() -> None:
    """Arrays that are freed stay with the process where the C library can be asked to do so.

    A pass makes arrays of some hundred kilobytes block after block. Given back each time, all their pages would be
    mapped and cleared again for the next block, which took a tenth of the time of a fit.
    """
    import ctypes  # help needs none of this

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _KEPT_MEMORY)
        mallopt(_TRIM_THRESHOLD, _KEPT_MEMORY)


@contextlib.contextmanager
def _warn_in_lines() -> Iterator[None]:
    """Warnings about files are for people who have no use for the place in our code."""
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, FileWarning):
            warn(message)
        else:
            usual(message, category, *where, **more)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = usual


def _run(verb: str, words: Sequence[str]) -> int:
    _keep_freed_memory()
    with _warn_in_lines():
        options = parsed_options(verb_parser(verb), options_of(verb), words)
        check_inputs_stay(options)
        code: int = _of_verb(verb, f"run_{verb}")(options)
    sys.stdout.flush()
    return code


def _width() -> int:
    return shutil.get_terminal_size().columns - 2


def _top_parser() -> Parser:
    parser = Parser(prog="dynident", add_help=False)
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("--version", action="store_true")
    parser.add_argument("--print-completion", choices=SHELLS, metavar="SHELL")
    return parser


def help_text() -> str:
    """The help of the program: verbs by what they are about."""
    lines = [
        "usage: dynident VERB ..",
        "",
        "The true dynamics of your robot: parameters, friction and payloads from logs.",
    ]
    groups = dict.fromkeys(verb.group for verb in VERBS.values())
    longest = 4 + 2 + max(map(len, VERBS))
    for group in groups:
        lines += ["", f"{group}:"]
        for name, verb in VERBS.items():
            if verb.group == group:
                lead = f"    {name}".ljust(longest)
                lines.append(textwrap.fill(f"{lead}{verb.text}", _width(), subsequent_indent=" " * longest))
    options = {
        "-h, --help": "show this help; `dynident VERB --help` shows the options of a verb and an example",
        "--version": "print the version of dynident",
        "--print-completion SHELL": f"print what completes verbs and options in {', '.join(SHELLS)}",
    }
    lines += ["", "options:"]
    for flag, text in options.items():
        lines.append(textwrap.fill(f"    {flag}  {text}", _width(), subsequent_indent=" " * 8))
    lines += ["", textwrap.fill(_ROBOTS, _width()), "", "First: dynident demo"]
    return "\n".join(lines)


def _without_verb(words: Sequence[str]) -> int:
    """Help, version and completion; anything else is refused."""
    parser = _top_parser()
    first = words[0] if words else "--help"
    if not first.startswith("-"):
        raise InputError(f"unknown verb '{first}'{suggestion(first, VERBS)}")
    name = first.split("=")[0]
    if name not in parser._option_string_actions:
        known = {flag for verb in VERBS for flag in verb_parser(verb)._option_string_actions}
        if name in known:
            raise InputError(f"argument '{first}' belongs behind the verb: dynident VERB {first}")
    given = parser.parse_args(words or [first])
    if given.print_completion:
        records = {name: (verb.text, options_of(name)) for name, verb in VERBS.items()}
        print(completion_script(given.print_completion, records), end="")
    else:
        print(f"dynident {__version__}" if given.version else help_text())
    return 0


def _wants_json(words: Sequence[str]) -> bool:
    """Whether the words of a verb ask for JSON, as argparse reads them."""
    return any(word.startswith("--j") and "--json".startswith(word) for word in words[1:])


def _fail(error: object, words: Sequence[str], code: int = 2) -> int:
    """Print an error as the words ask for it: a line on stderr, or with --json an object on stdout."""
    if _wants_json(words):
        done = getattr(error, "answer", {})
        print(json.dumps({**done, "error": str(error), "type": type(error).__name__, "code": code}, allow_nan=False))
    else:
        complain(error)
    return code


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
        return _fail(error, words)
    except BrokenPipeError:  # the reader of our output left; nothing is wrong
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # a full disk, a closed terminal
        complain(f"cannot write the answer ({error.strerror or error})")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    except MemoryError:
        return _fail(
            MemoryError("out of memory; ask for less, or give large logs as Parquet, which is streamed"), words
        )
    except KeyboardInterrupt as stop:
        return _fail(KeyboardInterrupt(f"interrupted{f'; {stop}' if str(stop) else ''}"), words, 130)


if __name__ == "__main__":
    sys.exit(main())
