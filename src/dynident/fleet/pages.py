"""Pages of a fleet: one for all of it, and one for each robot with its histories, by the builders of reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

import numpy as np

from dynident._version import __version__
from dynident.estimate.storage import load_fit
from dynident.fleet.analysis import PAYLOAD, FleetAnalysis, HistoryChange
from dynident.fleet.store import Row, write_page
from dynident.report.charts import Curve, chart
from dynident.report.fit import report_html
from dynident.report.html import Cell, Head, Html, Part, Section, Table, Text, element, mark, page
from dynident.report.text import number, percent, plural, whole

_MOST_CHARTS = 24  # of a page
_MOST_FAILED = 200  # logs that a page names
_DAY = 86400.0


def write_fleet_pages(found: FleetAnalysis, progress: Callable[[str, int, int], None] | None = None) -> Path:
    """Write report.html into the store, and for each robot index.html and report.html into its folder.

    Returns:
        The page of the fleet.
    """
    store, friction, payload = found.store, _by_robot(found, "friction"), _by_robot(found, "payload")
    target = store.folder / "report.html"
    write_page(target, fleet_html(found, friction))
    serials = list(dict.fromkeys(row["robot"] for row in found.robots))
    for place, serial in enumerate(serials):
        folder = store.folder / "robots" / serial
        write_page(folder / "report.html", report_html(load_fit(folder)))
        write_page(folder / "index.html", robot_html(found, serial, friction.get(serial, []), payload.get(serial, [])))
        if progress is not None:
            progress("pages", place + 1, len(serials))
    return target


def _by_robot(found: FleetAnalysis, table: str) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in found.store.answers(table):
        groups.setdefault(row["robot"], []).append(row)
    return groups


# ----------------------------------------------------------------------------------------------------------------------
# The fleet.


def fleet_html(found: FleetAnalysis, friction: dict[str, list[Row]]) -> str:
    """The page of a fleet."""
    sections = [*fleet_sections(found), _charts_section(found, friction), _failed_section(found)]
    robots = {row["robot"] for row in found.robots}
    logs, hours = sum(row["logs"] for row in found.robots), sum(row["hours"] for row in found.robots)
    facts = f"{plural(len(robots), 'robot')}, {whole(logs)} logs, {number(hours, 3)} h"
    return page(f"Fleet {found.store.folder.name}", sections, version=__version__, facts=facts)


def fleet_sections(found: FleetAnalysis) -> list[Section]:
    """What page and terminal show of a fleet."""
    sections = [_verdict_section(found), _alarm_section(found), _robots_section(found)]
    return [*sections, *(_type_section(found, kind) for kind in found.types)]


def _verdict_section(found: FleetAnalysis) -> Section:
    alarms = found.alarms()
    drifts = sum(one["kind"] != "outlier" for one in alarms)
    arms = len({one["robot"] for one in alarms if one["kind"] == "outlier"})
    title = f"{plural(drifts, 'history')} changed, {plural(arms, 'outlier')}" if alarms else "Nothing has changed"
    if not found.changes and not alarms:
        words = [Text("No history of friction or payload has days with logs enough to show a change.", "caveat")]
        return Section("verdict", "Too little to say whether anything has changed", words)
    title = title.replace("historys", "histories")
    rate = (
        f"{plural(len(found.changes), 'history').replace('historys', 'histories')} of friction and payload were looked "
        f"through for a change. Without any, {number(found.options.false_alarms, 2)} false alarms are expected of them "
        f"all together: a history counts as changed where chance is below {found.level:.2g}."
    )
    words = [Text(rate)]
    if found.too_short:
        words.append(Text(f"{found.too_short} more have too few days with logs to say anything.", "caveat"))
    if found.options.covariates != "none":
        shown = found.options.covariates.replace(",", " and ")
        words.append(Text(f"What {shown} do to friction is taken out, where the logs have them.", "soft"))
    return Section("verdict", title, words, mark="weak" if alarms else "good")


def _alarm_section(found: FleetAnalysis) -> Section:
    alarms = found.alarms()
    if not alarms:
        return Section("alarms", "Alarms", [Text("None.")], "Alarms")
    heads = [Head("Robot"), Head("What"), Head("Since"), Head("Change", True), Head("Chance", True)]
    rows = []
    for one in alarms:
        what = {"friction": f"friction of {one['element']}", "payload": "payload", "outlier": one["element"]}
        size = f"{one['size']:+.3g} {one['unit']}" if "size" in one else f"{number(one['distance'], 3)} std"
        rows.append([_link(one["robot"]), what[one["kind"]], one.get("date", ""), size, f"{one['chance']:.1g}"])
    parts: list[Part] = [Table("What deserves a look", heads, rows, title="Alarms")]
    parts += [Text(one["text"], "item", on="page") for one in alarms]
    return Section("alarms", "Alarms", parts, "Alarms")


def _robots_section(found: FleetAnalysis) -> Section:
    heads = [
        Head("Robot"),
        Head("Type"),
        Head("From", short="", class_="text"),
        Head("Logs", True),
        Head("Failed", True),
        Head("Hours", True),
        Head("Rank", True, short=""),
        Head("Training error", True, short="training"),
        Head("Held-out error", True, short="held-out"),
    ]
    rows = [
        [
            _link(row["robot"]),
            row["type"],
            row["start"][:10] or "the first log",
            whole(row["logs"]),
            whole(row["failed"]),
            number(row["hours"], 3),
            f"{row['rank']} of {row['parameters']}",
            percent(row["training_error"]),
            percent(row["held_out_error"]),
        ]
        for row in found.robots
    ]
    return Section("robots", "Robots", [Table("Robots and periods", heads, rows, title="Robots")], "Robots")


def _type_section(found: FleetAnalysis, kind: str) -> Section:
    model, outliers = found.types[kind], found.outliers[kind]
    far = sorted(outliers, key=lambda one: one.chance)[:10]
    heads = [Head("Robot"), Head("Group"), Head("Distance", True), Head("Chance", True), Head(""), Head("Most")]
    heads[4] = Head("Outlier")
    rows = [
        [
            _link(one.robot),
            one.group,
            number(one.distance, 3),
            f"{one.chance:.1g}",
            mark("outlier", "weak") if one.named else mark("usual", "good"),
            one.parameter,
        ]
        for one in far
    ]
    nearest = Table("Arms farthest from the others of their type", heads, rows, title="Farthest arms")
    shared = Table(
        "What the arms share: mean of the type, and standard deviation between arms",
        [Head("Parameter"), Head("Mean", True), Head("Std of mean", True), Head("Between arms", True)],
        [
            [name, number(model.mean[k], 4), number(model.mean_std[k], 2), number(model.spread[k], 2)]
            for k, name in enumerate(model.names)
        ],
        on="page",
    )
    words = Text(
        f"{len(model.robots)} arms. Of those called outliers, a share of {percent(found.options.false_discoveries)} "
        "may be none. Parameters that the logs of an arm do not determine are those of its type, in the table shrunk.",
        on="page",
    )
    return Section(f"type-{kind}", f"Type {kind}", [words, nearest, shared], f"Type {kind}")


def _charts_section(found: FleetAnalysis, friction: dict[str, list[Row]]) -> Section | None:
    own = [one for one in found.changes if one.alarm and one.element != PAYLOAD]
    if not own:
        return None
    figures = [
        _history_chart(
            f"{one.robot}, element {one.element}",
            [row for row in friction.get(one.robot, []) if row["element"] == one.element],
            "friction",
            one,
            f"h{place}",
        )
        for place, one in enumerate(own[:_MOST_CHARTS])
    ]
    return Section("histories", "Changed histories", figures, "Histories")


def _failed_section(found: FleetAnalysis) -> Section | None:
    newest = {row["uri"]: row for row in sorted(found.store.rows(), key=lambda row: str(row["written"]))}
    bad = [row for row in newest.values() if row["status"] == "failed"]
    if not bad:
        return None
    rows = [[row["robot"], row["uri"], row["error"]] for row in bad[:_MOST_FAILED]]
    table = Table(f"{plural(len(bad), 'log')} left out", [Head("Robot"), Head("Log"), Head("Why", class_="text")], rows)
    return Section("failed", "Logs that cannot be used", [table], "Failed logs", folded=True)


def _link(serial: str) -> Cell:
    return Cell(element("a", serial, href=f"robots/{serial}/index.html"), serial)


# ----------------------------------------------------------------------------------------------------------------------
# A robot.


def robot_html(found: FleetAnalysis, serial: str, friction: Sequence[Row], payload: Sequence[Row]) -> str:
    """The page of a robot: its histories, and what its type says of it."""
    own = [row for row in found.robots if row["robot"] == serial]
    changes = {one.element: one for one in found.changes if one.robot == serial}
    alarms = [one["text"] for one in found.alarms() if one["robot"] == serial]
    words = [Text(text, "item") for text in alarms]
    if not alarms:
        quiet = "No history has changed beyond chance." if changes else "Its histories have too few days with logs."
        words = [Text(quiet)]
    links = element(
        "p",
        element("a", "Identification report", href="report.html"),
        " · ",
        element("a", "Fleet", href="../../report.html"),
    )
    sections: list[Section | None] = [
        Section(
            "verdict",
            plural(len(alarms), "alarm") if alarms else "No alarm",
            words,
            mark="weak" if alarms else "good" if changes else None,
        )
    ]
    elements = list(dict.fromkeys(row["element"] for row in friction))
    figures = [
        _history_chart(
            f"Friction of element {label} at its usual velocity",
            [row for row in friction if row["element"] == label],
            "friction",
            changes.get(label),
            f"f{place}",
        )
        for place, label in enumerate(elements)
    ]
    if figures:
        sections.append(Section("friction", "Friction", figures, "Friction"))
    masses = [row for row in payload if row["mass"] is not None]
    if masses:
        drawn = _history_chart("Mass on the tool, estimated", masses, "mass", changes.get(PAYLOAD), "m0")
        sections.append(Section("payload", "Payload", [drawn], "Payload"))
    sections.append(_shrunk_section(found, serial))
    logs, hours = sum(row["logs"] for row in own), sum(row["hours"] for row in own)
    facts = f"type {own[-1]['type']}, {whole(logs)} logs, {number(hours, 3)} h"
    return page(f"Robot {serial}", [*sections, Section("more", "More", [links])], version=__version__, facts=facts)


def _shrunk_section(found: FleetAnalysis, serial: str) -> Section | None:
    """Parameters of an arm given its type."""
    model = next((own for own in found.types.values() if serial in own.robots), None)
    if model is None:
        return None
    i = model.robots.index(serial)
    rows = [
        [
            name,
            number(model.values[i, k], 4),
            number(model.std[i, k], 2),
            number(model.mean[k], 4),
            percent(model.own_share[i, k]),
        ]
        for k, name in enumerate(model.names)
    ]
    heads = [Head("Parameter"), Head("Value", True), Head("Std", True), Head("Type", True), Head("Its own", True)]
    words = Text(
        "Values given those of the type. The last column says how much of a value comes from the logs of this arm; the "
        "rest is what arms of its type have in common."
    )
    return Section(
        "parameters", "Parameters, given the type", [words, Table("", heads, rows)], "Parameters", folded=True
    )


def _history_chart(title: str, rows: Sequence[Row], column: str, change: HistoryChange | None, key: str) -> Html:
    """A history with its change."""
    ordered = sorted(rows, key=lambda row: str(row["date"]))
    stamps = np.array([datetime.fromisoformat(row["date"]).timestamp() for row in ordered])
    begin = float(stamps.min())
    days, values = (stamps - begin) / _DAY, np.array([row[column] for row in ordered], dtype=float)
    curves = [Curve("log", days, values, "dots")]
    first = ordered[0]["date"][:10]
    if change is not None and change.alarm:
        start = (datetime.fromisoformat(f"{change.change.date}T00:00:00+00:00").timestamp() - begin) / _DAY
        place = np.array([days[0], start, start if change.change.shape == "step" else days[-1], days[-1]])
        after = change.change.level + change.change.size
        offset = 0.0 if column == "friction" else float(np.mean([row["payload"] or 0.0 for row in ordered]))
        curves.append(Curve("change", place, np.array([change.change.level] * 2 + [after] * 2) + offset, "predicted"))
        title = f"{title}: {change.change.shape} from {change.change.date}"
    unit = "kg" if column == "mass" else ordered[0]["unit"]
    return chart(title, curves, x_unit=f"days from {first}", y_unit=unit, key=key)
