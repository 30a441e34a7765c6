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
    gains: str = option(
        "known",
        "gains of the controllers: known (as given) or estimate (a factor for each joint whose links show it)",
        choices=("known", "estimate"),
    )
    delay: float | None = option(
        None,
        "time by which commands reach the joints late",
        unit="s",
        least=0.0,
        metavar="SECONDS",
        shown="chosen by replay",
    )
    horizon: float | None = option(
        None,
        "time after which the replay of logs with torque begins again at the measured motion",
        unit="s",
        minimum=0.0,
        metavar="SECONDS",
        shown="0.2",
    )
    refine: bool = option(
        False,
        "refine by simulation-error least squares, from the linear estimate and with its covariance as prior; kept "
        "only where it lowers the replay error on held-out data",
    )
    progress: Progress | None = option(
        None, "called with what is being done, and how much of it is done", cli=False, recorded=False
    )
