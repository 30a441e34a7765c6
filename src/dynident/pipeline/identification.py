"""`identify`: from a robot and its logs to a fit with everything that a reader needs to trust it.

Logs answer two questions (`Fit`): the parameters, and the model that predicts torque best. Both come from the same
filtered logs; with basic friction the parameters predict too.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dynident._version import __version__
from dynident.errors import InputError
from dynident.estimate.delay import AGREEING_DELAYS
from dynident.estimate.essential import check_share
from dynident.estimate.fit import Fit
from dynident.estimate.friction_view import view_friction
from dynident.estimate.records import LogRecord
from dynident.logs.log import LogSource, as_logs
from dynident.options import keywords
from dynident.pipeline.diagnosis import diagnose, diagnosis_warnings
from dynident.pipeline.factor_cache import FactorCache
from dynident.pipeline.fitting import FittedModel, estimator_of, estimator_record, fit_model
from dynident.pipeline.model_selection import select_model
from dynident.pipeline.options import IdentifyOptions
from dynident.pipeline.prediction import fit_predictive
from dynident.pipeline.preprocessing import TrainingData, preprocess
from dynident.pipeline.provenance import provenance_of
from dynident.pipeline.staged import fit_staged, staged_method
from dynident.pipeline.temperature import temperature_notes, temperature_term, with_temperature
from dynident.pipeline.validation import ModelValidation, validate_model
from dynident.robot.model import Robot
from dynident.validation.comparison import difference_note


@keywords(IdentifyOptions)
def identify(robot: Robot, logs: LogSource | Sequence[LogSource], options: IdentifyOptions) -> Fit:
    """Identify the base parameters of a robot from logs of its motion, tau = W(q, dq, ddq) beta + rho.

    Only robot and logs are needed; the defaults of all options are meant to be right for any arm.

    Args:
        robot: The robot, from `di.load_robot`.
        logs: One log or several, from `di.read_log`, or streamed by `di.open_log`; those with role="validation" are not
            used for fitting.
        options: By name, see `IdentifyOptions`.

    Returns:
        The fit: parameters with standard deviations (`table`, `parameter`, `to_frame`), the model that predicts torque
        (`predict`, `torque_band`), errors, notes and warnings; `save` writes it, `di.report` makes its page.

    Raises:
        LogError, InputError: Naming log, column or option, what was expected and what to do.

    Example:
        >>> robot = di.load_robot("arm.urdf")
        >>> logs = [di.read_log("log_1.csv", robot), di.read_log("other.csv", robot, role="validation")]
        >>> fit = di.identify(robot, logs)
        >>> print(fit.parameter("MXR2"))
    """
    return run_pipeline(robot, logs, options)[0]


def run_pipeline(
    robot: Robot, logs: LogSource | Sequence[LogSource], options: IdentifyOptions
) -> tuple[Fit, TrainingData, ModelValidation]:
    """Run the pipeline: preprocess, diagnose, select the model, fit parameters and prediction, validate.

    Logs and validation go along to the report.
    """
    if not isinstance(robot, Robot):
        raise InputError(f"{robot!r} is not a robot; load it first: di.load_robot(file or bundled name)")
    store = options.store
    cache = store if isinstance(store, FactorCache) else FactorCache(None if store is None else Path(store))
    by_stages = staged_method(options)
    estimator_of(options.estimator)  # options that make no sense are refused before any log is read
    if options.essential is not None:
        check_share(options.essential)
    data = preprocess(robot, as_logs(logs), options, cache, options.progress or _quiet, by_torque=not by_stages)
    if by_stages:
        return _fit_in_stages(data, options)
    fit, data, validation = _fit_data(data, options)
    if options.band is None and not fit.usefulness.useful:
        other = data.in_other_bands()
        if [one.band for one in other.train] != [one.band for one in data.train]:
            return _fit_data(other, options)
    return fit, data, validation


def _fit_in_stages(data: TrainingData, options: IdentifyOptions) -> tuple[Fit, TrainingData, ModelValidation]:
    """From data in its band to a fit by stages, or by another model than that of torque; parameters predict."""
    diagnosis = diagnose(data, options)
    model = fit_staged(data, options)
    data = model.data
    validation = validate_model(model, None, data)
    braked = options.sequential == "offline" or options.stages is not None
    of_logs = diagnosis_warnings(diagnosis, len(data.train), braked=braked)
    warnings = [*data.warnings, *of_logs, *model.warnings]
    notes = [*data.notes, *model.notes, *validation.notes]
    fit = _gather_fit(model, data, validation, options, diagnosis=diagnosis, notes=notes, warnings=warnings)
    return fit, data, validation


def _fit_data(data: TrainingData, options: IdentifyOptions) -> tuple[Fit, TrainingData, ModelValidation]:
    """From data in its band to a fit."""
    diagnosis = diagnose(data, options)
    selection = select_model(data, options)
    model = fit_model(selection, options)
    term = temperature_term(model.data) if options.terms is None and options.essential is None else None
    if term is not None and (warmed := with_temperature(replace(selection, data=model.data), options, term)):
        term, selection, model = warmed[0], replace(warmed[1], data=selection.data), warmed[2]
    data = model.data  # filtered as was chosen
    seen, used = (one.train[0].options.delay for one in (selection.data, data))
    if selection.automatic and abs(used - seen) > AGREEING_DELAYS:
        # Reversals show a delay that rows away from them do not: friction, which predictions have to live with.
        data = selection.data
    prediction = None
    if selection.automatic:
        look_for_levels = options.friction_levels == "auto"
        predict = functools.partial(fit_predictive, basic=data.basic, given=selection.given, temperature=term)
        prediction = predict(data, look_for_levels=look_for_levels)
    springs = () if prediction is None else prediction.springs.linear
    levels = None if prediction is None else prediction.levels
    if springs or levels is not None:
        same, own = data is model.data, model.data
        if levels is not None:
            own, data = own.with_levels(levels), data.with_levels(levels)
            prediction = predict(data)
        chosen = selection.with_springs(springs) if springs else selection
        model = fit_model(replace(chosen, data=own), options)
        data = model.data if same else data
    validation = validate_model(model, prediction, data)
    warnings = [*data.warnings, *diagnosis_warnings(diagnosis, len(data.train)), *model.warnings]
    notes = [*data.notes, *selection.notes, *model.notes, *validation.notes]
    notes += temperature_notes(model, data.train)
    friction = None if selection.friction is None else selection.friction.to_record()
    predictive = model.estimate
    if prediction is not None:
        predictive, friction = prediction.estimate, prediction.selection
        warnings = [*warnings, *prediction.springs.warnings(), *prediction.warnings]
        notes = [*notes, *prediction.notes]
        notes += [] if levels is None else [levels.levels.sentence]
    fit = _gather_fit(
        model,
        data,
        validation,
        options,
        diagnosis=diagnosis,
        selection=friction,
        notes=notes,
        warnings=warnings,
        predictive=predictive,
        friction_levels=None if levels is None else levels.levels,
    )
    differences = difference_note(fit)
    return replace(fit, notes=(*fit.notes, *([differences] if differences else []))), data, validation


def _gather_fit(
    model: FittedModel,
    data: TrainingData,
    validation: ModelValidation,
    options: IdentifyOptions,
    *,
    notes: Sequence[str],
    warnings: Sequence[str],
    **more: Any,
) -> Fit:
    """The fit with everything that a reader needs to trust it."""
    fit = Fit(
        base=model.base,
        estimate=model.estimate,
        estimator=estimator_record(estimator_of(options.estimator)),
        signals=replace(data.train[0].options, band=options.band),
        data=tuple(LogRecord.of(one) for one in data.train),
        held_out=tuple(LogRecord.of(one) for one in validation.held_out),
        errors=validation.errors,
        eliminated=model.eliminated,
        provenance=provenance_of(options),
        notes=tuple(notes),
        warnings=tuple(dict.fromkeys(warnings)),
        version=__version__,
        **more,
    )
    return replace(fit, friction_view=view_friction(fit.model, data.train))


def _quiet(what: str, done: int, total: int) -> None:
    """No progress is shown."""
