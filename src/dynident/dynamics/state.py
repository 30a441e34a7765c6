"""A robot in one state, on any number type: the actuation map, and all that terms see of the motion."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from dynident.dynamics.closure import LoopMotion, closure_of, map_values, solved_motion
from dynident.dynamics.recursion import (
    LinkMotion,
    TreeLink,
    forward,
    kinetic_columns,
    potential_columns,
    torque_columns,
    twists,
)
from dynident.errors import InputError
from dynident.robot.algebra import ZERO, Functions, Number, Vector, add, mul, total
from dynident.robot.loops import JointState, joint_state
from dynident.robot.model import Element, Robot


class Actuation:
    """The map from the moving joints' positions to tree joints, and of torques back to the actuated coordinates.

    Attributes:
        follow: (n_tree, n_moving), tree velocities from the velocities of the moving joints.
        rest: (n_tree,), tree positions where the moving joints are at zero.
        rows: Actuated coordinates that keep a row, those of the moving joints' own motors.
        tree_to_rows: (n_rows, n_tree), torque at the rows from tree torques, T^-T G'.
        velocities: (n_active, n_moving), velocities of all actuated coordinates from those of the moving joints.

    What loops add that are closed numerically depends on the pose and is added by `make_state`.
    """

    def __init__(self, robot: Robot) -> None:
        moving = list(robot.moving)
        self.follow = robot.follow[:, moving]
        self.rest = robot.rest_positions
        self.rows = moving
        back = np.linalg.solve(robot.coupling.T, robot.follow.T)
        back[np.abs(back) < 1e-14] = 0.0
        self.tree_to_rows = back[moving]
        self.velocities = robot.coupling[:, moving]


@dataclass
class State:
    """The robot in one state (or a batch of states) on one number type; what is derived is computed once.

    Attributes:
        robot: The robot.
        functions: Functions of the number type.
        velocity, acceleration: Of each actuated coordinate.
        tree: Geometry of the links.
        positions: Of the tree joints.
        joints: Their states.
        follow: (n_tree, n_rows), velocities of the tree joints from those of the moving joints.
        tree_to_rows: Torque at the rows from tree torques.
        solved: The joints that loops are solved for, None without any.
        solved_to_rows: (n_rows, n_solved), torque at the rows from theirs.
    """

    robot: Robot
    functions: Functions
    velocity: list[Number]
    acceleration: list[Number]
    tree: list[TreeLink]
    positions: list[Number]
    joints: list[JointState]
    follow: list[list[Number]]
    tree_to_rows: list[list[Number]]
    rows: list[int]
    gravity: Vector
    solved: LoopMotion | None = None
    solved_to_rows: list[list[Number]] = field(default_factory=list)

    @property
    def n_rows(self) -> int:
        """Number of rows: moving joints."""
        return len(self.rows)

    @functools.cached_property
    def motions(self) -> list[LinkMotion]:
        """Motion of every link."""
        return forward(self.tree, self.joints, self.gravity)

    def rigid_columns(self) -> list[dict[int, list[Number]]]:
        """For each link, its ten torque columns at every tree joint on its path."""
        paths = twists(self.tree, self.joints)
        return [
            {joint: torque_columns(motion, twist) for joint, twist in path.items()}
            for motion, path in zip(self.motions, paths, strict=True)
        ]

    def kinetic_columns(self) -> list[list[Number]]:
        """Each link's ten kinetic energy columns."""
        return [kinetic_columns(motion) for motion in self.motions]

    def potential_columns(self) -> list[list[Number]]:
        """Each link's ten potential energy columns."""
        return potential_columns(self.tree, self.joints, self.gravity)

    def along(self, element: Element, what: Literal["velocity", "acceleration"]) -> Number:
        """An element's own velocity or acceleration, e · da or e · dda."""
        values = self.velocity if what == "velocity" else self.acceleration
        parts = [mul(float(e), x) for e, x in zip(element.velocity, values, strict=True)]
        if self.solved is not None:
            parts += [mul(float(e), x) for e, x in zip(element.solved, getattr(self.solved, what), strict=True)]
        return total(*parts)

    def rows_of(self, element: Element) -> list[Number]:
        """The element's torque direction s at the rows."""
        rows: list[Number] = [float(element.torque[row]) for row in self.rows]
        if self.solved is None:
            return rows
        return [add(x, y) for x, y in zip(rows, _times(self.solved_to_rows, list(element.solved)), strict=True)]

    def to_rows(self, torques: Sequence[Number]) -> list[Number]:
        """Torque at the rows from the torques of the tree joints."""
        return _times(self.tree_to_rows, torques)


def _times(matrix: Sequence[Sequence[Number]], values: Sequence[Number]) -> list[Number]:
    return [total(*(mul(w, x) for w, x in zip(row, values, strict=True))) for row in matrix]


def make_state(
    robot: Robot,
    functions: Functions,
    q: Sequence[Number],
    dq: Sequence[Number],
    ddq: Sequence[Number],
    *,
    solved: Sequence[Number] | None = None,
    lengths: Mapping[str, Number] | None = None,
    weightless: bool = False,
) -> State:
    """The state of a robot from the positions, velocities and accelerations of its moving joints.

    Args:
        robot: The robot.
        functions: Functions of the number type.
        q: Positions of the moving joints, in the order of `robot.joint_names`; likewise dq, ddq.
        dq: Velocities.
        ddq: Accelerations.
        solved: Positions of the joints that loops are solved for, at which the loops are closed.
        lengths: Other values (or numbers of another type) for the robot's named lengths.
        weightless: Leave gravity out.
    """
    actuation = Actuation(robot)
    frames = [(joint.before.frame(), joint.after.frame()) for joint in robot.joints]
    if lengths is not None and robot.geometry is not None:
        frames = robot.geometry.frames(lengths)
    tree = [
        TreeLink(joint.parent, joint.kind == "prismatic", before, after)
        for joint, (before, after) in zip(robot.joints, frames, strict=True)
    ]
    positions = [add(x, float(rest)) for x, rest in zip(map_values(actuation.follow, q), actuation.rest, strict=True)]
    velocities, accelerations = map_values(actuation.follow, dq), map_values(actuation.follow, ddq)
    follow: list[list[Number]] = [[float(x) for x in row] for row in actuation.follow]
    tree_to_rows: list[list[Number]] = [[float(x) for x in row] for row in actuation.tree_to_rows]
    motion: LoopMotion | None = None
    solved_to_rows: list[list[Number]] = []
    if robot.closure is not None:
        if solved is None:
            raise InputError(f"the loops of robot {robot.name} have no closed form; they are closed sample by sample")
        own = robot.closure.follow
        positions = _sums(positions, map_values(own, solved))
        motion = solved_motion(robot, functions, positions, dq, ddq)
        velocities = _sums(velocities, map_values(own, motion.velocity))
        accelerations = _sums(accelerations, map_values(own, motion.acceleration))
        follow, tree_to_rows, solved_to_rows = _with_loops(robot, motion, follow, tree_to_rows)
    joints = [
        joint_state(link.prismatic, position, functions, velocity, acceleration)
        for link, position, velocity, acceleration in zip(tree, positions, velocities, accelerations, strict=True)
    ]
    gx, gy, gz = (float(x) for x in robot.gravity)
    return State(
        robot=robot,
        functions=functions,
        velocity=map_values(actuation.velocities, dq),
        acceleration=map_values(actuation.velocities, ddq),
        tree=tree,
        positions=positions,
        joints=joints,
        follow=follow,
        tree_to_rows=tree_to_rows,
        rows=actuation.rows,
        gravity=ZERO if weightless else (gx, gy, gz),
        solved=motion,
        solved_to_rows=solved_to_rows,
    )


def _sums(a: Sequence[Number], b: Sequence[Number]) -> list[Number]:
    return [add(x, y) for x, y in zip(a, b, strict=True)]


Rows = list[list[Number]]


def _with_loops(robot: Robot, motion: LoopMotion, follow: Rows, tree_to_rows: Rows) -> tuple[Rows, Rows, Rows]:
    """What loops add to the map from moving joints to the tree and to that of torques back; torques of solved joints.

    With s the solved joints and G = ds/dq, the tree follows by F + F_s G and torques come back by T^-T (F + F_s G)'.
    """
    own, moving = closure_of(robot).follow, list(robot.moving)
    back = np.linalg.inv(robot.coupling).T[moving]
    back[np.abs(back) < 1e-14] = 0.0
    by_active = [list(column) for column in zip(*motion.jacobian, strict=True)]  # (n_active, n_solved)
    solved_to_rows = [
        [map_values(row[None], [column[k] for column in by_active])[0] for k in range(own.shape[1])] for row in back
    ]
    follow = [_sums(row, [map_values(own[j][None], by_active[i])[0] for i in moving]) for j, row in enumerate(follow)]
    tree_to_rows = [_sums(row, map_values(own, part)) for row, part in zip(tree_to_rows, solved_to_rows, strict=True)]
    return follow, tree_to_rows, solved_to_rows
