"""Tests of what the model leaves: size, shape, scale and drift of the residual, joint by joint."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dynident.arrays import Array
from dynident.estimate.fit import Fit
from dynident.estimate.torque_errors import Trace
from dynident.report.charts import Curve, chart
from dynident.report.html import Head, Html, element, paragraphs, section, table
from dynident.report.text import number, percent, torque_units

_BINS = 41
_WIDE = 4.0  # deviations on each side of the picture
_FEWEST = 50  # points of a joint for which a test means something
_GAIN = 0.02  # of the predicted torque, from which a scale error is worth a word
_TAILS = 1.0  # excess kurtosis from which there are more large errors than noise has


def residuals_section(estimate: Fit, traces: Mapping[str, Trace]) -> Html:
    """What is left of the torque, and whether it looks like noise."""
    if not traces:
        return Html("")
    held = [label for label in traces if label in estimate.validation]
    labels = held or list(traces)
    joints, units = estimate.robot.joint_names, torque_units(estimate.robot)
    rows, charts, shown = [], [], [traces[label] for label in labels]
    for j, (name, unit) in enumerate(zip(joints, units, strict=True)):
        predicted = np.concatenate([trace.predicted[:, j] for trace in shown])
        residual = np.concatenate([trace.measured[:, j] for trace in shown]) - predicted
        known = np.isfinite(residual) & np.isfinite(predicted)
        if known.sum() < _FEWEST:
            continue
        rows.append([name, *_numbers(residual[known], predicted[known]), number(max(1.0, estimate.inflation[j]), 3)])
        charts.append(_histogram(name, residual[known], unit, f"residual{j}"))
    if not rows:
        return Html("")
    which = "logs that were kept out" if held else "training logs"
    text = (
        f"Measured minus predicted torque of the {which}. Noise alone would give a scale of zero, no tails, and every "
        "row independent of the others. A scale that is not zero points to a torque constant or a mass; tails to "
        "friction at reversals or to single bad samples; many rows per independent row to effects that the model does "
        "not have."
    )
    heads = [
        *(
            Head("Joint"),
            Head("Deviation", True),
            Head("Mean", True),
            Head("Scale", True),
            Head("Beyond 3 deviations", True),
        ),
        *(Head("Tails", True), Head("Reads as", class_="text"), Head("Rows per independent row", True)),
    ]
    return section(
        "residuals",
        "Residual tests",
        paragraphs(text),
        table("What is left, by joint", heads, rows),
        element("div", *charts, class_="panels"),
    )


def _numbers(residual: Array, predicted: Array) -> list[str]:
    std, mean = float(residual.std()), float(residual.mean())
    spread = float(predicted.std())
    gain = float(np.mean((residual - mean) * (predicted - predicted.mean())) / spread**2) if spread > 0.0 else 0.0
    scaled = (residual - mean) / max(std, 1e-300)
    tails = float(np.mean(scaled**4)) - 3.0
    beyond = float(np.mean(np.abs(scaled) > 3.0))
    return [
        *(number(std, 3), number(mean, 2), percent(gain), percent(beyond), number(tails, 2)),
        _verdict(mean, std, gain, tails),
    ]


def _verdict(mean: float, std: float, gain: float, tails: float) -> str:
    found = []
    if abs(gain) > _GAIN:
        found.append("torque scale")
    if abs(mean) > 0.3 * std:
        found.append("offset")
    if tails > _TAILS:
        found.append("rare large errors")
    return ", ".join(found) or "like noise"


def _histogram(name: str, residual: Array, unit: str, key: str) -> Html:
    std = max(float(residual.std()), 1e-300)
    edges = np.linspace(-_WIDE * std, _WIDE * std, _BINS + 1)
    counts = np.histogram(residual, edges)[0] / len(residual) * _BINS / (2.0 * _WIDE)
    middles = 0.5 * (edges[1:] + edges[:-1])
    normal = np.exp(-0.5 * (middles / std) ** 2) / np.sqrt(2.0 * np.pi)
    curves = [Curve("residual", middles, counts), Curve("noise of the same size", middles, normal, "predicted")]
    return chart(f"{name}: how often", curves, x_unit=unit, y_unit="per deviation", key=key)
