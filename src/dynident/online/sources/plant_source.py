"""A simulated machine as a stream: it follows a motion, reading by reading."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.evaluate import inverse_dynamics
from dynident.dynamics.terms import with_springs
from dynident.errors import InputError
from dynident.online.sources.replay import check_pace, paced_blocks
from dynident.online.sources.source import Samples, Source
from dynident.online.state import Counters
from dynident.payload.body import Payload
from dynident.plant.controllers import Feedforward, Motion, TrackingController
from dynident.plant.mujoco_plant import MujocoPlant
from dynident.plant.protocol import Plant
from dynident.plant.sensors import Sensors
from dynident.robot.model import Robot

_TOGETHER = 50  # readings handed on together
_ENCODER = 2.0 * math.pi / 2**17  # [rad] or [m] one count
_HIGHEST_RATE = 1e5  # [Hz] no drive is sampled faster, and each reading is computed
_SMOOTH = ("rigid", "Ia", "Fv", "Fc(0.05)", "Fo")


class PlantSource(Source):
    """A plant under a controller that follows a motion.

    Args:
        plant: The machine: simulated_source, or a real one behind the same protocol.
        controller: What commands it.
        every: Hand on every so many readings.
        pace: 1 in real time, infinity as fast as the plant can be computed.
    """

    def __init__(self, plant: Plant, controller: TrackingController, *, every: int = 1, pace: float = math.inf) -> None:
        if every < 1:
            raise InputError(f"every is {every}; expected 1 or more")
        self.pace, self.tally = check_pace(pace), Counters()
        self._until = -math.inf
        self.plant, self.controller, self.every = plant, controller, every
        self.label = f"plant of {plant.robot.name}"

    def blocks(self) -> Iterator[Samples | None]:
        """All samples, each at its time."""
        return paced_blocks(self._samples(), self.pace, self.tally)

    def skip(self, until: float) -> None:
        """Leave out samples with stamps up to this [s], which an earlier run has seen."""
        self._until = until

    def _samples(self) -> Iterator[Samples]:
        plant, controller = self.plant, self.controller
        plant.reset(*controller.start_state())
        controller.start(plant.sample_time)
        kept: list[tuple[float, Array, Array, Array]] = []
        count = round(controller.motion.duration / plant.sample_time)
        for k in range(count + 1):
            reading = plant.read()
            if k and k % self.every == 0 and reading.time > self._until:
                kept.append((reading.time, reading.q, reading.tau, reading.dq))
            if k < count:
                plant.apply_torque(controller.command(plant.time, reading))
                plant.step()
            if len(kept) == _TOGETHER or (kept and k == count):
                # A controller has measured velocities only where it has such sensors; positions are always there.
                yield Samples(*(np.array([one[i] for one in kept]) for i in range(3)))
                kept = []


def simulated_source(
    robot: Robot,
    motion: Motion,
    *,
    values: str | Mapping[str, float] | None = None,
    rate: float = 500.0,
    relative_noise: float = 0.01,
    payload: Payload | None = None,
    payload_at: float = 0.0,
    seed: int = 0,
    pace: float = math.inf,
) -> PlantSource:
    """The MuJoCo plant of a robot that follows a motion.

    Args:
        robot: The robot; its controller knows its own values, the machine has `values`.
        motion: What to follow, for the robot's moving joints.
        values: What the machine really is; None for the robot's own.
        rate: Samples per second [Hz]; the controller runs at 1 kHz at least.
        relative_noise: Standard deviation of the torque noise, as a share of each joint's effective (RMS) torque in the
            motion.
        payload: Body on the tool.
        payload_at: Time at which it is attached [s].
        seed: Of the noise.
        pace: 1 in real time, infinity as fast as possible.
    """
    for name, value in (("rate", rate), ("relative_noise", relative_noise), ("payload_at", payload_at)):
        if not (math.isfinite(value) and value >= 0.0) or (name == "rate" and value == 0.0):
            raise InputError(f"{name} is {value}; expected a positive number")
    if rate > _HIGHEST_RATE:
        raise InputError(f"rate is {rate:g} Hz; expected at most {_HIGHEST_RATE:g} Hz")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed is {seed}; expected a whole number, zero or more")
    width = np.asarray(motion.sample(np.zeros(1))[0]).shape[1]
    if width != len(robot.joint_names):
        raise InputError(f"the motion is for {width} joints; robot {robot.name} moves {', '.join(robot.joint_names)}")
    every = max(1, math.ceil(1000.0 / rate - 1e-9))
    q, dq, ddq = motion.sample(np.linspace(0.0, motion.duration, 200))
    effective = np.sqrt(np.mean(inverse_dynamics(robot, q, dq, ddq, with_springs(_SMOOTH, robot), values) ** 2, axis=0))
    sensors = Sensors(resolution=np.full(len(effective), _ENCODER), torque_noise=relative_noise * effective)
    plant = MujocoPlant(
        robot,
        values,
        sample_time=1.0 / (every * rate),
        sensors=sensors,
        payload=payload,
        payload_at=payload_at,
        seed=seed,
    )
    return PlantSource(plant, Feedforward(robot, motion, tuned_to=values), every=every, pace=pace)
