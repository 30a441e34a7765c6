"""`LogFile`: a log that stays on disk and hands out its samples block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from dynident.arrays import Array
from dynident.logs.columns import Understood
from dynident.logs.kept import Kept
from dynident.logs.log import BLOCK, Log, LogError, Role, empty_window
from dynident.logs.sound import Soundness
from dynident.logs.table import Table, file_stamp, regroup


@dataclass(frozen=True, eq=False)
class LogFile:
    """A recording read anew at each pass, in memory that does not grow with the file; made by `stream_log`.

    A text is parsed once: the first complete pass leaves its numbers in a temporary file, which later passes read.

    With `stop`, a pass ends at the first sample after it: what comes later in the file is not looked at.

    Attributes:
        source: File it is read from.
        table: Reader of the file.
        columns: Its columns that dynident knows, time first.
        stamp: Size and time of change of the file when it was opened.
        unused: Its other columns.
        start: Leave out samples before this time [s].
        stop: Leave out samples after this time [s].
        role: What it is for.
        label: Name in reports; default the source.
        doubts: What its columns give to think about, such as an axis without a joint that moves.
        kept: Where the numbers are kept after a pass; None for a format that is as quick to read again.
    """

    source: str
    table: Table
    columns: tuple[Understood, ...]
    stamp: tuple[int, int] | None
    unused: tuple[str, ...] = ()
    start: float | None = None
    stop: float | None = None
    role: Role = "train"
    label: str = ""
    doubts: tuple[str, ...] = ()
    kept: Kept | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.label or self.source)

    @property
    def digest(self) -> str:
        """SHA-256 of the file's content."""
        return self.table.digest

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of results should know about it."""
        return (*self.table.warnings, *self.doubts)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the channels (q1, taum3, ...)."""
        return tuple(column.channel for column in self.columns[1:])

    def blocks(self) -> Iterator[Log]:
        """The samples of the window, at most `BLOCK` at a time.

        Raises:
            LogError: For rows that cannot be used, when the pass reaches them.
            InputError: If the window has no sample.
        """
        return self.checked(self.rows())

    def checked(self, rows: Iterable[Array]) -> Iterator[Log]:
        """`blocks` from `rows`, which are read no further than to the end of the window, unless one is unusable."""
        soundness = Soundness(self.source, ("t", *self.names))
        some = False
        for block in rows:
            soundness.feed(block)
            if soundness.faulty:
                continue  # to the end of the file, so that the message is that of the whole
            inside = self._inside(block[0])
            if inside.stop > inside.start:
                some = True
                yield self._log(block[:, inside])
            if some and inside.stop < block.shape[1]:
                return
        soundness.finish()
        if not some:
            raise empty_window(self.source, self.start, self.stop, soundness.first, soundness.last)

    def whole(self) -> Log:
        """All samples of the window in memory, once the whole file has been checked, also outside the window."""
        blocks = list(replace(self, start=None, stop=None, kept=None).blocks())
        time = _joined([block.time for block in blocks])
        channels = {name: _joined([block.channels[name] for block in blocks]) for name in self.names}
        log = Log(self.source, self.digest, time, channels, self.unused, self.role, self.label, self.warnings)
        return log if self.start is None and self.stop is None else log.window(self.start, self.stop)

    def rows(self) -> Iterator[Array]:
        """The columns in SI units as they are in the file, (1 + n_channels, n) each, n at most `BLOCK`.

        Nothing is checked and nothing left out: numbers may be NaN, time may run backwards, and the window is ignored.

        Raises:
            LogError: If the file has changed, or a row cannot be read as numbers.
        """
        if file_stamp(Path(self.source)) != self.stamp:
            raise LogError(self.source, "has changed since it was opened; open it again")
        sizes = np.array([[column.size] for column in self.columns])
        places = tuple(column.place for column in self.columns)
        parts = self.table.parts(places) if self.kept is None else self.kept.parts(self.table, places)
        for block in regroup(parts, len(self.columns), BLOCK):
            block *= sizes
            yield block

    def _inside(self, time: Array) -> slice:
        """Which samples of a block lie in the window; time does not run back in it."""
        first = 0 if self.start is None else int(np.searchsorted(time, self.start, side="left"))
        end = len(time) if self.stop is None else int(np.searchsorted(time, self.stop, side="right"))
        return slice(first, end)

    def _log(self, block: Array) -> Log:
        """A block as a log; the arrays are fresh, so they are handed over rather than copied."""
        _close(block)
        channels = dict(zip(self.names, block[1:], strict=True))
        return Log(self.source, self.digest, block[0], channels, self.unused, self.role, self.label, self.warnings)


def _joined(parts: list[Array]) -> Array:
    joined = np.concatenate(parts)
    _close(joined)
    return joined


def _close(array: Array) -> None:
    """Make an array and the memory behind it read-only."""
    part: Array | None = array
    while part is not None:
        part.setflags(write=False)
        part = part.base
