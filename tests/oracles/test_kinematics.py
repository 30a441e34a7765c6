"""Forward kinematics against Pinocchio, and against finite differences where loops are closed."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import dynident as di
from tests.loops import FIVE_BAR, FOUR_BAR, load
from tests.robots import random_urdf, tree_model

EXACT = 1e-12
N = 8


def poses(robot, seed=0):
    return np.random.default_rng(seed).uniform(-2.0, 2.0, (N, len(robot.joint_names)))


@pytest.mark.parametrize("seed", range(25))
def test_frames_and_jacobians_of_random_trees_are_those_of_pinocchio(seed):
    text = random_urdf(seed)
    robot = di.robot.robot_from_urdf(text)
    model = pin.buildModelFromXML(text)
    data = model.createData()
    order = [model.joints[model.getJointId(name)].idx_v for name in robot.joint_names]
    q = poses(robot, seed)
    tool = max(robot.frames, default=None)
    found = di.forward_kinematics(robot, q, tool=tool or robot.joints[-1].link)
    for k, x in enumerate(q):
        full = np.zeros(model.nv)
        full[order] = x
        pin.computeJointJacobians(model, data, full)
        pin.updateFramePlacements(model, data)
        for i, name in enumerate(found.links):
            frame = model.getFrameId(name, pin.FrameType.BODY)
            theirs = data.oMf[frame]
            assert abs(found.rotations[k, i] - theirs.rotation).max() < EXACT
            assert abs(found.origins[k, i] - theirs.translation).max() < EXACT
            J = pin.getFrameJacobian(model, data, frame, pin.LOCAL_WORLD_ALIGNED).reshape(6, -1)[:, order]
            assert abs(found.jacobians[k, i] - J).max() < EXACT
        frame = model.getFrameId(tool or robot.joints[-1].link, pin.FrameType.BODY)
        assert abs(found.pose[k] - data.oMf[frame].homogeneous).max() < EXACT
        J = pin.getFrameJacobian(model, data, frame, pin.LOCAL_WORLD_ALIGNED).reshape(6, -1)[:, order]
        assert abs(found.jacobian[k] - J).max() < EXACT


def loops(folder):
    four, five = load(FOUR_BAR, folder), load(FIVE_BAR, folder)
    four_at = np.linspace(0.4, 1.6, N)[:, None]
    five_at = np.array([1.9, 1.1]) + np.random.default_rng(3).uniform(-0.3, 0.3, (N, 2))
    return {"four-bar": (four, four_at), "five-bar": (five, five_at)}


def closed(name, folder):
    if name == "sr400":
        return di.load_robot("sr400"), poses(di.load_robot("sr400"))
    if name == "sr400 locked":
        robot = di.load_robot("sr400").lock(q4=0.3, q1=-0.2)
        return robot, poses(robot)
    return loops(folder)[name]


@pytest.mark.parametrize("name", ["sr400", "sr400 locked", "four-bar", "five-bar"])
def test_closed_loops(name, tmp_path):
    robot, q = closed(name, tmp_path)
    last = robot.joints[-1].link
    found = di.forward_kinematics(robot, q, tool=last)
    # Frames at the positions of all tree joints, by Pinocchio.
    model = tree_model(robot)
    data = model.createData()
    motion = di.dynamics.tree_motion(robot, q)
    for k, x in enumerate(motion.q):
        pin.computeJointJacobians(model, data, x)
        for i, joint in enumerate(robot.joints):
            placement = data.oMi[i + 1] * pin.SE3(joint.after.rotation, joint.after.translation)
            assert abs(found.rotations[k, i] - placement.rotation).max() < EXACT
            assert abs(found.origins[k, i] - placement.translation).max() < EXACT
            frame = pin.SE3(joint.after.rotation, joint.after.translation)
            at = model.addFrame(pin.Frame(f"f{k}{i}", i + 1, 0, frame, pin.FrameType.OP_FRAME))
            own = model.createData()
            J = pin.computeFrameJacobian(model, own, x, at, pin.LOCAL_WORLD_ALIGNED)
            assert abs(found.jacobians[k, i] - J @ motion.G[k]).max() < EXACT
    # The Jacobian by differences of the poses themselves, loops closed again at each.
    h = 1e-6
    for j in range(q.shape[1]):
        step = h * np.eye(q.shape[1])[j]
        ahead, behind = (di.forward_kinematics(robot, q + s * step) for s in (1.0, -1.0))
        linear = (ahead.origins - behind.origins) / (2.0 * h)
        assert abs(found.jacobians[:, :, :3, j] - linear).max() < 1e-8
        turned = (ahead.rotations - behind.rotations) / (2.0 * h) @ np.swapaxes(found.rotations, -1, -2)
        angular = np.stack([turned[..., 2, 1], turned[..., 0, 2], turned[..., 1, 0]], axis=-1)
        assert abs(found.jacobians[:, :, 3:, j] - angular).max() < 1e-8


def test_a_four_bar_is_closed(tmp_path):
    robot, q = loops(tmp_path)["four-bar"]
    found = di.forward_kinematics(robot, q)
    coupler, rocker = (found.link_pose(name) @ [length, 0.0, 0.0, 1.0] for name, length in (("2", 0.5), ("3", 0.4)))
    assert abs(coupler - rocker).max() < 1e-9
    assert np.allclose(np.linalg.norm(coupler[:, :2] - [0.45, 0.0], axis=1), 0.4, atol=1e-9)


def test_power_by_the_jacobian_is_the_torque_of_a_tool_force():
    robot = di.load_robot("sr400")
    q, dq, force, moment = (np.random.default_rng(k).normal(size=(N, n)) for k, n in enumerate((6, 6, 3, 3)))
    found = di.forward_kinematics(robot, q)
    still = np.zeros_like(q)
    tau = di.inverse_dynamics(robot, q, still, still, "rigid", tool_force=force, tool_moment=moment)
    tau = di.joint_torque(robot, tau - di.inverse_dynamics(robot, q, still, still, "rigid"))
    in_base = np.concatenate([np.einsum("nij,nj->ni", found.rotation, x) for x in (force, moment)], axis=1)
    velocity = np.einsum("nij,nj->ni", found.jacobian, dq)
    assert np.allclose((velocity * in_base).sum(1), (tau * dq).sum(1))


@pytest.mark.parametrize("angles", [(0.3, -0.4, 2.8), (3.1, 1.2, -3.0), (0.0, np.pi / 2, 0.4), (np.pi, 0.0, 0.0)])
def test_angles_and_quaternions_give_the_rotation_back(angles):
    from dynident.dynamics.kinematics import quaternion, roll_pitch_yaw
    from dynident.robot.rotations import rpy_matrix

    R = rpy_matrix(*angles)
    assert np.allclose(rpy_matrix(*roll_pitch_yaw(R)), R, atol=1e-9)
    assert np.allclose(pin.Quaternion(quaternion(R)).toRotationMatrix(), R, atol=1e-12)
