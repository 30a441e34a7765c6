"""Arguments of `dynident friction`."""

from __future__ import annotations

from argparse import ArgumentParser

from dynident.run.experiment_arguments import plant_arguments


def friction_arguments(verb: ArgumentParser) -> None:
    """What to run at which speeds, and where gravity comes from."""
    plant_arguments(verb)
    help_joints = "joints to test (default: all with friction); coupled ones are tested together"
    verb.add_argument("--joints", default=None, metavar="q5,q6", help=help_joints)
    help_speeds = "speeds of every joint, each run in both directions, or by joint (default: shares of the fastest)"
    verb.add_argument("--speeds", default=None, metavar="0.1,0.5,1|q5=1:2:3,..", help=help_speeds)
    help_range = "positions between which joints may move (default: their limits)"
    verb.add_argument("--range", default=None, metavar="q5=-1:1,..", help=help_range)
    help_at = "where other joints are held (default: where gravity does least, by the robot's own values)"
    verb.add_argument("--at", default="", metavar="q2=0.5,..", help=help_at)
    help_gravity = "cancel (default: by both directions), model (the robot's own values) or none"
    verb.add_argument("--gravity", default="cancel", choices=("cancel", "model", "none"), help=help_gravity)
    verb.add_argument("--fit", default=None, metavar="FIT", help="gravity and inertia from what identify wrote")
    help_from = "logs in which joints move alone, instead of runs on a machine"
    verb.add_argument("--from", dest="logs", nargs="+", default=[], metavar="LOG", help=help_from)
    help_friction = "laws beside viscous and Coulomb: stribeck(0.2), sign(0.2), quadratic, cubic"
    verb.add_argument("--friction", default=None, metavar="WHICH", help=help_friction)
    help_cruise = "longest time at a speed (default 1)"
    verb.add_argument("--cruise", type=float, default=None, metavar="SECONDS", help=help_cruise)
    verb.add_argument("--ramp", type=float, default=None, metavar="SECONDS", help="from rest to a speed (default 0.3)")
    help_settle = "at a speed before it is measured (default 0.2)"
    verb.add_argument("--settle", type=float, default=None, metavar="SECONDS", help=help_settle)
    help_bandwidth = "of the feedback that moves and holds the joints (default 30)"
    verb.add_argument("--bandwidth", type=float, default=None, metavar="RAD/S", help=help_bandwidth)
    verb.add_argument("--columns", default=None, metavar="FILE", help="YAML file for logs with other column names")
    verb.add_argument("--window", default=None, metavar="START:STOP", help="only this part of every log [s]")
