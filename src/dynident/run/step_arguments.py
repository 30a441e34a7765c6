"""Arguments of `dynident step`."""

from __future__ import annotations

from argparse import ArgumentParser

from dynident.run.experiment_arguments import plant_arguments


def step_arguments(verb: ArgumentParser) -> None:
    """Machine, motors, steps, poses, how they are fitted, payload and check."""
    plant_arguments(verb)
    help_from = "recorded steps instead of a machine: logs with t, q1.. and the voltage u of the driven motor"
    verb.add_argument("--from", dest="logs", nargs="+", default=[], metavar="LOG", help=help_from)
    verb.add_argument("--columns", default=None, metavar="FILE", help="YAML file for logs with other column names")
    help_window = "only this part of every log, by its own stamps [s]"
    verb.add_argument("--window", default=None, metavar="START:STOP", help=help_window)
    _motor_arguments(verb)
    verb.add_argument("--joints", default=None, metavar="q1,q2,..", help="joints to test (default: all that can be)")
    help_volts = (
        "steps for all joints, or by joint: q1=0.8:0.5,q2=0.8:0.4 (default: what the robot's own values suggest, of "
        "both signs where gravity acts)"
    )
    verb.add_argument("--volts", default=None, metavar="V,V", help=help_volts)
    verb.add_argument("--duration", type=float, default=None, metavar="SECONDS", help="of a step (default 1.2)")
    verb.add_argument("--settle", type=float, default=None, metavar="SECONDS", help="before it (default 0.02 or 0.3)")
    help_configurations = "joints and poses together (default: two more than there are combinations)"
    verb.add_argument("--configurations", type=int, default=None, metavar="N", help=help_configurations)
    help_pose = "where to lock the others, instead of chosen poses; may be repeated"
    verb.add_argument("--pose", action="append", default=[], metavar="q1=0,q2=0.5,..", help=help_pose)
    help_hold = "bandwidth of what holds the others (default: what the rate allows)"
    verb.add_argument("--hold", type=float, default=None, metavar="RAD/S", help=help_hold)
    help_still = "by how much a locked joint may move (default 0.005 rad or m)"
    verb.add_argument("--still", type=float, default=None, metavar="RAD", help=help_still)
    help_nominal = (
        "what the controller knows of the robot: inertia for the hold, weight to carry (default: its own values)"
    )
    verb.add_argument("--nominal", default=None, metavar="SET", help=help_nominal)
    help_weight = (
        "relative standard deviation of the masses, centers and inertias that it knows (default 0.2; 0: exact)"
    )
    verb.add_argument("--weight-std", type=float, default=None, metavar="SHARE", help=help_weight)
    help_unbounded = "let a simulated machine run beyond its position limits; speed limits stay"
    verb.add_argument("--unbounded", action="store_true", help=help_unbounded)
    help_taylor = "A and U by Taylor's series with N terms, as in the paper (default: the exact solution)"
    verb.add_argument("--taylor", type=int, default=None, metavar="N", help=help_taylor)
    help_solve = "combinations joint by joint from the tip (sequential, default), or all together"
    verb.add_argument("--solve", default="sequential", choices=("sequential", "together"), help=help_solve)
    help_more = "add poses that tell a payload, for an unloaded test whose loaded repeat follows"
    verb.add_argument("--for-payload", action="store_true", help=help_more)
    help_unloaded = (
        "folder of the same test without payload: its poses and voltages are repeated, the difference is the payload"
    )
    verb.add_argument("--unloaded", default=None, metavar="OUT", help=help_unloaded)
    help_track = "then follow a cubic of 30 degrees in 0.3 s by feedforward alone, joint by joint and all together"
    verb.add_argument("--track", action="store_true", help=help_track)
    help_computed = "with --track: a set of parameters computed before, to compare with"
    verb.add_argument("--computed", default=None, metavar="SET", help=help_computed)


def _motor_arguments(verb: ArgumentParser) -> None:
    one = "one number, or one per joint"
    verb.add_argument("--motors", default=None, metavar="FILE.yaml", help="the numbers below, by their long names")
    help_gain = f"torque per voltage K = Kt/Ra at the joint [N·m/V], {one} (default: the effort limit at 10 V)"
    verb.add_argument("--gain", default=None, metavar="X[,X..]", help=help_gain)
    verb.add_argument("--kt", default=None, metavar="X[,X..]", help=f"torque constant [N·m/A], {one}")
    verb.add_argument("--ra", default=None, metavar="X[,X..]", help=f"resistance [Ohm], {one}")
    verb.add_argument("--ke", default=None, metavar="X[,X..]", help=f"back-EMF constant [V·s/rad], {one}")
    verb.add_argument("--inductance", default=None, metavar="X[,X..]", help=f"[H], {one}")
    verb.add_argument("--voltage-limit", default=None, metavar="X[,X..]", help=f"[V], {one}")
    verb.add_argument("--shaft", action="store_true", help="these numbers are at the motor shaft, not at the joint")
