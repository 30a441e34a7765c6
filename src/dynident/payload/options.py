"""`PayloadOptions`, `GainOptions`: how a payload, or drive gains by a known one, are identified.

Importable without NumPy, for `dynident payload --help`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynident.options import REQUIRED, TERMS_HELP, Options, option

if TYPE_CHECKING:
    from dynident.dynamics.terms import TermsLike
    from dynident.logs.log import LogSource
    from dynident.payload.body import Payload


_KNOWN = "MASS[,CX,CY,CZ[,IXX,IXY,IXZ,IYY,IYZ,IZZ]]"


@dataclass(frozen=True, kw_only=True)
class GainOptions(Options):
    """How drive gains are found from runs without and with a known payload."""

    known: str | float | Payload | Sequence[float] = option(
        REQUIRED,
        "what is known of the payload in the tool frame: its mass, its center too, or all of it, with the inertia "
        "about the center of mass; the rest is found along",
        unit="kg, m, kg·m²",
        metavar=_KNOWN,
    )
    unloaded: LogSource | Sequence[LogSource] = option(
        REQUIRED, "logs without the payload, best of the same session and motion", many=True, metavar="LOG"
    )
    known_std: float = option(
        0.0, "relative standard deviation of the known values, all off by the same share", least=0.0, metavar="SHARE"
    )
    tool: str | None = option(
        None,
        "tool frame of the known values: a frame of the robot's file, or a place in the frame of the last link",
        metavar="FRAME|X,Y,Z[,R,P,Y]",
        shown="tool0, flange, tcp or ee_link of a URDF, tool: of an overlay, or the last link",
    )
    terms: TermsLike = option(
        None, f"terms of the model, functions of the state alone; {TERMS_HELP}", shown="rigid,Ia,Fv,Fc,Fo"
    )
    band: float | None = option(
        None, "bandwidth of the rows", unit="Hz", minimum=0.0, metavar="HZ", shown="from the motion of each log"
    )


@dataclass(frozen=True, kw_only=True)
class PayloadOptions(Options):
    """How a body at the tool is identified."""

    unloaded: LogSource | Sequence[LogSource] = option(
        (),
        "logs of the same session without the payload, best of the same motion: what both have in common cancels. With "
        "them the robot is estimated along and only the fit's terms count, so training logs may serve; without them "
        "the robot is taken as identified",
        many=True,
        metavar="LOG",
    )
    session: str = option(
        "auto",
        "friction that the loaded runs have of their own: none, load, friction, or auto (cross-validation decides)",
        choices=("auto", "none", "load", "friction"),
        metavar="WHICH",
    )
    tool: str | None = option(
        None,
        "tool frame that the numbers are in: a frame of the robot's file, or a place in the frame of the last link",
        metavar="FRAME|X,Y,Z[,R,P,Y]",
        shown="tool0, flange, tcp or ee_link of a URDF, tool: of an overlay, or the last link",
    )
    band: float | None = option(
        None, "bandwidth of the rows", unit="Hz", minimum=0.0, metavar="HZ", shown="that of the fit"
    )
