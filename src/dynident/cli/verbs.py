"""Verbs without an options record; heavy imports wait until a verb needs them."""

from __future__ import annotations

from argparse import Namespace

from dynident.cli.inputs import robot_of
from dynident.cli.old_arguments import (
    excite_arguments as excite_arguments,
    live_arguments as live_arguments,
)


def run_excite(options: Namespace) -> int:
    """`dynident excite`."""
    from dynident.cli.excite import run

    return run(options, robot_of(options))


def run_live(options: Namespace) -> int:
    """`dynident live`."""
    from dynident.cli.live import run_live

    return run_live(options)
