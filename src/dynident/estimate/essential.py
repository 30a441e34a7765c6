"""Essential parameters: what is left when parameters that the data hardly determines are taken as zero, one by one.

The base parameter with the worst relative standard deviation leaves while that is 15 % or more, and the others are
solved for again on the factors (Gautier, Khalil, Restrepo 1995, section 4.3). What leaves is kept with its value, its
standard deviation and what its absence does to the residual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from dynident.arrays import Array, Mask, record
from dynident.errors import InputError, UnknownNameError
from dynident.estimate.covariance import correlated_covariance
from dynident.estimate.estimator import Estimator
from dynident.estimate.fit import Fit
from dynident.estimate.least_squares import WeightedLeastSquares
from dynident.estimate.prediction import TorqueModel
from dynident.estimate.records import Elimination
from dynident.estimate.robust import RobustLeastSquares
from dynident.estimate.thresholds import THRESHOLDS
from dynident.estimate.torque_error import chosen_estimator
from dynident.identifiability.base_regressor import RowSource
from dynident.identifiability.regrouping import Regrouping
from dynident.information.information import Information
from dynident.information.parameter_estimate import ParameterEstimate, text_table
from dynident.information.row_source import MappedRows
from dynident.information.solution import dense_channels, residual_square, solve_weighted


@record
class EssentialParameters(ParameterEstimate):
    """Result of an elimination, over all base parameters: zero are those that left.

    The covariance has, for those that left, the variance that they had then: how far from zero they may be.

    Attributes:
        share: Relative standard deviation from which a parameter left.
        essential: Names of those that stayed.
        eliminated: Those that left, in that order.
        fitted: The estimator fitted to the essential parameters alone; None when only a `Fit` was given.
    """

    share: float = THRESHOLDS.insignificant_std
    essential: tuple[str, ...] = ()
    eliminated: tuple[Elimination, ...] = ()
    fitted: Estimator | None = None

    @property
    def kept(self) -> Mask:
        """(n,) whether each is essential."""
        return np.isin(self.names, self.essential)

    @property
    def model(self) -> TorqueModel:
        """What predicts torque with these values; see `TorqueModel.of` for data that has lost its robot."""
        return TorqueModel.of(self)

    def widened(self, covariance: Array) -> Array:
        """A covariance over the essential parameters as one over all, (n, n), with those that left on its diagonal."""
        own = np.flatnonzero(self.kept)
        wide = np.diag(np.where(self.kept, 0.0, np.diag(self.covariance)))
        wide[np.ix_(own, own)] = covariance
        return wide

    def table(self) -> str:
        """What left and why, in that order, then what stayed."""
        lines = [("left", "value", "std", "residual", "in all", "reason")]
        lines += [
            (one.name, f"{one.value:.4g}", f"{one.std:.2g}", _growth(one.residual), _growth(one.total), one.reason)
            for one in self.eliminated
        ]
        lines += [("stayed", "value", "std", "", "", "")]
        stayed = zip(self.names, self.values, self.std, self.kept, strict=True)
        lines += [
            (name, f"{x:.4g}", f"{std:.2g}", "", "", f"{100 * std / abs(x):.3g} %")
            for name, x, std, own in stayed
            if own
        ]
        return text_table(lines[0], lines[1:], ())


def _growth(share: float) -> str:
    return f"{100.0 * share:+.2g} %" if np.isfinite(share) else ""


def essential_parameters(
    data: Information | RowSource | Estimator | Fit,
    estimator: str | Estimator | None = None,
    *,
    share: float = THRESHOLDS.insignificant_std,
    inflation: Array | Sequence[float] | None = None,
    keep: Iterable[str] = (),
) -> EssentialParameters:
    """Take the parameter with the worst relative standard deviation as zero while that is `share` or more.

    Args:
        data: Factors or rows; a fitted estimator, whose data and method are used; or a `Fit`, whose values and
            covariance stand for its data.
        estimator: Method by name, or an estimator; default weighted least squares.
        share: Relative standard deviation from which a parameter is not significant, in (0, 1].
        inflation: (n_channels,) rows that weigh as much as one independent row; default one, the white-noise formula.
            `Fit.inflation` has it for the logs of a robot.
        keep: Base parameters that stay whatever their standard deviation.

    Raises:
        InputError: When no parameter is significant, or there are fewer equations than twice the parameters.
    """
    check_share(share)
    coordinates, solve, solve_last = _solvers(data, estimator, inflation)
    stay = set(keep)
    for name in stay:
        if name not in coordinates.names:
            raise UnknownNameError("base parameter", name, coordinates.names)
    return _eliminate(coordinates, solve, solve_last, share, stay)


def check_share(share: float) -> None:
    """Refuse a share that is not in (0, 1]."""
    if isinstance(share, str | bool) or not 0.0 < share <= 1.0:
        number = not isinstance(share, str | bool) and 1.0 < share <= 100.0
        hint = f"; {share:g} % is {share / 100.0:g}" if number else ""
        raise InputError(
            f"the essential share is {share!r}; expected a relative standard deviation in (0, 1] such as "
            f"{THRESHOLDS.insignificant_std}{hint}"
        )


Solve = Callable[[Sequence[str]], tuple[ParameterEstimate, float]]  # of some parameters, and the squared residual
SolveLast = Callable[[Sequence[str]], tuple[ParameterEstimate, Estimator | None]]  # of what stays, and its estimator


def _eliminate(
    coordinates: Regrouping, solve: Solve, solve_last: SolveLast, share: float, stay: set[str]
) -> EssentialParameters:
    names, units = list(coordinates.names), dict(zip(coordinates.names, coordinates.units, strict=True))
    gone: list[Elimination] = []
    found, square = solve(names)
    first = square
    while True:
        worst = _worst(names, found, share, stay)
        if worst is None:
            break
        name = names.pop(worst)
        if not names:
            raise InputError(
                f"no parameter has a relative standard deviation below {100.0 * share:g} %; record longer or livelier "
                "motion"
            )
        rest, after = solve(names)
        growth = [float(np.sqrt(after / before)) - 1.0 if before else np.nan for before in (square, first)]
        gone.append(Elimination(name, units[name], float(found.values[worst]), float(found.std[worst]), *growth))
        found, square = rest, after
    found, fitted = solve_last(names)
    return _result(coordinates, share, names, found, gone, fitted)


def _worst(names: Sequence[str], found: ParameterEstimate, share: float, stay: set[str]) -> int | None:
    """Place of the parameter to leave next. Of several that are not determined it is the last, as in regrouping."""
    size = np.abs(found.values)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(size > 0.0, found.std / size, np.inf)
    relative = np.where(found.determined, relative, np.inf)
    may = np.array([name not in stay for name in names]) & (relative >= share)
    if not may.any():
        return None
    open_ones = np.flatnonzero(may & ~found.determined)
    return int(open_ones[-1]) if len(open_ones) else int(np.argmax(np.where(may, relative, -1.0)))


def _result(
    coordinates: Regrouping,
    share: float,
    names: Sequence[str],
    found: ParameterEstimate,
    gone: Sequence[Elimination],
    fitted: Estimator | None,
) -> EssentialParameters:
    place = {name: i for i, name in enumerate(coordinates.names)}
    own, n = [place[name] for name in names], coordinates.n
    values, covariance, determined = np.zeros(n), np.zeros((n, n)), np.ones(n, dtype=bool)
    values[own], determined[own] = found.values, found.determined
    covariance[np.ix_(own, own)] = found.covariance
    for one in gone:
        i = place[one.name]
        determined[i] = np.isfinite(one.std)
        covariance[i, i] = one.std**2 if determined[i] else 0.0
    kept = {"share": share, "essential": tuple(names), "eliminated": tuple(gone), "fitted": fitted}
    return EssentialParameters.of(coordinates, values, covariance, determined, **kept)


def _solvers(
    data: Information | RowSource | Estimator | Fit,
    estimator: str | Estimator | None,
    inflation: Array | Sequence[float] | None,
) -> tuple[Regrouping, Solve, SolveLast]:
    """Base parameters, and how to solve for some of them with the others taken as zero."""
    if isinstance(data, Fit):
        if estimator is not None or inflation is not None:
            raise InputError(
                "a Fit has its method and its standard deviations already; leave estimator and inflation out"
            )
        return _solvers_on_covariance(data)
    estimator = None if estimator is None else chosen_estimator(estimator)
    rows: RowSource | None = None
    if isinstance(data, Estimator):
        estimator = data.clone() if estimator is None else estimator
        information = data.information_
    elif isinstance(data, Information):
        information = data
    else:
        rows, information = data, WeightedLeastSquares().fit(data).information_
    estimator = WeightedLeastSquares() if estimator is None else estimator
    if isinstance(estimator, RobustLeastSquares):
        if rows is None:
            raise InputError("robust least squares looks at rows again and again; give the rows, not their factors")
        information = estimator.clone().fit(rows).information_
    _check_rows(information)
    factors = np.ones(len(information.channels)) if inflation is None else np.asarray(inflation, dtype=np.float64)
    if factors.shape != (len(information.channels),) or not (np.isfinite(factors) & (factors > 0.0)).all():
        raise InputError(f"give one inflation, finite and positive, for each of {', '.join(information.channels)}")
    return _solvers_on_factors(information, estimator, factors, rows)


def _check_rows(information: Information) -> None:
    """Refuse data so short that its residual, and with it every standard deviation, means nothing."""
    n = information.coordinates.n
    least = THRESHOLDS.min_equations_to_eliminate * n
    if information.n_rows < least:
        raise InputError(
            f"{information.n_rows:g} equations for {n} parameters leave too little to determine standard deviations "
            f"from; expected at least {least}: give more data, or restrict it to fewer parameters"
        )


def _solvers_on_factors(
    information: Information, estimator: Estimator, inflation: Array, rows: RowSource | None
) -> tuple[Regrouping, Solve, SolveLast]:
    """Elimination on factors. A robust method keeps the weights of its rows meanwhile and weighs again in the end."""
    joined, robust = information.joined(), isinstance(estimator, RobustLeastSquares)
    weights: list[Array] = []

    def found(fitted: Estimator) -> tuple[ParameterEstimate, float]:
        white = bool((inflation == 1.0).all())
        covariance = fitted.covariance_ if white else correlated_covariance(fitted, inflation)
        if not weights:  # those of the full model, so that residuals can be compared
            weights.append(fitted.channel_weights_)
        channels, _ = dense_channels(fitted.information_)
        square = sum(w * residual_square(part, fitted.values_) for w, part in zip(weights[0], channels, strict=True))
        return fitted.estimate_.replace(covariance=covariance), float(square)

    def solve(names: Sequence[str]) -> tuple[ParameterEstimate, float]:
        method = WeightedLeastSquares() if robust else estimator.clone()
        return found(method.fit(joined.restrict(names)))

    def solve_last(names: Sequence[str]) -> tuple[ParameterEstimate, Estimator]:
        own = MappedRows(rows, tuple(names)) if robust and rows is not None else information.restrict(names)
        fitted = estimator.clone().fit(own)
        return found(fitted)[0], fitted

    return information.coordinates, solve, solve_last


def _solvers_on_covariance(fit: Fit) -> tuple[Regrouping, Solve, SolveLast]:
    """Elimination on values and covariance, whose inverse root has the rows of a data set that says the same."""
    coordinates: Regrouping = fit.base
    size = np.sqrt(np.maximum(np.diag(fit.covariance), 0.0))
    size = np.where(size > 0.0, size, 1.0)  # units differ by many orders
    variances, vectors = np.linalg.eigh(fit.covariance / np.outer(size, size))
    gone_before = sum(bool(np.isfinite(one.std)) for one in fit.eliminated)
    seen = slice(len(size) - fit.rank - gone_before, None)  # the others are rounding
    half = (vectors[:, seen] / np.sqrt(np.maximum(variances[seen], 1e-300))).T / size
    rows = np.column_stack([half, half @ fit.beta])

    def solve(names: Sequence[str]) -> tuple[ParameterEstimate, float]:
        own = [coordinates.names.index(name) for name in names]
        found = solve_weighted([rows[:, [*own, -1]]], np.ones(1), THRESHOLDS.exact_rank)
        units = tuple(coordinates.units[i] for i in own)
        return ParameterEstimate(tuple(names), units, found.x, found.inverse, found.determined), float("nan")

    return coordinates, solve, lambda names: (solve(names)[0], None)
