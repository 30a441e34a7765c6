"""The MuJoCo plant: physics that we did not write, with drives, friction and sensors as machines have them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, as_samples
from dynident.errors import InputError
from dynident.payload.body import Payload
from dynident.plant.compiled_model import MujocoModel, import_mujoco, mujoco_model
from dynident.plant.drives import MotorDrive, Motors, TorqueDrive, VoltageDrive
from dynident.plant.effect_physics import Effects
from dynident.plant.effects import Breakaway
from dynident.plant.mjcf_writer import ModelOptions, check_motors, motor_places
from dynident.plant.protocol import Reading, UnstableError
from dynident.plant.sensors import Sensors, Truth, between_motions, noise_rows
from dynident.plant.time_step import LONGEST_STEP, damped_step
from dynident.plant.warming import Warming
from dynident.robot.model import Robot
from dynident.robot.placeholders import believed_efforts

if TYPE_CHECKING:
    import mujoco

FASTEST = 1e3  # [rad/s or m/s] beyond which a simulation has run away
_SLIDING = 1e-3  # [rad/s or m/s] smoothing of friction that MuJoCo cannot carry


class MujocoPlant:
    """A robot in MuJoCo as a `Plant`.

    Args:
        robot: The robot.
        values: What the machine really is: a parameter set of the robot, given values, or None for the robot's own.
        sample_time: Time between commands [s].
        step: Time step of the physics [s]; a sample has a whole number of them. Default at most 0.5 ms, and what stiff
            effects and viscous friction on light links need.
        motors: Electrical model, needed for voltages.
        breakaway: Static friction above kinetic; None for plain Coulomb friction.
        effects: Further friction, tilt and joint offsets by parameter name, such as ``{"stop0.3_1": 4.0}``.
        sensors: Faults of the sensors.
        warming: How the joints warm up and lose viscous friction; logs then have temperatures. None for no change.
        payload: Body on the tool.
        payload_at: Time at which it is attached [s].
        torque_limits: (n_moving,) at the actuated coordinates; None for the robot's effort limits where it has some
            that are no placeholders.
        stops: Let the robot's position limits act as end stops.
        seed: Of the noise; `reset` starts it again, so a run repeats exactly.

    Attributes:
        loop_gap: Largest gap of a loop since the reset, in tree joint positions [rad or m].
        saturated: Joints whose torque or voltage was limited since the reset.

    Raises:
        UnknownNameError: For an effect that is none.
        UnstableError: When an effect or viscous friction is too stiff for the time steps.
    """

    def __init__(
        self,
        robot: Robot,
        values: str | Mapping[str, float] | None = None,
        *,
        sample_time: float = 1e-3,
        step: float | None = None,
        motors: Motors | None = None,
        breakaway: Breakaway | None = None,
        effects: Mapping[str, float] | None = None,
        sensors: Sensors | None = None,
        warming: Warming | None = None,
        payload: Payload | None = None,
        payload_at: float = 0.0,
        torque_limits: ArrayLike | None = None,
        stops: bool = False,
        seed: int = 0,
    ) -> None:
        check_motors(robot)
        self._mujoco = import_mujoco()
        self.robot, self.sample_time = robot, _positive(sample_time, "sample time")
        self.motors = None if motors is None else motors.for_joints(robot.joint_names)
        self.breakaway, self.sensors, self.seed = breakaway, sensors or Sensors(), seed
        self._effects, self.warming = Effects(robot, values, effects), warming
        more = (*self._effects.places, *(() if motors is None else motor_places(robot)))

        def made(step: float, body: Payload | None = None) -> MujocoModel:
            options = ModelOptions(step=step, stops=stops)
            model = mujoco_model(robot, values, options, payload=body, more_places=more)
            model.model.opt.gravity[:] = self._effects.gravity
            return model

        wanted = None if step is None else _positive(step, "step")
        self._bare = made(LONGEST_STEP)
        self._set_places()
        bearable = min(self._effects.longest_step(self._bare, wanted), damped_step(self._bare, self._braking(), wanted))
        self._parts = max(1, math.ceil(self.sample_time / bearable - 1e-9))
        self._step = self.sample_time / self._parts
        if self._step != LONGEST_STEP:
            self._bare = made(self._step)
        self._loaded = self._bare if payload is None else made(self._step, payload)
        self._payload_at = payload_at
        self._names = robot.joint_names
        self._limits = _torque_limits(robot, torque_limits)
        self._coupling = robot.moving_coupling
        gains = None if robot.drive.gains is None else robot.drive.gains[list(robot.moving)]
        self._gains = gains if self.motors is None else np.asarray(self.motors.torque_constant)
        self.reset(self._bare.home)

    # --- what experiments use ---------------------------------------------------------------------------------------

    @property
    def time(self) -> float:
        """Time since the reset [s]."""
        return (len(self._q) - 1) * self.sample_time

    def reset(
        self,
        q: ArrayLike,
        dq: ArrayLike | None = None,
        *,
        torque: ArrayLike | None = None,
        seed: int | None = None,
    ) -> None:
        """Start again at a position (n_moving,) and velocity (default: at rest), without payload unless it is due at 0.

        Args:
            q: Positions as encoders tell them [rad or m]; they differ from the true ones by effects `zero_1` ..
            dq: Velocities.
            torque: Torque at this moment, from which the first command goes on; without, that acts at once.
            seed: Another seed for the noise from now on.
        """
        names = self.robot.joint_names
        start = as_samples(q, "q", names, 1)[0] + self._effects.offset
        velocity = np.zeros(len(names)) if dq is None else as_samples(dq, "dq", names, 1)[0]
        self.seed = self.seed if seed is None else seed
        self._noise = noise_rows(self.seed, len(names))
        self._model: MujocoModel = self._bare
        self._viscous = self._cold
        self._data: mujoco.MjData = self._bare.new_data(start, velocity)
        self._drive: MotorDrive | None = None
        self._torque = np.zeros(len(names))
        if torque is not None:
            self._torque = self._command(torque, "torque")
            self._drive = TorqueDrive(self._torque, self._torque)
        self._q, self._dq, self._tau = [start], [velocity], [self._torque]
        self._brake(np.zeros(len(names)))
        self._attach()
        if self._effects.acts:
            self._model.set_friction_loss(np.where(self._inside, self._coulomb, 0.0))  # not that of a run before
            self._effects.start(self._model, self._data)
        self.loop_gap, self.saturated, self._braked = 0.0, frozenset[str](), False

    def apply_torque(self, tau: ArrayLike) -> None:
        """Torque to be reached at the next sample, (n_moving,); the first command acts at once."""
        wanted = self._command(tau, "tau")
        command = np.clip(wanted, -self._limits, self._limits)
        if not np.array_equal(command, wanted):
            self.saturated |= {self._names[i] for i in np.flatnonzero(command != wanted)}
        if not isinstance(self._drive, TorqueDrive):
            self._brake(np.zeros(len(command)))
        self._drive = TorqueDrive(command if self._drive is None else self._torque, command)

    def apply_voltage(self, voltage: ArrayLike) -> None:
        """Voltages to be held until the next sample, (n_moving,)."""
        if self.motors is None:
            raise InputError("this plant has no electrical model; give it `motors`")
        current = self._torque / self.motors.torque_constant
        wanted = self._command(voltage, "voltage")
        drive = VoltageDrive(self.motors, wanted, current)
        if not np.array_equal(drive.voltage, wanted):
            self.saturated |= {self._names[i] for i in np.flatnonzero(drive.voltage != wanted)}
        if not isinstance(self._drive, VoltageDrive):
            self._brake(drive.braking)
        self._drive = drive

    def step(self) -> None:
        """Go on by one sample time under the last command (none yet: no torque).

        Raises:
            UnstableError: When a joint runs away, naming it and the time.
        """
        if self._braked:
            raise InputError("the plant was stopped; reset it to start again")
        if self._drive is None:
            self._drive = TorqueDrive(self._torque, self._torque)
        if self.warming is not None:
            self._viscous = self._cold * (self._joint_shares @ self.warming.factors(self.time, len(self._names)))
            self._brake(self._drive.braking if isinstance(self._drive, VoltageDrive) else np.zeros(len(self._names)))
        drive, data, moving, own = self._drive, self._data, self._model.moving, self._model.carriers
        if len(self._q) == 1:  # before the first command nobody knew the torque
            self._tau[0] = drive.before if isinstance(drive, TorqueDrive) else drive.now(self._coupling @ self._dq[0])
        for part in range(self._parts):
            at = (part + 0.5) / self._parts
            if isinstance(drive, TorqueDrive):
                torque = drive.at(at)
            else:
                actuated, acceleration = self._coupling @ data.qvel[moving], self._coupling @ data.qacc[moving]
                torque = drive.during(at, self._step, actuated, acceleration)
            if self._effects.acts:
                self._effects.step(self._model, data, torque @ self._coupling - self._offset, self._dry)
            else:
                # Where MuJoCo carries all friction nothing is left to ask for, and a run has 100 000 steps.
                dry = 0.0 if self._carried else self._dry(data.qvel[own])
                data.qfrc_applied[own] = -self._offset - dry
                data.qfrc_applied[moving] += torque @ self._coupling
                self._mujoco.mj_step(self._model.model, data)
            if not float(data.qvel @ data.qvel) < FASTEST**2:
                self._stop(data, part)
        q, dq = data.qpos[moving], data.qvel[moving]
        self._torque = drive.now(self._coupling @ dq)
        self._q.append(q)
        self._dq.append(dq)
        self._tau.append(self._torque)
        if len(moving) < len(data.qpos):
            self.loop_gap = max(self.loop_gap, self._model.loop_gap(data))
        self._attach()

    def read(self) -> Reading:
        """What the sensors say now; each call draws new noise."""
        normal, uniform = next(self._noise)
        time, q, dq, tau = self.time, self._q[-1], self._dq[-1], self._tau[-1]
        if not self.sensors.in_step and len(self._q) > 1:
            time = max(0.0, time - self.sensors.jitter * uniform)
            k, part = self._between(time)
            ends = (self._q[k], self._q[k + 1], self._dq[k], self._dq[k + 1])
            q, dq = between_motions(*ends, part, self.sample_time)
            k, part = self._between(max(0.0, time - self.sensors.delay))
            tau = self._tau[k] + part * (self._tau[k + 1] - self._tau[k])
        q, dq, tau = self.sensors.measured(self.robot, q - self._effects.offset, dq, tau, normal)
        voltage = self._drive.voltage if isinstance(self._drive, VoltageDrive) else None
        current = None if self._gains is None else tau / self._gains
        return Reading(time, q, dq, tau, current, voltage)

    def stop(self) -> None:
        """Brakes hold it from now on; only `reset` releases them."""
        self._braked = True

    # --- what only a simulation knows ----------------------------------------------------------------------------

    def truth(self) -> Truth:
        """The true signals since the reset."""
        stamps = self.sample_time * np.arange(len(self._q), dtype=np.float64)
        return Truth(stamps, np.array(self._q), np.array(self._dq), np.array(self._tau))

    @property
    def motion(self) -> tuple[Array, Array]:
        """True joint positions and velocities now, (n_moving,) each [rad or m, rad/s or m/s]."""
        return self._q[-1], self._dq[-1]

    @property
    def position_offset(self) -> Array:
        """True joint positions minus what encoders say, (n_moving,) [rad or m]."""
        return self._effects.offset

    @property
    def current_gains(self) -> Array | None:
        """Torque at the actuated coordinates per current [N·m/A], from the motors or the robot's drive gains."""
        return self._gains

    # --- inside -----------------------------------------------------------------------------------------------------

    def _set_places(self) -> None:
        places = self._bare.places
        n = len(self._bare.carriers)
        self._directions = np.array([place.direction for place in places]).reshape(-1, n)
        self._pushes = np.array([place.push for place in places]).reshape(-1, n)
        self._viscous = self._cold = np.array([place.viscous for place in places])
        # An element of several joints is as warm as they are on average.
        parts = np.abs(self._directions)
        self._joint_shares = parts / np.maximum(parts.sum(1, keepdims=True), 1e-300)
        self._coulomb = np.array([place.coulomb for place in places])
        self._spread = self._effects.spread([place.label for place in places])
        self._inside = np.array([place.is_inside for place in places], dtype=bool)
        self._parallel = np.array([place.share is not None for place in places], dtype=bool)
        self._carried = self.breakaway is None and bool(self._inside.all())
        self._offset = np.array([place.offset for place in places]) @ self._pushes if places else np.zeros(n)

    def _braking(self, braking: Array | None = None) -> Array:
        """Viscous friction of the places, (n_places,), with back-EMF on the motors' own; default all there can be."""
        viscous = self._viscous.copy()
        if self.motors is not None:
            most = self.motors.braking if braking is None else braking
            viscous[-len(most) :] += most
        return viscous

    def _brake(self, braking: Array) -> None:
        viscous = self._braking(braking)
        for model in {id(m): m for m in (self._bare, self._loaded)}.values():
            model.set_damping(viscous)

    def _dry(self, velocity: Array, more: Array | None = None) -> Array:
        """Let MuJoCo know the friction at this velocity; returns, at the joints, the friction that it cannot carry.

        Args:
            velocity: (n_moving,).
            more: Dry friction that effects add at this moment, (n_own,); None without such.
        """
        changing = self.breakaway is not None or more is not None
        if not changing and self._inside.all():
            return np.zeros(len(velocity))
        own = self._directions @ velocity
        limit = self._coulomb if self.breakaway is None else self.breakaway.limit(self._coulomb, own)
        if more is not None:
            limit = limit + self._spread @ more
        if changing:
            self._model.set_friction_loss(np.where(self._inside, limit, 0.0))
        outside = np.where(self._inside, 0.0, limit * np.tanh(own / _SLIDING))
        outside += np.where(self._parallel, 0.0, self._viscous * own)
        return np.asarray(outside @ self._pushes)

    def _attach(self) -> None:
        """Change to the model with the payload when it is time, in the same state."""
        if self._model is self._loaded or self.time < self._payload_at - 1e-9:
            return
        data = self._mujoco.MjData(self._loaded.model)
        data.time = self._data.time
        for name in ("qpos", "qvel", "qacc", "qacc_warmstart"):
            getattr(data, name)[:] = getattr(self._data, name)
        self._model, self._data = self._loaded, data

    def _between(self, time: float) -> tuple[int, float]:
        """The sample before a time, and the part of the way to the next."""
        place = time / self.sample_time
        before = min(int(place), len(self._q) - 2)
        return before, place - before

    def _command(self, values: ArrayLike, name: str) -> Array:
        command: Array = np.asarray(values, dtype=np.float64)
        if command.shape != (len(self._names),) or not np.isfinite(command).all():
            command = np.asarray(as_samples(values, name, self._names, 1)[0])  # which says what is wrong
        return command

    def _stop(self, data: mujoco.MjData, part: int) -> None:
        velocities = np.abs(np.where(np.isfinite(data.qvel), data.qvel, np.inf))[self._model.dofs]
        fastest = int(np.argmax(velocities))
        name = self.robot.joints[self._model.joints[fastest]].name
        time = self.time + (part + 1) * self._step
        raise UnstableError(
            time,
            name,
            f"the simulation became unstable at t = {time:.4g} s: joint {name} moves at {velocities[fastest]:.3g} "
            "rad/s or m/s; lower the controller's bandwidth, shorten the time step, or check the robot's inertias",
        )


def _positive(value: float, name: str) -> float:
    if not (value > 0.0 and math.isfinite(value)):
        raise InputError(f"{name} is {value} s; expected a positive time")
    return value


def _torque_limits(robot: Robot, given: ArrayLike | None) -> Array:
    if given is None:
        return believed_efforts(robot)
    limits = np.broadcast_to(np.asarray(given, dtype=np.float64), len(robot.moving))
    if not np.all(limits > 0.0):
        raise InputError("torque limits must be positive; leave them out for the robot's own")
    return np.array(limits)
