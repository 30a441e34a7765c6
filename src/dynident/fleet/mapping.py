"""The map: one log to its factors and a row of statistics, by the choices of its pilot."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dynident.errors import InputError
from dynident.estimate.covariance import ResidualLags
from dynident.estimate.fit import Fit
from dynident.fleet.listing import LogRef
from dynident.fleet.pilot import error_words, load_pilot, pinned_options
from dynident.fleet.reading import AccessError, LogReader
from dynident.fleet.store import FleetStore, Row, StoreError
from dynident.identifiability.base_regressor import RegressorBlock
from dynident.information.information import Information, Segment
from dynident.information.solution import residual_square
from dynident.logs.log import LogError
from dynident.pipeline.diagnosis import diagnose
from dynident.pipeline.factor_cache import FactorCache
from dynident.pipeline.options import IdentifyOptions
from dynident.pipeline.parameters import parameter_rule
from dynident.pipeline.preprocessing import preprocess
from dynident.signals.observations import Observations
from dynident.signals.rows import ObservedRows


@dataclass(frozen=True)
class MapJob:
    """What the logs of a robot have in common in the map; small, as it goes to a worker with every log.

    Attributes:
        store: Folder of the store, which every worker can reach.
        pilot: Folder of the pilot within it.
        kind: Name of the robot's type.
        reader: How its logs are read.
        options: Of the identification.
        segments: Factors kept of each log.
    """

    store: str
    pilot: str
    kind: str
    reader: LogReader
    options: IdentifyOptions
    segments: int

    @property
    def key(self) -> str:
        """Of the pilot."""
        return Path(self.pilot).name


def map_log(job: MapJob, ref: LogRef) -> Row:
    """Go through a log once; its factor and its row are in the store when this returns.

    A log that cannot be used leaves a row with the reason, so that it is not tried again until it has changed.

    Raises:
        StoreError, AccessError: When the store cannot be written to, or the log not be reached: worth another try.
    """
    store, begin = FleetStore(Path(job.store)), time.perf_counter()
    try:
        row = _process_log(store, job, ref)
    except (StoreError, AccessError):
        raise
    except Exception as error:  # a failing log is named, and does not stop the rest
        row = failed_row(job, ref, error_words(error))
    row["seconds"] = time.perf_counter() - begin
    store.write_row(row)
    return row


def failed_row(job: MapJob, ref: LogRef, error: str) -> Row:
    """The row of a log that cannot be used."""
    return _first_columns(job, ref) | {"status": "failed", "error": error}


def _first_columns(job: MapJob, ref: LogRef) -> Row:
    own = {"robot": ref.robot, "type": job.kind, "pilot": job.key, "uri": ref.uri, "stamp": ref.stamp}
    return own | {"key": ref.key(job.key), "date": ref.date, "payload": ref.payload}


def _process_log(store: FleetStore, job: MapJob, ref: LogRef) -> Row:
    fit = load_pilot(store.folder / job.pilot)
    with job.reader.opened(ref, fit.robot) as (log, known):
        factor = store.factor_name(ref, hashlib.sha256(f"{log.digest} {job.key}".encode()).hexdigest()[:20])
        row = _first_columns(job, ref) | {"payload": known.payload, "digest": log.digest, "factor": factor}
        if (store.folder / factor).exists():  # the same content at another place, or touched
            before = [own for own in store.rows(ref.robot) if own["factor"] == factor and own["status"] == "ok"]
            if before:
                return before[-1] | row
        options = pinned_options(fit, job.options)
        data = preprocess(fit.robot, [log], options, FactorCache(None), _quiet)
        diagnosis = diagnose(data, options)
        information, statistics = compress_log(data.train[0], fit, job.segments)
        temperatures = _temperatures(data.train[0], known)
    save_factor(store, factor, information)
    doubts = [] if diagnosis is None else [one for one in diagnosis.diagnostics if one.severity != "ok"]
    return row | {
        "status": "ok",
        "severity": "" if diagnosis is None else diagnosis.severity,
        "diagnostics": json.dumps([{"name": one.name, "message": one.message} for one in doubts]),
        "temperatures": temperatures,
        **statistics,
    }


def compress_log(one: Observations, fit: Fit, n_segments: int) -> tuple[Information, Row]:
    """The factors of a log over the parameters of a pilot, and what its residuals at the pilot's values are like.

    Raises:
        LogError: When no row of it can be used.
    """
    rows = ObservedRows((one,), fit.base, fit.reference, rule=parameter_rule(fit.base))
    values = np.concatenate([fit.beta, np.zeros(rows.coordinates.n - fit.base.n)])  # nothing is known of the others
    source = _WithResiduals(rows, ResidualLags(rows.channels, values))
    information = FactorCache(None).factor_of(rows, source, keep=False)
    if not information.segments:
        raise LogError(one.log.label, "all of it lies near reversals of dry friction; record longer strokes")
    correlation = source.lags.correlation()
    factors = information.channel_factors()
    squares = [residual_square(factor.dense(len(values)), values) for factor in factors]
    counts = [float(factor.n_rows) for factor in factors]
    statistics = {
        "samples": one.survey.n_samples,
        "duration": one.survey.duration,
        "residual_std": [float(np.sqrt(s / n)) if n else None for s, n in zip(squares, counts, strict=True)],
        "inflation": correlation.inflation.tolist(),
        "rows": counts,
    }
    return in_parts(information, n_segments), statistics


def in_parts(information: Information, n_parts: int) -> Information:
    """The segments of a log put together to so many, of equal length."""
    own = information.segments
    groups = [group.tolist() for group in np.array_split(np.arange(len(own)), min(n_parts, len(own)))]
    parts = []
    for group in groups:
        spans = [own[i].span for i in group]
        span = None if any(one is None for one in spans) else (spans[0][0], spans[-1][1])
        parts.append(Segment(own[group[0]].label, information.select(group).channel_factors(), span))
    return replace(information, segments=tuple(parts))


class _WithResiduals:
    """Rows whose residuals are looked at as they go by."""

    def __init__(self, rows: ObservedRows, lags: ResidualLags) -> None:
        self.coordinates, self.definitions, self.channels = rows.coordinates, rows.definitions, rows.channels
        self._rows, self.lags = rows, lags

    def blocks(self) -> Iterator[RegressorBlock]:
        """All rows, in order."""
        for block in self._rows.blocks():
            self.lags.add(block)
            yield block


def save_factor(store: FleetStore, name: str, information: Information) -> None:
    """Write a factor into the store.

    Raises:
        StoreError: When it cannot be written.
    """
    path = store.folder / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        information.save(path)
    except (OSError, InputError) as error:
        raise StoreError(f"{path}: cannot be written ({getattr(error, 'strerror', None) or error})") from None


def _temperatures(one: Observations, known: LogRef) -> list[float] | None:
    """Mean temperature of each joint over a log [°C]; None where nothing says it."""
    if not one.has_temperatures:
        return None if known.temperature is None else [known.temperature] * len(one.robot.joint_names)
    total, count = np.zeros(len(one.robot.joint_names)), 0
    for block in one.log.blocks():
        values = block.array("temp", one.robot)
        total, count = total + values.sum(0), count + len(values)
    return [float(value) for value in total / count]


def _quiet(what: str, done: int, total: int) -> None:
    """No progress is shown."""
