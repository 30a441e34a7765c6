"""`PayloadOptions`: how a payload is identified. Importable without NumPy, for `dynident payload --help`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynident.options import Options, option

if TYPE_CHECKING:
    from dynident.logs.log import LogSource


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
