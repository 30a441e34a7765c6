"""`dynident inspect --pose`: where the links and the tool are at a pose, as a terminal page or as JSON."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console

from dynident.arrays import Array
from dynident.dynamics.kinematics import Kinematics, pose_as_dict, roll_pitch_yaw
from dynident.report.html import Head, Table
from dynident.report.terminal import print_parts

_HEADS = [Head(text, numeric=k > 0) for k, text in enumerate(("frame", "x [m]", "y", "z", "roll [°]", "pitch", "yaw"))]
_MOTIONS = ("vx", "vy", "vz", "wx", "wy", "wz")


def pose_answer(found: Kinematics) -> dict[str, Any]:
    """The first pose as plain data."""
    robot = found.robot
    return {
        "robot": robot.name,
        "tool": robot.tool_words,
        "joints": dict(zip(robot.joint_names, found.q[0].tolist(), strict=True)),
        **pose_as_dict(found.rotation[0], found.position[0]),
        "jacobian": found.jacobian[0].tolist(),
        "links": [
            {"name": name, **pose_as_dict(found.rotations[0, i], found.origins[0, i])}
            for i, name in enumerate(found.links)
        ],
    }


def print_pose(found: Kinematics, console: Console) -> None:
    """The first pose for people."""
    robot = found.robot
    units = [joint.unit for joint in robot.moving_joints]
    at = zip(robot.position_names, found.q[0], units, strict=True)
    console.print(f"{robot.name} at {', '.join(f'{name} = {x:.5g} {unit}' for name, x, unit in at)}")
    console.print(f"Tool: {robot.tool_words}, in the base frame")
    rows = [_cells("tool", found.rotation[0], found.position[0])]
    for i, joint in enumerate(robot.joints):
        own = "" if joint.link == str(joint.number) else f" ({joint.link})"
        rows.append(_cells(f"link {joint.number}{own}", found.rotations[0, i], found.origins[0, i]))
    print_parts([Table("", _HEADS, rows, layout="tight")], console)
    heads = [Head("tool"), *(Head(name, numeric=True) for name in robot.position_names)]
    jacobian = zip(_MOTIONS, found.jacobian[0], strict=True)
    lines = [[name, *(_decimals(x) for x in row)] for name, row in jacobian]
    title = "Jacobian: velocity of the tool in base axes for a unit velocity of each joint"
    print_parts([Table("", heads, lines, title=title, layout="tight")], console)


def _cells(name: str, rotation: Array, position: Array) -> list[str]:
    angles = np.degrees(roll_pitch_yaw(rotation))
    return [name, *(_decimals(x) for x in position), *(_decimals(x, 3) for x in angles)]


def _decimals(x: float, digits: int = 5) -> str:
    """A number with so many decimals, without a minus before zero."""
    return f"{0.0 if abs(x) < 0.5 * 10.0**-digits else x:.{digits}f}"
