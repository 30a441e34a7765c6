"""What shapes the identification of a fleet. Importable without NumPy, for `dynident fleet --help`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynident.options import Options, Progress, option

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True, kw_only=True)
class FleetOptions(Options):
    """Keys of a fleet file beside its robots: how logs of all of them become factors."""

    pilot_s: float = option(
        300.0,
        "how much of the first logs of a robot fixes its delay, bandwidth, terms and linearization point",
        unit="s",
        minimum=0.0,
    )
    validation: float = option(
        0.1, "share of the logs, beside those of the pilot, that are held out of the fit", least=0.0, below=1.0
    )
    segments: int = option(1, "factors kept of each log, of parts of equal length", least=1)
    date_format: str | None = option(
        None, "format of {date} in paths, as of strptime: %Y-%m-%d_%H%M", shown="ISO 8601, such as 2026-03-01T1230"
    )


@dataclass(frozen=True, kw_only=True)
class FleetRunOptions(Options):
    """How a fleet is run; nothing of it shapes a number."""

    HELP_GROUP = "fleet run"

    scheduler: str | Client | None = option(
        None,
        "address of a running Dask scheduler, or (Python) a client of one",
        metavar="tcp://HOST:PORT",
        shown="a local cluster",
        recorded=False,
    )
    workers: int | None = option(
        None, "processes of the local cluster", least=1, metavar="N", shown="one for each core", recorded=False
    )
    retry: bool = option(False, "try logs again that have failed and have not changed", recorded=False)
    progress: Progress | None = option(
        None, "called with what is being done, and how much of it is done", cli=False, recorded=False
    )


@dataclass(frozen=True, kw_only=True)
class FleetAnalysisOptions(Options):
    """What the histories of a fleet are asked."""

    HELP_GROUP = "fleet report, fleet watch"

    false_alarms: float = option(
        0.05,
        "false alarms expected of one analysis of the whole fleet, over the histories of all joints and payloads",
        minimum=0.0,
        below=1.0,
        metavar="NUMBER",
    )
    false_discoveries: float = option(
        0.05, "share of the arms called outliers that may be none", minimum=0.0, below=1.0, metavar="SHARE"
    )
    covariates: str = option(
        "temperature,payload",
        "what else changes friction and is taken out of its history: temperature, payload, both, or none",
        choices=("temperature,payload", "temperature", "payload", "none"),
        metavar="NAMES",
    )


@dataclass(frozen=True, kw_only=True)
class FleetWatchOptions(FleetAnalysisOptions):
    """What is watched, and who hears of it."""

    HELP_GROUP = "fleet watch"

    webhook: str | None = option(None, "address that every new alarm is posted to as JSON", metavar="URL")
    every: bool = option(False, "all alarms, also those that were raised before")
