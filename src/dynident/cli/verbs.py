"""Verbs without an options record; heavy imports wait until a verb needs them."""

from __future__ import annotations

from argparse import Namespace

from dynident.cli.inputs import robot_of
from dynident.cli.old_arguments import (
    excite_arguments as excite_arguments,
    friction_arguments as friction_arguments,
    gravity_arguments as gravity_arguments,
    live_arguments as live_arguments,
    oscillate_arguments as oscillate_arguments,
    step_arguments as step_arguments,
)


def run_excite(options: Namespace) -> int:
    """`dynident excite`."""
    from dynident.cli.excite import run

    return run(options, robot_of(options))


def run_step(options: Namespace) -> int:
    """`dynident step`."""
    from dynident.cli.step import run

    return run(options, robot_of(options))


def run_gravity(options: Namespace) -> int:
    """`dynident gravity`."""
    from dynident.cli.experiment_verbs import run_gravity

    return run_gravity(options, robot_of(options))


def run_live(options: Namespace) -> int:
    """`dynident live`."""
    from dynident.cli.live import run_live

    return run_live(options)


def run_friction(options: Namespace) -> int:
    """`dynident friction`."""
    from dynident.cli.experiment_verbs import run_velocity

    return run_velocity(options)


def run_oscillate(options: Namespace) -> int:
    """`dynident oscillate`."""
    from dynident.cli.experiment_verbs import run_oscillate

    return run_oscillate(options, robot_of(options))
