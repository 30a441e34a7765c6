"""Ordinary and weighted least squares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynident.arrays import Array, on_one_thread
from dynident.errors import SingularError
from dynident.estimate.estimator import Estimator, LeastSquaresProblem, LeastSquaresResult, sandwich
from dynident.identifiability.base_regressor import RowSource
from dynident.information.factor import triangular
from dynident.information.information import Information
from dynident.information.solution import Prior, residual_deviations, solve_iterated, solve_weighted


class OrdinaryLeastSquares(Estimator):
    r"""All rows count alike, whatever their channel.

    .. math:: \hat\beta = \arg\min \sum_j \|y_j - W_j \beta\|^2

    The standard deviations allow for channels of different noise: C (sum_j sigma_j^2 W_j' W_j) C with C the inverse of
    sum_j W_j' W_j. For one channel that is the usual formula.

    Args:
        rank_tolerance: Share of the largest singular value below which one counts as zero; None for rounding alone.
    """

    def _solve(self, problem: LeastSquaresProblem, data: Information | RowSource) -> LeastSquaresResult:
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

    def _prior(self, problem: LeastSquaresProblem) -> Prior | None:
        """Rows to add to those of the data."""
        return None

    def _solve(self, problem: LeastSquaresProblem, data: Information | RowSource) -> LeastSquaresResult:
        prior = self._prior(problem)
        found, used, rounds = solve_iterated(problem.channels, problem.rows, problem.tolerance, prior=prior)
        sigma = residual_deviations(problem.channels, problem.rows, found, used)
        return LeastSquaresResult(found, found.inverse, used, sigma, rounds)


# ----------------------------------------------------------------------------------------------------------------------
# Total least squares: errors in the columns and in the torque alike.

_NONGENERIC = 1e-8  # share that the torque must have in the weakest direction of [W y]


class TotalLeastSquares(Estimator):
    r"""The smallest change of columns and torque together that makes them agree.

    .. math:: \min \|[E\; e]\|_F \quad\text{subject to}\quad (A + E)\, x = b + e

    where [A b] are the rows, divided by the residual std of their channel in weighted least squares, with every
    column and the torque scaled to unit norm.

    Assumes that errors are independent, equally large in all channels once these are weighted, and in every column and
    in the torque the same share of its norm. That holds for entries which are zero by structure, and for columns that
    are known exactly, such as an offset, as little as for columns that share a noisy acceleration: read it as a bound
    of what errors in the columns can do, rather than as the best estimate.

    Directions that the data does not determine are left at zero (in scaled columns). `inverse_` is that of the matrix
    solved, A'A - s^2 I in scaled columns with s the smallest singular value of [A b]; the covariance is that for
    normal errors in all columns with known scales (Fuller 1987, Measurement Error Models, chapter 2), which is a little
    too large for scales taken from the data.

    Args:
        rank_tolerance: Share of the largest singular value below which one counts as zero; None for rounding alone.

    References:
        Golub, Van Loan 1980; Van Huffel, Vandewalle 1991.
    """

    @on_one_thread
    def _solve(self, problem: LeastSquaresProblem, data: Information | RowSource) -> LeastSquaresResult:
        start, used, rounds = solve_iterated(problem.channels, problem.rows, problem.tolerance)
        stacked = np.vstack([rows / s for rows, s in zip(problem.channels, used, strict=True)])
        size = np.linalg.norm(stacked, axis=0)
        scale = np.where(size > 0.0, size, 1.0)
        x, half, covariance = scaled_solution(triangular(stacked / scale), start.rank, float(problem.rows.sum()))
        columns, torque = scale[:-1], scale[-1]
        found = replace(start, x=x * torque / columns, half=half / columns[:, None])
        sigma = residual_deviations(problem.channels, problem.rows, replace(found, half=start.half), used)
        return LeastSquaresResult(found, covariance * torque**2 / np.outer(columns, columns), used, sigma, rounds)


def scaled_solution(R: Array, rank: int, n_rows: float) -> tuple[Array, Array, Array]:
    """Values, root of the inverse and covariance in scaled columns, from the factor of [A b], (n + 1, n + 1)."""
    _, singular, vt = np.linalg.svd(R[:, :-1], full_matrices=False)
    directions = vt[:rank].T  # (n, rank): outside them A is taken as zero
    both, right = np.linalg.svd(np.column_stack([R[:, :-1] @ directions, R[:, -1]]))[1:]
    smallest, weakest = both[-1], right[-1]
    repeated = rank > 0 and smallest > 0.0 and smallest >= both[-2] * (1.0 - 1e-10)
    if abs(weakest[-1]) < _NONGENERIC or repeated:
        raise SingularError(
            "total least squares has no solution here: the columns nearly depend on each other, more closely than "
            "they explain the torque; raise rank_tolerance to leave out such directions, or use WeightedLeastSquares"
        )
    t = -weakest[:-1] / weakest[-1]  # (rank,)
    gain = 1.0 / np.maximum((singular[:rank] - smallest) * (singular[:rank] + smallest), np.finfo(float).tiny)
    variance = smallest**2 / max(n_rows - rank, 1.0)  # of an entry of [A b]
    total = variance * (1.0 + t @ t)  # of b - A x
    middle = n_rows * variance * (total * np.eye(rank) - variance * np.outer(t, t))
    covariance = np.diag(total * gain) + gain[:, None] * middle * gain
    return directions @ t, directions * np.sqrt(gain), directions @ covariance @ directions.T
