"""Columns that name a joint rather than a number: `shoulder.position`, `shoulder.effort`."""

from __future__ import annotations

from collections.abc import Sequence

from dynident.logs.columns import ColumnRule
from dynident.robot.model import Robot

QUANTITIES = {"position": "q", "velocity": "dq", "effort": "tau"}  # of a ROS joint state
_CHANNELS = QUANTITIES | {"current": "i"}


def joint_rules(headers: Sequence[str], robot: Robot | None) -> dict[str, ColumnRule]:
    """What `NAME.position`, `.velocity`, `.effort` and `.current` stand for, where the robot has such a joint."""
    numbers = {joint.name: joint.number for joint in robot.joints} if robot is not None else {}
    rules: dict[str, ColumnRule] = {}
    for header in headers:
        name, _, quantity = header.rpartition(".")
        if name in numbers and quantity in _CHANNELS:
            rules[header] = ColumnRule(f"{_CHANNELS[quantity]}{numbers[name]}")
    return rules
