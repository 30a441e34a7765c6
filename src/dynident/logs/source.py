"""`LogSource`: what every reader of a log relies on, whether it is in memory or streamed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Protocol

from dynident.errors import InputError
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

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of results should know about it, such as how much of the file could be read."""

    def blocks(self) -> Iterator[Log]:
        """Successive parts of at most `BLOCK` samples in the order of time; together they are the whole log.

        Every call starts anew. A streamed log checks its numbers as it goes, so an error may come after the first
        blocks: use no result before the iteration has ended.

        Raises:
            LogError: Naming file, column and row of what cannot be used.
        """


def as_logs(logs: object) -> list[LogSource]:
    """One log or several as a list.

    Raises:
        InputError: For anything else, such as a path that has not been read yet.
    """
    given: list[Any] = list(logs) if isinstance(logs, Iterable) and not isinstance(logs, str | bytes | Log) else [logs]
    for log in given:
        if not hasattr(log, "blocks"):
            shown = f"{log!r} is" if isinstance(log, str | PathLike) else f"a {type(log).__name__} is"
            raise InputError(f"{shown} not a log; read it first: di.open_log(path, robot)")
    return given


def log_warnings(logs: Iterable[LogSource]) -> tuple[str, ...]:
    """What a reader of results should know about the logs they came from, each sentence once."""
    # A source of the user's own making may have nothing to say.
    return tuple(dict.fromkeys(words for log in logs for words in getattr(log, "warnings", ())))


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

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of results should know about it."""
        return log_warnings([self.log])

    def blocks(self) -> Iterator[Log]:
        """The log's blocks without any other channel."""
        for block in self.log.blocks():
            kept = {name: values for name, values in block.channels.items() if name.startswith("q")}
            yield replace(block, channels=kept)
