"""A robot's equations on any number type: the recursion, the actuation map and the terms put together."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from dynident.dynamics.recursion import (
    JointState,
    Motion,
    TreeLink,
    forward,
    inertia_wrench,
    joint_torques,
    kinetic_columns,
    mass_matrix,
    potential_columns,
    torque_columns,
    twists,
)
from dynident.dynamics.terms import Term
from dynident.robot.algebra import ZERO, Number, Vector, add, cross, mul, rotate, snapped, sub, total, vadd
from dynident.robot.model import Element, Robot


class Functions(Protocol):
    """The functions of a number type that arithmetic operators do not give."""

    def sin(self, x: Number) -> Number:
        """sin(x)."""

    def cos(self, x: Number) -> Number:
        """cos(x)."""

    def sign(self, x: Number) -> Number:
        """-1, 0 or 1."""

    def tanh(self, x: Number) -> Number:
        """tanh(x)."""


class NumpyFunctions:
    """Functions for floats and NumPy arrays."""

    sin, cos, sign, tanh = (
        staticmethod(np.sin),
        staticmethod(np.cos),
        staticmethod(np.sign),
        staticmethod(np.tanh),
    )


class Actuation:
    """The map from the moving joints' positions to tree joints, and of torques back to the actuated coordinates.

    Attributes:
        follow: (n_tree, n_moving), tree speeds from the speeds of the moving joints.
        rest: (n_tree,), tree positions where the moving joints are at zero.
        rows: Actuated coordinates that keep a row, those of the moving joints' own motors.
        tree_to_rows: (n_rows, n_tree), torque at the rows from tree torques, T^-T G'.
        speeds: (n_active, n_moving), speeds of all actuated coordinates from those of the moving joints.
    """

    def __init__(self, robot: Robot) -> None:
        moving = list(robot.moving)
        held = np.zeros(len(robot.active))
        for index, position in robot.locked.items():
            held[index] = position
        self.follow = robot.follow[:, moving]
        self.rest = robot.follow @ held + robot.follow_offset
        self.rows = moving
        back = np.linalg.solve(robot.coupling.T, robot.follow.T)
        back[np.abs(back) < 1e-14] = 0.0
        self.tree_to_rows = back[moving]
        self.speeds = robot.coupling[:, moving]


@dataclass
class State:
    """The robot in one state (or a batch of states) on one number type; what is derived is computed once.

    Attributes:
        robot: The robot.
        functions: Functions of the number type.
        speed, acceleration: Of each actuated coordinate.
        tree: Geometry of the links.
        joints: States of the tree joints.
        tree_to_rows: Torque at the rows from tree torques.
    """

    robot: Robot
    functions: Functions
    speed: list[Number]
    acceleration: list[Number]
    tree: list[TreeLink]
    joints: list[JointState]
    tree_to_rows: list[list[float]]
    rows: list[int]
    gravity: Vector

    @property
    def n_rows(self) -> int:
        """Number of rows: moving joints."""
        return len(self.rows)

    @functools.cached_property
    def motions(self) -> list[Motion]:
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

    def along(self, element: Element, what: Literal["speed", "acceleration"]) -> Number:
        """An element's own speed or acceleration, e · da or e · dda."""
        values = self.speed if what == "speed" else self.acceleration
        return total(*(mul(float(e), x) for e, x in zip(element.velocity, values, strict=True)))

    def rows_of(self, element: Element) -> list[float]:
        """The element's torque direction s at the rows."""
        return [float(element.torque[row]) for row in self.rows]

    def to_rows(self, torques: Sequence[Number]) -> list[Number]:
        """Torque at the rows from the torques of the tree joints."""
        return [total(*(mul(w, x) for w, x in zip(row, torques, strict=True))) for row in self.tree_to_rows]


def make_state(
    robot: Robot,
    functions: Functions,
    q: Sequence[Number],
    dq: Sequence[Number],
    ddq: Sequence[Number],
    *,
    lengths: Mapping[str, Number] | None = None,
    weightless: bool = False,
) -> State:
    """The state of a robot from the positions, speeds and accelerations of its moving joints.

    Args:
        robot: The robot.
        functions: Functions of the number type.
        q: Positions of the moving joints, in the order of `robot.joint_names`; likewise dq, ddq.
        dq: Speeds.
        ddq: Accelerations.
        lengths: Other values (or numbers of another type) for the robot's named lengths.
        weightless: Leave gravity out.
    """
    actuation = Actuation(robot)

    def mapped(matrix: np.ndarray[Any, Any], values: Sequence[Number]) -> list[Number]:
        return [total(*(mul(float(m), x) for m, x in zip(row, values, strict=True))) for row in matrix]

    frames = [(joint.before.frame(), joint.after.frame()) for joint in robot.joints]
    if lengths is not None and robot.geometry is not None:
        frames = robot.geometry.frames(lengths)
    tree = [
        TreeLink(joint.parent, joint.kind == "prismatic", before, after)
        for joint, (before, after) in zip(robot.joints, frames, strict=True)
    ]
    positions = [add(x, float(rest)) for x, rest in zip(mapped(actuation.follow, q), actuation.rest, strict=True)]
    joints = [
        _joint_state(link.prismatic, position, speed, acceleration, functions)
        for link, position, speed, acceleration in zip(
            tree, positions, mapped(actuation.follow, dq), mapped(actuation.follow, ddq), strict=True
        )
    ]
    gx, gy, gz = (float(x) for x in robot.gravity)
    return State(
        robot=robot,
        functions=functions,
        speed=mapped(actuation.speeds, dq),
        acceleration=mapped(actuation.speeds, ddq),
        tree=tree,
        joints=joints,
        tree_to_rows=[[float(x) for x in row] for row in actuation.tree_to_rows],
        rows=actuation.rows,
        gravity=ZERO if weightless else (gx, gy, gz),
    )


def _joint_state(
    prismatic: bool, position: Number, speed: Number, acceleration: Number, functions: Functions
) -> JointState:
    if prismatic:
        return JointState(1.0, 0.0, position, speed, acceleration)
    if isinstance(position, float):
        return JointState(snapped(math.cos(position)), snapped(math.sin(position)), 0.0, speed, acceleration)
    return JointState(functions.cos(position), functions.sin(position), 0.0, speed, acceleration)


def regressor_entries(state: State, terms: Sequence[Term]) -> dict[tuple[int, int], Number]:
    """Entries (row, column) of the regressor that are not plain zero."""
    entries: dict[tuple[int, int], Number] = {}
    first = 0
    for term in terms:
        for row, column, number in term.torque(state):
            if not (isinstance(number, float) and number == 0.0):
                entries[row, first + column] = add(entries.get((row, first + column), 0.0), number)
        first += len(term.columns(state.robot))
    return entries


def energy_entries(state: State, terms: Sequence[Term], kind: Literal["kinetic", "potential"]) -> dict[int, Number]:
    """Entries (column) of an energy regressor that are not plain zero."""
    entries: dict[int, Number] = {}
    first = 0
    for term in terms:
        for column, number in getattr(term, kind)(state):
            if not (isinstance(number, float) and number == 0.0):
                entries[first + column] = number
        first += len(term.columns(state.robot))
    return entries


def inverse_dynamics(
    state: State,
    terms: Sequence[Term],
    chi: Sequence[Number],
    tool_force: Vector = ZERO,
    tool_moment: Vector = ZERO,
) -> list[Number]:
    """Torque at the rows for given parameters, one number per column of `terms`.

    The tool exerts `tool_force` and `tool_moment` (Khosla & Kanade eq. 7-8), in the tool frame.
    """
    robot = state.robot
    torques: list[Number] = [0.0] * state.n_rows
    first = 0
    wrenches = [(ZERO, ZERO) for _ in robot.joints]
    for term in terms:
        count = len(term.columns(robot))
        own = chi[first : first + count]
        first += count
        if term.name == "rigid":
            wrenches = [
                inertia_wrench(own[10 * link : 10 * link + 10], motion) for link, motion in enumerate(state.motions)
            ]
            continue
        for row, column, number in term.torque(state):
            torques[row] = add(torques[row], mul(own[column], number))
    if robot.tool is not None:
        link, frame = robot.tool
        axes, position = frame.frame()
        force, moment = rotate(axes, tool_force), rotate(axes, tool_moment)
        wrenches[link] = (
            vadd(wrenches[link][0], force),
            vadd(wrenches[link][1], vadd(moment, cross(position, force))),
        )
    rigid = state.to_rows(joint_torques(state.tree, state.joints, wrenches))
    return [add(a, b) for a, b in zip(rigid, torques, strict=True)]


def mass_entries(state: State, terms: Sequence[Term], chi: Sequence[Number]) -> list[list[Number]]:
    """Mass matrix over the moving joints: power of the torque at the rows along the joints' speeds.

    M = F' M_tree F + sum Ia (e·s'); with F from the moving joints to the tree.
    """
    actuation = Actuation(state.robot)
    n = state.n_rows
    matrix: list[list[Number]] = [[0.0] * n for _ in range(n)]
    first = 0
    for term in terms:
        columns = term.columns(state.robot)
        own = chi[first : first + len(columns)]
        first += len(columns)
        if term.name == "rigid":
            bodies = [own[10 * i : 10 * i + 10] for i in range(len(state.tree))]
            tree = mass_matrix(state.tree, state.joints, bodies)
            for (i, j), number in tree.items():
                for a in range(n):
                    for b in range(a, n):
                        weight = float(actuation.follow[i, a] * actuation.follow[j, b])
                        if i != j:
                            weight += float(actuation.follow[j, a] * actuation.follow[i, b])
                        matrix[a][b] = add(matrix[a][b], mul(weight, number))
        elif term.name == "Ia":
            elements = [element for element in state.robot.elements if "Ia" in element.names]
            for value, element in zip(own, elements, strict=True):
                turn = element.velocity @ actuation.speeds
                push = element.torque @ actuation.speeds
                for a in range(n):
                    for b in range(a, n):
                        matrix[a][b] = add(matrix[a][b], mul(float(push[a] * turn[b]), value))
    for a in range(n):
        for b in range(a):
            matrix[a][b] = matrix[b][a]
    return matrix


def solve_positive(matrix: list[list[Number]], right: list[Number]) -> list[Number]:
    """x with matrix x = right for a symmetric positive definite matrix, by L D L' in straight-line form."""
    n = len(right)
    lower: list[list[Number]] = [[0.0] * n for _ in range(n)]
    inverse: list[Number] = [0.0] * n
    scaled: list[list[Number]] = [[0.0] * n for _ in range(n)]
    for j in range(n):
        pivot = sub(matrix[j][j], total(*(mul(lower[j][k], scaled[j][k]) for k in range(j))))
        inverse[j] = 1.0 / pivot
        for i in range(j + 1, n):
            rest = sub(matrix[i][j], total(*(mul(scaled[i][k], lower[j][k]) for k in range(j))))
            scaled[i][j] = rest
            lower[i][j] = mul(rest, inverse[j])
    x = list(right)
    for i in range(n):
        x[i] = sub(x[i], total(*(mul(lower[i][k], x[k]) for k in range(i))))
    x = [mul(value, inverse[i]) for i, value in enumerate(x)]
    for i in range(n - 1, -1, -1):
        x[i] = sub(x[i], total(*(mul(lower[k][i], x[k]) for k in range(i + 1, n))))
    return x
