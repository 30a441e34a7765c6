"""The equations of closed loops, written once over any number type.

A loop is closed when two frames meet as far as the cut joint demands. Its rows are the offset of the second frame in
the first and the part of their rotation that the cut joint does not leave free; with them come their derivatives by
every tree joint and, for given velocities, their second time derivative at zero joint acceleration. Both are exact,
also where the loop is open. Offsets are divided by the size of the loop, so that all rows are of one kind.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.robot.algebra import (
    UNIT,
    ZERO,
    Frame,
    Matrix,
    Number,
    Vector,
    add,
    cross,
    mul,
    product,
    rotate,
    scale,
    snap_rounding,
    sub,
    transpose,
    unrotate,
    vadd,
    vsub,
    z_rotation,
)
from dynident.robot.model import BASE, Closure, CutJoint, Joint, Loop, Robot
from dynident.schema import LocatedReader

# Rows that must vanish: offsets x, y, z of the second frame; "axis" its z axis along the first one's, "turn" all axes.
_HELD: dict[CutJoint, tuple[str, ...]] = {
    "revolute": ("x", "y", "z", "axis"),
    "prismatic": ("x", "y", "turn"),
    "cylindrical": ("x", "y", "axis"),
    "ball": ("x", "y", "z"),
    "fixed": ("x", "y", "z", "turn"),
}
CUT_JOINTS = tuple(_HELD)
_SMALLEST = 1e-3  # [m] size of a loop whose frames are all in one place
Columns = tuple[Vector, Vector, Vector]  # a matrix by its columns


@dataclass(frozen=True)
class JointState:
    """State of a tree joint: rotation (cosine, sine) or displacement, velocity and acceleration."""

    cosine: Number
    sine: Number
    displacement: Number
    velocity: Number = 0.0
    acceleration: Number = 0.0


def joint_state(
    prismatic: bool, position: Number, functions: Any = math, velocity: Number = 0.0, acceleration: Number = 0.0
) -> JointState:
    """The state of a joint on any number type.

    Args:
        prismatic: Whether it slides.
        position: Its position [rad or m].
        functions: Cosine and sine of the number type; those of floats at right angles are exact.
        velocity, acceleration: Of the position.
    """
    if prismatic:
        return JointState(1.0, 0.0, position, velocity, acceleration)
    if isinstance(position, float):
        c, s = snap_rounding(math.cos(position)), snap_rounding(math.sin(position))
        return JointState(c, s, 0.0, velocity, acceleration)
    return JointState(functions.cos(position), functions.sin(position), 0.0, velocity, acceleration)


@dataclass(frozen=True)
class LoopRows:
    """The equations of one loop in one state.

    Attributes:
        residual: (n_rows,) zero where the loop is closed.
        jacobian: For each tree joint of the loop, (n_rows,) derivatives of the residual.
        drift: (n_rows,) second time derivative of the residual at zero joint acceleration.
    """

    residual: list[Number]
    jacobian: dict[int, list[Number]]
    drift: list[Number]


@dataclass
class _Point:
    """A frame on the way along a branch, in the frame where the branches part: pose, velocity, acceleration."""

    R: Matrix = UNIT
    p: Vector = ZERO
    w: Vector = ZERO
    dw: Vector = ZERO
    v: Vector = ZERO
    a: Vector = ZERO

    def carry(self, frame: Frame) -> None:
        """Go on to a frame fixed in this one."""
        self.move(rotate(self.R, frame[1]))
        self.R = product(self.R, frame[0])

    def move(self, r: Vector) -> None:
        """Go on to a point that moves with this one."""
        swing = cross(self.w, r)
        self.p = vadd(self.p, r)
        self.v = vadd(self.v, swing)
        self.a = vadd(self.a, vadd(cross(self.dw, r), cross(self.w, swing)))


Axis = tuple[Vector, Vector, bool]  # direction of a joint, a point on it, whether it slides


def loop_paths(loop: Loop, joints: Sequence[Joint]) -> tuple[list[int], list[int]]:
    """The tree joints from where the branches part to each of the two frames."""
    paths = []
    for link in loop.links:
        path: list[int] = []
        while link != BASE:
            path.insert(0, link)
            link = joints[link].parent
        paths.append(path)
    first, second = paths
    while first and second and first[0] == second[0]:
        first, second = first[1:], second[1:]
    return first, second


def loop_size(loop: Loop, joints: Sequence[Joint]) -> float:
    """The largest offset within a loop [m]."""
    path = [joints[i] for part in loop_paths(loop, joints) for i in part]
    frames = [*loop.frames, *(frame for joint in path for frame in (joint.before, joint.after))]
    return float(max(_SMALLEST, *(abs(frame.translation).max() for frame in frames)))


def n_rows(loop: Loop) -> int:
    """Number of rows of a loop."""
    return sum({"axis": 2, "turn": 3}.get(name, 1) for name in _HELD[loop.joint])


def loop_rows(loop: Loop, joints: Sequence[Joint], placed: Sequence[JointState]) -> LoopRows:
    """The equations of a loop.

    Args:
        loop: The loop.
        joints: All tree joints.
        placed: Where each of them stands.
    """
    (first, axes1), (second, axes2) = _walk_branches(loop, joints, placed)
    d = vsub(second.p, first.p)
    C = transpose(product(transpose(first.R), second.R))  # columns: axes of the second frame, seen in the first

    def selected(offset: Vector, turned: Columns) -> list[Number]:
        return _select_rows(loop, 1.0 / loop_size(loop, joints), offset, turned)

    jacobian: dict[int, list[Number]] = {}
    for side, axes in ((-1.0, axes1), (1.0, axes2)):
        # A joint of the first branch turns the first frame: seen from there, the second one turns the other way round.
        for joint, (axis, origin, slides) in axes.items():
            spin, move = (ZERO, axis) if slides else (axis, cross(axis, vsub(second.p, origin)))
            spin, move = (unrotate(first.R, scale(side, x)) for x in (spin, move))
            jacobian[joint] = selected(move, _cross_columns(spin, C))
    w, dv = vsub(second.w, first.w), vsub(second.v, first.v)
    swing = cross(first.w, d)
    offset = vadd(
        vsub(vsub(second.a, first.a), vadd(cross(first.dw, d), scale(2.0, cross(first.w, dv)))),
        cross(first.w, swing),
    )
    dw = vsub(vsub(second.dw, first.dw), cross(first.w, w))
    w, dw, offset = (unrotate(first.R, x) for x in (w, dw, offset))
    once = _cross_columns(w, C)
    bent: Columns = tuple(vadd(x, y) for x, y in zip(_cross_columns(dw, C), _cross_columns(w, once), strict=True))  # type: ignore[assignment]
    return LoopRows(selected(unrotate(first.R, d), C), jacobian, selected(offset, bent))


def joint_states(joints: Sequence[Joint], tree: Array) -> list[JointState]:
    """States at rest of all tree joints, from their positions (n_tree,)."""
    return [joint_state(joint.kind == "prismatic", float(x)) for joint, x in zip(joints, tree, strict=True)]


def loop_gap(loop: Loop, joints: Sequence[Joint], tree: Array) -> float:
    """The largest gap of a loop over tree positions (n_samples, n_tree) [m or rad].

    The two frames must share their origin and, turned about z if revolute, their z axis; a prismatic cut joint is free
    along z, not about it.
    """
    gaps = [0.0]
    for positions in tree:
        (first, _), (second, _) = _walk_branches(loop, joints, joint_states(joints, positions))
        axes, apart = np.asarray(first.R, np.float64), np.subtract(second.p, first.p)
        turned = np.asarray(second.R, np.float64) - axes
        if loop.joint == "prismatic":
            apart = apart - (apart @ axes[:, 2]) * axes[:, 2]
        else:
            turned = turned[:, 2]
        gaps.append(float(max(np.linalg.norm(apart), np.linalg.norm(turned))))
    return max(gaps)


def _walk_branches(
    loop: Loop, joints: Sequence[Joint], placed: Sequence[JointState]
) -> list[tuple[_Point, dict[int, Axis]]]:
    """The two frames of a loop, each with the axes of the joints on the way, seen from where the branches part."""
    return [
        _walk_branch(path, frame.frame(), joints, placed)
        for path, frame in zip(loop_paths(loop, joints), loop.frames, strict=True)
    ]


def _walk_branch(
    path: Sequence[int], end: Frame, joints: Sequence[Joint], placed: Sequence[JointState]
) -> tuple[_Point, dict[int, Axis]]:
    """The frame at the end of a branch, and the axes of the joints on the way."""
    point = _Point()
    axes: dict[int, Axis] = {}
    for index in path:
        joint, place = joints[index], placed[index]
        point.carry(joint.before.frame())
        axis = (point.R[0][2], point.R[1][2], point.R[2][2])
        along = scale(place.velocity, axis)
        slides = joint.kind == "prismatic"
        axes[index] = axis, point.p, slides
        if slides:
            point.move(scale(place.displacement, axis))
            point.v = vadd(point.v, along)
            point.a = vadd(point.a, scale(2.0, cross(point.w, along)))
        else:
            point.R = product(point.R, z_rotation(place.cosine, place.sine))
            point.dw = vadd(point.dw, cross(point.w, along))
            point.w = vadd(point.w, along)
        point.carry(joint.after.frame())
    point.carry(end)
    return point, axes


def _cross_columns(spin: Vector, columns: Columns) -> Columns:
    """spin x each column."""
    x, y, z = columns
    return cross(spin, x), cross(spin, y), cross(spin, z)


def _select_rows(loop: Loop, per_size: float, offset: Vector, turned: Columns) -> list[Number]:
    """The rows that the cut joint holds, from an offset and the columns of a rotation (or their derivatives)."""
    held = _HELD[loop.joint]
    rows = [mul(per_size, offset["xyz".index(name)]) for name in held if name in "xyz"]
    if "axis" in held:
        rows += [turned[2][0], turned[2][1]]
    if "turn" in held:
        pairs = (
            (turned[1][2], turned[2][1]),
            (turned[2][0], turned[0][2]),
            (turned[0][1], turned[1][0]),
        )
        rows += [mul(0.5, sub(a, b)) for a, b in pairs]
    return rows


def is_assembled(loop: Loop, joints: Sequence[Joint], placed: Sequence[JointState]) -> bool:
    """Whether the frames point the same way where the rows vanish; they also do with axes turned by half a turn."""
    (first, _), (second, _) = _walk_branches(loop, joints, placed)
    C = product(transpose(first.R), second.R)
    if "turn" in _HELD[loop.joint]:
        return bool(add(C[0][0], add(C[1][1], C[2][2])) > 1.0)
    return "axis" not in _HELD[loop.joint] or bool(C[2][2] > 0.0)


# ----------------------------------------------------------------------------------------------------------------------
# Whether loops can be assembled and moved as described, asked once when a robot is read.

LARGEST_STEP = 0.2  # [rad, or sizes of the loop] of Newton's method from a guess
_MOST_STEPS = 60
CLOSED = 1e-9  # residual, in sizes of the loop or rad
SINGULAR = 1e-5  # sine of the angle between what solved joints do to the loops
_NEAR = 0.5  # [rad, or sizes of the loop] from the branch as written to where the loop closes
_NUDGE = 1e-3  # [rad or sizes of the loop] by which active joints are moved


def check_closure(reader: LocatedReader, robot: Robot, closure: Closure) -> Closure:
    """The closure with its branch where the loops close.

    Raises:
        RobotFileError: When they do not close near the branch, do not determine the joints they are solved for, or
            hold active joints that should move independently.
    """
    words = "loop " + ", ".join(loop.name for loop in closure.loops)
    problem = _LoopProblem(robot, closure)
    solved, gap = problem.closed(closure.reference, closure.branch)
    found = ", ".join(f"{robot.joints[j].variable} = {x:.4g}" for j, x in zip(closure.solved, solved, strict=True))
    if not gap <= CLOSED or not problem.assembled(closure.reference, solved):
        raise reader.error(
            words,
            f"does not close near its branch: a gap of {gap:.3g} (in rad, or in sizes of the loop) remains at {found}; "
            "check lengths and signs, or give a branch at a pose that the machine can take",
        )
    moved = np.abs(solved - closure.branch) / problem.units
    if moved.max() > _NEAR:
        raise reader.error(
            words, f"its branch leads to {found}, far from what is written; write these if they are meant"
        )
    _check_ranks(reader, problem, closure.reference, solved, words)
    # Rounded, so that the start of every calculation is the same on every machine.
    return dataclasses.replace(closure, branch=np.round(solved, 9))


def _check_ranks(reader: LocatedReader, problem: _LoopProblem, q: Array, solved: Array, words: str) -> None:
    robot, closure = problem.robot, problem.closure
    _, by_active, own = problem.rows(q, solved)
    left, sizes, right = np.linalg.svd(own * problem.units)
    if np.count_nonzero(sizes > SINGULAR) < len(solved):
        name = robot.joints[closure.solved[int(np.argmax(np.abs(right[-1])))]].variable
        raise reader.error(
            words,
            f"does not determine {name} at its branch; solve for fewer joints, or give a pose that is not singular",
        )
    held = left[:, len(solved) :].T @ by_active
    for column, joint in enumerate(robot.active):
        if np.abs(held[:, column]).max(initial=0.0) > 1e-6:
            name = robot.joints[joint].variable
            raise reader.error(words, f"holds {name} fast; name more passive joints under 'solve', or check the axes")
    if not np.abs(by_active).max() > 0.0:
        raise reader.error(words, "no active joint moves it; check the links of its frames")
    for direction in np.eye(len(q)) * _NUDGE:
        _, gap = problem.closed(q + direction, solved)
        if not gap <= CLOSED:
            raise reader.error(words, f"opens by {gap:.3g} when joints move; check that its axes are parallel or meet")


class _LoopProblem:
    """The loops of a robot as functions of plain numbers."""

    def __init__(self, robot: Robot, closure: Closure) -> None:
        self.robot, self.closure = robot, closure
        size = max(loop_size(loop, robot.joints) for loop in closure.loops)
        self.units = np.array([size if robot.joints[j].kind == "prismatic" else 1.0 for j in closure.solved])

    def _placements(self, q: Array, solved: Array) -> list[JointState]:
        tree = self.robot.follow @ q + self.closure.follow @ solved + self.robot.follow_offset
        return joint_states(self.robot.joints, tree)

    def assembled(self, q: Array, solved: Array) -> bool:
        """Whether all loops have their frames the right way round."""
        placed = self._placements(q, solved)
        return all(is_assembled(loop, self.robot.joints, placed) for loop in self.closure.loops)

    def rows(self, q: Array, solved: Array) -> tuple[Array, Array, Array]:
        """Residual (n_rows,), and its derivatives by active and by solved joints, (n_rows, n) each."""
        placed = self._placements(q, solved)
        residual: list[float] = []
        jacobian = []
        for loop in self.closure.loops:
            rows = loop_rows(loop, self.robot.joints, placed)
            block = np.zeros((len(rows.residual), len(self.robot.joints)))
            for joint, derivative in rows.jacobian.items():
                block[:, joint] = derivative
            residual += rows.residual
            jacobian.append(block)
        by_tree = np.concatenate(jacobian)
        return np.array(residual), by_tree @ self.robot.follow, by_tree @ self.closure.follow

    def closed(self, q: Array, solved: Array) -> tuple[Array, float]:
        """Solved positions at which the loops close, by Newton's method with short steps, and the gap that is left."""
        for _ in range(_MOST_STEPS):
            residual, _, own = self.rows(q, solved)
            step = np.linalg.lstsq(own * self.units, -residual, rcond=1e-9)[0]
            longest = float(np.abs(step).max())
            solved = solved + step * self.units * min(1.0, LARGEST_STEP / max(longest, 1e-300))
            if longest < 1e-14:
                break
        return solved, float(np.abs(self.rows(q, solved)[0]).max())
