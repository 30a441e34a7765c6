"""`ExportOptions`: which files an identified model becomes. Importable without NumPy, for `dynident export --help`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

from dynident.options import Options, option

if TYPE_CHECKING:
    from dynident.arrays import Array
    from dynident.export.c_functions import CNumber
    from dynident.physical.bounds import Bound


@dataclass(frozen=True, kw_only=True)
class ExportOptions(Options):
    """Which files are written, and what settles numbers that the data does not determine."""

    urdf: str | PathLike[str] | None = option(
        None, "the robot's URDF with identified inertials and friction", metavar="F.urdf", written="path"
    )
    mjcf: str | PathLike[str] | None = option(
        None, "MuJoCo model with armature, damping and frictionloss", metavar="F.xml", written="path"
    )
    yaml: str | PathLike[str] | None = option(
        None, "standard and base parameters as an overlay of the robot", metavar="F.yaml", written="path"
    )
    c: str | PathLike[str] | None = option(
        None, "C99: dynamics, and a library for gravity and friction compensation", metavar="DIR", written="path"
    )
    isaaclab: str | PathLike[str] | None = option(
        None, "actuator configuration for Isaac Lab, in Python", metavar="F.py", written="path"
    )
    mjlab: str | PathLike[str] | None = option(
        None, "actuator configuration for mjlab, in Python", metavar="F.py", written="path"
    )
    usd: str | PathLike[str] | None = option(
        None,
        "USD with drives, armature and friction of joints; with --source, a layer over it",
        metavar="F.usda",
        written="path",
    )
    drake: str | PathLike[str] | None = option(
        None, "the robot's URDF with rotor inertia and gear ratio for Drake", metavar="F.urdf", written="path"
    )
    actuators: str | None = option(
        None,
        "kind of actuators of Isaac Lab and mjlab",
        choices=("implicit", "delayed", "dc_motor"),
        shown="delayed where commands come late",
    )
    timestep: float | None = option(
        None,
        "physics step of Isaac Lab and mjlab, in which they count delays",
        unit="s",
        metavar="SECONDS",
        shown="0.005",
    )
    gains: tuple[Array, Array] | None = option(
        None, "(n_joints,) position and velocity gains of the simulated controller", cli=False, recorded=False
    )
    prior: str | None = option(
        None,
        "what settles numbers that the data leaves open: a value set, or plausible",
        metavar="SET",
        shown="the robot's own",
    )
    bounds: Sequence[Bound] = option((), "bounds on masses and centers of links", cli=False)
    source: str | PathLike[str] | None = option(
        None, "file to keep, where the fit does not know it", metavar="FILE", written="path"
    )
    from_scratch: bool = option(False, "write a new file, even where the file of the robot could be kept and edited")
    limits: bool = option(False, "write the robot's limits into the URDF as well")
    number: CNumber | None = option(None, "numbers of the C code", choices=("double", "float"), shown="double")
    selftest: str | PathLike[str] | None = option(
        None,
        "log whose motion and torque the self-test of the C code has",
        metavar="LOG",
        shown="random states",
        written="path",
    )
    name: str | None = option(None, "prefix of all names in C", metavar="PREFIX", shown="the robot's name")
