"""Voltages for steps that nobody has chosen: from what is known of the robot."""

from __future__ import annotations

import numpy as np

from dynident.errors import InputError
from dynident.experiments.step.poses import motor_friction, motor_inertia, random_poses, ranges, start_place
from dynident.experiments.step.response import displacement
from dynident.plant.drives import Motors
from dynident.robot.model import Robot

FULL_VOLTAGE = 10.0  # [V] at which the motors of a robot without any give its effort limits
_TRAVEL = 0.8  # share of the room before a joint that the stronger step uses
_FARTHEST = 2.0  # [rad or m] of it, at most
_SPEED = 0.8  # share of the speed limit that it reaches
_WEAKER = 0.45  # acceleration of the weaker step over that of the stronger
_DECIMALS = 3  # significant ones of a voltage


def default_motors(robot: Robot) -> Motors:
    """Motors that give the robot's effort limits at 10 V, for a simulated machine without electrical data."""
    efforts = [robot.joints[robot.active[i]].limits.effort for i in robot.moving]
    missing = [name for name, effort in zip(robot.joint_names, efforts, strict=True) if not effort]
    if missing:
        raise InputError(
            f"robot {robot.name} has no effort limit for {', '.join(missing)}, so its motors cannot be guessed; give "
            "the torque gain (--gain), or torque constant and resistance (--kt, --ra, --motors)"
        )
    gains = np.array([float(effort or 0.0) for effort in efforts]) / FULL_VOLTAGE
    return Motors(gains, 1.0, voltage_limit=FULL_VOLTAGE)


def suggested(
    robot: Robot, motors: Motors, motor: int, duration: float, values: str | None = None
) -> tuple[float, float]:
    """Two voltages whose steps use most of a joint's range in a time [s], judged by the robot's own values."""
    own = motors.for_joints(robot.joint_names)
    gain = float(np.asarray(own.torque_constant)[motor] / np.asarray(own.resistance)[motor])
    inertia = float(np.max(motor_inertia(robot, random_poses(robot, 20, 11), motor, values)))
    name = robot.joint_names[motor]
    if not inertia > 0.0:
        raise InputError(f"nothing is known of the inertia of joint {name}: give voltages (--volts {name}=0.8:0.5)")
    viscous, dry = motor_friction(robot, motor, values)
    rate = (viscous + float(own.braking[motor])) / inertia
    _, upper = ranges(robot)
    room = min(float(upper[motor] - start_place(robot, motor, True)), _FARTHEST)
    unit = displacement(np.array([duration]), rate, 1.0)[0]
    strong = _TRAVEL * room / unit
    limit = robot.joints[robot.active[robot.moving[motor]]].limits.velocity
    if limit is not None:
        speed = duration if rate == 0.0 else -np.expm1(-rate * duration) / rate
        strong = min(strong, _SPEED * limit / speed)
    steps = [(inertia * U + dry) / gain for U in (strong, _WEAKER * strong)]
    most = float(np.asarray(own.voltage_limit)[motor])
    if abs(steps[0]) > most:
        steps = [x * most / abs(steps[0]) for x in steps]
    first, second = (float(f"{x:.{_DECIMALS - 1}e}") for x in steps)
    return first, second
