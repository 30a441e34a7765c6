"""`signal_findings`: what the signals of a log say about it, without a model."""

from __future__ import annotations

from dataclasses import replace

from dynident.check.channel_findings import (
    channel_findings,
    limits_finding,
    numbers_finding,
    quantisation_finding,
    saturation_finding,
)
from dynident.check.finding import Finding
from dynident.check.motion_findings import rest_finding, velocity_finding
from dynident.check.time_findings import gaps_finding, repeats_finding, sampling_finding, time_finding
from dynident.logs.source import LogSource
from dynident.robot.model import Robot
from dynident.signals.log_survey import Survey, survey_log


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
