"""Logs as text: CSV and its relatives, plain or compressed."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path

import numpy as np

from dynident.arrays import Array
from dynident.logs.digits import decimal_table
from dynident.logs.log import LogError

PART = 1 << 18  # bytes of a text read at a time; what is made of them stays in the processor's cache
SMALL_TEXT = 1 << 26  # bytes after unpacking that may be kept in memory
LARGEST_TEXT = 4_000_000_000  # bytes after unpacking: a day of a 7-joint arm at 1 kHz is smaller
LARGEST_RATIO = 200  # unpacked to packed: numbers never shrink this much
LONGEST_LINE = 1 << 20  # characters: ten thousand columns
_TRIES = 8  # parts of a text that may be other than plain decimal numbers before it is read the slow way throughout
_DELIMITERS = (",", ";", "\t")


class TextTable:
    """A delimited text: a header, perhaps a unit row, and rows of numbers.

    Blank lines and lines that start with # are skipped. The file is unpacked once when it is opened: its hash is
    taken, and one that is cut off or unpacks beyond reason is refused before a number is read.

    Args:
        path: The file; .gz is unpacked.
        keep: Whether to keep the content of a small file, so that it need not be unpacked again.

    Raises:
        LogError: If it cannot be read or has no header.
    """

    def __init__(self, path: Path, *, keep: bool = True) -> None:
        self.path = path
        self.others: list[str] = []
        self.warnings: tuple[str, ...] = ()
        self.digest, self._content = _examine(path, SMALL_TEXT if keep else 0)
        first, second = [*islice(chain.from_iterable(self._lines()), 2), "", ""][:2]
        if not first:
            raise self._error("is empty")
        self._delimiter = next((d for d in _DELIMITERS if d in first), None)
        self.headers = self._names(first)
        if all(_is_number(cell) for cell in self.headers):
            raise self._error("has no header; the first line must name the columns, such as t,q1,q2,tau1,tau2")
        units = self._names(second)
        if self._delimiter != "," and any(_is_number(cell.replace(",", ".")) and "," in cell for cell in units):
            raise self._error("writes numbers with decimal commas; write them with a point")
        self.units = [] if any(_is_number(cell) for cell in units) else units

    def fits(self, n_columns: int) -> bool:
        """Whether the unpacked text was small enough to be kept."""
        return self._content is not None

    def parts(self, places: Sequence[int]) -> Iterator[Array]:
        """The columns at these places, (n_places, n) each; other columns may hold anything."""
        n_rows, skip = 0, 2 if self.units else 1
        tries = 0 if self._delimiter is None else _TRIES
        for text in self._texts():
            if tries and not skip and text:
                part = decimal_table(text, self._delimiter or "", len(self.headers))
                if part is not None:
                    yield part.T[list(places)]
                    n_rows += len(part)
                    continue
                tries -= 1
            lines = _counting(text)
            rows = lines[skip:]
            skip = max(0, skip - len(lines))
            if rows:
                yield self._numbers(rows, n_rows, places).T
                n_rows += len(rows)
        if n_rows < 2:
            raise self._error(f"has {n_rows} rows of numbers; a log needs many")

    def _lines(self) -> Iterator[list[str]]:
        """The lines that count, a part of the file at a time."""
        for text in self._texts():
            yield _counting(text)

    def _texts(self) -> Iterator[str]:
        """Whole lines with their ends, a part of the file at a time."""
        decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8-sig")(), translate=True)
        rest = ""
        with _reading(self.path), _opened(self.path, self._content) as file:
            while part := file.read(PART):
                text, end, rest = (rest + decoder.decode(part)).rpartition("\n")
                if len(rest) > LONGEST_LINE:
                    raise self._error(f"has a line of more than {LONGEST_LINE} characters; that is no log")
                yield text + end
            rest += decoder.decode(b"", final=True)
        if rest:
            yield rest if rest.endswith("\n") else rest + "\n"

    def _names(self, line: str) -> list[str]:
        return [cell.strip().strip('"') for cell in _cells(line, self._delimiter)] if line else []

    def _numbers(self, rows: list[str], before: int, places: Sequence[int]) -> Array:
        """The numbers of some rows at these places, (n_rows, n_places); `before` rows precede them."""
        if any(len(_cells(row, self._delimiter)) != len(self.headers) for row in rows):
            raise self._first_problem(rows, before, places)
        try:
            return np.loadtxt(rows, delimiter=self._delimiter, usecols=places, ndmin=2, comments=None)
        except ValueError:
            raise self._first_problem(rows, before, places) from None

    def _first_problem(self, rows: list[str], before: int, places: Sequence[int]) -> LogError:
        """The row and column that cannot be read."""
        for i, row in enumerate(rows):
            cells = _cells(row, self._delimiter)
            where = f"row {before + i + 1} of the numbers"
            if len(cells) != len(self.headers):
                return self._error(f"{where} has {len(cells)} cells, but the header has {len(self.headers)}")
            for place in sorted(places):
                if not _is_number(cells[place]):
                    shown = f"column '{self.headers[place]}': '{cells[place].strip()[:30]}'"
                    return self._error(f"{where}, {shown} is not a number")
        return self._error(f"cannot be read as a table of numbers from row {before + 1} on")

    def _error(self, problem: str) -> LogError:
        return LogError(str(self.path), problem)


def _counting(text: str) -> list[str]:
    """The lines of a text that are neither blank nor a comment."""
    return [line for line in text.split("\n") if (words := line.lstrip()) and words[0] != "#"]


def _examine(path: Path, limit: int) -> tuple[str, bytes | None]:
    """Hash of the unpacked content, and the content itself if it has at most `limit` bytes."""
    digest, size = hashlib.sha256(), 0
    kept: list[bytes] = []
    with _reading(path), _opened(path) as file:
        packed = path.stat().st_size
        limit = 0 if _stated_size(path, packed) > limit else limit
        while part := file.read(PART):
            size += len(part)
            if path.suffix.lower() == ".gz" and (
                size > LARGEST_TEXT or (size > 1 << 26 and size > LARGEST_RATIO * packed)
            ):
                raise LogError(str(path), f"unpacks to more than {size} bytes from {packed}; that is no log")
            digest.update(part)
            if size <= limit:
                kept.append(part)
            else:
                kept.clear()
    return digest.hexdigest(), b"".join(kept) if size <= limit else None


def _stated_size(path: Path, packed: int) -> int:
    """Bytes of the content as the file says; a gzip file of several members tells only those of the last."""
    if path.suffix.lower() != ".gz" or packed < 4:
        return packed
    with path.open("rb") as file:
        file.seek(-4, io.SEEK_END)
        return int.from_bytes(file.read(4), "little")


def _opened(path: Path, content: bytes | None = None) -> io.BufferedIOBase:
    if content is not None:
        return io.BytesIO(content)
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """What goes wrong in reading a text becomes a `LogError`."""
    source = str(path)
    try:
        yield
    except FileNotFoundError:
        raise LogError(source, "no such file; check the path") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise LogError(source, "is not a complete gzip file; copy it again") from None
    except UnicodeDecodeError:
        raise LogError(source, "is not text; give a CSV, Parquet, npz or .mat file") from None
    except OSError as error:
        raise LogError(source, f"cannot be read ({error.strerror})") from None


def _cells(line: str, delimiter: str | None) -> list[str]:
    return line.split(delimiter) if delimiter else line.split()


def _is_number(cell: str) -> bool:
    """Whether a cell is a number in a table; Python's own 1_000 is not."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell
