"""Numbers of the estimation that were calibrated: one place, one number per question."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EstimateThresholds:
    """Calibrated numbers of the estimation.

    Attributes:
        exact_rank: Share of the largest singular value below which a direction of exact experiments, or of relations
            between them, is rounding; relations between experiments are known to about 1e-11.
        insignificant_std: Relative standard deviation from which a parameter is not significant (Gautier, Khalil,
            Restrepo 1995, section 4.3).
        equations_per_parameter_to_eliminate: Fewer leave a residual from which no standard deviation can be told.
    """

    exact_rank: float = 1e-9
    insignificant_std: float = 0.15
    equations_per_parameter_to_eliminate: int = 2


THRESHOLDS = EstimateThresholds()
