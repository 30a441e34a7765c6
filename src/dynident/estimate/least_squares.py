"""Ordinary and weighted least squares."""

from __future__ import annotations

import numpy as np

from dynident.estimate.estimator import Estimator, LeastSquaresResult, Problem, sandwich
from dynident.identifiability.base_regressor import RowSource
from dynident.information.information import Information
from dynident.information.solution import Prior, residual_deviations, solve_iterated, solve_weighted


class OrdinaryLeastSquares(Estimator):
    r"""All rows count alike, whatever their channel.

    .. math:: \hat\beta = \arg\min \sum_j \|y_j - W_j \beta\|^2

    The deviations allow for channels of different noise: C (sum_j sigma_j^2 W_j' W_j) C with C the inverse of
    sum_j W_j' W_j. For one channel that is the usual formula.

    Args:
        rank_tolerance: Share of the largest singular value below which one counts as zero; None for rounding alone.
    """

    def __init__(self, rank_tolerance: float | None = None) -> None:
        self.rank_tolerance = rank_tolerance

    def _solve(self, problem: Problem, data: Information | RowSource) -> LeastSquaresResult:
        equal = np.ones(len(problem.channels))
        found = solve_weighted(problem.channels, equal, problem.tolerance)
        sigma = residual_deviations(problem.channels, problem.rows, found, equal)
        return LeastSquaresResult(found, sandwich(problem.channels, found.half, sigma**2), equal, sigma, iterations=1)


class WeightedLeastSquares(Estimator):
    r"""Each channel is weighted by its own residual variance, repeated until that settles.

    .. math:: \hat\beta = \arg\min \sum_j \|y_j - W_j \beta\|^2 / \sigma_j^2, \quad \sigma_j^2 = \|y_j - W_j
        \hat\beta\|^2 / (n_j - p_j)

    with p_j the degrees of freedom that the fit uses up in channel j. The covariance is the inverse of the weighted
    information matrix.

    Args:
        rank_tolerance: Share of the largest singular value below which one counts as zero; None for rounding alone.
    """

    def __init__(self, rank_tolerance: float | None = None) -> None:
        self.rank_tolerance = rank_tolerance

    def _prior(self, problem: Problem) -> Prior | None:
        """Rows to add to those of the data."""
        return None

    def _solve(self, problem: Problem, data: Information | RowSource) -> LeastSquaresResult:
        prior = self._prior(problem)
        found, used, rounds = solve_iterated(problem.channels, problem.rows, problem.tolerance, prior=prior)
        sigma = residual_deviations(problem.channels, problem.rows, found, used)
        return LeastSquaresResult(found, found.inverse, used, sigma, rounds)
