"""`signal_findings`: what the signals of a log say about it, without a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from dynident.arrays import Array
from dynident.diagnostics.channels import (
    channel_findings,
    limits_finding,
    numbers_finding,
    quantisation_finding,
    rest_finding,
    saturation_finding,
    velocity_finding,
)
from dynident.diagnostics.columns import (
    POOR,
    agreement_finding,
    column_findings,
    fit_finding,
    opposed,
    share_left,
    torque_finding,
)
from dynident.diagnostics.delay_and_bias import bias_finding, delay_findings
from dynident.diagnostics.excitation import equations_finding, excitation_findings
from dynident.diagnostics.hypotheses import Wiring, column_rules
from dynident.diagnostics.hypothesis_search import Explained, Search
from dynident.diagnostics.options import CheckOptions
from dynident.diagnostics.time import gaps_finding, repeats_finding, sampling_finding, time_finding
from dynident.diagnostics.trial import Sample, Trial, samples
from dynident.errors import DynidentError
from dynident.estimate.records import Checkup, Finding
from dynident.identifiability.base import base_parameters
from dynident.logs.log import LogSource, as_logs, torque_kind
from dynident.options import Progress, keywords
from dynident.robot.model import Robot
from dynident.signals.log_survey import Survey, survey_log
from dynident.signals.observations import Observations, SignalOptions, observe


def signal_findings(log: LogSource, robot: Robot | None = None, *, survey: Survey | None = None) -> list[Finding]:
    """The items of a check-up that need one pass over the log: time, numbers, channels, motion.

    Args:
        log: The log; open it with `stream_log`, since `read_log` refuses some of what is looked for.
        robot: Its joints, gear ratios and limits; None judges all channels, and no limits.
        survey: Of this log, where there is one already.

    Returns:
        At least one item of each name, in the order in which a reader wants them.

    Raises:
        LogError: If a row cannot be read at all.
    """
    survey = survey or survey_log(log, robot)
    survey.require_readable()
    found = [
        time_finding(survey),
        sampling_finding(survey),
        gaps_finding(survey),
        repeats_finding(survey),
        numbers_finding(survey),
        *channel_findings(survey, robot),
        saturation_finding(survey, robot),
        quantisation_finding(survey, robot),
        velocity_finding(survey, robot),
        rest_finding(survey, robot),
        *([limits_finding(survey, robot)] if robot is not None else []),
    ]
    return [replace(item, log=log.label) for item in found]


# ----------------------------------------------------------------------------------------------------------------------
# `check_logs`: everything that can be wrong with logs, looked for before anything is solved.

# Dry friction that is smooth over some speed would let a scale or a clock pass for the width of that.
_TERMS = "rigid,Ia,Fv,Fc,Fo"
_EQUATIONS = 20  # for each parameter, from which the model is believed
_TURNS = 7.0  # [rad] a turn and more: motors make many, joints of arms hardly one
_NOT_LOOKED_AT = "units, order, signs, delay, rank and agreement are looked at once what stops here is put right"
_NOT_LOOKED_AT_YET = "delay, rank, condition and bias are looked at once the columns are right"
_READABLE = ("time", "numbers", "channels", "rest")  # what must not be at a stop before the model can say anything


@keywords(CheckOptions)
def check_logs(robot: Robot, logs: LogSource | Sequence[LogSource], options: CheckOptions) -> Checkup:
    """Look for mistakes in logs: their signals one by one, and what the robot's equations make of them together.

    Args:
        robot: The robot.
        logs: Logs to learn from; streamed ones (`stream_log`) may hold what `read_log` refuses.
        options: Band, delay and rest speed.
    """
    given, signals = as_logs(logs), options.signals
    if signals is None:
        signals = SignalOptions(band=options.band, delay=options.delay or 0.0, rest_speed=options.rest_speed)
    surveys: list[Survey] = []

    def survey_of(number: int) -> Survey:
        surveys.append(survey_log(given[number], robot, rest_speed=signals.rest_speed))
        return surveys[-1]

    def observed() -> list[Observations]:
        return [_observed(log, robot, signals, survey) for log, survey in zip(given, surveys, strict=True)]

    return _checked(robot, given, survey_of, observed, options.progress)


def check_observed(observations: Sequence[Observations], progress: Progress | None = None) -> Checkup:
    """`check_logs` for logs that were surveyed already; one without its channels is surveyed again."""
    robot, logs = observations[0].robot, [one.log for one in observations]

    def survey_of(number: int) -> Survey:
        survey = observations[number].survey
        return survey if survey.channels else survey_log(logs[number], robot)

    return _checked(robot, logs, survey_of, lambda: observations, progress)


def _checked(
    robot: Robot,
    logs: Sequence[LogSource],
    survey_of: Callable[[int], Survey],
    observed: Callable[[], Sequence[Observations]],
    progress: Progress | None,
) -> Checkup:
    """Signals first; the model is asked only where they make sense."""
    tell = progress or (lambda what, done, total: None)
    found = [*_repeated(logs), *_all_signals(robot, logs, survey_of, tell)]
    if any(one.verdict == "stop" and one.name in _READABLE for one in found):
        found.append(Finding("model", "warn", _NOT_LOOKED_AT))
    else:
        tell("asking the model", 0, 1)
        try:
            found += _model(observed())
        except DynidentError as error:  # what identification would refuse as well
            found.append(Finding("model", "stop", str(error)))
        tell("asking the model", 1, 1)
    return Checkup(tuple(found), tuple(log.label for log in logs))


def _observed(log: LogSource, robot: Robot, options: SignalOptions, survey: Survey) -> Observations:
    torque_kind(next(iter(log.blocks())), robot)  # says which columns are missing
    return observe(log, robot, options, survey=survey)


def _repeated(logs: Sequence[LogSource]) -> list[Finding]:
    """Logs that are given more than once: data that counts twice looks too certain."""
    first: dict[str, str] = {}
    found = []
    for log in logs:
        other = first.setdefault(log.digest, log.label)
        if other != log.label:
            found.append(Finding("logs", "warn", f"{log.label} has the content of {other}; give it once"))
    return found


def _all_signals(
    robot: Robot, logs: Sequence[LogSource], survey_of: Callable[[int], Survey], tell: Progress
) -> list[Finding]:
    """The items of single logs that need no model."""
    found: list[Finding] = []
    for number, log in enumerate(logs):
        tell("looking at signals", number, len(logs))
        found += _signals(log, robot, survey_of(number))
    tell("looking at signals", len(logs), len(logs))
    return found


def _signals(log: LogSource, robot: Robot, survey: Survey) -> list[Finding]:
    """The items of one log that need no model; one that cannot be read at all is an item of its own."""
    try:
        return signal_findings(log, robot, survey=survey)
    except DynidentError as error:
        return [Finding("numbers", "stop", str(error), log=log.label)]


def _model(observations: Sequence[Observations]) -> list[Finding]:
    robot, logs = observations[0].robot, [one.log for one in observations]
    wirings = [Wiring.of(next(iter(log.blocks())), robot) for log in logs]
    if geared := _gears(observations, wirings):
        return [geared, Finding("model", "warn", _NOT_LOOKED_AT)]
    trial = Trial(base_parameters(robot, _TERMS))
    moments = samples(observations)
    enough, each = equations_finding(trial, observations, moments)
    if enough.verdict == "stop":
        return [enough, Finding("model", "warn", _NOT_LOOKED_AT)]
    torque, meant = _torque(trial, moments, wirings)
    moments = [replace(one, tau=one.tau @ meant.T, late=one.late @ meant.T) for one in moments]
    search = Search(trial, moments, wirings)
    explained = search.explained()
    explained, reversed_ones = _reversed(explained, moments, wirings)
    found = [
        torque,
        *column_findings(explained, wirings, logs),
        *reversed_ones,
        fit_finding(explained.left, robot.joint_names),
        agreement_finding(search, explained, logs),
    ]
    if explained.mistakes or reversed_ones:
        return [enough, *_sure(found, each), Finding("model", "warn", _NOT_LOOKED_AT_YET)]
    half = samples([one.with_options(band=0.5 * one.band) for one in observations])
    slower = [replace(one, tau=one.tau @ meant.T) for one in half]
    found += delay_findings(trial, moments)
    return [
        enough,
        *_sure(found, each),
        *excitation_findings(trial, moments, explained.left),
        bias_finding(trial, moments, slower, explained.left),
    ]


def _sure(found: Sequence[Finding], each: float) -> list[Finding]:
    """What so few equations say is no reason to stop."""
    if each >= _EQUATIONS:
        return list(found)
    doubt = "; so short a motion cannot make sure of it"
    return [
        replace(one, verdict="warn", message=one.message + doubt) if one.verdict == "stop" else one for one in found
    ]


def _gears(observations: Sequence[Observations], wirings: Sequence[Wiring]) -> Finding | None:
    """Positions of motor shafts, for a robot that knows no gears and would have to turn round and round."""
    robot = observations[0].robot
    for one, wiring in zip(observations, wirings, strict=True):
        turning = [robot.joints[robot.active[i]].kind == "revolute" for i in robot.moving]
        range_ = np.where(turning, one.survey.highest - one.survey.lowest, 0.0)
        if wiring.position == "qm" and np.all(np.abs(robot.drive.gear_ratios) == 1.0) and range_.max() > _TURNS:
            words = f"{one.log.label}: has positions of motor shafts (qm), and robot {robot.name} has no gear ratios"
            return Finding("gears", "stop", f"{words}; give 'gear_ratios' in an overlay")
    return None


def _reversed(
    explained: Explained, moments: Sequence[Sample], wirings: Sequence[Wiring]
) -> tuple[Explained, list[Finding]]:
    """Torques that all oppose the robot's own masses, as friction that takes energy does not always tell."""
    read = [one.read(x, wiring) for one, x, wiring in zip(explained.beliefs, moments, wirings, strict=True)]
    correlation = opposed(read, wirings[0])
    if correlation is None:
        return explained, []
    words = f"all torques have the wrong sign: they oppose the robot's own masses (correlation {correlation:.2f})"
    if share_left(explained.left) > POOR:
        return explained, [Finding("sign", "warn", f"{words}, and are not well explained either")]
    all_of_them = -np.eye(len(explained.beliefs[0].torques))
    beliefs = tuple(replace(one, torques=all_of_them @ one.torques) for one in explained.beliefs)
    fix = {"columns": column_rules(wirings[0].names(wirings[0].torque), beliefs[0].torques, all_of_them)}
    return replace(explained, beliefs=beliefs), [Finding("sign", "stop", words, fix)]


def _torque(trial: Trial, moments: Sequence[Sample], wirings: Sequence[Wiring]) -> tuple[Finding, Array]:
    """The item about the size of the torque, and the map of torques that puts it right, (n_joints, n_joints).

    Positions in degrees or a wrong clock make torque look small or large; if putting columns right puts its size right
    as well, nothing is wrong with it.
    """
    torque, meant = torque_finding(moments, wirings[0])
    if torque.verdict == "ok":
        return torque, meant
    explained = Search(trial, moments, wirings).explained()
    read = [one.read(x, wiring) for one, x, wiring in zip(explained.beliefs, moments, wirings, strict=True)]
    again, one = torque_finding(read, wirings[0])
    return (again, one) if again.verdict == "ok" else (torque, meant)
