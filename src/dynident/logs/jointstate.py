"""ROS 2 `sensor_msgs/msg/JointState`: its bytes (CDR), and many of them as columns keyed by joint name."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import numpy as np

from dynident.checks import Array
from dynident.errors import InputError
from dynident.logs.joints import QUANTITIES

JOINT_STATE = ("sensor_msgs/msg/JointState", "sensor_msgs/JointState")


@dataclass(frozen=True)
class Received:
    """A message as a bag holds it: its topic, when it was recorded [ns], and its bytes."""

    topic: str
    stamp: int
    data: bytes


class Decoder:
    """Bytes to joint states. Names are decoded once, as every message of a publisher repeats them."""

    def __init__(self) -> None:
        self._prefix = b"\xff"
        self._names: tuple[str, ...] = ()

    def decode(self, data: bytes) -> tuple[int, tuple[str, ...], list[Array]]:
        """Stamp [ns], joint names, and position, velocity and effort, (n_joints,) each or empty.

        Raises:
            InputError: If the bytes are no joint state, or an array has another length than the names.
        """
        if data[:2] not in (b"\x00\x00", b"\x00\x01"):
            raise InputError("is not plain CDR")
        order = "<" if data[1] else ">"
        body = data[4:]  # alignment counts from behind the encapsulation header
        try:
            seconds, nanoseconds = struct.unpack_from(order + "iI", body)
            if not body.startswith(self._prefix, 8):
                self._read_names(body, order)
            at = 8 + len(self._prefix)
            arrays: list[Array] = []
            for _ in QUANTITIES:
                values, at = _doubles(body, at, order)
                arrays.append(values)
        except (struct.error, ValueError):
            raise InputError("is cut off or no joint state") from None
        for quantity, values in zip(QUANTITIES, arrays, strict=True):
            if len(values) not in (0, len(self._names)):
                raise InputError(f"has {len(self._names)} names but {len(values)} values of {quantity}")
        return seconds * 1_000_000_000 + nanoseconds, self._names, arrays

    def _read_names(self, body: bytes, order: str) -> None:
        _, at = _string(body, 8, order)
        at += -at % 4
        (count,) = struct.unpack_from(order + "I", body, at)
        at += 4
        if count > len(body) // 4:
            raise ValueError(count)
        names: list[str] = []
        for _ in range(count):
            name, at = _string(body, at, order)
            names.append(name)
        self._names, self._prefix = tuple(names), body[8:at]


def _string(body: bytes, at: int, order: str) -> tuple[str, int]:
    at += -at % 4
    (size,) = struct.unpack_from(order + "I", body, at)
    end = at + 4 + size
    if end > len(body):
        raise ValueError(size)
    return body[at + 4 : end].rstrip(b"\0").decode(), end


def _doubles(body: bytes, at: int, order: str) -> tuple[Array, int]:
    at += -at % 4
    (count,) = struct.unpack_from(order + "I", body, at)
    at += 4
    if count == 0:
        return np.empty(0), at
    at += -at % 8
    return np.frombuffer(body, order + "f8", count, at), at + 8 * count


@dataclass
class Publisher:
    """The messages of one topic about one set of joints.

    Attributes:
        topic: The topic.
        names: The joints, in the order of the first message.
        stamps: Of the header and of the recorder [ns].
        values: Position, velocity and effort, message after message in the order of `names`; absent ones are NaN.
    """

    topic: str
    names: tuple[str, ...]
    stamps: list[tuple[int, int]] = field(default_factory=list)
    values: tuple[bytearray, ...] = field(default_factory=lambda: tuple(bytearray() for _ in QUANTITIES))

    def add(self, stamp: int, recorded: int, names: tuple[str, ...], arrays: list[Array]) -> None:
        """One message; its joints may come in another order than before."""
        if names != self.names:
            order = [names.index(name) for name in self.names]
            arrays = [values[order] if len(values) else values for values in arrays]
        self.stamps.append((stamp, recorded))
        for kept, values in zip(self.values, arrays, strict=True):
            # As bytes: a hundred thousand small arrays take more room for themselves than for their numbers.
            kept += (values if len(values) else np.full(len(names), np.nan)).astype(np.float64, copy=False).tobytes()

    def columns(self) -> tuple[list[str], list[Array]]:
        """Headers and columns: t since the first message [s], then `NAME.position` and so on; absent values are NaN."""
        stamps = np.array(self.stamps, dtype=np.int64)
        # A publisher that does not stamp its messages leaves zeros.
        own = stamps[:, 0] if stamps[:, 0].all() else stamps[:, 1]
        headers, columns = ["t"], [(own - own[0]) / 1e9]
        for quantity, kept in zip(QUANTITIES, self.values, strict=True):
            table = np.frombuffer(kept).reshape(-1, len(self.names))
            if not np.isnan(table).all():
                headers += [f"{name}.{quantity}" for name in self.names]
                columns += list(table.T)
        return headers, columns


def publishers(messages: Iterable[Received]) -> list[Publisher]:
    """The messages by topic and set of joints.

    Raises:
        InputError: For a message that cannot be decoded.
    """
    decoders: dict[str, Decoder] = {}
    found: dict[tuple[str, frozenset[str]], Publisher] = {}
    for count, message in enumerate(messages, 1):
        decoder = decoders.setdefault(message.topic, Decoder())
        try:
            stamp, names, arrays = decoder.decode(message.data)
        except InputError as error:
            raise InputError(f"joint state {count} (topic {message.topic}) {error}") from None
        if not names:
            continue  # numbers without names belong to no joint
        key = message.topic, frozenset(names)
        if len(key[1]) != len(names):
            raise InputError(f"joint state {count} (topic {message.topic}) names a joint twice: {', '.join(names)}")
        found.setdefault(key, Publisher(message.topic, names)).add(stamp, message.stamp, names, arrays)
    return list(found.values())


def fullest(candidates: Iterable[Publisher], joints: Collection[str]) -> Publisher:
    """The publisher that tells about most of these joints, and most often."""
    return max(candidates, key=lambda one: (len(set(one.names) & set(joints)), len(one.stamps)))
