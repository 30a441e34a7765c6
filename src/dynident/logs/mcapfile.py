"""The joint states of an MCAP file, chunk by chunk, as far as it can be read."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from dynident.logs.jointstate import JOINT_STATE, Message
from dynident.logs.log import LogError
from dynident.logs.memory import LARGEST_RATIO

_LARGEST_CHUNK = 1 << 28  # bytes of a chunk after unpacking; recorders cut at a few MB
_HARMLESS = 1 << 24  # bytes that may unpack at any ratio
_MAGIC = b"\x89MCAP0\r\n"
_FOOTER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK = 2, 3, 4, 5, 6
_HEAD = struct.Struct("<BQ")  # opcode and length of a record
_MESSAGE_HEAD = struct.Struct("<BQHIqQ")  # and channel, sequence, time of recording, of publishing [ns]


class CutOffError(Exception):
    """The share of a file, 0 to 1, after which it could not be read on."""


def mcap_messages(file: Path, topics: dict[str, str]) -> Iterator[list[Message]]:
    """The joint states of a file, those of a chunk at a time; the topics it has are put into `topics`.

    Raises:
        LogError: If mcap is not installed, a chunk unpacks beyond reason, or a topic is not encoded as ROS 2 does.
        CutOffError: Where the file cannot be read on. Nothing of a chunk that is damaged is used.
    """
    try:
        from mcap.records import Channel, Schema
    except ImportError:
        raise LogError(str(file), "reading MCAP needs mcap: pip install 'dynident[ros]'") from None
    kinds: dict[int, str] = {}
    wanted: dict[int, str] = {}  # topic by channel

    def describe(opcode: int, body: bytes) -> None:
        if opcode == _SCHEMA:
            schema = Schema.read(_stream(body))
            kinds[schema.id] = schema.name
        elif opcode == _CHANNEL:
            channel = Channel.read(_stream(body))
            topics[channel.topic] = kinds.get(channel.schema_id, "no type")
            if topics[channel.topic] in JOINT_STATE:
                wanted[channel.id] = checked_topic(file, channel.topic, channel.message_encoding)

    def messages(records: bytes) -> list[Message]:
        """Those of successive records; written out, as there are millions of them."""
        found: list[Message] = []
        at, end = 0, len(records)
        while at < end:
            if records[at] == _MESSAGE:
                _, length, channel, _, stamp, _ = _MESSAGE_HEAD.unpack_from(records, at)
                start, at = at + _MESSAGE_HEAD.size, at + _HEAD.size + length
                topic = wanted.get(channel)
                if topic is not None and at <= end:
                    found.append((topic, stamp, records[start:at]))
            else:
                opcode, length = _HEAD.unpack_from(records, at)
                start, at = at + _HEAD.size, at + _HEAD.size + length
                describe(opcode, records[start:at])
            if start > at or at > end:
                raise ValueError("a record is longer than the chunk that holds it")
        return found

    size = file.stat().st_size
    with file.open("rb") as opened:
        stretches = _stretches(file, opened, size)
        while True:
            try:
                found = messages(next(stretches))
            except StopIteration:
                return
            except LogError:
                raise
            except Exception as error:  # a record that was cut can fail in any part of its decoding
                raise CutOffError(opened.tell() / max(1, size)) from error
            if found:
                yield found


def checked_topic(file: Path, topic: str, encoding: str) -> str:
    """The topic, whose messages must be encoded as ROS 2 does.

    Raises:
        LogError: If they are not.
    """
    if encoding != "cdr":
        raise LogError(str(file), f"topic {topic} is encoded as '{encoding}', not as ROS 2 does (cdr); convert the bag")
    return topic


def _stretches(file: Path, opened: IO[bytes], size: int) -> Iterator[bytes]:
    """The records of a file as bytes: what a chunk holds, or a record that is in none. Indices are skipped."""
    from mcap.records import Chunk
    from mcap.stream_reader import get_chunk_data_stream

    if opened.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("it does not begin as MCAP files do")
    while True:
        head = opened.read(_HEAD.size)
        if len(head) < _HEAD.size:
            raise ValueError("it ends without a footer")
        opcode, length = _HEAD.unpack(head)
        if opcode == 0 or length > size - opened.tell():  # zeros are what a file system leaves of a lost end
            raise ValueError("a record is cut off")
        if opcode == _CHUNK:
            chunk = Chunk.read(_stream(opened.read(length)))
            _refuse_bomb(file, chunk)
            stream, unpacked = get_chunk_data_stream(chunk, validate_crc=True)
            yield stream.read(unpacked)
        elif opcode in (_SCHEMA, _CHANNEL, _MESSAGE):
            yield head + opened.read(length)
        else:
            opened.seek(length, 1)
        if opcode == _FOOTER:
            if opened.read(len(_MAGIC)) != _MAGIC:
                raise ValueError("its end is cut off")
            return


def _stream(data: bytes) -> Any:
    from mcap.data_stream import ReadDataStream

    return ReadDataStream(BytesIO(data))


def _refuse_bomb(file: Path, chunk: Any) -> None:
    size = chunk.uncompressed_size
    if size > _LARGEST_CHUNK or (size > _HARMLESS and size > LARGEST_RATIO * len(chunk.data)):
        raise LogError(str(file), f"a chunk of {len(chunk.data)} bytes unpacks to {size}; that is no log")
