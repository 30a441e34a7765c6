"""Calibrated numbers of samples from a posterior."""

from __future__ import annotations

from dataclasses import dataclass

from dynident.options import threshold


@dataclass(frozen=True)
class SamplingThresholds:
    """Numbers of `sample_models`."""

    most_tries: int = threshold(
        20, "draws of the Gaussian for each sample, after which chains go on: they cost as much as some hundred"
    )
    sweeps: int = threshold(
        40,
        "times that a chain draws every coordinate",
        calibrated="puma560, 300 samples each: means after 40 and after 160 differ by 0.108 standard deviations "
        "rms, where chance alone makes 0.082, so that 40 are enough for ranges and not for fine comparisons",
    )
    replayed: int = threshold(
        40, "samples that are replayed: 40 place a quantile of 5 % between the first and the third of them"
    )


THRESHOLDS = SamplingThresholds()
