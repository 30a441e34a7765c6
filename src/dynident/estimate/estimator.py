"""What all estimators share: options as given, `fit`, learned values that end in `_`, one rank decision."""

from __future__ import annotations

import inspect
import operator
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from dynident.arrays import Array, Mask, frozen
from dynident.errors import DynidentError, InputError, UnknownNameError
from dynident.identifiability.base_regressor import RowSource
from dynident.information.information import Information
from dynident.information.parameter_estimate import ParameterEstimate
from dynident.information.row_source import accumulate_source
from dynident.information.solution import Weighted, dead_channels, dense_channels, tolerance_for

_SHOWN_ENTRIES = 3  # entries of a mapping that `repr` shows


class NotFittedError(DynidentError, AttributeError):
    """A learned value was asked for before `fit`."""


@dataclass(frozen=True)
class LeastSquaresProblem:
    """Data made ready for solving.

    Attributes:
        information: The data.
        channels: Dense rows of each channel over all parameters and the torque, (k + 1, n + 1) each.
        rows: (n_channels,) rows behind each channel.
        tolerance: Share of the largest singular value below which one counts as zero.
    """

    information: Information
    channels: list[Array]
    rows: Array
    tolerance: float


@dataclass(frozen=True)
class LeastSquaresResult:
    """What a method found.

    Attributes:
        found: Values, inverse, rank and determined parameters.
        covariance: (n, n) white-noise covariance.
        used_sigma: (n_channels,) standard deviations that the channels were divided by.
        sigma: (n_channels,) standard deviations of the residuals.
        iterations: Rounds.
        information: What was solved in the end; None when it is the data as they came.
        warnings: What a reader should know.
        learned: More learned values, by attribute name.
    """

    found: Weighted
    covariance: Array
    used_sigma: Array
    sigma: Array
    iterations: int
    information: Information | None = None
    warnings: tuple[str, ...] = ()
    learned: Mapping[str, Any] = field(default_factory=dict)


def _learned_part(path: str) -> Any:
    """A part of what an estimator has learned, as a read-only attribute."""
    return property(operator.attrgetter(path))


class Estimator(ABC):
    """Parameters from the square-root information of a data set.

    The constructor only stores its arguments; `fit` looks at them, solves and returns the estimator itself. All methods
    scale the columns to unit norm, decide the rank by the same singular values and state the std for white noise.

    Attributes:
        estimate_: The estimate, with how it was solved; what follows, but for the last two, are parts of it.
        names_: Base parameter names.
        units_: Their units.
        values_: (n,) values.
        std_: (n,) standard deviations; infinite where nothing is known.
        covariance_: (n, n) white-noise covariance, over the determined directions.
        channels_: Output channels.
        channel_weights_: (n_channels,) weights w_j, one over the square of the channel's unit.
        sigma_: (n_channels,) standard deviations of the residuals, in the channel's unit.
        rank_: Directions the data determines.
        condition_: Ratio of the first to the last of the `rank_` singular values, with scaled columns.
        gap_: The last singular value kept and the first dropped, as shares of the largest.
        determined_: (n,) whether the data determines each parameter.
        undetermined_: Names of those it does not.
        n_rows_: Rows behind the fit.
        iterations_: Rounds of weighting.
        warnings_: What a reader should know.
        inverse_: (n, n) inverse of the information matrix that was solved, sum_j w_j R_j' R_j plus that of a prior.
        information_: The information that was solved in the end.
    """

    estimate_: ParameterEstimate
    names_: tuple[str, ...] = _learned_part("estimate_.names")
    units_: tuple[str, ...] = _learned_part("estimate_.units")
    values_: Array = _learned_part("estimate_.values")
    std_: Array = _learned_part("estimate_.std")
    covariance_: Array = _learned_part("estimate_.covariance")
    channels_: tuple[str, ...] = _learned_part("estimate_.solve.channels")
    channel_weights_: Array = _learned_part("estimate_.solve.channel_weights")
    sigma_: Array = _learned_part("estimate_.solve.residual_std")
    rank_: int = _learned_part("estimate_.solve.rank")
    condition_: float = _learned_part("estimate_.solve.condition")
    gap_: tuple[float, float] = _learned_part("estimate_.solve.gap")
    determined_: Mask = _learned_part("estimate_.solve.determined")
    n_rows_: float = _learned_part("estimate_.solve.n_rows")
    iterations_: int = _learned_part("estimate_.solve.iterations")
    warnings_: tuple[str, ...] = _learned_part("estimate_.solve.warnings")
    inverse_: Array
    information_: Information
    needs_rows = False  # whether the method goes through rows, and factors are not enough

    def __init__(self, rank_tolerance: float | None = None) -> None:
        self.rank_tolerance = rank_tolerance

    def fit(self, data: Information | RowSource) -> Self:
        """Learn from data.

        Args:
            data: Factors, or a source of rows.
        """
        self._check()
        if isinstance(data, Information):
            information = data
        elif callable(getattr(data, "blocks", None)):
            information = accumulate_source(data)
        else:
            raise InputError(f"data is {type(data).__name__}; expected an Information or a source of rows")
        tolerance = tolerance_for(information, self.rank_tolerance)
        problem = LeastSquaresProblem(information, *dense_channels(information), tolerance)
        self._learn(problem, self._solve(problem, data))
        return self

    def get_params(self) -> dict[str, Any]:
        """The arguments of the constructor, as they are now."""
        return {name: getattr(self, name) for name in self._param_names()}

    def set_params(self, **params: Any) -> Self:
        """Change arguments of the constructor; they count from the next `fit` on."""
        valid = self._param_names()
        for name in params:
            if name not in valid:
                raise UnknownNameError(f"parameter of {type(self).__name__}", name, valid)
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def clone(self) -> Self:
        """An estimator with the same arguments that has learned nothing."""
        return type(self)(**self.get_params())

    def __repr__(self) -> str:
        """The arguments that are not at their defaults."""
        defaults = inspect.signature(type(self)).parameters
        shown = (f"{k}={_short(v)}" for k, v in self.get_params().items() if not _same(v, defaults[k].default))
        return f"{type(self).__name__}({', '.join(shown)})"

    def __getattr__(self, name: str) -> Any:
        """Only reached for attributes that are not there."""
        kinds = [vars(kind) for kind in type(self).__mro__]
        learned = {known for own in kinds for known in (*own, *own.get("__annotations__", ()))}
        if name.endswith("_") and not name.endswith("__") and name in learned:
            raise NotFittedError(f"{type(self).__name__} has no {name} yet; call fit(data) first")
        raise AttributeError(f"{type(self).__name__} has no attribute {name}")

    @classmethod
    def _param_names(cls) -> tuple[str, ...]:
        return tuple(inspect.signature(cls).parameters)

    def _check(self) -> None:  # noqa: B027 - most have nothing to check beyond what solving checks
        """Refuse arguments that make no sense."""

    @abstractmethod
    def _solve(self, problem: LeastSquaresProblem, data: Information | RowSource) -> LeastSquaresResult:
        """The method itself."""

    def _learn(self, problem: LeastSquaresProblem, fit: LeastSquaresResult) -> None:
        """Set the learned values, all at once and only after everything went well."""
        data, found = problem.information, fit.found
        names = data.names
        dead = dead_channels(data.channels, problem.channels, problem.rows)
        unknown = tuple(name for name, known in zip(names, found.determined, strict=True) if not known)
        solved = found.record(
            data.channels,
            residual_std=fit.sigma,
            used_std=fit.used_sigma,
            n_rows=problem.rows,
            iterations=fit.iterations,
            warnings=(*dead, *_open_warning(names, unknown, found.rank), *fit.warnings),
        )
        self.estimate_ = ParameterEstimate.of(data.coordinates, found.x, fit.covariance, found.settled, solve=solved)
        self.inverse_ = frozen(found.inverse)
        self.information_ = data if fit.information is None else fit.information
        for name, value in fit.learned.items():
            setattr(self, name, value)

    @property
    def undetermined_(self) -> tuple[str, ...]:
        """Names of those that it does not determine."""
        return tuple(name for name, known in zip(self.names_, self.determined_, strict=True) if not known)


def sandwich(channels: list[Array], half: Array, meat: Array) -> Array:
    """C (sum_j m_j R_j' R_j) C with C = half half', (n, n).

    Args:
        channels: Dense rows of each channel, (k + 1, n + 1).
        half: (n, r) root of C.
        meat: (n_channels,) m_j: square of the channel's weight times the variance of its residual.
    """
    weighted = np.vstack([np.sqrt(share) * rows[:, :-1] for rows, share in zip(channels, meat, strict=True)])
    spread = (weighted @ half) @ half.T
    return np.asarray(spread.T @ spread)


def check_number(value: Any, name: str, least: float, *, open_end: bool = True) -> float:
    """A finite number above `least` (or at it, with `open_end` false)."""
    wrong = isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating)
    if wrong or not np.isfinite(value) or value < least or (open_end and value == least):
        raise InputError(f"{name} is {value!r}; expected a finite number {'above' if open_end else 'from'} {least:g}")
    return float(value)


def _open_warning(names: tuple[str, ...], unknown: tuple[str, ...], rank: int) -> tuple[str, ...]:
    if not unknown:
        return ()
    return (
        f"the data determines {rank} directions of {len(names)} parameters and leaves open {', '.join(unknown)}; "
        "add motion that excites them, or give a prior",
    )


def _same(value: Any, default: Any) -> bool:
    return value is default or (isinstance(value, str | int | float | None) and value == default)


def _short(value: Any) -> str:
    if not isinstance(value, Mapping) or len(value) <= _SHOWN_ENTRIES:
        return repr(value)
    first = ", ".join(f"{k!r}: {value[k]!r}" for k in list(value)[:_SHOWN_ENTRIES])
    return f"{{{first}, ... {len(value)} in all}}"
