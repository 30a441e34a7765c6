"""Torque of a file as others read it: by dynident's own reader, or by MuJoCo."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.evaluate import inverse_dynamics, joint_torque
from dynident.dynamics.tree_motion import tree_motion
from dynident.export.exported import ExportError
from dynident.export.proof import States
from dynident.plant.mujoco_model import import_mujoco
from dynident.robot.load import load_robot
from dynident.robot.model import Robot


def own_torque(path: Path, robot: Robot, states: States) -> Array:
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


def mujoco_torque(path: Path, robot: Robot, states: States) -> Array:
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
