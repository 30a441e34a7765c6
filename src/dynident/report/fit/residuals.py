"""Residual tests: size, shape, scale and correlation of the residual, joint by joint."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dynident.arrays import Array
from dynident.estimate.fit import Fit
from dynident.estimate.torque_errors import Trace
from dynident.report.charts import Curve, chart
from dynident.report.html import Figure, Head, Part, Section, Table, Text
from dynident.report.text import number, percent, torque_units
from dynident.report.thresholds import THRESHOLDS

_BINS = 41  # of a histogram
_WIDE_STD = 4.0  # standard deviations on each side of it


def residuals_section(estimate: Fit, traces: Mapping[str, Trace]) -> Section | None:
    """The residual, and whether it looks like noise."""
    held_out = [label for label in traces if label in estimate.validation]
    shown = [traces[label] for label in held_out or traces]
    solved = estimate.predictive.solve  # whose residuals are shown
    found = None if solved is None else solved.variance_inflation
    inflations = estimate.inflation if found is None else found
    joints = zip(estimate.robot.joint_names, torque_units(estimate.robot), inflations, strict=True)
    rows, charts = [], []
    for j, (name, unit, inflation) in enumerate(joints if shown else ()):
        predicted = np.concatenate([trace.predicted[:, j] for trace in shown])
        residual = np.concatenate([trace.measured[:, j] for trace in shown]) - predicted
        known = np.isfinite(residual) & np.isfinite(predicted)
        if known.sum() >= THRESHOLDS.min_residuals:
            rows.append([name, *_tests(residual[known], predicted[known]), number(max(1.0, inflation), 3)])
            charts.append(_histogram(name, residual[known], unit, f"residual{j}"))
    if not rows:
        return None
    text = (
        f"Measured minus predicted torque of the {'held-out' if held_out else 'training'} logs. Noise alone would give "
        "a scale of zero, no tails, and a variance inflation of one. A scale that is not zero points to a torque "
        "constant or a mass; tails to friction at reversals or to single bad samples; a large variance inflation "
        "(samples per independent sample) to effects that the model does not have."
    )
    heads = [
        *(Head("Joint"), Head("Std", True), Head("Mean", True), Head("Scale", True), Head("Beyond 3 std", True)),
        *(Head("Tails", True), Head("Reads as", class_="text"), Head("Variance inflation", True)),
    ]
    parts: list[Part] = [Text(text), Table("Residual, by joint", heads, rows), *charts]
    return Section("residuals", "Residual tests", parts, "Residuals")


def _tests(residual: Array, predicted: Array) -> list[str]:
    """Standard deviation, mean, scale, share beyond three standard deviations, excess kurtosis; in words."""
    std, mean = float(residual.std()), float(residual.mean())
    spread = float(predicted.std())
    gain = float(np.mean((residual - mean) * (predicted - predicted.mean())) / spread**2) if spread > 0.0 else 0.0
    scaled = (residual - mean) / max(std, 1e-300)
    kurtosis = float(np.mean(scaled**4)) - 3.0
    beyond = float(np.mean(np.abs(scaled) > 3.0))
    found = {
        "torque scale": abs(gain) > THRESHOLDS.residual_gain,
        "offset": abs(mean) > THRESHOLDS.residual_offset * std,
        "rare large errors": kurtosis > THRESHOLDS.residual_kurtosis,
    }
    words = ", ".join(word for word, true in found.items() if true) or "like noise"
    return [number(std, 3), number(mean, 2), percent(gain), percent(beyond), number(kurtosis, 2), words]


def _histogram(name: str, residual: Array, unit: str, key: str) -> Figure:
    std = max(float(residual.std()), 1e-300)
    edges = np.linspace(-_WIDE_STD * std, _WIDE_STD * std, _BINS + 1)
    counts = np.histogram(residual, edges)[0] / len(residual) * _BINS / (2.0 * _WIDE_STD)
    middles = 0.5 * (edges[1:] + edges[:-1])
    normal = np.exp(-0.5 * (middles / std) ** 2) / np.sqrt(2.0 * np.pi)
    curves = [
        Curve("residual", middles, counts),
        Curve("Gaussian noise of the same size", middles, normal, "predicted"),
    ]
    return chart(f"{name}: density", curves, x_unit=unit, y_unit="per standard deviation", key=key)
