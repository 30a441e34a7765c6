"""Torque over time as data for the page's script: whole numbers of 16 bits, so that a page stays small."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.estimate.covariance import LEVEL
from dynident.estimate.fit import Fit
from dynident.estimate.records import CrossValidation
from dynident.estimate.torque_errors import TorqueErrors, Trace, together
from dynident.logs.read import short_names
from dynident.report.charts import columns_for, shown_time, torque_plot
from dynident.report.fit.parameters import trust_map
from dynident.report.fit.trust import TRUST, Trust, trust_counts, trust_of, verdict
from dynident.report.html import Head, Html, breakable, bullets, element, joined, paragraphs, section, table
from dynident.report.text import (
    band_halves,
    counted,
    fit,
    left_out_per_joint,
    number,
    per_joint,
    percent,
    quantity,
    relative,
    rmse,
    sentence,
    torque_units,
)

MOST_BYTES = 2_000_000  # of all traces of a page
_LEVELS = 32000  # on each side of the middle


def traces_data(estimate: Fit, traces: Mapping[str, Trace]) -> Html:
    """What the plots of some logs show, from which the script draws a part of it larger."""
    joints = estimate.robot.joint_names
    halves = band_halves(estimate)
    points = int(MOST_BYTES / (len(traces) * (4 + 4 * len(joints)) * 4 / 3))
    logs = []
    for trace in traces.values():
        kept = slice(None, None, max(1, -(-len(trace.time) // points)))
        time = shown_time(trace.time)[kept]
        rows = zip(trace.measured[kept].T, trace.predicted[kept].T, halves.tolist(), strict=True)
        start = float(time[0]) if len(time) else 0.0
        logs.append({"start": start, "t": _text(time - start, "<f4"), "joints": [_joint(*row) for row in rows]})
    text = json.dumps({"joints": list(joints), "logs": logs}, allow_nan=False).replace("<", "\\u003c")
    return Html(f'<script type="application/json" id="traces">{text}</script>\n')


def _joint(measured: Array, predicted: Array, half: float) -> dict[str, Any]:
    """Measured and predicted torque of a joint on a common scale."""
    both = np.nan_to_num(np.stack([measured, predicted]))
    low, high = (float(both.min()), float(both.max())) if both.size else (0.0, 0.0)
    middle, step = 0.5 * (low + high), max(0.5 * (high - low), 1e-12) / _LEVELS
    m, p = (_text(np.rint((row - middle) / step), "<i2") for row in both)
    return {"middle": middle, "step": step, "half": half, "m": m, "p": p}


def _text(values: Array, kind: str) -> str:
    return base64.b64encode(values.astype(kind).tobytes()).decode()


# ----------------------------------------------------------------------------------------------------------------------
# What was found: verdict, warnings, errors, torque and parameters; one function for each section of the page.

OPEN_LOGS = 4  # logs whose plots are open; those of the others are folded
MOST_LOGS = 24  # logs with plots
_MARKS = {"good": "●●●", "fair": "●●○", "weak": "●○○", "not determined": "○○○"}
_CLASSES = {"good": "good", "fair": "fair", "weak": "weak", "not determined": "none"}
_MEANINGS = {
    "good": "deviation below 5 % of the value",
    "fair": "below 15 %",
    "weak": "15 % or more",
    "not determined": "the data says nothing about it by itself",
}


def verdict_section(estimate: Fit) -> Html:
    """The answer, at the top."""
    found = verdict(estimate)
    counts = {trust: count for trust, count in trust_counts(estimate).items() if count}
    bar = [element("span", class_=_CLASSES[trust], style=f"flex:{count}") for trust, count in counts.items()]
    key = [element("li", _mark(trust), f": {count}") for trust, count in counts.items()]
    return element(
        "section",
        element("h2", found.headline),
        paragraphs(*found.sentences),
        joined(element("p", caveat, class_="caveat") for caveat in found.caveats),
        element("div", *bar, class_="share", aria_hidden="true"),
        element("ul", *key, class_="key", aria_label="Parameters by trust"),
        id="verdict",
        class_="verdict",
    )


def _mark(trust: Trust) -> Html:
    dots = element("b", _MARKS[trust], aria_hidden="true")
    return element("span", dots, trust, class_=f"mark {_CLASSES[trust]}")


def warnings_section(estimate: Fit) -> Html:
    """What a reader should know; nothing when there is nothing."""
    if not estimate.warnings:
        return Html("")
    return section("warnings", "Warnings", element("div", bullets(map(sentence, estimate.warnings)), class_="warnings"))


def errors_section(estimate: Fit) -> Html:
    """Errors joint by joint: before and after, on held-out logs, on what was left out in turn."""
    text = (
        "Relative error is the norm of measured minus predicted torque over the norm of the measured torque, of each "
        "joint while it moves. Fit is the share of the torque's variation that is explained."
    )
    if estimate.signals.speed == "measured":
        text += " On training data predictions use the measured speeds, on held-out logs position and time only."
    else:
        text += " Predictions use position and time only."
    parts = [paragraphs(text), _joint_errors(estimate)]
    if estimate.nominal is None:
        parts.append(paragraphs("The robot's description gives no values of its own to compare with.", class_="soft"))
    if estimate.validation:
        names = _names(estimate)
        heading = "Relative error on logs that were kept out of the identification"
        rows = [
            (names.get(label, label), errors.band, relative(errors), per_joint(errors))
            for label, errors in estimate.validation.items()
        ]
        if len(rows) > 1:
            parts.append(_by_log(estimate, heading, rows))
        else:
            parts.append(paragraphs(f"Held out: {rows[0][0]}.", class_="soft"))
    if estimate.cross_validation is not None:
        parts.append(_folds(estimate, estimate.cross_validation))
    return section("errors", "Errors per joint", *parts)


def _joint_errors(estimate: Fit) -> Html:
    """One row per joint."""
    heads, columns, totals = [Head("Joint")], [list(estimate.robot.joint_names)], ["All joints"]

    def add(head: str, cells: list[str], total: str) -> None:
        heads.append(Head(head, numeric=True))
        columns.append(cells)
        totals.append(total)

    def add_errors(head: str, errors: TorqueErrors) -> None:
        add(head, [percent(share) for share in per_joint(errors)], percent(relative(errors)))

    if estimate.nominal is not None:
        add_errors("Before: values of its description", estimate.nominal)
    add_errors("After: training", estimate.train)
    if estimate.cross_validation is not None:
        crossed = estimate.cross_validation
        add("After: left out in turn", [percent(x) for x in left_out_per_joint(crossed)], percent(crossed.mean))
    judged, on = estimate.train, "training"
    if estimate.validation:
        judged, on = together(estimate.validation.values()), "held out"
        add_errors("After: held out", judged)
    units = torque_units(estimate.robot)
    add(f"RMS error, {on}", list(map(quantity, rmse(judged), units)), "")
    add(f"Fit, {on}", [percent(share) for share in fit(judged)], "")
    return table(
        f"Relative torque error, joints in the order of q, up to {number(estimate.train.band, 3)} Hz",
        heads,
        list(zip(*columns, strict=True)),
        last=totals,
    )


def _by_log(estimate: Fit, caption: str, rows: list[tuple[str, float, float, Array]]) -> Html:
    heads = [Head("Log"), Head("Band", True), Head("All joints", True)]
    heads += [Head(name, True) for name in estimate.robot.joint_names]

    def cells(name: str, band: float, error: float, joints: Array) -> list[str]:
        return [name, f"{number(band, 3)} Hz", percent(error), *map(percent, joints)]

    every = together(estimate.validation.values())
    last = cells("All logs", every.band, relative(every), per_joint(every))
    return table(caption, heads, [cells(*row) for row in rows], last=last)


def _folds(estimate: Fit, crossed: CrossValidation) -> Html:
    names = _names(estimate)
    heads = [Head("Left out"), Head("All joints", True), *(Head(name, True) for name in estimate.robot.joint_names)]
    rows = [
        [names.get(label, label), percent(float(total)), *(percent(x or float("nan")) for x in own)]
        for label, total, own in zip(crossed.labels, crossed.totals, crossed.errors.tolist(), strict=True)
    ]
    own = table(f"Cross-validation: relative error on {crossed.over} left out in turn", heads, rows)
    return element("details", element("summary", f"Cross-validation, {len(rows)} {crossed.over}"), own)


def torque_section(estimate: Fit, traces: Mapping[str, Trace]) -> Html:
    """Measured against predicted torque of every log; logs that were kept out come first."""
    if not traces:
        text = "The file report.npz that identify writes beside fit.yaml is not there, so there is no torque to show."
        return section("torque", "Torque over time", paragraphs(text))
    legend = element(
        "ul",
        *(
            element("li", element("i", class_=kind, aria_hidden="true"), words)
            for kind, words in (
                ("measured", "measured (wide line)"),
                ("predicted", "predicted (thin line)"),
                ("band", f"where {100.0 * LEVEL:.0f} % of the torque of data left out lay around the prediction"),
                ("residual", "residual, measured minus predicted, on a scale of its own"),
            )
        ),
        class_="legend",
    )
    rest = paragraphs(
        "The errors above count a joint only while it moves: at rest, friction decides what its motor holds."
    )
    labels = sorted(traces, key=lambda label: label not in estimate.validation)
    shown = {label: traces[label] for label in labels[:MOST_LOGS]}
    parts: list[Html] = list(_logs(estimate, shown))
    if len(labels) > MOST_LOGS:
        parts.append(paragraphs(f"{counted(len(labels) - MOST_LOGS, 'more log')} not shown.", class_="soft"))
    return section("torque", "Torque over time", rest, legend, *parts, traces_data(estimate, shown))


def _logs(estimate: Fit, traces: Mapping[str, Trace]) -> Iterator[Html]:
    columns, names = columns_for(3 * len(traces) * len(estimate.robot.joint_names)), _names(estimate)
    for place, (label, trace) in enumerate(traces.items()):
        unseen = label in estimate.validation
        tag = element("span", "held out" if unseen else "training", class_="tag unseen" if unseen else "tag")
        error = f", error {percent(relative(estimate.validation[label]))} " if unseen else " "
        name = names.get(label, label)
        panels = element("div", *_panels(estimate, trace, name, place, columns), class_="panels")
        if place < OPEN_LOGS:
            yield element("div", element("h3", breakable(name), error, tag), panels)
        else:
            yield element("details", element("summary", breakable(name), error, tag), panels)


def _names(estimate: Fit) -> dict[str, str]:
    """Short names of the logs by label; where they come from stands with the data."""
    return short_names([*estimate.data, *estimate.held_out])


def _panels(estimate: Fit, trace: Trace, label: str, place: int, columns: int) -> Iterator[Html]:
    joints, units = estimate.robot.joint_names, torque_units(estimate.robot)
    halves = band_halves(estimate)
    for j, (joint, unit) in enumerate(zip(joints, units, strict=True)):
        name = f"{joint} in {label}"
        key = f"plot{place}-{j}"
        plot = torque_plot(trace, j, half=halves[j], name=name, unit=unit, key=key, columns=columns)
        caption = element("figcaption", joint, " ", element("span", f"[{unit}]"))
        yield element("figure", caption, plot, data_log=place, data_joint=j)


def parameters_section(estimate: Fit) -> Html:
    """Every base parameter with what is known about it."""
    text = (
        "Base parameters are the combinations of standard parameters that joint torque can tell. Inertia and first "
        "moments are in link frames, about the frame's origin. Deviations "
        f"{estimate.covariance_kind}. A value below twice its deviation cannot be told from zero: the motion did not "
        "show enough of it, or there is little of it."
    )
    key = [element("li", _mark(trust), f": {_MEANINGS[trust]}") for trust in TRUST]
    heads = [
        *(Head("Parameter"), Head("Trust"), Head("Value", True), Head("Deviation", True), Head("Relative", True)),
        *(Head("Unit"), Head("Stands for", class_="long"), Head("Category")),
    ]
    rows = []
    for row, index in zip(estimate.rows(), estimate.base.independent, strict=True):
        meaning = sentence(estimate.base.columns[index].meaning).rstrip(".")
        combined = [element("code", row["expression"])] if row["expression"] != row["name"] else []
        rows.append(
            [
                *(
                    row["name"],
                    _mark(trust_of(row)),
                    number(row["value"], zeros=True),
                    number(row["std"], 2, zeros=True),
                ),
                *(percent(row["relative_std"]), row["unit"], joined([meaning, *combined]), row["category"]),
            ]
        )
    caption = f"{counted(len(rows), 'base parameter')}, links from the base outwards"
    return section(
        "parameters",
        "Parameters",
        trust_map(estimate),
        element("h3", "Base parameters"),
        paragraphs(text),
        element("ul", *key, class_="key"),
        table(caption, heads, rows),
    )
