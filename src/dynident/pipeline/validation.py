"""Validation: errors of the prediction on training and validation logs, and on parts of the training held-out data."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dynident.arrays import Array
from dynident.estimate.estimator import Estimator
from dynident.estimate.estimators import ESTIMATORS
from dynident.estimate.records import CrossValidation, FitErrors
from dynident.estimate.torque_errors import Trace, together
from dynident.information.information import Information
from dynident.pipeline.fitting import FittedModel, nominal_model
from dynident.pipeline.prediction import PredictiveModel
from dynident.pipeline.preprocessing import TrainingData
from dynident.pipeline.thresholds import THRESHOLDS
from dynident.signals.bandwidth import prediction_band
from dynident.signals.observations import Observations
from dynident.validation.cross_validation import cross_validate, selection_folds
from dynident.validation.residuals import LogErrors, compare_all
from dynident.validation.thresholds import THRESHOLDS as VALIDATION


@dataclass(frozen=True, eq=False)
class ModelValidation:
    """How well a fit predicts torque.

    Attributes:
        held_out: Validation logs, filtered like the training.
        errors: On training logs, on validation logs and on parts of the training data held out in turn.
        traces: Measured and predicted torque by log, thinned for plots.
        notes: The same in words.
    """

    held_out: tuple[Observations, ...]
    errors: FitErrors
    traces: dict[str, Trace]
    notes: tuple[str, ...]


def validate_model(model: FittedModel, prediction: PredictiveModel | None, data: TrainingData) -> ModelValidation:
    """Errors of what predicts torque, on training and validation logs, and on parts of the training held-out data.

    Args:
        model: The parameters.
        prediction: What predicts; None where the parameters do.
        data: Training logs, filtered as what predicts wants them.
    """
    held_out = tuple(_filtered_alike(one, data.train) for one in data.held_out)
    if prediction is None:
        predicts, crossed, nominal = model.model, _cross_validation(model, data), nominal_model(data.robot, model.base)
        training = compare_all([predicts, *nominal], data.train, data.progress, "comparing")
    else:
        predicts, crossed = prediction.model, _with_coverage(prediction.cross_validation, model)
        training = list(prediction.training)
    unseen = compare_all([predicts], held_out, data.progress, "validating")
    has_nominal = all(len(one.errors) > 1 for one in training)
    return ModelValidation(
        held_out=held_out,
        errors=FitErrors(
            train=together(one.errors[0] for one in training),
            nominal=together(one.errors[1] for one in training) if has_nominal else None,
            held_out={one.label: one.errors[0] for one in unseen},
            cross_validation=crossed,
        ),
        traces=_traces([*training, *unseen]),
        notes=() if model.fitted is None else _notes(crossed, data.robot.joint_names),
    )


def _filtered_alike(one: Observations, train: tuple[Observations, ...]) -> Observations:
    """A validation log, filtered like the training; prediction has no measured velocity."""
    band = prediction_band(one.survey.evidence, max(other.band for other in train))
    return one.with_options(band=band, delay=train[0].options.delay, velocity_source="position")


def _traces(comparisons: list[LogErrors]) -> dict[str, Trace]:
    return {one.label: one.trace for one in comparisons}


def _notes(crossed: CrossValidation | None, joints: tuple[str, ...]) -> tuple[str, ...]:
    if crossed is None:
        return ("one short log: nothing could be left out for cross-validation",)
    worst, best = 100.0 * crossed.totals.max(), 100.0 * crossed.totals.min()
    found = f"leaving out {len(crossed.labels)} {crossed.over} in turn: error {best:.2f} to {worst:.2f} %"
    covered = crossed.interval_coverage
    narrow = () if covered is None else np.flatnonzero(covered < VALIDATION.min_interval_coverage)
    if covered is None or not len(narrow):
        return (found,)
    shares = ", ".join(f"{joints[i]} {100.0 * covered[i]:.0f} %" for i in narrow)
    return (
        found,
        f"intervals of torque are as wide as cross-validation asks for: those of the training residual, meant for 95 % "
        f"of the torque, would hold less of what was held out ({shares})",
    )


def _with_coverage(crossed: CrossValidation | None, model: FittedModel) -> CrossValidation | None:
    """Cross-validation of a prediction, with what folds say of the standard deviations of the parameters."""
    if crossed is None or model.fitted is None:
        return crossed
    parameters = cross_validate(model.fitted.information_, _method(model.fitted), _inflation(model))
    return crossed if parameters is None else replace(crossed, coverage=parameters.coverage)


def _method(fitted: Estimator) -> Estimator:
    """What is fitted again for every fold; folds have factors but no rows."""
    plain = ESTIMATORS["weighted"]().set_params(rank_tolerance=fitted.rank_tolerance)
    return plain if fitted.needs_rows else fitted.clone()


def _cross_validation(model: FittedModel, data: TrainingData) -> CrossValidation | None:
    """Cross-validation of a fit; all folds share its linearization point. Stages are not solved again for folds."""
    base, fitted, point = model.base, model.fitted, model.estimate.linearization
    if fitted is None:
        return None
    method, inflation, found = _method(fitted), _inflation(model), fitted.information_
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
    if blocks is None:
        return found
    wide = {name: getattr(blocks, name) for name in ("levels", "band_coverage", "interval_coverage")}
    return replace(found, **wide)
