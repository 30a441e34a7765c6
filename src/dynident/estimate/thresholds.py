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
        2, "equations per parameter, below which no standard deviation can be distinguished from the residual"
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
    refuted_inflation: float = threshold(
        6.0,
        "rows that weigh as one independent row in the median channel, from which residuals refute basic friction",
        calibrated="twice what filtered white noise gives (2.3 to 3.4); a UR10e has 16",
    )
    lack_of_fit_std: float = threshold(3.0, "standard deviations of chance beyond which residuals of repeats correlate")
    reported_lack_of_fit: float = threshold(1.2, "inflation by residuals that repeats have in common that is reported")
    correlated_rows: float = threshold(4.0, "neighboring rows that weigh as one where scales of priors are chosen")
    softening: float = threshold(
        0.3,
        "share of the largest residual standard deviation that every channel has at least, in quadrature",
        calibrated="44 scenarios of six robots: 0.6 costs joints that carry little, 0 lets them decide the others",
    )
    basic_scale: float = threshold(10.0, "of basic parameters to begin with, in units of the torque: as good as free")
    extra_scale: float = threshold(0.05, "of other columns to begin with: small, so that basic ones come first")
    first_residual: float = threshold(0.1, "share of a channel's torque that its residual is to begin with")
    least_residual: float = threshold(1e-6, "share of a channel's torque that no residual is trusted to lie below")
    least_drive: float = threshold(
        0.01,
        "share of the largest torque up to which a joint's terms may cancel: passive, or next to it",
    )
    least_excitation: float = threshold(
        0.1, "share of the largest column of its group that a column counts as at least where its scale is chosen"
    )
    settled_scale: float = threshold(
        0.02, "change of a scale's logarithm, times the coefficients it is determined by, that counts as none"
    )
    settled_residual: float = threshold(2e-3, "change of a residual deviation's logarithm that counts as none")
    max_useful_error: float = threshold(0.5, "relative torque error from which a model explains less than it misses")

    lubricant_spread: float = threshold(
        0.25,
        "spread of viscous friction between logs that is expected, relative",
        calibrated="lubricants lose 2 to 4 % of their viscosity per kelvin, and robots warm up by some ten kelvin",
    )


THRESHOLDS = EstimateThresholds()
