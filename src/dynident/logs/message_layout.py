"""Where the numbers of a ROS message stand in its bytes (CDR of ROS 2, ROS 1), and many messages decoded at once."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array, Mask
from dynident.errors import InputError
from dynident.logs.definitions import ANY, PRIMITIVES, Field, Types, find_type

Message = tuple[str, int, bytes]  # topic, when it was recorded [ns], bytes; a plain tuple, as there are millions
Rows = NDArray[np.uint8]  # (n_messages, n_bytes): messages of equal length below each other
_BODY = 4  # bytes of the encapsulation header of CDR; alignment counts from behind it
_PADDING = 7  # bytes that may follow a CDR message
_LONGEST = 1000  # elements of an array beyond which it is no channel: pixels, points
_MOST = 100_000  # elements of arrays of structures that are looked at
_DEEPEST = 50  # types within types


class Leaf(NamedTuple):
    """Numbers that stand next to each other: where in the bytes, of which NumPy type, and how many."""

    start: int
    kind: str
    size: int


@dataclass
class Walk:
    """What a message holds, from its bytes and the definition of its type.

    Attributes:
        order: Byte order, "<" or ">".
        leaves: Numbers by path, such as `feedback.positions`; of structures in arrays by `motor_state[3].q`.
        arrays: Paths of those that are arrays.
        texts: Words by path.
        fixed: Bytes that say how long arrays and words are, and where they stand.
        end: Bytes that were read.
    """

    order: str
    leaves: dict[str, Leaf] = field(default_factory=dict)
    arrays: set[str] = field(default_factory=set)
    texts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    fixed: list[tuple[int, bytes]] = field(default_factory=list)
    end: int = 0


def walk_message(data: bytes, fields: tuple[Field, ...], types: Types, ros1: bool) -> Walk:
    """Walk through the bytes of a message along its definition.

    Args:
        data: The message.
        fields: Of its type.
        types: Of the structures in it.
        ros1: Whether it is encoded as ROS 1 does: without encapsulation and alignment.

    Raises:
        InputError: If the bytes are not a message of this type.
    """
    if not ros1 and data[:2] not in (b"\x00\x00", b"\x00\x01"):
        raise InputError("is not plain CDR")
    walker = _Walker(data, types, ros1, "<" if ros1 or data[1] else ">")
    try:
        walker.fields(fields, "", 0)
    except (struct.error, UnicodeDecodeError, ValueError):
        raise InputError("is cut off or not of its type") from None
    left = len(data) - walker.at
    if left < 0 or left > (0 if ros1 else _PADDING):
        raise InputError("is cut off or not of its type")
    walker.found.end = walker.at
    return walker.found


class _Walker:
    def __init__(self, data: bytes, types: Types, ros1: bool, order: str) -> None:
        self.data, self.types, self.ros1 = data, types, ros1
        self.base = 0 if ros1 else _BODY
        self.at = self.base
        self.found = Walk(order)
        self._many = 0
        if not ros1:
            self.found.fixed.append((0, data[:2]))

    def fields(self, fields: tuple[Field, ...], path: str, depth: int) -> None:
        if depth > _DEEPEST:
            raise ValueError("types contain themselves")
        if not fields and not self.ros1:  # ROS 2 gives an empty structure one byte
            self.at += 1
        for name, kind, length in fields:
            self.one(f"{path}.{name}" if path else name, kind, length, depth)

    def one(self, path: str, kind: str, length: int | None, depth: int) -> None:
        count = 1 if length is None else self.count(kind) if length == ANY else length
        if kind in PRIMITIVES:
            self.numbers(path, PRIMITIVES[kind], count, length is not None)
        elif kind == "string":
            words = tuple(self.text(path, names=length is not None) for _ in range(count))
            self.found.texts[path] = words
        elif kind in ("wstring", "float128"):
            raise InputError(f"has a field of type {kind}, which is not read")
        else:
            inner = find_type(self.types, kind, self.ros1)
            self._many += count
            if self._many > _MOST:
                raise InputError(f"has more than {_MOST} structures; that is no log of joints")
            for i in range(count):
                self.fields(inner, path if length is None else f"{path}[{i}]", depth + 1)

    def count(self, kind: str) -> int:
        """Of the elements of an array, which takes at least a byte for each."""
        self.align(4)
        (count,) = struct.unpack_from(f"{self.found.order}I", self.data, self.at)
        self.found.fixed.append((self.at, self.data[self.at : self.at + 4]))
        self.at += 4
        size = int(PRIMITIVES[kind][1:]) if kind in PRIMITIVES else 1
        if count * size > len(self.data) - self.at:
            raise ValueError(count)
        return int(count)

    def numbers(self, path: str, kind: str, count: int, array: bool) -> None:
        size = int(kind[1:])
        if count:
            self.align(size)
        if self.at + size * count > len(self.data):
            raise ValueError(path)
        if count <= _LONGEST:
            self.found.leaves[path] = Leaf(self.at, kind, count)
            if array:
                self.found.arrays.add(path)
        self.at += size * count

    def text(self, path: str, names: bool) -> str:
        """The next words; names of joints and frames do not change within a layout."""
        contents = names or path.endswith("frame_id")
        self.align(4)
        (size,) = struct.unpack_from(f"{self.found.order}I", self.data, self.at)
        end = self.at + 4 + size
        if end > len(self.data):
            raise ValueError(size)
        raw = self.data[self.at + 4 : end]
        self.found.fixed.append((self.at, self.data[self.at : end if contents else self.at + 4]))
        self.at = end
        return raw.rstrip(b"\0").decode(errors="strict" if names else "replace")

    def align(self, size: int) -> None:
        if not self.ros1:
            self.at += -(self.at - self.base) % size


# ----------------------------------------------------------------------------------------------------------------------
# Messages of one layout, decoded together.


class Piece(NamedTuple):
    """Numbers of a message that are columns: the numbers, and the first of the columns."""

    leaf: Leaf
    column: int


@dataclass(frozen=True)
class Layout:
    """Where the columns of a message stand. The messages of one publisher share it: it is found out once.

    Attributes:
        names: The joints; for types without names of joints, the columns.
        order: Byte order, "<" or ">".
        fixed: Bytes that every message of this layout has, and where: names, and how long arrays are.
        stamp: Seconds and nanoseconds of the header; None without one.
        values: By quantity, where its numbers are; empty for those that are absent.
    """

    names: tuple[str, ...]
    order: str
    fixed: tuple[tuple[int, bytes], ...]
    stamp: tuple[Leaf, Leaf] | None
    values: tuple[tuple[Piece, ...], ...]

    def alike(self, rows: Rows) -> Mask:
        """Which messages have this layout, (n_messages,); they have the length of the one it was found in."""
        same = np.ones(len(rows), dtype=bool)
        for start, part in self.fixed:
            same &= (rows[:, start : start + len(part)] == np.frombuffer(part, np.uint8)).all(axis=1)
        return same

    def stamps(self, rows: Rows) -> NDArray[np.int64]:
        """Time stamps of messages of this layout, (n_messages,) [ns]; zero without one."""
        if self.stamp is None:
            return np.zeros(len(rows), dtype=np.int64)
        seconds, rest = (self._numbers(rows, leaf)[:, 0].astype(np.int64) for leaf in self.stamp)
        return seconds * 1_000_000_000 + rest

    def columns(self, rows: Rows) -> tuple[Array | None, ...]:
        """By quantity its numbers, (n_messages, n_names) each or None; NaN for a joint that lacks the quantity."""
        return tuple(self._columns(rows, pieces) if pieces else None for pieces in self.values)

    def _columns(self, rows: Rows, pieces: tuple[Piece, ...]) -> Array:
        if len(pieces) == 1 and pieces[0].leaf.size == len(self.names):
            return self._numbers(rows, pieces[0].leaf).astype(np.float64, copy=False)
        result = np.full((len(rows), len(self.names)), np.nan)
        for leaf, column in pieces:
            result[:, column : column + leaf.size] = self._numbers(rows, leaf)
        return result

    def _numbers(self, rows: Rows, leaf: Leaf) -> NDArray[np.generic]:
        start, kind, count = leaf
        own = np.ascontiguousarray(rows[:, start : start + int(kind[1:]) * count])
        return own.view(self.order + kind)


def join_fixed(parts: list[tuple[int, bytes]]) -> tuple[tuple[int, bytes], ...]:
    """Bytes that stand next to each other as one part, so that they are compared at once."""
    return tuple(_join_parts(sorted(parts)))


def _join_parts(parts: list[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    start, together = 0, b""
    for at, part in parts:
        if together and at == start + len(together):
            together += part
            continue
        if together:
            yield start, together
        start, together = at, part
    if together:
        yield start, together
