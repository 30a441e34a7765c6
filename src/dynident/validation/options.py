"""`ValidateOptions`: how predictions are compared. Importable without NumPy, for `dynident validate --help`."""

from __future__ import annotations

from dataclasses import dataclass

from dynident.options import Options, Progress, option


@dataclass(frozen=True, kw_only=True)
class ValidateOptions(Options):
    """How a prediction is compared with a measurement."""

    band: float | None = option(
        None,
        "bandwidth in which torque is compared",
        unit="Hz",
        minimum=0.0,
        metavar="HZ",
        shown="that of the fit, or what the rate of a log allows",
    )
    progress: Progress | None = option(
        None, "called with what is being done, and how much of it is done", cli=False, recorded=False
    )
