"""`CheckOptions`: how logs are diagnosed. Importable without NumPy, for `dynident check --help`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynident.options import Options, Progress, option

if TYPE_CHECKING:
    from dynident.signals.observations import SignalOptions


@dataclass(frozen=True, kw_only=True)
class CheckOptions(Options):
    """How logs are diagnosed; the defaults are what identification uses."""

    band: float | None = option(
        None, "bandwidth of the fit", unit="Hz", minimum=0.0, metavar="HZ", shown="from the motion"
    )
    delay: float | None = option(
        None, "time by which torque is stamped late", unit="s", metavar="SECONDS", shown="from the data"
    )
    rest_velocity: float = option(
        0.01, "joints slower than this are at rest", unit="rad/s or m/s", least=0.0, metavar="VELOCITY"
    )
    signals: SignalOptions | None = option(
        None, "filters, delay and rest velocity in place of the options above", cli=False, recorded=False
    )
    progress: Progress | None = option(
        None, "called with what is being done, and how much of it is done", cli=False, recorded=False
    )
