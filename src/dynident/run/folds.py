"""Parts of the training data left out in turn: errors, parameters that agree, and how wide torque bands must be."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace

from dynident.arrays import Array
from dynident.estimate.around import links_of, needs_reference, without_reference
from dynident.estimate.estimator import Estimator
from dynident.estimate.estimators import ESTIMATORS
from dynident.estimate.robust import RobustLeastSquares
from dynident.identifiability.base import BaseParameters, base_parameters
from dynident.information.information import Information
from dynident.information.row_source import accumulate_source
from dynident.signals.observe import Observations
from dynident.signals.rows import ObservedRows
from dynident.validation.cross import CrossValidation, RowsOf, cross_validate
from dynident.validation.selection import selection_folds

FOLD_SECONDS = 900.0  # of data that is gone through again for each fold; of more, the factors alone say enough


def left_out_in_turn(
    train: Sequence[Observations],
    fitted: Estimator,
    method: Estimator,
    inflation: Array,
    base: BaseParameters,
    reference: Array | None,
) -> CrossValidation | None:
    """Cross-validation of a fit; references too come from the other parts alone.

    Args:
        train: Training logs.
        fitted: The fit.
        method: What folds are fitted with.
        inflation: (n_channels,) rows that weigh as much as one independent row.
        base: Base parameters.
        reference: What the fit's terms are linear around.
    """
    data = fitted.information_
    long = sum(one.survey.duration for one in train) > FOLD_SECONDS
    if long or data.coordinates.n < base.n or isinstance(fitted, RobustLeastSquares):  # not the rows as they are
        return cross_validate(data, method, inflation)
    rows = ObservedRows(tuple(train), base, reference).of_logs
    if not needs_reference(base.terms):
        return _with_bands(data, functools.partial(cross_validate, data, method, inflation, rows))
    first = base_parameters(base.robot, without_reference(base.terms))
    plain = accumulate_source(ObservedRows(tuple(train), first))

    def around(kept: list[int]) -> tuple[Information, RowsOf]:
        before = ESTIMATORS["weighted"]().set_params(rank_tolerance=fitted.rank_tolerance).fit(plain.select(kept))
        own = ObservedRows(tuple(train), base, links_of(first, before.values_))
        return accumulate_source(own), own.of_logs

    return _with_bands(data, functools.partial(cross_validate, data, method, inflation, rows, around))


def _with_bands(data: Information, cross: Callable[..., CrossValidation | None]) -> CrossValidation | None:
    """A cross-validation over logs; two logs may be two worlds, so blocks of both tell how wide bands must be."""
    found = cross()
    labels = list(dict.fromkeys(segment.label for segment in data.segments))
    if found is None or len(labels) != 2:
        return found
    blocks = cross(folds=selection_folds(data, {label: label for label in labels}))
    return found if blocks is None else replace(found, levels=blocks.levels, band_coverage=blocks.band_coverage)
