"""`identify`: from a robot and its logs to an estimate with everything that a reader needs to trust it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynident._version import __version__
from dynident.arrays import Array
from dynident.check.doctor import check_observed
from dynident.check.finding import Checkup
from dynident.dynamics.evaluate import parameters
from dynident.dynamics.terms import Term, TermsLike, along_terms, resolve_terms, state_terms
from dynident.errors import InputError, UnknownNameError
from dynident.estimate.accuracy import TorqueErrors, Trace, together
from dynident.estimate.around import RANK_TOLERANCE, fit_around
from dynident.estimate.choices import choose_delay, choose_speed
from dynident.estimate.deviations import common_inflation, correlated_covariance, gain_covariance
from dynident.estimate.essential import EssentialParameters, check_share, essential_parameters
from dynident.estimate.estimate import Estimate, LogRecord
from dynident.estimate.estimator import Estimator
from dynident.estimate.estimators import ESTIMATORS
from dynident.estimate.friction_view import friction_view
from dynident.estimate.motion_view import motion_view
from dynident.estimate.open_directions import open_directions
from dynident.estimate.prediction import TorqueModel
from dynident.estimate.priors import PriorLeastSquares
from dynident.estimate.recipes import BASIC_TERMS
from dynident.estimate.robust import RobustLeastSquares
from dynident.identifiability.base import BaseParameters, base_parameters
from dynident.identifiability.excitation import excitation_of
from dynident.information.information import Information
from dynident.logs.log import torque_kind
from dynident.logs.source import LogSource, as_logs, log_warnings
from dynident.robot.model import Robot
from dynident.run.folds import left_out_in_turn
from dynident.run.friction import chosen_friction
from dynident.run.identify_options import IdentifyOptions as IdentifyOptions
from dynident.run.provenance import provenance
from dynident.run.store import factor_of_log
from dynident.signals.band import STANDSTILL
from dynident.signals.log_survey import survey_log
from dynident.signals.observe import Observations, SignalOptions, observe
from dynident.signals.rows import ObservedRows, filter_time, too_short
from dynident.validation.band import band_notes, choose_bands
from dynident.validation.compare import Comparison, compare
from dynident.validation.cross import CrossValidation
from dynident.validation.selection import FrictionChoice

LEAST_EQUATIONS = 5  # per parameter: with fewer, the fit follows the noise
HIGH_CONDITION = 1000.0  # beyond this some combination is all but undetermined
ENOUGH_EQUATIONS = 50  # per parameter, as a rule (Gautier et al. 1995)
_TOLD_LATER = ("equations", "rank", "condition", "model")  # items of the check that the fit itself says more about
Progress = Callable[[str, int, int], None]  # what is being done, steps done, steps in all


def identify(
    robot: Robot,
    logs: LogSource | Sequence[LogSource],
    *,
    store: str | Path | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Estimate:
    """Identify a robot from logs.

    Args:
        robot: The robot.
        logs: Logs in memory or streamed; those whose role is "validation" judge the result and shape nothing.
        store: Folder for the factor of each finished log. A later run with the same logs and options continues there.
        progress: Called with what is being done, and how much of it is done.
        **options: See `IdentifyOptions`.

    Raises:
        LogError, InputError: Naming log, column or option, what was expected and what to do.
    """
    try:
        chosen = IdentifyOptions(**options)
    except TypeError:
        unknown = next(name for name in options if name not in IdentifyOptions.__dataclass_fields__)
        raise UnknownNameError("option", unknown, IdentifyOptions.__dataclass_fields__) from None
    if not isinstance(robot, Robot):
        raise InputError(f"{robot!r} is not a robot; load it first: di.load_robot(file or bundled name)")
    return _Run(robot, as_logs(logs), chosen, Path(store) if store is not None else None, progress).estimate()


class _Run:
    """One identification, step by step."""

    def __init__(
        self,
        robot: Robot,
        logs: Sequence[LogSource],
        options: IdentifyOptions,
        store: Path | None,
        progress: Progress | None,
    ) -> None:
        self.robot, self.options, self.store = robot, options, store
        self.logs = _distinct(logs)
        if not any(log.role == "train" for log in self.logs):
            raise InputError("there is no log to learn from; give at least one whose role is train")
        self.notes: list[str] = []
        self.warnings: list[str] = [*robot.warnings, *log_warnings(self.logs)]
        self._progress = progress or (lambda what, done, total: None)

    def estimate(self) -> Estimate:
        """Everything."""
        estimator = _estimator(self.options.estimator)
        if estimator.rank_tolerance is None:
            estimator.set_params(rank_tolerance=RANK_TOLERANCE)
        if self.options.essential is not None:
            check_share(self.options.essential)
        basic = base_parameters(self.robot, _state_part(self.options.terms))
        train, held_out = self._observed()
        train = self._choose_bands(train, basic)
        checkup = self._check(train)
        train = self._choose(train, basic)
        base, friction = self._friction(train, basic)
        robust = isinstance(estimator, RobustLeastSquares)

        gathered: list[Information] = []

        def gather(base: BaseParameters, reference: Array | None) -> Information | ObservedRows:
            gathered[:] = [self._gather(train, base, reference)]
            return ObservedRows(tuple(train), base, reference) if robust else gathered[0]

        fitted, reference = fit_around(gather, base, estimator)
        information = gathered[0]  # of the last pass
        data = ObservedRows(tuple(train), base, reference) if robust else information
        kept = self._essential(fitted, data, train, base, reference)
        fitted = fitted if kept is None or kept.fitted is None else kept.fitted
        model = _model(base, fitted.values_ if kept is None else kept.values, reference)
        nominal = _nominal(self.robot, base)
        seen = self._compare([model, *nominal], train, "comparing")
        inflation = common_inflation([one.correlation for one in seen])
        covariance, kind = self._covariance(fitted, inflation, train)
        held_out = [_like(one, train) for one in held_out]
        unseen = self._compare([model], held_out, "validating")
        crossed = left_out_in_turn(train, fitted, _for_folds(estimator), inflation, base, reference)
        self._remark(fitted, information, base, train)
        return Estimate(
            base=base,
            beta=fitted.values_ if kept is None else kept.values,
            covariance=covariance if kept is None else kept.widened(covariance),
            covariance_kind=kind,
            white_std=fitted.std_ if kept is None else np.sqrt(np.diag(kept.widened(fitted.covariance_))),
            determined=fitted.determined_ if kept is None else kept.determined,
            rank=fitted.rank_,
            condition=fitted.condition_,
            sigma=fitted.sigma_,
            inflation=inflation,
            estimator=_name(estimator),
            estimator_options=_plain(estimator),
            signals=replace(train[0].options, band=self.options.band),
            band=max(one.band for one in train),
            data=tuple(LogRecord.of(one) for one in train),
            held_out=tuple(LogRecord.of(one) for one in held_out),
            train=together(one.errors[0] for one in seen),
            nominal=together(one.errors[1] for one in seen) if nominal else None,
            validation=_errors_by_label(unseen),
            cross_validation=None if crossed is None else crossed.as_dict(),
            traces=_traces([*seen, *unseen]),
            notes=tuple(self.notes + _cross_note(crossed)),
            warnings=tuple(dict.fromkeys(self.warnings)),
            eliminated=() if kept is None else tuple(one.as_dict() for one in kept.eliminated),
            reference=reference,
            friction=None if friction is None else friction.as_dict(),
            friction_view=friction_view(model, train),
            motion_view=motion_view(train[0]),
            check=None if checkup is None else checkup.as_dict(),
            open_directions=None if kept is not None or fitted.determined_.all() else open_directions(fitted),
            provenance=provenance(self.options),
            version=__version__,
        )

    def _observed(self) -> tuple[list[Observations], list[Observations]]:
        """A first look at every log: those to learn from, and those to judge with."""
        options = SignalOptions(
            band=self.options.band,
            delay=self.options.delay or 0.0,
            rest_speed=self.options.rest_speed,
            speed=self.options.speed or "position",  # type: ignore[arg-type]
            differentiator=self.options.differentiator,  # type: ignore[arg-type]
        )
        train: list[Observations] = []
        held_out: list[Observations] = []
        for number, log in enumerate(self.logs):
            self._progress("looking at logs", number, len(self.logs))
            first = next(iter(log.blocks()))
            torque_kind(first, self.robot)  # a log without torque is refused before anything is done
            diagnosed = log.role == "train" and self.options.check != "off"
            survey = survey_log(log, self.robot, rest_speed=options.rest_speed, channels=diagnosed)
            one = observe(log, self.robot, options, survey=survey)
            (train if log.role == "train" else held_out).append(one)
        self._progress("looking at logs", len(self.logs), len(self.logs))
        records = [LogRecord.of(one) for one in train]
        for one in held_out:
            if any(record.overlaps(one) for record in records):
                raise InputError(f"{one.log.label}: is a training log too; a log that was seen cannot judge the result")
        for number, one in enumerate(train):
            if any(record.overlaps(one) for record in records[:number]):
                raise InputError(f"{one.log.source}: is given twice; data that counts twice looks too certain")
            if max(one.survey.stretches) / one.survey.grid.rate < filter_time(one):
                raise too_short(one)
        return train, held_out

    def _check(self, train: Sequence[Observations]) -> Checkup | None:
        """Refuse logs that are not fit to learn from; what is merely doubtful is told."""
        if self.options.check == "off":
            return None
        found = check_observed(train, self._progress)
        if found.verdict == "stop" and self.options.check == "stop":
            raise found.refusal()
        for one in found.findings:
            if one.verdict != "ok" and one.name not in _TOLD_LATER:
                self.warnings.append(f"{f'{one.log}: ' if one.log and len(train) > 1 else ''}{one.message}")
        return found

    def _choose_bands(self, train: list[Observations], base: BaseParameters) -> list[Observations]:
        """Let torque decide on the band where positions did not, and tell why bands are what they are."""
        if self.options.band is not None:
            return train
        train = choose_bands(train, base, functools.partial(self._progress, "choosing the band"))
        self.notes += band_notes(train)
        return train

    def _choose(self, train: list[Observations], base: BaseParameters) -> list[Observations]:
        """Let the training data decide what the user did not."""
        if self.options.delay is None:
            self._progress("choosing the delay", 0, 1)
            delay = choose_delay(train, base)
            self.notes.append(delay.reason)
            train = [one.with_options(delay=delay.delay) for one in train]
        if self.options.speed is None:
            self._progress("choosing the source of speed", 0, 1)
            speed = choose_speed(train, base, train[0].options.delay)
            self.notes.append(speed.reason)
            train = [one.with_options(speed=speed.speed) for one in train]
        return train

    def _friction(
        self, train: Sequence[Observations], basic: BaseParameters
    ) -> tuple[BaseParameters, FrictionChoice | None]:
        """The friction terms, and the base parameters with them."""
        given = along_terms(resolve_terms(self.options.terms)) if self.options.terms is not None else ()
        wanted = self.options.friction
        if wanted is None:
            plain = self.options.essential is not None or isinstance(self.options.estimator, PriorLeastSquares)
            wanted = given if self.options.terms is not None or plain else "auto"
        if isinstance(wanted, Sequence) and not isinstance(wanted, str) and not wanted:
            return basic, None
        progress = functools.partial(self._progress, "choosing friction terms")
        choice = chosen_friction(wanted, train, basic, progress)
        self.notes.append(choice.reason)
        return base_parameters(self.robot, (*basic.terms, *choice.terms)) if choice.terms else basic, choice

    def _gather(self, train: Sequence[Observations], base: BaseParameters, reference: Array | None) -> Information:
        """The factors of all logs, each taken from the store where an earlier run left it."""
        parts = []
        for number, one in enumerate(train):
            self._progress("gathering equations", number, len(train))
            parts.append(factor_of_log(ObservedRows((one,), base, reference), self.store))
        self._progress("gathering equations", len(train), len(train))
        whole = sum(parts[1:], start=parts[0])
        if whole.n_rows < LEAST_EQUATIONS * base.n:
            names = ", ".join(one.log.label for one in train)
            raise InputError(
                f"{names}: gives {whole.n_rows:g} equations in motion for {base.n} parameters; at least "
                f"{LEAST_EQUATIONS} per parameter are needed: use longer logs or fewer terms"
            )
        return whole

    def _essential(
        self,
        fitted: Estimator,
        data: Information | ObservedRows,
        train: Sequence[Observations],
        base: BaseParameters,
        reference: Array | None,
    ) -> EssentialParameters | None:
        """The parameters worth keeping, where only those are wanted; deviations allow for correlated residuals."""
        if self.options.essential is None:
            return None
        seen = self._compare([_model(base, fitted.values_, reference)], train, "looking at residuals")
        inflation = common_inflation([one.correlation for one in seen])
        kept = essential_parameters(data, fitted.clone(), share=self.options.essential, inflation=inflation)
        gone = [one.name for one in kept.eliminated]
        if gone:
            grown = f"the residual grew by {100.0 * kept.eliminated[-1].total:.2g} %"
            share = f"{100.0 * self.options.essential:g} %"
            what = f"eliminated {len(gone)} of {base.n} parameters, with a relative deviation of {share} or more"
            self.notes.append(f"{what} ({', '.join(gone)}); {grown}")
        else:
            self.notes.append("no parameter was eliminated: all are essential")
        return kept

    def _compare(
        self, models: Sequence[TorqueModel], observations: Sequence[Observations], what: str
    ) -> list[Comparison]:
        result = []
        for number, one in enumerate(observations):
            self._progress(what, number, len(observations))
            result.append(compare(models, one))
        if observations:
            self._progress(what, len(observations), len(observations))
        return result

    def _covariance(self, fitted: Estimator, inflation: Array, train: Sequence[Observations]) -> tuple[Array, str]:
        covariance = correlated_covariance(fitted, inflation)
        kind = "allow for correlation between neighbouring residuals"
        drive, moving = self.robot.drive, list(self.robot.moving)
        by_current = {one.log.label for one in train if torque_kind(next(iter(one.log.blocks())), self.robot) == "i"}
        if by_current and drive.gains is not None and drive.gain_tolerances is not None and drive.gain_tolerances.any():
            tolerances = np.abs(drive.gain_tolerances / drive.gains)[moving]
            covariance = covariance + gain_covariance(fitted, tolerances, by_current)
            kind += " and for the tolerance of the drive gains"
        return covariance, kind

    def _remark(
        self, fitted: Estimator, information: Information, base: BaseParameters, train: Sequence[Observations]
    ) -> None:
        """What a reader should know."""
        self.warnings.extend([*base.warnings, *fitted.warnings_, *_too_slow(information, train)])
        if fitted.rank_ == base.n and fitted.condition_ > HIGH_CONDITION:
            parts = zip(fitted.information_.channel_factors(), fitted.channel_weights_, strict=True)
            rows = np.vstack([factor.dense(base.n)[:, : base.n] * np.sqrt(weight) for factor, weight in parts])
            weakest = excitation_of(base.names, rows, len(rows)).weak[0]
            self.warnings.append(
                f"condition {fitted.condition_:.0f}: the motion hardly moves the combination {weakest}; "
                "its parameters trade against each other: record a richer motion"
            )
        per_parameter = information.n_rows / base.n
        if per_parameter < ENOUGH_EQUATIONS:
            self.warnings.append(
                f"{per_parameter:.0f} equations per parameter; {ENOUGH_EQUATIONS} are a good rule: record longer motion"
            )


def _too_slow(information: Information, train: Sequence[Observations]) -> list[str]:
    """Warnings for joints that move, but never fast enough for their torque to be used."""
    robot, rest = train[0].robot, train[0].options.rest_speed
    ranges = np.max([one.survey.highest - one.survey.lowest for one in train], axis=0)
    rows = dict(zip(information.channels, (factor.n_rows for factor in information.channel_factors()), strict=True))
    slow = [
        f"{name} moves, but never for long above the rest velocity of {rest:g} {'rad' if radian == 1.0 else 'm'}/s"
        for name, radian, covered in zip(robot.joint_names, robot.radians, ranges, strict=True)
        if not rows[name] and covered > STANDSTILL * radian
    ]
    return [f"{one}, so its torque is not used; record faster motion, or lower rest_speed" for one in slow]


def _distinct(logs: Sequence[LogSource]) -> list[LogSource]:
    """The logs, each with a label of its own."""
    seen: dict[str, int] = {}
    result = []
    for log in logs:
        count = seen[log.label] = seen.get(log.label, 0) + 1
        result.append(log if count == 1 else _relabelled(log, f"{log.label} ({count})"))
    return result


def _relabelled(log: LogSource, label: str) -> LogSource:
    return replace(log, label=label)  # type: ignore[type-var]


def _estimator(given: str | Estimator) -> Estimator:
    if isinstance(given, Estimator):
        return given.clone()
    if given not in ESTIMATORS:
        raise UnknownNameError("estimator", given, ESTIMATORS)
    if given == "prior":
        raise InputError("the estimator 'prior' needs nominal values; give PriorLeastSquares(values, std)")
    return ESTIMATORS[given]()


def _for_folds(estimator: Estimator) -> Estimator:
    """The method for the folds of a cross-validation, which have factors but no rows."""
    return ESTIMATORS["weighted"]() if isinstance(estimator, RobustLeastSquares) else estimator


def _name(estimator: Estimator) -> str:
    return next((name for name, kind in ESTIMATORS.items() if type(estimator) is kind), type(estimator).__name__)


def _plain(estimator: Estimator) -> dict[str, Any]:
    """An estimator's options as plain data."""
    return {
        name: {k: float(v) for k, v in value.items()} if isinstance(value, Mapping) else value
        for name, value in estimator.get_params().items()
        if value is not None
    }


def _model(base: BaseParameters, beta: Array, reference: Array | None) -> TorqueModel:
    return TorqueModel(base.robot, base.terms, base.standard_values(beta, "regrouped zero"), reference)


def _state_part(terms: TermsLike) -> tuple[Term, ...]:
    """The basic terms: those given that are functions of the state, or the usual ones."""
    return state_terms(resolve_terms(BASIC_TERMS if terms is None else terms))


def _nominal(robot: Robot, base: BaseParameters) -> list[TorqueModel]:
    """The robot's own values as a model, where its description gives any."""
    if not robot.link_parameters().any():
        return []
    terms = state_terms(base.terms)
    return [TorqueModel(robot, terms, parameters(robot, terms))]


def _like(one: Observations, train: Sequence[Observations]) -> Observations:
    """A log to judge with, filtered like the training; prediction has no measured speed."""
    band = max(other.band for other in train)
    return one.with_options(band=band, delay=train[0].options.delay, speed="position")


def _errors_by_label(comparisons: Sequence[Comparison]) -> dict[str, TorqueErrors]:
    return {one.label: one.errors[0] for one in comparisons}


def _traces(comparisons: Sequence[Comparison]) -> dict[str, Trace]:
    return {one.label: one.trace for one in comparisons}


def _cross_note(crossed: CrossValidation | None) -> list[str]:
    if crossed is None:
        return ["one short log: nothing could be left out for cross-validation"]
    worst, best = 100.0 * crossed.totals.max(), 100.0 * crossed.totals.min()
    return [f"leaving out {len(crossed.labels)} {crossed.over} in turn: error {best:.2f} to {worst:.2f} %"]
