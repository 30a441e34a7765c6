"""Fits with terms that are linear only around a point: the links of an earlier fit.

The first fit leaves those terms out. Its links are the point of the second, whose links are that of the third.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from dynident.arrays import Array, frozen
from dynident.dynamics.terms import Term, along_terms
from dynident.errors import InputError
from dynident.estimate.estimator import Estimator
from dynident.identifiability.base import BaseParameters, base_parameters
from dynident.identifiability.base_regressor import RowSource
from dynident.information.information import Information

RELINEARIZATIONS = 2  # after the first fit: more change predictions by less than their noise


class LinearizedData(Protocol):
    """Data over any base parameters, with some terms linearized around a point."""

    def information(self, base: BaseParameters, point: Array | None = None) -> Information:
        """Factors of the data."""
        ...

    def rows(self, base: BaseParameters, point: Array | None = None) -> RowSource:
        """The equations themselves."""
        ...


def needs_linearization(terms: Sequence[Term]) -> bool:
    """Whether some term is linear only around a point."""
    return any(term.needs_linearization_point for term in along_terms(terms))


def without_linearized(terms: Sequence[Term]) -> tuple[Term, ...]:
    """The terms of the first fit."""
    around = [term for term in along_terms(terms) if term.needs_linearization_point]
    return tuple(term for term in terms if term not in around)


def links_of(base: BaseParameters, values: Array | Mapping[str, float]) -> Array:
    """Standard parameters of the links, (10 n_links,), from base values; what was regrouped is zero."""
    chi = base.standard_values(values, "regrouped zero")
    return frozen(np.array([x for x, column in zip(chi, base.columns, strict=True) if column.term == "rigid"]))


def fit_linearized(
    data: LinearizedData, base: BaseParameters, estimator: Estimator, relinearizations: int = RELINEARIZATIONS
) -> tuple[Estimator, Array | None]:
    """Fit; where terms are linear only around a point, again around the links of the fit before.

    Args:
        data: The data.
        base: Base parameters of all terms.
        estimator: Method; it is fitted on a clone.
        relinearizations: Fits around a point.

    Returns:
        The fitted estimator and the point of its last fit, (10 n_links,); None without such terms.
    """

    def fitted_to(base: BaseParameters, point: Array | None) -> Estimator:
        information = data.information(base, point)  # also for methods that need rows: a pass keeps its rows
        return estimator.clone().fit(data.rows(base, point) if estimator.needs_rows else information)

    if not needs_linearization(base.terms):
        return fitted_to(base, None), None
    if not any(column.term == "rigid" for column in base.columns):
        named = next(term.key for term in along_terms(base.terms) if term.needs_linearization_point)
        raise InputError(f"term {named} needs the torque of the links; add the term rigid")
    before = base_parameters(base.robot, without_linearized(base.terms))
    point = links_of(before, fitted_to(before, None).values_)
    fitted = fitted_to(base, point)
    for _ in range(relinearizations - 1):
        point = links_of(base, fitted.values_)
        fitted = fitted_to(base, point)
    return fitted, point
