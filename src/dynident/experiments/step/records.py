"""`StepRecord`: one recorded step: which motor, which voltage, where the others were, time and position."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.arrays import Array, record
from dynident.dynamics.evaluate import gravity_torque
from dynident.experiments.options import StepOptions
from dynident.experiments.protocol import ExperimentError
from dynident.experiments.step.poses import directions
from dynident.experiments.thresholds import STEP
from dynident.logs.log import Log, LogError, channel_names, joint_positions, joint_velocities
from dynident.plant.drives import Motors
from dynident.robot.model import Robot


@record
class StepRecord:
    """One step test.

    Attributes:
        label: Name of the run or log.
        motor: The driven motor, as a place in `robot.joint_names`.
        pose: (n_moving,) where it started [rad or m].
        voltage: Of the step, without what carries the weight [V].
        step: When it came [s].
        time: (n_samples,) [s].
        position: (n_samples,) of the driven coordinate, joint side [rad or m].
        why: Why it ended.
        q: (n_samples, n_moving) of all joints; None where only the driven coordinate was recorded.
        applied: (n_samples,) whole voltage, held from each sample to the next [V]; None for that of the step on top of
            what carries the described weight.
        dq: (n_samples, n_moving) velocities, where they were recorded: held joints move within the counts of encoders.
    """

    label: str
    motor: int
    pose: Array
    voltage: float
    step: float
    time: Array
    position: Array
    why: str = ""
    q: Array | None = None
    applied: Array | None = None
    dq: Array | None = None

    def joints(self, robot: Robot) -> Array:
        """Positions of all joints, (n_samples, n_moving)."""
        if self.q is not None:
            return self.q
        moved = self.position - self.position[0]
        return np.asarray(self.pose + moved[:, None] * directions(robot)[self.motor])

    def held(self, robot: Robot, gain: float, values: str | None) -> Array:
        """Voltage that is held from each sample to the next, (n_samples,)."""
        if self.applied is not None:
            return self.applied
        carried = gravity_torque(robot, self.joints(robot), values)[:, self.motor] / gain
        carried[:-1] = 0.5 * (carried[:-1] + carried[1:])
        return np.where(self.time >= self.step - 1e-9, self.voltage + carried, carried)


def driven_positions(robot: Robot, q: Array) -> Array:
    """Positions of the motors, referred to the joint side, (n_samples, n_moving)."""
    moving = list(robot.moving)
    return np.asarray((q - robot.zero[moving]) @ robot.moving_coupling.T)


def record_from_log(log: Log, robot: Robot, motors: Motors, values: str | None = None) -> StepRecord:
    """The step test in a log with time, positions and motor voltages.

    The motor that moves most was the driven one; its voltage is what is constant up to the end of the log, without what
    carries the weight that the robot's values tell.

    Raises:
        ExperimentError: When another joint moved, or the voltage is not a step.
    """
    q = joint_positions(log, robot)
    places = driven_positions(robot, q)
    moved = np.abs(places - places[0]).max(axis=0)
    motor = int(np.argmax(moved))
    for other in np.flatnonzero(moved > StepOptions.still):
        if other != motor:
            raise ExperimentError(
                f"{log.source}: joint {robot.joint_names[other]} moved by {moved[other]:.2g} while "
                f"{robot.joint_names[motor]} was tested; expected at most {StepOptions.still} rad or m: lock it"
            )
    name = channel_names("u", robot)[motor]
    if name not in log.channels:
        raise LogError(log.source, f"has no column {name}, the voltage of the motor that moves")
    voltage = log.channels[name]
    gain = motors.for_joints(robot.joint_names).gain[motor]
    carried = gravity_torque(robot, q, values)[:, motor] / gain
    carried[1:] = 0.5 * (carried[1:] + carried[:-1])  # a voltage in a row acted since the row before
    level, first = _plateau(voltage - carried, log.source)
    step = float(log.time[max(first - 1, 0)])
    applied, velocities = np.append(voltage[1:], voltage[-1]), joint_velocities(log, robot)
    return StepRecord(
        log.label, motor, q[0], level, step, log.time, places[:, motor], "from a log", q, applied, velocities
    )


def _plateau(voltage: Array, source: str) -> tuple[float, int]:
    """The voltage at the end of a log, and the sample from which it was constant."""
    level = float(np.median(voltage[len(voltage) // 2 :]))
    off = np.abs(voltage - level) > STEP.steady_voltage_share * abs(level)
    first = int(np.flatnonzero(off)[-1]) + 1 if off.any() else 0
    if level == 0.0 or first > len(voltage) // 2:
        raise ExperimentError(
            f"{source}: the voltage is not a step: expected one level, constant to "
            f"{100 * STEP.steady_voltage_share:.0f} %, from its jump to the end of the log (cut the log with --window)"
        )
    return float(np.mean(voltage[first:])), first


def configurations(robot: Robot, records: Sequence[StepRecord]) -> list[list[StepRecord]]:
    """Records of the same motor with the others locked at the same place, tip first; each with all its voltages."""
    groups: list[list[StepRecord]] = []
    for one in sorted(records, key=lambda step: -step.motor):
        along = np.abs(directions(robot)[one.motor]) > 0.0
        for group in groups:
            apart = np.where(along, 0.0, np.abs(group[0].pose - one.pose))
            if group[0].motor == one.motor and apart.max() <= STEP.same_pose:
                group.append(one)
                break
        else:
            groups.append([one])
    return groups
