"""The result of an identification: verdict, warnings, torque errors and torque over time."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.evaluate import joint_torque
from dynident.estimate.covariance import TORQUE_BAND_LEVEL, half_width
from dynident.estimate.fit import Fit
from dynident.estimate.torque_errors import TorqueErrors, Trace, together
from dynident.logs.read import short_names
from dynident.report.charts import bins_for, shown_time, torque_plot
from dynident.report.fit.trust import GRADES, KINDS, assess_fit, trust_counts, trust_mark
from dynident.report.html import (
    Head,
    Html,
    Part,
    Section,
    Table,
    Text,
    breakable,
    concatenate,
    element,
    figure,
    legend,
    with_code,
)
from dynident.report.text import (
    explained_variation,
    mean_fold_errors,
    number,
    per_joint,
    percent,
    plural,
    quantity,
    relative,
    rmse,
    sentence,
    torque_units,
)

_OPEN_LOGS = 1  # logs whose plots are open; those of the others are folded
_MAX_LOGS = 24  # logs with plots
_MAX_BYTES = 2_000_000  # of all traces of a page
_LEVELS = 32000  # of a trace, on each side of its middle


def log_names(estimate: Fit) -> dict[str, str]:
    """Short names of the logs of a fit by label; where they come from stands with the data."""
    return short_names([*estimate.data, *estimate.held_out])


def verdict_section(estimate: Fit) -> Section:
    """The answer, at the top."""
    found = assess_fit(estimate)
    counts = {trust: count for trust, count in trust_counts(estimate).items() if count}
    bar = [element("span", class_=KINDS[trust], style=f"flex:{count}") for trust, count in counts.items()]
    key = [element("li", trust_mark(trust), f": {count}") for trust, count in counts.items()]
    key.insert(0, element("li", f"{plural(len(estimate.names), 'parameter')}:"))
    verdict = found.verdict
    parts: list[Part] = [Text(found.sentences[0])]
    if verdict.reasons:
        parts.append(Text(with_code(f"Why {verdict.grade}: {'; '.join(verdict.reasons)}.")))
    parts += [Text(words, "caveat") for words in found.caveats]
    parts.append(Text(with_code(f"Next: {' '.join(sentence(step) for step in verdict.next_steps)}")))
    parts.append(element("div", *bar, class_="share", aria_hidden="true"))
    parts.append(element("ul", *key, class_="key", aria_label="Parameters by trust"))
    return Section("verdict", found.headline, parts, mark=GRADES[verdict.grade])


def answers_text(estimate: Fit) -> str:
    """What parameters and prediction are, where they are two answers; empty where they are one."""
    if estimate.one_answer:
        return ""
    priors = estimate.selection is not None and estimate.selection.weight is not None
    how = "its friction terms under empirical priors" if priors else "the friction terms that were asked for"
    return (
        "The fit holds two sets of values. Parameters are unbiased, from samples away from velocity reversals. "
        f"Predictions (torque errors, torque plots, friction) use all samples, {how}; do not interpret their single "
        "coefficients."
    )


def warnings_section(warnings: Sequence[str], title: str = "Warnings") -> Section | None:
    """What a reader should know; nothing when there is nothing."""
    return Section("warnings", title, [Text(words, "warning") for words in warnings], title) if warnings else None


# ----------------------------------------------------------------------------------------------------------------------
# Torque errors.


def errors_section(estimate: Fit) -> Section:
    """Reasons of the verdict, and errors joint by joint: before and after, on held-out logs, in cross-validation."""
    text = (
        "The relative torque error is the norm of the residual, measured minus predicted torque, over the norm of the "
        "measured torque, of each joint while it moves. Fit is the share of the torque's variation that is explained."
    )
    if estimate.signals.velocity_source == "measured":
        text += " On training data predictions use the measured velocities, on held-out logs position and time only."
    else:
        text += " Predictions use position and time only."
    reasons = [*assess_fit(estimate).sentences[1:], answers_text(estimate)]
    parts: list[Part] = [Text(words, on="page") for words in (*reasons, text) if words]
    parts.append(_joint_table(estimate))
    parts.append(Text(_columns_explained(estimate), "soft", on="terminal"))
    if estimate.nominal is None:
        words = "The robot's description gives no values of its own to compare with."
        parts.append(Text(words, "soft", on="page"))
    names = log_names(estimate)
    if len(estimate.validation) > 1:
        parts.append(_log_table(estimate, names))
    elif estimate.validation:
        (label,) = estimate.validation
        parts.append(Text(f"Held out: {names.get(label, label)}.", "soft", on="page"))
    crossed = estimate.cross_validation
    if crossed is not None:
        heads = [Head("Held-out fold"), Head("All joints", True), *_joint_heads(estimate)]
        folds = zip(crossed.labels, crossed.totals, crossed.errors.tolist(), strict=True)
        rows = [
            [names.get(label, label), percent(float(total)), *(percent(x or float("nan")) for x in own)]
            for label, total, own in folds
        ]
        table = Table(f"Cross-validation: relative torque error on held-out {crossed.over}", heads, rows, on="page")
        parts.append(Section("", f"Cross-validation, {len(rows)} {crossed.over}", [table]))
    return Section("errors", "What the verdict rests on", parts, "Errors")


def _joint_heads(estimate: Fit) -> list[Head]:
    return [Head(name, True) for name in estimate.robot.joint_names]


def _joint_table(estimate: Fit) -> Table:
    """One row per joint."""
    heads, columns, totals = [Head("Joint")], [list(estimate.robot.joint_names)], ["All joints"]

    def add(head: str, short: str, cells: Sequence[str], total: str = "") -> None:
        heads.append(Head(head, numeric=True, short=short))
        columns.append(list(cells))
        totals.append(total)

    def add_errors(head: str, short: str, errors: TorqueErrors) -> None:
        add(head, short, [percent(share) for share in per_joint(errors)], percent(relative(errors)))

    if estimate.nominal is not None:
        add_errors("Before: values of the robot file", "before", estimate.nominal)
    add_errors("After: training", "training", estimate.train)
    crossed = estimate.cross_validation
    if crossed is not None:
        shares = [percent(share) for share in mean_fold_errors(crossed)]
        add("After: cross-validation", "cross-val.", shares, percent(crossed.mean))
    evaluated, on = estimate.train, "training"
    if estimate.validation:
        evaluated, on = together(estimate.validation.values()), "held out"
        add_errors("After: held out", "held out", evaluated)
    add(f"RMS error, {on}", "RMS error", list(map(quantity, rmse(evaluated), torque_units(estimate.robot))))
    add(f"Fit, {on}", "", [percent(share) for share in explained_variation(evaluated)])
    caption = f"Relative torque error, joints in the order of q, up to {number(estimate.train.band, 3)} Hz"
    return Table(caption, heads, list(zip(*columns, strict=True)), totals, title="\nTorque error")


def _columns_explained(estimate: Fit) -> str:
    parts = ["before: values of the robot file"] if estimate.nominal is not None else []
    if estimate.cross_validation is not None:
        parts.append(f"cross-val.: held-out {estimate.cross_validation.over} in turn")
    parts.append(f"RMS error: {'held out' if estimate.validation else 'training'}")
    return sentence("; ".join(parts))


def _log_table(estimate: Fit, names: Mapping[str, str]) -> Table:
    """One row per held-out log."""

    def cells(name: str, errors: TorqueErrors) -> list[str]:
        return [name, f"{number(errors.band, 3)} Hz", percent(relative(errors)), *map(percent, per_joint(errors))]

    heads = [Head("Log"), Head("Band", True), Head("All joints", True), *_joint_heads(estimate)]
    rows = [cells(names.get(label, label), errors) for label, errors in estimate.validation.items()]
    last = cells("All logs", together(estimate.validation.values()))
    return Table("Relative torque error on held-out logs", heads, rows, last, on="page")


# ----------------------------------------------------------------------------------------------------------------------
# Torque over time, drawn, and as data for the page's script.


def torque_section(estimate: Fit, traces: Mapping[str, Trace]) -> Section:
    """Measured and predicted torque of every log; held-out logs come first."""
    if not traces:
        text = "The file report.npz that identify writes beside fit.yaml is not there, so there is no torque to show."
        return Section("torque", "Torque over time", [Text(text)], "Torque")
    rest = "Errors count a joint only while it moves: at rest, friction decides what its motor holds."
    marks = legend(
        ("measured", "measured (wide line)"),
        ("predicted", "predicted (thin line)"),
        ("band", f"{100.0 * TORQUE_BAND_LEVEL:.0f} % band of the residual on held-out data, around the prediction"),
        ("residual", "residual, measured minus predicted, on a scale of its own"),
    )
    labels = sorted(traces, key=lambda label: label not in estimate.validation)
    shown = {label: traces[label] for label in labels[:_MAX_LOGS]}
    halves = _band_halves(estimate)
    parts: list[Part] = [Text(rest), marks, *_log_plots(estimate, shown, halves)]
    if len(labels) > _MAX_LOGS:
        parts.append(Text(f"{plural(len(labels) - _MAX_LOGS, 'more log')} not shown.", "soft"))
    return Section("torque", "Torque over time", [*parts, _traces_data(estimate, shown, halves)], "Torque")


def _band_halves(estimate: Fit) -> Array:
    """(n_joints,) half width of the torque bands, from the residual on held-out data [N·m or N]."""
    sums = joint_torque(estimate.robot, np.eye(len(estimate.robot.joint_names))).T
    return np.asarray(half_width(TORQUE_BAND_LEVEL) * np.sqrt(sums**2 @ np.nan_to_num(estimate.levels) ** 2))


def _log_plots(estimate: Fit, traces: Mapping[str, Trace], halves: Array) -> Iterator[Html]:
    """The plots of all joints, log by log."""
    joints, names = estimate.robot.joint_names, log_names(estimate)
    bins = bins_for(3 * len(traces) * len(joints))
    for place, (label, trace) in enumerate(traces.items()):
        held_out = label in estimate.validation
        tag = element("span", "held out" if held_out else "training", class_="tag unseen" if held_out else "tag")
        error = f", error {percent(relative(estimate.validation[label]))} " if held_out else " "
        name, panels = names.get(label, label), []
        for j, (joint, unit) in enumerate(zip(joints, torque_units(estimate.robot), strict=True)):
            key, words = f"plot{place}-{j}", f"{joint} in {name}"
            plot = torque_plot(trace, j, half=halves[j], name=words, unit=unit, key=key, bins=bins)
            caption = concatenate([joint, " ", element("span", f"[{unit}]")])
            panels.append(figure(caption, plot, data_log=place, data_joint=j))
        whole, head = ("div", "h3") if place < _OPEN_LOGS else ("details", "summary")
        yield element(whole, element(head, breakable(name), error, tag), element("div", *panels, class_="panels"))


def _traces_data(estimate: Fit, traces: Mapping[str, Trace], halves: Array) -> Html:
    """What the plots of some logs show, from which the script draws a part of it larger."""
    joints = estimate.robot.joint_names
    points = int(_MAX_BYTES / (len(traces) * (4 + 4 * len(joints)) * 4 / 3))
    logs = []
    for trace in traces.values():
        thinned = slice(None, None, max(1, -(-len(trace.time) // points)))
        time = shown_time(trace.time)[thinned]
        rows = zip(trace.measured[thinned].T, trace.predicted[thinned].T, halves.tolist(), strict=True)
        start = float(time[0]) if len(time) else 0.0
        logs.append({"start": start, "t": _encode(time - start, "<f4"), "joints": [_joint_data(*row) for row in rows]})
    text = json.dumps({"joints": list(joints), "logs": logs}, allow_nan=False).replace("<", "\\u003c")
    return Html(f'<script type="application/json" id="traces">{text}</script>\n')


def _joint_data(measured: Array, predicted: Array, half: float) -> dict[str, Any]:
    """Measured and predicted torque of a joint on a common scale, as whole numbers of 16 bits."""
    both = np.nan_to_num(np.stack([measured, predicted]))
    low, high = (float(both.min()), float(both.max())) if both.size else (0.0, 0.0)
    middle, step = 0.5 * (low + high), max(0.5 * (high - low), 1e-12) / _LEVELS
    m, p = (_encode(np.rint((row - middle) / step), "<i2") for row in both)
    return {"middle": middle, "step": step, "half": half, "m": m, "p": p}


def _encode(values: Array, kind: str) -> str:
    return base64.b64encode(values.astype(kind).tobytes()).decode()
