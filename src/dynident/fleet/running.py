"""`run_fleet`: logs to factors, factors to parameters and histories; only what is new or changed is worked on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from dynident.display import brief
from dynident.errors import DynidentError, InputError
from dynident.fleet.engine import TaskCluster, open_engine
from dynident.fleet.fleet_file import FleetFile, RobotType, plain_settings, read_fleet_file
from dynident.fleet.history import FRICTION_COLUMNS, PAYLOAD_COLUMNS, friction_history
from dynident.fleet.listing import LogRef, list_logs
from dynident.fleet.mapping import MapJob, failed_row, map_log
from dynident.fleet.options import FleetRunOptions
from dynident.fleet.pilot import Period, PilotRecord, error_words, load_pilot, make_pilot, stored_pilots
from dynident.fleet.reading import AccessError, LogReader
from dynident.fleet.solving import RobotSolution, choose_training, solve_robot
from dynident.fleet.store import FleetStore, Row
from dynident.options import Progress, keywords
from dynident.robot.load import load_robot
from dynident.robot.model import Robot

PARAMETER_COLUMNS = {
    "robot": "string",
    "type": "string",
    "pilot": "string",
    "start": "string",
    "name": "string",
    "unit": "string",
    "value": "double",
    "std": "double",
    "determined": "bool",
}
ROBOT_COLUMNS = {
    "robot": "string",
    "type": "string",
    "pilot": "string",
    "start": "string",
    "logs": "int64",
    "failed": "int64",
    "held_out": "int64",
    "hours": "double",
    "rank": "int64",
    "parameters": "int64",
    "held_out_error": "double",
    "training_error": "double",
    "signature": "string",
}


@brief
@dataclass(frozen=True)
class FleetRun:
    """What a run has done.

    Attributes:
        store: Folder of the store.
        robots: Robots with parameters.
        finished: Logs that this run went through.
        known: Logs that were finished before.
        failed: Logs that cannot be used, by where they lie, with the reason; those of earlier runs too.
        unfinished: Logs that could not be reached or stored, which the next run tries again, with the reason.
        pilots: Pilots that this run made.
    """

    store: str
    robots: int
    finished: int
    known: int
    failed: dict[str, str]
    unfinished: dict[str, str]
    pilots: int

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return dict(vars(self))


@dataclass(eq=False)
class _Work:
    """What is to be done for one period of one robot.

    Attributes:
        period: Of a robot.
        kind: Its type.
        robot: Its model.
        refs: Its logs, sorted by date.
        pilot: Of the period, once there is one.
    """

    period: Period
    kind: RobotType
    robot: Robot
    refs: tuple[LogRef, ...]
    reader: LogReader
    pilot: PilotRecord | None = None
    failed: dict[str, str] = field(default_factory=dict)


@keywords(FleetRunOptions)
def run_fleet(file: str | Path | FleetFile, store: str | Path, options: FleetRunOptions) -> FleetRun:
    """Identify every robot of a fleet from all of its logs, and follow its friction.

    A second run works on what is new or has changed. Logs that fail are named, and do not stop the rest.

    Args:
        file: Fleet file, or what `read_fleet_file` made of it.
        store: Folder of the store; made if it is not there.
        options: By name, see `FleetRunOptions`.

    Raises:
        FleetFileError, StoreError, InputError: Naming file, key or option, what was expected and what to do.
    """
    fleet = file if isinstance(file, FleetFile) else read_fleet_file(file)
    own = FleetStore.create(store)
    progress = options.progress or _quiet
    robots = {kind.name: load_robot(kind.robot) for kind in fleet.types}
    progress("listing logs", 0, 1)
    listed = list_logs(fleet)
    progress("listing logs", 1, 1)
    own.write("fleet.yaml", yaml.safe_dump(plain_settings(fleet), allow_unicode=True).encode())
    unfinished: dict[str, str] = {}
    with open_engine(options) as engine:
        engine.check_store(own)
        progress(f"cluster: {engine.n_workers} workers, {engine.dashboard or 'no dashboard'}", 1, 1)
        rows = own.rows()
        dated = _with_dates(engine, fleet, listed, robots, rows, unfinished, progress)
        work = [one for serial, (kind, refs) in dated.items() for one in _periods(fleet, kind, serial, refs, robots)]
        n_pilots = _make_pilots(engine, own, fleet, work, rows, options.retry, unfinished, progress)
        finished, known = _map_logs(engine, own, fleet, work, rows, options.retry, unfinished, progress)
        own.compact()
        n_robots = _solve(engine, own, fleet, work, unfinished, progress)
    stamps = {(ref.uri, ref.stamp) for one in work for ref in one.refs}
    failed = {
        row["uri"]: row["error"]
        for row in own.rows()
        if row["status"] == "failed" and (row["uri"], row["stamp"]) in stamps
    }
    return FleetRun(str(own.folder), n_robots, finished, known, failed, unfinished, n_pilots)


def _with_dates(
    engine: TaskCluster,
    fleet: FleetFile,
    listed: dict[str, tuple[RobotType, tuple[LogRef, ...]]],
    robots: dict[str, Robot],
    rows: Sequence[Row],
    unfinished: dict[str, str],
    progress: Progress,
) -> dict[str, tuple[RobotType, tuple[LogRef, ...]]]:
    """The logs with the dates that their columns say, sorted by them; those of finished logs are known."""
    known = {(row["uri"], row["stamp"]): row["date"] for row in rows}
    found: dict[tuple[str, str], str] = {}
    tasks = [
        (f"date-{ref.key('')}", (_reader(fleet, kind), ref, robots[kind.name]))
        for kind, refs in listed.values()
        for ref in refs
        if "date" in kind.from_log and (ref.uri, ref.stamp) not in known
    ]
    for number, outcome in enumerate(engine.outcomes(_read_date, tasks)):
        progress("reading dates", number + 1, len(tasks))
        if outcome.error is not None:
            ref = next(own[1] for key, own in tasks if key == outcome.key)
            unfinished[ref.uri] = error_words(outcome.error)
        elif outcome.result is not None:
            found[outcome.result.uri, outcome.result.stamp] = outcome.result.date
    result = {}
    for serial, (kind, refs) in listed.items():
        own = refs
        if "date" in kind.from_log:
            dates = known | found
            own = tuple(
                sorted(
                    (replace(ref, date=dates.get((ref.uri, ref.stamp), ref.date)) for ref in refs),
                    key=lambda ref: ref.order,
                )
            )
        result[serial] = kind, own
    return result


def _read_date(reader: LogReader, ref: LogRef, robot: Robot) -> LogRef | None:
    """The log with its date; None where it cannot be used, which the map then says."""
    try:
        return reader.date(ref, robot)
    except AccessError:
        raise
    except DynidentError:
        return None


def _reader(fleet: FleetFile, kind: RobotType) -> LogReader:
    return LogReader(kind.columns, kind.from_log, fleet.storage)


def _periods(
    fleet: FleetFile, kind: RobotType, serial: str, refs: tuple[LogRef, ...], robots: dict[str, Robot]
) -> Iterator[_Work]:
    """The logs of a robot between its services."""
    robot = robots[kind.name]
    columns = Path(kind.columns).read_text(encoding="utf-8") if kind.columns else ""
    settings = hashlib.sha256(f"{fleet.settings} {robot.fingerprint} {columns}".encode()).hexdigest()[:16]
    starts = ["", *(date.isoformat(timespec="seconds") for date in kind.services.get(serial, ()))]
    for start, end in zip(starts, [*starts[1:], "~"], strict=True):
        own = tuple(ref for ref in refs if start <= ref.date < end)
        if own:
            yield _Work(Period(serial, kind.name, start, settings), kind, robot, own, _reader(fleet, kind))


def _make_pilots(
    engine: TaskCluster,
    store: FleetStore,
    fleet: FleetFile,
    work: Sequence[_Work],
    rows: Sequence[Row],
    retry: bool,
    unfinished: dict[str, str],
    progress: Progress,
) -> int:
    """Pilots of the periods that have none that holds."""
    for one in work:
        held = [own for own in stored_pilots(store, one.period.robot) if own.holds_for(one.period, one.refs)]
        one.pilot = held[-1] if held else None
    bad = {row["key"] for row in rows if row["status"] == "failed"} if not retry else set()
    missing = {
        f"pilot-{one.period.robot}-{one.period.start}-{one.period.settings}": one for one in work if not one.pilot
    }
    tasks = []
    for key, one in missing.items():
        refs = [ref for ref in one.refs if ref.key(one.period.settings) not in bad]
        how = (store, one.period, refs, one.robot, one.reader, fleet.identify, fleet.options.pilot_s)
        if refs:
            tasks.append((key, how))
    made = 0
    for number, outcome in enumerate(engine.outcomes(make_pilot, tasks)):
        progress("pilots", number + 1, len(tasks))
        one = missing[outcome.key]
        if outcome.error is not None:
            unfinished |= {ref.uri: error_words(outcome.error) for ref in one.refs[:1]}
            continue
        one.pilot, failed = outcome.result
        made += one.pilot is not None
        if one.pilot is None:  # its logs have no pilot to be mapped by, so they are named here
            job = _job(store, fleet, one, f"pilots/{one.period.settings}")
            for own in failed:
                store.write_row(failed_row(job, own["ref"], own["error"]))
    return made


def _job(store: FleetStore, fleet: FleetFile, one: _Work, pilot: str) -> MapJob:
    return MapJob(str(store.folder), pilot, one.kind.name, one.reader, fleet.identify, fleet.options.segments)


def _map_logs(
    engine: TaskCluster,
    store: FleetStore,
    fleet: FleetFile,
    work: Sequence[_Work],
    rows: Sequence[Row],
    retry: bool,
    unfinished: dict[str, str],
    progress: Progress,
) -> tuple[int, int]:
    """The map over all logs that are new or have changed; how many those were, and how many were known."""
    done = {row["key"] for row in rows if row["status"] == "ok" or not retry}
    jobs = [(one, _job(store, fleet, one, one.pilot.folder)) for one in work if one.pilot is not None]
    every = sum(len(one.refs) for one, _ in jobs)
    fresh = [(job, ref) for one, job in jobs for ref in one.refs if ref.key(job.key) not in done]
    open_tasks: dict[str, tuple[MapJob, LogRef]] = {}

    def tasks() -> Iterator[tuple[str, tuple[MapJob, LogRef]]]:
        for job, ref in fresh:
            key = f"map-{ref.key(job.key)}"
            open_tasks[key] = job, ref
            yield key, (job, ref)

    finished = 0
    for outcome in engine.outcomes(map_log, tasks()):
        finished += 1
        progress("logs", finished, len(fresh))
        job, ref = open_tasks.pop(outcome.key)
        if outcome.error is None:
            continue
        if type(outcome.error).__name__ == "KilledWorker":
            words = "every worker that read it died; read it alone to see why (dynident check)"
            store.write_row(failed_row(job, ref, words))
        else:
            unfinished[ref.uri] = error_words(outcome.error)
    return finished, every - len(fresh)


def _solve(
    engine: TaskCluster,
    store: FleetStore,
    fleet: FleetFile,
    work: Sequence[_Work],
    unfinished: dict[str, str],
    progress: Progress,
) -> int:
    """Parameters and histories of the robots whose logs have changed; how many robots have parameters."""
    robots: dict[str, list[_Work]] = {}
    for one in work:
        if one.pilot is not None:
            robots.setdefault(one.period.robot, []).append(one)
    tasks = [
        (f"solve-{serial}-{fleet.settings}", (str(store.folder), serial, [one.pilot for one in own], fleet))
        for serial, own in robots.items()
    ]
    solved = 0
    for number, outcome in enumerate(engine.outcomes(reduce_robot, tasks)):
        progress("robots", number + 1, len(tasks))
        if outcome.error is not None:
            serial = outcome.key.split("-", 1)[1].rsplit("-", 1)[0]
            unfinished[f"robot {serial}"] = error_words(outcome.error)
        else:
            solved += bool(outcome.result)
    return solved


def current_rows(rows: Iterable[Row], pilot: str) -> list[Row]:
    """Rows of finished logs under a pilot: of each path the newest, of equal contents the first; sorted by date.

    Data that counts twice looks too certain, whether a log was copied or written again.
    """
    newest: dict[str, Row] = {}
    for row in sorted((row for row in rows if row["pilot"] == pilot), key=lambda row: row["written"]):
        newest[row["uri"]] = row
    ordered = sorted(newest.values(), key=lambda row: (row["date"], row["uri"]))
    seen: dict[str, Row] = {}
    for row in ordered:
        if row["status"] == "ok":
            seen.setdefault(row["digest"], row)
    return list(seen.values())


def reduce_robot(folder: str, serial: str, pilots: Sequence[PilotRecord], fleet: FleetFile) -> bool:
    """Parameters and histories of a robot, all its periods, from its factors; made again only where these are others.

    Returns:
        Whether there are any.
    """
    store = FleetStore(Path(folder))
    rows = store.rows(serial)
    parts = [(pilot, current_rows(rows, pilot.key)) for pilot in pilots]
    parts = [(pilot, own) for pilot, own in parts if own]
    if not parts:
        return False
    said = [
        fleet.options.validation,
        fleet.settings,
        [(pilot.key, [row["key"] for row in own]) for pilot, own in parts],
    ]
    signature = hashlib.sha256(repr(said).encode()).hexdigest()[:20]
    if any(row["robot"] == serial and row["signature"] == signature for row in store.answers("robots")):
        return True
    tables: dict[str, list[Row]] = {"parameters": [], "friction": [], "payload": [], "robots": []}
    for pilot, own in parts:
        fit = load_pilot(store.folder / pilot.folder)
        training, held_out = choose_training(own, (uri for uri, _ in pilot.logs), fleet.options.validation)
        if not training:
            raise InputError(f"robot {serial}: all logs have a payload; the robot itself is identified without one")
        solution = solve_robot(store, fit, training, held_out, fleet.identify)
        first = {"robot": serial, "type": pilot.period.kind, "pilot": pilot.key, "start": pilot.period.start}
        keys = ("name", "unit", "value", "std", "determined")
        tables["parameters"] += [first | {key: row[key] for key in keys} for row in solution.estimate.rows()]
        friction, payloads = friction_history(store, own, fit.base, solution)
        tables["friction"] += friction
        tables["payload"] += payloads
        n_failed = sum(row["status"] == "failed" and row["pilot"] == pilot.key for row in rows)
        tables["robots"].append(first | _robot_row(solution, own, n_failed) | {"signature": signature})
        _save_solution(store, serial, fit, solution, len(training))
    kinds = {"parameters": PARAMETER_COLUMNS, "friction": FRICTION_COLUMNS, "payload": PAYLOAD_COLUMNS}
    for table, columns in kinds.items():
        store.write_answer(table, f"robot={serial}", tables[table], columns)
    store.write_answer("robots", f"robot={serial}", tables["robots"], ROBOT_COLUMNS)  # last: it has the signature
    return True


def _robot_row(solution: RobotSolution, rows: Sequence[Row], n_failed: int) -> Row:
    own = [solution.errors[key] for key in solution.training]
    return {
        "logs": len(rows),
        "failed": n_failed,
        "held_out": len(solution.held_out),
        "hours": sum(row["duration"] for row in rows) / 3600.0,
        "rank": solution.estimate.rank,
        "parameters": len(solution.estimate.names),
        "held_out_error": solution.held_out_error(),
        "training_error": (sum(error**2 for error in own) / len(own)) ** 0.5,
    }


def _save_solution(store: FleetStore, serial: str, fit: Any, solution: RobotSolution, n_logs: int) -> None:
    """The fit of a robot with the parameters of all its logs, and what the comparison of arms needs of them."""
    words = (
        f"parameters come from {n_logs} logs of a fleet, with the choices of the pilot; torque errors and prediction "
        "are those of the pilot, whose logs are listed"
    )
    whole = replace(fit, estimate=solution.estimate, predictive=fit.predictive, notes=(words, *fit.notes))
    folder = store.folder / "robots" / serial
    whole.save(folder)
    solution.information.save(folder / "factor.npz")
    store.write_json(f"robots/{serial}/inflation.json", {"inflation": solution.inflation.tolist()})


def _quiet(what: str, done: int, total: int) -> None:
    """No progress is shown."""
