"""Columns that name a joint rather than a number: `shoulder.position`, `shoulder.effort`."""

from __future__ import annotations

from collections.abc import Sequence

from dynident.logs.columns import ColumnRule
from dynident.robot.model import Robot

QUANTITIES = {"position": "q", "velocity": "dq", "effort": "tau"}


def joint_rules(headers: Sequence[str], robot: Robot | None) -> dict[str, ColumnRule]:
    """What `NAME.position`, `NAME.velocity` and `NAME.effort` stand for, where the robot has a joint of that name."""
    numbers = {joint.name: joint.number for joint in robot.joints} if robot is not None else {}
    rules: dict[str, ColumnRule] = {}
    for header in headers:
        name, _, quantity = header.rpartition(".")
        if name in numbers and quantity in QUANTITIES:
            rules[header] = ColumnRule(f"{QUANTITIES[quantity]}{numbers[name]}")
    return rules
