"""Tables of formats that are read whole: their columns in memory, and how large they may unpack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from dynident.arrays import Array
from dynident.logs.log import LogError

LARGEST_MEMORY = 2_000_000_000  # bytes of numbers after unpacking: a day of six joints at 1 kHz is streamed instead
LARGEST_RATIO = 200  # unpacked to packed: numbers never shrink this much
_HARMLESS = 1 << 26  # bytes that may unpack at any ratio, such as a short log of zeros


class LogWarning(UserWarning):
    """A log that could be read only in part, or was put together from parts; the message says how."""


class MemoryTable:
    """Columns in memory.

    Args:
        headers: Name of each column, perhaps with a unit in brackets.
        columns: The numbers, (n_samples,) each.
        others: What else the file holds.
        digest: SHA-256 of the content.
        warnings: What a reader of results should know about it.
    """

    def __init__(
        self,
        headers: Sequence[str],
        columns: Sequence[Array],
        others: Sequence[str],
        digest: str,
        warnings: Sequence[str] = (),
    ) -> None:
        self.headers = list(headers)
        self.units: list[str] = []
        self.others = list(others)
        self.digest = digest
        self.warnings = tuple(warnings)
        self._columns = list(columns)

    def fits(self, n_columns: int) -> bool:
        """True: it is in memory already."""
        return True

    def parts(self, places: Sequence[int]) -> Iterator[Array]:
        """The columns at these places, (n_places, n_samples)."""
        yield np.array([self._columns[place] for place in places], dtype=np.float64)


def refuse_size(path: Path, size: int) -> None:
    """Refuse `size` bytes of numbers, or more, if they are too many to be read at once.

    Raises:
        LogError: Beyond `LARGEST_MEMORY`.
    """
    if size > LARGEST_MEMORY:
        limit = f"{LARGEST_MEMORY / 1e9:g} GB are read at once; write a long log as Parquet or CSV, which are streamed"
        raise LogError(str(path), f"unpacks to {size / 1e9:.3g} GB or more; at most {limit}")


def refuse_bomb(path: Path, size: int) -> None:
    """Refuse a file that unpacks to `size` bytes or more, if that is no log.

    Raises:
        LogError: Beyond `LARGEST_MEMORY`, or beyond `LARGEST_RATIO` times the size of the file.
    """
    packed = path.stat().st_size
    refuse_size(path, size)
    if size > _HARMLESS and size > LARGEST_RATIO * packed:
        raise LogError(str(path), f"unpacks to more than {size} bytes from {packed}; that is no log")
