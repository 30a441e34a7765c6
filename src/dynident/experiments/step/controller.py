"""The controller of a step test: one motor gets a step of voltage, the others are held where they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, frozen
from dynident.dynamics.evaluate import gravity_torque, mass_matrix
from dynident.errors import InputError
from dynident.experiments.step.poses import directions, motor_friction, motor_inertia, random_poses, ranges, start_place
from dynident.experiments.step.response import displacement
from dynident.plant.controllers import Quantity
from dynident.plant.drives import Motors
from dynident.plant.protocol import Reading
from dynident.robot.model import Robot

_RATE = 0.5  # bandwidth of the hold times the sample time, unless given
_FASTEST = 250.0  # [rad/s] of the hold, unless given
_INTEGRAL = 0.1  # of the bandwidth at which the hold takes up what is constant
_TABLE = 4001  # places at which the weight along the motion is worked out
_REACH = 7.0  # [rad or m] to either side of the start


class StepController:
    """Voltages of a step test.

    Args:
        robot: The robot.
        motors: Its motors.
        motor: The one that gets the step, as a place in `robot.joint_names`.
        pose: (n_moving,) where the test starts and the others are held [rad or m].
        voltage: Of the step [V].
        settle: Time before the step [s], in which all motors are held.
        balance: Add the voltage that carries the robot's weight along the motion of the tested motor.
        bandwidth: Of the hold [rad/s]; None for what the sample time allows.
        values: What the controller knows of the robot: inertia for the hold, and weight.
        feedforward: Instead of the step, voltages of some motors: their places, and (n_samples, n_moving) voltages, one
            row for each sample.
    """

    quantity: Quantity = "voltage"

    def __init__(
        self,
        robot: Robot,
        motors: Motors,
        motor: int,
        pose: ArrayLike,
        voltage: float,
        *,
        settle: float = 0.0,
        balance: bool = False,
        bandwidth: float | None = None,
        values: str | None = None,
        feedforward: tuple[Sequence[int], Array] | None = None,
    ) -> None:
        own = motors.for_joints(robot.joint_names)
        self.robot, self.motor, self.pose = robot, motor, frozen(pose)
        self.voltage, self.settle, self.balance = voltage, settle, balance
        self.bandwidth, self.values, self.feedforward = bandwidth, values, feedforward
        self._gain = own.gain
        self._emf = np.asarray(own.back_emf)
        moving = list(robot.moving)
        self._coupling, self._zero = robot.moving_coupling, robot.zero[moving]

    def start(self, sample_time: float) -> None:
        """Work out the stiffness of the hold and the weight along the motion."""
        self._sample_time = sample_time
        fast = min(_RATE / sample_time, _FASTEST) if self.bandwidth is None else self.bandwidth
        T = directions(self.robot)
        mass = T @ mass_matrix(self.robot, self.pose[None], self.values)[0] @ T.T
        if not (np.diagonal(mass) > 0.0).all():
            name = self.robot.joint_names[int(np.argmin(np.diagonal(mass)))]
            raise InputError(
                f"robot {self.robot.name}: no inertia is known for the hold of joint {name}; give the links "
                "masses (URDF <inertial>, or parameters: in the robot file), rough ones will do"
            )
        # What a motor feels with the others free: the diagonal itself would make light modes faster than the samples.
        inertia = 1.0 / np.diagonal(np.linalg.inv(mass))
        self._stiffness, self._damping = inertia * fast**2, 2.0 * inertia * fast
        self._integral = self._stiffness * _INTEGRAL * fast
        self._held: Array | None = None
        self._sum = np.zeros(len(self.pose))
        self.applied: list[float] = []  # voltage of the tested motor, one for each sample
        self._weight = gravity_torque(self.robot, self.pose[None], self.values)[0]
        if self.balance:
            self._places = np.linspace(-_REACH, _REACH, _TABLE)
            along = self.pose + self._places[:, None] * T[self.motor]
            self._carried = gravity_torque(self.robot, along, self.values)[:, self.motor]

    def command(self, time: float, reading: Reading) -> Array:
        """Voltages of all motors."""
        place = self._coupling @ (reading.q - self._zero)
        velocity = self._coupling @ reading.dq
        if self._held is None:
            self._held = place  # as encoders round it: an error that is none would wind up the integral
        error = self._held - place
        self._sum = self._sum + error * self._sample_time
        torque = self._weight + self._stiffness * error - self._damping * velocity + self._integral * self._sum
        voltage = torque / self._gain + self._emf * velocity
        if time >= self.settle - 1e-9:
            # It is held for a whole sample: the weight of its middle, for what comes late drives or brakes.
            ahead = 0.5 * self._sample_time * velocity[self.motor]
            voltage[self.motor] = self.voltage + self._carrying(ahead - error[self.motor])
        elif not self.balance:
            voltage[self.motor] = 0.0  # it stands by itself: do not stir it
        if self.feedforward is not None:
            driven, rows = list(self.feedforward[0]), self.feedforward[1]
            voltage[driven] = rows[min(round(time / self._sample_time), len(rows) - 1)][driven]
        self.applied.append(float(voltage[self.motor]))
        return np.asarray(voltage)

    def _carrying(self, moved: float) -> float:
        """Voltage that carries the weight so far from the start."""
        if not self.balance:
            return 0.0
        return float(np.interp(moved, self._places, self._carried)) / float(self._gain[self.motor])


# ----------------------------------------------------------------------------------------------------------------------
# Voltages for steps that nobody has chosen: from what is known of the robot.

FULL_VOLTAGE = 10.0  # [V] at which the motors of a robot without any give its effort limits
_TRAVEL = 0.8  # share of the room before a joint that the stronger step uses
_FARTHEST = 2.0  # [rad or m] of it, at most
_VELOCITY = 0.8  # share of the velocity limit that it reaches
_WEAKER = 0.45  # acceleration of the weaker step over that of the stronger
_DECIMALS = 3  # significant ones of a voltage


def default_motors(robot: Robot) -> Motors:
    """Motors that give the robot's effort limits at 10 V, for a simulated machine without electrical data."""
    efforts = [joint.limits.effort for joint in robot.moving_joints]
    missing = [name for name, effort in zip(robot.joint_names, efforts, strict=True) if not effort]
    if missing:
        raise InputError(
            f"robot {robot.name} has no effort limit for {', '.join(missing)}, so its motors cannot be guessed; give "
            "the torque gain (--gain), or torque constant and resistance (--kt, --ra, --motors)"
        )
    gains = np.array([float(effort or 0.0) for effort in efforts]) / FULL_VOLTAGE
    return Motors(gains, 1.0, voltage_limit=FULL_VOLTAGE)


def suggest_voltages(
    robot: Robot, motors: Motors, motor: int, duration: float, values: str | None = None
) -> tuple[float, float]:
    """Two voltages whose steps use most of a joint's range in a time [s], evaluated by the robot's own values."""
    own = motors.for_joints(robot.joint_names)
    gain = float(own.gain[motor])
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
    limit = robot.moving_joints[motor].limits.velocity
    if limit is not None:
        velocity = duration if rate == 0.0 else -np.expm1(-rate * duration) / rate
        strong = min(strong, _VELOCITY * limit / velocity)
    steps = [(inertia * U + dry) / gain for U in (strong, _WEAKER * strong)]
    most = float(np.asarray(own.voltage_limit)[motor])
    if abs(steps[0]) > most:
        steps = [x * most / abs(steps[0]) for x in steps]
    first, second = (float(f"{x:.{_DECIMALS - 1}e}") for x in steps)
    return first, second
