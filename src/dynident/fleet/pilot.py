"""Pilots: the first logs of a robot decide how all of its logs become factors.

Factors add up only where they were made alike. So delay, bandwidth, source of velocities, terms (with the widths of
dry friction) and linearization point come from at most some minutes of the first logs and stay what they are. Another
robot file, other options, other content of the logs of the pilot, or a service that the fleet file names make another
pilot: a new period.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dynident.errors import DynidentError, InputError
from dynident.estimate.fit import Fit
from dynident.estimate.storage import load_fit
from dynident.fleet.listing import LogRef
from dynident.fleet.reading import AccessError, LogReader
from dynident.fleet.store import FORMAT, FleetStore, Row, StoreError
from dynident.logs.log import Log, LogSource
from dynident.pipeline.diagnosis import diagnose
from dynident.pipeline.factor_cache import FactorCache
from dynident.pipeline.identification import run_pipeline
from dynident.pipeline.options import IdentifyOptions
from dynident.pipeline.preprocessing import preprocess
from dynident.robot.model import Robot

_MIN_S = 1.0  # [s] of a log that the pilot still has room for; less is no motion


@dataclass(frozen=True)
class Period:
    """What decides on a pilot, before there is one.

    Attributes:
        robot: Serial number.
        kind: Name of its type.
        start: Date of the service it begins with, ISO 8601; empty for the first one.
        settings: Digest of the options of the fleet, its column file and the robot.
    """

    robot: str
    kind: str
    start: str
    settings: str


@dataclass(frozen=True)
class PilotRecord:
    """A pilot as it is stored; its fit, with all the choices, stands beside it.

    Attributes:
        period: What it is the pilot of.
        key: Digest of the period and of the content of its logs.
        logs: Its logs, (uri, stamp) each.
        created: When it was made.
    """

    period: Period
    key: str
    logs: tuple[tuple[str, str], ...]
    created: str

    @property
    def folder(self) -> str:
        """Within the store."""
        return f"pilots/robot={self.period.robot}/{self.key}"

    def holds_for(self, period: Period, refs: Sequence[LogRef]) -> bool:
        """Whether it is the pilot of a period, its logs being what they were; one that was removed counts as such."""
        stamps = {ref.uri: ref.stamp for ref in refs}
        return period == self.period and all(stamps.get(uri, stamp) == stamp for uri, stamp in self.logs)

    def save(self, store: FleetStore, fit: Fit) -> None:
        """Write fit and record, the record last: a pilot without one is none."""
        own = {"logs": [list(one) for one in self.logs], "created": self.created, "key": self.key}
        try:
            fit.save(store.folder / self.folder)
        except (OSError, InputError) as error:
            raise StoreError(f"{store.folder / self.folder}: cannot be written ({error})") from None
        choices = {
            "delay_s": fit.signals.delay,
            "band_hz": fit.band,
            "velocity_source": fit.signals.velocity_source,
            "terms": [term.key for term in fit.base.terms],
        }
        store.write_json(f"{self.folder}/pilot.json", {**vars(self.period), **own, "choices": choices})


def stored_pilots(store: FleetStore, robot: str = "*") -> list[PilotRecord]:
    """Pilots of a robot, or of all, the newest last."""
    found = []
    for path in sorted(store.folder.glob(f"pilots/robot={robot}/*/pilot.json")):
        own = store.read_json(str(path.relative_to(store.folder))) or {}
        period = Period(own["robot"], own["kind"], own["start"], own["settings"])
        logs = tuple((uri, stamp) for uri, stamp in own["logs"])
        found.append(PilotRecord(period, own["key"], logs, own["created"]))
    return sorted(found, key=lambda one: one.created)


@functools.lru_cache(maxsize=64)
def load_pilot(folder: Path) -> Fit:
    """The fit of a pilot, which has all its choices; kept, as logs of a robot follow each other."""
    return load_fit(folder)


def pinned_options(fit: Fit, options: IdentifyOptions) -> IdentifyOptions:
    """The options of an identification that repeats the choices of a pilot and makes none of its own."""
    return replace(
        options,
        terms=fit.base.terms,
        friction=None,
        friction_levels="off",
        band=fit.band,
        delay=fit.signals.delay,
        velocity_source=fit.signals.velocity_source,
    )


def make_pilot(
    store: FleetStore,
    period: Period,
    refs: Sequence[LogRef],
    robot: Robot,
    reader: LogReader,
    options: IdentifyOptions,
    seconds: float,
) -> tuple[PilotRecord | None, list[Row]]:
    """Identify a robot from its first logs and keep the choices; logs that cannot be used are left out.

    Args:
        store: Where the pilot is kept.
        period: What it is the pilot of.
        refs: Logs of the period, sorted by date.
        robot: The robot.
        reader: How its logs are read.
        options: Of the identification.
        seconds: How much of them at most [s].

    Returns:
        The pilot, None where no log can be used; and the logs that cannot, with their errors.
    """
    failed: list[Row] = []
    used: list[tuple[LogRef, LogSource]] = []
    left = seconds
    with ExitStack() as stack:
        for ref in refs:
            if left < _MIN_S:
                break
            try:
                log, _ = stack.enter_context(reader.opened(ref, robot))
                log = _first_part(log, left)
                data = preprocess(robot, [log], options, FactorCache(None), _quiet)
                diagnose(data, options)
            except AccessError:
                raise
            except Exception as error:  # whatever a log does, the next one may serve
                failed.append({"ref": ref, "error": error_words(error)})
                continue
            used.append((ref, log))
            left -= data.train[0].survey.duration
        if not used:
            return None, failed
        content = [log.digest for _, log in used]
        key = hashlib.sha256(repr((FORMAT, period, robot.fingerprint, seconds, content)).encode()).hexdigest()[:16]
        logs = tuple((ref.uri, ref.stamp) for ref, _ in used)
        record = PilotRecord(period, key, logs, datetime.now(UTC).isoformat())
        fit = run_pipeline(robot, [log for _, log in used], replace(options, check="off"))[0]
    record.save(store, fit)
    return record, failed


def error_words(error: BaseException) -> str:
    """An error as a store keeps it; of one that nobody meant, its class as well."""
    return str(error) if isinstance(error, DynidentError) else f"{type(error).__name__}: {error}"


def _first_part(log: LogSource, seconds: float) -> Any:
    """The first seconds of a log."""
    start = float(next(iter(log.blocks())).time[0])
    if isinstance(log, Log):
        return log if log.duration <= seconds else log.window(stop=start + seconds)
    return replace(log, stop=start + seconds)  # type: ignore[type-var]


def _quiet(what: str, done: int, total: int) -> None:
    """No progress is shown."""
