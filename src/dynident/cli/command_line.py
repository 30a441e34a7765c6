"""The `dynident` command: 0 when all is well, 2 and one clear message when the input is not."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from dynident._version import __version__
from dynident.cli.arguments import (
    compare_arguments,
    demo_arguments,
    friction_arguments,
    gravity_arguments,
    init_arguments,
    live_arguments,
    oscillate_arguments,
    report_arguments,
    run_arguments,
    step_arguments,
)
from dynident.errors import DynidentError, suggestion

_EPILOG = "Robots are files (.urdf, .xml, .yaml) or bundled names; `dynident inspect --list` shows those."
_VERBS = {
    "inspect": "what a robot is and which of its parameters can be identified",
    "check": "what is wrong with logs, and how to put it right",
    "identify": "parameters of a robot from logs of its motion",
    "validate": "how well an identified model predicts logs it has not seen",
    "predict": "torque of a log from position and time",
    "payload": "mass, centre and inertia of what the tool carries",
    "export": "an identified model as URDF, MJCF, YAML or C",
    "report": "the page of a stored fit, made anew",
    "compare": "two runs or more side by side: errors, parameters, data, options",
    "init": "a run file, with comments, from a robot and its logs",
    "run": "what a run file says: identify, validate, export, report",
    "demo": "everything once, on logs that come with dynident",
    "simulate": "a motion on the MuJoCo plant, logged as a controller would",
    "excite": "a motion that tells most about a robot's parameters within its limits",
    "step": "inertia and friction from steps of voltage, one joint at a time",
    "gravity": "mass moments from slow motion of one joint at a time, on a machine or from logs",
    "live": "parameters or payload while the robot works",
    "friction": "friction of joints from runs at constant velocities",
    "oscillate": "weights and inertias from natural oscillations",
}
_TERMS = "comma-separated: rigid, Ia, Fv, Fc (or Fc(0.02), smoothed below 0.02 rad/s, a tenth in m/s on slides), Fo"

_FRICTION = (
    "friction beside the terms: auto (the training data decides; default), basic (none), generic (what helps on most "
    "arms), full (all), or a list: stop(0.0003,0.003),load; names: stop, stribeck, sign, load, loadv, asymmetric, "
    "quadratic, cubic, harmonics, ripple, jerk, tilt, zero"
)


class _Parser(argparse.ArgumentParser):
    """argparse with one-line errors and the nearest valid word."""

    _given: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does; a verb itself refuses what it does not know, so that its own options are proposed."""
        self._given = list(sys.argv[1:] if args is None else args)
        found, rest = super().parse_known_args(args, namespace)
        if rest and self._verbs() is None:
            self.error(f"unrecognized arguments: {rest[0]}")
        return found, rest

    def error(self, message: str) -> NoReturn:
        if "invalid choice: " in message and "argument VERB" in message:
            word = message.split("invalid choice: ")[1].split(" (choose")[0][1:-1]
            message = f"unknown verb '{word}'{suggestion(word, _VERBS)}"
        elif ": invalid choice: '" in message:
            option, rest = message.removeprefix("argument ").split(": invalid choice: '", 1)
            word, _, choices = rest.partition("' (choose from ")
            valid = [choice.strip().strip("'") for choice in choices.rstrip(")").split(",")]
            message = f"{option}: unknown choice '{word}'{suggestion(word, valid)}"
        elif "unrecognized arguments: " in message:
            word = message.split("unrecognized arguments: ")[1].split(" ")[0]
            known = list(dict.fromkeys(option for action in self._every_action() for option in action.option_strings))
            message = f"unknown argument '{word}'{suggestion(_name(word), known)}"
            if _name(word) in known:
                message = f"argument '{word}' belongs behind the verb: dynident VERB {word}"
            elif self._verbs() is None:
                message += f"; see {self.prog} --help"
        elif message.startswith("argument --essential: invalid float value: "):
            word = message.split("invalid float value: ")[1]
            message = f"argument --essential: SHARE must be a number, got {word}; put --essential after the logs, or "
            message += "write --essential=0.15"
        elif message.startswith("the following arguments are required: "):
            need = message.removeprefix("the following arguments are required: ")
            message = f"missing {need}; see {self.prog} --help"
            options = list(self._option_string_actions)
            wrong = [x for x in self._given if x.startswith("--") and not any(o.startswith(_name(x)) for o in options)]
            if wrong:  # a misspelt option may be why something is missing
                message = f"unknown argument '{wrong[0]}'{suggestion(_name(wrong[0]), options)}; see {self.prog} --help"
        elif message.endswith(": expected one argument"):
            option = message.removeprefix("argument ").split(":")[0].split("/")[-1]
            message += f"; one that begins with a minus is written {option}=-1"
        complain(" ".join(message.split()))
        raise SystemExit(2)

    def _verbs(self) -> Mapping[str, argparse.ArgumentParser] | None:
        """The parsers of the verbs; None for that of a verb itself."""
        return next((one.choices for one in self._actions if isinstance(one, argparse._SubParsersAction)), None)

    def _every_action(self) -> list[argparse.Action]:
        return [*self._actions, *(action for verb in (self._verbs() or {}).values() for action in verb._actions)]


def _name(argument: str) -> str:
    """An option without its value."""
    return argument.split("=")[0]


def complain(message: object) -> None:
    """One line on stderr, whatever a file or an argument put into the message."""
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(message))
    print(f"dynident: {line}", file=sys.stderr)


def _parser() -> _Parser:
    parser = _Parser(prog="dynident", description="The true dynamics of your robot.", epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"dynident {__version__}")
    group = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=_Parser)
    verbs = {
        verb: group.add_parser(verb, help=text, description=f"{text[0].upper()}{text[1:]}.", epilog=_EPILOG)
        for verb, text in _VERBS.items()
    }
    _inspect_arguments(verbs["inspect"])
    _check_arguments(verbs["check"])
    _identify_arguments(verbs["identify"])
    _validate_arguments(verbs["validate"])
    _predict_arguments(verbs["predict"])
    _payload_arguments(verbs["payload"])
    _export_arguments(verbs["export"])
    report_arguments(verbs["report"])
    compare_arguments(verbs["compare"])
    init_arguments(verbs["init"])
    run_arguments(verbs["run"])
    demo_arguments(verbs["demo"])
    _simulate_arguments(verbs["simulate"])
    _excite_arguments(verbs["excite"])
    step_arguments(verbs["step"])
    gravity_arguments(verbs["gravity"])
    live_arguments(verbs["live"], _TERMS)
    friction_arguments(verbs["friction"])
    oscillate_arguments(verbs["oscillate"])
    for verb in verbs.values():
        verb.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    for name in ("predict", "export", "simulate"):  # those that write a file; the others answer on the terminal
        verbs[name].add_argument("--quiet", action="store_true", help="nothing on the terminal")
    return parser


def _inspect_arguments(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("robot", nargs="?", metavar="ROBOT", help="robot file or bundled name")
    verb.add_argument("--list", action="store_true", help="show the bundled robots")
    verb.add_argument("--terms", default="rigid", help=f"{_TERMS} (default: rigid)")
    verb.add_argument("--locked", default="", metavar="q4=0.5,..", help="joints held at a position [rad or m]")
    verb.add_argument("--values", metavar="SET", help="value set to show and check (default: the robot's own)")
    help_nearest = "print the robot that could exist nearest to the values instead, and how far it is"
    verb.add_argument("--nearest", action="store_true", help=help_nearest)
    help_symbolic = "print the closed-form equations in base parameters instead: text, latex or python"
    forms = ("text", "latex", "python")
    verb.add_argument("--symbolic", nargs="?", const="text", choices=forms, metavar="FORM", help=help_symbolic)
    help_tolerance = "share of a column that must be new to count (default 1e-8)"
    verb.add_argument("--tolerance", type=float, default=None, help=help_tolerance)


def _check_arguments(verb: argparse.ArgumentParser) -> None:
    help_words = "robot file or bundled name, and its logs; without a robot, only what is in the logs is shown"
    verb.add_argument("words", nargs="+", metavar="[ROBOT] LOG", help=help_words)
    help_output = "overlay of the robot that puts right what was found"
    verb.add_argument("-o", "--output", default=None, metavar="F.yaml", help=help_output)
    _log_arguments(verb)
    verb.add_argument("--locked", default="", metavar="q4=0.5,..", help="joints held at a position [rad or m]")
    _signal_arguments(verb)
    verb.add_argument("--all", action="store_true", help="show what is fine as well")
    verb.add_argument("--quiet", action="store_true", help="no progress")


def _identify_arguments(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("robot", metavar="ROBOT", help="robot file or bundled name")
    verb.add_argument("logs", nargs="+", metavar="LOG", help="logs to learn from: CSV, Parquet, npz, .mat, bags, ..")
    verb.add_argument("-o", "--output", required=True, metavar="OUT", help="folder for fit.yaml and report.html")
    help_validation = "logs to judge the result with; they shape nothing"
    verb.add_argument("--validation", nargs="+", default=[], metavar="LOG", help=help_validation)
    _log_arguments(verb)
    verb.add_argument("--terms", default=None, help=f"{_TERMS} (default: all, with Fc(0.02))")
    verb.add_argument("--friction", default=None, metavar="WHICH", help=_FRICTION)
    verb.add_argument("--locked", default="", metavar="q4=0.5,..", help="joints held at a position [rad or m]")
    help_estimator = "ordinary, weighted (default), robust, total, ridge or prior"
    verb.add_argument("--estimator", default="weighted", help=help_estimator)
    help_prior = "with --estimator prior: relative deviation of the robot's own values (default 0.5)"
    verb.add_argument("--prior-std", type=float, default=None, metavar="SHARE", help=help_prior)
    help_essential = "keep only parameters with a relative deviation below SHARE (default 0.15); the others are zero"
    verb.add_argument("--essential", type=float, nargs="?", const=0.15, metavar="SHARE", help=help_essential)
    _signal_arguments(verb)
    help_speed = "position or measured (default: what suits the data better)"
    verb.add_argument("--speed", default=None, metavar="SOURCE", help=help_speed)
    help_differentiator = "low-pass (default), five-point, five-point causal, central or savitzky-golay"
    verb.add_argument("--differentiator", default=None, metavar="NAME", help=help_differentiator)
    help_check = "what to do if the check of the logs finds them wrong: stop (default), tell, or off to leave it out"
    verb.add_argument("--check", default="stop", choices=("stop", "tell", "off"), help=help_check)
    verb.add_argument("--fresh", action="store_true", help="do not continue an earlier run in OUT")
    verb.add_argument("--quiet", action="store_true", help="no progress and nothing on the terminal")


def _validate_arguments(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("fit", metavar="FIT", help="fit.yaml, or the folder that identify wrote")
    verb.add_argument("logs", nargs="+", metavar="LOG", help="logs that were not used for the fit")
    _log_arguments(verb)
    help_band = "band in which torque is compared (default: that of the fit)"
    verb.add_argument("--band", type=float, default=None, metavar="HZ", help=help_band)


def _predict_arguments(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("fit", metavar="FIT", help="fit.yaml, or the folder that identify wrote")
    verb.add_argument("log", metavar="LOG", help="log with time and position; torque is not looked at")
    help_output = "file for t,tau1.. at the log's own stamps"
    verb.add_argument("-o", "--output", required=True, metavar="F.csv", help=help_output)
    _log_arguments(verb)


def _payload_arguments(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("fit", metavar="FIT", help="fit.yaml, or the folder that identify wrote")
    verb.add_argument("logs", nargs="+", metavar="LOG", help="logs with the payload")
    help_unloaded = "logs of the same session without it: what both have in common cancels"
    verb.add_argument("--unloaded", nargs="+", default=[], metavar="LOG", help=help_unloaded)
    help_session = "friction that is freed for the session: auto (default), or a name from the reference page"
    verb.add_argument("--session", default="auto", metavar="WHICH", help=help_session)
    _log_arguments(verb)
    help_band = "band in which torque is compared (default: that of the fit)"
    verb.add_argument("--band", type=float, default=None, metavar="HZ", help=help_band)


def _export_arguments(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("fit", metavar="FIT", help="fit.yaml, or the folder that identify wrote")
    verb.add_argument("--urdf", metavar="F.urdf", help="the robot's URDF with identified inertials and friction")
    verb.add_argument("--mjcf", metavar="F.xml", help="MuJoCo model with armature, damping and frictionloss")
    verb.add_argument("--yaml", metavar="F.yaml", help="standard and base parameters as an overlay of the robot")
    verb.add_argument("--c", metavar="DIR", help="C99: inverse dynamics, gravity, mass matrix, regressor, friction")
    help_prior = "what settles numbers that the data leaves open: a value set, or plausible (default: the robot's own)"
    verb.add_argument("--prior", default=None, metavar="SET", help=help_prior)
    help_mass = "bound on the mass of a link [kg]; may be repeated"
    verb.add_argument("--mass", action="append", default=[], metavar="LINK=LEAST:MOST", help=help_mass)
    verb.add_argument("--total-mass", default=None, metavar="LEAST:MOST", help="bound on all links together [kg]")
    verb.add_argument("--source", default=None, metavar="FILE", help="file to keep, where the fit does not know it")
    verb.add_argument("--fresh", action="store_true", help="a new file even where there is one to keep")
    verb.add_argument("--limits", action="store_true", help="write the robot's limits into the URDF as well")
    verb.add_argument("--number", default=None, choices=("double", "float"), help="of the C code (default double)")
    verb.add_argument("--name", default=None, metavar="PREFIX", help="of all names in C (default: the robot's)")


def _simulate_arguments(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("robot", metavar="ROBOT", help="robot file or bundled name")
    verb.add_argument("motion", metavar="MOTION", help="motion file, or a table with t, q1.. (dq1.., ddq1..)")
    help_output = "log to write: .csv, .csv.gz, .parquet or .npz"
    verb.add_argument("-o", "--output", required=True, metavar="LOG", help=help_output)
    verb.add_argument("--values", metavar="SET", help="what the machine really is (default: the robot's own values)")
    verb.add_argument("--locked", default="", metavar="q4=0.5,..", help="joints held at a position [rad or m]")
    verb.add_argument("--controller", metavar="NAME", help="feedforward (default), computed-torque or pd")
    verb.add_argument("--bandwidth", type=float, metavar="RAD/S", help="of the feedback (default 30)")
    verb.add_argument("--rate", type=float, metavar="HZ", help="of the log (default 500)")
    verb.add_argument("--kinds", metavar="q,tau", help="q, dq, tau, qm, dqm, taum, i (default q and i or tau)")
    verb.add_argument("--noise", type=float, metavar="SHARE", help="torque noise over RMS torque (default 0.01)")
    verb.add_argument("--bias", type=float, metavar="SHARE", help="torque bias over RMS torque (default 0)")
    verb.add_argument("--encoder", type=float, metavar="COUNTS", help="per turn or metre (default 131072; 0: exact)")
    verb.add_argument("--delay", type=float, metavar="SECONDS", help="by which torque is stamped late (default 0)")
    verb.add_argument("--jitter", type=float, metavar="SECONDS", help="of the sampling (default 0)")
    verb.add_argument("--breakaway", type=float, metavar="RATIO", help="static over kinetic friction (default 1)")
    help_effects = "friction of real gears, tilt and joint offsets by parameter name, or a YAML file of them"
    verb.add_argument("--effects", metavar="stop0.3_1=4,..", help=help_effects)
    verb.add_argument("--payload", metavar="MASS[,CX,CY,CZ[,..]]", help="body on the tool [kg, m, kg·m²]")
    verb.add_argument("--payload-at", type=float, metavar="SECONDS", help="when it is attached (default 0)")
    verb.add_argument("--seed", type=int, metavar="N", help="of the noise (default 0)")


def _excite_arguments(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("robot", metavar="ROBOT", help="robot file or bundled name; its limits are respected")
    verb.add_argument("-o", "--output", required=True, metavar="F.yaml", help="file for the motion")
    verb.add_argument("--duration", type=float, default=None, metavar="SECONDS", help="of the motion (default 10)")
    help_frequency = "base frequency of the series (default: one period in the duration)"
    verb.add_argument("--frequency", type=float, default=None, metavar="HZ", help=help_frequency)
    verb.add_argument("--harmonics", type=int, default=None, metavar="N", help="of the series (default 5)")
    help_criterion = "determinant (default), condition, smallest or interval"
    verb.add_argument("--criterion", default=None, metavar="NAME", help=help_criterion)
    verb.add_argument("--model", default=None, metavar="NAME", help="dynamic (default) or energy")
    verb.add_argument("--terms", default=None, help=f"{_TERMS} (default: all)")
    verb.add_argument("--locked", default="", metavar="q4=0.5,..", help="joints held at a position [rad or m]")
    verb.add_argument("--start", default="", metavar="q1=0,..", help="pose at which it starts and ends (default: free)")
    help_noise = (
        "deviation of the torque, one number, one per joint or q1=X,.. (default: 1 %% of effort limits, else 1)"
    )
    verb.add_argument("--noise", default=None, metavar="X[,X..]", help=help_noise)
    help_rest = "speed at which a joint's row counts half (default: 2 %% of the velocity limits; 0: all alike)"
    verb.add_argument("--rest-speed", type=float, default=None, metavar="SPEED", help=help_rest)
    help_acceleration = "limit, one number, one per joint in their order or q1=X,.. (default: none)"
    verb.add_argument("--acceleration", default=None, metavar="X[,X..]", help=help_acceleration)
    by_joint = "of all joints (smaller ones of the robot stay), or by joint (in place of the robot's)"
    help_velocity = f"velocity limit {by_joint} [rad/s or m/s]"
    verb.add_argument("--max-velocity", default=None, metavar="X|q1=X,..", help=help_velocity)
    help_effort = f"torque limit {by_joint} [N·m or N]"
    verb.add_argument("--max-effort", default=None, metavar="X|q1=X,..", help=help_effort)
    help_range = f"position limits {by_joint}: LOWER:UPPER, or X for -X:X [rad or m]"
    verb.add_argument("--position-range", default=None, metavar="X|q1=A:B,..", help=help_range)
    help_safety = "share of every joint limit that is used (default 0.95)"
    verb.add_argument("--safety", type=float, default=None, metavar="SHARE", help=help_safety)
    verb.add_argument("--floor", type=float, default=None, metavar="Z", help="height that all links stay above [m]")
    help_box = "box to stay out of: its lower and its upper corner in the base frame [m]; may be repeated"
    verb.add_argument("--box", action="append", default=[], metavar="x,y,z,x,y,z", help=help_box)
    help_clearance = "least distance between links that are not neighbours [m]"
    verb.add_argument("--clearance", type=float, default=None, metavar="M", help=help_clearance)
    verb.add_argument("--radius", type=float, default=None, metavar="M", help="of the links (default 0.05 m)")
    help_extend = "data that is there already: the folder that identify wrote, or information (.npz)"
    verb.add_argument("--extend", default=None, metavar="FIT", help=help_extend)
    verb.add_argument("--starts", type=int, default=None, metavar="N", help="random starts (default 16)")
    help_kicks = "pushes of each of the three best motions, each followed by a search (default 2)"
    verb.add_argument("--kicks", type=int, default=None, metavar="N", help=help_kicks)
    verb.add_argument("--seed", type=int, default=None, metavar="N", help="of the random starts (default 0)")
    help_rate = "samples per second of the CSV and ROS files, and of the identification (default 100)"
    verb.add_argument("--rate", type=float, default=None, metavar="HZ", help=help_rate)
    verb.add_argument("--csv", default=None, metavar="F.csv", help="samples as t,q1..,dq1..,ddq1..")
    verb.add_argument("--ros", default=None, metavar="F.json", help="samples as a ROS 2 JointTrajectory message")
    verb.add_argument("--report", default=None, metavar="F.html", help="page with limits, curves, space and deviations")
    verb.add_argument("--quiet", action="store_true", help="no progress and no page")


def _signal_arguments(verb: argparse.ArgumentParser) -> None:
    help_band = "band of the fit (default: from the motion)"
    verb.add_argument("--band", type=float, default=None, metavar="HZ", help=help_band)
    help_delay = "time by which torque is stamped late (default: from the data)"
    verb.add_argument("--delay", type=float, default=None, metavar="SECONDS", help=help_delay)
    help_rest = "joints slower than this are at rest (default 0.01 rad/s or m/s)"
    verb.add_argument("--rest-speed", type=float, default=None, metavar="SPEED", help=help_rest)


def _log_arguments(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--columns", default=None, metavar="FILE", help="YAML file for logs with other column names")
    verb.add_argument(
        "--window", default=None, metavar="START:STOP", help="only this part of every log, by its own stamps [s]"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    # Small matrices gain nothing by threads, and threads that wait take processor time. A setting of the user counts.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    parser = _parser()
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name that the terminal cannot show must not stop the page
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        options = parser.parse_args(arguments)
        if options.verb is None:
            parser.print_help()
            return 0
        from dynident.cli import verbs  # here, so that --help does not wait for it

        code: int = getattr(verbs, f"run_{options.verb}")(options)
        sys.stdout.flush()
        return code
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
