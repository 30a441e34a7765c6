"""Recordings: the log record, its readers in memory and streamed, and a robot's signals in it."""

from dynident.logs.file import LogFile
from dynident.logs.log import (
    BLOCK,
    Log,
    LogError,
    LogSource,
    channel_names,
    joint_positions,
    joint_velocities,
    row_torques,
    torque_kind,
)
from dynident.logs.read import open_log, read_log, stream_log
from dynident.logs.tables import LogWarning
from dynident.logs.write import write_log

__all__ = [
    "BLOCK",
    "Log",
    "LogError",
    "LogFile",
    "LogSource",
    "LogWarning",
    "channel_names",
    "joint_positions",
    "joint_velocities",
    "open_log",
    "read_log",
    "row_torques",
    "stream_log",
    "torque_kind",
    "write_log",
]
