"""Calibrated numbers of the estimation; rank of noisy logs and equations per parameter stand in `information`."""

from __future__ import annotations

from dataclasses import dataclass

from dynident.options import threshold


@dataclass(frozen=True)
class EstimateThresholds:
    """Where an estimate counts as significant, settled or useful."""

    exact_rank: float = threshold(
        1e-9,
        "share of the largest singular value below which a direction of exact experiments, or of relations between "
        "them, is rounding",
        calibrated="relations between experiments are known to about 1e-11",
    )
    insignificant_std: float = threshold(
        0.15,
        "relative standard deviation from which a parameter is not significant",
        calibrated="Gautier, Khalil, Restrepo 1995, section 4.3",
    )
    min_equations_to_eliminate: int = threshold(
        2, "equations per parameter, below which no standard deviation can be told from the residual"
    )
    negligible_autocorrelation: float = threshold(0.05, "autocorrelation of residuals that counts as none")
    max_lags: int = threshold(200, "lags of the autocorrelation, in rows", calibrated="fifty periods of the band")
    max_residuals: int = threshold(50_000, "residuals per channel that a median is taken of")
    bisquare_start_std: float = threshold(0.1, "change in standard deviations at which bisquare may follow Huber")
    min_slope: float = threshold(0.05, "mean slope of psi below which its curvature says nothing any more")
    energy_rows_per_parameter: float = threshold(10.0, "rows that intervals of no given length are cut for")
    min_energy_variance: float = threshold(0.01, "variance of an energy row over that of a typical one")
    friction_drift: float = threshold(0.03, "difference of the friction level between logs that is reported")
    friction_drift_std: float = threshold(3.1, "the same in standard deviations: a chance of one in a thousand")
    lack_of_fit_std: float = threshold(3.0, "standard deviations of chance beyond which residuals of repeats correlate")
    reported_lack_of_fit: float = threshold(1.2, "inflation by residuals that repeats have in common that is reported")
    max_useful_error: float = threshold(0.5, "relative torque error from which a model explains less than it misses")


THRESHOLDS = EstimateThresholds()
