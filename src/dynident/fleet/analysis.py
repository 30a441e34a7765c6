"""What the store of a fleet says: drift of friction and payload, arms beside others of their type."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.display import brief
from dynident.estimate.storage import load_fit
from dynident.fleet.changes import ChangePoint, daily_series, find_change
from dynident.fleet.comparison import RIGID, ArmData, Outlier, TypeModel, compare_arms
from dynident.fleet.options import FleetAnalysisOptions
from dynident.fleet.solving import information_matrix
from dynident.fleet.store import FleetStore, Row
from dynident.fleet.thresholds import THRESHOLDS
from dynident.identifiability.base import BaseParameters
from dynident.information.storage import load_information
from dynident.options import keywords

PAYLOAD = "payload"
_CHANGE_COLUMNS = {
    "robot": "string",
    "type": "string",
    "element": "string",
    "shape": "string",
    "date": "string",
    "size": "double",
    "std": "double",
    "level": "double",
    "unit": "string",
    "chance": "double",
    "alarm": "bool",
    "temperature_known": "bool",
    "time_constant": "double",
}
_OUTLIER_COLUMNS = {
    "robot": "string",
    "type": "string",
    "group": "string",
    "distance": "double",
    "chance": "double",
    "named": "bool",
    "parameter": "string",
}
_TYPE_COLUMNS = {
    "type": "string",
    "name": "string",
    "mean": "double",
    "mean_std": "double",
    "spread": "double",
    "arms": "int64",
}
_SHRUNK_COLUMNS = {
    "robot": "string",
    "type": "string",
    "name": "string",
    "value": "double",
    "std": "double",
    "own_share": "double",
}


@dataclass(frozen=True)
class HistoryChange:
    """The largest change in a history of a robot.

    Attributes:
        robot: Serial number.
        kind: Its type.
        element: Of whose friction, or payload.
        unit: Of the history.
        change: What the scan has found.
        alarm: Whether chance is too small for it, at the rate of false alarms asked for.
        temperature_known: Whether the logs have temperatures, which the history is without then.
    """

    robot: str
    kind: str
    element: str
    unit: str
    change: ChangePoint
    alarm: bool
    temperature_known: bool

    @property
    def sentence(self) -> str:
        """In words."""
        own, share = self.change, ""
        if self.element != PAYLOAD and own.level:
            share = f" ({100.0 * own.size / abs(own.level):+.0f} %)"
        what = "payload" if self.element == PAYLOAD else f"friction of element {self.element}"
        way = "steps by" if own.shape == "step" else "drifts by"
        unknown = "" if self.temperature_known or self.element == PAYLOAD else "; temperatures are not known"
        return f"{self.robot}: {what} {way} {own.size:+.3g} {self.unit}{share} from {own.date} on{unknown}"


@brief
@dataclass(frozen=True, eq=False)
class FleetAnalysis:
    """What the store of a fleet says.

    Attributes:
        store: The store.
        options: Of the analysis.
        robots: A row for each robot and period: its logs and errors.
        changes: The largest change of each history that is long enough.
        too_short: How many histories are not.
        types: Model of each type with enough arms.
        outliers: Distances of arms, by type.
    """

    store: FleetStore
    options: FleetAnalysisOptions
    robots: tuple[Row, ...]
    changes: tuple[HistoryChange, ...]
    too_short: int
    types: Mapping[str, TypeModel]
    outliers: Mapping[str, tuple[Outlier, ...]]

    @property
    def level(self) -> float:
        """Chance below which a history counts as changed."""
        return self.options.false_alarms / max(len(self.changes), 1)

    def alarms(self) -> list[dict[str, Any]]:
        """What deserves a look, as plain data; `id` is the same as long as it is about the same."""
        found = [
            {
                "kind": "payload" if one.element == PAYLOAD else "friction",
                "robot": one.robot,
                "type": one.kind,
                "element": None if one.element == PAYLOAD else one.element,
                "date": one.change.date,
                "size": one.change.size,
                "std": one.change.std,
                "level": one.change.level,
                "unit": one.unit,
                "chance": one.change.chance,
                "text": one.sentence,
            }
            for one in self.changes
            if one.alarm
        ]
        found += [
            {
                "kind": "outlier",
                "robot": one.robot,
                "type": kind,
                "element": one.group,
                "distance": one.distance,
                "chance": one.chance,
                "text": f"{one.robot}: {one.group} differs from the other arms of type {kind}, {one.parameter} most",
            }
            for kind, own in self.outliers.items()
            for one in own
            if one.named
        ]
        return [{"id": _identity(one), **one} for one in found]

    def save(self) -> None:
        """Write the tables changes, outliers, types and shrunk into the store."""
        changes = [
            {"robot": one.robot, "type": one.kind, "element": one.element, "unit": one.unit, "alarm": one.alarm}
            | {"temperature_known": one.temperature_known, **vars(one.change)}
            for one in self.changes
        ]
        self.store.write_answer("changes", "all", _select_columns(changes, _CHANGE_COLUMNS), _CHANGE_COLUMNS)
        outliers = [{"type": kind, **vars(one)} for kind, own in self.outliers.items() for one in own]
        self.store.write_answer("outliers", "all", outliers, _OUTLIER_COLUMNS)
        types, shrunk = [], []
        for kind, model in self.types.items():
            for k, name in enumerate(model.names):
                own = {"mean": model.mean[k], "mean_std": model.mean_std[k], "spread": model.spread[k]}
                types.append({"type": kind, "name": name, "arms": len(model.robots)} | _floats(own))
                for i, robot in enumerate(model.robots):
                    own = {"value": model.values[i, k], "std": model.std[i, k], "own_share": model.own_share[i, k]}
                    shrunk.append({"robot": robot, "type": kind, "name": name} | _floats(own))
        self.store.write_answer("types", "all", types, _TYPE_COLUMNS)
        self.store.write_answer("shrunk", "all", shrunk, _SHRUNK_COLUMNS)


def _floats(own: Mapping[str, Any]) -> dict[str, float]:
    return {key: float(value) for key, value in own.items()}


def _select_columns(rows: Sequence[Row], columns: Mapping[str, str]) -> list[Row]:
    return [{name: row[name] for name in columns} for row in rows]


def _identity(alarm: Mapping[str, Any]) -> str:
    """Of an alarm: another date within the same month is the same drift, seen better."""
    parts = [alarm["kind"], alarm["robot"], alarm["element"], str(alarm.get("date", ""))[:7]]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


@keywords(FleetAnalysisOptions)
def analyze_fleet(store: str | Path | FleetStore, options: FleetAnalysisOptions) -> FleetAnalysis:
    """Find what has changed in a fleet, and which of its arms are unlike the others of their type.

    Args:
        store: The store that `run_fleet` has filled.
        options: By name, see `FleetAnalysisOptions`.
    """
    own = store if isinstance(store, FleetStore) else FleetStore.open(store)
    robots = tuple(sorted(own.answers("robots"), key=lambda row: (row["type"], row["robot"], row["start"])))
    changes, too_short = _changes(own, options)
    latest = {row["robot"]: row for row in robots}
    types, outliers = {}, {}
    for kind, rows in itertools.groupby(latest.values(), key=lambda row: str(row["type"])):
        if found := _compare(own, [row["robot"] for row in rows], options):
            types[kind], outliers[kind] = found[0], tuple(found[1])
    return FleetAnalysis(own, options, robots, changes, too_short, types, outliers)


def _changes(store: FleetStore, options: FleetAnalysisOptions) -> tuple[tuple[HistoryChange, ...], int]:
    """Changes of all histories, periods of a robot apart; and how many are too short."""
    friction, payload = store.answers("friction"), store.answers("payload")
    found, too_short = [], 0
    histories = [
        *_group_rows(friction, ("type", "robot", "pilot", "element")),
        *_group_rows([row | {"element": PAYLOAD} for row in payload], ("type", "robot", "pilot", "element")),
    ]
    for (kind, robot, _, element), rows in histories:
        column = "mass" if element == PAYLOAD else "friction"
        values, std = (np.array([_number(row[name]) for row in rows]) for name in (column, "std"))
        if element == PAYLOAD:
            values = values - np.array([row["payload"] or 0.0 for row in rows])  # beside what is known of it
            covariates, names = _covariates(rows, "none")
        else:
            covariates, names = _covariates(rows, options.covariates)
        series = daily_series([row["date"] for row in rows], values, std, covariates, names)
        if series is None:
            too_short += 1
            continue
        unit = "kg" if element == PAYLOAD else rows[0]["unit"]
        known = any(row.get("temperature") is not None for row in rows)
        found.append(HistoryChange(robot, kind, element, unit, find_change(series), False, known))
    level = options.false_alarms / max(len(found), 1)
    named = (
        HistoryChange(
            one.robot, one.kind, one.element, one.unit, one.change, one.change.chance < level, one.temperature_known
        )
        for one in found
    )
    return tuple(named), too_short


def _covariates(rows: Sequence[Row], wanted: str) -> tuple[Array, list[str]]:
    """What friction depends on beside wear, (n, k), and names; temperature where it is known, and where it varies."""
    columns, names = [], []
    temperature = np.array([_number(row.get("temperature")) for row in rows])
    known = np.isfinite(temperature)
    varies = known.any() and float(np.ptp(temperature[known])) >= THRESHOLDS.min_temperature_range
    if "temperature" in wanted and varies:
        above = temperature - temperature[known].mean()
        # Viscous friction falls as exp(-b T): over ten kelvin the second order is a few percent.
        columns += [above, above**2]
        names += ["temperature", "temperature squared"]
    if "payload" in wanted:
        columns.append(np.array([row["payload"] or 0.0 for row in rows]))
        names.append("payload")
    return np.column_stack(columns) if columns else np.zeros((len(rows), 0)), names


def _group_rows(rows: Sequence[Row], keys: Sequence[str]) -> list[tuple[tuple[Any, ...], list[Row]]]:
    """Rows by some columns, each group sorted by date."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return [(key, sorted(own, key=lambda row: (row["date"], row["log"]))) for key, own in sorted(groups.items())]


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _compare(
    store: FleetStore, robots: Sequence[str], options: FleetAnalysisOptions
) -> tuple[TypeModel, list[Outlier]] | None:
    """The arms of a type beside each other, over the parameters that all of them have; None for too few arms."""
    if len(robots) < THRESHOLDS.min_arms:
        return None
    fits = {robot: load_fit(store.folder / "robots" / robot) for robot in robots}
    shared = set.intersection(*(set(fit.names) for fit in fits.values()))
    first = fits[robots[0]]
    names = [name for name in first.names if name in shared]
    arms = []
    for robot, fit in fits.items():
        inflation = np.array((store.read_json(f"robots/{robot}/inflation.json") or {})["inflation"])
        whole = information_matrix(
            load_information(store.folder / "robots" / robot / "factor.npz"), fit.sigma, inflation
        )
        places = [fit.names.index(name) for name in names]
        others = [place for place in range(len(fit.names)) if place not in places]
        J = whole[np.ix_(places, places)]
        if others:  # parameters of this arm alone, such as a spring, are whatever they are
            cross = whole[np.ix_(places, others)]
            J = J - cross @ np.linalg.pinv(whole[np.ix_(others, others)], hermitian=True) @ cross.T
        arms.append(ArmData(robot, fit.beta[places], J))
    return compare_arms(arms, names, _groups(first.base, names), options.false_discoveries)


def _groups(base: BaseParameters, names: Sequence[str]) -> dict[str, list[str]]:
    """Parameters by what they are of: the rigid body with its rotors, and friction of each element."""
    from dynident.dynamics.terms.friction import elements_with_friction

    groups: dict[str, list[str]] = {}
    for element in elements_with_friction(base.robot):
        own = [element.names[symbol] for symbol in ("Fv", "Fc", "Fo") if element.names.get(symbol) in names]
        groups[f"friction of element {element.label}"] = own
    friction = set(itertools.chain.from_iterable(groups.values()))
    return {RIGID: [name for name in names if name not in friction]} | groups
