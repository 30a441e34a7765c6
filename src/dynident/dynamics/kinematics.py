r"""Forward kinematics: where the links and the tool of a robot are, and how they move with its joints.

The pose of link i in the base frame follows along the tree (Abhishek et al., eq. 1),

.. math:: T_i = T_{p(i)} B_i M_i(q_i) A_i

with M the joint's motion about, or along, its z axis between the two constant frames B and A (`robot.Joint`). Passive
joints come from the active ones (`tree_motion`), whether they follow affinely or close a loop, and so does the
Jacobian: :math:`J = J_{tree} G` with the velocities of the tree joints :math:`\dot q_{tree} = G \dot q`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, as_samples, frozen, place_of, record
from dynident.dynamics.evaluate import tree_motion
from dynident.errors import InputError
from dynident.robot.model import BASE, Robot, Transform


@record
class Kinematics:
    """Poses of all links and of the tool in the base frame, and their Jacobians.

    The rows of a Jacobian are the velocity of the frame's origin and the angular velocity, both in base axes; its
    columns are the moving joints.

    Attributes:
        robot: The robot.
        q: (n_samples, n_joints) positions of its moving joints [rad or m].
        links: Name of each link, in the order of `robot.joints`.
        rotations: (n_samples, n_links, 3, 3); the columns are the axes of the link.
        origins: (n_samples, n_links, 3) [m].
        jacobians: (n_samples, n_links, 6, n_joints).
    """

    robot: Robot
    q: Array
    links: tuple[str, ...]
    rotations: Array
    origins: Array
    jacobians: Array

    @property
    def rotation(self) -> Array:
        """(n_samples, 3, 3) axes of the tool."""
        link, frame = self._tool
        return np.asarray(self.rotations[:, link] @ frame.rotation)

    @property
    def position(self) -> Array:
        """(n_samples, 3) origin of the tool [m]."""
        link, frame = self._tool
        return np.asarray(self.origins[:, link] + self.rotations[:, link] @ frame.translation)

    @property
    def jacobian(self) -> Array:
        """(n_samples, 6, n_joints) of the tool."""
        link, frame = self._tool
        return _move_along(self.jacobians[:, link], self.rotations[:, link] @ frame.translation)

    @property
    def pose(self) -> Array:
        """(n_samples, 4, 4) homogeneous transform of the tool."""
        return _homogeneous(self.rotation, self.position)

    def link_pose(self, name: str) -> Array:
        """(n_samples, 4, 4) homogeneous transform of a link, by its name."""
        link = place_of(name, self.links, "link")
        return _homogeneous(self.rotations[:, link], self.origins[:, link])

    @property
    def _tool(self) -> tuple[int, Transform]:
        if self.robot.tool is None:
            raise InputError(
                f"robot {self.robot.name} has several branches; name the tool (tool=..), or say in its file which link "
                "carries it (tool:)"
            )
        return self.robot.tool

    def __repr__(self) -> str:
        """A line, not the numbers."""
        return f"Kinematics({self.robot.name}: {len(self.q)} poses of {len(self.links)} links; {self.robot.tool_words})"


def forward_kinematics(robot: Robot, q: ArrayLike, *, tool: str | None = None) -> Kinematics:
    """Poses and Jacobians of all links and of the tool.

    Args:
        robot: The robot, a tree or with closed loops.
        q: Positions of the moving joints, (n_samples, n_joints) [rad or m].
        tool: Tool frame, a frame or link of the robot's file or X,Y,Z[,ROLL,PITCH,YAW] in the frame of the link that
            carries the tool (`Robot.with_tool`); default that of the robot.

    Raises:
        InputError: For a tool that is not there, or naming the sample at which a loop cannot be closed.
        SingularError: Naming the sample at which a loop does not determine its passive joints.
    """
    robot = robot if tool is None else robot.with_tool(tool)
    positions = as_samples(q, "q", robot.joint_names)
    motion = tree_motion(robot, positions)
    n_samples, n_links = motion.q.shape
    rotations = np.empty((n_samples, n_links, 3, 3))
    origins = np.empty((n_samples, n_links, 3))
    tree = np.zeros((n_samples, n_links, 6, n_links))
    for i, joint in enumerate(robot.joints):
        below, origin = np.broadcast_to(np.eye(3), (n_samples, 3, 3)), np.zeros((n_samples, 3))
        if joint.parent != BASE:
            below, origin = rotations[:, joint.parent], origins[:, joint.parent]
        base = origin
        origin = origin + below @ joint.before.translation
        axes = below @ joint.before.rotation
        own = np.zeros((n_samples, 6))
        if joint.kind == "prismatic":
            origin = origin + motion.q[:, i, None] * axes[:, :, 2]
            own[:, :3] = axes[:, :, 2]
        else:
            own[:, 3:] = axes[:, :, 2]
            axes = axes @ _turns(motion.q[:, i])
        after = axes @ joint.after.translation
        origins[:, i] = origin + after
        rotations[:, i] = axes @ joint.after.rotation
        if joint.parent != BASE:
            tree[:, i] = _move_along(tree[:, joint.parent], origins[:, i] - base)
        tree[:, i, :, i] = _move_along(own[:, :, None], after)[:, :, 0]
    return Kinematics(
        robot=robot,
        q=frozen(positions),
        links=tuple(joint.link for joint in robot.joints),
        rotations=frozen(rotations),
        origins=frozen(origins),
        jacobians=frozen(tree @ motion.G[:, None]),
    )


def roll_pitch_yaw(rotation: Array) -> Array:
    """(3,) angles of R = Rz(yaw) Ry(pitch) Rx(roll), as in URDF; where pitch is a right angle, roll is zero [rad]."""
    pitch = np.arctan2(-rotation[2, 0], np.hypot(rotation[0, 0], rotation[1, 0]))
    if np.hypot(rotation[0, 0], rotation[1, 0]) < 1e-9:
        return np.array([0.0, pitch, np.arctan2(-rotation[0, 1], rotation[1, 1])])
    return np.array(
        [np.arctan2(rotation[2, 1], rotation[2, 2]), pitch, np.arctan2(rotation[1, 0], rotation[0, 0])], dtype=float
    )


def quaternion(rotation: Array) -> Array:
    """(4,) x, y, z, w of a rotation matrix, w not negative."""
    # The eigenvector of Bar-Itzhack's matrix is exact near half turns too, where w alone would be rounding.
    xx, yy, zz = np.diag(rotation)
    K = np.array(
        [
            [xx - yy - zz, 0.0, 0.0, 0.0],
            [rotation[0, 1] + rotation[1, 0], yy - xx - zz, 0.0, 0.0],
            [rotation[0, 2] + rotation[2, 0], rotation[1, 2] + rotation[2, 1], zz - xx - yy, 0.0],
            [rotation[2, 1] - rotation[1, 2], rotation[0, 2] - rotation[2, 0], rotation[1, 0] - rotation[0, 1], 0.0],
        ]
    )
    K[3, 3] = xx + yy + zz
    x = np.linalg.eigh(K)[1][:, -1]
    return np.asarray(-x if x[3] < 0.0 else x)


def pose_as_dict(rotation: Array, position: Array) -> Mapping[str, list[float] | list[list[float]]]:
    """A pose as plain data: position [m], rpy [rad], quaternion (x, y, z, w) and rotation, row by row."""
    return {
        "position": position.tolist(),
        "rpy": roll_pitch_yaw(rotation).tolist(),
        "quaternion": quaternion(rotation).tolist(),
        "rotation": rotation.tolist(),
    }


def _turns(angles: Array) -> Array:
    """(n_samples, 3, 3) rotations about z."""
    c, s, zero, one = np.cos(angles), np.sin(angles), np.zeros_like(angles), np.ones_like(angles)
    return np.stack([c, -s, zero, s, c, zero, zero, zero, one], axis=-1).reshape(-1, 3, 3)


def _move_along(jacobian: Array, offset: Array) -> Array:
    """The Jacobian of a point that is fixed to the same body, `offset` (n_samples, 3) away: v + w x r."""
    moved = jacobian.copy()
    moved[:, :3] += np.cross(jacobian[:, 3:], offset[:, :, None], axis=1)
    return moved


def _homogeneous(rotation: Array, position: Array) -> Array:
    pose = np.zeros((len(position), 4, 4))
    pose[:, :3, :3], pose[:, :3, 3], pose[:, 3, 3] = rotation, position, 1.0
    return pose
