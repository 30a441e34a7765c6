"""Numbers of the estimation that were calibrated: one place, one number per question."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EstimateThresholds:
    """Calibrated numbers of the estimation.

    Attributes:
        exact_rank: Share of the largest singular value below which a direction of exact experiments, or of relations
            between them, is rounding; relations between experiments are known to about 1e-11.
    """

    exact_rank: float = 1e-9


THRESHOLDS = EstimateThresholds()
