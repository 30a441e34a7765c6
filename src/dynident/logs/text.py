"""Logs as text: CSV and its relatives, plain or compressed; long ones are read by pyarrow where it is installed."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import math
import tempfile
import threading
import weakref
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice, takewhile
from pathlib import Path
from typing import IO

import numpy as np

from dynident import limits
from dynident.arrays import Array
from dynident.logs.log import LogError
from dynident.logs.tables import LogTable

PART = 1 << 18  # bytes of a text read at a time; what is made of them stays in the processor's cache
SMALL_TEXT = 1 << 26  # bytes after unpacking that may be kept in memory
_MOST_REFUSED = 8  # parts of a text that pyarrow may refuse before it is no longer asked
FIRST_ARROW_PART = 32  # of a text, before which NumPy reads it: pyarrow saves no more there than it takes to load
_ARROW_BLOCK = 1 << 22  # bytes that pyarrow parses at a time: more than a part of a text with a line that goes on
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
        if max(len(first), len(second)) > limits.LIMITS.line_bytes:
            raise self._error(f"has a line of more than {limits.LIMITS.line_bytes} characters; that is no log")
        self._delimiter = next((d for d in _DELIMITERS if d in first), None)
        self.headers = self._names(first)
        in_comment = all(_is_number(cell) for cell in self.headers)
        if in_comment:
            self.headers = self._commented_header(len(self.headers))
        units = self._names(first if in_comment else second)
        if self._delimiter != "," and any(_is_number(cell.replace(",", ".")) and "," in cell for cell in units):
            raise self._error("writes numbers with decimal commas; write them with a point")
        self.units = [] if any(_is_number(cell) for cell in units) else units
        self._skip = 0 if in_comment else 2 if self.units else 1
        cells = [] if self.units or in_comment else units
        self.labels = {name: cell for name, cell in zip(self.headers, cells, strict=False) if not _is_number(cell)}

    def require_constant(self, headers: Sequence[str]) -> None:
        """Refuse the table unless these columns hold in every row the word that they hold in the first.

        Raises:
            LogError: Naming row and column.
        """
        places = {self.headers.index(header): self.labels[header] for header in headers}
        skip, row = self._skip, 0
        for lines in self._lines() if places else ():
            for line in lines:
                row += 1
                cells = _cells(line, self._delimiter)
                for place, label in places.items() if row > skip and len(cells) == len(self.headers) else ():
                    if cells[place].strip().strip('"') != label:
                        where = f"row {row - skip} of the numbers, column '{self.headers[place]}'"
                        found = f"'{cells[place].strip()[:30]}' after '{label}'"
                        raise self._error(f"{where}: {found}; several senders share the topic, record one of them")

    def fits(self, n_columns: int) -> bool:
        """Whether the unpacked text was small enough to be kept."""
        return self._content is not None

    def parts(self, places: Sequence[int]) -> Iterator[Array]:
        """The columns at these places, (n_places, n) each; other columns may hold anything."""
        n_rows, skip, n_refused = 0, self._skip, 0
        quick: Callable[[str], Array | None] | None = None
        for number, text in enumerate(self._texts()):
            if number == FIRST_ARROW_PART and self._delimiter is not None:
                quick = _arrow_reader(self._delimiter, len(self.headers), places)
            if quick is not None and n_refused < _MOST_REFUSED and not skip and text:
                part = quick(text)
                if part is not None:
                    yield part
                    n_rows += part.shape[1]
                    continue
                n_refused += 1
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
        with _reading(self.path), _open_text(self.path, self._content) as file:
            while part := file.read(PART):
                text, end, rest = (rest + decoder.decode(part)).rpartition("\n")
                if len(rest) > limits.LIMITS.line_bytes:
                    longest = limits.LIMITS.line_bytes
                    raise self._error(f"has a line of more than {longest} characters; that is no log")
                yield text + end
            rest += decoder.decode(b"", final=True)
        if rest:
            yield rest if rest.endswith("\n") else rest + "\n"

    def _commented_header(self, n_columns: int) -> list[str]:
        """The names in the comment before the first row, where `numpy.savetxt` puts them.

        Raises:
            LogError: If there is no such comment with a name for each column.
        """
        above = takewhile(lambda line: not line.strip() or line.lstrip()[0] == "#", next(self._texts(), "").split("\n"))
        comments = [line.lstrip().lstrip("#") for line in above if line.strip()]
        for delimiter in (self._delimiter, *_DELIMITERS, None):
            names = [cell.strip().strip('"') for cell in _cells(comments[-1].strip(), delimiter)] if comments else []
            if len(names) == n_columns and not any(_is_number(name) for name in names):
                return names
        raise self._error("has no header; the first line must name the columns, such as t,q1,q2,tau1,tau2")

    def _names(self, line: str) -> list[str]:
        return [cell.strip().strip('"') for cell in _cells(line, self._delimiter)] if line else []

    def _numbers(self, rows: list[str], before: int, places: Sequence[int]) -> Array:
        """The numbers of some rows at these places, (n_rows, n_places); `before` rows precede them."""
        delimiter, n_cells = self._delimiter, len(self.headers)
        uneven = (row.count(delimiter) + 1 != n_cells if delimiter else len(row.split()) != n_cells for row in rows)
        if any(uneven):
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
                    mixed = "; a file of several topics has empty cells: export topics of one rate only"
                    hint = "" if cells[place].strip() else mixed
                    return self._error(f"{where}, {shown} is not a number{hint}")
        return self._error(f"cannot be read as a table of numbers from row {before + 1} on")

    def _error(self, problem: str) -> LogError:
        return LogError(str(self.path), problem)


def _arrow_reader(delimiter: str, n_columns: int, places: Sequence[int]) -> Callable[[str], Array | None] | None:
    """What reads whole lines with pyarrow, to the same doubles as NumPy in half the time; None without pyarrow.

    Returns:
        A function of lines that gives the columns at these places, (n_places, n), or None for lines that are left to
        NumPy: comments, signs and blanks that pyarrow does not know, and all that is wrong, so that there is one
        message for it.
    """
    try:
        import pyarrow as arrow
        from pyarrow import csv
    except ImportError:
        return None
    names = [str(place) for place in range(n_columns)]
    wanted = [names[place] for place in places]
    read_options = csv.ReadOptions(column_names=names, use_threads=False, block_size=_ARROW_BLOCK)
    parse_options = csv.ParseOptions(delimiter=delimiter, quote_char=False, double_quote=False)
    convert_options = csv.ConvertOptions(
        column_types=dict.fromkeys(wanted, arrow.float64()),
        include_columns=wanted,
        null_values=[],
        strings_can_be_null=False,
    )

    def read(text: str) -> Array | None:
        try:
            table = csv.read_csv(arrow.BufferReader(text.encode()), read_options, parse_options, convert_options)
        except arrow.ArrowException:
            return None
        if table.num_rows != text.count("\n"):  # blank lines
            return None
        return np.array([table.column(name).to_numpy() for name in wanted])

    return read


def _counting(text: str) -> list[str]:
    """The lines of a text that are neither blank nor a comment."""
    return [line for line in text.split("\n") if (words := line.lstrip()) and words[0] != "#"]


def _examine(path: Path, limit: int) -> tuple[str, bytes | None]:
    """Hash of the unpacked content, and the content itself if it has at most `limit` bytes."""
    digest, size = hashlib.sha256(), 0
    kept: list[bytes] = []
    with _reading(path), _open_text(path) as file:
        packed = path.stat().st_size
        meter = limits.Expansion(packed, limits.LIMITS.text_bytes if path.suffix.lower() == ".gz" else math.inf)
        limit = 0 if _stated_size(path, packed) > limit else limit
        while part := file.read(PART):
            size += len(part)
            meter.add(len(part))
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


def _open_text(path: Path, content: bytes | None = None) -> io.BufferedIOBase:
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
    except limits.LimitError as error:
        raise LogError(source, str(error)) from None
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
# `KeptNumbers`: the numbers of a table that is slow to read, kept in a temporary file after the first complete pass.

MOST_KEPT = 2_000_000_000  # bytes of numbers; a longer table is read again at each pass


class KeptNumbers:
    """The parts of one table, to be had again without reading it.

    The file has no name, and goes when this record does. Where it cannot be written (a full disk) or would become
    larger than `MOST_KEPT`, every pass reads the table. A pass that is abandoned leaves nothing.
    """

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None  # of the pass that is kept
        self._places: tuple[int, ...] = ()  # its columns in the table
        self._lengths: list[int] = []  # of its parts
        self._refused = False  # for good, so that a full disk is not filled again at each pass
        self._lock = threading.Lock()  # passes may go on in several threads

    @property
    def complete(self) -> bool:
        """Whether a pass has been kept."""
        return self._file is not None

    def parts(self, table: LogTable, places: Sequence[int]) -> Iterator[Array]:
        """`table.parts(places)`, from the file if an earlier pass went over these columns to the end."""
        if self._file is not None and set(places) <= set(self._places):
            yield from self._stored_parts(self._file, places)
        elif self._refused:
            yield from table.parts(places)
        else:
            yield from self._write_parts(table, places)

    def _write_parts(self, table: LogTable, places: Sequence[int]) -> Iterator[Array]:
        """The parts of the table, written down as they go by."""
        try:
            file: IO[bytes] | None = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - it outlives the pass
        except OSError:  # no room for temporary files
            file = None
        lengths: list[int] = []
        size = 0  # bytes
        try:
            for part in table.parts(places):
                size += part.nbytes
                if file is not None and (size > MOST_KEPT or not _write_part(file, part)):
                    file.close()
                    file = None
                lengths += [part.shape[1]] if part.size else []
                yield part
            self._refused = file is None
            if file is not None:
                self._places, self._lengths = tuple(places), lengths
                self._file, file = file, None
                weakref.finalize(self, self._file.close)
        finally:
            if file is not None:
                file.close()

    def _stored_parts(self, file: IO[bytes], places: Sequence[int]) -> Iterator[Array]:
        """The parts as they were, with the columns at these places."""
        stored, rows = self._places, [self._places.index(place) for place in places]
        first = 0
        for n in self._lengths:
            part = np.empty((len(stored), n))
            with self._lock:
                file.seek(first)  # another pass may have moved on in between
                file.readinto(part.data.cast("B"))  # type: ignore[attr-defined]
            first += part.nbytes
            yield part if rows == list(range(len(stored))) else part[rows]

    def __getstate__(self) -> dict[str, object]:
        """A copy in another process starts with nothing."""
        return {"_refused": self._refused}

    def __setstate__(self, state: dict[str, bool]) -> None:
        self.__init__()  # type: ignore[misc]
        self._refused = state["_refused"]


def _write_part(file: IO[bytes], part: Array) -> bool:
    """Write a part, (n_places, n); False if it cannot be kept, on a disk that is full or has become so."""
    content = np.ascontiguousarray(part)
    try:
        return not part.size or file.write(content.data.cast("B")) == content.nbytes
    except OSError:
        return False
