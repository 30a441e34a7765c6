"""The `dynident` command: 0 when all is well, 2 and one clear message when the input is not."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from dynident._version import __version__
from dynident.errors import DynidentError, InputError, suggestion

_EPILOG = "Robots are files (.urdf, .yaml) or bundled names; `dynident inspect --list` shows those."


class _Parser(argparse.ArgumentParser):
    """argparse with one-line errors and the nearest valid word."""

    def error(self, message: str) -> NoReturn:
        if "invalid choice: " in message:
            word = message.split("invalid choice: ")[1].split(" (choose")[0][1:-1]
            message = f"unknown verb '{word}'{suggestion(word, _VERBS)}"
        elif "unrecognized arguments: " in message:
            word = message.split("unrecognized arguments: ")[1].split(" ")[0]
            known = list(dict.fromkeys(option for action in self._every_action() for option in action.option_strings))
            message = f"unknown argument '{word}'{suggestion(word.split('=')[0], known)}"
            if word.split("=")[0] in known:
                message = f"argument '{word}' belongs behind the verb: dynident {_VERBS[0]} {word}"
        _complain(message)
        raise SystemExit(2)

    def _every_action(self) -> list[argparse.Action]:
        actions = list(self._actions)
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                for parser in action.choices.values():
                    actions.extend(parser._actions)
        return actions


_VERBS = ("inspect",)


def _complain(message: object) -> None:
    """One line on stderr, whatever a file or an argument put into the message."""
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(message))
    print(f"dynident: {line}", file=sys.stderr)


def _parser() -> _Parser:
    parser = _Parser(prog="dynident", description="The true dynamics of your robot.", epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"dynident {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=_Parser)
    inspect = verbs.add_parser(
        "inspect",
        help="what a robot is and which of its parameters can be identified",
        description="What a robot is and which of its parameters can be identified.",
        epilog=_EPILOG,
    )
    inspect.add_argument("robot", nargs="?", metavar="ROBOT", help="robot file or bundled name")
    inspect.add_argument("--list", action="store_true", help="show the bundled robots")
    inspect.add_argument("--terms", default="rigid", help="comma-separated: rigid, Ia, Fv, Fc, Fo (default: rigid)")
    inspect.add_argument("--locked", default="", metavar="q4=0.5,..", help="joints held at a position [rad or m]")
    inspect.add_argument("--values", metavar="SET", help="value set to show and check (default: the robot's own)")
    inspect.add_argument(
        "--tolerance",
        type=float,
        default=None,
        help="share of a column that must be new to count (default 1e-8)",
    )
    inspect.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = _parser()
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name that the terminal cannot show must not stop the page
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        options = parser.parse_args(arguments)
        if options.verb is None:
            parser.print_help()
            return 0
        code = _inspect(options)
        sys.stdout.flush()
        return code
    except DynidentError as error:
        _complain(error)
        return 2
    except BrokenPipeError:  # the reader of our output left; nothing is wrong
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # a full disk, a closed terminal
        _complain(f"cannot write the answer ({error.strerror})")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    except KeyboardInterrupt:
        print("dynident: interrupted", file=sys.stderr)
        return 130


def _inspect(options: argparse.Namespace) -> int:
    # Imported here so that --help does not wait for them.
    from dynident.identifiability.base import TOLERANCE, base_parameters
    from dynident.report.inspection import bundled_table, inspection, page_console
    from dynident.robot import bundled_names, load_robot

    console = page_console()
    if options.list:
        if options.json:
            print(json.dumps({"robots": list(bundled_names())}))
        else:
            console.print(bundled_table(load_robot(name) for name in bundled_names()))
        return 0
    if options.robot is None:
        raise InputError("inspect needs a ROBOT: a file or a bundled name (dynident inspect --list)")
    tolerance = TOLERANCE if options.tolerance is None else options.tolerance
    if not 0.0 < tolerance < 1.0:
        raise InputError(f"--tolerance is {tolerance}; expected a share between 0 and 1")
    robot = load_robot(options.robot)
    locked = _positions(options.locked)
    if locked:
        robot = robot.lock(**locked)
    found = inspection(base_parameters(robot, options.terms, tolerance=tolerance), options.values)
    if options.json:
        print(json.dumps(found.as_dict(), allow_nan=False))
    else:
        found.print(console)
    return 0


def _positions(text: str) -> dict[str, float]:
    """Joint positions from `q4=0.5,q1=pi/2`."""
    from dynident.robot.expressions import ExpressionError, evaluate

    positions: dict[str, float] = {}
    for part in filter(None, (item.strip() for item in text.split(","))):
        name, equals, value = part.partition("=")
        if not equals:
            raise InputError(f"--locked {part}: expected joint=position, such as q4=0.5")
        if name.strip() in positions:
            raise InputError(f"--locked {part}: {name.strip()} is locked twice")
        try:
            positions[name.strip()] = evaluate(value.strip(), {})
        except ExpressionError as error:
            raise InputError(f"--locked {part}: {error}") from None
    return positions


if __name__ == "__main__":
    sys.exit(main())
