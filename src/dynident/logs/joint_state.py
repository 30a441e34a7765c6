"""ROS 2 `sensor_msgs/msg/JointState`: where its fields stand in its bytes (CDR), and many messages decoded at once."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array, Mask
from dynident.errors import InputError
from dynident.logs.columns import QUANTITIES

JOINT_STATE = ("sensor_msgs/msg/JointState", "sensor_msgs/JointState")
Message = tuple[str, int, bytes]  # topic, when it was recorded [ns], bytes; a plain tuple, as there are millions
Rows = NDArray[np.uint8]  # (n_messages, n_bytes): messages of equal length below each other
_BODY = 4  # bytes of the encapsulation header; alignment counts from behind it
_STAMP = 8  # bytes of the time stamp, which the frame and the names follow


@dataclass(frozen=True)
class Layout:
    """Where the fields of a joint state stand. The messages of one publisher share it: it is found out once.

    Attributes:
        names: The joints.
        order: Byte order, "<" or ">".
        fixed: Bytes that every message of this layout has, and where: frame and names, and how long the arrays are.
        starts: Where position, velocity and effort start; None for those that are absent.
    """

    names: tuple[str, ...]
    order: str
    fixed: tuple[tuple[int, bytes], ...]
    starts: tuple[int | None, ...]

    def alike(self, rows: Rows) -> Mask:
        """Which messages have this layout, (n_messages,); they have the length of the one it was found in."""
        same = np.ones(len(rows), dtype=bool)
        for start, part in self.fixed:
            same &= (rows[:, start : start + len(part)] == np.frombuffer(part, np.uint8)).all(axis=1)
        return same

    def stamps(self, rows: Rows) -> NDArray[np.int64]:
        """Time stamps of messages of this layout, (n_messages,) [ns]."""
        seconds, rest = (
            np.ascontiguousarray(rows[:, at : at + 4]).view(self.order + kind)[:, 0].astype(np.int64)
            for at, kind in ((_BODY, "i4"), (_BODY + 4, "u4"))
        )
        return seconds * 1_000_000_000 + rest

    def values(self, rows: Rows) -> tuple[Array | None, ...]:
        """Position, velocity and effort, (n_messages, n_joints) each or None."""
        size = 8 * len(self.names)
        return tuple(
            None
            if start is None
            else np.ascontiguousarray(rows[:, start : start + size])
            .view(self.order + "f8")
            .astype(np.float64, copy=False)
            for start in self.starts
        )


def layout_of(data: bytes) -> Layout:
    """The layout of a message.

    Raises:
        InputError: If the bytes are no joint state, an array has another length than the names, or a name is repeated.
    """
    if data[:2] not in (b"\x00\x00", b"\x00\x01"):
        raise InputError("is not plain CDR")
    order = "<" if data[1] else ">"
    body = data[_BODY:]
    try:
        struct.unpack_from(order + "iI", body)
        names, at = _names(body, order)
        fixed = [(0, data[:2]), (_BODY + _STAMP, body[_STAMP:at])]
        starts: list[int | None] = []
        for quantity in QUANTITIES:
            at += -at % 4
            (count,) = struct.unpack_from(order + "I", body, at)
            fixed.append((_BODY + at, body[at : at + 4]))
            start = at + 4 + (-(at + 4) % 8 if count else 0)
            if start + 8 * count > len(body):
                raise ValueError(count)
            if count not in (0, len(names)):
                raise InputError(f"has {len(names)} names but {count} values of {quantity}")
            starts.append(_BODY + start if count else None)
            at = start + 8 * count
    except (struct.error, ValueError):
        raise InputError("is cut off or no joint state") from None
    if len(set(names)) != len(names):
        raise InputError(f"names a joint twice: {', '.join(names)}")
    return Layout(names, order, tuple(fixed), tuple(starts))


def _names(body: bytes, order: str) -> tuple[tuple[str, ...], int]:
    """The joints, and where they end."""
    _, at = _string(body, _STAMP, order)  # the frame
    at += -at % 4
    (count,) = struct.unpack_from(order + "I", body, at)
    at += 4
    if count > len(body) // 4:
        raise ValueError(count)
    names: list[str] = []
    for _ in range(count):
        name, at = _string(body, at, order)
        names.append(name)
    return tuple(names), at


def _string(body: bytes, at: int, order: str) -> tuple[str, int]:
    at += -at % 4
    (size,) = struct.unpack_from(order + "I", body, at)
    end = at + 4 + size
    if end > len(body):
        raise ValueError(size)
    return body[at + 4 : end].rstrip(b"\0").decode(), end
