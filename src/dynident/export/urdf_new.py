"""A URDF made from a robot's tree, for robots that did not come from one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dynident.arrays import Array
from dynident.export.bodies import classical, text
from dynident.export.holding import Holding
from dynident.export.urdf_text import inertial_xml
from dynident.export.xml_edit import quoteattr
from dynident.robot.model import BASE, Joint, Robot, Transform
from dynident.robot.parameters import in_frame
from dynident.robot.physicality import link_label

_NO_LIMIT = 1e16  # what exporters write where a URDF must have a number and the joint has no limit
_ON_AXIS = 1e-12  # [m]


def what_urdf_cannot_move(robot: Robot) -> list[str]:
    """Why no URDF could give the robot's torque; empty where one can."""
    reasons = []
    if robot.closure is not None:
        names = ", ".join(loop.name for loop in robot.closure.loops)
        reasons.append(f"its loops ({names}) are closed, and a URDF is a tree")
        return reasons
    for j, joint in enumerate(robot.joints):
        along = [robot.joints[robot.active[i]].variable for i in np.flatnonzero(robot.follow[j])]
        if j not in robot.active and len(along) != 1:
            moves = f"follows {' and '.join(along)} together" if along else "is held at a position"
            reasons.append(f"joint {joint.name} {moves}, and <mimic> follows one joint")
    if reasons and robot.closes:
        reasons.append(f"the loop {', '.join(robot.closes)} is closed by it, and a URDF is a tree")
    return reasons


def new_urdf(robot: Robot, chi: Array, holding: Holding, head: str) -> str:
    """A robot as URDF text; links keep their frames where the joint's axis passes through them.

    Args:
        robot: The robot, a tree whose passive joints follow one other each.
        chi: (n_links, 10) standard parameters.
        holding: Friction of the joints.
        head: Comment for the top.
    """
    links = _link_names(robot)
    frames = [_own_frame(joint) for joint in robot.joints]
    lines = ['<?xml version="1.0"?>', head, f"<robot name={quoteattr(robot.name)}>", f"  <link name={links[-1]}/>"]
    for j, joint in enumerate(robot.joints):
        back = frames[j].inverse()
        own = in_frame(chi[j], back.rotation, back.translation)
        mass, centre, inertia = classical(own, link_label(joint), "URDF")
        body = f"    {inertial_xml(mass, centre, inertia)}" if mass else ""
        lines += [f"  <link name={links[j]}>", body, "  </link>"] if body else [f"  <link name={links[j]}/>"]
        lines += _joint_lines(robot, j, frames, links, holding)
    return "\n".join([*lines, "</robot>", ""])


def _own_frame(joint: Joint) -> Transform:
    """The URDF link frame in the robot's: the same if the axis of a turning joint passes through its origin."""
    off = joint.after.inverse().translation  # a point on the axis, in the link frame
    axis = joint.after.rotation[2]
    aside = float(np.linalg.norm(np.cross(axis, off)))
    return Transform.identity() if joint.kind == "prismatic" or aside < _ON_AXIS else joint.after.inverse()


def _joint_lines(
    robot: Robot, j: int, frames: Sequence[Transform], links: Sequence[str], holding: Holding
) -> list[str]:
    joint = robot.joints[j]
    to_parent = Transform.identity() if joint.parent == BASE else frames[joint.parent].inverse()
    moved = joint.after @ frames[j]  # the URDF link frame in the joint frame
    origin = to_parent @ joint.before @ moved
    kind, limit = _kind_and_limit(joint)
    return [
        f"  <joint name={quoteattr(joint.name)} type={quoteattr(kind)}>",
        f"    <parent link={links[joint.parent]}/>",
        f"    <child link={links[j]}/>",
        f'    <origin xyz="{text(*origin.translation)}" rpy="{text(*roll_pitch_yaw(origin.rotation))}"/>',
        f'    <axis xyz="{text(*moved.rotation[2])}"/>',
        *([f"    {limit}"] if limit else []),
        *_motion_lines(robot, j, holding),
        "  </joint>",
    ]


def _kind_and_limit(joint: Joint) -> tuple[str, str]:
    """The joint's type, and its limits as other readers want them: all four numbers, or a continuous joint."""
    limits = joint.limits
    endless = joint.kind == "revolute" and limits.lower is None and limits.upper is None
    numbers = {
        "lower": -_NO_LIMIT if limits.lower is None else limits.lower,
        "upper": _NO_LIMIT if limits.upper is None else limits.upper,
        "velocity": _NO_LIMIT if limits.velocity is None else limits.velocity,
        "effort": _NO_LIMIT if limits.effort is None else limits.effort,
    }
    if endless and limits.velocity is None and limits.effort is None:
        return "continuous", ""
    keys = ("velocity", "effort") if endless else tuple(numbers)
    words = " ".join(f'{key}="{text(numbers[key])}"' for key in keys)
    return "continuous" if endless else joint.kind, f"<limit {words}/>"


def _motion_lines(robot: Robot, j: int, holding: Holding) -> list[str]:
    """Friction of a joint with a motor, the relation of one that follows."""
    if j in robot.active:
        i = robot.active.index(j)
        return [f'    <dynamics damping="{text(holding.viscous[i])}" friction="{text(holding.coulomb[i])}"/>']
    i = int(np.flatnonzero(robot.follow[j])[0])
    other = quoteattr(robot.joints[robot.active[i]].name)
    numbers = f'multiplier="{text(robot.follow[j, i])}" offset="{text(robot.follow_offset[j])}"'
    return [f"    <mimic joint={other} {numbers}/>"]


def _link_names(robot: Robot) -> list[str]:
    """Quoted names of the links, and that of the base last, where index -1 finds it."""
    names = [f"link{joint.link}" if joint.link.isdigit() else joint.link for joint in robot.joints]
    if len(set(names)) < len(names):
        names = [f"link{joint.number}" for joint in robot.joints]
    base = "base"
    while base in names:
        base += "_link"
    return [quoteattr(name) for name in (*names, base)]


def roll_pitch_yaw(rotation: Array) -> tuple[float, float, float]:
    """Angles of fixed axes whose matrix Rz(yaw) Ry(pitch) Rx(roll) is `rotation`, exact also where they are not unique.

    Yaw is taken first and turned back, so that what is left of it near a pitch of a quarter turn goes to roll.
    """
    r = np.asarray(rotation)
    yaw = math.atan2(r[1, 0], r[0, 0])
    c, s = math.cos(yaw), math.sin(yaw)
    rest = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) @ r
    return math.atan2(-rest[1, 2], rest[1, 1]), math.atan2(-rest[2, 0], rest[0, 0]), yaw
