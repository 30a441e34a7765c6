"""Arguments that all special experiments share, and those of each."""

from __future__ import annotations

from argparse import ArgumentParser


def plant_arguments(verb: ArgumentParser) -> None:
    """Which machine, how it is disturbed, and where the runs go."""
    verb.add_argument("robot", metavar="ROBOT", help="robot file or bundled name")
    help_output = "folder for the runs (OUT/runs), answer.json and report.html (default: nothing is written)"
    verb.add_argument("-o", "--output", default=None, metavar="OUT", help=help_output)
    help_plant = "a machine of your own: a Python file and the name of its Plant, or of a function robot -> Plant"
    verb.add_argument("--plant", default=None, metavar="FILE.py:NAME", help=help_plant)
    help_values = "what the simulated machine really is (default: the robot's plant values, else its own)"
    verb.add_argument("--values", default=None, metavar="SET", help=help_values)
    verb.add_argument("--locked", default="", metavar="q4=0.5,..", help="joints held at a position [rad or m]")
    verb.add_argument("--rate", type=float, default=None, metavar="HZ", help="of commands and readings")
    verb.add_argument("--noise", type=float, default=None, metavar="TORQUE", help="deviation of the torque noise")
    verb.add_argument("--encoder", type=float, default=None, metavar="COUNTS", help="per turn or metre (0: exact)")
    verb.add_argument("--breakaway", type=float, default=None, metavar="RATIO", help="static over kinetic friction")
    help_effects = "friction of real gears, tilt and joint offsets by parameter name, or a YAML file of them"
    verb.add_argument("--effects", default=None, metavar="stop0.3_1=4,..", help=help_effects)
    verb.add_argument("--payload", default=None, metavar="MASS[,CX,CY,CZ[,..]]", help="body on the tool")
    verb.add_argument("--seed", type=int, default=None, metavar="N", help="of the noise (default 0)")
    verb.add_argument("--fresh", action="store_true", help="remove the runs that OUT has from an earlier experiment")
    verb.add_argument("--quiet", action="store_true", help="no progress and nothing on the terminal")
