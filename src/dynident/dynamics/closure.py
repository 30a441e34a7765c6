"""Loops that are not affine, in one state on any number type: velocities and accelerations of what they are solved for.

Where the loops close, c(q, s) = 0, the solved joints s follow the active ones q with ds = G dq and
dds = G ddq + h, where G = -J_s^+ J_q and h = dG/dt dq = -J_s^+ (d²c/dt² at zero acceleration). The least-squares
solution serves loops with more rows than they need, such as plane ones described in space.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.errors import InputError
from dynident.robot.algebra import Functions, Number, add, is_number, mul, sub, total
from dynident.robot.loops import LoopRows, joint_state, loop_rows
from dynident.robot.model import Closure, Robot

Vectors = list[list[Number]]


@dataclass(frozen=True)
class LoopMotion:
    """The joints that loops are solved for.

    Attributes:
        velocity, acceleration: Of each of them.
        jacobian: (n_solved, n_active), G.
    """

    velocity: list[Number]
    acceleration: list[Number]
    jacobian: Vectors


def orthogonal_directions(columns: Vectors) -> tuple[Vectors, list[Number]]:
    """Directions that are new in each column, not normalized (no square root needed), and their squared lengths."""
    directions: Vectors = []
    squares: list[Number] = []
    for column in columns:
        rest = column
        for direction, square in zip(directions, squares, strict=True):
            rest = _without(rest, direction, _along(rest, direction, square))
        directions.append(rest)
        squares.append(_dot(rest, rest))
    return directions, squares


def least_squares(columns: Vectors, right: list[Number]) -> list[Number]:
    """x that makes `columns` x come nearest to `right`, by modified Gram-Schmidt in straight-line form."""
    directions, squares = orthogonal_directions(columns)
    shares: list[Number] = []
    rest = right
    for direction, square in zip(directions, squares, strict=True):
        shares.append(_along(rest, direction, square))
        rest = _without(rest, direction, shares[-1])
    x: list[Number] = [0.0] * len(columns)
    for i in range(len(columns) - 1, -1, -1):
        known = [mul(x[j], _overlap(columns[j], directions, squares, i)) for j in range(i + 1, len(columns))]
        x[i] = sub(shares[i], total(*known))
    return x


def _overlap(column: list[Number], directions: Vectors, squares: list[Number], i: int) -> Number:
    """The share of direction i in a column, once those before it are taken out."""
    rest = column
    for direction, square in zip(directions[:i], squares[:i], strict=True):
        rest = _without(rest, direction, _along(rest, direction, square))
    return _along(rest, directions[i], squares[i])


def _dot(a: Sequence[Number], b: Sequence[Number]) -> Number:
    return total(*(mul(x, y) for x, y in zip(a, b, strict=True)))


def _along(a: list[Number], direction: list[Number], square: Number) -> Number:
    share = _dot(a, direction)
    return 0.0 if is_number(share, 0) else share / square


def _without(a: list[Number], direction: list[Number], share: Number) -> list[Number]:
    return [sub(x, mul(share, y)) for x, y in zip(a, direction, strict=True)]


def map_values(matrix: np.ndarray[Any, Any], values: Sequence[Number]) -> list[Number]:
    """matrix @ values for a matrix of constants."""
    return [total(*(mul(float(m), x) for m, x in zip(row, values, strict=True))) for row in matrix]


def closure_of(robot: Robot) -> Closure:
    """The loops of a robot that has some."""
    if robot.closure is None:
        raise InputError(f"robot {robot.name} has no loops that are closed numerically")
    return robot.closure


def rows_of_loops(
    robot: Robot, functions: Functions, positions: Sequence[Number], velocities: Sequence[Number] | None = None
) -> list[LoopRows]:
    """The equations of all loops from tree positions and velocities."""
    moves = [0.0] * len(positions) if velocities is None else velocities
    placed = [
        joint_state(joint.kind == "prismatic", x, functions, velocity)
        for joint, x, velocity in zip(robot.joints, positions, moves, strict=True)
    ]
    return [loop_rows(loop, robot.joints, placed) for loop in closure_of(robot).loops]


def jacobian_columns(rows: Sequence[LoopRows], follow: np.ndarray[Any, Any]) -> Vectors:
    """Derivatives of all rows by each coordinate that tree joints follow, from their derivatives by tree joints."""
    columns: Vectors = []
    for weights in follow.T:
        column: list[Number] = []
        for loop in rows:
            sums: list[Number] = [0.0] * len(loop.residual)
            for joint, derivative in loop.jacobian.items():
                sums = [add(x, mul(float(weights[joint]), y)) for x, y in zip(sums, derivative, strict=True)]
            column += sums
        columns.append(column)
    return columns


def stack_rows(rows: Sequence[LoopRows], part: Callable[[LoopRows], list[Number]]) -> list[Number]:
    """One part of all loops, loop after loop."""
    return [x for loop in rows for x in part(loop)]


def solved_motion(
    robot: Robot,
    functions: Functions,
    positions: Sequence[Number],
    dq: Sequence[Number],
    ddq: Sequence[Number],
) -> LoopMotion:
    """How the solved joints move.

    Args:
        robot: A robot with numerically closed loops.
        functions: Functions of the number type.
        positions: Of all tree joints, at which the loops are closed.
        dq: Velocities of the moving joints.
        ddq: Their accelerations.
    """
    closure, moving = closure_of(robot), list(robot.moving)
    rows = rows_of_loops(robot, functions, positions)
    own = jacobian_columns(rows, closure.follow)
    by_active = [least_squares(own, [mul(-1.0, x) for x in column]) for column in jacobian_columns(rows, robot.follow)]
    jacobian = [[by_active[i][k] for i in range(len(robot.active))] for k in range(len(own))]
    velocity = [_dot([row[i] for i in moving], dq) for row in jacobian]
    tree = [
        add(x, y)
        for x, y in zip(map_values(robot.follow[:, moving], dq), map_values(closure.follow, velocity), strict=True)
    ]
    drift = stack_rows(rows_of_loops(robot, functions, positions, tree), lambda loop: loop.drift)
    bent = least_squares(own, [mul(-1.0, x) for x in drift])
    acceleration = [add(_dot([row[i] for i in moving], ddq), x) for row, x in zip(jacobian, bent, strict=True)]
    return LoopMotion(velocity, acceleration, jacobian)


def closing_outputs(
    robot: Robot, functions: Functions, q: Sequence[Number], solved: Sequence[Number]
) -> tuple[list[Number], list[Number], list[Number], Vectors]:
    """What a Newton step needs, of a robot without locked joints.

    Returns:
        Residuals of all rows; the step to add to the solved positions; squared pivots, which vanish at singular poses;
        the Jacobian G (n_solved, n_active).
    """
    closure = closure_of(robot)
    follow = np.column_stack([robot.follow, closure.follow])
    positions = [
        add(x, float(x0)) for x, x0 in zip(map_values(follow, [*q, *solved]), robot.follow_offset, strict=True)
    ]
    rows = rows_of_loops(robot, functions, positions)
    own = jacobian_columns(rows, closure.follow)
    residual = stack_rows(rows, lambda loop: loop.residual)
    step = least_squares(own, [mul(-1.0, x) for x in residual])
    columns = jacobian_columns(rows, robot.follow)
    by_active = [least_squares(own, [mul(-1.0, x) for x in column]) for column in columns]
    jacobian = [[by_active[i][k] for i in range(len(q))] for k in range(len(own))]
    return residual, step, orthogonal_directions(own)[1], jacobian
