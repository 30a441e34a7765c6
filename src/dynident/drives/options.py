"""`DrivesOptions`: how drives are identified. Importable without NumPy, for `dynident drives --help`."""

from __future__ import annotations

from dataclasses import dataclass

from dynident.options import Options, Progress, option


@dataclass(frozen=True, kw_only=True)
class DrivesOptions(Options):
    """How armature, friction, bias and delay of joints are found from commands and positions."""

    links: str = option(
        "known",
        "links: known (as the robot file has them) or estimate (identified first, then held)",
        choices=("known", "estimate"),
    )
    delay: float | None = option(
        None, "time by which commands reach the joints late", unit="s", metavar="SECONDS", shown="chosen by replay"
    )
    refine: bool = option(
        False,
        "refine by simulation-error least squares, from the linear estimate and with its covariance as prior; kept "
        "only where it lowers the replay error on held-out data",
    )
    progress: Progress | None = option(
        None, "called with what is being done, and how much of it is done", cli=False, recorded=False
    )
