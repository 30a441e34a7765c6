"""Fits with terms that are linear only around a reference: the links of an earlier fit, found in passes.

The first pass leaves those terms out. Its links are the reference of the second, whose links are that of the third.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dynident.arrays import Array, frozen
from dynident.dynamics.terms import Term, along_terms
from dynident.errors import InputError
from dynident.estimate.estimator import Estimator
from dynident.identifiability.base import BaseParameters, base_parameters
from dynident.identifiability.base_regressor import RowSource
from dynident.information.information import Information

RANK_TOLERANCE = 1e-7  # share of the largest singular value: what is weaker in a log is noise, whatever it says
PASSES = 2  # after the first: more change predictions by less than their noise
Gather = Callable[[BaseParameters, Array | None], Information | RowSource]


def needs_reference(terms: Sequence[Term]) -> bool:
    """Whether some term is linear only around a reference."""
    return any(term.needs_reference for term in along_terms(terms))


def without_reference(terms: Sequence[Term]) -> tuple[Term, ...]:
    """The terms of the first pass."""
    around = [term for term in along_terms(terms) if term.needs_reference]
    return tuple(term for term in terms if term not in around)


def links_of(base: BaseParameters, values: Array) -> Array:
    """Standard parameters of the links, (10 n_links,), from base values; what was regrouped is zero."""
    chi = base.standard_values(values, "regrouped zero")
    return frozen(np.array([x for x, column in zip(chi, base.columns, strict=True) if column.term == "rigid"]))


def fit_around(
    gather: Gather, base: BaseParameters, estimator: Estimator, passes: int = PASSES
) -> tuple[Estimator, Array | None]:
    """Fit, in passes where terms need a reference; the fitted estimator and its reference.

    Args:
        gather: Data for base parameters and a reference.
        base: Base parameters of all terms.
        estimator: Method; it is fitted on a clone.
        passes: With a reference.
    """
    if not needs_reference(base.terms):
        return estimator.clone().fit(gather(base, None)), None
    if not any(column.term == "rigid" for column in base.columns):
        named = next(term.key for term in along_terms(base.terms) if term.needs_reference)
        raise InputError(f"term {named} needs the torque of the links; add the term rigid")
    before = base_parameters(base.robot, without_reference(base.terms))
    fitted, reference = estimator.clone().fit(gather(before, None)), None
    for _ in range(passes):
        reference = links_of(before, fitted.values_)
        before, fitted = base, estimator.clone().fit(gather(base, reference))
    return fitted, reference
