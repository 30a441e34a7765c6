"""Preprocessing: logs are surveyed, checked against each other and given a bandwidth."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dynident.dynamics.terms import Term, TermsLike, resolve_terms, split_terms, state_terms, with_springs
from dynident.errors import InputError
from dynident.estimate.candidates import BASIC_TERMS
from dynident.estimate.leveled_data import FoundLevels
from dynident.estimate.records import LogRecord
from dynident.identifiability.base import BaseParameters, base_parameters
from dynident.logs.log import LogSource, log_warnings, torque_kind
from dynident.options import Progress
from dynident.pipeline.bandwidth import (
    band_notes,
    choose_bands,
    saturation_notes,
    stall_notes,
    try_other_bands,
    wrap_notes,
)
from dynident.pipeline.factor_cache import FactorCache
from dynident.pipeline.options import IdentifyOptions
from dynident.pipeline.training_rows import TrainingRows
from dynident.robot.model import Robot
from dynident.signals.log_survey import survey_log
from dynident.signals.observations import Observations, SignalOptions, observe
from dynident.signals.rows import filter_time, too_short


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Logs that have been surveyed, with their bandwidth.

    Attributes:
        robot: The robot.
        basic: Base parameters of the basic terms, which are in the model in any case.
        train: Training logs.
        held_out: Validation logs, which shape nothing.
        cache: Factors of finished logs.
        progress: Called with what is being done, and how much of it is done.
        notes: What was decided, in words.
        warnings: What a reader should know.
        levels: What viscous friction differs by between the logs, which their equations are without; None for nothing.
    """

    robot: Robot
    basic: BaseParameters
    train: tuple[Observations, ...]
    held_out: tuple[Observations, ...]
    cache: FactorCache
    progress: Progress
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    levels: FoundLevels | None = None

    def refilter(self, **signals: object) -> TrainingData:
        """The same training logs, filtered with other signal options; their rows are other ones.

        Validation logs are filtered like them when the model is validated.
        """
        return replace(self, train=tuple(one.with_options(**signals) for one in self.train))

    def in_other_bands(self) -> TrainingData:
        """The same logs in the bands that torque prefers among narrower and wider ones."""
        train = try_other_bands(self.train, self.basic, self.progress)
        notes = [note for note in self.notes if note not in band_notes(self.train)]
        return replace(self, train=tuple(train), notes=(*band_notes(train), *notes))

    @functools.cached_property
    def rows(self) -> TrainingRows:
        """The equations of the training logs."""
        return TrainingRows(self.train, self.cache, self.progress, self.levels)

    def with_levels(self, levels: FoundLevels) -> TrainingData:
        """The same logs, with what their viscous friction differs by taken out of the equations made so far."""
        data = replace(self, levels=levels)
        vars(data)["rows"] = self.rows.with_levels(levels)
        return data


def preprocess(
    robot: Robot,
    logs: Sequence[LogSource],
    options: IdentifyOptions,
    cache: FactorCache,
    progress: Progress,
    *,
    by_torque: bool = True,
) -> TrainingData:
    """Survey every log, refuse logs that cannot serve, and choose bandwidths.

    Args:
        robot: The robot.
        logs: Training and validation logs, by their roles.
        options: Of the identification.
        cache: Factors of finished logs.
        progress: Called with what is being done, and how much of it is done.
        by_torque: Whether torque may narrow the bandwidths that motion and noise ask for. Stages and energies do
            without: the first need rows, and what dry friction takes about a reversal is lost in a narrow band.

    Raises:
        LogError, InputError: Naming the log, what was expected and what to do.
    """
    logs = _distinct(logs)
    if not any(log.role == "train" for log in logs):
        raise InputError("there is no training log; give at least one whose role is train")
    basic = base_parameters(robot, _state_part(robot, options.terms))
    train, held_out = _observe_logs(robot, logs, options, progress)
    notes = [*stall_notes([*train, *held_out]), *wrap_notes([*train, *held_out]), *saturation_notes(train)]
    if options.band is None:
        train = choose_bands(train, basic, progress) if by_torque else train
        notes = [*band_notes(train), *notes]
    warnings = (*robot.warnings, *log_warnings(logs))
    return TrainingData(robot, basic, tuple(train), tuple(held_out), cache, progress, tuple(notes), warnings)


def _observe_logs(
    robot: Robot, logs: Sequence[LogSource], options: IdentifyOptions, progress: Progress
) -> tuple[list[Observations], list[Observations]]:
    """A survey of every log: training and validation logs."""
    signals = SignalOptions(
        band=options.band,
        delay=options.delay or 0.0,
        rest_velocity=options.rest_velocity,
        velocity_source=options.velocity_source or "position",  # type: ignore[arg-type]
        differentiator=options.differentiator,  # type: ignore[arg-type]
        filter=options.filter,  # type: ignore[arg-type]
        decimation=options.decimation,
    )
    train: list[Observations] = []
    held_out: list[Observations] = []
    for number, log in enumerate(logs):
        progress("looking at logs", number, len(logs))
        torque_kind(next(iter(log.blocks())), robot)  # a log without torque is refused before anything is done
        survey = survey_log(log, robot, rest_velocity=options.rest_velocity, channels=log.role == "train")
        (train if log.role == "train" else held_out).append(observe(log, robot, signals, survey=survey))
    progress("looking at logs", len(logs), len(logs))
    records = [LogRecord.of(one) for one in train]
    for one in held_out:
        if any(record.overlaps(one) for record in records):
            raise InputError(
                f"{one.log.label}: is a training log too; a validation log must not be used for training; remove it "
                "from one of the two lists"
            )
    for number, one in enumerate(train):
        if any(record.overlaps(one) for record in records[:number]):
            raise InputError(f"{one.log.source}: is given twice; data that counts twice looks too certain")
        if max(one.survey.stretches) / one.survey.grid.rate < filter_time(one):
            raise too_short(one)
    return train, held_out


def _distinct(logs: Sequence[LogSource]) -> list[LogSource]:
    """The logs, each with a label of its own."""
    seen: dict[str, int] = {}
    result = []
    for log in logs:
        count = seen[log.label] = seen.get(log.label, 0) + 1
        result.append(log if count == 1 else _relabel(log, f"{log.label} ({count})"))
    return result


def _relabel(log: LogSource, label: str) -> LogSource:
    return replace(log, label=label)  # type: ignore[type-var]


def _state_part(robot: Robot, terms: TermsLike) -> tuple[Term, ...]:
    """The basic terms: those given that are functions of the state, or the usual ones and the robot's springs."""
    usual = with_springs(split_terms(BASIC_TERMS), robot)
    return state_terms(resolve_terms(usual if terms is None else terms))
