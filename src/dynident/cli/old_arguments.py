"""Arguments of verbs that have no options record yet."""

from __future__ import annotations

import argparse

_TERMS = "comma-separated: rigid, Ia, Fv, Fc (or Fc(0.02), smoothed below 0.02 rad/s, a tenth in m/s on slides), Fo"


# ----------------------------------------------------------------------------------------------------------------------
# Arguments of `dynident live`.


def live_arguments(verb: argparse.ArgumentParser) -> None:
    """Of `dynident live`."""
    terms = _TERMS
    help_source = (
        "udp://127.0.0.1:9870 or tcp://127.0.0.1:9870 (JSON, one sample each), - (JSON lines on standard input), a log "
        "or a ROS 2 bag (several follow each other), or plant:MOTION (the simulated robot)"
    )
    verb.add_argument("sources", nargs="+", metavar="SOURCE", help=help_source)
    verb.add_argument("--robot", default=None, metavar="ROBOT", help="robot file or bundled name")
    help_fit = "an identification of the robot instead: its links are known, and the payload is found"
    verb.add_argument("--fit", default=None, metavar="FIT", help=help_fit)
    help_find = "parameters or payload (default: payload with --fit, else parameters)"
    verb.add_argument("--find", default=None, choices=("parameters", "payload"), metavar="WHAT", help=help_find)
    verb.add_argument("--locked", default="", metavar="q4=0.5,..", help="joints held at a position [rad or m]")
    _estimator_arguments(verb, terms)
    verb.add_argument("--columns", default=None, metavar="FILE", help="YAML file for senders or logs with other names")
    help_window = "only this part of every log, by its own stamps [s]"
    verb.add_argument("--window", default=None, metavar="START:STOP", help=help_window)
    help_speed = "of a log or the plant: 1 as it was, 10 ten times as fast, or max (default)"
    verb.add_argument("--speed", default=None, metavar="X", help=help_speed)
    help_listen = "let other machines send too (default: this one only, unless SOURCE names another address)"
    verb.add_argument("--listen-all", action="store_true", help=help_listen)
    _plant_arguments(verb)
    help_checkpoint = "file that keeps the estimate; if it exists, go on from it"
    verb.add_argument("--checkpoint", default=None, metavar="F.npz", help=help_checkpoint)
    help_every = "real time between checkpoints (default 5)"
    verb.add_argument("--checkpoint-every", type=float, default=5.0, metavar="SECONDS", help=help_every)
    verb.add_argument("--fresh", action="store_true", help="do not go on from an earlier checkpoint")
    help_timeout = "without a sample after which to give up (default 30; 0: wait for ever)"
    verb.add_argument("--timeout", type=float, default=30.0, metavar="SECONDS", help=help_timeout)
    verb.add_argument(
        "--duration", type=float, default=None, metavar="SECONDS", help="end after so much time of stamps"
    )
    verb.add_argument("--count", type=int, default=None, metavar="N", help="end after so many samples")
    verb.add_argument("--quiet", action="store_true", help="only what is known at the end")


def _estimator_arguments(verb: argparse.ArgumentParser, terms: str) -> None:
    verb.add_argument("--terms", default=None, help=f"{terms} (default: those of the fit, or all)")
    help_band = "band in which motion and torque are compared (default: that of the fit, or 10)"
    verb.add_argument("--band", type=float, default=None, metavar="HZ", help=help_band)
    help_forgetting = "directional (default), exponential or none"
    verb.add_argument("--forgetting", default=None, metavar="HOW", help=help_forgetting)
    help_memory = "time of motion after which old samples count a third (default 60)"
    verb.add_argument("--memory", type=float, default=None, metavar="SECONDS", help=help_memory)


def _plant_arguments(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--values", default=None, metavar="SET", help="plant: what the machine really is")
    verb.add_argument("--rate", type=float, default=None, metavar="HZ", help="plant: samples per second (default 500)")
    verb.add_argument("--noise", type=float, default=None, metavar="SHARE", help="plant: torque noise (default 0.01)")
    help_payload = "plant: body on the tool [kg, m, kg·m²]"
    verb.add_argument("--payload", default=None, metavar="MASS[,CX,CY,CZ[,..]]", help=help_payload)
    help_at = "plant: when it is attached (default 0)"
    verb.add_argument("--payload-at", type=float, default=None, metavar="SECONDS", help=help_at)
    verb.add_argument("--seed", type=int, default=None, metavar="N", help="plant: of the noise (default 0)")


def excite_arguments(verb: argparse.ArgumentParser) -> None:
    """Of `dynident excite`."""
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
