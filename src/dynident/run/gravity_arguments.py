"""Arguments of `dynident gravity`."""

from __future__ import annotations

from argparse import ArgumentParser

from dynident.run.experiment_arguments import plant_arguments


def gravity_arguments(verb: ArgumentParser) -> None:
    """Machine or logs, what to sweep and how, and what to compare with."""
    plant_arguments(verb)
    help_from = "logs of slow runs of one joint at a time, instead of a machine"
    verb.add_argument("--from", dest="logs", nargs="+", default=[], metavar="LOG", help=help_from)
    verb.add_argument("--columns", default=None, metavar="FILE", help="YAML file for logs with other column names")
    help_window = "only this part of every log, by its own stamps [s]"
    verb.add_argument("--window", default=None, metavar="START:STOP", help=help_window)
    help_joints = "only these joints, by name or variable (default: all that feel weight)"
    verb.add_argument("--joints", default=None, metavar="q2,q3", help=help_joints)
    help_pose = "where joints are held, again for a further pose (default: where every moment shows)"
    verb.add_argument("--pose", action="append", default=[], metavar="q2=-1.2,..", help=help_pose)
    help_poses = "sweeps of each joint at different poses, at least (default 1)"
    verb.add_argument("--poses", type=int, default=None, metavar="N", help=help_poses)
    help_span = "half the range of a joint that turns, in degrees (default 60; joints that slide go 0.2 m)"
    verb.add_argument("--span", type=float, default=None, metavar="DEGREES", help=help_span)
    help_speed = "of the sweeps [rad/s] (default 0.2; joints that slide have a quarter of it, in m/s)"
    verb.add_argument("--speed", type=float, default=None, metavar="SPEED", help=help_speed)
    help_order = "of the Fourier series, 1 to 3, or auto: by the residual (default 1, that of rigid links)"
    verb.add_argument("--order", default="1", metavar="N", help=help_order)
    help_fit = "folder that identify wrote, whose mass moments are put beside (Table 5 of the paper)"
    verb.add_argument("--fit", default=None, metavar="FIT", help=help_fit)
    verb.add_argument("--plan", action="store_true", help="tell what would be swept and move nothing")
