"""`ChannelMap`: a robot's positions, torques and speeds as linear functions of the columns that a sender gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dynident.arrays import Array
from dynident.errors import InputError
from dynident.logs.columns import ColumnRule, column_rules, read_rules, understand
from dynident.logs.joints import joint_rules
from dynident.logs.log import Log, channel_names, joint_positions, joint_speeds, row_torques
from dynident.logs.read import Columns
from dynident.robot.model import Robot

KINDS = ("q", "dq", "tau", "qm", "dqm", "taum", "i")


class ChannelMap:
    """What columns mean, by the same rules as in a log: names, the robot's own `columns`, gears, couplings, gains.

    Args:
        robot: The robot.
        columns: Column file or mapping for senders with other names; see `read_log`.
        label: What messages call the sender.
    """

    def __init__(self, robot: Robot, columns: Columns, label: str) -> None:
        self.robot, self.label = robot, label
        self._rules: dict[str, ColumnRule] = {}
        if columns is not None:
            self._rules = column_rules(columns, "columns") if isinstance(columns, Mapping) else read_rules(columns)
        self._numbers = {joint.name: joint.number for joint in robot.joints}

    def names(self, kind: str, count: int) -> list[str]:
        """Columns of one kind that are given as a list: of the moving joints, or of these and the locked ones.

        Raises:
            InputError: If the list is of neither length.
        """
        robot = self.robot
        if count == len(robot.moving):
            return channel_names(kind, robot)
        if count == len(robot.active):
            return [f"{kind}{robot.joints[i].number}" for i in robot.active]
        raise InputError(
            f"has {count} values of {kind}; robot {robot.name} moves {len(robot.moving)} joints: "
            f"{', '.join(robot.joint_names)}"
        )

    def named(self, joint: str, quantity: str) -> str:
        """Column of a quantity that is given by joint name; one that the robot does not have keeps its own name."""
        if quantity in KINDS and joint in self._numbers:
            return f"{quantity}{self._numbers[joint]}"
        return f"{joint}.{quantity}"

    def matrix(self, columns: Sequence[str]) -> tuple[float, Array, Array]:
        """Unit of the time [s], and the map of the columns to q, tau and (if they are there) dq: `x @ matrix + offset`.

        The functions that read logs are affine in the columns; what they make of unit vectors is the map.

        Raises:
            LogError: Naming the columns that are missing.
        """
        rules = joint_rules(columns, self.robot) | self._rules
        known, _, _ = understand(["t", *columns], (), rules, self.robot, self.label)
        clock = next((column.size for column in known if column.channel == "t"), 1.0)
        own = [column for column in known if column.channel != "t"]
        units = np.vstack([np.zeros(len(own)), np.eye(len(own))])
        values = {column.channel: units[:, k] for k, column in enumerate(own)}
        log = Log(self.label, "", np.zeros(len(units)), values)
        parts = [joint_positions(log, self.robot), row_torques(log, self.robot)]
        speeds = joint_speeds(log, self.robot)
        answer = np.hstack(parts if speeds is None else [*parts, speeds])
        matrix = np.zeros((len(columns), answer.shape[1]))
        for k, column in enumerate(own):
            matrix[column.place - 1] = column.size * (answer[k + 1] - answer[0])
        return clock, matrix, answer[0]
