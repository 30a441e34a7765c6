"""The equations of closed loops, written once over any number type.

A loop is closed when two frames meet as far as the cut joint demands. Its rows are the offset of the second frame in
the first and the part of their rotation that the cut joint does not leave free; with them come their derivatives by
every tree joint and, for given speeds, their second time derivative at zero joint acceleration. Both are exact, also
where the loop is open. Offsets are divided by the size of the loop, so that all rows are of one kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    sub,
    transpose,
    unrotate,
    vadd,
    vsub,
    z_rotation,
)
from dynident.robot.model import BASE, CutJoint, Joint, Loop

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
class Placement:
    """Where a joint stands: cosine and sine of its angle, or its displacement; and its speed."""

    cosine: Number
    sine: Number
    displacement: Number
    speed: Number = 0.0


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
    """A frame on the way along a branch, in the frame where the branches part: pose, speed, acceleration."""

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


def loop_rows(loop: Loop, joints: Sequence[Joint], placed: Sequence[Placement]) -> LoopRows:
    """The equations of a loop.

    Args:
        loop: The loop.
        joints: All tree joints.
        placed: Where each of them stands.
    """
    (first, axes1), (second, axes2) = (
        _walked(path, frame.frame(), joints, placed)
        for path, frame in zip(loop_paths(loop, joints), loop.frames, strict=True)
    )
    d = vsub(second.p, first.p)
    C = transpose(product(transpose(first.R), second.R))  # columns: axes of the second frame, seen in the first

    def selected(offset: Vector, turned: Columns) -> list[Number]:
        return _selected(loop, 1.0 / loop_size(loop, joints), offset, turned)

    jacobian: dict[int, list[Number]] = {}
    for side, axes in ((-1.0, axes1), (1.0, axes2)):
        # A joint of the first branch turns the first frame: seen from there, the second one turns the other way round.
        for joint, (axis, origin, slides) in axes.items():
            spin, move = (ZERO, axis) if slides else (axis, cross(axis, vsub(second.p, origin)))
            spin, move = (unrotate(first.R, scale(side, x)) for x in (spin, move))
            jacobian[joint] = selected(move, _turned(spin, C))
    w, dv = vsub(second.w, first.w), vsub(second.v, first.v)
    swing = cross(first.w, d)
    offset = vadd(
        vsub(vsub(second.a, first.a), vadd(cross(first.dw, d), scale(2.0, cross(first.w, dv)))),
        cross(first.w, swing),
    )
    dw = vsub(vsub(second.dw, first.dw), cross(first.w, w))
    w, dw, offset = (unrotate(first.R, x) for x in (w, dw, offset))
    once = _turned(w, C)
    bent: Columns = tuple(vadd(x, y) for x, y in zip(_turned(dw, C), _turned(w, once), strict=True))  # type: ignore[assignment]
    return LoopRows(selected(unrotate(first.R, d), C), jacobian, selected(offset, bent))


def _walked(
    path: Sequence[int], end: Frame, joints: Sequence[Joint], placed: Sequence[Placement]
) -> tuple[_Point, dict[int, Axis]]:
    """The frame at the end of a branch, and the axes of the joints on the way."""
    point = _Point()
    axes: dict[int, Axis] = {}
    for index in path:
        joint, place = joints[index], placed[index]
        point.carry(joint.before.frame())
        axis = (point.R[0][2], point.R[1][2], point.R[2][2])
        along = scale(place.speed, axis)
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


def _turned(spin: Vector, columns: Columns) -> Columns:
    """spin x each column."""
    x, y, z = columns
    return cross(spin, x), cross(spin, y), cross(spin, z)


def _selected(loop: Loop, per_size: float, offset: Vector, turned: Columns) -> list[Number]:
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


def is_assembled(loop: Loop, joints: Sequence[Joint], placed: Sequence[Placement]) -> bool:
    """Whether the frames point the same way where the rows vanish; they also do with axes turned by half a turn."""
    (first, _), (second, _) = (
        _walked(path, frame.frame(), joints, placed)
        for path, frame in zip(loop_paths(loop, joints), loop.frames, strict=True)
    )
    C = product(transpose(first.R), second.R)
    if "turn" in _HELD[loop.joint]:
        return bool(add(C[0][0], add(C[1][1], C[2][2])) > 1.0)
    return "axis" not in _HELD[loop.joint] or bool(C[2][2] > 0.0)
