"""Where the result comes from: decisions, data, filters, covariance, options; one function for each section."""

from __future__ import annotations

import dataclasses

import numpy as np

from dynident.estimate.fit import Fit
from dynident.estimate.records import LogRecord, Provenance
from dynident.report.charts import Curve, chart
from dynident.report.diagnosis import diagnosis_section
from dynident.report.fit.summary import log_names
from dynident.report.html import (
    Figure,
    Head,
    Part,
    Section,
    Table,
    Text,
    breakable,
    concatenate,
    definitions,
    element,
)
from dynident.report.plot_data import MotionView
from dynident.report.text import (
    number,
    option,
    percent,
    plural,
    position_units,
    quantity,
    sentence,
    torque_units,
    whole,
)
from dynident.signals.kernels import CENTRAL, FIVE_POINT, FIVE_POINT_CAUSAL, NINE_POINT, differentiator_table
from dynident.validation.thresholds import THRESHOLDS as VALIDATION

_DIGEST = 12  # characters of a hash that are shown
_KERNELS = {
    "central": CENTRAL.name,
    "five-point": FIVE_POINT.name,
    "five-point causal": FIVE_POINT_CAUSAL.name,
    "savitzky-golay": NINE_POINT.name,
}


def notes_section(estimate: Fit) -> Section | None:
    """What the pipeline decided."""
    notes = [Text(sentence(note), "item") for note in estimate.notes]
    return Section("decisions", "Decisions of the pipeline", notes, "Decisions") if notes else None


def check_section(estimate: Fit) -> Section | None:
    """Diagnostics of the training logs before the fit; nothing where they were turned off."""
    return None if estimate.diagnosis is None else diagnosis_section(estimate.diagnosis, log_names(estimate))


def data_section(estimate: Fit) -> Section:
    """The training and the held-out logs."""
    heads = [
        *(Head("Log"), Head("Samples", True), Head("Duration", True), Head("Rate", True), Head("Band", True)),
        *(Head("Repeated rows", True), Head("Gaps", True), Head("Time stamps", class_="text"), Head("Hash")),
    ]
    names, data = log_names(estimate), estimate.data
    last = ["All logs", whole(sum(r.n_samples for r in data)), _seconds(sum(r.duration for r in data)), "", ""]
    last += [whole(sum(r.repeated for r in data)), str(sum(r.gaps for r in data)), "", ""]
    rows = [_log_cells(record, names[record.label]) for record in data]
    parts = [Table("Training logs", heads, rows, last if len(rows) > 1 else ())]
    if estimate.validation:
        held_out = [_log_cells(record, names[record.label]) for record in estimate.held_out]
        parts.append(Table("Held-out logs, for validation", heads, held_out))
    return Section("data", "Data", parts, "Data")


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


def differentiators_section(estimate: Fit, view: MotionView | None) -> Section | None:
    """What differentiation does to the first log."""
    if not estimate.data:
        return None
    record, used = estimate.data[0], estimate.signals.differentiator
    first = log_names(estimate)[record.label]
    rows = []
    for row in differentiator_table(record.rate, record.band):
        kernel = str(row["name"])
        in_use = kernel == _KERNELS.get(used) or (used == "low-pass" and kernel.startswith(used))
        name = sentence(kernel).rstrip(".'")  # the prime of a derivative means little here
        tag = [" ", element("span", "in use", class_="tag")] if in_use else []
        numbers = (number(float(row[key]), 3, zeros=True) for key in ("noise", "amplitude"))
        phase = f"{number(round(float(row['phase']), 3) + 0.0, 3)}°"
        rows.append([concatenate([name, *tag]), *numbers, phase])
    heads = [Head("Differentiator"), Head("Noise gain [1/s]", True), Head("Amplitude at the band edge", True)]
    heads.append(Head("Phase error", True))
    text = (
        "Velocities and accelerations are derived from positions. Noise gain is the noise of the velocity for position "
        f"noise of one unit; amplitude (one is exact) and phase error (zero is exact) are at {number(record.band, 3)} "
        f"Hz, the bandwidth of the first log, at its rate of {number(record.rate, 5)} Hz."
    )
    if estimate.signals.velocity_source == "measured":
        text += " Here the velocities were taken as measured, and only accelerations are derived."
    parts: list[Part] = [Text(text)]
    parts.append(Table(f"Differentiators at the rate and bandwidth of {first}", heads, rows))
    if view is not None:
        summary = f"Raw and filtered derivatives, {number(float(np.ptp(view.time)), 2)} s of {first}"
        parts.append(Section("", summary, _derivatives(estimate, view)))
    return Section("differentiators", "Differentiation", parts, "Differentiation")


def _derivatives(estimate: Fit, view: MotionView) -> list[Figure]:
    """Plain differences of positions beside what the equations use, for some seconds of the first log."""
    charts = []
    for j, (name, unit) in enumerate(zip(estimate.robot.joint_names, position_units(estimate.robot), strict=True)):
        for what, raw, used, each in (
            ("velocity", view.raw_velocity[:, j], view.velocity[:, j], f"{unit}/s"),
            ("acceleration", view.raw_acceleration[:, j], view.acceleration[:, j], f"{unit}/s²"),
        ):
            curves = [
                Curve("differences of positions", view.raw_time, raw),
                Curve("in use", view.time, used, "predicted"),
            ]
            charts.append(chart(f"{name}: {what}", curves, x_unit="s", y_unit=each, key=f"{what}{j}"))
    return charts


def uncertainty_section(estimate: Fit) -> Section:
    """Which standard deviations are shown, and why they are larger than those for white noise."""
    text = (
        f"The standard deviations in this report {estimate.covariance_kind}. The ordinary least-squares formula takes "
        "every row as independent; where neighboring residuals are correlated, many rows carry no more information "
        "than one (variance inflation)."
    )
    joints = zip(
        estimate.robot.joint_names, estimate.inflation, estimate.sigma, torque_units(estimate.robot), strict=True
    )
    rows = [
        [name, number(max(float(factor), 1.0), 3, zeros=True), quantity(float(sigma), unit)]
        for name, factor, sigma, unit in joints
    ]
    heads = [Head("Joint"), Head("Variance inflation", True), Head("Std of the residual", True)]
    parts: list[Part] = [Text(text), Table("Autocorrelation of the residual", heads, rows)]
    own = estimate.robot.coupling[np.ix_(estimate.robot.moving, estimate.robot.moving)]
    if not np.array_equal(own, np.eye(len(own))):
        parts.append(Text("The motors of this robot are coupled: residuals are those at the motors.", "soft"))
    crossed = estimate.cross_validation
    if crossed is not None and crossed.coverage is not None:
        words = (
            "A check: estimates from the held-out fold and from the rest agree within two standard deviations of their "
            f"difference in {percent(crossed.coverage)} of the cases; 95 % if the uncertainties are calibrated."
        )
        parts.append(Text(words))
    parts += [Text(words) for words in (_intervals_text(estimate),) if words]
    title = "Calibrated uncertainties"
    return Section("deviations", title, [*parts, _white_noise_std(estimate)], "Uncertainties")


def _intervals_text(estimate: Fit) -> str:
    """How intervals of torque cover what was held out, and what was done where they are too narrow."""
    crossed = estimate.cross_validation
    if crossed is None or crossed.interval_coverage is None or not np.isfinite(crossed.interval_coverage).any():
        return ""
    covered, joints = crossed.interval_coverage, estimate.robot.joint_names
    text = (
        "Torque: intervals of two standard deviations, with the training residual for noise, hold "
        f"{percent(float(np.nanmean(covered)))} of the torque on held-out folds; 95 % if they are calibrated."
    )
    narrow = np.flatnonzero(covered < VALIDATION.min_interval_coverage)
    if not len(narrow):
        return text
    wider = estimate.levels / np.maximum(estimate.predictive.sigma, 1e-300)
    shown = ", ".join(f"{joints[i]} {number(wider[i], 2)} times ({percent(float(covered[i]))} held)" for i in narrow)
    return f"{text} Those of some joints are too narrow and have been widened from cross-validation: {shown}."


def _white_noise_std(estimate: Fit) -> Section:
    """Standard deviations beside those for white noise."""
    rows, ratios = [], []
    for row in estimate.rows():
        std, white = row["std"], row["white_std"]
        known = row["determined"] and std is not None and white is not None and white > 0.0
        ratios += [std / white] if known else []
        shown = number(white, 2, zeros=True) if row["determined"] else number(None)
        ratio = number(std / white, 3, zeros=True) if known else ""
        rows.append([row["name"], number(std, 2, zeros=True), shown, ratio, row["unit"]])
    heads = [Head("Parameter"), Head("Std", True), Head("If noise were white", True), Head("Ratio", True), Head("Unit")]
    middle = f", {number(float(np.median(ratios)), 2)} times as large on median" if ratios else ""
    summary = f"Standard deviations of {plural(len(rows), 'parameter')} beside those for white noise{middle}"
    return Section("", summary, [Table("Standard deviations, robust and for white noise", heads, rows)])


def options_section(estimate: Fit, command: str) -> Section:
    """Everything that shaped the result, and how to make it again."""
    signals = dataclasses.asdict(estimate.signals)
    band = signals["band"]
    signals["band"] = "chosen from motion and noise of each log" if band is None else f"{number(band)} Hz"
    signals["delay"] = f"{number(1e3 * signals['delay'], 3)} ms"
    signals["rest_velocity"] = f"{number(signals['rest_velocity'])} rad/s or m/s"
    robot = estimate.robot
    predicting = [term.key_on(robot) for term in estimate.predictive_base.terms]
    rows: list[tuple[object, object]] = [
        ("Robot", f"{robot.name}, {plural(len(robot.joint_names), 'moving joint')}, from {robot.source}"),
        ("Terms", ", ".join(term.key_on(robot) for term in estimate.base.terms)),
        *([] if estimate.one_answer else [("Terms of the prediction", ", ".join(map(str, predicting)))]),
        ("Estimator", estimate.estimator.name),
        *((_title(name), option(value)) for name, value in estimate.estimator.options.items()),
        ("Rank", f"{estimate.rank} of {plural(len(estimate.names), 'parameter')}"),
        ("Condition number", f"{number(estimate.condition, 3)}, of weighted data with scaled columns"),
        *((_title(name), option(value)) for name, value in signals.items()),
    ]
    known = estimate.provenance or Provenance({}, {})
    rows += [("Options given", option(dict(known.options)))] if known.options else []
    for file in known.files:
        digest = file.sha256
        shown = element("code", digest[:_DIGEST], title=digest) if digest else "bundled with dynident"
        rows.append((f"File: {file.what}", concatenate([file.path, " ", shown])))
    rows += {"dynident": estimate.version or "version not recorded", **known.versions}.items()
    parts: list[Part] = [definitions(rows)]
    if command:
        parts += [Text("The same result again:"), element("code", command, class_="command")]
    return Section("options", "Options and provenance", parts, "Options")


def _title(name: str) -> str:
    return sentence(name.replace("_", " ")).rstrip(".")
