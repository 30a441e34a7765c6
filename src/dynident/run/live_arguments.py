"""Arguments of `dynident live`."""

from __future__ import annotations

import argparse


def live_arguments(verb: argparse.ArgumentParser, terms: str) -> None:
    """Add them to the verb; `terms` says how terms are written."""
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
