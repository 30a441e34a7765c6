"""`LogFile`: a log that stays on disk and hands out its samples block by block, checked as they go by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from dynident.arrays import Array
from dynident.display import brief
from dynident.logs.columns import LogColumn
from dynident.logs.log import BLOCK, Log, LogError, Role, empty_window
from dynident.logs.tables import LogTable, file_stamp, regroup
from dynident.logs.text import KeptNumbers
from dynident.readers import boundary


class Soundness:
    """Numbers must be finite and time must advance, never back.

    The answer is the same however the rows are cut into blocks: a fault is raised only by `finish`, when all of its
    kind have been counted.

    Args:
        source: File, for messages.
        names: Name of each row of a block, "t" first.
    """

    def __init__(self, source: str, names: Sequence[str]) -> None:
        self.source = source
        self.names = names
        self.n_samples = 0
        self.first = self.last = np.nan  # time [s]
        self._faults: dict[str, tuple[int, float, int]] = {}  # by column: first row, its value, how many
        self._backwards: tuple[int, float, float] | None = None  # row, time before and at it [s]
        self._advances = False

    @property
    def faulty(self) -> bool:
        """Whether something was found that `finish` will refuse."""
        return bool(self._faults) or self._backwards is not None

    def feed(self, block: Array) -> None:
        """Look at the next samples, (n_names, n)."""
        if not np.isfinite(block).all():
            self._note_faults(block)
        time = block[0]
        if self.n_samples == 0:
            self.first = self.last = float(time[0])
        steps = np.diff(time, prepend=self.last)
        if self._backwards is None and (steps < 0.0).any():
            i = int(np.argmax(steps < 0.0))
            self._backwards = self.n_samples + i + 1, float(time[i - 1] if i else self.last), float(time[i])
        self._advances = self._advances or bool((steps > 0.0).any())
        self.n_samples += len(time)
        self.last = float(time[-1])

    def finish(self) -> None:
        """Refuse the log if something was wrong with it.

        Raises:
            LogError: Naming column and row.
        """
        for name in self.names:
            if name in self._faults:
                row, value, count = self._faults[name]
                raise LogError(self.source, f"column '{name}' is {value} at row {row} ({count} in all); repair the log")
        if self.n_samples < 2:
            raise LogError(self.source, f"has {self.n_samples} samples; a log needs many")
        if self._backwards is not None:
            row, before, after = self._backwards
            words = f"time runs backwards from {before:g} to {after:g} s at row {row}; sort or split the log"
            raise LogError(self.source, words)
        if not self._advances:
            raise LogError(self.source, "time never advances; check the time column and its unit")

    def _note_faults(self, block: Array) -> None:
        for name, values in zip(self.names, block, strict=True):
            bad = ~np.isfinite(values)
            if bad.any():
                i = int(np.argmax(bad))
                row, value, count = self._faults.get(name, (self.n_samples + i + 1, float(values[i]), 0))
                self._faults[name] = row, value, count + int(bad.sum())


# ----------------------------------------------------------------------------------------------------------------------
# The log itself.


@brief
@dataclass(frozen=True, eq=False)
class LogFile:
    """A recording read again at each pass, in memory that does not grow with the file; made by `stream_log`.

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
        reasons: Why columns among the unused ones are not read, by name.
        kept: Where the numbers are kept after a pass; None for a format that is as quick to read again.
    """

    source: str
    table: LogTable
    columns: tuple[LogColumn, ...]
    stamp: tuple[int, int] | None
    unused: tuple[str, ...] = ()
    start: float | None = None
    stop: float | None = None
    role: Role = "train"
    label: str = ""
    doubts: tuple[str, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    kept: KeptNumbers | None = field(default=None, repr=False)

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
        return self.check_rows(self.rows())

    def check_rows(self, rows: Iterable[Array]) -> Iterator[Log]:
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
        time = _join([block.time for block in blocks])
        channels = {name: _join([block.channels[name] for block in blocks]) for name in self.names}
        log = self._made(time, channels)
        return log if self.start is None and self.stop is None else log.window(self.start, self.stop)

    def rows(self) -> Iterator[Array]:
        """The columns in SI units as they are in the file, (1 + n_channels, n) each, n at most `BLOCK`.

        Nothing is checked and nothing left out: numbers may be NaN, time may run backwards, and the window is ignored.

        Raises:
            LogError: If the file has changed, or a row cannot be read as numbers.
        """
        with boundary(self.source, "a log", LogError):
            yield from self._rows()

    def _rows(self) -> Iterator[Array]:
        if file_stamp(Path(self.source)) != self.stamp:
            raise LogError(self.source, "has changed since it was opened; open it again")
        sizes = np.array([[column.size] for column in self.columns])
        zeros = np.array([[column.zero] for column in self.columns])
        places = tuple(column.place for column in self.columns)
        parts = self.table.parts(places) if self.kept is None else self.kept.parts(self.table, places)
        for block in regroup(parts, len(self.columns), BLOCK):
            block *= sizes
            if zeros.any():
                block += zeros
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
        return self._made(block[0], channels)

    def _made(self, time: Array, channels: Mapping[str, Array]) -> Log:
        return Log(
            self.source,
            self.digest,
            time,
            channels,
            self.unused,
            self.role,
            self.label,
            self.warnings,
            self.columns,
            self.reasons,
        )


def _join(parts: list[Array]) -> Array:
    joined = np.concatenate(parts)
    _close(joined)
    return joined


def _close(array: Array) -> None:
    """Make an array and the memory behind it read-only."""
    part: Array | None = array
    while part is not None:
        part.setflags(write=False)
        part = part.base
