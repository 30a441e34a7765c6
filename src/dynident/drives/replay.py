"""Closed-loop replay: the simulated robot under the logged commands, from the first sample to the last.

Each joint has the controller of the real one, tau = kp (target - q) - kd dq + tau_ff, with the same delay of the
commands and the same limits; nothing ties the simulated positions to the measured ones but where they begin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import SubElement, indent, tostring

import numpy as np

from dynident.arrays import Array, record
from dynident.errors import InputError
from dynident.logs.log import Log, LogSource, joint_positions, position_gains
from dynident.plant.compiled_model import import_mujoco
from dynident.plant.mjcf_writer import ModelOptions, mujoco_tree
from dynident.robot.model import Robot

STEP = 5e-4  # [s] of the simulation
_GAP_STEPS = 10.0  # typical steps of a log without a sample, after which the replay begins again
_FIRST = 0.03  # [s] of measured positions that say where and how fast the robot begins
_THREADS = 2


@record
class Commands:
    """What a stretch of a log commanded, and what the joints did.

    Attributes:
        label: Name of the log.
        time: (n_samples,) stamps, from zero [s].
        targets: (n_samples, n_joints) position commands [rad or m], each held until the next one.
        feedforward: (n_samples, n_joints) torque beside them [N·m or N].
        positions: (n_samples, n_joints) measured positions [rad or m].
        kp: (n_joints,) position gains.
        kd: (n_joints,) velocity gains.
    """

    label: str
    time: Array
    targets: Array
    feedforward: Array
    positions: Array
    kp: Array
    kd: Array


@record
class DriveValues:
    """A simulated robot: what differs between candidates.

    Attributes:
        parameters: Standard parameters by name.
        bias: (n_joints,) what is added to measured positions to get the true ones [rad or m].
        delay: By which commands reach the joints late [s].
    """

    parameters: Mapping[str, float]
    bias: Array
    delay: float


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


def commands_of(log: LogSource, robot: Robot) -> list[Commands]:
    """The stretches of a log without gaps.

    Raises:
        LogError: When the log has no commands for every joint, or no gains are known.
    """
    blocks = list(log.blocks())
    kp, kd = position_gains(blocks[0], robot)
    parts = [_signals(block, robot) for block in blocks]
    time, targets, feedforward, positions = (np.concatenate(own) for own in zip(*parts, strict=True))
    steps = np.diff(time)
    gaps = np.flatnonzero(steps > _GAP_STEPS * float(np.median(steps))) + 1
    found = []
    for own in np.split(np.arange(len(time)), gaps):
        if len(own) > 1:
            stretch = targets[own], feedforward[own], positions[own]
            found.append(Commands(log.label, time[own] - time[own[0]], *stretch, kp, kd))
    return found


def _signals(block: Log, robot: Robot) -> tuple[Array, Array, Array, Array]:
    targets = block.array("target", robot)
    feedforward = block.array("tau_ff", robot) if block.has("tau_ff", robot) else np.zeros_like(targets)
    return block.time, targets, feedforward, joint_positions(block, robot)


def replay_xml(robot: Robot, parameters: Mapping[str, float], kp: Array, kd: Array, step: float = STEP) -> str:
    """MJCF of a robot whose joints are driven by position controllers."""
    root = mujoco_tree(robot, parameters, ModelOptions(step=step, integrator="implicitfast"))
    actuators = SubElement(root, "actuator")
    for name, position_gain, velocity_gain in zip(robot.joint_names, kp.tolist(), kd.tolist(), strict=True):
        # Commands stand for position; what a motor gives beside them is a position further by torque / kp.
        bias = f"0 {-position_gain!r} {-velocity_gain!r}"
        drive = SubElement(actuators, "general", name=name, joint=name, biastype="affine")
        drive.attrib.update(gainprm=repr(position_gain), biasprm=bias)
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
        return [self._stretch(one, candidates) for one in self.commands]

    def errors(self, candidates: Sequence[DriveValues]) -> list[ReplayErrors]:
        """Errors of each candidate over all stretches."""
        off = [x - one.positions for one, x in zip(self.commands, self.positions(candidates), strict=True)]
        every = np.concatenate(off, axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            rms, mad = np.sqrt(np.mean(every**2, axis=1)), np.mean(np.abs(every), axis=1)
        limit = np.finfo(np.float64).max
        rms, mad = (np.nan_to_num(own, nan=limit) for own in (rms, mad))
        return [ReplayErrors(*own) for own in zip(rms, mad, strict=True)]

    def _stretch(self, commands: Commands, candidates: Sequence[DriveValues]) -> Array:
        mujoco = import_mujoco()
        from mujoco import rollout

        models = [self._model(commands, one) for one in candidates]
        places = [int(models[0].joint(name).qposadr[0]) for name in self.robot.joint_names]
        dofs = [int(models[0].joint(name).dofadr[0]) for name in self.robot.joint_names]
        n_steps = max(1, int(np.ceil(commands.time[-1] / self.step - 1e-9)))
        spec = mujoco.mjtState.mjSTATE_FULLPHYSICS
        first = np.zeros((len(models), mujoco.mj_stateSize(models[0], spec)))
        begins, velocities = _beginning(commands)
        inputs = np.empty((len(models), n_steps, len(places)))
        for model, one, state, own in zip(models, candidates, first, inputs, strict=True):
            data = mujoco.MjData(model)
            data.qpos[places], data.qvel[dofs] = begins + one.bias, velocities
            mujoco.mj_forward(model, data)
            mujoco.mj_getState(model, data, state, spec)
            own[:] = self._inputs(commands, one, n_steps)
        data = [mujoco.MjData(models[0]) for _ in range(min(_THREADS, len(models)))]
        states = rollout.rollout(models, data, first, inputs)[0]
        nq = slice(1, 1 + models[0].nq)  # time stands first
        course = np.concatenate([first[:, None, nq], states[:, :, nq]], axis=1)[:, :, places]
        biases = np.array([one.bias for one in candidates])
        return np.asarray(_at_stamps(course, commands.time, self.step) - biases[:, None, :])

    def _inputs(self, commands: Commands, one: DriveValues, n_steps: int) -> Array:
        """(n_steps, n_joints) mean over each step of the commands as they reach the joints; at first the first one."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ahead = np.where(commands.kp > 0.0, commands.feedforward / commands.kp, 0.0)
        held = commands.targets + ahead
        stamps = np.arange(n_steps + 1) * self.step - one.delay
        latest = np.clip(np.searchsorted(commands.time, stamps, side="right") - 1, 0, None)
        # What was commanded until a stamp: all samples that have ended, and the share of the latest.
        ended = np.concatenate(
            [np.zeros((1, held.shape[1])), np.cumsum(held[:-1] * np.diff(commands.time)[:, None], 0)]
        )
        until = ended[latest] + held[latest] * (stamps - commands.time[latest])[:, None]
        return np.asarray(np.diff(until, axis=0) / self.step)

    def _model(self, commands: Commands, one: DriveValues) -> Any:
        text = replay_xml(self.robot, one.parameters, commands.kp, commands.kd, self.step)
        try:
            return import_mujoco().MjModel.from_xml_string(text)
        except ValueError as error:
            words = " ".join(str(error).split())
            raise InputError(f"robot {self.robot.name}: MuJoCo cannot make a model of it ({words})") from None


def _beginning(commands: Commands) -> tuple[Array, Array]:
    """(n_joints,) measured position and velocity at the first sample: a parabola through the first samples."""
    count = max(5, int(np.searchsorted(commands.time, _FIRST)))
    time, positions = commands.time[:count], commands.positions[:count]
    if len(time) < 3:
        return positions[0], np.zeros(positions.shape[1])
    fitted = np.linalg.lstsq(np.vander(time, 3), positions)[0]
    return fitted[2], fitted[1]


def _at_stamps(course: Array, time: Array, step: float) -> Array:
    """Values between the steps of a simulation, (n, n_samples, n_joints)."""
    place = time / step
    before = np.minimum(place.astype(int), course.shape[1] - 2)
    share = (place - before)[None, :, None]
    return np.asarray((1.0 - share) * course[:, before] + share * course[:, before + 1])
