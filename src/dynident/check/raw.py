"""`Raw`: the rows of a log as they came, fit to be used or not, and where each channel came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.arrays import Array, ReadOnlyDict
from dynident.logs.log import Log
from dynident.logs.source import LogSource
from dynident.logs.stream import LogFile
from dynident.logs.units import KINDS, size_in_si

_LENGTHS = ("m", "mm", "cm")


@dataclass(frozen=True)
class Origin:
    """Where a channel came from.

    Attributes:
        header: Name of the column as written in the file.
        unit: Unit as given; empty if none was.
        scale: What the numbers were multiplied by besides their unit.
    """

    header: str
    unit: str = ""
    scale: float = 1.0

    def rule(self, channel: str, *, unit: str = "", factor: float = 1.0) -> dict[str, Any]:
        """An entry of a column file that reads this column as `channel`, in `unit` or `factor` times as large."""
        entry: dict[str, Any] = {"column": channel}
        if unit or self.unit:
            entry["unit"] = unit or self.unit
        if self.scale * factor != 1.0:
            entry["scale"] = float(f"{self.scale * factor:.6g}")
        return {self.header: entry}


@dataclass(frozen=True)
class Raw:
    """A log before anything is refused.

    Attributes:
        log: The log.
        names: Its channels, "t" first.
        origins: Where each of them came from.
        unused: Columns of the file that mean nothing to dynident.
    """

    log: LogSource
    names: tuple[str, ...]
    origins: Mapping[str, Origin]
    unused: tuple[str, ...]

    def unit(self, channel: str) -> str:
        """Unit of a channel's values, in SI."""
        kind = kind_of(channel)
        base, _, per = KINDS[kind].partition("/")
        if base == "rad" and self.origins[channel].unit.partition("/")[0] in _LENGTHS:
            base = "m"
        return f"{base}/{per}" if per else base

    def blocks(self) -> Iterator[Array]:
        """The rows of the log's window, (n_names, n) each, in the order of the file."""
        if not isinstance(self.log, LogFile):
            for block in self.log.blocks():
                yield np.vstack([block.time, *(block.channels[name] for name in self.names[1:])])
            return
        start, stop = self.log.start, self.log.stop
        for rows in self.log.rows():
            outside = np.zeros(rows.shape[1], dtype=bool)
            if start is not None:
                outside |= rows[0] < start
            if stop is not None:
                outside |= rows[0] > stop
            if not outside.all():
                yield rows[:, ~outside] if outside.any() else rows


def raw(log: LogSource) -> Raw:
    """The rows of a log, whether it is in memory or streamed."""
    if isinstance(log, LogFile):
        origins = {
            column.channel: Origin(
                log.table.headers[column.place].strip(),
                column.unit,
                column.size / size_in_si(kind_of(column.channel), column.unit),
            )
            for column in log.columns
        }
        return Raw(log, tuple(origins), ReadOnlyDict(origins), log.unused)
    first = log if isinstance(log, Log) else next(iter(log.blocks()))
    names = ("t", *first.channels)
    return Raw(log, names, ReadOnlyDict({name: Origin(name) for name in names}), first.unused)


def kind_of(channel: str) -> str:
    """The kind of a channel: tau for tau3."""
    return channel.rstrip("0123456789")


def number_of(channel: str) -> int:
    """The joint of a channel: 3 for tau3."""
    return int(channel.removeprefix(kind_of(channel)))
