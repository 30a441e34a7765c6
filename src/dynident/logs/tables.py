"""`LogTable`: a file with named columns of numbers, read in parts."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from dynident import limits
from dynident.arrays import Array
from dynident.logs.log import LogError
from dynident.npz import read_npz
from dynident.readers import reason_of

PART = 1 << 20  # bytes of a file read at a time


class LogTable(Protocol):
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


def check_headers(path: Path, names: Sequence[str]) -> None:
    """Refuse more columns, or longer names, than a log has, before anything is compared with each of them.

    Raises:
        LogError: Saying which.
    """
    check_count(path, len(names))
    own = limits.LIMITS
    if (longest := max(names, key=len, default="")) and len(longest) > own.name_characters:
        words = f"has a column with a name of {len(longest)} characters, more than {own.name_characters}"
        raise LogError(str(path), f"{words}: '{longest[:40]}..'")


def check_count(path: Path, n_columns: int) -> None:
    """Refuse more columns than a log has.

    Raises:
        LogError: Saying how many.
    """
    most = limits.LIMITS.columns
    if n_columns > most:
        raise LogError(str(path), f"has {n_columns} columns, more than the {most} a log may have")


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


# ----------------------------------------------------------------------------------------------------------------------
# Tables of formats that are read whole: their columns in memory, and how large they may unpack.


class LogWarning(UserWarning):
    """A log that could be read only in part, or was put together from parts; the message says how."""


@dataclass(frozen=True)
class UnitDoubt:
    """Why the unit of a column is not known.

    Attributes:
        reason: In words, the column being the subject.
        unit: A unit that it may have.
    """

    reason: str
    unit: str = ""


class MemoryTable:
    """Columns in memory.

    Args:
        headers: Name of each column, perhaps with a unit in brackets.
        columns: The numbers, (n_samples,) each.
        others: What else the file holds.
        digest: SHA-256 of the content.
        warnings: What a reader of results should know about it.
        doubts: By name without unit, why the unit of a column is not known.
    """

    def __init__(
        self,
        headers: Sequence[str],
        columns: Sequence[Array],
        others: Sequence[str],
        digest: str,
        warnings: Sequence[str] = (),
        doubts: Mapping[str, UnitDoubt] | None = None,
    ) -> None:
        self.headers = list(headers)
        self.units: list[str] = []
        self.others = list(others)
        self.digest = digest
        self.warnings = tuple(warnings)
        self.doubts = dict(doubts or {})
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
        LogError: Beyond `memory_bytes` of the limits.
    """
    if size > limits.LIMITS.memory_bytes:
        at_most = limits.in_bytes(limits.LIMITS.memory_bytes)
        raise LogError(str(path), f"unpacks to {limits.in_bytes(size)} or more; at most {at_most}{limits.STREAM}")


def refuse_bomb(path: Path, size: int) -> None:
    """Refuse a file that unpacks to `size` bytes or more, if that is no log.

    Raises:
        LogError: Beyond what is read at once, or what a file of its size can hold.
    """
    try:
        limits.Expansion.of(path, limits.LIMITS.memory_bytes, limits.STREAM).add(size)
    except limits.LimitError as error:
        raise LogError(str(path), str(error)) from None


# ----------------------------------------------------------------------------------------------------------------------
# Logs as NumPy archives.


def npz_table(path: Path) -> MemoryTable:
    """One array per column, or (n_samples, n) arrays named q, dq, tau, ... for columns 1 to n.

    Raises:
        LogError: If it is no npz file, unpacks beyond reason, or its arrays differ in length.
    """
    others: list[str] = []
    headers: list[str] = []
    columns: list[Array] = []
    arrays = _arrays(path, others)
    check_count(path, sum(array.shape[1] if array.ndim == 2 else 1 for array in arrays.values()))
    for name, array in arrays.items():
        if array.dtype.kind not in "fiu" or array.ndim not in (1, 2):
            others.append(f"{name} ({array.dtype}, {array.ndim} dimensions)")
            continue
        for i in range(1 if array.ndim == 1 else array.shape[1]):
            headers.append(name if array.ndim == 1 else f"{name}{i + 1}")
            columns.append(array if array.ndim == 1 else array[:, i])
    if len({len(column) for column in columns}) != 1:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise LogError(str(path), f"its arrays must have one length (it has {shapes or 'none'})")
    return MemoryTable(headers, columns, others, file_digest(path))


def _arrays(path: Path, others: list[str]) -> dict[str, Array]:
    try:
        return read_npz(path, others)
    except FileNotFoundError:
        raise LogError(str(path), "no such file; check the path") from None
    except limits.RefusedError as error:
        raise LogError(str(path), str(error)) from None
    except Exception as error:  # a damaged file can make any part of it fail
        raise LogError(str(path), f"cannot be read as npz ({reason_of(error)})") from error


# ----------------------------------------------------------------------------------------------------------------------
# Pickles run code when they are opened, so they are not.

_TORCH, _PICKLES = (".pt", ".pth", ".ckpt"), (".pkl", ".pickle", ".joblib")
_PICKLE_STARTS = tuple(bytes([0x80, protocol]) for protocol in range(2, 6))


def refuse_pickle(path: Path) -> None:
    """Refuse PyTorch tensors and pickles, with what saves them as npz.

    Raises:
        LogError: With two lines of Python.
    """
    ending = path.suffix.lower()
    try:
        with path.open("rb") as file:
            head = file.read(4)
    except (OSError, ValueError):  # a folder, or the reader says what is wrong
        return
    if ending in _TORCH or (head == b"PK\x03\x04" and ending != ".npz" and _holds_pickle(path)):
        kind, load, array = "PyTorch file", f"import numpy, torch; d = torch.load({path.name!r})", "v.cpu().numpy()"
    elif ending in _PICKLES or head[:2] in _PICKLE_STARTS:
        library, argument = (
            ("joblib", repr(path.name)) if ending == ".joblib" else ("pickle", f"open({path.name!r}, 'rb')")
        )
        kind, load, array = "pickle", f"import numpy, {library}; d = {library}.load({argument})", "numpy.asarray(v)"
    else:
        return
    save = f"numpy.savez({path.stem + '.npz'!r}, **{{k: {array} for k, v in d.items()}})"
    raise LogError(
        str(path),
        f"is a {kind}, and those can run code when they are opened; if you trust it, save its arrays (named t, q, tau, "
        f"..) as npz with two lines of Python: `{load}` and `{save}`",
    )


def _holds_pickle(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.endswith("data.pkl") for name in archive.namelist())
    except (OSError, ValueError, zipfile.BadZipFile):
        return False
