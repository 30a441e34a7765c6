"""What gravity can determine: the combinations of base parameters that have weight, and the joints that carry them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, Mask, as_samples, on_one_thread
from dynident.dynamics.evaluate import joint_torque, parameters, regressor
from dynident.experiments.gravity.slow_runs import SlowRun
from dynident.experiments.protocol import ExperimentError
from dynident.experiments.thresholds import GRAVITY
from dynident.identifiability.base import BaseParameters, base_parameters, column_scales
from dynident.identifiability.regrouping import Regrouping, select_columns, without_rounding
from dynident.identifiability.states import random_states
from dynident.robot.model import Robot

_STATES = 60
_TERMS, _INERTIAL = "rigid", "rigid,Ia"


@dataclass(frozen=True)
class GravityBase(Regrouping):
    """Combinations of standard parameters that gravity shows, beta = K chi.

    They are base parameters of the whole dynamics; where gravity alone cannot distinguish two of those, their sum.

    Attributes:
        robot: The robot.
        whole: Base parameters of the whole dynamics.
        depends: (n_moving, n) whether each joint's torque depends on each of them.
    """

    robot: Robot
    whole: BaseParameters
    depends: Mask

    @functools.cached_property
    def texts(self) -> Mapping[tuple[int, int], str]:
        """Coefficients over the robot's named lengths, of rows that are base parameters as they are."""
        place = {column: row for row, column in enumerate(self.whole.independent)}
        own = {place[column]: row for row, column in enumerate(self.independent)}
        same = {row for row, mine in own.items() if np.allclose(self.whole.K[row], self.K[mine])}
        return {(own[row], j): text for (row, j), text in self.whole.texts.items() if row in same}

    def values(self, values: str | Mapping[str, float] | None = None) -> Array:
        """Those of a set of standard values, (n,)."""
        return np.asarray(self.K @ parameters(self.robot, _TERMS, values))

    @property
    def fixed(self) -> Array:
        """(n_columns,) standard parameters whose value is known, zero elsewhere."""
        return np.array([0.0 if column.fixed is None else column.fixed for column in self.columns])

    def joint_of(self, name: str) -> str:
        """Variable of the joint whose link carries a parameter, such as q2."""
        return f"q{self.columns[self.independent[self.names.index(name)]].place}"


def gravity_columns(robot: Robot, q: ArrayLike) -> Array:
    """Torque at the joints per standard parameter of the links at rest, (n_samples, n_moving, n_columns)."""
    poses = as_samples(q, "q", robot.joint_names)
    still = np.zeros_like(poses)
    actuated = regressor(robot, poses, still, still, _TERMS)
    to_joints = joint_torque(robot, np.eye(len(robot.moving)))  # tau_joints = tau_actuated @ coupling
    return np.asarray(np.einsum("sac,ai->sic", actuated, to_joints))


@on_one_thread
def inertial_columns(robot: Robot, run: SlowRun) -> Array:
    """(n_samples, k) torques at the swept joint of which that of inertia is a sum.

    The inertia of a joint that moves alone is constant, so its acceleration is all there is; but where it takes other
    joints along, as in a loop, it may change with its position: one column for each way in which bodies can make it.
    """
    if len(robot.active) == len(robot.joints):
        return run.acceleration[:, None]
    still, dq, ddq = np.zeros((3, *run.q.shape))
    dq[:, run.joint], ddq[:, run.joint] = run.velocity, run.acceleration
    actuated = regressor(robot, run.q, dq, ddq, _INERTIAL) - regressor(robot, run.q, still, still, _INERTIAL)
    columns = np.einsum("sac,a->sc", actuated, joint_torque(robot, np.eye(len(robot.moving)))[:, run.joint])
    averaged = run.half_sum(columns)
    sizes, ways = np.linalg.svd(averaged, full_matrices=False)[1:]
    found = columns @ ways[sizes > GRAVITY.faint_share * sizes[0]].T
    # A single one counts inertia as usual: torque per acceleration.
    return np.asarray(found if found.shape[1] > 1 else found * (run.acceleration @ found / (found.T @ found)))


@on_one_thread
def gravity_base(robot: Robot) -> GravityBase:
    """The combinations that gravity shows.

    Raises:
        ExperimentError: When no joint feels any weight.
    """
    whole = base_parameters(robot, _TERMS)
    scales = column_scales(robot, whole.columns)[list(whole.independent)]
    q = random_states(robot, _STATES)[0]
    torque = gravity_columns(robot, q)[:, :, list(whole.independent)] / scales
    rows = torque.reshape(-1, len(scales)) / np.sqrt(torque.shape[0] * torque.shape[1])
    shown = [int(j) for j in np.flatnonzero(np.linalg.norm(rows, axis=0) > GRAVITY.faint_share)]
    if not shown:
        raise ExperimentError(
            f"robot {robot.name}: gravity acts on no moving joint (its axes are parallel to it, or it has none: "
            f"gravity is {robot.gravity.tolist()}); moments cannot be had from weight, use `identify` on a fast motion"
        )
    chosen = select_columns(rows, shown, GRAVITY.faint_share)[0]
    over = np.linalg.lstsq(rows[:, chosen], rows, rcond=None)[0] * scales / scales[chosen][:, None]
    over = np.where(np.abs(over) < GRAVITY.faint_share, 0.0, over)
    over[:, chosen] = np.eye(len(chosen))
    depends = np.linalg.norm(torque[:, :, chosen], axis=0) / np.sqrt(len(q)) > GRAVITY.faint_share
    return GravityBase(
        columns=whole.columns,
        independent=tuple(whole.independent[j] for j in chosen),
        K=without_rounding(over @ whole.K),
        robot=robot,
        whole=whole,
        depends=depends,
    )


@dataclass(frozen=True)
class SweepStage:
    """Joints that are looked at together, and the parameters they add to those known already.

    Attributes:
        joints: Places in the robot's moving joints.
        fresh: Places in the gravity base of what they add.
    """

    joints: tuple[int, ...]
    fresh: tuple[int, ...]


@on_one_thread
def stages(base: GravityBase, joints: tuple[int, ...] | None = None) -> tuple[SweepStage, ...]:
    """The recursion from the tip (eq. 21): each stage adds the moments of the next link inwards.

    A joint stands alone unless its torque cannot determine what it adds; then it waits for the next one.

    Args:
        base: What gravity shows.
        joints: Only these moving joints; None for every one that adds something.
    """
    weighed = [j for j in range(len(base.depends)) if base.depends[j].any() and (joints is None or j in joints)]
    order = sorted(weighed, key=lambda j: (int(base.depends[j].sum()), -j))
    q = random_states(base.robot, _STATES)[0]
    torque = gravity_columns(base.robot, q)[:, :, list(base.independent)]
    found: list[SweepStage] = []
    known: set[int] = set()
    waiting: list[int] = []
    for j in order:
        waiting.append(j)
        fresh = sorted({int(i) for one in waiting for i in np.flatnonzero(base.depends[one])} - known)
        if not fresh:
            # Nothing new from it; if somebody asked for this joint, it is a second opinion.
            if joints is None:
                waiting.clear()
                continue
        elif j != order[-1]:
            rows = torque[:, waiting][:, :, fresh].reshape(-1, len(fresh))
            sizes = np.linalg.svd(rows / np.linalg.norm(rows, axis=0), compute_uv=False)
            if sizes[-1] < GRAVITY.faint_share * sizes[0]:
                continue
        found.append(SweepStage(tuple(waiting), tuple(fresh)))
        known |= set(fresh)
        waiting.clear()
    return tuple(found)


def joints_without_weight(base: GravityBase) -> dict[str, str]:
    """Joints that no weight reaches, with the reason."""
    robot, reasons = base.robot, {}
    for place, name in enumerate(robot.joint_names):
        if base.depends[place].any():
            continue
        slides = robot.moving_joints[place].kind == "prismatic"
        way = "slides across gravity" if slides else "has its axis parallel to gravity or carries nothing off it"
        reasons[name] = f"{way} in every pose, so its torque holds no weight and shows no moment"
    return reasons
