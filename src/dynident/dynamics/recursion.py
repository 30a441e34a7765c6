"""The recursions of rigid-body dynamics, written once over any number type.

The modified Newton-Euler form of Khosla & Kanade 1987 (inertia about the link frame, eq. 10) is linear in the ten
parameters of each link, so the same forward pass serves the torque, its regressor and the energies. Quantities of a
link are components in that link's own frame.

Body: (XX, XY, XZ, YY, YZ, ZZ, MX, MY, MZ, M), the standard parameters, as numbers of any type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.robot.algebra import (
    AXIS_Z,
    UNIT,
    ZERO,
    Frame,
    Matrix,
    Number,
    Vector,
    add,
    cross,
    dot,
    is_unit,
    is_zero,
    mul,
    product,
    rotate,
    scale,
    sub,
    total,
    transpose,
    unrotate,
    vadd,
    vsub,
    z_rotation,
)
from dynident.robot.loops import JointState

Body = Sequence[Number]
Twist = tuple[Vector, Vector]  # angular and linear velocity of the link-frame origin for unit joint velocity
Wrench = tuple[Vector, Vector]  # force and moment about the link-frame origin


class NumpyFunctions:
    """Functions for floats and NumPy arrays."""

    sin, cos, sign, tanh = (staticmethod(f) for f in (np.sin, np.cos, np.sign, np.tanh))
    exp, log = staticmethod(np.exp), staticmethod(np.log)


NUMPY_FUNCTIONS = NumpyFunctions()


@dataclass(frozen=True)
class TreeLink:
    """Geometry of a link: parent index (-1 the base), joint kind and constant frames around the joint's motion."""

    parent: int
    prismatic: bool
    before: Frame
    after: Frame


@dataclass(frozen=True)
class LinkMotion:
    """Motion of a link: angular velocity and acceleration, and linear velocity and acceleration of its origin.

    The acceleration is relative to free fall (gravity subtracted), so weight appears as inertia does.
    """

    w: Vector
    dw: Vector
    v: Vector
    a: Vector


def _carry(motion: LinkMotion, frame: Frame) -> LinkMotion:
    """The motion of a frame fixed in the moving one, in its own components."""
    R, p = frame
    v, a = motion.v, motion.a
    if not is_zero(p):
        v = vadd(v, cross(motion.w, p))
        a = vadd(a, vadd(cross(motion.dw, p), cross(motion.w, cross(motion.w, p))))
    if is_unit(R):
        return LinkMotion(motion.w, motion.dw, v, a)
    return LinkMotion(unrotate(R, motion.w), unrotate(R, motion.dw), unrotate(R, v), unrotate(R, a))


def joint_frame(link: TreeLink, state: JointState) -> Frame:
    """The frame after a joint's motion seen from the frame before it."""
    if link.prismatic:
        return UNIT, (0.0, 0.0, state.displacement)
    return z_rotation(state.cosine, state.sine), ZERO


def _move(motion: LinkMotion, link: TreeLink, state: JointState) -> LinkMotion:
    """Add the joint's own motion, Khosla & Kanade eq. (1)-(3)."""
    carried = _carry(motion, joint_frame(link, state))
    along, faster = scale(state.velocity, AXIS_Z), scale(state.acceleration, AXIS_Z)
    if link.prismatic:
        coriolis = scale(2.0, cross(carried.w, along))
        return LinkMotion(carried.w, carried.dw, vadd(carried.v, along), vadd(carried.a, vadd(coriolis, faster)))
    dw = vadd(carried.dw, vadd(cross(carried.w, along), faster))
    return LinkMotion(vadd(carried.w, along), dw, carried.v, carried.a)


def forward(tree: Sequence[TreeLink], states: Sequence[JointState], gravity: Vector) -> list[LinkMotion]:
    """Motions of all links, base to tips."""
    base = LinkMotion(ZERO, ZERO, ZERO, vsub(ZERO, gravity))
    motions: list[LinkMotion] = []
    for link, state in zip(tree, states, strict=True):
        motion = base if link.parent < 0 else motions[link.parent]
        motions.append(_carry(_move(_carry(motion, link.before), link, state), link.after))
    return motions


def _carry_twist(twist: Twist, frame: Frame) -> Twist:
    (angular, linear), (R, p) = twist, frame
    if not is_zero(p):
        linear = vadd(linear, cross(angular, p))
    return unrotate(R, angular), unrotate(R, linear)


def twists(tree: Sequence[TreeLink], states: Sequence[JointState]) -> list[dict[int, Twist]]:
    """For each link, the twist that each joint on its path gives it per unit of joint velocity: its Jacobian."""
    result: list[dict[int, Twist]] = []
    for index, (link, state) in enumerate(zip(tree, states, strict=True)):
        moved = joint_frame(link, state)
        carried: dict[int, Twist] = {}
        if link.parent >= 0:
            for joint, twist in result[link.parent].items():
                carried[joint] = _carry_twist(_carry_twist(twist, link.before), moved)
        carried[index] = (ZERO, AXIS_Z) if link.prismatic else (AXIS_Z, ZERO)
        result.append({joint: _carry_twist(twist, link.after) for joint, twist in carried.items()})
    return result


def torque_columns(motion: LinkMotion, twist: Twist) -> list[Number]:
    """What each of a link's ten parameters contributes to the torque of a joint that carries the link.

    The power of the link's inertia wrench n = I dw + w x I w + ms x a, f = m a + dw x ms + w x (w x ms) along the
    joint's twist, sorted by parameter.
    """
    (m, v), w, dw, a = twist, motion.w, motion.dw, motion.a
    u = cross(m, w)

    def inertia(i: int, j: int) -> Number:
        if i == j:
            return add(mul(m[i], dw[i]), mul(u[i], w[i]))
        return total(mul(m[i], dw[j]), mul(m[j], dw[i]), mul(u[i], w[j]), mul(u[j], w[i]))

    # (dw x ms + w x (w x ms)) · v = ms · (v x dw + (w·v) w - (w·w) v)
    first = cross(a, m)
    if not is_zero(v):
        along = vsub(scale(dot(w, v), w), scale(dot(w, w), v))
        first = vadd(first, vadd(cross(v, dw), along))
    moments = [inertia(0, 0), inertia(0, 1), inertia(0, 2), inertia(1, 1), inertia(1, 2), inertia(2, 2)]
    return [*moments, *first, dot(v, a)]


def _times(body: Body, x: Vector) -> Vector:
    """I x."""
    xx, xy, xz, yy, yz, zz = body[:6]
    return dot((xx, xy, xz), x), dot((xy, yy, yz), x), dot((xz, yz, zz), x)


def inertia_wrench(body: Body, motion: LinkMotion) -> Wrench:
    """Force and moment that give the link its motion, Khosla & Kanade eq. (4)-(6) about the link frame."""
    first: Vector = (body[6], body[7], body[8])
    w, dw, a = motion.w, motion.dw, motion.a
    force = vadd(scale(body[9], a), vadd(cross(dw, first), cross(w, cross(w, first))))
    moment = vadd(vadd(_times(body, dw), cross(w, _times(body, w))), cross(first, a))
    return force, moment


def _carry_wrench_back(wrench: Wrench, frame: Frame) -> Wrench:
    """A wrench known in a frame, seen from the frame before it."""
    (force, moment), (R, p) = wrench, frame
    force, moment = rotate(R, force), rotate(R, moment)
    return force, (vadd(moment, cross(p, force)) if not is_zero(p) else moment)


def joint_torques(tree: Sequence[TreeLink], states: Sequence[JointState], wrenches: Sequence[Wrench]) -> list[Number]:
    """Backward pass, eq. (7)-(9): torque (or force) of each joint that carries the given link wrenches."""
    sums = list(wrenches)
    torques: list[Number] = [0.0] * len(tree)
    for index in range(len(tree) - 1, -1, -1):
        link = tree[index]
        at_joint = _carry_wrench_back(sums[index], link.after)
        torques[index] = at_joint[0][2] if link.prismatic else at_joint[1][2]
        if link.parent >= 0:
            back = _carry_wrench_back(_carry_wrench_back(at_joint, joint_frame(link, states[index])), link.before)
            force, moment = sums[link.parent]
            sums[link.parent] = vadd(force, back[0]), vadd(moment, back[1])
    return torques


def _carry_body_back(body: Body, frame: Frame) -> list[Number]:
    """A body known in a frame, seen from the frame before it (parallel-axis rule, any number type)."""
    R, p = frame
    xx, xy, xz, yy, yz, zz, mx, my, mz, mass = body
    tensor: Matrix = ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))
    first: Vector = (mx, my, mz)
    if not is_unit(R):
        tensor = product(product(R, tensor), transpose(R))
        first = rotate(R, first)
    entries = [[tensor[i][j] for j in range(3)] for i in range(3)]
    if not is_zero(p):
        # I + 2 (p·s) E - p s' - s p' + m (p·p E - p p') = I + (p·t) E - (p t' + t p')/2 with t = 2 s + m p
        t = vadd(scale(2.0, first), scale(mass, p))
        trace = dot(p, t)
        for i in range(3):
            for j in range(i, 3):
                half = mul(0.5, add(mul(p[i], t[j]), mul(t[i], p[j])))
                entries[i][j] = add(entries[i][j], sub(trace, half) if i == j else sub(0.0, half))
        first = vadd(first, scale(mass, p))
    return [
        *(entries[0][0], entries[0][1], entries[0][2], entries[1][1], entries[1][2], entries[2][2]),
        *first,
        mass,
    ]


def mass_matrix(
    tree: Sequence[TreeLink], states: Sequence[JointState], bodies: Sequence[Body]
) -> dict[tuple[int, int], Number]:
    """Entries (i, j), i <= j, of the tree's mass matrix by composite bodies; absent entries are zero."""
    composite = [list(body) for body in bodies]
    entries: dict[tuple[int, int], Number] = {}
    for index in range(len(tree) - 1, -1, -1):
        link, moved = tree[index], joint_frame(tree[index], states[index])
        body = _carry_body_back(composite[index], link.after)
        _, _, xz, _, yz, zz, mx, my, _, mass = body
        # Wrench of the composite body for unit acceleration of its joint.
        wrench: Wrench = ((-my, mx, 0.0), (xz, yz, zz))
        if link.prismatic:
            wrench = ((0.0, 0.0, mass), (my, -mx, 0.0))
        if link.parent >= 0:
            below = _carry_body_back(_carry_body_back(body, moved), link.before)
            composite[link.parent] = [add(x, y) for x, y in zip(composite[link.parent], below, strict=True)]
        entries[index, index] = wrench[0][2] if link.prismatic else wrench[1][2]
        child, ancestor = index, link.parent
        while ancestor >= 0:
            below_joint = joint_frame(tree[child], states[child])
            wrench = _carry_wrench_back(_carry_wrench_back(wrench, below_joint), tree[child].before)
            wrench = _carry_wrench_back(wrench, tree[ancestor].after)
            entries[ancestor, index] = wrench[0][2] if tree[ancestor].prismatic else wrench[1][2]
            child, ancestor = ancestor, tree[ancestor].parent
    return entries


def kinetic_columns(motion: LinkMotion) -> list[Number]:
    """What each of a link's ten parameters contributes to its kinetic energy."""
    w, v = motion.w, motion.v
    half = scale(0.5, w)
    squares = [mul(half[0], w[0]), mul(w[0], w[1]), mul(w[0], w[2]), mul(half[1], w[1]), mul(w[1], w[2])]
    first = cross(v, w)  # v · (w x ms) = ms · (v x w)
    return [*squares, mul(half[2], w[2]), *first, mul(0.5, dot(v, v))]


def potential_columns(tree: Sequence[TreeLink], states: Sequence[JointState], gravity: Vector) -> list[list[Number]]:
    """What each link's ten parameters contribute to the potential energy -g · (m o + R ms), zero at the base frame."""
    known: list[tuple[Vector, Number]] = []
    result: list[list[Number]] = []
    for link, state in zip(tree, states, strict=True):
        g, height = (gravity, 0.0) if link.parent < 0 else known[link.parent]
        for R, p in (link.before, joint_frame(link, state), link.after):
            height = add(height, dot(g, p))  # g · o grows along the chain
            g = unrotate(R, g)
        known.append((g, height))
        result.append([*([0.0] * 6), *vsub(ZERO, g), sub(0.0, height)])
    return result
