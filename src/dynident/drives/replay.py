"""Replay: the simulated robot under the logged commands, or under the measured torque.

Closed loop: each joint has the controller of the real one, tau = kp (target - q) - kd dq + tau_ff, with the same delay
of the commands and the same limits, from the first sample to the last; nothing ties the simulated positions to the
measured ones but where they begin. Torque-driven: without a controller, positions run away by themselves, so that the
simulation begins again at the measured motion after every horizon.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import SubElement, indent, tostring

import numpy as np

from dynident.arrays import Array, record
from dynident.drives.thresholds import THRESHOLDS
from dynident.dynamics.evaluate import joint_torque
from dynident.errors import InputError
from dynident.logs.log import Log, LogSource, joint_positions, position_gains, row_torques, torque_kind
from dynident.plant.compiled_model import import_mujoco
from dynident.plant.mjcf_writer import ModelOptions, mujoco_tree
from dynident.robot.model import Robot

STEP = 5e-4  # [s] of the simulation
_GAP_STEPS = 10.0  # typical steps of a log without a sample, after which the replay begins again
_FIRST = 0.03  # [s] of measured positions that say where and how fast the robot begins
_MOST_STATES = 4e6  # numbers of simulated states that are kept at a time


@record
class Commands:
    """What a stretch of a log commanded, and what the joints did.

    Attributes:
        label: Name of the log.
        time: (n_samples,) stamps, from zero [s].
        targets: (n_samples, n_joints) position commands [rad or m], each held until the next one.
        feedforward: (n_samples, n_joints) torque beside them, or all torque where there is no controller [N·m or N].
        positions: (n_samples, n_joints) measured positions [rad or m].
        kp: (n_joints,) position gains; zero where there is no controller.
        kd: (n_joints,) velocity gains.
        velocities: (n_joints,) at the first sample [rad/s or m/s]; None for those of the first positions.
    """

    label: str
    time: Array
    targets: Array
    feedforward: Array
    positions: Array
    kp: Array
    kd: Array
    velocities: Array | None = None


@record
class DriveValues:
    """A simulated robot: what differs between candidates.

    Attributes:
        parameters: Standard parameters by name.
        bias: (n_joints,) what is added to measured positions to get the true ones [rad or m].
        delay: By which commands reach the joints late [s].
        gains: (n_joints,) factors of the controllers' gains; None for one.
        offset: (n_joints,) torque that logs show too much [N·m or N]; None for none.
    """

    parameters: Mapping[str, float]
    bias: Array
    delay: float
    gains: Array | None = None
    offset: Array | None = None


@dataclass(frozen=True)
class ReplayErrors:
    """How far simulated positions are from measured ones, by joint.

    Attributes:
        rms: (n_joints,) root mean square [rad or m].
        mad: (n_joints,) mean absolute error [rad or m].
    """

    rms: Array
    mad: Array

    @property
    def total(self) -> float:
        """Root mean square over all joints."""
        return float(np.sqrt(np.mean(self.rms**2)))


def commands_of(log: LogSource, robot: Robot, horizon: float | None = None) -> list[Commands]:
    """The stretches of a log without gaps: those with position commands, or pieces of one horizon of measured torque.

    Args:
        log: The log.
        robot: The robot, with the gains of its controllers.
        horizon: Time after which a torque-driven replay begins again [s]; default that of the thresholds.

    Raises:
        LogError: When the log has neither torque nor commands for every joint, or no gains are known.
    """
    blocks = list(log.blocks())
    torque_driven = torque_kind(blocks[0], robot) != "target"
    if torque_driven:
        kp = kd = np.zeros(len(robot.moving))
    else:
        kp, kd = position_gains(blocks[0], robot)
    parts = [_signals(block, robot, torque_driven) for block in blocks]
    time, targets, feedforward, positions = (np.concatenate(own) for own in zip(*parts, strict=True))
    steps = np.diff(time)
    gaps = np.flatnonzero(steps > _GAP_STEPS * float(np.median(steps))) + 1
    found = []
    for own in np.split(np.arange(len(time)), gaps):
        if len(own) > 1:
            stretch = targets[own], feedforward[own], positions[own]
            found.append(Commands(log.label, time[own] - time[own[0]], *stretch, kp, kd))
    if torque_driven:
        return [piece for one in found for piece in _pieces(one, horizon or THRESHOLDS.horizon)]
    return found


def _pieces(stretch: Commands, horizon: float) -> list[Commands]:
    """A stretch cut into pieces of one horizon, each with the velocities that it begins with."""
    starts = np.searchsorted(stretch.time, np.arange(0.0, stretch.time[-1], horizon))
    ends = [*starts[1:], len(stretch.time)]
    found = []
    for start, end in zip(starts.tolist(), ends, strict=True):
        if end - start < 2:
            continue
        own = slice(start, min(end + 1, len(stretch.time)))  # pieces share a sample: where one ends, the next begins
        near = slice(max(0, start - 3), start + 4)
        around = stretch.time[near] - stretch.time[start]
        fitted = np.linalg.lstsq(np.vander(around, min(3, len(around))), stretch.positions[near])[0]
        parts = stretch.targets[own], stretch.feedforward[own], stretch.positions[own]
        time = stretch.time[own] - stretch.time[start]
        found.append(Commands(stretch.label, time, *parts, stretch.kp, stretch.kd, fitted[-2]))
    return found


def _signals(block: Log, robot: Robot, torque_driven: bool) -> tuple[Array, Array, Array, Array]:
    positions = joint_positions(block, robot)
    if torque_driven:
        return block.time, np.zeros_like(positions), joint_torque(robot, row_torques(block, robot)), positions
    targets = block.array("target", robot)
    feedforward = block.array("tau_ff", robot) if block.has("tau_ff", robot) else np.zeros_like(targets)
    return block.time, targets, feedforward, positions


def replay_xml(robot: Robot, parameters: Mapping[str, float], kp: Array, kd: Array, step: float = STEP) -> str:
    """MJCF of a robot whose joints are driven by position controllers, or by torque where kp is zero."""
    root = mujoco_tree(robot, parameters, ModelOptions(step=step, integrator="implicitfast"))
    actuators = SubElement(root, "actuator")
    for name, position_gain, velocity_gain in zip(robot.joint_names, kp.tolist(), kd.tolist(), strict=True):
        # Commands stand for position; what a motor gives beside them is a position further by torque / kp. Where there
        # is no controller, they stand for torque.
        bias = f"0 {-position_gain!r} {-velocity_gain!r}"
        drive = SubElement(actuators, "general", name=name, joint=name, biastype="affine")
        drive.attrib.update(gainprm=repr(position_gain or 1.0), biasprm=bias)
    indent(root)
    return tostring(root, encoding="unicode")


class ClosedLoopReplay:
    """Replays of stretches of logs with candidates of a robot.

    Args:
        robot: The robot.
        commands: The stretches.
        step: Time step of the simulation [s].
    """

    def __init__(self, robot: Robot, commands: Sequence[Commands], step: float = STEP) -> None:
        if not commands:
            raise InputError("there is no stretch of commands to replay")
        self.robot, self.commands, self.step = robot, tuple(commands), step

    def positions(self, candidates: Sequence[DriveValues]) -> list[Array]:
        """Simulated positions as the log would have them, of each stretch (n_candidates, n_samples, n_joints).

        A simulation that runs away has positions that are not finite from then on.
        """
        found: list[Array | None] = [None] * len(self.commands)
        for own in self._alike():
            courses = self._simulate([self.commands[k] for k in own], candidates)
            for k, course in zip(own, courses, strict=True):
                found[k] = course
        return [course for course in found if course is not None]

    def _alike(self) -> list[list[int]]:
        """Stretches that are simulated together: those with the same gains and as many steps."""
        groups: dict[tuple[bytes, bytes, int], list[int]] = {}
        for k, one in enumerate(self.commands):
            groups.setdefault((one.kp.tobytes(), one.kd.tobytes(), self._n_steps(one)), []).append(k)
        return list(groups.values())

    def _n_steps(self, commands: Commands) -> int:
        return max(1, int(np.ceil(commands.time[-1] / self.step - 1e-9)))

    def errors(self, candidates: Sequence[DriveValues]) -> list[ReplayErrors]:
        """Errors of each candidate over all stretches."""
        return errors_of(self.commands, self.positions(candidates))

    def _simulate(self, stretches: Sequence[Commands], candidates: Sequence[DriveValues]) -> list[Array]:
        """Positions of stretches with the same gains and number of steps, (n_candidates, n_samples, n_joints) each."""
        mujoco = import_mujoco()
        from mujoco import rollout

        models = [self._model(stretches[0], one) for one in candidates]
        places = [int(models[0].joint(name).qposadr[0]) for name in self.robot.joint_names]
        dofs = [int(models[0].joint(name).dofadr[0]) for name in self.robot.joint_names]
        spec, n_steps = mujoco.mjtState.mjSTATE_FULLPHYSICS, self._n_steps(stretches[0])
        runs = [(stretch, model, one) for stretch in stretches for model, one in zip(models, candidates, strict=True)]
        state = np.zeros((len(runs), mujoco.mj_stateSize(models[0], spec)))
        for (stretch, model, one), own in zip(runs, state, strict=True):
            data = mujoco.MjData(model)
            begins, velocities = beginning_of(stretch)
            data.qpos[places], data.qvel[dofs] = begins + one.bias, velocities
            mujoco.mj_forward(model, data)
            mujoco.mj_getState(model, data, own, spec)
        n_threads = max(1, min(len(runs), len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1))
        data = [mujoco.MjData(models[0]) for _ in range(n_threads)]
        courses = [np.empty((len(candidates), len(one.time), len(places))) for one in stretches]
        each = max(1, int(_MOST_STATES / state.size))
        with rollout.Rollout(nthread=n_threads) as runner:
            for start in range(0, n_steps, each):  # states of long logs are not kept as a whole
                steps = range(start, min(start + each, n_steps))
                inputs = np.stack([commands_in_steps(stretch, one, steps, self.step) for stretch, _, one in runs])
                states = runner.rollout([model for _, model, _ in runs], data, state, inputs)[0]
                here = 1 + np.array(places)  # time stands first
                course = np.concatenate([state[:, None, here], states[:, :, here]], axis=1)
                state = states[:, -1].copy()
                for k, (stretch, _, _) in enumerate(runs):
                    into = courses[k // len(candidates)][k % len(candidates)]
                    _fill(into, course[k], stretch.time / self.step - start, steps.stop == n_steps)
        biases = np.array([one.bias for one in candidates])[:, None, :]
        return [course - biases for course in courses]

    def _model(self, commands: Commands, one: DriveValues) -> Any:
        scale = 1.0 if one.gains is None else one.gains
        text = replay_xml(self.robot, one.parameters, commands.kp * scale, commands.kd * scale, self.step)
        try:
            return import_mujoco().MjModel.from_xml_string(text)
        except ValueError as error:
            words = " ".join(str(error).split())
            raise InputError(f"robot {self.robot.name}: MuJoCo cannot make a model of it ({words})") from None


def errors_of(commands: Sequence[Commands], courses: Sequence[Array]) -> list[ReplayErrors]:
    """Errors of replays over all stretches, one for each candidate.

    Args:
        commands: The stretches.
        courses: (n_candidates, n_samples, n_joints) positions of each.
    """
    every = np.concatenate([x - one.positions for one, x in zip(commands, courses, strict=True)], axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        rms, mad = np.sqrt(np.mean(every**2, axis=1)), np.mean(np.abs(every), axis=1)
    limit = np.finfo(np.float64).max
    rms, mad = (np.nan_to_num(own, nan=limit) for own in (rms, mad))
    return [ReplayErrors(*own) for own in zip(rms, mad, strict=True)]


def commands_in_steps(commands: Commands, one: DriveValues, steps: range, step: float = STEP) -> Array:
    """(n_steps, n_joints) mean over each step of the commands as they reach the joints; at first the first one.

    They are positions, with what torque is given beside them as a position further, and torque where kp is zero.

    Args:
        commands: What was commanded.
        one: Whose delay, gains and offsets count.
        steps: Which steps of the simulation.
        step: Their length [s].
    """
    torque = commands.feedforward if one.offset is None else commands.feedforward - one.offset
    stiffness = commands.kp if one.gains is None else commands.kp * one.gains
    # The targets of a joint without a controller act on nothing.
    held = commands.targets * (commands.kp > 0.0) + torque / np.where(stiffness > 0.0, stiffness, 1.0)
    stamps = np.arange(steps.start, steps.stop + 1) * step - one.delay
    latest = np.clip(np.searchsorted(commands.time, stamps, side="right") - 1, 0, None)
    # What was commanded until a stamp: all samples that have ended, and the share of the latest.
    ended = np.concatenate([np.zeros((1, held.shape[1])), np.cumsum(held[:-1] * np.diff(commands.time)[:, None], 0)])
    until = ended[latest] + held[latest] * (stamps - commands.time[latest])[:, None]
    return np.asarray(np.diff(until, axis=0) / step)


def beginning_of(commands: Commands) -> tuple[Array, Array]:
    """(n_joints,) measured position and velocity at the first sample: a parabola through the first samples."""
    if commands.velocities is not None:
        return commands.positions[0], commands.velocities
    count = max(5, int(np.searchsorted(commands.time, _FIRST)))
    time, positions = commands.time[:count], commands.positions[:count]
    if len(time) < 3:
        return positions[0], np.zeros(positions.shape[1])
    fitted = np.linalg.lstsq(np.vander(time, 3), positions)[0]
    return fitted[2], fitted[1]


def _fill(into: Array, course: Array, places: Array, is_last: bool) -> None:
    """Positions at the stamps that lie within some steps of a simulation, between its steps.

    Args:
        into: (n_samples, n_joints), takes them.
        course: (n_steps + 1, n_joints) positions at the steps.
        places: (n_samples,) the stamps, in steps from the first of these.
        is_last: Whether what lies at the end belongs here, too.
    """
    n_steps = len(course) - 1
    own = np.flatnonzero((places >= 0.0) & ((places < n_steps) | is_last))
    before = np.minimum(places[own].astype(int), n_steps - 1)
    share = (places[own] - before)[:, None]
    into[own] = (1.0 - share) * course[before] + share * course[before + 1]
