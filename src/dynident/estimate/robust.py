"""Least squares that does not follow outliers: every row is weighted by its own residual."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynident.arrays import Array, frozen
from dynident.errors import InputError, UnknownNameError
from dynident.estimate.estimator import Estimator, LeastSquaresProblem, LeastSquaresResult, check_number, sandwich
from dynident.estimate.thresholds import THRESHOLDS
from dynident.identifiability.base_regressor import RowSource
from dynident.information.information import Information
from dynident.information.row_source import accumulate_source
from dynident.information.solution import (
    dense_channels,
    freedom_used,
    rounding_floors,
    solve_iterated,
    solve_weighted,
)

_NORMAL_MEDIAN = 0.6744897501960817  # median of |u| for a standard normal u


@dataclass(frozen=True)
class Loss:
    """A loss by its psi function on residuals in units of their standard deviation.

    Attributes:
        tuning: Constant that gives 95 % efficiency for normal residuals.
        weight: (u, tuning) -> psi(u) / u.
        slope: (u, tuning) -> psi'(u).
    """

    tuning: float
    weight: Callable[[Array, float], Array]
    slope: Callable[[Array, float], Array]


def _huber_weight(u: Array, c: float) -> Array:
    return c / np.maximum(np.abs(u), c)


def _huber_slope(u: Array, c: float) -> Array:
    return (np.abs(u) <= c).astype(np.float64)


def _bisquare_weight(u: Array, c: float) -> Array:
    return (1.0 - np.minimum(np.abs(u) / c, 1.0) ** 2) ** 2


def _bisquare_slope(u: Array, c: float) -> Array:
    t = np.minimum(np.abs(u) / c, 1.0) ** 2
    return (1.0 - t) * (1.0 - 5.0 * t)


LOSSES = {
    "huber": Loss(1.345, _huber_weight, _huber_slope),
    "bisquare": Loss(4.685, _bisquare_weight, _bisquare_slope),
}


class RobustLeastSquares(Estimator):
    r"""An M-estimate: rows with large residuals count less, on top of the weights of the channels.

    .. math:: \sum_j \sum_i w_{ij}\, \psi((y_{ij} - w_{ij}^T \beta) / s_j) / s_j = 0

    solved by weighting every row with psi(u) / u and repeating, one pass over the rows for each round. The standard
    deviation s_j of a channel is the median absolute residual over 0.6745, of all its rows or of 50,000 evenly spaced
    ones. Bisquare, which has more than one solution, starts with rounds of Huber. A few rows of large weight in the
    columns (leverage) still draw the fit; outliers in the torque do not.

    The covariance is Huber's (1981, section 7.6), by channel: sum_j W_j' W_j with the mean square of psi between the
    inverses of that with its mean slope. `sigma_` is s_j: the std of the rows that are not outliers.

    Args:
        loss: "huber" bounds what a row can do, "bisquare" gives far outliers no weight at all.
        tuning: Residual, in std, from which Huber counts a row less, or at which bisquare gives it no weight;
            None for 1.345 and 4.685, which cost 5 % efficiency when there is no outlier.
        max_iterations: Most passes with row weights.
        tolerance: Change of the fit at which to stop, in standard deviations.
        rank_tolerance: Share of the largest singular value below which one counts as zero; None for rounding alone.

    Attributes:
        row_weight_share_: (n_channels,) mean weight of the rows, one where no row is an outlier.
    """

    row_weight_share_: Array

    needs_rows = True

    def __init__(
        self,
        loss: Literal["huber", "bisquare"] = "huber",
        tuning: float | None = None,
        max_iterations: int = 30,
        tolerance: float = 1e-6,
        rank_tolerance: float | None = None,
    ) -> None:
        self.loss = loss
        self.tuning = tuning
        self.max_iterations = max_iterations
        self.tolerance = tolerance
        self.rank_tolerance = rank_tolerance

    def _check(self) -> None:
        if self.loss not in LOSSES:
            raise UnknownNameError("loss", str(self.loss), LOSSES)
        if self.tuning is not None:
            check_number(self.tuning, "tuning", 0.0)
        check_number(self.tolerance, "tolerance", 0.0)
        if isinstance(self.max_iterations, bool) or not isinstance(self.max_iterations, int) or self.max_iterations < 1:
            raise InputError(f"max_iterations is {self.max_iterations!r}; expected a whole number from 1")

    def _solve(self, problem: LeastSquaresProblem, data: Information | RowSource) -> LeastSquaresResult:
        if isinstance(data, Information):
            raise InputError(
                "RobustLeastSquares weighs every row by its own residual, and an Information has forgotten its rows; "
                "give fit a source of rows, such as GivenRows"
            )
        found, scale, _ = solve_iterated(problem.channels, problem.rows, problem.tolerance)
        floors = rounding_floors(problem.channels)
        loss, tuning = LOSSES[self.loss], self.tuning or LOSSES[self.loss].tuning
        first_rounds = 0 if self.loss == "huber" else self.max_iterations // 2
        settled = False
        for round_ in range(1, self.max_iterations + 1):
            starting = round_ <= first_rounds
            weights = _RowWeights(
                LOSSES["huber"] if starting else loss, None if starting else tuning, scale, problem.rows
            )
            information = accumulate_source(data, found.x, weights)
            channels, _ = dense_channels(information)
            before, used = found, scale
            found = solve_weighted(channels, used, problem.tolerance)
            scale = weights.scale(floors)
            moved = max(_change_in_std(channels, used, before.x, found.x), float(np.abs(scale / used - 1.0).max()))
            if starting and moved < THRESHOLDS.bisquare_start_std:
                first_rounds = round_
            settled = not starting and moved < self.tolerance
            if settled:
                break
        return LeastSquaresResult(
            found,
            _covariance(problem, weights, used),
            used_sigma=used,
            sigma=used,
            iterations=round_,
            information=information,
            warnings=() if settled else (_settling_warning(moved, round_),),
            learned={"row_weight_share_": frozen(weights.mean_weight())},
        )


class _RowWeights:
    """One pass over the rows: weighs them, and learns about each channel's residuals on the way."""

    needs_rows = True

    def __init__(self, loss: Loss, tuning: float | None, scale: Array, n_rows: Array) -> None:
        self.loss, self.tuning = loss, loss.tuning if tuning is None else tuning
        self.used = scale
        self.strides = [max(1, -(-round(n) // THRESHOLDS.max_residuals)) for n in n_rows]
        self.sample: list[list[Array]] = [[] for _ in n_rows]
        self.seen = np.zeros(len(n_rows), dtype=int)
        self.sums = np.zeros((4, len(n_rows)))  # of weights, psi^2, psi', psi'^2

    def __call__(self, channel: int, residual: Array) -> Array:
        """Weight of each row of a block, (n_rows,)."""
        stride = self.strides[channel]
        # Every stride-th row of the channel, wherever the blocks begin.
        self.sample[channel].append(np.abs(residual[-self.seen[channel] % stride :: stride]))
        self.seen[channel] += len(residual)
        u = residual / self.used[channel]
        weight, slope = self.loss.weight(u, self.tuning), self.loss.slope(u, self.tuning)
        self.sums[:, channel] += weight.sum(), np.sum((weight * u) ** 2), slope.sum(), np.sum(slope**2)
        return weight

    def scale(self, floors: Array) -> Array:
        """Robust std of each channel's residuals, (n_channels,); as before for a channel without rows."""
        result = self.used.copy()
        for channel, parts in enumerate(self.sample):
            if not parts:
                continue
            sizes = np.concatenate(parts)
            sizes = sizes[sizes > 0.0]  # a row of zeros tells nothing, and half of them would make the median zero
            median = float(np.median(sizes)) / _NORMAL_MEDIAN if len(sizes) else 0.0
            result[channel] = max(median, float(floors[channel]))
        return result

    def mean_weight(self) -> Array:
        """Mean weight of each channel's rows, (n_channels,)."""
        return np.where(self.seen > 0, self.sums[0] / np.maximum(self.seen, 1), 1.0)


def _change_in_std(channels: list[Array], scale: Array, old: Array, new: Array) -> float:
    """Change of the fit in standard deviations: the norm of W (new - old), or zero when that is rounding."""
    stacked = np.vstack([rows[:, :-1] / s for rows, s in zip(channels, scale, strict=True)])
    change = float(np.linalg.norm(stacked @ (new - old)))
    return change if change > 1e-12 * float(np.linalg.norm(stacked @ new)) else 0.0


def _covariance(problem: LeastSquaresProblem, weights: _RowWeights, scale: Array) -> Array:
    """Huber's covariance of the fit: A^-1 B A^-1 with A of mean slopes and B of mean squares of psi."""
    n = np.maximum(weights.seen, 1)
    _, squares, slopes, slope_squares = weights.sums / n
    slopes = np.where(weights.seen > 0, np.maximum(slopes, THRESHOLDS.min_slope), 1.0)
    curved = scale / np.sqrt(slopes)
    flat = solve_weighted(problem.channels, curved, problem.tolerance)
    spent = freedom_used(problem.channels, flat.half, curved)
    # Huber's small-sample factor: the slope is not the same for all rows.
    small = 1.0 + spent / n * np.maximum(slope_squares - slopes**2, 0.0) / slopes**2
    squares = squares * n / np.maximum(n - spent, 1.0)
    return sandwich(problem.channels, flat.half, squares * small**2 / scale**2)


def _settling_warning(moved: float, rounds: int) -> str:
    return (
        f"row weights have not settled after {rounds} rounds, the last of which moved the fit by {moved:.1g} "
        "standard deviations; raise max_iterations, or tolerance if that is little enough"
    )
