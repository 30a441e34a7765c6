"""Logs as text: CSV and its relatives, plain or compressed."""

from __future__ import annotations

import gzip
import io
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynident.checks import Array
from dynident.logs.log import LogError

LARGEST_TEXT = 4_000_000_000  # bytes after unpacking: a day of a 7-joint arm at 1 kHz is smaller
LARGEST_RATIO = 200  # unpacked to packed: numbers never shrink this much
_DELIMITERS = (",", ";", "\t")


@dataclass(frozen=True)
class TextTable:
    """A table as read: header and unit row as written, numbers as they stand."""

    headers: list[str]
    units: list[str]
    values: Array  # (n_rows, n_columns)


def read_bytes(path: Path) -> bytes:
    """Content of a plain or gzip file; one that unpacks beyond reason is refused while it unpacks."""
    source = str(path)
    try:
        packed = path.stat().st_size
        if path.suffix.lower() != ".gz":
            return path.read_bytes()
        parts, size = [], 0
        with gzip.open(path) as file:
            while part := file.read(1 << 22):
                size += len(part)
                if size > LARGEST_TEXT or (size > 1 << 26 and size > LARGEST_RATIO * packed):
                    raise LogError(source, f"unpacks to more than {size} bytes from {packed}; that is no log")
                parts.append(part)
        return b"".join(parts)
    except FileNotFoundError:
        raise LogError(source, "no such file; check the path") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise LogError(source, "is not a complete gzip file; copy it again") from None
    except OSError as error:
        raise LogError(source, f"cannot be read ({error.strerror})") from None


def parse_table(content: bytes, source: str) -> TextTable:
    """Header, unit row and numbers of a delimited text."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise LogError(source, "is not text; give a CSV, Parquet or npz file") from None
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        raise LogError(source, "is empty")
    delimiter = next((d for d in _DELIMITERS if d in lines[0]), None)
    headers = [cell.strip().strip('"') for cell in _cells(lines[0], delimiter)]
    if all(_is_number(cell) for cell in headers):
        raise LogError(source, "has no header; the first line must name the columns, such as t,q1,q2,tau1,tau2")
    units: list[str] = []
    first = 1
    if len(lines) > 1:
        second = [cell.strip().strip('"') for cell in _cells(lines[1], delimiter)]
        if not any(_is_number(cell) for cell in second):
            units, first = second, 2
    rows = lines[first:]
    if len(rows) < 2:
        raise LogError(source, f"has {len(rows)} rows of numbers; a log needs many")
    return TextTable(headers, units, _numbers(rows, delimiter, headers, first, source))


def _cells(line: str, delimiter: str | None) -> list[str]:
    return line.split(delimiter) if delimiter else line.split()


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _numbers(rows: list[str], delimiter: str | None, headers: list[str], first: int, source: str) -> Array:
    try:
        values = np.loadtxt(io.StringIO("\n".join(rows)), delimiter=delimiter, ndmin=2, comments=None)
    except ValueError:
        raise _first_problem(rows, delimiter, headers, first, source) from None
    if values.shape[1] != len(headers):
        raise _first_problem(rows, delimiter, headers, first, source)
    return np.asarray(values, dtype=np.float64)


def _first_problem(rows: list[str], delimiter: str | None, headers: list[str], first: int, source: str) -> LogError:
    """The line and column that cannot be read."""
    for i, row in enumerate(rows):
        cells = _cells(row, delimiter)
        where = f"row {i + 1} of the numbers"
        if len(cells) != len(headers):
            return LogError(source, f"{where} has {len(cells)} cells, but the header has {len(headers)}")
        for header, cell in zip(headers, cells, strict=True):
            if not _is_number(cell):
                return LogError(source, f"{where}, column '{header}': '{cell.strip()[:30]}' is not a number")
    return LogError(source, f"cannot be read as a table of numbers from line {first + 1} on")
