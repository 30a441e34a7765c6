"""Combinations of base parameters about which data says nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.evaluate import parameters
from dynident.dynamics.terms import Coulomb, state_terms
from dynident.errors import InputError, UnknownNameError
from dynident.estimate.covariance import correlated_covariance, gain_covariance, null_space, residual_correlation
from dynident.estimate.essential import EssentialParameters, essential_parameters
from dynident.estimate.estimator import Estimator
from dynident.estimate.estimators import ESTIMATORS
from dynident.estimate.friction_width import with_widths
from dynident.estimate.lack_of_fit import find_lack_of_fit
from dynident.estimate.linearization import needs_linearization
from dynident.estimate.prediction import TorqueModel
from dynident.estimate.records import Elimination, EstimatorRecord
from dynident.estimate.torque_errors import together
from dynident.identifiability.base import BaseParameters
from dynident.identifiability.excitation_quality import excitation_of
from dynident.information.information import Information
from dynident.information.parameter_estimate import ParameterEstimate
from dynident.information.thresholds import THRESHOLDS as ENOUGH
from dynident.logs.log import torque_kind
from dynident.pipeline.model_selection import ModelSelection
from dynident.pipeline.options import IdentifyOptions
from dynident.pipeline.parameters import FoundFriction, ParameterData, gather_parameter_data
from dynident.pipeline.preprocessing import TrainingData
from dynident.pipeline.thresholds import THRESHOLDS
from dynident.robot.model import Robot
from dynident.signals.observations import Observations
from dynident.signals.thresholds import THRESHOLDS as SIGNALS
from dynident.validation.residuals import compare_all

# ----------------------------------------------------------------------------------------------------------------------
# Fitting: factors of the training logs to base parameters, with an autocorrelation-robust covariance.


@dataclass(frozen=True, eq=False)
class FittedModel:
    """Base parameters fitted to the training logs.

    Attributes:
        base: What the parameters are.
        estimate: Their values, with the covariance that allows for correlated residuals.
        model: What predicts torque with them.
        fitted: The estimator; of the essential parameters alone, where only those were wanted; None where the
            parameters come from several stages, or from other equations than those of torque.
        data: The training logs, filtered with the delay that was found.
        eliminated: Parameters that were taken as zero because they are not essential.
        notes: What was decided, in words.
        warnings: What a reader should know.
    """

    base: BaseParameters
    estimate: ParameterEstimate
    model: TorqueModel
    fitted: Estimator | None
    data: TrainingData
    eliminated: tuple[Elimination, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]


def fit_model(selection: ModelSelection, options: IdentifyOptions) -> FittedModel:
    """Fit the chosen model to the training logs.

    Raises:
        InputError: When there are too few equations in motion.
    """
    data, estimator = selection.data, estimator_of(options.estimator)
    point = data.rows.fit(selection.base, estimator)[1] if needs_linearization(selection.base.terms) else None
    searched, open_delay = options.terms is None, options.delay is None
    given = gather_parameter_data(data, selection.base, point, search=searched, delay=open_delay)
    data = given.data
    base, information = given.base, given.information
    fitted = estimator.clone().fit(given.rows() if estimator.needs_rows else information)
    inflation, lacking = _inflation(given, fitted)
    remaining = inflation if given.further is None else _remaining_inflation(given, given.further)
    kept, notes = _essential(fitted, given, inflation, options)
    fitted = fitted if kept is None or kept.fitted is None else kept.fitted
    values = fitted.values_ if kept is None else kept.values
    if not selection.automatic:
        base = _predicting_widths(base, selection.base, values, point, data)
    model = model_of(base, values, point)
    covariance, kind = _covariance(fitted, remaining, given)
    solved = fitted.estimate_.solve
    assert solved is not None
    estimate = ParameterEstimate.of(
        base,
        values,
        covariance if kept is None else kept.widened(covariance),
        fitted.determined_ if kept is None else kept.determined,
        linearization=point,
        solve=solved.replace(
            covariance_kind=kind,
            variance_inflation=inflation,
            std_white_noise=fitted.std_ if kept is None else np.sqrt(np.diag(kept.widened(fitted.covariance_))),
            null_space=None if kept is not None or fitted.determined_.all() else _null_space(fitted),
        ),
    )
    return FittedModel(
        base=base,
        estimate=estimate,
        model=model,
        fitted=fitted,
        data=data,
        eliminated=() if kept is None else kept.eliminated,
        notes=(*given.notes, *notes),
        warnings=(*base.warnings, *fitted.warnings_, *lacking, *_remarks(fitted, information, base, data.train)),
    )


def estimator_of(given: str | Estimator) -> Estimator:
    """An estimator that has learned nothing; what is weak in noisy logs is not determined."""
    if isinstance(given, Estimator):
        estimator = given.clone()
    elif given not in ESTIMATORS:
        raise UnknownNameError("estimator", given, ESTIMATORS)
    elif given == "prior":
        raise InputError("the estimator 'prior' needs nominal values; give PriorLeastSquares(values, std)")
    else:
        estimator = ESTIMATORS[given]()
    return estimator if estimator.rank_tolerance is not None else estimator.set_params(rank_tolerance=ENOUGH.noisy_rank)


def estimator_record(estimator: Estimator) -> EstimatorRecord:
    """Name of an estimator among the options, or of its class, and its options."""
    name = next((name for name, kind in ESTIMATORS.items() if type(estimator) is kind), type(estimator).__name__)
    options = {
        option: {k: float(v) for k, v in value.items()} if isinstance(value, Mapping) else value
        for option, value in estimator.get_params().items()
        if value is not None
    }
    return EstimatorRecord(name, options)


def model_of(base: BaseParameters, beta: Array, point: Array | None) -> TorqueModel:
    """What predicts torque with base values; what was regrouped is zero."""
    return TorqueModel(base.robot, base.terms, base.standard_values(beta, "regrouped zero"), point)


def nominal_model(robot: Robot, base: BaseParameters) -> list[TorqueModel]:
    """The robot's own values as a model, where its description gives any."""
    if not robot.link_parameters().any():
        return []
    terms = state_terms(base.terms)
    return [TorqueModel(robot, terms, parameters(robot, terms))]


def _essential(
    fitted: Estimator, given: ParameterData, inflation: Array, options: IdentifyOptions
) -> tuple[EssentialParameters | None, list[str]]:
    """The parameters worth keeping, where only those are wanted; standard deviations allow for correlated residuals."""
    if options.essential is None:
        return None, []
    rows = given.rows() if fitted.needs_rows else given.information
    kept = essential_parameters(rows, fitted.clone(), share=options.essential, inflation=inflation)
    gone = [one.name for one in kept.eliminated]
    if not gone:
        return kept, ["no parameter was eliminated: all are essential"]
    grown = f"the residual grew by {100.0 * kept.eliminated[-1].total:.2g} %"
    share = f"{100.0 * options.essential:g} %"
    what = f"eliminated {len(gone)} of {given.base.n} parameters, with a relative standard deviation of {share} or more"
    return kept, [f"{what} ({', '.join(gone)}); {grown}"]


def _predicting_widths(
    base: BaseParameters, plain: BaseParameters, values: Array, point: Array | None, data: TrainingData
) -> BaseParameters:
    """The base parameters with those widths of dry friction that predict the training better than the usual ones.

    Parameters predict too where nothing else does. Rows away from reversals give the widths that parameters need; what
    gears do at a reversal, where torque depends on the width, they have not seen.
    """
    term = next((own for own in base.terms if isinstance(own, Coulomb) and own.widths), None)
    if term is None:
        return base
    models = [model_of(own, values, point) for own in (base, plain)]
    errors = compare_all(models, data.train, data.progress, "comparing")
    found, usual = (together(one.errors[k] for one in errors).per_joint for k in (0, 1))
    moving, widths = list(base.robot.moving), dict(term.widths)
    for element in term.elements(base.robot):
        joint = int(np.argmax(np.abs(element.torque[moving])))
        if not found[joint] < usual[joint]:
            widths[element.label] = Coulomb(term.smoothing, term.sliding).width(element)
    return with_widths(plain, widths)


def _inflation(given: ParameterData, fitted: Estimator) -> tuple[Array, tuple[str, ...]]:
    """(n_channels,) rows that weigh as much as one independent row, and what a reader should know of the model."""
    neighbors = given.correlation(fitted.values_).inflation
    lack = find_lack_of_fit(given.data.train, given.rows(), fitted.values_, neighbors, THRESHOLDS.selection_s)
    return neighbors * lack.inflation, lack.warnings()


def _remaining_inflation(given: ParameterData, further: FoundFriction) -> Array:
    """The same of what further friction leaves, for what it moves parameters by is known."""
    neighbors = residual_correlation(further.rows, further.friction.values).inflation
    train, values = given.data.train, further.friction.values
    return neighbors * find_lack_of_fit(train, further.rows, values, neighbors, THRESHOLDS.selection_s).inflation


def _covariance(fitted: Estimator, inflation: Array, given: ParameterData) -> tuple[Array, str]:
    """Covariance of the fit, and what it allows for, in words."""
    data = given.data
    covariance = correlated_covariance(fitted, inflation) + given.nuisance_covariance(fitted, inflation)
    if data.levels is not None:
        kept = [given.base.names.index(name) for name in fitted.names_]
        covariance = covariance + data.levels.covariance_of(given.information, fitted, kept)
    kind = "allow for correlation between neighboring residuals"
    kind += ", for the delay and for the width of dry friction" if given.nuisance else ""
    kind += ", for friction beyond viscous and Coulomb's" if given.further is not None else ""
    kind += ", for viscous friction that differs between logs" if data.levels is not None else ""
    drive, moving = data.robot.drive, list(data.robot.moving)
    by_current = {one.log.label for one in data.train if torque_kind(next(iter(one.log.blocks())), data.robot) == "i"}
    if by_current and drive.gains is not None and drive.gain_tolerances is not None and drive.gain_tolerances.any():
        tolerances = np.abs(drive.gain_tolerances / drive.gains)[moving]
        covariance = covariance + gain_covariance(fitted, tolerances, by_current)
        kind += " and for the tolerance of the drive gains"
    return covariance, kind


def _remarks(
    fitted: Estimator, information: Information, base: BaseParameters, train: Sequence[Observations]
) -> list[str]:
    """What a reader should know of the data behind a fit."""
    remarks = _too_slow(information, train)
    if fitted.rank_ == base.n and fitted.condition_ > ENOUGH.max_condition:
        parts = zip(fitted.information_.channel_factors(), fitted.channel_weights_, strict=True)
        rows = np.vstack([factor.dense(base.n)[:, : base.n] * np.sqrt(weight) for factor, weight in parts])
        weakest = excitation_of(base.names, rows, len(rows)).weak[0]
        remarks.append(
            f"condition {fitted.condition_:.0f}: the motion hardly moves the combination {weakest}; its parameters "
            f"trade against each other: {'correct the robot file' if base.is_faint else 'record a richer motion'}"
        )
    per_parameter = information.n_rows / base.n
    if per_parameter < ENOUGH.recommended_equations:
        rule = f"{ENOUGH.recommended_equations} are a good rule"
        remarks.append(f"{per_parameter:.0f} equations per parameter; {rule}: record longer motion")
    return remarks


def _too_slow(information: Information, train: Sequence[Observations]) -> list[str]:
    """Warnings for joints that move, but never fast enough for their torque to be used."""
    robot, rest = train[0].robot, train[0].options.rest_velocity
    ranges = np.max([one.survey.highest - one.survey.lowest for one in train], axis=0)
    rows = dict(zip(information.channels, (factor.n_rows for factor in information.channel_factors()), strict=True))
    slow = [
        f"{name} moves, but never for long above the rest velocity of {rest:g} {'rad' if radian == 1.0 else 'm'}/s"
        for name, radian, covered in zip(robot.joint_names, robot.radians, ranges, strict=True)
        if not rows[name] and covered > SIGNALS.standstill_rad * radian
    ]
    return [f"{one}, so its torque is not used; record faster motion, or lower rest_velocity" for one in slow]


def _null_space(fitted: Estimator) -> Array:
    directions, scale = null_space(fitted)
    return np.asarray(directions / scale[:, None])
