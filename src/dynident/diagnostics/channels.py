"""What the values of the channels say: numbers, dead channels, saturation, quantization, limits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dynident.diagnostics.thresholds import THRESHOLDS
from dynident.diagnostics.time import clock_factor
from dynident.estimate.records import Diagnostic, percent
from dynident.logs.columns import kind_of, number_of
from dynident.robot.model import Joint, Robot
from dynident.signals.channel_statistics import ChannelStatistics
from dynident.signals.log_survey import Survey
from dynident.signals.thresholds import THRESHOLDS as SIGNALS

_SMALL_UNITS = {"revolute": ("deg", "degrees"), "prismatic": ("mm", "millimeters")}
TORQUES = ("tau", "taum", "i")


def assessed_joints(survey: Survey, robot: Robot | None) -> list[int]:
    """Numbers of the joints that matter: those with a position that the robot does not hold locked."""
    if robot is None:
        return list(survey.joints.numbers)
    own = [joint.number for joint in robot.moving_joints]
    return [j for j in own if j in survey.joints.numbers]


def radian_of(survey: Survey, robot: Robot | None, joint: int) -> float:
    """What a radian of the joint is in its logged position: 0.1 m on a slide, turns of a motor shaft."""
    if robot is None:
        return 1.0
    place = next(i for i, j in enumerate(robot.active) if robot.joints[j].number == joint)
    gear = 1.0 if survey.joints.kind == "q" else abs(float(robot.drive.gear_ratios[place]))
    return gear * robot.joints[robot.active[place]].radian


def torque_channels(survey: Survey, joints: Sequence[int]) -> dict[int, str]:
    """The channel that tells the torque of each joint, of the kind that most of them have."""
    found = {kind: {j: f"{kind}{j}" for j in joints if f"{kind}{j}" in survey.channels} for kind in TORQUES}
    return found[max(TORQUES, key=lambda kind: len(found[kind]))]


def never_moves(survey: Survey, robot: Robot | None, joint: int) -> bool:
    """Whether the position of a joint stays where it is."""
    values = survey.channels[f"{survey.joints.kind}{joint}"]
    return not values.range > SIGNALS.standstill_rad * radian_of(survey, robot, joint)


def diagnose_numbers(survey: Survey) -> Diagnostic:
    """Whether all numbers are finite."""
    faulty = {name: values for name, values in survey.channels.items() if values.first_fault is not None}
    if not faulty:
        return Diagnostic("numbers", "ok", "all are finite")
    parts = []
    for name, values in list(faulty.items())[:5]:
        assert values.first_fault is not None
        row, what = values.first_fault
        parts.append(f"'{survey.raw.origins[name].header}' ({values.n_faults}, the first {what} at row {row})")
    more = f" and {len(faulty) - 5} more" if len(faulty) > 5 else ""
    words = f"numbers that are not finite in column {', '.join(parts)}{more}"
    return Diagnostic("numbers", "stop", f"{words}; leave these rows out, or cut the log (--window)")


def diagnose_channels(survey: Survey, robot: Robot | None) -> list[Diagnostic]:
    """Channels that show nothing: dead torques and positions, joints that never move."""
    joints = assessed_joints(survey, robot)
    if not joints:
        return [Diagnostic("channels", "ok", "not assessed: the log has no positions")]
    found = [*_dead_torques(survey, joints), *_still_positions(survey, robot, joints)]
    return found or [Diagnostic("channels", "ok", "every joint moves, and every channel shows something")]


def _dead_torques(survey: Survey, joints: Sequence[int]) -> Iterator[Diagnostic]:
    for joint, name in torque_channels(survey, joints).items():
        values = survey.channels[name]
        # A switch stays for long as well, but on either side for a good part of the log.
        switched = values.std > THRESHOLDS.min_switched_share * values.range
        dead = values.n_samples and (
            values.constant or (values.repeated_share > THRESHOLDS.dead_share and not switched)
        )
        if dead and survey.joints.moving_share[joint] > THRESHOLDS.min_moving_share:
            if values.constant and values.highest == 0.0 and len(torque_channels(survey, joints)) > 1:
                words = f"'{survey.raw.origins[name].header}' stays at 0 while joint {joint} moves"
                yield Diagnostic("channels", "warn", f"{words}: right for a joint without a motor; else log its torque")
                continue
            words = f"'{survey.raw.origins[name].header}' stays at {values.highest:.4g} while joint {joint} moves"
            yield Diagnostic(
                "channels", "stop", f"{words}: the channel is dead; log it, or leave out or lock the joint"
            )


def _still_positions(survey: Survey, robot: Robot | None, joints: Sequence[int]) -> Iterator[Diagnostic]:
    still = [j for j in joints if never_moves(survey, robot, j)]
    if len(still) == len(joints):
        return  # the diagnostic "rest" says so
    held = {}
    for j in still:
        velocity = survey.joints.max_measured_velocity.get(j, 0.0)
        name = f"{survey.joints.kind}{j}"
        if velocity > THRESHOLDS.min_velocity * radian_of(survey, robot, j):
            words = (
                f"'{survey.raw.origins[name].header}' never changes, but the measured velocity reaches {velocity:.3g}"
            )
            yield Diagnostic("channels", "stop", f"{words}: the position of joint {j} is dead; log it")
        else:
            values = survey.channels[name]
            if not np.isfinite([values.lowest, values.highest]).all():
                continue  # the diagnostic "numbers" says so
            held[name] = float(f"{0.5 * (values.lowest + values.highest):.6g}")
    if held:
        numbers = ", ".join(name.removeprefix(survey.joints.kind) for name in held)
        words = f"joint {numbers} never moves" if len(held) == 1 else f"joints {numbers} never move"
        it = "it" if len(held) == 1 else "them"
        if survey.joints.kind != "q":  # a motor-side log cannot be used with locked joints
            yield Diagnostic(
                "channels", "warn", f"{words}; nothing is identified of {it} unless another log moves {it}"
            )
            return
        lock = ",".join(f"{name}={value:g}" for name, value in held.items())
        remedy = f"move {it} in another log, or hold {it}: --locked {lock}"
        yield Diagnostic("channels", "warn", f"{words}; {remedy}", {"locked": held})


def diagnose_saturation(survey: Survey, robot: Robot | None) -> Diagnostic:
    """Whether torques sit at the ends of their range while their joint moves; such samples are left out of fits."""
    clipped = {}
    for joint, name in torque_channels(survey, assessed_joints(survey, robot)).items():
        moves = survey.joints.moving_share[joint] > THRESHOLDS.min_moving_share
        if moves and (share := survey.channels[name].saturated_share) > 0.0:
            clipped[name] = share
    if not clipped:
        return Diagnostic("saturation", "ok", "no torque stays at the end of its range")
    parts = [
        f"'{survey.raw.origins[name].header}' ({percent(share)}, at {_end(survey.channels[name]):.4g})"
        for name, share in clipped.items()
    ]
    words = f"torque stays at the end of its range in motion: {', '.join(parts)}"
    if max(clipped.values()) > SIGNALS.max_saturated_share:
        remedy = "a drive that switches, or one that clips: used as logged, since too little would remain without"
        return Diagnostic("saturation", "warn", f"{words}; {remedy}")
    remedy = "these samples are left out of the fit of their joint; move more gently if the drive or the logger clips"
    return Diagnostic("saturation", "warn", f"{words}; {remedy}")


def _end(values: ChannelStatistics) -> float:
    return max(abs(values.lowest), abs(values.highest))


def diagnose_quantization(survey: Survey, robot: Robot | None) -> Diagnostic:
    """Whether positions or torques come in steps that are coarse for the signal."""
    joints = assessed_joints(survey, robot)
    stutter = survey.repeats.n_short / survey.clock.n_samples
    # A joint that is held wobbles by a few steps of its encoder, however fine they are.
    moving = [j for j in joints if survey.joints.moving_share[j] > THRESHOLDS.min_moving_share]
    moving = [j for j in moving if not never_moves(survey, robot, j)]
    signals = [(f"{survey.joints.kind}{j}", THRESHOLDS.coarse_position_step) for j in moving]
    signals += [(name, THRESHOLDS.coarse_torque_step) for name in torque_channels(survey, joints).values()]
    coarse = []
    for name, coarse_step in signals:
        values = survey.channels[name]
        rounded = THRESHOLDS.rounded_share + stutter < values.repeated_share <= THRESHOLDS.dead_share
        if rounded and values.step > coarse_step * values.std > 0.0:
            share = values.step / values.std
            step = f"{values.step:.3g} {_unit(survey, robot, name)}"
            coarse.append(
                f"'{survey.raw.origins[name].header}' (steps of {step}, {share:.2g} of its standard deviation)"
            )
    if not coarse:
        return Diagnostic("quantisation", "ok", "steps of positions and torques are fine enough")
    words = f"coarse steps in {', '.join(coarse)}"
    return Diagnostic("quantisation", "warn", f"{words}; log more digits, or move so that the signal is larger")


def _unit(survey: Survey, robot: Robot | None, name: str) -> str:
    """Unit of a channel; that of a slide where the robot knows it for one."""
    slides = () if robot is None else [joint.number for joint in robot.joints if joint.kind == "prismatic"]
    if number_of(name) in slides and kind_of(name) in ("q", "tau"):
        return "m" if kind_of(name) == "q" else "N"
    return survey.raw.unit(name)


def diagnose_limits(survey: Survey, robot: Robot) -> Diagnostic:
    """Whether positions and velocities keep to the robot's limits or, without limits, turn round and round."""
    numbers = assessed_joints(survey, robot)
    joints = [joint for joint in robot.joints if joint.number in numbers]
    if turning := _round_and_round(survey, robot, joints):
        words = ", ".join(f"{name} makes its joint turn {turns:.0f} times" for name, turns in turning.items())
        far = [joint for joint in joints if _channel(survey, joint) in turning and _far(survey, robot, joint)]
        if not far:
            return Diagnostic("limits", "warn", f"{words}; if it is in degrees, give its unit in a column file")
        words += "; so far beyond the limits that the positions may be in degrees"
        return Diagnostic("limits", "warn", words, {"columns": _in_small_units(survey, far)})
    if survey.joints.kind != "q":
        return Diagnostic("limits", "ok", "not assessed: the log has positions of motor shafts")
    beyond = [words for joint in joints for words in _beyond(survey, joint)]
    if not beyond:
        return Diagnostic("limits", "ok", "positions and velocities keep to the robot's limits")
    far = [joint for joint in joints if _far(survey, robot, joint)]
    words = f"beyond the limits of {robot.name}: {', '.join(beyond[:6])}{', ..' if len(beyond) > 6 else ''}"
    if not far:
        return Diagnostic("limits", "warn", f"{words}; {_CHECK_LIMITS}")
    units = " and ".join(dict.fromkeys(_SMALL_UNITS[joint.kind][1] for joint in far))
    return Diagnostic(
        "limits",
        "warn",
        f"{words}; so far beyond that the positions may be in {units}",
        {"columns": _in_small_units(survey, far)},
    )


_CHECK_LIMITS = "check that the robot file is the one of this robot, the order of the joints and the units"


def _channel(survey: Survey, joint: Joint) -> str:
    """The position channel of a joint or of its motor, such as qm3."""
    return f"{survey.joints.kind}{joint.number}"


def _gear_ratio(survey: Survey, robot: Robot, joint: Joint) -> float:
    """Turns of the position channel of a joint for one of its own: those of a motor, coupled or not, by its gear."""
    ratio = robot.drive.gear_ratios[robot.moving[robot.joint_names.index(joint.name)]]
    return abs(float(ratio)) if survey.joints.kind == "qm" else 1.0


def _in_small_units(survey: Survey, joints: Sequence[Joint]) -> dict[str, Any]:
    """Column rules by which the positions of some joints are in degrees or millimeters."""
    columns: dict[str, Any] = {}
    for joint in joints:
        name = _channel(survey, joint)
        columns.update(survey.raw.origins[name].rule(name, unit=_SMALL_UNITS[joint.kind][0]))
    return columns


def _round_and_round(survey: Survey, robot: Robot, joints: Sequence[Joint]) -> dict[str, float]:
    """Position channels that turn their joint as often as no joint of an arm does, and how often.

    Positions of joints with limits, not of their motors, are compared with these instead.
    """
    motors, found = survey.joints.kind == "qm", {}
    if motors and not np.any(np.abs(robot.drive.gear_ratios) != 1.0):
        return {}  # motors turn, and gear ratios are asked for
    for joint in joints:
        name = _channel(survey, joint)
        values = survey.channels[name]
        turns = (values.highest - values.lowest) / (2.0 * math.pi) / _gear_ratio(survey, robot, joint)
        free = motors or not np.isfinite(joint.limits.span).all()
        if joint.kind == "revolute" and free and turns > THRESHOLDS.many_turns and not survey.raw.origins[name].unit:
            found[name] = float(turns)
    return found


def _beyond(survey: Survey, joint: Joint) -> Iterator[str]:
    values, limits = survey.channels[joint.variable], joint.limits
    unit = survey.raw.unit(joint.variable) if joint.kind == "revolute" else "m"
    room = THRESHOLDS.position_limit_margin_rad * joint.radian
    if limits.lower is not None and limits.upper is not None and limits.lower < limits.upper:
        if values.lowest < limits.lower - room:
            yield f"{joint.variable} {values.lowest:.4g} under {limits.lower:.4g} {unit}"
        if values.highest > limits.upper + room:
            yield f"{joint.variable} {values.highest:.4g} over {limits.upper:.4g} {unit}"
    velocity = survey.joints.max_velocity[joint.number]
    if limits.velocity and velocity > THRESHOLDS.velocity_limit_factor * limits.velocity:
        yield f"d{joint.variable} {velocity:.4g} over {limits.velocity:.4g} {unit}/s"


def _far(survey: Survey, robot: Robot, joint: Joint) -> bool:
    """Whether the positions of a joint or of its motor are as far off as degrees or millimeters would be."""
    name, limits = _channel(survey, joint), joint.limits
    if limits.lower is None or limits.upper is None or survey.raw.origins[name].unit:
        return False
    size, most = (math.pi / 180.0 if joint.kind == "revolute" else 1e-3), max(abs(limits.lower), abs(limits.upper))
    end = _end(survey.channels[name]) / _gear_ratio(survey, robot, joint)
    return end > THRESHOLDS.other_unit_factor * most > 0.0 and size * end < 2.0 * most


# ----------------------------------------------------------------------------------------------------------------------
# What the motion says: measured velocities against positions, and how much of the log is standstill.

_UNITS = {"deg/s": 180.0 / math.pi, "rpm": 30.0 / math.pi}


def diagnose_velocity(survey: Survey, robot: Robot | None) -> Diagnostic:
    """Whether measured velocities are those of the positions; positions are what is used."""
    velocities = list(_velocity_slopes(survey, robot))
    if not velocities:
        return Diagnostic("velocity", "ok", "no measured velocities to compare; positions are differentiated")
    if (factor := _common_factor(velocities)) != 1.0:
        words = f"all measured velocities are {factor:.3g} times those of the positions, as if the clock ran wrong"
        fix = {"columns": survey.raw.origins["t"].rule("t", factor=float(f"{1.0 / factor:.3g}"))}
        return Diagnostic("velocity", "warn", f"{words}: check the stamps, or the scale of the velocities", fix)
    wrong = [found for joint, own, slope in velocities if (found := _wrong_velocity(survey, joint, own, slope))]
    if not wrong:
        slopes = [slope for _, _, slope in velocities]
        span = f"{min(slopes):.3f} to {max(slopes):.3f}"
        return Diagnostic("velocity", "ok", f"measured velocities are {span} times those of the positions")
    words = f"measured velocities are not those of the positions: {'; '.join(words for words, _ in wrong)}"
    columns = {column: rule for _, rules in wrong for column, rule in rules.items()}
    fix = {"columns": columns} if columns else {}
    return Diagnostic("velocity", "warn", f"{words}; positions are used unless measured velocities are asked for", fix)


def _velocity_slopes(survey: Survey, robot: Robot | None) -> Iterator[tuple[int, float, float]]:
    """Joint, correlation and slope of each velocity column that can be assessed."""
    joints, evaluated = survey.joints, assessed_joints(survey, robot)
    factor = clock_factor(survey)  # what is wrong with the clock is not the fault of the velocities
    for i, joint in enumerate(joints.with_velocity):
        quick = joints.max_velocity[joint] > THRESHOLDS.min_velocity * radian_of(survey, robot, joint) / factor
        if joint in evaluated and quick and not never_moves(survey, robot, joint):
            yield joint, float(joints.correlation[i, joints.numbers.index(joint)]), float(joints.slope[i]) / factor


def _common_factor(velocities: Sequence[tuple[int, float, float]]) -> float:
    """The factor that all velocities have in common, which no unit but only a clock explains; 1 if there is none."""
    slopes = [slope for _, own, slope in velocities if own > THRESHOLDS.min_velocity_correlation]
    middle = float(np.median(slopes)) if slopes else 1.0
    alike = len(slopes) == len(velocities) > 1 and all(
        abs(slope / middle - 1.0) < THRESHOLDS.slope_tolerance for slope in slopes
    )
    most, apart = THRESHOLDS.max_clock_factor, abs(middle - 1.0) > THRESHOLDS.max_velocity_slope_error
    return middle if alike and apart and 1.0 / most < middle < most else 1.0


def _other(survey: Survey, joint: int) -> int | None:
    """The other joint whose position a velocity follows."""
    row = abs(survey.joints.correlation[survey.joints.with_velocity.index(joint)])
    best = survey.joints.numbers[int(row.argmax())]
    return best if best != joint and row.max() > THRESHOLDS.swapped_velocity_correlation else None


def _wrong_velocity(survey: Survey, joint: int, own: float, slope: float) -> tuple[str, dict[str, Any]] | None:
    """What is wrong with a velocity column, and the column rules that correct it; None if nothing is."""
    channel, position_channel = f"d{survey.joints.kind}{joint}", f"{survey.joints.kind}{joint}"
    origin, position = survey.raw.origins[channel], survey.raw.origins[position_channel]
    name, size = f"'{origin.header}'", abs(slope)
    if abs(own) < THRESHOLDS.min_velocity_correlation:
        other = _other(survey, joint)
        if other is None:
            return f"{name} does not follow the position (correlation {own:.2f})", {}
        return f"{name} follows the position of joint {other}: swapped", origin.rule(f"d{survey.joints.kind}{other}")
    if abs(slope - 1.0) <= THRESHOLDS.max_velocity_slope_error:
        return None
    words, sign = f"{name} is {slope:.3g} times as fast", "with the sign flipped, " if slope < 0.0 else ""
    near = [unit for unit, own_size in _UNITS.items() if abs(size / own_size - 1.0) < THRESHOLDS.slope_tolerance]
    if near and not origin.unit:
        return f"{words}: {sign}in {near[0]}", origin.rule(channel, unit=near[0], factor=math.copysign(1.0, slope))
    if not position.unit and abs(size * _UNITS["deg/s"] - 1.0) < THRESHOLDS.slope_tolerance:
        return f"{words}: {sign}and the positions are in degrees", position.rule(position_channel, unit="deg")
    if abs(size - 1.0) <= THRESHOLDS.max_velocity_slope_error:
        return f"{name} has the sign flipped", origin.rule(channel, factor=-1.0)
    copies = abs(own) > THRESHOLDS.copied_velocity_correlation
    return words, origin.rule(channel, factor=1.0 / slope) if copies else {}


def diagnose_rest(survey: Survey, robot: Robot | None) -> Diagnostic:
    """Whether the robot moves for enough of the log."""
    joints = assessed_joints(survey, robot)
    if not joints:
        return Diagnostic("rest", "ok", "not assessed: the log has no positions")
    if all(never_moves(survey, robot, j) for j in joints):
        return Diagnostic("rest", "stop", "no joint moves in this log; nothing can be identified from it")
    share = survey.joints.rest_share
    if share > THRESHOLDS.max_rest_share:
        words = f"all joints rest in {percent(share)} of the samples"
        return Diagnostic("rest", "warn", f"{words}, which are not used; cut the log (--window) or move more")
    return Diagnostic("rest", "ok", f"all joints rest in {percent(share)} of the samples")
