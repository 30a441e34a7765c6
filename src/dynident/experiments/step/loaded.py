"""What the tool carries, from effective inertias with and without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import InputError
from dynident.estimate.payload_advice import PayloadAdvice, null_space
from dynident.estimate.payload_numbers import PayloadNumber, payload_numbers
from dynident.experiments.step.poses import best_rows, candidate_poses, inertia_rows, random_poses
from dynident.experiments.step.solve import Inertia
from dynident.robot.model import Robot
from dynident.robot.parameters import LINK_SYMBOLS, in_frame

_SAME = 0.02  # [rad or m] by which poses with and without the payload may differ
_RANK = 1e-7  # share of the largest singular value that counts


@dataclass(frozen=True)
class StepPayload:
    """A payload from step tests.

    Attributes:
        numbers: mass; cx, cy, cz; Ixx .. Iyz, withheld where the poses do not tell them.
        warnings: Why.
        pairs: Number of inertias with and without it.
    """

    numbers: tuple[PayloadNumber, ...]
    warnings: tuple[str, ...]
    pairs: int


def payload_rows(robot: Robot, poses: ArrayLike, motor: int) -> Array:
    """Inertia that a body on the tool adds, over its standard parameters in the tool frame, (n_poses, 10)."""
    if robot.tool is None:
        raise InputError(
            f"robot {robot.name} has several branches; say in its file which link carries the tool (tool:)"
        )
    link, frame = robot.tool
    n = len(LINK_SYMBOLS)
    own = inertia_rows(robot, poses, motor, ("rigid",))[:, n * link : n * (link + 1)]
    return np.asarray(own @ in_frame(np.eye(n), frame.rotation, frame.translation).T)


def payload_poses(robot: Robot, motors: Sequence[int], count: int, seed: int) -> tuple[tuple[int, Array], ...]:
    """(motor, pose) that tell the ten numbers of a payload best."""
    candidates = {motor: candidate_poses(robot, motor, seed + 1) for motor in motors}
    rows = {motor: payload_rows(robot, poses, motor) for motor, poses in candidates.items()}
    felt = np.linalg.norm(np.vstack(list(rows.values())), axis=0) > 0.0
    return best_rows({motor: own[:, felt] for motor, own in rows.items()}, candidates, count)[0]


def step_payload(robot: Robot, loaded: Sequence[Inertia], unloaded: Sequence[Inertia]) -> StepPayload:
    """The body on the tool from inertias of the same joints at the same poses with and without it.

    Raises:
        InputError: When no pose is in both.
    """
    rows, more, std = [], [], []
    for one in loaded:
        same = [x for x in unloaded if x.motor == one.motor and np.abs(_apart(x, one)).max(initial=0.0) <= _SAME]
        if same:
            rows.append(payload_rows(robot, one.pose, one.motor)[0])
            more.append(one.value - same[0].value)
            std.append(float(np.hypot(one.std, same[0].std)))
    if not rows:
        raise InputError("no joint was tested at the same pose with and without the payload; repeat the unloaded test")
    W, y = np.array(rows) / np.array(std)[:, None], np.array(more) / np.array(std)
    units = np.linalg.norm(W, axis=0)
    units = np.where(units > 1e-12 * units.max(), units, 1.0)
    left, sizes, right = np.linalg.svd(W / units, full_matrices=True)
    rank = int(np.sum(sizes > _RANK * sizes[0]))
    G = right[:rank].T / sizes[:rank]
    standard = (G @ (left[:, :rank].T @ y)) / units
    rest = W @ standard - y
    spread = max(1.0, float(rest @ rest) / max(len(y) - rank, 1) if len(y) > rank else 1.0)
    covariance = spread * (G @ G.T) / np.outer(units, units)
    numbers, warnings = payload_numbers(standard, covariance, right[rank:].T, units, _advice(robot))
    return StepPayload(numbers, warnings, len(y))


def _advice(robot: Robot) -> PayloadAdvice:
    """What steps of all joints at any pose can show of a payload."""
    poses = random_poses(robot, 4 * len(LINK_SYMBOLS), 7)
    rows = np.vstack([payload_rows(robot, poses, motor) for motor in range(len(robot.moving))])
    remedy = "step more joints at more poses, with larger voltages"
    return PayloadAdvice(*null_space(rows), (remedy,) * len(LINK_SYMBOLS))


def _apart(one: Inertia, other: Inertia) -> Array:
    """How far poses differ, the tested joint left out: it feels the same anywhere."""
    return np.delete(one.pose - other.pose, one.motor)
