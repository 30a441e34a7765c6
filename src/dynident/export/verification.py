"""What an export says of itself: where the file is, how well its torque agrees, and what it could not hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.display import brief
from dynident.dynamics.evaluate import inverse_dynamics, joint_torque, tree_motion
from dynident.dynamics.terms.term import MotionSamples
from dynident.errors import DynidentError
from dynident.files import file_aside, name_target, write_bytes
from dynident.identifiability.states import random_states, reach
from dynident.plant.compiled_model import import_mujoco
from dynident.robot.load import load_robot
from dynident.robot.model import Robot


class ExportError(DynidentError):
    """A robot that a format cannot hold, or a file that does not give its torque back; C code that disagrees."""


@dataclass(frozen=True)
class Agreement:
    """Torque of the file, read back, against that of the robot.

    Attributes:
        reader: Who read the file: "dynident" or "MuJoCo".
        n_states: Random states within the robot's limits.
        relative: Largest share, over the joints, of the torque by which the two differ.
        largest: Largest difference [N·m or N].
        lost: Share of the robot's whole torque, over the same states, that stands in what the file could not hold.
    """

    reader: str
    n_states: int
    relative: float
    largest: float
    lost: float = 0.0

    def __str__(self) -> str:
        """A sentence with the numbers."""
        text = (
            f"read back by {self.reader}: torque agrees to {self.relative:.1e} ({self.largest:.1e} N·m or N) "
            f"at {self.n_states} random states"
        )
        return text + (f"; what is not in the file is {100.0 * self.lost:.3g} % of the torque" if self.lost else "")


@dataclass(frozen=True)
class ReadBack:
    """Numbers of a file that has no torque, read back, against those that were to be written.

    Attributes:
        reader: Who read the file.
        n_values: Numbers that were compared.
        relative: Largest difference, as a share of the number.
        lost: As of `Agreement`; nothing is said of it.
    """

    reader: str
    n_values: int
    relative: float
    lost: float = 0.0

    def __str__(self) -> str:
        """A sentence with the numbers."""
        within = f" within {self.relative:.1e}" if self.relative else ""
        return f"read back by {self.reader}: {self.n_values} numbers agree{within}"


@dataclass(frozen=True)
class MissingTorque:
    """Torque at the joints that a file lacks, RMS over the training motion as a share of that of the identified model.

    Attributes:
        share: Of all that it lacks together.
        parts: Of each kind alone, by its name, largest first.
    """

    share: float
    parts: Mapping[str, float]

    def __str__(self) -> str:
        """A sentence."""
        text = f"on the training motion the file lacks {100.0 * self.share:.2g} % of the torque (RMS)"
        kinds = ", ".join(f"{name} {100.0 * share:.2g} %" for name, share in self.parts.items())
        return f"{text}: {kinds}" if kinds else text


@brief
@dataclass(frozen=True)
class Exported:
    """A file that was written and proved.

    Attributes:
        path: Where it is.
        form: Such as "URDF", "MJCF" or "Isaac Lab".
        agreement: How well its torque, or its numbers, agree with the robot's.
        lost: What the format cannot hold, in words.
        warnings: What a reader should know.
        held: Standard values that the file holds.
        usage: What to do where the file is used, such as the line that gives Pinocchio the rotors.
        missing: Share of the identified torque that the file lacks, RMS over the training motion and its parts by
            name; None without a fit that keeps its motion.
    """

    path: Path
    form: str
    agreement: Agreement | ReadBack
    lost: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    held: Mapping[str, float] = field(default_factory=dict)
    usage: tuple[str, ...] = ()
    missing: MissingTorque | None = None

    def summary(self) -> str:
        """The result in lines of text."""
        lines = [f"{self.form} written to {self.path}", f"  {self.agreement}"]
        lines += [f"  not in the file: {words}" for words in self.lost]
        lines += [f"  {self.missing}"] if self.missing is not None else []
        lines += [f"  {words}" for words in self.usage]
        lines += [f"  warning: {words}" for words in self.warnings]
        return "\n".join(lines)


# ----------------------------------------------------------------------------------------------------------------------
# The round trip: a file takes its place only after it was read back and gave the robot's torque.

TOLERANCE = 1e-9  # share of the torque: conversions and decimal digits leave a thousand times less
N_STATES = 100
_VELOCITY, _ACCELERATION = 3.0, 10.0  # [rad/s, rad/s²] where the robot has no limits; times its size for slides
_FAINT = 1e-6  # a joint whose torque is this share of the largest one is evaluated by the largest


def states_within_limits(robot: Robot, n_states: int = N_STATES, seed: int = 9) -> MotionSamples:
    """Random states; positions and velocities within the robot's limits where it has some.

    Where loops are closed numerically, positions are those at which they close, limits or not.
    """
    if robot.closure is not None:
        return MotionSamples.of_stretch(*random_states(robot, n_states, seed))
    rng = np.random.default_rng(seed)
    moving = robot.moving_joints
    q, dq = (np.zeros((n_states, len(moving))) for _ in range(2))
    units = np.array([reach(robot) if joint.kind == "prismatic" else 1.0 for joint in moving])
    for k, joint in enumerate(moving):
        limits, far = joint.limits, reach(robot) if joint.kind == "prismatic" else np.pi
        low = limits.lower if limits.lower is not None else min(-far, (limits.upper or 0.0) - far)
        high = limits.upper if limits.upper is not None else max(far, low + far)
        q[:, k] = rng.uniform(low, high, n_states)
        fastest = limits.velocity or _VELOCITY * units[k]
        dq[:, k] = rng.uniform(-fastest, fastest, n_states)
    return MotionSamples.of_stretch(q, dq, rng.normal(0.0, _ACCELERATION, q.shape) * units)


def agreement(
    robot: Robot,
    held: Mapping[str, float],
    whole: Mapping[str, float],
    again: Array,
    states: MotionSamples,
    reader: str,
) -> Agreement:
    """How well torque at the joints agrees.

    Args:
        robot: The robot.
        held: Standard values that the file holds.
        whole: All standard values.
        again: Torque of the file at the joints, (n_states, n_joints).
        states: The states.
        reader: Who read the file.
    """
    ours = _at_joints(robot, held, states)
    full = ours if dict(held) == dict(whole) else _at_joints(robot, whole, states)
    sizes = np.linalg.norm(ours, axis=0)
    largest = float(sizes.max(initial=0.0))
    scale = np.maximum(sizes, _FAINT * largest) if largest else np.ones_like(sizes)
    away = np.linalg.norm(again - ours, axis=0)
    lost = float(np.linalg.norm(full - ours)) / (float(np.linalg.norm(full)) or 1.0)
    worst = float(np.abs(again - ours).max(initial=0.0))
    return Agreement(reader, len(ours), float((away / scale).max(initial=0.0)), worst, lost)


def _at_joints(robot: Robot, values: Mapping[str, float], states: MotionSamples) -> Array:
    """Torque at the joints: a file without motors has no other."""
    return joint_torque(robot, inverse_dynamics(robot, states.q, states.dq, states.ddq, values=dict(values)))


def write_proved(
    target: Path,
    content: bytes,
    robot: Robot,
    values: tuple[Mapping[str, float], Mapping[str, float]],
    torque: Callable[[Path, Robot, MotionSamples], Array],
    reader: str = "dynident",
) -> Agreement:
    """Write a file beside its target, read it back, and let it take the target's place if the torque agrees.

    Args:
        target: Where the file is to be; what is there stays until the new file is proved.
        content: Its bytes.
        robot: The robot.
        values: Standard values that the file holds, and all of them.
        torque: Torque of a file at the joints in given states of the robot, (n_states, n_joints).
        reader: Who reads the file for it.

    Raises:
        ExportError: When the file cannot be read back or its torque differs; nothing is written then.
    """
    states = states_within_limits(robot)
    # Beside the target, because a file may name others relative to its own folder.
    with file_aside(target, target.suffix) as (trial, file):
        with name_target(target):
            file.write(content)
            file.close()
        try:
            found = agreement(robot, *values, torque(trial, robot, states), states, reader)
        except ExportError:
            raise
        except DynidentError as error:
            words = str(error).replace(str(trial), "the new file")
            raise ExportError(f"{target}: was not written, because it cannot be read back: {words}") from None
    if not found.relative <= TOLERANCE:
        raise ExportError(
            f"{target}: was not written, because its torque differs by {found.relative:.2g} of the robot's "
            f"({found.largest:.2g} N·m or N); allowed is {TOLERANCE:g}"
        )
    write_bytes(target, content)
    return found


# ----------------------------------------------------------------------------------------------------------------------
# Torque of a file as others read it: by dynident's own reader, or by MuJoCo.


def own_torque(path: Path, robot: Robot, states: MotionSamples) -> Array:
    """Torque at the joints of the robot that dynident reads from a file, (n_states, n_joints) in the order of `robot`.

    Gravity is the robot's, because a URDF has none of its own, and every joint moves.

    Raises:
        ExportError: When the file has other moving joints.
    """
    again = dataclasses.replace(load_robot(path), gravity=robot.gravity, locked={})
    if sorted(again.joint_names) != sorted(robot.joint_names):
        raise ExportError(
            f"robot {robot.name} moves with {', '.join(robot.joint_names)}, the file with "
            f"{', '.join(again.joint_names)}; nothing was written"
        )
    there = [robot.joint_names.index(name) for name in again.joint_names]
    tau = inverse_dynamics(again, *(x[:, there] for x in (states.q, states.dq, states.ddq)))
    back = np.zeros_like(states.q)
    back[:, there] = joint_torque(again, tau)
    return back


def mujoco_torque(path: Path, robot: Robot, states: MotionSamples) -> Array:
    """MuJoCo's torque at the joints of an MJCF file, (n_states, n_joints), brought to the moving joints by G'.

    Constraints are left out: loops are closed by the motion given, and dry friction is taken from the model's own
    numbers, because MuJoCo softens it near standstill.

    Raises:
        ExportError: When a joint of the robot is not in the file.
    """
    from dynident.robot.mjcf import compiled_mjcf

    mujoco = import_mujoco()
    model = compiled_mjcf(path)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    model.opt.gravity[:] = robot.gravity
    dofs = _dofs(model, robot)
    tree = tree_motion(robot, states.q, states.dq, states.ddq)
    data = mujoco.MjData(model)
    torques = np.zeros_like(states.q)
    for k in range(len(states.q)):
        data.qpos[dofs], data.qvel[dofs], data.qacc[dofs] = tree.q[k], tree.dq[k], tree.ddq[k]
        mujoco.mj_inverse(model, data)
        full = np.array(data.qfrc_inverse) + _dry_friction(model, data)
        torques[k] = tree.G[k].T @ full[dofs]
    return torques


def _dofs(model: Any, robot: Robot) -> list[int]:
    """MuJoCo's index of every tree joint; unnamed ones go by their place, as in the reader."""
    names = [model.joint(j).name or f"joint{j + 1}" for j in range(model.njnt)]
    missing = [joint.name for joint in robot.joints if joint.name not in names]
    if missing or len(names) != len(robot.joints):
        raise ExportError(f"robot {robot.name}: the file has the joints {', '.join(names)}; nothing was written")
    return [names.index(joint.name) for joint in robot.joints]


def _dry_friction(model: Any, data: Any) -> Array:
    """(nv,) torque that the dry friction of joints and fixed tendons takes."""
    torque = np.asarray(model.dof_frictionloss * np.sign(data.qvel))
    for t in range(model.ntendon):
        along = np.zeros(model.nv)
        for w in range(int(model.tendon_adr[t]), int(model.tendon_adr[t]) + int(model.tendon_num[t])):
            if model.tendon_frictionloss[t]:
                along[int(model.wrap_objid[w])] += model.wrap_prm[w]
        torque = torque + along * model.tendon_frictionloss[t] * np.sign(along @ data.qvel)
    return np.asarray(torque)
