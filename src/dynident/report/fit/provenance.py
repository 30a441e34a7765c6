"""Where the result comes from: decisions, data, filters, deviations, options; one function for each section."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from dynident.estimate.fit import Fit
from dynident.estimate.records import Diagnostic, LogRecord, Provenance
from dynident.estimate.report_data import MotionView
from dynident.logs.read import short_names
from dynident.report.charts import Curve, chart
from dynident.report.html import Head, Html, breakable, bullets, element, joined, paragraphs, section, table
from dynident.report.text import (
    counted,
    number,
    option,
    percent,
    position_units,
    quantity,
    sentence,
    torque_units,
    whole,
)
from dynident.signals.kernels import CENTRAL, FIVE_POINT, FIVE_POINT_CAUSAL, NINE_POINT, differentiator_table

_DIGEST = 12  # characters of a hash that are shown
_KERNELS = {
    "central": CENTRAL.name,
    "five-point": FIVE_POINT.name,
    "five-point causal": FIVE_POINT_CAUSAL.name,
    "savitzky-golay": NINE_POINT.name,
}


def notes_section(estimate: Fit) -> Html:
    """What was decided on the way."""
    if not estimate.notes:
        return Html("")
    return section("decisions", "Decided on the way", bullets(map(sentence, estimate.notes)))


def data_section(estimate: Fit) -> Html:
    """The training logs."""
    heads = [
        *(Head("Log"), Head("Samples", True), Head("Duration", True), Head("Rate", True), Head("Band", True)),
        *(Head("Repeated rows", True), Head("Gaps", True), Head("Time stamps", class_="text"), Head("Hash")),
    ]
    names = short_names([*estimate.data, *estimate.held_out])
    rows = [_log_cells(record, names[record.label]) for record in estimate.data]
    total = [
        "All logs",
        whole(sum(r.n_samples for r in estimate.data)),
        _seconds(sum(r.duration for r in estimate.data)),
    ]
    total += ["", "", whole(sum(r.repeated for r in estimate.data)), str(sum(r.gaps for r in estimate.data)), "", ""]
    parts = [table("Logs the parameters were identified from", heads, rows, last=total if len(rows) > 1 else ())]
    if estimate.validation:
        held_out = [_log_cells(record, names[record.label]) for record in estimate.held_out]
        parts.append(table("Logs that were kept out, to judge the result", heads, held_out))
    return section("data", "Data", *parts)


def _log_cells(record: LogRecord, name: str) -> list[object]:
    shown = element("span", breakable(name), title=record.source or None)
    return [
        *(shown, whole(record.n_samples), _seconds(record.duration)),
        *(f"{number(record.rate, 5)} Hz", f"{number(record.band, 3)} Hz", whole(record.repeated), str(record.gaps)),
        "irregular, resampled" if record.resampled else "regular",
        element("code", record.digest[:_DIGEST], title=record.digest),
    ]


def _seconds(duration: float) -> str:
    if duration < 600.0:
        return f"{number(duration, 3, zeros=True)} s"
    return f"{duration / 60.0:.1f} min" if duration < 36000.0 else f"{duration / 3600.0:.1f} h"


def differentiators_section(estimate: Fit, view: MotionView | None) -> Html:
    """What differentiation does to the first log."""
    if not estimate.data:
        return Html("")
    record, used = estimate.data[0], estimate.signals.differentiator
    first = short_names([*estimate.data, *estimate.held_out])[record.label]
    rows = []
    for row in differentiator_table(record.rate, record.band):
        kernel = str(row["name"])
        in_use = kernel == _KERNELS.get(used) or (used == "low-pass" and kernel.startswith(used))
        name = sentence(kernel).rstrip(".'")  # the prime of a derivative means little here
        mark = [" ", element("span", "in use", class_="tag")] if in_use else []
        rows.append(
            [
                joined([name, *mark]),
                *(number(float(row[key]), 3, zeros=True) for key in ("noise", "amplitude")),
                f"{number(round(float(row['phase']), 3) + 0.0, 3)}°",
            ]
        )
    heads = [Head("Differentiator"), Head("Noise gain [1/s]", True), Head("Amplitude at the band edge", True)]
    heads.append(Head("Phase error", True))
    text = (
        "Speeds and accelerations are derived from positions. Noise gain is the noise of the speed for position noise "
        f"of one unit; amplitude (one is exact) and phase error (zero is exact) are at {number(record.band, 3)} Hz, "
        f"the band of the first log, at its rate of {number(record.rate, 5)} Hz."
    )
    if estimate.signals.speed == "measured":
        text += " Here the speeds were taken as the log has them, and only accelerations are derived."
    return section(
        "differentiators",
        "Differentiation",
        paragraphs(text),
        table(f"Differentiators at the rate and band of {first}", heads, rows),
        _derivatives(estimate, view, first),
    )


def _derivatives(estimate: Fit, view: MotionView | None, log: str) -> Html:
    """Plain differences of positions beside what the equations use, for some seconds of the first log."""
    if view is None:
        return Html("")
    charts = []
    for j, (name, unit) in enumerate(zip(estimate.robot.joint_names, position_units(estimate.robot), strict=True)):
        for what, raw, used, each in (
            ("speed", view.raw_speed[:, j], view.speed[:, j], f"{unit}/s"),
            ("acceleration", view.raw_acceleration[:, j], view.acceleration[:, j], f"{unit}/s²"),
        ):
            curves = [
                Curve("differences of positions", view.raw_time, raw),
                Curve("in use", view.time, used, "predicted"),
            ]
            charts.append(chart(f"{name}: {what}", curves, x_unit="s", y_unit=each, key=f"{what}{j}"))
    summary = f"Raw and filtered derivatives, {number(float(np.ptp(view.time)), 2)} s of {log}"
    return element("details", element("summary", summary), element("div", *charts, class_="panels"))


def correlation_section(estimate: Fit) -> Html:
    """Which deviations are shown, and why they are larger than the textbook's."""
    text = (
        f"The deviations in this report {estimate.covariance_kind}. The textbook formula takes every row for an "
        "independent fact; where neighbouring residuals are alike, many rows weigh no more than one."
    )
    rows = [
        [name, number(max(float(factor), 1.0), 3, zeros=True), quantity(float(sigma), unit)]
        for name, factor, sigma, unit in zip(
            estimate.robot.joint_names, estimate.inflation, estimate.sigma, torque_units(estimate.robot), strict=True
        )
    ]
    heads = [Head("Joint"), Head("Rows per independent row", True), Head("Deviation of the residual", True)]
    parts = [paragraphs(text), table("Correlation of neighbouring residuals", heads, rows)]
    own = estimate.robot.coupling[np.ix_(estimate.robot.moving, estimate.robot.moving)]
    if not np.array_equal(own, np.eye(len(own))):
        parts.append(
            paragraphs("The motors of this robot are coupled: residuals are those at the motors.", class_="soft")
        )
    crossed = estimate.cross_validation
    if crossed is not None and crossed.coverage is not None:
        parts.append(
            paragraphs(
                "A check: values from what was left out and from the rest agree within two deviations of their "
                f"difference in {percent(crossed.coverage)} of the cases; 95 % if the deviations are right."
            )
        )
    return section("deviations", "Deviations", *parts, _white(estimate))


def _white(estimate: Fit) -> Html:
    """Deviations beside those for white noise."""
    rows, ratios = [], []
    for row in estimate.rows():
        std, white = row["std"], row["white_std"]
        known = row["determined"] and std is not None and white is not None and white > 0.0
        ratios += [std / white] if known else []
        shown = number(white, 2, zeros=True) if row["determined"] else number(None)
        rows.append(
            [
                row["name"],
                number(std, 2, zeros=True),
                shown,
                number(std / white, 3, zeros=True) if known else "",
                row["unit"],
            ]
        )
    heads = [
        Head("Parameter"),
        Head("Deviation", True),
        Head("If noise were white", True),
        Head("Ratio", True),
        Head("Unit"),
    ]
    middle = f", {number(float(np.median(ratios)), 2)} times as large on median" if ratios else ""
    summary = f"Deviations of {counted(len(rows), 'parameter')} beside those for white noise{middle}"
    return element("details", element("summary", summary), table("Deviations beside the textbook's", heads, rows))


def options_section(estimate: Fit, command: str) -> Html:
    """Everything that shaped the result, and how to make it again."""
    signals = dataclasses.asdict(estimate.signals)
    if signals["band"] is None:
        signals["band"] = "chosen from motion and noise of each log"
    else:
        signals["band"] = f"{number(signals['band'])} Hz"
    signals["delay"] = f"{number(1e3 * signals['delay'], 3)} ms"
    signals["rest_speed"] = f"{number(signals['rest_speed'])} rad/s or m/s"
    robot = estimate.robot
    rows = [
        ("Robot", f"{robot.name}, {counted(len(robot.joint_names), 'moving joint')}, from {robot.source}"),
        ("Terms", ", ".join(term.key_on(robot) for term in estimate.base.terms)),
        ("Estimator", estimate.estimator.name),
        *((_words(name), option(value)) for name, value in estimate.estimator.options.items()),
        ("Rank", f"{estimate.rank} of {counted(len(estimate.names), 'parameter')}"),
        ("Condition number", f"{number(estimate.condition, 3)}, of weighted data with scaled columns"),
        *((_words(name), option(value)) for name, value in signals.items()),
        *_recorded(estimate),
    ]
    listed = element("dl", *(part for name, value in rows for part in (element("dt", name), element("dd", value))))
    again = [paragraphs("The same result again:"), element("code", command, class_="command")] if command else []
    return section("options", "Options and provenance", listed, *again)


def _recorded(estimate: Fit) -> list[tuple[str, object]]:
    """Options as given, files with their hashes, and versions, as far as the estimate remembers them."""
    known = estimate.provenance or Provenance({}, {})
    rows: list[tuple[str, object]] = [("Options given", option(dict(known.options)))] if known.options else []
    for file in known.files:
        digest = file.sha256
        shown = element("code", digest[:_DIGEST], title=digest) if digest else "bundled with dynident"
        rows.append((f"File: {file.what}", joined([file.path, " ", shown])))
    named = {"dynident": estimate.version or "version not recorded", **known.versions}
    return [*rows, *named.items()]


def _words(name: str) -> str:
    return sentence(name.replace("_", " ")).rstrip(".")


# ----------------------------------------------------------------------------------------------------------------------
# The section of a report that says what the check of the training logs found.

_MARKS = {"ok": ("○", "good"), "warn": ("◐", "fair"), "stop": ("●", "weak")}
_ORDER = ("stop", "warn", "ok")
_TITLES = {
    "ok": "The logs were found sound before anything was solved.",
    "warn": "The logs were found usable before anything was solved; this is worth knowing.",
    "stop": "The check of the logs said stop, and was told to go on. The result is probably wrong.",
}


def check_section(estimate: Fit) -> Html:
    """What was found in the training logs before anything was solved; nothing where that was left out."""
    if estimate.diagnosis is None:
        return Html("")
    items = sorted(estimate.diagnosis.diagnostics, key=lambda one: _ORDER.index(one.severity))
    names = short_names([*estimate.data, *estimate.held_out])
    bad = [one for one in items if one.severity != "ok"]
    fine = [name for name in dict.fromkeys(one.name for one in items) if name not in {one.name for one in bad}]
    parts: list[object] = [paragraphs(_TITLES[estimate.diagnosis.severity])]
    if bad:
        heads = [Head("Item"), Head("Verdict"), Head("Log"), Head("What was seen", class_="text")]
        parts.append(table("Findings of the check", heads, [_cells(one, names) for one in bad]))
    if fine:
        parts.append(paragraphs(f"Looked at and found in order: {', '.join(fine)}."))
    return section("check", "Check of the logs", *parts)


def _cells(one: Diagnostic, names: Mapping[str, str]) -> list[object]:
    mark, style = _MARKS[one.severity]
    shown = element("span", element("b", mark, aria_hidden="true"), one.severity, class_=f"mark {style}")
    log, message = one.log, one.message
    for label, short in names.items():
        message = message.replace(label, short)
    return [
        one.name,
        shown,
        breakable(names.get(log, log) or "all"),
        f"{message}.",
    ]
