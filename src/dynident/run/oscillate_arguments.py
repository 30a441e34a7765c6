"""Arguments of `dynident oscillate`."""

from __future__ import annotations

from argparse import ArgumentParser

from dynident.run.experiment_arguments import plant_arguments


def oscillate_arguments(verb: ArgumentParser) -> None:
    """Which stage, how it is searched, and the paper's own way."""
    plant_arguments(verb)
    help_stage = "gravity, inertia or both (default), the weight first"
    verb.add_argument("--stage", default="both", choices=("both", "gravity", "inertia"), help=help_stage)
    help_search = "of the weight: extrapolate (default), or as in the paper creep or walk"
    verb.add_argument("--search", default=None, choices=("extrapolate", "creep", "walk"), help=help_search)
    verb.add_argument("--nominal", default=None, metavar="SET", help="what is known before (default: the robot's own)")
    verb.add_argument(
        "--factor", type=float, default=None, metavar="F", help="over-estimate to begin with (default 1.5)"
    )
    help_amplitude = "of the starts (default: small, but many steps of the encoder)"
    verb.add_argument("--amplitude", type=float, default=None, metavar="DEG", help=help_amplitude)
    verb.add_argument("--reach", type=float, default=None, metavar="DEG", help="beyond which it falls (default 12)")
    verb.add_argument("--periods", type=float, default=None, metavar="N", help="of the slowest mode (default 4)")
    verb.add_argument("--rounds", type=int, default=None, metavar="N", help="of runs, at most (default 2)")
    verb.add_argument("--kp", type=float, default=None, metavar="1/S2", help="proportional gain (default 100)")
    help_pose = "where to look for the upright pose, or where the sensitivity is wanted"
    verb.add_argument("--pose", default="", metavar="q1=0,..", help=help_pose)
    help_points = "set-point of the inertia stage, other joints at 0; may be repeated"
    verb.add_argument("--set-point", action="append", default=[], metavar="q2=1.2,..", help=help_points)
    help_paper = "as in the paper: alternating starts of 15 deg, periods counted; Tables I to VI for pendulum-1 to -3"
    verb.add_argument("--paper", action="store_true", help=help_paper)
    help_updates = "with --paper: update cycles of a run (default 5000 for gravity, 20000 for inertia)"
    verb.add_argument("--updates", type=int, default=None, metavar="N", help=help_updates)
    help_factors = "with --paper: factors of the rows (default: the paper's)"
    verb.add_argument("--factors", default=None, metavar="F,F..", help=help_factors)
    help_combinations = "with --paper: factors that every parameter takes, in all combinations"
    verb.add_argument("--combinations", default=None, metavar="F,F..", help=help_combinations)
    help_resolution = "with --paper: periods that counting tells apart (default 0.5)"
    verb.add_argument("--resolution", type=float, default=None, metavar="N", help=help_resolution)
    help_sensitivity = "torque errors from errors of weight and inertia instead, eq. (28) and (30); nothing moves"
    verb.add_argument("--sensitivity", action="store_true", help=help_sensitivity)
    help_error = "with --sensitivity: position error (default 1)"
    verb.add_argument("--error", type=float, default=None, metavar="DEG", help=help_error)
