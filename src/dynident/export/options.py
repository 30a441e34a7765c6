"""`ExportOptions`: which files an identified model becomes. Importable without NumPy, for `dynident export --help`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

from dynident.options import Options, option

if TYPE_CHECKING:
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
