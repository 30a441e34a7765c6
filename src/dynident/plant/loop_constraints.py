"""What holds a robot's loops together in MJCF: equality constraints on joints, on sums of joints, and at points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from xml.etree.ElementTree import Element as Node, SubElement

import numpy as np

from dynident.arrays import Array
from dynident.errors import InputError
from dynident.robot.loops import loop_size
from dynident.robot.model import BASE, Loop, Robot

Numbers = Callable[[Array | Sequence[float]], str]


def carriers(robot: Robot) -> list[int]:
    """Indices into `robot.joints` of those that stand for themselves: the moving ones, then those loops determine."""
    solved = () if robot.closure is None else robot.closure.solved
    return [*(robot.active[i] for i in robot.moving), *solved]


def carried(robot: Robot) -> Array:
    """(n_joints, n_carriers), how tree joints follow the carriers."""
    own = robot.follow[:, list(robot.moving)]
    return own if robot.closure is None else np.column_stack([own, robot.closure.follow])


def add_loops(
    root: Node, robot: Robot, passive: Sequence[int], rest: Array, hard: dict[str, str], text: Numbers
) -> None:
    """Constraints that close every loop.

    A passive joint follows one other by a joint constraint, several by the length of a fixed tendon. Loops that are
    closed numerically are held at their cut: one point for a ball joint, two on its axis for a revolute one, position
    and orientation for a fixed one.

    Args:
        root: The model so far.
        robot: The robot.
        passive: Joints that follow the carriers, indices into `robot.joints`.
        rest: Tree positions where the carriers are at zero, (n_joints,).
        hard: Attributes that say how hard constraints are.
        text: Numbers as text.
    """
    if not passive and robot.closure is None:
        return
    equality = SubElement(root, "equality")
    names = [robot.joints[j].name for j in carriers(robot)]
    follow = carried(robot)
    for j in passive:
        name, row = robot.joints[j].name, follow[j]
        along = np.flatnonzero(row)
        if len(along) == 1:
            polynomial = text([rest[j], row[along[0]], 0.0, 0.0, 0.0])
            other = names[along[0]]
            SubElement(equality, "joint", {**hard, "joint1": name, "joint2": other, "polycoef": polynomial})
            continue
        tendons = root.find("tendon")
        fixed = SubElement(SubElement(root, "tendon") if tendons is None else tendons, "fixed", name=f"loop {name}")
        SubElement(fixed, "joint", joint=name, coef="1")
        for k in along:
            SubElement(fixed, "joint", joint=names[k], coef=repr(-float(row[k])))
        polynomial = text([rest[j], 0.0, 0.0, 0.0, 0.0])
        SubElement(equality, "tendon", {**hard, "tendon1": f"loop {name}", "polycoef": polynomial})
    for loop in () if robot.closure is None else robot.closure.loops:
        _hold(root, equality, robot, loop, hard, text)


def _hold(root: Node, equality: Node, robot: Robot, loop: Loop, hard: dict[str, str], text: Numbers) -> None:
    """Hold the two frames of a loop together at sites of their links."""
    if loop.joint in ("prismatic", "cylindrical"):
        raise InputError(
            f"robot {robot.name}, loop {loop.name}: MuJoCo cannot hold a loop that is cut at a {loop.joint} joint; cut "
            "it at a revolute, ball or fixed joint instead to simulate it"
        )
    kind = "weld" if loop.joint == "fixed" else "connect"
    apart = 0.5 * loop_size(loop, robot.joints) if loop.joint == "revolute" else 0.0
    for number, along in enumerate([apart, -apart] if apart else [0.0], 1):
        sites = {}
        for side, link, frame in zip((1, 2), loop.links, loop.frames, strict=True):
            body = _body(root, None if link == BASE else robot.joints[link].link)
            name = f"loop {loop.name} {number} {side}"
            place = frame.translation + along * frame.rotation[:, 2]
            SubElement(body, "site", name=name, pos=text(place), xyaxes=text(frame.rotation[:, :2].T))
            sites[f"site{side}"] = name
        SubElement(equality, kind, {**hard, **sites})


def _body(root: Node, name: str | None) -> Node:
    """The node of a body, or of the world."""
    for node in root.iter("worldbody" if name is None else "body"):
        if name is None or node.get("name") == name:
            return node
    raise AssertionError(f"body {name} was not written")  # every link has been
