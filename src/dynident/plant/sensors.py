"""What lies between the true state of a machine and the numbers in its log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array, frozen
from dynident.display import brief
from dynident.errors import InputError
from dynident.robot.model import Robot

_DRAWN_AT_ONCE = 1024  # readings for which noise is drawn in one go


@brief
@dataclass(frozen=True)
class Truth:
    """The true signals of a run at its regular samples, (n_samples, n_moving) each but `time` (n_samples,).

    Attributes:
        time: [s].
        q: Joint positions [rad or m].
        dq: Joint velocities.
        tau: Torque at the actuated coordinates [N·m or N].
    """

    time: Array
    q: Array
    dq: Array
    tau: Array

    def __post_init__(self) -> None:
        for name in ("time", "q", "dq", "tau"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def motion_at(self, stamps: Array) -> tuple[Array, Array]:
        """Position and velocity between samples, by the cubic through both."""
        if len(self.time) == 1:
            return self.q[[0] * len(stamps)], self.dq[[0] * len(stamps)]
        left, part, step = self._between(stamps)
        right = left + 1
        return between_motions(self.q[left], self.q[right], self.dq[left], self.dq[right], part[:, None], step)

    def torque_at(self, stamps: Array) -> Array:
        """Torque between samples, on straight lines; before the first sample it is that of the first."""
        if len(self.time) == 1:
            return self.tau[[0] * len(stamps)]
        left, part, _ = self._between(np.maximum(stamps, self.time[0]))
        return np.asarray(self.tau[left] + part[:, None] * (self.tau[left + 1] - self.tau[left]))

    def _between(self, stamps: Array) -> tuple[NDArray[np.intp], Array, float]:
        step = float(self.time[1] - self.time[0])
        places = (stamps - self.time[0]) / step
        left = np.clip(np.floor(places).astype(np.intp), 0, len(self.time) - 2)
        return left, places - left, step


def between_motions(
    q: Array, next_q: Array, dq: Array, next_dq: Array, part: Array | float, step: float
) -> tuple[Array, Array]:
    """Position and velocity at a part (0..1) of the time `step` [s] between two samples, by the cubic through both."""
    here, there, way = step * dq, step * next_dq, next_q - q
    second, third = 3.0 * way - 2.0 * here - there, here + there - 2.0 * way
    position = q + part * (here + part * (second + part * third))
    return position, (here + part * (2.0 * second + 3.0 * part * third)) / step


@brief
@dataclass(frozen=True)
class Sensors:
    """Faults of the sensors; numbers are one per moving joint, or one for all. The default is none.

    Attributes:
        resolution: Step of the encoders [rad or m]; 0 for none.
        encoder: Where they are: "joint", or "motor" with a resolution at the motor shaft.
        position_noise: Standard deviation of white noise on positions before they are rounded [rad or m].
        velocity_noise: Standard deviation of white noise on velocities.
        torque_noise: Standard deviation of white noise on torque [N·m or N].
        torque_bias: Constant error of the torque [N·m or N].
        delay: Time by which torque is stamped late against position [s].
        jitter: Readings are taken up to this much before their time, evenly spread; stamps say when [s].
    """

    resolution: Array | float = 0.0
    encoder: Literal["joint", "motor"] = "joint"
    position_noise: Array | float = 0.0
    velocity_noise: Array | float = 0.0
    torque_noise: Array | float = 0.0
    torque_bias: Array | float = 0.0
    delay: float = 0.0
    jitter: float = 0.0

    def __post_init__(self) -> None:
        for name in ("resolution", "position_noise", "velocity_noise", "torque_noise", "torque_bias"):
            values = frozen(getattr(self, name))
            if not np.all(np.isfinite(values)) or (name != "torque_bias" and np.any(values < 0.0)):
                raise InputError(f"sensors: {name} is {getattr(self, name)}; expected zero or positive numbers")
            object.__setattr__(self, name, values)
        for name in ("delay", "jitter"):
            if not (0.0 <= getattr(self, name) < np.inf):
                raise InputError(f"sensors: {name} is {getattr(self, name)} s; expected zero or a positive time")
        if self.encoder not in ("joint", "motor"):
            raise InputError(f"sensors: encoder is '{self.encoder}'; expected joint or motor")

    @property
    def in_step(self) -> bool:
        """Whether every reading is of its own sample."""
        return self.delay == 0.0 and self.jitter == 0.0

    def measured(self, robot: Robot, q: Array, dq: Array, tau: Array, normal: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and torque (..., n_moving) with noise from standard normal numbers (..., 3 n_moving)."""
        n = q.shape[-1]
        q = self._rounded(robot, q + self.position_noise * normal[..., :n])
        dq = dq + self.velocity_noise * normal[..., n : 2 * n]
        return q, dq, tau + self.torque_bias + self.torque_noise * normal[..., 2 * n :]

    def _rounded(self, robot: Robot, q: Array) -> Array:
        step = np.asarray(self.resolution)
        if not step.any():
            return q
        if self.encoder == "joint":
            return np.where(step > 0.0, np.round(q / np.where(step > 0.0, step, 1.0)) * step, q)
        moving = list(robot.moving)
        shaft = robot.drive.gear_ratios[moving, None] * robot.moving_coupling
        counted = (q - robot.zero[moving]) @ shaft.T
        counted = np.where(step > 0.0, np.round(counted / np.where(step > 0.0, step, 1.0)) * step, counted)
        return np.asarray(np.linalg.solve(shaft, counted.T).T + robot.zero[moving])


# ----------------------------------------------------------------------------------------------------------------------
# The random numbers of a run, reading by reading: the same seed gives the same run.

Generators = tuple[np.random.Generator, np.random.Generator]  # of normal and of uniform numbers


def noise_generators(seed: int) -> Generators:
    """Generators of normal and of uniform numbers, from any whole number."""
    normal, uniform = np.random.SeedSequence(seed).spawn(2)
    return np.random.default_rng(normal), np.random.default_rng(uniform)


def draw_noise(generators: Generators, count: int, n: int) -> tuple[Array, Array]:
    """For so many readings of n joints: standard normal numbers (count, 3 n), and (count,) numbers from 0 to 1."""
    return generators[0].standard_normal((count, 3 * n)), generators[1].random(count)


def noise_rows(seed: int, n: int) -> Iterator[tuple[Array, float]]:
    """Reading by reading, without end: standard normal numbers (3 n,) and a number from 0 to 1."""
    generators = noise_generators(seed)
    while True:
        normal, uniform = draw_noise(generators, _DRAWN_AT_ONCE, n)
        yield from zip(normal, uniform.tolist(), strict=True)
