r"""The torque-error model: corrections around nominal values (Khosla & Kanade 1987, eq. 11).

.. math:: \tau - W \chi_0 = W_b\, \Delta\beta, \quad \beta = K \chi_0 + \Delta\beta

For data that determines everything the result is that of the torque itself. It differs where the data is silent: there
the nominal value stays, instead of zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, Mask, record
from dynident.dynamics.evaluate import parameters
from dynident.errors import InputError, UnknownNameError
from dynident.estimate.estimators import ESTIMATORS, Estimator, PriorLeastSquares
from dynident.estimate.priors import nominal_std
from dynident.identifiability.base import BaseParameters
from dynident.identifiability.base_regressor import RowSource
from dynident.identifiability.regrouping import Regrouping
from dynident.information.information import Information
from dynident.information.parameter_estimate import ParameterEstimate, std_text, text_table
from dynident.information.row_source import MappedRows

Nominal = str | Mapping[str, float] | ArrayLike


@record
class TorqueErrorEstimate(ParameterEstimate):
    """Base parameters as nominal value plus correction.

    Attributes:
        nominal: (n,) nominal base values K chi_0.
        kept: Parameters that no equation depends on: they have their nominal values.
        warnings: What a reader should know.
    """

    nominal: Array = field(default_factory=lambda: np.zeros(0))
    kept: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def correction(self) -> Array:
        """(n,) what the data adds to the nominal values."""
        return self.values - self.nominal

    def table(self) -> str:
        """The parameters as text: name, nominal, correction, value, standard deviation, unit, expression."""
        expressions = self.names if self.coordinates is None else self.coordinates.expressions
        head = ("parameter", "nominal", "correction", "value", "std", "unit", "stands for")
        lines = [
            (
                name,
                f"{self.nominal[i]:.5g}",
                "kept" if name in self.kept else f"{self.correction[i]:.5g}",
                f"{self.values[i]:.5g}",
                std_text(self.std[i]),
                self.units[i],
                expression,
            )
            for i, (name, expression) in enumerate(zip(self.names, expressions, strict=True))
        ]
        return text_table(head, lines, ("nominal", "correction", "value", "std"))


def torque_error_model(
    data: Information | RowSource, nominal: Nominal, estimator: str | Estimator = "weighted"
) -> TorqueErrorEstimate:
    """Estimate corrections around nominal values.

    Directions that the data does not determine keep their nominal values: the correction is the smallest (in scaled
    columns) that explains the data. Ridge pulls towards the nominal values instead of zero; a Gaussian prior keeps its
    own values.

    Args:
        data: Factors, or a source of rows (which the robust method needs).
        nominal: Standard parameter values by name (absent ones are zero), or the vector itself; also the name of one of
            the robot's value sets, for data that `accumulate` made.
        estimator: Method by name, or an estimator.
    """
    coordinates = data.coordinates
    chi = standard_nominal(coordinates, nominal)
    beta = np.asarray(coordinates.K @ chi)
    method = _around(chosen_estimator(estimator), coordinates, chi)
    fitted = method.fit(data.around(beta) if isinstance(data, Information) else MappedRows(data, origin=beta))
    silent = ~_columns_in_use(fitted.information_)
    kept = tuple(name for name, alone in zip(coordinates.names, silent, strict=True) if alone)
    found = fitted.estimate_
    return TorqueErrorEstimate.of(
        coordinates,
        beta + np.where(silent, 0.0, found.values),
        found.covariance,
        found.determined,
        solve=found.solve,
        nominal=beta,
        kept=kept,
        warnings=(*_kept_words(kept), *fitted.warnings_),
    )


def chosen_estimator(given: str | Estimator) -> Estimator:
    """An estimator that has learned nothing, from its name or another one.

    Raises:
        UnknownNameError, InputError: When the name means nothing, or needs arguments.
    """
    if isinstance(given, Estimator):
        return given.clone()
    if given not in ESTIMATORS:
        raise UnknownNameError("estimator", str(given), ESTIMATORS)
    if given == "prior":
        raise InputError("the estimator 'prior' needs nominal values; give PriorLeastSquares(values, std)")
    return ESTIMATORS[given]()


def standard_nominal(coordinates: Regrouping, nominal: Nominal) -> Array:
    """Nominal values of all standard parameters, (n_standard,)."""
    if isinstance(coordinates, BaseParameters):
        return parameters(coordinates.robot, coordinates.terms, nominal)
    names = [column.name for column in coordinates.columns]
    if isinstance(nominal, str):
        raise InputError(f"the nominal values '{nominal}' need a robot; give `robot.value_set('{nominal}')` instead")
    if isinstance(nominal, Mapping):
        for name in nominal:
            if name not in names:
                raise UnknownNameError("standard parameter", name, names)
        nominal = [nominal.get(name, 0.0) for name in names]
    vector = np.asarray(nominal, dtype=np.float64)
    if vector.shape != (len(names),) or not np.isfinite(vector).all():
        raise InputError(f"nominal must be {len(names)} finite values, one per standard parameter; got {vector.shape}")
    return vector


def _around(estimator: Estimator, coordinates: Regrouping, chi: Array) -> Estimator:
    """The estimator for corrections: a prior over values becomes one over what they differ from the nominal ones."""
    if not isinstance(estimator, PriorLeastSquares):
        return estimator
    estimator._check()
    names = [column.name for column in coordinates.columns]
    deviations = dict(zip(names, nominal_std(coordinates, estimator.values, estimator.std).tolist(), strict=True))
    nominal = dict(zip(names, chi.tolist(), strict=True))
    moved = {name: float(value) - nominal.get(name, 0.0) for name, value in estimator.values.items()}
    std = {name: deviations.get(name, 1.0) for name in moved}  # an unknown name is refused by `fit`, which lists them
    return estimator.set_params(values=moved, std=std)


def _columns_in_use(information: Information) -> Mask:
    """(n,) whether any row feels each parameter."""
    n = information.coordinates.n
    dense = np.vstack([factor.dense(n) for factor in information.channel_factors()])
    return np.asarray(dense[:, :n].any(0))


def _kept_words(kept: tuple[str, ...]) -> tuple[str, ...]:
    return (f"the data has no information about {', '.join(kept)}; nominal values are kept",) if kept else ()
