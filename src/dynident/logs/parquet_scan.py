"""A look at the structure of a Parquet file: columns, levels and pages, before Arrow allocates anything for them.

Metadata and headers of pages are in Thrift's compact protocol, of which this reads as much as it takes to add them up.
The numbers that are believed bound what Arrow does: it unpacks no page beyond the size in its header.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import IO, Any

from dynident import limits
from dynident.limits import LimitError

_MAGIC = b"PAR1"
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT, _UUID = 1, 2, 3, 7, 8, 9, 10, 11, 12, 13
_INTEGERS = (4, 5, 6)  # of 2, 4 and 8 bytes, all written as zigzag numbers
_LEVELS = 16  # of structures in metadata; the format has six
_HEADERS = (1 << 8, 1 << 16)  # bytes that the header of a page may have, without and with long statistics
_TEXTS = (6, 7)  # physical types of columns that hold no numbers
_Fields = dict[int, Any]


class _Thrift:
    """Structures from bytes: {number of the field: value}."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self) -> int:
        """A number of variable length."""
        result = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result
            shift += 7
            if shift > 63:
                raise ValueError("a number in its metadata has no end")

    def integer(self) -> int:
        """A signed number."""
        value = self.number()
        return (value >> 1) ^ -(value & 1)

    def structure(self, depth: int = 0, last: int = 1 << 15) -> _Fields:
        """A structure; fields after number `last` are left unread."""
        if depth > _LEVELS:
            raise ValueError("its metadata are nested too deeply")
        fields: _Fields = {}
        number = 0
        while True:
            head = self.data[self.at]
            self.at += 1
            if head == 0:
                return fields
            number = number + (head >> 4) if head >> 4 else self.integer()
            if number > last:
                return fields
            fields[number] = self.value(head & 0x0F, depth)

    def value(self, kind: int, depth: int, in_list: bool = False) -> Any:
        """A value of a type; those of no interest are skipped and None."""
        if kind in (_TRUE, _FALSE):
            self.at += in_list
            return None
        if kind in _INTEGERS:
            return self.integer()
        if kind == _STRUCT:
            return self.structure(depth + 1)
        if kind in (_LIST, _SET):
            return self.items(depth)
        if kind == _MAP:
            return self._map(depth)
        size = {_BYTE: 1, _DOUBLE: 8, _UUID: 16}.get(kind)
        length = self.number() if kind == _BINARY else self._known(size, kind)
        self.at += length
        if self.at > len(self.data):
            raise ValueError("its metadata are cut off")
        return None

    def items(self, depth: int) -> list[Any]:
        """A list, whose items take at least a byte each."""
        head = self.data[self.at]
        self.at += 1
        count = head >> 4 if head >> 4 < 15 else self.number()
        if count > len(self.data) - self.at:
            raise ValueError("its metadata are cut off")
        return [self.value(head & 0x0F, depth, True) for _ in range(count)]

    def _map(self, depth: int) -> None:
        count = self.number()
        if count > len(self.data) - self.at:
            raise ValueError("its metadata are cut off")
        kinds = self.data[self.at] if count else 0
        self.at += bool(count)
        for _ in range(count):
            self.value(kinds >> 4, depth, True)
            self.value(kinds & 0x0F, depth, True)

    @staticmethod
    def _known(size: int | None, kind: int) -> int:
        if size is None:
            raise ValueError(f"its metadata have a field of unknown type {kind}")
        return size


def scan_parquet(file: IO[bytes]) -> None:
    """Refuse a file that has more of anything than a log.

    Raises:
        LimitError: If it is beyond a limit.
        ValueError, IndexError, struct.error: If it is damaged.
    """
    size = file.seek(0, 2)
    file.seek(max(0, size - 8))
    end = file.read(8)
    if len(end) < 8 or end[4:] != _MAGIC:
        raise ValueError("it does not end as Parquet files do; it is cut off, or something else")
    (length,) = struct.unpack("<I", end[:4])
    most = limits.LIMITS.parquet_footer_bytes
    if length > most:
        raise LimitError(f"has metadata of {length} bytes, more than {most}; write fewer columns or longer row groups")
    if length > size - 12:
        raise ValueError("its metadata are cut off")
    file.seek(size - 8 - length)
    footer = _Thrift(file.read(length))
    # 2: schema, 3: rows, 4: row groups; what follows is of no interest.
    about = footer.structure(last=4)
    _check_schema(about.get(2) or [])
    largest: dict[int, int] = {}  # page of each column: Arrow unpacks one of every column at the same time
    for group in about.get(4) or []:
        for column, chunk in enumerate(_number_columns(group)):
            largest[column] = max(largest.get(column, 0), _largest_page(file, size, chunk))
    limits.Expansion(size, limits.LIMITS.memory_bytes, limits.STREAM).add(sum(largest.values()))


def _check_schema(elements: list[_Fields]) -> None:
    own = limits.LIMITS
    if len(elements) > own.columns + 1:
        raise LimitError(f"has {len(elements) - 1} columns, more than the {own.columns} a log may have")
    opened: list[int] = []  # children that are still to come, level by level
    for element in elements:
        while opened and opened[-1] == 0:
            opened.pop()
        if opened:
            opened[-1] -= 1
        children = element.get(5) or 0
        if children:
            opened.append(children)
        if len(opened) > own.yaml_levels:
            raise LimitError(f"has columns within columns, more than {own.yaml_levels} levels")


def _number_columns(group: _Fields) -> Iterator[_Fields]:
    """Metadata of the columns of numbers of a row group; others are not read."""
    for chunk in group.get(1) or []:
        about = chunk.get(3)
        if isinstance(about, dict) and about.get(1) not in _TEXTS:
            yield about


def _largest_page(file: IO[bytes], size: int, chunk: _Fields) -> int:
    """Bytes that the largest page of a column unpacks to, by their headers, beyond which Arrow unpacks none."""
    start = min(place for place in (chunk.get(9), chunk.get(11) or chunk.get(9)) if place is not None)
    end = start + (chunk.get(7) or 0)
    if start < 0 or end > size:
        raise ValueError("a column reaches beyond its end")
    at, largest = start, 0
    while at < end:
        page, length = _page_header(file, at, end)
        unpacked, packed = page.get(2), page.get(3)
        if unpacked is None or packed is None or packed < 0 or unpacked < 0 or at + length + packed > end:
            raise ValueError("a page is cut off")
        largest = max(largest, unpacked)
        at += length + packed
    return largest


def _page_header(file: IO[bytes], at: int, end: int) -> tuple[_Fields, int]:
    """The header of a page and its length; few are long."""
    for window in _HEADERS:
        file.seek(at)
        header = _Thrift(file.read(min(window, end - at)))
        try:
            return header.structure(), header.at
        except (IndexError, ValueError):
            if window == _HEADERS[-1]:
                raise
    raise AssertionError
