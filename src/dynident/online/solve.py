"""Values and deviations from a stretch of rows, with or without rows that hold them near known values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, Mask, on_one_thread
from dynident.information.absorb import absorb
from dynident.information.solution import RANK_SHARE, solve_weighted
from dynident.online.memory import Stretch


@dataclass(frozen=True, eq=False)
class Solved:
    """A solution.

    Attributes:
        values: (k,) of the unknowns.
        inverse: (k, k) inverse of the information, regularisation included, for rows of variance one.
        covariance: (k, k) of the values.
        data_covariance: (k, k) by the data alone, over the directions it determines.
        determined: (k,) whether the data alone determines each unknown.
        rank: Directions that the data determines.
        variance: Of a row of weight one.
        open_directions: (k, k - rank) directions that the data leaves open, as unit vectors in units of `sizes`.
        sizes: (k,) norms of the data's columns.
    """

    values: Array
    inverse: Array
    covariance: Array
    data_covariance: Array
    determined: Mask
    rank: int
    variance: float
    open_directions: Array
    sizes: Array

    @property
    def std(self) -> Array:
        """(k,) deviations; infinite where neither data nor anything else says anything."""
        std = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        return np.where(std > 0.0, std, np.inf)


def row_variance(part: Stretch, rank: int) -> float:
    """Variance of a row of weight one: by the residual, or one while there are hardly more rows than unknowns."""
    freedom = part.rows - rank
    if freedom < rank:
        return 1.0
    return max(part.residual_square / freedom, 1e-24)


@on_one_thread
def solved(part: Stretch, lean: Array, inflation: float = 1.0, tolerance: float | None = None) -> Solved:
    """The least-squares solution.

    Args:
        part: The rows.
        lean: (m, k + 1) rows of unit deviation that hold values near known ones; none for least squares alone.
        inflation: Rows that weigh as much as one independent row.
        tolerance: Share of the largest singular value below which one counts as zero.
    """
    k = len(part.R) - 1
    tolerance = RANK_SHARE * k if tolerance is None else tolerance
    data = solve_weighted([part.R], np.ones(1), tolerance)
    variance = row_variance(part, data.rank)
    found = data
    if len(lean):
        rows = np.vstack([part.R, lean * np.sqrt(variance * inflation)])
        found = solve_weighted([rows], np.ones(1), RANK_SHARE * k)
    sizes = np.linalg.norm(part.R[:, :k], axis=0)
    sizes = np.where(sizes > 0.0, sizes, 1.0)
    opened = np.linalg.svd(part.R[:k, :k] / sizes)[2][data.rank :].T if data.rank < k else np.zeros((k, 0))
    scale = variance * inflation
    return Solved(
        values=found.x,
        inverse=found.inverse,
        covariance=found.inverse * scale,
        data_covariance=data.inverse * scale,
        determined=data.determined,
        rank=data.rank,
        variance=variance,
        open_directions=np.asarray(opened),
        sizes=sizes,
    )


def quick_values(part: Stretch, lean: Array, inflation: float) -> Array | None:
    """(k,) the values alone, or None while they are not determined; a fraction of the work of `solved`."""
    from scipy.linalg import solve_triangular  # takes a while to load

    k = len(part.R) - 1
    if not part.instants:
        return None
    rows = part.R
    if len(lean):
        rows = rows.copy()
        absorb(rows, np.array((lean * np.sqrt(row_variance(part, k) * inflation)).T, order="C"))
    size = np.linalg.norm(rows[:, :k], axis=0)
    if not (size > 0.0).all() or not (np.abs(np.diag(rows)[:k]) > 1e-9 * size).all():
        return None
    return np.asarray(solve_triangular(rows[:k, :k], rows[:k, k], check_finite=False))
