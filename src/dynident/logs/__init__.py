"""Recordings: the log record, its readers in memory and streamed, and a robot's signals in it."""

from typing import TYPE_CHECKING

from dynident.lazy import lazy_names

if TYPE_CHECKING:
    from dynident.logs.file import LogFile as LogFile
    from dynident.logs.log import (
        BLOCK as BLOCK,
        Log as Log,
        LogError as LogError,
        LogSource as LogSource,
        channel_names as channel_names,
        joint_positions as joint_positions,
        joint_velocities as joint_velocities,
        row_torques as row_torques,
        torque_kind as torque_kind,
    )
    from dynident.logs.read import open_log as open_log, read_log as read_log, stream_log as stream_log
    from dynident.logs.tables import LogWarning as LogWarning
    from dynident.logs.write import write_log as write_log
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__, {"joint_speeds": "joint_velocities"})
