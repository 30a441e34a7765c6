"""`Table`: a file with named columns of numbers, read in parts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from dynident.arrays import Array

PART = 1 << 20  # bytes of a file read at a time


class Table(Protocol):
    """What the file formats have in common.

    Attributes:
        headers: Name of each column as written, perhaps with a unit in brackets.
        units: Unit row, or empty.
        others: Columns that do not hold numbers, with their type: `stamp (timestamp[ns])`.
        warnings: What a reader of results should know about the file, such as how much of it could be read.
    """

    headers: list[str]
    units: list[str]
    others: list[str]
    warnings: tuple[str, ...]

    @property
    def digest(self) -> str:
        """SHA-256 of the content."""

    def fits(self, n_columns: int) -> bool:
        """Whether so many of its columns are small enough to be kept in memory."""

    def parts(self, places: Sequence[int]) -> Iterator[Array]:
        """The columns at these places, (n_places, n) with any n, one part of the rows after the other."""


def regroup(parts: Iterable[Array], n_columns: int, size: int) -> Iterator[Array]:
    """The same columns in fresh (n_columns, size) arrays; the last may be shorter."""
    block, filled = np.empty((n_columns, size)), 0
    for part in parts:
        taken = 0
        while taken < part.shape[1]:
            n = min(size - filled, part.shape[1] - taken)
            block[:, filled : filled + n] = part[:, taken : taken + n]
            taken, filled = taken + n, filled + n
            if filled == size:
                yield block
                block, filled = np.empty((n_columns, size)), 0
    if filled:
        yield block[:, :filled]


def file_digest(path: Path) -> str:
    """SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(PART):
            digest.update(part)
    return digest.hexdigest()


def file_stamp(path: Path) -> tuple[int, int] | None:
    """Size and time of change of a file, None if there is none: another stamp is another content."""
    try:
        found = path.stat()
    except (OSError, ValueError):  # a ValueError for a path with a null character
        return None
    return found.st_size, found.st_mtime_ns
