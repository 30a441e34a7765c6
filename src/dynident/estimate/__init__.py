"""Estimation on observations and their factors."""

from dynident.estimate.choices import DelayChoice, SpeedChoice, choose_delay, choose_speed
from dynident.estimate.estimators import (
    ESTIMATORS,
    Estimator,
    NotFittedError,
    OrdinaryLeastSquares,
    PriorLeastSquares,
    RidgeLeastSquares,
    RobustLeastSquares,
    TotalLeastSquares,
    WeightedLeastSquares,
)

__all__ = [
    "ESTIMATORS",
    "DelayChoice",
    "Estimator",
    "NotFittedError",
    "OrdinaryLeastSquares",
    "PriorLeastSquares",
    "RidgeLeastSquares",
    "RobustLeastSquares",
    "SpeedChoice",
    "TotalLeastSquares",
    "WeightedLeastSquares",
    "choose_delay",
    "choose_speed",
]
