"""What the motion says: measured speeds against positions, and how much of the log is standstill."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dynident.check.channel_findings import judged_joints, never_moves, radian_of
from dynident.check.finding import Finding, percent
from dynident.check.time_findings import clock_factor
from dynident.robot.model import Robot
from dynident.signals.log_survey import Survey

_SPEED = 0.05  # [rad/s] slower joints tell nothing about their speed columns
_FOLLOWS = 0.9  # correlation of a speed with its own position; sound logs have 0.97 or more
_SWAPPED = 0.95  # of a speed with another joint's position
_SLOPE = 0.15  # by which measured speeds may be larger or smaller; sound logs have 0.05
_NEAR = 0.05  # by which a slope may differ from that of a known unit
_CLOCK = 5.0  # factor up to which a common one is that of a clock; beyond are units and gears
_UNITS = {"deg/s": 180.0 / math.pi, "rpm": 30.0 / math.pi}
_RESTING = 0.8  # share of the samples at rest; a log that starts and ends at rest has 0.25


@dataclass
class _Wrong:
    """What is wrong with the speed columns so far."""

    words: list[str] = field(default_factory=list)
    columns: dict[str, Any] = field(default_factory=dict)


def velocity_finding(survey: Survey, robot: Robot | None) -> Finding:
    """Whether measured speeds are those of the positions; positions are what is used."""
    speeds = list(_compared(survey, robot))
    if not speeds:
        return Finding("velocity", "ok", "no measured speeds to compare; positions are differentiated")
    if (factor := _common_factor(speeds)) != 1.0:
        words = f"all measured speeds are {factor:.3g} times those of the positions, as if the clock ran wrong"
        fix = {"columns": survey.raw.origins["t"].rule("t", factor=float(f"{1.0 / factor:.3g}"))}
        return Finding("velocity", "warn", f"{words}: check the stamps, or the scale of the speeds", fix)
    wrong = _Wrong()
    for joint, own, slope in speeds:
        other = _other(survey, joint)
        if abs(own) < _FOLLOWS and other is not None:
            _note_swap(survey, wrong, joint, other)
        elif abs(own) < _FOLLOWS:
            wrong.words.append(f"{_column(survey, joint)} does not follow the position (correlation {own:.2f})")
        elif abs(slope - 1.0) > _SLOPE:
            _note_slope(survey, wrong, joint, slope)
    if not wrong.words:
        slopes = [slope for _, _, slope in speeds]
        span = f"{min(slopes):.3f} to {max(slopes):.3f}"
        return Finding("velocity", "ok", f"measured speeds are {span} times those of the positions")
    words = f"measured speeds are not those of the positions: {'; '.join(wrong.words)}"
    fix = {"columns": wrong.columns} if wrong.columns else {}
    return Finding("velocity", "warn", f"{words}; positions are used unless measured speeds are asked for", fix)


def _compared(survey: Survey, robot: Robot | None) -> Iterator[tuple[int, float, float]]:
    """Joint, correlation and slope of each speed column that can be judged."""
    joints, judged = survey.joints, judged_joints(survey, robot)
    factor = clock_factor(survey)  # what is wrong with the clock is not the fault of the speeds
    for i, joint in enumerate(joints.with_velocity):
        quick = joints.max_speed[joint] > _SPEED * radian_of(survey, robot, joint) / factor
        if joint in judged and quick and not never_moves(survey, robot, joint):
            yield joint, float(joints.correlation[i, joints.numbers.index(joint)]), float(joints.slope[i]) / factor


def _common_factor(speeds: Sequence[tuple[int, float, float]]) -> float:
    """The factor that all speeds have in common, which no unit but only a clock explains; 1 if there is none."""
    slopes = [slope for _, own, slope in speeds if own > _FOLLOWS]
    middle = float(np.median(slopes)) if slopes else 1.0
    alike = len(slopes) == len(speeds) > 1 and all(abs(slope / middle - 1.0) < _NEAR for slope in slopes)
    return middle if alike and abs(middle - 1.0) > _SLOPE and 1.0 / _CLOCK < middle < _CLOCK else 1.0


def _other(survey: Survey, joint: int) -> int | None:
    """The other joint whose position a speed follows."""
    row = abs(survey.joints.correlation[survey.joints.with_velocity.index(joint)])
    best = survey.joints.numbers[int(row.argmax())]
    return best if best != joint and row.max() > _SWAPPED else None


def _column(survey: Survey, joint: int) -> str:
    return f"'{survey.raw.origins[_channel(survey, joint)].header}'"


def _channel(survey: Survey, joint: int) -> str:
    return f"d{survey.joints.kind}{joint}"


def _note_swap(survey: Survey, wrong: _Wrong, joint: int, other: int) -> None:
    wrong.words.append(f"{_column(survey, joint)} follows the position of joint {other}: swapped")
    wrong.columns.update(survey.raw.origins[_channel(survey, joint)].rule(_channel(survey, other)))


def _note_slope(survey: Survey, wrong: _Wrong, joint: int, slope: float) -> None:
    """A speed that follows its position, but not one to one."""
    channel = _channel(survey, joint)
    origin, position = survey.raw.origins[channel], survey.raw.origins[channel.removeprefix("d")]
    name = _column(survey, joint)
    sign = "with the sign flipped, " if slope < 0.0 else ""
    size = abs(slope)
    unit = next((unit for unit, own in _UNITS.items() if not origin.unit and abs(size / own - 1.0) < _NEAR), "")
    if unit:
        wrong.words.append(f"{name} is {slope:.3g} times as fast: {sign}in {unit}")
        wrong.columns.update(origin.rule(channel, unit=unit, factor=math.copysign(1.0, slope)))
    elif not position.unit and abs(size * _UNITS["deg/s"] - 1.0) < _NEAR:
        wrong.words.append(f"{name} is {slope:.3g} times as fast: {sign}and the positions are in degrees")
        wrong.columns.update(position.rule(channel.removeprefix("d"), unit="deg"))
    elif abs(size - 1.0) <= _SLOPE:
        wrong.words.append(f"{name} has the sign flipped")
        wrong.columns.update(origin.rule(channel, factor=-1.0))
    else:
        wrong.words.append(f"{name} is {slope:.3g} times as fast")
        wrong.columns.update(origin.rule(channel, factor=1.0 / slope))


def rest_finding(survey: Survey, robot: Robot | None) -> Finding:
    """Whether the robot moves for enough of the log."""
    joints = judged_joints(survey, robot)
    if not joints:
        return Finding("rest", "ok", "not judged: the log has no positions")
    if all(never_moves(survey, robot, j) for j in joints):
        return Finding("rest", "stop", "no joint moves in this log; nothing can be learnt from it")
    share = survey.joints.rest_share
    if share > _RESTING:
        words = f"all joints rest in {percent(share)} of the samples"
        return Finding("rest", "warn", f"{words}, which are not used; cut the log (--window) or move more")
    return Finding("rest", "ok", f"all joints rest in {percent(share)} of the samples")
