"""What the values of the channels say: numbers, dead channels, saturation, quantisation, limits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dynident.diagnostics.time import clock_factor
from dynident.estimate.records import Finding, Verdict, percent
from dynident.robot.model import METRES_PER_RADIAN, Joint, Robot
from dynident.signals.channel_statistics import ChannelStatistics
from dynident.signals.log_survey import Survey

STILL = 5e-3  # [rad] a joint that stays within this range never moves; held joints wobble by 0.003
_MOVES = 0.02  # share of the samples in which a joint that counts as moving moves
_SPEEDS = 0.05  # [rad/s] a measured speed that is no noise
_DEAD = 0.999  # share of repeated values of a dead channel; 1 mA steps around zero have 0.83
_CLIPPED, _CLIPS_MUCH = 0.01, 0.05  # share of the samples in motion at the end of the range; sound logs have 0.0003
_LEVELS = 20  # a channel with fewer levels stays at its ends by rounding
_COARSE = {"position": 3e-3, "torque": 0.1}  # step over standard deviation; sound logs have 4e-4 and 0.02
_ROUNDED = 0.1  # share of repeated values from which a step is one of rounding
_BEYOND_POSITION, _BEYOND_SPEED = 0.02, 1.2  # [rad], factor: encoders and windows need some room
_FAR = 10.0  # times a limit: another unit
_SMALL_UNITS = {"revolute": ("deg", "degrees"), "prismatic": ("mm", "millimetres")}
TORQUES = ("tau", "taum", "i")


def judged_joints(survey: Survey, robot: Robot | None) -> list[int]:
    """Numbers of the joints that matter: those with a position that the robot does not hold locked."""
    if robot is None:
        return list(survey.joints.numbers)
    own = [robot.joints[robot.active[i]].number for i in robot.moving]
    return [j for j in own if j in survey.joints.numbers]


def radian_of(survey: Survey, robot: Robot | None, joint: int) -> float:
    """What a radian of the joint is in its logged position: 0.1 m on a slide, turns of a motor shaft."""
    if robot is None:
        return 1.0
    place = next(i for i, j in enumerate(robot.active) if robot.joints[j].number == joint)
    gear = 1.0 if survey.joints.kind == "q" else abs(float(robot.drive.gear_ratios[place]))
    return gear * (METRES_PER_RADIAN if robot.joints[robot.active[place]].kind == "prismatic" else 1.0)


def torque_channels(survey: Survey, joints: Sequence[int]) -> dict[int, str]:
    """The channel that tells the torque of each joint, of the kind that most of them have."""
    found = {kind: {j: f"{kind}{j}" for j in joints if f"{kind}{j}" in survey.channels} for kind in TORQUES}
    return found[max(TORQUES, key=lambda kind: len(found[kind]))]


def never_moves(survey: Survey, robot: Robot | None, joint: int) -> bool:
    """Whether the position of a joint stays where it is."""
    values = survey.channels[f"{survey.joints.kind}{joint}"]
    return not values.range > STILL * radian_of(survey, robot, joint)


def numbers_finding(survey: Survey) -> Finding:
    """Whether all numbers are finite."""
    faulty = {name: values for name, values in survey.channels.items() if values.first_fault is not None}
    if not faulty:
        return Finding("numbers", "ok", "all are finite")
    parts = []
    for name, values in list(faulty.items())[:5]:
        assert values.first_fault is not None
        row, what = values.first_fault
        parts.append(f"'{survey.raw.origins[name].header}' ({values.n_faults}, the first {what} at row {row})")
    more = f" and {len(faulty) - 5} more" if len(faulty) > 5 else ""
    words = f"numbers that are not finite in column {', '.join(parts)}{more}"
    return Finding("numbers", "stop", f"{words}; leave these rows out, or cut the log (--window)")


def channel_findings(survey: Survey, robot: Robot | None) -> list[Finding]:
    """Channels that show nothing: dead torques and positions, joints that never move."""
    joints = judged_joints(survey, robot)
    if not joints:
        return [Finding("channels", "ok", "not judged: the log has no positions")]
    found = [*_dead_torques(survey, joints), *_still_positions(survey, robot, joints)]
    return found or [Finding("channels", "ok", "every joint moves, and every channel shows something")]


def _dead_torques(survey: Survey, joints: Sequence[int]) -> Iterator[Finding]:
    for joint, name in torque_channels(survey, joints).items():
        values = survey.channels[name]
        dead = values.n_samples and (values.constant or values.repeated_share > _DEAD)
        if dead and survey.joints.moving_share[joint] > _MOVES:
            words = f"'{survey.raw.origins[name].header}' stays at {values.highest:.4g} while joint {joint} moves"
            yield Finding("channels", "stop", f"{words}: the channel is dead; log it, or leave out or lock the joint")


def _still_positions(survey: Survey, robot: Robot | None, joints: Sequence[int]) -> Iterator[Finding]:
    still = [j for j in joints if never_moves(survey, robot, j)]
    if len(still) == len(joints):
        return  # the finding "rest" says so
    held = {}
    for j in still:
        speed = survey.joints.max_measured_speed.get(j, 0.0)
        name = f"{survey.joints.kind}{j}"
        if speed > _SPEEDS * radian_of(survey, robot, j):
            words = f"'{survey.raw.origins[name].header}' never changes, but the measured speed reaches {speed:.3g}"
            yield Finding("channels", "stop", f"{words}: the position of joint {j} is dead; log it")
        else:
            values = survey.channels[name]
            held[name] = float(f"{0.5 * (values.lowest + values.highest):.6g}")
    if held:
        numbers = ", ".join(name.removeprefix(survey.joints.kind) for name in held)
        words = f"joint {numbers} never moves" if len(held) == 1 else f"joints {numbers} never move"
        it = "it" if len(held) == 1 else "them"
        if survey.joints.kind != "q":  # a motor-side log cannot be used with locked joints
            yield Finding("channels", "warn", f"{words}; nothing is learnt about {it} unless another log moves {it}")
            return
        lock = ",".join(f"{name}={value:g}" for name, value in held.items())
        remedy = f"move {it} in another log, or hold {it}: --locked {lock}"
        yield Finding("channels", "warn", f"{words}; {remedy}", {"locked": held})


def saturation_finding(survey: Survey, robot: Robot | None) -> Finding:
    """Whether torques sit at the ends of their range while their joint moves."""
    clipped = {}
    for joint, name in torque_channels(survey, judged_joints(survey, robot)).items():
        values = survey.channels[name]
        levels = values.range / values.step if values.step else 0.0
        if levels >= _LEVELS and values.saturated_share > _CLIPPED and survey.joints.moving_share[joint] > _MOVES:
            clipped[name] = values.saturated_share
    if not clipped:
        return Finding("saturation", "ok", "no torque stays at the end of its range")
    parts = [
        f"'{survey.raw.origins[name].header}' ({percent(share)}, at {_end(survey.channels[name]):.4g})"
        for name, share in clipped.items()
    ]
    words = f"torque stays at the end of its range in motion: {', '.join(parts)}"
    verdict: Verdict = "stop" if max(clipped.values()) > _CLIPS_MUCH else "warn"
    return Finding("saturation", verdict, f"{words}; the drive or the logger clips: move more gently")


def _end(values: ChannelStatistics) -> float:
    return max(abs(values.lowest), abs(values.highest))


def quantisation_finding(survey: Survey, robot: Robot | None) -> Finding:
    """Whether positions or torques come in steps that are coarse for the signal."""
    joints = judged_joints(survey, robot)
    stutter = survey.repeats.n_short / survey.clock.n_samples
    signals = [(f"{survey.joints.kind}{j}", "position") for j in joints if not never_moves(survey, robot, j)]
    signals += [(name, "torque") for name in torque_channels(survey, joints).values()]
    coarse = []
    for name, what in signals:
        values = survey.channels[name]
        rounded = _ROUNDED + stutter < values.repeated_share <= _DEAD
        if rounded and values.step > _COARSE[what] * values.std > 0.0:
            share = values.step / values.std
            step = f"{values.step:.3g} {survey.raw.unit(name)}"
            coarse.append(f"'{survey.raw.origins[name].header}' (steps of {step}, {share:.2g} of its deviation)")
    if not coarse:
        return Finding("quantisation", "ok", "steps of positions and torques are fine enough")
    words = f"coarse steps in {', '.join(coarse)}"
    return Finding("quantisation", "warn", f"{words}; log more digits, or move so that the signal is larger")


def limits_finding(survey: Survey, robot: Robot) -> Finding:
    """Whether positions and speeds keep to the robot's limits."""
    if survey.joints.kind != "q":
        return Finding("limits", "ok", "not judged: the log has positions of motor shafts")
    numbers = judged_joints(survey, robot)
    joints = [joint for joint in robot.joints if joint.number in numbers]
    beyond = [words for joint in joints for words in _beyond(survey, joint)]
    if not beyond:
        return Finding("limits", "ok", "positions and speeds keep to the robot's limits")
    far = [joint for joint in joints if _far(survey, joint)]
    words = f"beyond the limits of {robot.name}: {', '.join(beyond[:6])}{', ..' if len(beyond) > 6 else ''}"
    if not far:
        return Finding("limits", "warn", f"{words}; check the robot file, the order of the joints and the units")
    columns = {}
    for joint in far:
        columns.update(survey.raw.origins[joint.variable].rule(joint.variable, unit=_SMALL_UNITS[joint.kind][0]))
    units = " and ".join(dict.fromkeys(_SMALL_UNITS[joint.kind][1] for joint in far))
    return Finding(
        "limits", "warn", f"{words}; so far beyond that the positions may be in {units}", {"columns": columns}
    )


def _beyond(survey: Survey, joint: Joint) -> Iterator[str]:
    values, limits = survey.channels[joint.variable], joint.limits
    unit = survey.raw.unit(joint.variable) if joint.kind == "revolute" else "m"
    room = _BEYOND_POSITION * (METRES_PER_RADIAN if joint.kind == "prismatic" else 1.0)
    if limits.lower is not None and limits.upper is not None and limits.lower < limits.upper:
        if values.lowest < limits.lower - room:
            yield f"{joint.variable} {values.lowest:.4g} under {limits.lower:.4g} {unit}"
        if values.highest > limits.upper + room:
            yield f"{joint.variable} {values.highest:.4g} over {limits.upper:.4g} {unit}"
    speed = survey.joints.max_speed[joint.number]
    if limits.velocity and speed > _BEYOND_SPEED * limits.velocity:
        yield f"d{joint.variable} {speed:.4g} over {limits.velocity:.4g} {unit}/s"


def _far(survey: Survey, joint: Joint) -> bool:
    """Whether a joint's positions are as far off as degrees or millimetres would be."""
    values, limits = survey.channels[joint.variable], joint.limits
    if limits.lower is None or limits.upper is None or survey.raw.origins[joint.variable].unit:
        return False
    return _end(values) > _FAR * max(abs(limits.lower), abs(limits.upper)) > 0.0


# ----------------------------------------------------------------------------------------------------------------------
# What the motion says: measured speeds against positions, and how much of the log is standstill.

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
