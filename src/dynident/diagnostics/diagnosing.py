"""Log diagnostics: what the signals of a log say without a model, then what the robot's equations say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from dynident.arrays import Array
from dynident.diagnostics.channels import (
    diagnose_channels,
    diagnose_limits,
    diagnose_numbers,
    diagnose_quantization,
    diagnose_rest,
    diagnose_saturation,
    diagnose_velocity,
)
from dynident.diagnostics.columns import (
    diagnose_agreement,
    diagnose_columns,
    diagnose_fit,
    diagnose_torque,
    opposing_correlation,
)
from dynident.diagnostics.delay_and_bias import diagnose_bias, diagnose_delay
from dynident.diagnostics.excitation import diagnose_equations, diagnose_excitation
from dynident.diagnostics.hypotheses import Wiring, column_rules
from dynident.diagnostics.hypothesis_search import HypothesisSearch
from dynident.diagnostics.options import CheckOptions
from dynident.diagnostics.thresholds import THRESHOLDS
from dynident.diagnostics.time import diagnose_gaps, diagnose_repeats, diagnose_sampling, diagnose_time, diagnose_wraps
from dynident.diagnostics.trial import MIN_SAMPLES, Trial, TrialSamples, trial_samples
from dynident.errors import DynidentError
from dynident.estimate.records import Diagnosis, Diagnostic, percent
from dynident.identifiability.base import base_parameters
from dynident.information.thresholds import THRESHOLDS as ENOUGH
from dynident.logs.log import LogSource, as_logs, channel_names, torque_kind
from dynident.options import Progress, keywords
from dynident.robot.model import Robot
from dynident.signals.log_survey import Survey, survey_log
from dynident.signals.observations import Observations, SignalOptions, observe
from dynident.signals.thresholds import THRESHOLDS as SIGNALS


def diagnose_signals(log: LogSource, robot: Robot | None = None, *, survey: Survey | None = None) -> list[Diagnostic]:
    """The diagnostics that need one pass over the log: time, numbers, channels, motion.

    Args:
        log: The log; open it with `stream_log`, since `read_log` refuses some of what is looked for.
        robot: Its joints, gear ratios and limits; None evaluates all channels, and no limits.
        survey: Of this log, where there is one already.

    Returns:
        At least one diagnostic of each name, in the order in which a reader wants them.

    Raises:
        LogError: If a row cannot be read at all.
    """
    survey = survey or survey_log(log, robot)
    survey.require_readable()
    found = [
        diagnose_time(survey),
        diagnose_sampling(survey),
        diagnose_gaps(survey),
        diagnose_repeats(survey),
        diagnose_wraps(survey),
        diagnose_numbers(survey),
        *diagnose_channels(survey, robot),
        diagnose_saturation(survey, robot),
        diagnose_quantization(survey, robot),
        diagnose_velocity(survey, robot),
        diagnose_rest(survey, robot),
        *([diagnose_limits(survey, robot)] if robot is not None else []),
    ]
    return [replace(item, log=log.label) for item in found]


# ----------------------------------------------------------------------------------------------------------------------
# `check_logs`: everything that can be wrong with logs, looked for before anything is solved.

# Dry friction that is smooth over some velocity would let a scale or a clock pass for the width of that.
_NOT_LOOKED_AT = "units, order, signs, delay, rank and agreement are looked at once what stops here is put right"
_NOT_LOOKED_AT_YET = "delay, rank, condition and bias are looked at once the columns are right"
_LOWER_BANDS = (0.5, 0.25, 0.125)  # of the bandwidth: what is tried where noise may be why little is explained
_READABLE = ("time", "numbers", "channels", "rest")  # what must not be at a stop before the model can say anything


@keywords(CheckOptions)
def check_logs(robot: Robot, logs: LogSource | Sequence[LogSource], options: CheckOptions) -> Diagnosis:
    """Diagnose logs: their signals one by one, and what the robot's equations make of them together.

    Args:
        robot: The robot.
        logs: Training logs; streamed ones (`stream_log`) may hold what `read_log` refuses.
        options: Bandwidth, delay and rest velocity.
    """
    given, signals = as_logs(logs), options.signals
    if signals is None:
        signals = SignalOptions(band=options.band, delay=options.delay or 0.0, rest_velocity=options.rest_velocity)
    surveys: list[Survey] = []

    def survey_of(number: int) -> Survey:
        surveys.append(survey_log(given[number], robot, rest_velocity=signals.rest_velocity))
        return surveys[-1]

    def observe_all() -> Iterator[Observations]:
        for log, survey in zip(given, surveys, strict=True):
            torque_kind(next(iter(log.blocks())), robot)  # says which columns are missing
            yield observe(log, robot, signals, survey=survey)

    return _diagnose(robot, given, survey_of, observe_all, options.progress)


def diagnose_observations(observations: Sequence[Observations], progress: Progress | None = None) -> Diagnosis:
    """`check_logs` for logs that were surveyed already; one without its channels is surveyed again."""
    robot, logs = observations[0].robot, [one.log for one in observations]

    def survey_of(number: int) -> Survey:
        survey, rest_velocity = observations[number].survey, observations[number].options.rest_velocity
        return survey if survey.channels else survey_log(logs[number], robot, rest_velocity=rest_velocity)

    return _diagnose(robot, logs, survey_of, lambda: observations, progress)


def _diagnose(
    robot: Robot,
    logs: Sequence[LogSource],
    survey_of: Callable[[int], Survey],
    observe_all: Callable[[], Iterable[Observations]],
    progress: Progress | None,
) -> Diagnosis:
    """Signals first; the model is asked only where they make sense."""
    report = progress or (lambda what, done, total: None)
    found = _diagnose_repeated_logs(logs)
    for number, log in enumerate(logs):
        report("looking at signals", number, len(logs))
        survey = survey_of(number)
        try:
            found += diagnose_signals(log, robot, survey=survey)
        except DynidentError as error:  # a log that cannot be read at all
            found.append(Diagnostic("numbers", "stop", str(error), log=log.label))
    report("looking at signals", len(logs), len(logs))
    if any(one.severity == "stop" and one.name in _READABLE for one in found):
        found.append(Diagnostic("model", "warn", _NOT_LOOKED_AT))
    else:
        report("asking the model", 0, 1)
        try:
            found = _diagnose_by_model(list(observe_all()), found)
        except DynidentError as error:  # what identification would refuse as well
            found.append(Diagnostic("model", "stop", str(error)))
        report("asking the model", 1, 1)
    return Diagnosis(tuple(found), tuple(log.label for log in logs))


def _diagnose_repeated_logs(logs: Sequence[LogSource]) -> list[Diagnostic]:
    """Logs that are given more than once: data that counts twice looks too certain."""
    first: dict[str, str] = {}
    found = []
    for log in logs:
        other = first.setdefault(log.digest, log.label)
        if log.digest and other != log.label:  # logs made in memory may have none
            found.append(Diagnostic("logs", "warn", f"{log.label} has the content of {other}; give it once"))
    return found


def _diagnose_by_model(observations: Sequence[Observations], signals: Sequence[Diagnostic]) -> list[Diagnostic]:
    """What the robot's equations say, behind what the signals said."""
    robot, logs = observations[0].robot, [one.log for one in observations]
    wirings = [Wiring.of(next(iter(log.blocks())), robot) for log in logs]
    if geared := _diagnose_gears(observations, wirings):
        return [*signals, geared, Diagnostic("model", "warn", _NOT_LOOKED_AT)]
    trial = Trial(base_parameters(robot))
    samples = trial_samples(observations)
    as_logged = trial.fit(trial.rows_as_logged(samples))
    enough, per_parameter = diagnose_equations(trial, observations, samples, as_logged)
    if enough.severity == "stop":
        return [*signals, enough, Diagnostic("model", "warn", _NOT_LOOKED_AT)]
    few = per_parameter < ENOUGH.min_equations_to_stop
    search = HypothesisSearch(trial, samples, wirings, few=few).run()
    if not search.mistakes and (lower := _in_lower_band(search, observations, samples, wirings, few)):
        observations, samples, search = lower
    torque, meant = _diagnose_torque_size(search, samples, wirings)
    if torque.fix:
        samples = [replace(one, tau=one.tau @ meant.T, late=one.late @ meant.T) for one in samples]
        search = HypothesisSearch(trial, samples, wirings, few=few).run()
    if torque.severity != "ok" and not torque.fix and search.mistakes:
        search.withdraw("its torque has not the size that the masses of the robot file ask for")
    reversed_ones = _diagnose_reversed_torques(search, wirings)
    signals = [_without_refused_units(one, search, wirings[0]) for one in signals]
    found = [
        torque,
        *diagnose_columns(search, wirings, logs),
        *reversed_ones,
        diagnose_fit(search, samples),
        diagnose_agreement(search, logs),
        *_diagnose_switched(observations, search),
    ]
    if search.mistakes or reversed_ones or search.doubt:
        return [*signals, enough, *_doubt(found, few), Diagnostic("model", "warn", _NOT_LOOKED_AT_YET)]
    half = trial_samples([one.with_options(band=0.5 * one.band) for one in observations])
    slower = [replace(one, tau=one.tau @ meant.T) for one in half]
    found += diagnose_delay(trial, samples)
    return [
        *signals,
        enough,
        *_doubt(found, few),
        *diagnose_excitation(trial, samples, search.fit),
        diagnose_bias(trial, samples, slower, search.fit, [one.choice for one in observations]),
    ]


def _without_refused_units(one: Diagnostic, search: HypothesisSearch, wiring: Wiring) -> Diagnostic:
    """A diagnostic of limits, whose fix in other units is withdrawn where the torque speaks against it."""
    if one.name != "limits" or not one.fix or any(found.hypothesis.item == "units" for found in search.mistakes):
        return one
    channels = {rule["column"] for rule in one.fix["columns"].values()}
    joints = [j for j, name in enumerate(wiring.names(wiring.position)) if name in channels]
    if not search.objects_to(wiring.in_small_units(joints)):
        return one
    return replace(one, message=f"{one.message}, but so they would explain the torque worse", fix={})


def _in_lower_band(
    search: HypothesisSearch,
    observations: Sequence[Observations],
    samples: Sequence[TrialSamples],
    wirings: Sequence[Wiring],
    few: bool,
) -> tuple[Sequence[Observations], list[TrialSamples], HypothesisSearch] | None:
    """The logs, their samples and the search in a lower bandwidth, where noise of the positions hid what there is.

    Such noise grows with the bandwidth, which identification chooses by held-out blocks, after the logs were
    diagnosed; what it alone leaves unexplained is no mistake. Joints that seem to turn round and round, as those in
    degrees do, make columns fast and the bandwidth so wide that it hides what other units would explain.
    """
    trial, robot = search.trial, search.robot
    turning = [joint.kind == "revolute" for joint in robot.moving_joints]
    widest = np.ptp(np.concatenate([one.q for one in samples]), axis=0)[turning].max(initial=0.0)
    round_and_round = widest > THRESHOLDS.many_turns * THRESHOLDS.min_degrees_range_rad
    poor = search.fit.total_share > THRESHOLDS.poor_residual_share
    for share in _LOWER_BANDS if poor or round_and_round else ():
        slower = [one.with_options(band=share * one.band) for one in observations]
        try:
            found = trial_samples(slower)
        except DynidentError:  # its filters take all that there is
            return None
        if sum(len(one.q) for one in found) < MIN_SAMPLES:
            return None
        again = HypothesisSearch(trial, found, wirings, few=few).run()
        explained = poor and again.fit.total_share < THRESHOLDS.poor_residual_share
        in_other_units = any(one.hypothesis.item == "units" for one in again.mistakes)
        if in_other_units or (explained and not again.mistakes):
            return slower, found, again
    return None


def _doubt(found: Sequence[Diagnostic], few: bool) -> list[Diagnostic]:
    """What few equations say is no reason to stop."""
    if not few:
        return list(found)
    doubt = "; so short a motion cannot make sure of it"
    return [
        replace(one, severity="warn", message=one.message + doubt) if one.severity == "stop" else one for one in found
    ]


def _diagnose_gears(observations: Sequence[Observations], wirings: Sequence[Wiring]) -> Diagnostic | None:
    """Positions of motor shafts, for a robot that knows no gears and would have to turn round and round."""
    robot = observations[0].robot
    turning = [joint.kind == "revolute" for joint in robot.moving_joints]
    for one, wiring in zip(observations, wirings, strict=True):
        widest = np.where(turning, one.survey.highest - one.survey.lowest, 0.0).max()
        geared = np.any(np.abs(robot.drive.gear_ratios) != 1.0)
        if wiring.position == "qm" and not geared and widest > THRESHOLDS.min_motor_range_rad:
            words = f"{one.log.label}: has positions of motor shafts (qm), and robot {robot.name} has no gear ratios"
            return Diagnostic("gears", "stop", f"{words}; give 'gear_ratios' in an overlay")
    return None


def _diagnose_switched(observations: Sequence[Observations], search: HypothesisSearch) -> list[Diagnostic]:
    """Torques that are at the ends of their range for most of a log, and do not follow from the motion."""
    fit, found = search.fit, []
    for one in observations:
        kind = torque_kind(next(iter(one.log.blocks())), one.robot)
        for j, name in enumerate(channel_names(kind, one.robot)):
            values = one.survey.channels.get(name)
            share = 0.0 if values is None else values.saturated_share
            if share > SIGNALS.max_saturated_share and fit.residual_share[j] > THRESHOLDS.poor_residual_share:
                words = f"'{name}' stays at the ends of its range in {percent(share)} of the samples in motion"
                left = f"and {percent(fit.residual_share[j])} of it does not follow from the motion"
                remedy = "it is clipped, and too few samples remain: move more gently"
                found.append(Diagnostic("saturation", "stop", f"{words}, {left}; {remedy}", log=one.log.label))
    return found


def _diagnose_reversed_torques(search: HypothesisSearch, wirings: Sequence[Wiring]) -> list[Diagnostic]:
    """Torques that all oppose the robot's own masses, as friction that dissipates does not always tell."""
    correlation = opposing_correlation(search.corrected_samples(), search.meant_robot)
    if correlation is None:
        return []
    words = f"all torques have the wrong sign: they oppose the robot's own masses (correlation {correlation:.2f})"
    if search.fit.total_share > THRESHOLDS.poor_residual_share:
        return [Diagnostic("sign", "warn", f"{words}, and are not well explained either")]
    reverse = search.reverse_torques()
    rules = column_rules(wirings[0].names(wirings[0].torque), search.meanings[0].torques, reverse.torques)
    return [Diagnostic("sign", "stop", words, {"columns": rules})]


def _diagnose_torque_size(
    search: HypothesisSearch, samples: Sequence[TrialSamples], wirings: Sequence[Wiring]
) -> tuple[Diagnostic, Array]:
    """The diagnostic of the size of the torque, and the map of torques that corrects it, (n_joints, n_joints).

    Positions in degrees or a wrong clock make torque look small or large; if correcting columns corrects its size as
    well, nothing is wrong with it.
    """
    torque, meant = diagnose_torque(samples, wirings[0])
    if torque.severity == "ok":
        return torque, meant
    again, one = diagnose_torque(search.corrected_samples(), replace(wirings[0], robot=search.meant_robot))
    return (again, one) if again.severity == "ok" else (torque, meant)
