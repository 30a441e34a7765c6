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
from dynident.check.look import Look, look
from dynident.check.motion_findings import rest_finding, velocity_finding
from dynident.check.time_findings import gaps_finding, repeats_finding, sampling_finding, time_finding
from dynident.logs.source import LogSource
from dynident.robot.model import Robot


def signal_findings(log: LogSource, robot: Robot | None = None, *, seen: Look | None = None) -> list[Finding]:
    """The items of a check-up that need one pass over the log: time, numbers, channels, motion.

    Args:
        log: The log; open it with `stream_log`, since `read_log` refuses some of what is looked for.
        robot: Its joints, gear ratios and limits; None judges all channels, and no limits.
        seen: What a pass over this log has brought to light already.

    Returns:
        At least one item of each name, in the order in which a reader wants them.

    Raises:
        LogError: If a row cannot be read at all.
    """
    one = look(log, robot) if seen is None else seen
    found = [
        time_finding(one),
        sampling_finding(one),
        gaps_finding(one),
        repeats_finding(one),
        numbers_finding(one),
        *channel_findings(one, robot),
        saturation_finding(one, robot),
        quantisation_finding(one, robot),
        velocity_finding(one, robot),
        rest_finding(one, robot),
        *([limits_finding(one, robot)] if robot is not None else []),
    ]
    return [replace(item, log=log.label) for item in found]
