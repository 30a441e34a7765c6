"""`LogSource`: what every reader of a log relies on, whether it is in memory or streamed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from dynident.logs.log import Log, Role


class LogSource(Protocol):
    """A recording that hands out its samples block by block: a `Log` in memory, or a `LogFile` on disk."""

    @property
    def source(self) -> str:
        """File it came from."""

    @property
    def digest(self) -> str:
        """SHA-256 of the file's content."""

    @property
    def role(self) -> Role:
        """What it is for."""

    @property
    def label(self) -> str:
        """Name in reports."""

    def blocks(self) -> Iterator[Log]:
        """Successive parts of at most `BLOCK` samples in the order of time; together they are the whole log.

        Every call starts anew. A streamed log checks its numbers as it goes, so an error may come after the first
        blocks: use no result before the iteration has ended.

        Raises:
            LogError: Naming file, column and row of what cannot be used.
        """


@dataclass(frozen=True)
class PositionsOnly:
    """A log as prediction may see it: time and positions.

    Attributes:
        log: The log.
    """

    log: LogSource

    @property
    def source(self) -> str:
        """File it came from."""
        return self.log.source

    @property
    def digest(self) -> str:
        """SHA-256 of the file's content."""
        return self.log.digest

    @property
    def role(self) -> Role:
        """What it is for."""
        return self.log.role

    @property
    def label(self) -> str:
        """Name in reports."""
        return self.log.label

    def blocks(self) -> Iterator[Log]:
        """The log's blocks without any other channel."""
        for block in self.log.blocks():
            kept = {name: values for name, values in block.channels.items() if name.startswith("q")}
            yield replace(block, channels=kept)
