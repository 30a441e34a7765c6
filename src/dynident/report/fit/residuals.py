"""Residual tests: size, shape, scale, spectrum and correlation of the residual, joint by joint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
_SEGMENT = 256  # samples of a segment of the spectrum
_MIN_SEGMENT = 32  # samples; shorter stretches have no spectrum to speak of
_JITTER = 0.01  # share of the usual step beyond which a stretch of samples ends


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
            charts += _spectra(name, shown, j, unit)
    if not rows:
        return None
    text = (
        f"Measured minus predicted torque of the {'held-out' if held_out else 'training'} logs. Noise alone would give "
        "a scale of zero, no tails, and a variance inflation of one. A scale that is not zero points to a torque "
        "constant or a mass; tails to friction at reversals or to single bad samples; a large variance inflation "
        "(samples per independent sample) to effects that the model does not have. In the spectra, noise is flat up to "
        "the bandwidth; peaks are ripple or resonance, a rise at low frequencies friction or a wrong mass."
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


def _spectra(name: str, traces: Sequence[Trace], joint: int, unit: str) -> list[Figure]:
    """Power spectral density of the measured torque and of its residual [dB]; nothing where samples are too few."""
    measured = _power_density([(one.time, one.measured[:, joint]) for one in traces])
    residual = _power_density([(one.time, one.measured[:, joint] - one.predicted[:, joint]) for one in traces])
    if measured is None or residual is None:
        return []
    curves = [Curve("measured torque", *measured), Curve("residual", *residual, "residual")]
    title = f"{name}: power spectral density"
    return [chart(title, curves, x_unit="Hz", y_unit=f"dB re ({unit})²/Hz", key=f"spectrum{joint}")]


def _power_density(series: Sequence[tuple[Array, Array]]) -> tuple[Array, Array] | None:
    """Frequencies [Hz] and 10 lg of the one-sided power density (Welch 1967: Hann windows that overlap by half).

    Args:
        series: Time (n,) [s] and values (n,) of each log; stretches of equal steps are used.
    """
    steps = [np.diff(time) for time, _ in series if len(time) > 1]
    step = float(np.median(np.concatenate(steps))) if steps else 0.0
    stretches: list[Array] = []
    for time, values in series:
        known = np.isfinite(values)
        breaks = (np.abs(np.diff(time) - step) > _JITTER * step) | ~(known[1:] & known[:-1])
        stretches += np.split(values, np.flatnonzero(breaks) + 1)
    longest = max((len(one) for one in stretches), default=0)
    length = min(_SEGMENT, longest)
    if length < _MIN_SEGMENT:
        return None
    window = np.hanning(length + 1)[:-1]
    powers = [
        np.abs(np.fft.rfft((one[start : start + length] - one[start : start + length].mean()) * window)) ** 2
        for one in stretches
        for start in range(0, len(one) - length + 1, length // 2)
    ]
    density = 2.0 * step * np.mean(powers, axis=0) / np.sum(window**2)
    shown = slice(1, None)  # the mean was taken away
    frequencies = np.fft.rfftfreq(length, step)[shown]
    return np.asarray(frequencies), np.asarray(10.0 * np.log10(np.maximum(density[shown], 1e-300)))
