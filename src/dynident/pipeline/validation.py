"""Validation: errors on training and validation logs, and cross-validation over parts of the training data."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

from dynident.arrays import Array
from dynident.estimate.estimators import ESTIMATORS
from dynident.estimate.records import CrossValidation, FitErrors
from dynident.estimate.torque_errors import Trace, together
from dynident.information.information import Information
from dynident.pipeline.fitting import FittedModel
from dynident.pipeline.preprocessing import TrainingData
from dynident.pipeline.thresholds import THRESHOLDS
from dynident.signals.observations import Observations
from dynident.validation.cross_validation import cross_validate, selection_folds
from dynident.validation.residuals import LogErrors, compare_all


@dataclass(frozen=True, eq=False)
class ModelValidation:
    """How well a fitted model predicts torque.

    Attributes:
        held_out: Validation logs, filtered like the training.
        errors: On training logs, on validation logs and on parts of the training data left out in turn.
        traces: Measured and predicted torque by log, thinned for plots.
        notes: The same in words.
    """

    held_out: tuple[Observations, ...]
    errors: FitErrors
    traces: dict[str, Trace]
    notes: tuple[str, ...]


def validate_model(model: FittedModel, data: TrainingData) -> ModelValidation:
    """Errors of a fitted model on training and validation logs, and on parts of the training data left out in turn."""
    held_out = tuple(_filtered_alike(one, data.train) for one in data.held_out)
    unseen = compare_all([model.model], held_out, data.progress, "validating")
    crossed = _cross_validation(model, data)
    return ModelValidation(
        held_out=held_out,
        errors=FitErrors(
            train=together(one.errors[0] for one in model.training),
            nominal=together(one.errors[1] for one in model.training) if model.has_nominal else None,
            held_out={one.label: one.errors[0] for one in unseen},
            cross_validation=crossed,
        ),
        traces=_traces([*model.training, *unseen]),
        notes=_notes(crossed),
    )


def _filtered_alike(one: Observations, train: tuple[Observations, ...]) -> Observations:
    """A validation log, filtered like the training; prediction has no measured velocity."""
    band = one.survey.evidence.prediction_band(max(other.band for other in train))
    return one.with_options(band=band, delay=train[0].options.delay, speed="position")


def _traces(comparisons: list[LogErrors]) -> dict[str, Trace]:
    return {one.label: one.trace for one in comparisons}


def _notes(crossed: CrossValidation | None) -> tuple[str, ...]:
    if crossed is None:
        return ("one short log: nothing could be left out for cross-validation",)
    worst, best = 100.0 * crossed.totals.max(), 100.0 * crossed.totals.min()
    return (f"leaving out {len(crossed.labels)} {crossed.over} in turn: error {best:.2f} to {worst:.2f} %",)


def _cross_validation(model: FittedModel, data: TrainingData) -> CrossValidation | None:
    """Cross-validation of a fit; all folds share its linearization point."""
    base, fitted, point = model.base, model.fitted, model.estimate.linearization
    # The folds have factors but no rows.
    plain = ESTIMATORS["weighted"]().set_params(rank_tolerance=fitted.rank_tolerance)
    method = plain if fitted.needs_rows else fitted.clone()
    inflation = _inflation(model)
    found = fitted.information_
    long = sum(one.survey.duration for one in data.train) > THRESHOLDS.fold_s
    if long or found.coordinates.n < base.n or fitted.needs_rows:  # not the rows as they are
        return cross_validate(found, method, inflation)
    rows = data.rows.rows(base, point).of_logs
    return _with_bands(found, functools.partial(cross_validate, found, method, inflation, rows))


def _inflation(model: FittedModel) -> Array:
    solved = model.estimate.solve
    assert solved is not None
    assert solved.variance_inflation is not None
    return solved.variance_inflation


def _with_bands(data: Information, cross: Callable[..., CrossValidation | None]) -> CrossValidation | None:
    """A cross-validation over logs; two logs may be two worlds, so blocks of both tell how wide bands must be."""
    found = cross()
    labels = list(dict.fromkeys(segment.label for segment in data.segments))
    if found is None or len(labels) != 2:
        return found
    blocks = cross(folds=selection_folds(data, {label: label for label in labels}))
    return found if blocks is None else replace(found, levels=blocks.levels, band_coverage=blocks.band_coverage)
