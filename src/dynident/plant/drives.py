"""How commands become torque: a drive that takes torque, and a motor that takes voltage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, frozen
from dynident.display import brief
from dynident.errors import InputError
from dynident.robot.model import Robot

_FINITE = ("torque_constant", "resistance", "back_emf", "inductance")


@brief
@dataclass(frozen=True)
class Motors:
    """Direct-current motors, referred to the joint side: ``u = R i + L di/dt + Ke da``, ``tau = Kt i``.

    Every number is one per moving joint, or one for all.

    Attributes:
        torque_constant: Kt, torque at the actuated coordinate per current [N·m/A].
        resistance: R [Ohm].
        back_emf: Ke, voltage per velocity of the actuated coordinate [V·s/rad].
        inductance: L [H]; at 0 the current follows at once.
        voltage_limit: Largest voltage [V].
    """

    torque_constant: Array | float
    resistance: Array | float
    back_emf: Array | float = 0.0
    inductance: Array | float = 0.0
    voltage_limit: Array | float = np.inf

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            object.__setattr__(self, name, frozen(getattr(self, name)))
        if not np.all(np.isfinite([np.max(np.abs(getattr(self, name))) for name in _FINITE])):
            raise InputError(f"motors: {', '.join(_FINITE)} must be finite numbers")
        if not np.all(np.asarray(self.resistance) > 0.0) or not np.all(np.asarray(self.voltage_limit) > 0.0):
            raise InputError("motors: resistance and voltage limit must be positive")
        if not np.all(np.asarray(self.inductance) >= 0.0):
            raise InputError("motors: inductance must be zero or positive")
        if np.any(np.asarray(self.torque_constant) == 0.0):
            raise InputError("motors: the torque constant must not be zero")

    @staticmethod
    def at_shaft(
        robot: Robot,
        torque_constant: ArrayLike,
        resistance: ArrayLike,
        back_emf: ArrayLike | None = None,
        inductance: ArrayLike = 0.0,
        voltage_limit: ArrayLike = np.inf,
    ) -> Motors:
        """From numbers of a data sheet, at the motor shaft; in SI units Ke equals Kt unless given."""
        ratios = robot.drive.gear_ratios[list(robot.moving)]
        shaft = np.asarray(torque_constant if back_emf is None else back_emf, dtype=np.float64)
        constant = np.asarray(torque_constant, dtype=np.float64) * ratios
        return Motors(constant, frozen(resistance), shaft * ratios, frozen(inductance), frozen(voltage_limit))

    def for_joints(self, names: tuple[str, ...]) -> Motors:
        """The same with one number per joint."""
        try:
            spread = [np.broadcast_to(getattr(self, name), len(names)) for name in self.__dataclass_fields__]
        except ValueError:
            raise InputError(f"motors: expected one number per joint ({', '.join(names)}) or one for all") from None
        return Motors(*spread)

    @property
    def gain(self) -> Array:
        """Torque per voltage at rest, K = Kt / R [N·m/V]."""
        return np.asarray(self.torque_constant / self.resistance)

    @property
    def lag(self) -> Array:
        """Time by which the current is late, L / R [s]."""
        return np.asarray(self.inductance / self.resistance)

    @property
    def braking(self) -> Array:
        """Viscous friction that back-EMF amounts to without inductance, Kt Ke / R."""
        return np.asarray(self.torque_constant * self.back_emf / self.resistance)


class TorqueDrive:
    """A current loop that reaches each commanded torque, in a straight line, when the next command comes.

    So the torque is continuous in time, and what is measured with a position is the torque at that moment.
    """

    def __init__(self, before: Array, command: Array) -> None:
        self.before, self.command = before, command

    def at(self, part: float) -> Array:
        """The torque at a part of the sample, whatever the motion is."""
        return self.before + part * (self.command - self.before)

    def now(self, velocity: Array) -> Array:
        """The commanded torque: the sample is over."""
        return self.command


class VoltageDrive:
    """Motors under a held voltage.

    Without inductance the torque is Kt u / R, and the plant brakes by Kt Ke / R. With it the current is a state,
    followed exactly for the velocity in the middle of each time step.
    """

    def __init__(self, motors: Motors, voltage: Array, current: Array) -> None:
        self.motors = motors
        self.voltage = np.clip(voltage, -motors.voltage_limit, motors.voltage_limit)
        self._current = current
        self._slow = np.asarray(motors.inductance) > 0.0

    @property
    def braking(self) -> Array:
        """Viscous friction for the plant to add: back-EMF of the motors without inductance."""
        return np.where(self._slow, 0.0, self.motors.braking)

    def during(self, part: float, step: float, velocity: Array, acceleration: Array) -> Array:
        """Mean torque in the step, without what `braking` takes."""
        motors = self.motors
        stalled = self.voltage / motors.resistance
        if not self._slow.any():
            return np.asarray(motors.torque_constant * stalled)
        final = stalled - motors.back_emf * (velocity + 0.5 * step * acceleration) / motors.resistance
        steps = step * motors.resistance / np.where(self._slow, motors.inductance, 1.0)  # in time constants
        apart = self._current - final
        mean = final + apart * -np.expm1(-steps) / steps
        self._current = np.where(self._slow, final + apart * np.exp(-steps), self._current)
        return np.asarray(motors.torque_constant * np.where(self._slow, mean, stalled))

    def now(self, velocity: Array) -> Array:
        """Kt times the current."""
        motors = self.motors
        quick = (self.voltage - motors.back_emf * velocity) / motors.resistance
        return np.asarray(motors.torque_constant * np.where(self._slow, self._current, quick))


MotorDrive = TorqueDrive | VoltageDrive  # torque during a sample, and what is measured at its end
