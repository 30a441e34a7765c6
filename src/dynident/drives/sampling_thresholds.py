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
        40, "times that a chain draws every coordinate: on puma560, 10, 40 and 160 differ by chance alone"
    )
    replayed: int = threshold(
        40, "samples that are replayed: 40 place a quantile of 5 % between the first and the third of them"
    )


THRESHOLDS = SamplingThresholds()
