"""Essential parameters: what is left when parameters that the data hardly determines are taken as zero, one by one.

The base parameter with the worst relative deviation leaves while that is 15 % or more, and the others are solved anew
on the factors (Gautier, Khalil, Restrepo 1995, section 4.3). What leaves is kept with its value, its deviation and what
its absence does to the residual.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

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
from dynident.estimate.torque_error import chosen_estimator
from dynident.identifiability.base_regressor import RowSource
from dynident.identifiability.regrouping import Regrouping
from dynident.information.information import Information
from dynident.information.parameter_estimate import ParameterEstimate
from dynident.information.row_source import MappedRows
from dynident.information.solution import dense_channels, residual_square, solve_weighted

SHARE = 0.15  # relative deviation from which a parameter is not significant
_EQUATIONS = 2  # per parameter, at least
_RANK = 1e-9  # singular values below this share of the largest are zero, where a covariance stands for the data


@record
class EssentialParameters(ParameterEstimate):
    """Result of an elimination, over all base parameters: zero are those that left.

    The covariance has, for those that left, the variance that they had then: how far from zero they may be.

    Attributes:
        share: Relative deviation from which a parameter left.
        essential: Names of those that stayed.
        eliminated: Those that left, in that order.
        fitted: The estimator fitted to the essential parameters alone; None when only a `Fit` was given.
    """

    share: float = SHARE
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
        widths = [max(len(line[i]) for line in lines) for i in range(5)]
        return "\n".join("  ".join([*map(str.ljust, line[:5], widths), line[5]]).rstrip() for line in lines)


def _growth(share: float) -> str:
    return f"{100.0 * share:+.2g} %" if np.isfinite(share) else ""


def essential_parameters(
    data: Information | RowSource | Estimator | Fit,
    estimator: str | Estimator | None = None,
    *,
    share: float = SHARE,
    inflation: Array | Sequence[float] | None = None,
    keep: Iterable[str] = (),
) -> EssentialParameters:
    """Take the parameter with the worst relative deviation as zero while that is `share` or more.

    Args:
        data: Factors or rows; a fitted estimator, whose data and method are used; or a `Fit`, whose values and
            covariance stand for its data.
        estimator: Method by name, or an estimator; default weighted least squares.
        share: Relative deviation from which a parameter is not significant, in (0, 1].
        inflation: (n_channels,) rows that weigh as much as one independent row; default one, the white-noise formula.
            `Fit.inflation` has it for the logs of a robot.
        keep: Base parameters that stay whatever their deviation.

    Raises:
        InputError: When no parameter is significant, or there are fewer equations than twice the parameters.
    """
    check_share(share)
    problem = _problem(data, estimator, inflation)
    stay = set(keep)
    for name in stay:
        if name not in problem.coordinates.names:
            raise UnknownNameError("base parameter", name, problem.coordinates.names)
    return _eliminate(problem, share, stay)


def check_share(share: float) -> None:
    """Refuse a share that is not in (0, 1]."""
    if isinstance(share, str | bool) or not 0.0 < share <= 1.0:
        number = not isinstance(share, str | bool) and 1.0 < share <= 100.0
        hint = f"; {share:g} % is {share / 100.0:g}" if number else ""
        raise InputError(
            f"the essential share is {share!r}; expected a relative deviation in (0, 1] such as {SHARE}{hint}"
        )


@dataclass(frozen=True)
class _Found:
    """Values, covariance, what is determined, and the square of the residual."""

    values: Array
    covariance: Array
    determined: Mask
    square: float

    @property
    def std(self) -> Array:
        return np.where(self.determined, np.sqrt(np.maximum(np.diag(self.covariance), 0.0)), np.inf)


class _Problem(Protocol):
    """What can be solved for some of its parameters."""

    @property
    def coordinates(self) -> Regrouping: ...

    def solve(self, names: Sequence[str]) -> _Found:
        """With the others taken as zero."""
        ...

    def last(self, names: Sequence[str]) -> tuple[_Found, Estimator | None]:
        """The same for what is left in the end."""
        ...


def _eliminate(problem: _Problem, share: float, stay: set[str]) -> EssentialParameters:
    coordinates = problem.coordinates
    names, units = list(coordinates.names), dict(zip(coordinates.names, coordinates.units, strict=True))
    gone: list[Elimination] = []
    found = first = problem.solve(names)
    while True:
        worst = _worst(names, found, share, stay)
        if worst is None:
            break
        name = names.pop(worst)
        if not names:
            raise InputError(
                f"no parameter has a relative deviation below {100.0 * share:g} %; record longer or livelier motion"
            )
        rest = problem.solve(names)
        growth = [
            float(np.sqrt(rest.square / before.square)) - 1.0 if before.square else np.nan for before in (found, first)
        ]
        gone.append(Elimination(name, units[name], float(found.values[worst]), float(found.std[worst]), *growth))
        found = rest
    found, fitted = problem.last(names)
    return _result(coordinates, share, names, found, gone, fitted)


def _worst(names: Sequence[str], found: _Found, share: float, stay: set[str]) -> int | None:
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
    found: _Found,
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


def _problem(
    data: Information | RowSource | Estimator | Fit,
    estimator: str | Estimator | None,
    inflation: Array | Sequence[float] | None,
) -> _Problem:
    if isinstance(data, Fit):
        if estimator is not None or inflation is not None:
            raise InputError("a Fit has its method and its deviations already; leave estimator and inflation out")
        return _Conditioned(data)
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
    return _OnFactors(information, estimator, factors, rows)


def _check_rows(information: Information) -> None:
    """Refuse data so short that its residual, and with it every deviation, means nothing."""
    n = information.coordinates.n
    if information.n_rows < _EQUATIONS * n:
        raise InputError(
            f"{information.n_rows:g} equations for {n} parameters leave too little to tell deviations from; expected "
            f"at least {_EQUATIONS * n}: give more data, or restrict it to fewer parameters"
        )


class _OnFactors:
    """Elimination on factors. A robust method keeps the weights of its rows meanwhile and weighs anew in the end."""

    def __init__(
        self, information: Information, estimator: Estimator, inflation: Array, rows: RowSource | None
    ) -> None:
        self.information, self.estimator, self.inflation, self.rows = information, estimator, inflation, rows
        self._joined = information.joined()
        self._robust = isinstance(estimator, RobustLeastSquares)
        self._weights: Array | None = None

    @property
    def coordinates(self) -> Regrouping:
        return self.information.coordinates

    def solve(self, names: Sequence[str]) -> _Found:
        method = WeightedLeastSquares() if self._robust else self.estimator.clone()
        return self._found(method.fit(self._joined.restrict(names)))

    def last(self, names: Sequence[str]) -> tuple[_Found, Estimator]:
        if self._robust and self.rows is not None:
            fitted = self.estimator.clone().fit(MappedRows(self.rows, tuple(names)))
        else:
            fitted = self.estimator.clone().fit(self.information.restrict(names))
        return self._found(fitted), fitted

    def _found(self, fitted: Estimator) -> _Found:
        white = bool((self.inflation == 1.0).all())
        covariance = fitted.covariance_ if white else correlated_covariance(fitted, self.inflation)
        if self._weights is None:  # those of the full model, so that residuals can be compared
            self._weights = fitted.channel_weights_
        channels, _ = dense_channels(fitted.information_)
        square = sum(w * residual_square(part, fitted.values_) for w, part in zip(self._weights, channels, strict=True))
        return _Found(fitted.values_, covariance, np.isfinite(fitted.std_), float(square))


class _Conditioned:
    """Elimination on values and covariance, whose inverse root has the rows of a data set that says the same."""

    def __init__(self, estimate: Fit) -> None:
        self.coordinates: Regrouping = estimate.base
        size = np.sqrt(np.maximum(np.diag(estimate.covariance), 0.0))
        size = np.where(size > 0.0, size, 1.0)  # units differ by many orders
        variances, vectors = np.linalg.eigh(estimate.covariance / np.outer(size, size))
        left_before = sum(bool(np.isfinite(one.std)) for one in estimate.eliminated)
        seen = slice(len(size) - estimate.rank - left_before, None)  # the others are rounding
        half = (vectors[:, seen] / np.sqrt(np.maximum(variances[seen], 1e-300))).T / size
        self._rows = np.column_stack([half, half @ estimate.beta])

    def solve(self, names: Sequence[str]) -> _Found:
        own = [self.coordinates.names.index(name) for name in names]
        found = solve_weighted([self._rows[:, [*own, -1]]], np.ones(1), _RANK)
        return _Found(found.x, found.inverse, found.determined, float("nan"))

    def last(self, names: Sequence[str]) -> tuple[_Found, None]:
        return self.solve(names), None
