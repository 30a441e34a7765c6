"""Least squares with a prior: towards zero, or towards nominal values."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dynident.arrays import Array, Mask
from dynident.errors import InputError, UnknownNameError
from dynident.estimate.estimator import LeastSquaresProblem, check_number
from dynident.estimate.least_squares import WeightedLeastSquares
from dynident.identifiability.regrouping import Regrouping
from dynident.information.solution import Prior

_MIN_SINGULAR_SHARE = 1e-9  # share of the largest singular value below which open parameters do not see a direction


class RidgeLeastSquares(WeightedLeastSquares):
    r"""Weighted least squares with every parameter pulled to zero, a little.

    .. math:: \min \sum_j \|y_j - W_j \beta\|^2 / \sigma_j^2 + s^2 \sum_i \|w_i\|^2 \beta_i^2

    where w_i is column i of all weighted rows and s the strength: as if, for each parameter, one more row had been seen
    whose only entry is `strength` times the norm of the column, with zero torque. Directions whose singular value (with
    scaled columns) is well above the strength are left alone; those well below it go to zero. The result does not
    depend on the unit of a parameter.

    The covariance takes the pull for knowledge (zero mean, std 1 / (s ||w_i||)); rank and determined parameters
    are those of the data alone. A parameter that the data has no information about at all stays at zero with infinite
    std.

    Args:
        strength: Share of each column's norm; zero is plain weighted least squares.
        rank_tolerance: Share of the largest singular value below which one counts as zero in the rank of the data.
    """

    def __init__(self, strength: float = 1e-4, rank_tolerance: float | None = None) -> None:
        self.strength = strength
        self.rank_tolerance = rank_tolerance

    def _check(self) -> None:
        check_number(self.strength, "strength", 0.0, open_end=False)

    def _prior(self, problem: LeastSquaresProblem) -> Prior:
        strength = float(self.strength)
        return lambda norms: np.column_stack([np.diag(strength * norms), np.zeros(len(norms))])


class PriorLeastSquares(WeightedLeastSquares):
    r"""Weighted least squares with a Gaussian prior over standard parameters, such as values from CAD.

    .. math:: \chi \sim N(\chi_0, S), \quad \beta = K \chi \sim N(K \chi_0, K S K^T)

    Standard parameters that `values` does not name are open: nothing is assumed about them, nor about any combination
    they take part in. The covariance is the posterior one; rank and determined parameters are those of the data alone.

    Args:
        values: Nominal value of standard parameters by name.
        std: Standard deviation of each by name, or one number: the standard deviation as a share of the value. A value
            of zero then takes the share of the largest value of the same unit at the same link, or else of the same
            unit.
        rank_tolerance: Share of the largest singular value below which one counts as zero in the rank of the data.
    """

    def __init__(
        self, values: Mapping[str, float], std: Mapping[str, float] | float, rank_tolerance: float | None = None
    ) -> None:
        self.values = values
        self.std = std
        self.rank_tolerance = rank_tolerance

    def _check(self) -> None:
        if not isinstance(self.values, Mapping):
            raise InputError("values must be a mapping from names of standard parameters to numbers")
        for name, value in self.values.items():
            check_number(value, f"the nominal value of {name}", -np.inf)
        if not isinstance(self.std, Mapping):
            check_number(self.std, "std", 0.0)
            return
        for name in (*self.values, *self.std):
            if (name in self.values) != (name in self.std):
                raise InputError(f"values and std must name the same parameters; {name} is in only one of them")
        for name, value in self.std.items():
            check_number(value, f"the std of {name} (for an exact value use `Information.known`)", 0.0)

    def _prior(self, problem: LeastSquaresProblem) -> Prior:
        coordinates = problem.information.coordinates
        standard = [column.name for column in coordinates.columns]
        for name in self.values:
            if name not in standard:
                raise UnknownNameError("standard parameter", name, standard)
        given = np.array([name in self.values for name in standard])
        deviations = nominal_std(coordinates, self.values, self.std)
        nominal = np.array([self.values.get(name, 0.0) for name in standard])
        rows = prior_rows(coordinates.K, given, nominal, deviations)
        return lambda norms: rows


def nominal_std(coordinates: Regrouping, values: Mapping[str, float], std: Mapping[str, float] | float) -> Array:
    """Prior standard deviation of every standard parameter, (n_standard,); one where nothing is given."""
    columns = [column for column in coordinates.columns if column.name in values]
    if isinstance(std, Mapping):
        return np.array([std.get(column.name, 1.0) for column in coordinates.columns])
    result = dict.fromkeys((column.name for column in coordinates.columns), 1.0)
    for column in columns:
        alike = [other for other in columns if other.unit == column.unit]
        near = [other for other in alike if other.place == column.place]
        sizes = (max(abs(values[other.name]) for other in group) for group in ([column], near, alike))
        size = next((size for size in sizes if size > 0.0), 0.0)
        if size == 0.0:
            raise InputError(
                f"{column.name} and all values of its unit are zero, so a share of them says nothing; "
                "give std as a mapping of standard deviations"
            )
        result[column.name] = std * size
    return np.array(list(result.values()))


def prior_rows(K: Array, given: Mask, nominal: Array, deviations: Array) -> Array:
    """Rows [T | T beta_0], each of unit variance, that say what a prior over standard parameters says of base ones.

    Combinations N' beta that no open parameter takes part in (N' K_open = 0) have covariance N' K S K' N; whitening
    that gives the rows.

    Args:
        K: (n, n_standard), beta = K chi.
        given: (n_standard,) bool: which standard parameters have a prior.
        nominal: (n_standard,) their values.
        deviations: (n_standard,) their standard deviations.
    """
    spread = K[:, given] * deviations[given]  # K S^(1/2)
    size = np.linalg.norm(spread, axis=1)
    scale = np.where(size > 0.0, size, 1.0)  # units of base parameters differ
    N = _unfelt(K[:, ~given] / scale[:, None]) / scale[:, None]
    if N.shape[1] == 0:
        return np.zeros((0, len(K) + 1))
    half = np.asarray(np.linalg.qr(spread.T @ N)[1])  # half' half = N' K S K' N
    T = np.asarray(np.linalg.solve(half.T, N.T))
    return np.column_stack([T, T @ (K[:, given] @ nominal[given])])


def _unfelt(K: Array) -> Array:
    """Orthonormal base of the combinations that no column of K takes part in, (n, n - rank)."""
    norms = np.linalg.norm(K, axis=0)
    K = K[:, norms > 0.0] / norms[norms > 0.0]
    if not K.shape[1]:
        return np.eye(len(K))
    u, singular, _ = np.linalg.svd(K)
    return np.asarray(u[:, int(np.sum(singular > _MIN_SINGULAR_SHARE * singular[0])) :])
