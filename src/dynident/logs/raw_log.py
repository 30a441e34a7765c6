"""`RawLog`: the channels of a log as they came, usable or not, and the columns they were read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, ReadOnlyDict
from dynident.logs.columns import KINDS, LogColumn, kind_of
from dynident.logs.file import LogFile
from dynident.logs.log import Log, LogSource

_LENGTHS = ("m", "mm", "cm")


@dataclass(frozen=True)
class RawLog:
    """The channels of a log before anything is refused.

    Attributes:
        log: The log.
        names: Its channels, "t" first.
        origins: The column of each of them.
        unused: Columns of the file that mean nothing to dynident.
    """

    log: LogSource
    names: tuple[str, ...]
    origins: Mapping[str, LogColumn]
    unused: tuple[str, ...]

    @classmethod
    def of(cls, log: LogSource, first: Log | None = None) -> RawLog:
        """The channels of a log.

        Args:
            log: The log, in memory or streamed.
            first: Its first block, from which the channels of a source that is neither `Log` nor `LogFile` are known;
                None for a log without any sample.
        """
        if isinstance(log, LogFile):
            origins = {column.channel: column for column in log.columns}
            return cls(log, tuple(origins), ReadOnlyDict(origins), log.unused)
        some = log if isinstance(log, Log) else first
        names = ("t",) if some is None else ("t", *some.channels)
        read = {} if some is None else {column.channel: column for column in some.columns}
        origins = {name: read.get(name, LogColumn(name, name)) for name in names}
        return cls(log, names, ReadOnlyDict(origins), () if some is None else some.unused)

    def unit(self, channel: str) -> str:
        """Unit of a channel's values, in SI."""
        kind = kind_of(channel)
        base, _, per = KINDS[kind].partition("/")
        if base == "rad" and self.origins[channel].unit.partition("/")[0] in _LENGTHS:
            base = "m"
        return f"{base}/{per}" if per else base

    def rows(self, block: Log) -> Array:
        """The channels of a block, (n_names, n)."""
        return np.vstack([block.time, *(block.channels[name] for name in self.names[1:])])


def rows_in_window(log: LogFile, rows: Array) -> Array:
    """Of rows as they are in a file, time first, (n_names, n): those in the window of the log.

    Time may run backwards and stamps may be no numbers, so every row is compared; one without a stamp is inside.
    """
    outside = np.zeros(rows.shape[1], dtype=bool)
    if log.start is not None:
        outside |= rows[0] < log.start
    if log.stop is not None:
        outside |= rows[0] > log.stop
    return rows[:, ~outside] if outside.any() else rows
