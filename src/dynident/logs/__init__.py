"""Recordings: the log record, its readers, and a robot's signals in it."""

from dynident.logs.log import Log, LogError, channel_names, has_torque, joint_positions, joint_speeds, row_torques
from dynident.logs.read import read_log

__all__ = [
    "Log",
    "LogError",
    "channel_names",
    "has_torque",
    "joint_positions",
    "joint_speeds",
    "read_log",
    "row_torques",
]
