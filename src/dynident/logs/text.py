"""Plain decimal numbers in delimited text, many at a time: the same doubles as one by one, in a third of the time."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import tempfile
import threading
import weakref
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array, Mask
from dynident.logs.log import LogError
from dynident.logs.tables import Table

_PAD = 16  # bytes before the text, so that the two words before any place can be loaded
_WORD = 8  # digits that fit a word
_WORDY = 0.25  # share of cells that may need the slow way; beyond it the other reader is faster
_EXACT = 1 << 53  # whole numbers up to here are doubles
_MOST_DIGITS = 19  # that fit 64 bits
_ZEROS = np.uint64(0x3030303030303030)
_PLAIN = b"0123456789+-.eE"

Words = NDArray[np.uint64]
Places = NDArray[np.intp]


def _masks() -> Words:
    """For 0 to 8 digits: the bytes of a word that hold them when they end with it."""
    every = (1 << 64) - 1
    return np.array([every ^ ((1 << 8 * (_WORD - n)) - 1) for n in range(_WORD + 1)], dtype=np.uint64)


_MASKS = _masks()
_POWERS = np.array([10**n for n in range(2 * _WORD + 1)], dtype=np.uint64)
_SCALES = np.array([10.0**n for n in range(2 * _WORD + 1)])


def decimal_table(text: str, delimiter: str, n_columns: int) -> Array | None:
    """The numbers of whole lines, (n_rows, n_columns), or None if another reader must see to them.

    A double is made as the whole number of all digits, divided by a power of ten. Up to 2^53 and 10^22 both are exact,
    and the division rounds once: the result is the nearest double, as strtod gives it. Cells with an exponent, more
    digits or blanks go through `float`.

    Args:
        text: Lines, the last with its line end.
        delimiter: One character between cells.
        n_columns: Cells in every line.

    Returns:
        None where lines have other numbers of cells, or hold anything but digits, signs, points and exponents.
    """
    content = text.encode()
    # Without what numbers are made of, only delimiters and line ends may be left, in the order of a table.
    frame = content.translate(None, _PLAIN)
    row = delimiter.encode() * (n_columns - 1) + b"\n"
    n_rows = len(frame) // len(row)
    if n_rows == 0 or frame != row * n_rows:
        return None
    values = _decimals(b"0" * _PAD + content, ord(delimiter))
    return None if values is None else values.reshape(n_rows, n_columns)


def _decimals(padded: bytes, delimiter: int) -> Array | None:
    """All numbers of a text in which each ends with the delimiter or a line end."""
    letters = np.frombuffer(padded, np.uint8)
    marks = np.flatnonzero((letters == ord(".")) | (letters == delimiter) | (letters == ord("\n")))
    is_point = letters[marks] == ord(".")
    ends = np.flatnonzero(~is_point)
    pointed = is_point[ends - 1] & (ends > 0)
    end = marks[ends]
    point = np.where(pointed, marks[ends - 1], end)
    start = np.concatenate([[_PAD], end[:-1] + 1])
    negative = letters[start] == ord("-")
    n_whole, n_decimals = point - start - negative, end - point - pointed
    n_digits = n_whole + n_decimals
    odd = (n_whole > _WORD) | (n_decimals > 2 * _WORD) | (n_digits == 0) | (n_digits > _MOST_DIGITS)
    number, scale, unclear = _mantissas(padded, point, end, n_whole, n_decimals)
    odd |= unclear | (number > _EXACT)
    values = number.astype(np.float64)
    values /= scale
    np.negative(values, out=values, where=negative)
    return _with_odd(values, odd, padded, start, end)


def _mantissas(
    padded: bytes, point: Places, end: Places, n_whole: Places, n_decimals: Places
) -> tuple[Words, Array, Mask]:
    """All digits of each cell as a whole number, the power of ten it is too large by, and where that went wrong."""
    words: Words = np.ndarray((len(padded) - 7,), dtype="<u8", buffer=padded, strides=(1,))
    whole, faults = _digits(words[point - _WORD], np.clip(n_whole, 0, _WORD))
    low, more = _digits(words[end - _WORD], np.clip(n_decimals, 0, _WORD))
    faults |= more
    if (n_decimals > _WORD).any():
        high, more = _digits(words[end - 2 * _WORD], np.clip(n_decimals - _WORD, 0, _WORD))
        faults |= more
        low += high * _POWERS[_WORD]
    power = np.clip(n_decimals, 0, 2 * _WORD)
    number: Words = whole * _POWERS[power] + low
    return number, _SCALES[power], faults != 0


def _digits(words: Words, count: Places) -> tuple[Words, Words]:
    """The numbers that the last `count` letters of each word spell, and other than 0 where one is no digit."""
    u = np.uint64
    words ^= _ZEROS
    words &= _MASKS[count]
    faults = (words | (words + u(0x7676767676767676))) & u(0x8080808080808080)
    # Neighbours are joined to pairs, pairs to fours, fours to the number: 10 a + b in all places of the word at once.
    words *= u(10 * 2**8 + 1)
    words >>= u(8)
    words &= u(0x00FF00FF00FF00FF)
    words *= u(100 * 2**16 + 1)
    words >>= u(16)
    words &= u(0x0000FFFF0000FFFF)
    words *= u(10000 * 2**32 + 1)
    words >>= u(32)
    return words, faults


def _with_odd(values: Array, odd: Mask, padded: bytes, start: Places, end: Places) -> Array | None:
    """The values with those of odd cells read one by one; None if one is no number, or they are many."""
    places = np.flatnonzero(odd)
    if len(places) > _WORDY * len(values):
        return None
    bounds = zip(start[places].tolist(), end[places].tolist(), strict=True)
    try:
        values[places] = [float(padded[first:last]) for first, last in bounds]
    except ValueError:
        return None
    return values


# ----------------------------------------------------------------------------------------------------------------------
# Logs as text: CSV and its relatives, plain or compressed.

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


# ----------------------------------------------------------------------------------------------------------------------
# `Kept`: the numbers of a table that is slow to read, kept in a temporary file after the first complete pass.

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
