"""The round trip: a file takes its place only after it was read back and gave the robot's torque."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.evaluate import inverse_dynamics, joint_torque
from dynident.errors import DynidentError, InputError
from dynident.export.exported import Agreement, ExportError
from dynident.files import write_whole
from dynident.identifiability.states import random_states, reach
from dynident.robot.model import Robot

TOLERANCE = 1e-9  # share of the torque: conversions and decimal digits leave a thousand times less
N_STATES = 100
_SPEED, _ACCELERATION = 3.0, 10.0  # [rad/s, rad/s²] where the robot has no limits; times its size for sliding joints
_FAINT = 1e-6  # a joint whose torque is this share of the largest one is judged by the largest


@dataclass(frozen=True)
class States:
    """Random states of a robot, (n_states, n_joints) each [rad, rad/s, rad/s² or m, ...]."""

    q: Array
    dq: Array
    ddq: Array


def states_within_limits(robot: Robot, n_states: int = N_STATES, seed: int = 9) -> States:
    """Random states; positions and speeds within the robot's limits where it has some.

    Where loops are closed numerically, positions are those at which they close, limits or not.
    """
    if robot.closure is not None:
        return States(*random_states(robot, n_states, seed))
    rng = np.random.default_rng(seed)
    moving = [robot.joints[robot.active[i]] for i in robot.moving]
    q, dq = (np.zeros((n_states, len(moving))) for _ in range(2))
    units = np.array([reach(robot) if joint.kind == "prismatic" else 1.0 for joint in moving])
    for k, joint in enumerate(moving):
        limits, far = joint.limits, reach(robot) if joint.kind == "prismatic" else np.pi
        low = limits.lower if limits.lower is not None else min(-far, (limits.upper or 0.0) - far)
        high = limits.upper if limits.upper is not None else max(far, low + far)
        q[:, k] = rng.uniform(low, high, n_states)
        fastest = limits.velocity or _SPEED * units[k]
        dq[:, k] = rng.uniform(-fastest, fastest, n_states)
    return States(q, dq, rng.normal(0.0, _ACCELERATION, q.shape) * units)


def agreement(
    robot: Robot, held: Mapping[str, float], whole: Mapping[str, float], again: Array, states: States, reader: str
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


def _at_joints(robot: Robot, values: Mapping[str, float], states: States) -> Array:
    """Torque at the joints: a file without motors has no other."""
    return joint_torque(robot, inverse_dynamics(robot, states.q, states.dq, states.ddq, values=dict(values)))


def write_proved(target: Path, content: bytes, prove: Callable[[Path], Agreement]) -> Agreement:
    """Write a file beside its target, read it back, and let it take the target's place if the torque agrees.

    Args:
        target: Where the file is to be; what is there stays until the new file is proved.
        content: Its bytes.
        prove: Reads a file and compares the torque.

    Raises:
        ExportError: When the file cannot be read back or its torque differs; nothing is written then.
    """
    # Beside the target, because a file may name others relative to its own folder.
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}.", suffix=target.suffix)
    except OSError as error:
        raise InputError(f"{target}: cannot be written ({error.strerror})") from None
    trial = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        found = prove(trial)
    except ExportError:
        raise
    except DynidentError as error:
        words = str(error).replace(str(trial), "the new file")
        raise ExportError(f"{target}: was not written, because it cannot be read back: {words}") from None
    finally:
        trial.unlink(missing_ok=True)
    if not found.relative <= TOLERANCE:
        raise ExportError(
            f"{target}: was not written, because its torque differs by {found.relative:.2g} of the robot's "
            f"({found.largest:.2g} N·m or N); allowed is {TOLERANCE:g}"
        )

    def write(file: IO[bytes]) -> None:
        file.write(content)

    write_whole(target, write)
    return found
