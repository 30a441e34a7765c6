"""The least-squares family by short name."""

from __future__ import annotations

from dynident.estimate.estimator import Estimator, NotFittedError
from dynident.estimate.least_squares import OrdinaryLeastSquares, TotalLeastSquares, WeightedLeastSquares
from dynident.estimate.priors import PriorLeastSquares, RidgeLeastSquares
from dynident.estimate.robust import RobustLeastSquares

ESTIMATORS: dict[str, type[Estimator]] = {
    "ordinary": OrdinaryLeastSquares,
    "weighted": WeightedLeastSquares,
    "robust": RobustLeastSquares,
    "total": TotalLeastSquares,
    "ridge": RidgeLeastSquares,
    "prior": PriorLeastSquares,
}

__all__ = [
    "ESTIMATORS",
    "Estimator",
    "NotFittedError",
    "OrdinaryLeastSquares",
    "PriorLeastSquares",
    "RidgeLeastSquares",
    "RobustLeastSquares",
    "TotalLeastSquares",
    "WeightedLeastSquares",
]
