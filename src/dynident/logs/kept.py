"""`Kept`: the numbers of a table that is slow to read, kept in a temporary file after the first complete pass."""

from __future__ import annotations

import tempfile
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import IO

import numpy as np

from dynident.arrays import Array
from dynident.logs.table import Table

MOST_KEPT = 2_000_000_000  # bytes of numbers; a longer table is read again at each pass


class Kept:
    """The parts of one table, to be had again without reading it.

    The file has no name, and goes when this record does. Where it cannot be written (a full disk) or would become
    larger than `MOST_KEPT`, every pass reads the table. A pass that is abandoned leaves nothing.
    """

    def __init__(self) -> None:
        self._pass: _Written | None = None
        self._refused = False  # for good, so that a full disk is not filled again at each pass

    @property
    def complete(self) -> bool:
        """Whether a pass has been kept."""
        return self._pass is not None

    def parts(self, table: Table, places: Sequence[int]) -> Iterator[Array]:
        """`table.parts(places)`, from the file if an earlier pass went over these columns to the end."""
        if self._pass is not None and set(places) <= set(self._pass.places):
            yield from self._pass.parts(places)
        elif self._refused:
            yield from table.parts(places)
        else:
            yield from self._written(table, places)

    def _written(self, table: Table, places: Sequence[int]) -> Iterator[Array]:
        """The parts of the table, written down as they go by."""
        written: _Written | None = _Written.begun(places)
        try:
            for part in table.parts(places):
                if written is not None and not written.add(part):
                    written.close()
                    written = None
                yield part
            self._refused = written is None
            if written is not None:
                self._pass, written = written, None
        finally:
            if written is not None:
                written.close()

    def __getstate__(self) -> dict[str, object]:
        """A copy in another process starts with nothing."""
        return {"_pass": None, "_refused": self._refused}


class _Written:
    """Parts in a temporary file.

    Args:
        file: The file, empty.
        places: Places of the columns in their table.
    """

    def __init__(self, file: IO[bytes], places: Sequence[int]) -> None:
        self.places = tuple(places)
        self._file = file
        self._lengths: list[int] = []
        self._size = 0  # bytes
        self._lock = threading.Lock()  # passes may go on in several threads
        self.close = weakref.finalize(self, file.close)

    @classmethod
    def begun(cls, places: Sequence[int]) -> _Written | None:
        """A fresh one; None if there is no room for temporary files."""
        try:
            return cls(tempfile.TemporaryFile(buffering=0), places)
        except OSError:
            return None

    def add(self, part: Array) -> bool:
        """Write a part, (n_places, n); False if it cannot be kept."""
        if not part.size:
            return True
        content = np.ascontiguousarray(part)
        self._size += content.nbytes
        if self._size > MOST_KEPT:
            return False
        try:
            if self._file.write(content.data.cast("B")) != content.nbytes:
                return False  # a disk that has become full in the middle
        except OSError:
            return False
        self._lengths.append(part.shape[1])
        return True

    def parts(self, places: Sequence[int]) -> Iterator[Array]:
        """The parts as they were, with the columns at these places."""
        rows = [self.places.index(place) for place in places]
        first = 0
        for n in self._lengths:
            part = np.empty((len(self.places), n))
            with self._lock:
                self._file.seek(first)  # another pass may have moved on in between
                self._file.readinto(part.data.cast("B"))  # type: ignore[attr-defined]
            first += part.nbytes
            yield part if rows == list(range(len(self.places))) else part[rows]
