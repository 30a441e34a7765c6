"""A robot in MuJoCo: the compiled model and the map between its coordinates and the robot's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.display import brief
from dynident.dynamics.evaluate import tree_motion
from dynident.errors import DynidentError, InputError
from dynident.payload.body import Payload
from dynident.plant.mjcf_writer import (
    ModelOptions,
    Place,
    carriers,
    chosen_values,
    element_places,
    free_joints,
    mujoco_xml,
)
from dynident.robot.model import Robot

if TYPE_CHECKING:
    import mujoco


class MissingMujocoError(DynidentError):
    """MuJoCo is needed and not installed."""

    def __init__(self) -> None:
        super().__init__("this needs MuJoCo, which is not installed: pip install mujoco")


def import_mujoco() -> Any:
    """The `mujoco` package, or an error that says how to get it."""
    from dynident.robot.mjcf import load_mujoco

    try:
        return load_mujoco()
    except ImportError:
        raise MissingMujocoError from None


@brief
@dataclass(frozen=True, eq=False)
class MujocoModel:
    """A robot's MuJoCo model; positions and velocities of MuJoCo are those of the free tree joints.

    Attributes:
        robot: The robot.
        model: MuJoCo's model.
        places: Elements of the robot and further places, in the order of `damping` and `friction_loss`.
        joints: Free joints, indices into `robot.joints`.
        dofs: MuJoCo's index of each free joint.
        moving: MuJoCo's index of each moving joint, in the order of q.
        carriers: MuJoCo's index of each moving joint and of each that loops determine, as in `Place.direction`.
        follow: (n_free, n_moving) velocities of the free joints from those of the moving ones; where loops are closed
            numerically, what `tree_motion` says takes its place.
        rest: (n_free,) positions of the free joints where the moving ones are at zero [rad or m].
    """

    robot: Robot
    model: mujoco.MjModel
    places: tuple[Place, ...]
    joints: tuple[int, ...]
    dofs: NDArray[np.intp]
    moving: NDArray[np.intp]
    carriers: NDArray[np.intp]
    follow: Array
    rest: Array
    _on_joints: Array = field(repr=False)  # (nv, n_places), scale of each place on MuJoCo's joints
    _tendons: tuple[int, ...] = field(repr=False)  # MuJoCo's tendon of each place, -1 for none

    def new_data(self, q: ArrayLike | None = None, dq: ArrayLike | None = None) -> mujoco.MjData:
        """A state of the model with the moving joints at q (default `home`), dq (default zero) and loops closed."""
        data = import_mujoco().MjData(self.model)
        self.set_state(data, self.home if q is None else q, dq)
        return data

    @property
    def home(self) -> Array:
        """(n_moving,) a pose at which loops are closed: that of the robot's file where it has one, else zero."""
        closure = self.robot.closure
        return np.zeros(len(self.moving)) if closure is None else closure.reference[list(self.robot.moving)]

    def set_state(self, data: mujoco.MjData, q: ArrayLike, dq: ArrayLike | None = None) -> None:
        """Put the moving joints at q, dq and every passive joint where it belongs."""
        if self.robot.closure is not None:
            tree = tree_motion(self.robot, np.atleast_2d(q), None if dq is None else np.atleast_2d(dq))
            data.qpos[self.dofs], data.qvel[self.dofs] = tree.q[0, self.joints], tree.dq[0, self.joints]
            return
        data.qpos[self.dofs] = self.follow @ np.asarray(q, dtype=np.float64) + self.rest
        data.qvel[self.dofs] = 0.0 if dq is None else self.follow @ np.asarray(dq, dtype=np.float64)

    def loop_gap(self, data: mujoco.MjData) -> float:
        """The largest gap of a loop [rad or m]: of passive joints to where the moving ones put them, or at the cut."""
        if self.robot.closure is not None:
            return float(np.abs(data.efc_pos[: data.ne]).max(initial=0.0))
        free = data.qpos[self.dofs]
        gap = free - self.follow @ data.qpos[self.moving] - self.rest
        return float(np.abs(gap).max(initial=0.0))

    def to_joints(self, tree_torque: ArrayLike) -> Array:
        """Torque at the moving joints from torques in MuJoCo's order (..., nv): G' tau_tree, (..., n_moving).

        Not for loops that are closed numerically, whose G changes with the pose: `tree_motion` has it.
        """
        return np.asarray(np.asarray(tree_torque)[..., self.dofs] @ self.follow)

    def set_damping(self, viscous: Array) -> None:
        """Viscous friction of every place, (n_places,)."""
        shares = np.array([place.share or 0.0 for place in self.places])
        self.model.dof_damping[:] = self._on_joints**2 @ (shares * viscous)
        for tendon, share, number in zip(self._tendons, shares, viscous, strict=True):
            if tendon >= 0:
                self.model.tendon_damping[tendon] = share * number

    def set_friction_loss(self, coulomb: Array) -> None:
        """Dry friction of every place inside the model, (n_places,); zero for those outside."""
        shares = np.array([place.share or 0.0 for place in self.places])
        self.model.dof_frictionloss[:] = np.abs(self._on_joints) @ (shares * coulomb)
        for tendon, share, number in zip(self._tendons, shares, coulomb, strict=True):
            if tendon >= 0:
                self.model.tendon_frictionloss[tendon] = share * number


def mujoco_model(
    robot: Robot,
    values: str | Mapping[str, float] | None = None,
    options: ModelOptions | None = None,
    *,
    payload: Payload | None = None,
    more_places: Iterable[Place] = (),
) -> MujocoModel:
    """Compile a robot for MuJoCo; see `mujoco_xml` for the arguments."""
    mujoco = import_mujoco()
    more = tuple(more_places)
    text = mujoco_xml(robot, values, options, payload=payload, more_places=more)
    try:
        model = mujoco.MjModel.from_xml_string(text)
    except ValueError as error:
        words = " ".join(str(error).split())
        raise InputError(f"robot {robot.name}: MuJoCo cannot make a model of it ({words})") from None
    names = [joint.name for joint in robot.joints]
    joints = free_joints(robot)
    dof = {j: int(model.joint(names[j]).dofadr[0]) for j in joints}
    places = (*element_places(robot, chosen_values(robot, values)), *more)
    moving = [dof[robot.active[i]] for i in robot.moving]
    own = [dof[j] for j in carriers(robot)]
    on_joints = np.zeros((model.nv, len(places)))
    tendons = []
    for k, place in enumerate(places):
        if place.joint is not None:
            on_joints[own[place.joint], k] = place.direction[place.joint]
        several = place.joint is None and bool(np.any(place.direction))
        tendons.append(int(model.tendon(place.tendon).id) if several else -1)
    return MujocoModel(
        robot=robot,
        model=model,
        places=places,
        joints=tuple(joints),
        dofs=np.array([dof[j] for j in joints]),
        moving=np.array(moving),
        carriers=np.array(own),
        follow=robot.follow[np.ix_(joints, list(robot.moving))],
        rest=robot.rest_positions[joints],
        _on_joints=on_joints,
        _tendons=tuple(tendons),
    )
