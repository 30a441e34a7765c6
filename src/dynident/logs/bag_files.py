"""Files of bags: the messages in MCAP and SQLite files of ROS 2 and in bags of ROS 1, as far as they can be read."""

from __future__ import annotations

import struct
import tempfile
import weakref
from bz2 import BZ2Decompressor
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from dynident.limits import LIMITS
from dynident.logs.log import LogError
from dynident.logs.message_layout import Message
from dynident.logs.message_types import Topic
from dynident.logs.tables import PART

_LARGEST_CHUNK = 1 << 28  # bytes of a chunk after unpacking; recorders cut at a few MB
_HARMLESS = 1 << 24  # bytes that may unpack at any ratio
_NEEDS = "needs {0}: pip install 'dynident[ros]'"
_ZSTD = b"\x28\xb5\x2f\xfd"  # what begins a frame of zstd; no CDR message does
ZSTD_ENDINGS = (".zstd", ".zst")
MCAP_MAGIC = b"\x89MCAP0\r\n"
ROS1_MAGIC = b"#ROSBAG V2.0\n"
TOGETHER = 4096  # messages that are handed out together

Topics = dict[str, Topic]
Wanted = Callable[[Topic], bool]


class CutOffError(Exception):
    """The share of a file, 0 to 1, after which it could not be read on."""


def read_messages(file: Path, topics: Topics, wanted: Wanted) -> Iterator[list[Message]]:
    """The messages of wanted topics in a file, many at a time; the topics it has are counted in `topics`.

    Raises:
        LogError: If a library is missing, or a part of the file unpacks beyond reason.
        CutOffError: Where the file cannot be read on. Nothing of a chunk that is damaged is used.
    """
    with file.open("rb") as opened:
        head = opened.read(16)
    if head.startswith(b"#ROSBAG") or file.suffix.lower() == ".bag":
        return _ros1_messages(file, topics, wanted)
    if head.startswith(b"SQLite format 3") or file.suffix.lower() == ".db3":
        return _sqlite_messages(file, topics, wanted)
    return _mcap_messages(file, topics, wanted)


def meet(topics: Topics, name: str, kind: str, encoding: str, definition: str = "", form: str = "") -> Topic:
    """The topic of this name, which is new or known already."""
    topic = topics.setdefault(name, Topic(name, kind, encoding, definition, form))
    if definition and not topic.definition:
        topic.definition, topic.form = definition, form
    return topic


def _refuse_bomb(file: Path, packed: int, unpacked: int) -> None:
    if unpacked > _LARGEST_CHUNK or (unpacked > _HARMLESS and unpacked > LIMITS.expansion * packed):
        raise LogError(str(file), f"a chunk of {packed} bytes unpacks to {unpacked}; that is no log")


# ----------------------------------------------------------------------------------------------------------------------
# MCAP: records of an opcode and a length, most of them in chunks.

_FOOTER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK = 2, 3, 4, 5, 6
_HEAD = struct.Struct("<BQ")  # opcode and length of a record
_MESSAGE_HEAD = struct.Struct("<BQHIqQ")  # and channel, sequence, time of recording, of publishing [ns]


def _mcap_messages(file: Path, topics: Topics, wanted: Wanted) -> Iterator[list[Message]]:
    try:
        from mcap.records import Channel, Schema
    except ImportError:
        raise LogError(str(file), "reading MCAP " + _NEEDS.format("mcap")) from None
    schemas: dict[int, Any] = {}
    channels: dict[int, tuple[Topic, bool]] = {}

    def describe(opcode: int, body: bytes) -> None:
        if opcode == _SCHEMA:
            schema = Schema.read(_stream(body))
            schemas[schema.id] = schema
        elif opcode == _CHANNEL:
            channel = Channel.read(_stream(body))
            schema = schemas.get(channel.schema_id)
            kind, text, form = ("no type", "", "") if schema is None else (schema.name, schema.data, schema.encoding)
            text = text.decode(errors="replace") if isinstance(text, bytes) else text
            topic = meet(topics, channel.topic, kind, channel.message_encoding, text, form)
            channels[channel.id] = topic, wanted(topic)

    def messages(records: bytes) -> list[Message]:
        """Those of successive records; written out, as there are millions of them."""
        found: list[Message] = []
        at, end = 0, len(records)
        while at < end:
            if records[at] == _MESSAGE:
                _, length, channel, _, stamp, _ = _MESSAGE_HEAD.unpack_from(records, at)
                start, at = at + _MESSAGE_HEAD.size, at + _HEAD.size + length
                if channel in channels and at <= end:
                    topic, takes = channels[channel]
                    topic.note(stamp)
                    if takes:
                        found.append((topic.name, stamp, unpack_message(file, records[start:at])))
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


def _stretches(file: Path, opened: IO[bytes], size: int) -> Iterator[bytes]:
    """The records of a file as bytes: what a chunk holds, or a record that is in none. Indices are skipped."""
    from mcap.records import Chunk
    from mcap.stream_reader import get_chunk_data_stream

    if opened.read(len(MCAP_MAGIC)) != MCAP_MAGIC:
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
            _refuse_bomb(file, len(chunk.data), chunk.uncompressed_size)
            stream, unpacked = get_chunk_data_stream(chunk, validate_crc=True)
            yield stream.read(unpacked)
        elif opcode in (_SCHEMA, _CHANNEL, _MESSAGE):
            yield head + opened.read(length)
        else:
            opened.seek(length, 1)
        if opcode == _FOOTER:
            if opened.read(len(MCAP_MAGIC)) != MCAP_MAGIC:
                raise ValueError("its end is cut off")
            return


def _stream(data: bytes) -> Any:
    from mcap.data_stream import ReadDataStream

    return ReadDataStream(BytesIO(data))


# ----------------------------------------------------------------------------------------------------------------------
# SQLite.


def _sqlite_messages(file: Path, topics: Topics, wanted: Wanted) -> Iterator[list[Message]]:
    import sqlite3  # other logs need none of it

    base = sqlite3.connect(f"file:{quote(str(file.resolve()))}?mode=ro", uri=True)
    try:
        definitions: dict[str, tuple[str, str]] = {}
        try:
            rows = base.execute("SELECT topic_type, encoded_message_definition, encoding FROM message_definitions")
            definitions = {kind: (text, form) for kind, text, form in rows}
        except sqlite3.Error:  # bags before ROS 2 Iron have no such table
            definitions = {}
        own: dict[int, Topic] = {}
        for key, name, kind, encoding in base.execute("SELECT id, name, type, serialization_format FROM topics"):
            own[key] = meet(topics, name, kind, encoding, *definitions.get(kind, ("", "")))
        taken = [key for key, topic in own.items() if wanted(topic)]
        listed = ",".join(str(int(key)) for key in taken)
        counts = "SELECT topic_id, count(*), min(timestamp), max(timestamp) FROM messages GROUP BY topic_id"
        try:
            for key, count, first, last in base.execute(counts):
                if key in own and key not in taken and count:
                    own[key].note(int(first))
                    own[key].note(int(last))
                    own[key].count += int(count) - 2
        except sqlite3.Error:  # a damaged page; the messages before it are read below
            pass
        rows = base.execute(
            f"SELECT topic_id, timestamp, data FROM messages WHERE topic_id IN ({listed}) ORDER BY timestamp, id"
        )
        messages: list[Message] = []
        try:
            for key, stamp, data in rows:
                own[key].note(int(stamp))
                messages.append((own[key].name, int(stamp), unpack_message(file, bytes(data))))
                if len(messages) == TOGETHER:
                    yield messages
                    messages = []
        except LogError:
            raise
        except Exception:  # those before a row that is damaged are good
            yield messages
            raise
        yield messages
    finally:
        base.close()


# ----------------------------------------------------------------------------------------------------------------------
# ROS 1: records of a header of named values and of data, most of them in chunks. Indices are not needed.

_ROS1_MESSAGE, _ROS1_START, _ROS1_CHUNK, _ROS1_CONNECTION = 2, 3, 5, 7
_U32 = struct.Struct("<I")


def _ros1_messages(file: Path, topics: Topics, wanted: Wanted) -> Iterator[list[Message]]:
    connections: dict[bytes, tuple[Topic, bool]] = {}
    size = file.stat().st_size
    complete = True

    def messages(records: bytes) -> list[Message]:
        found: list[Message] = []
        at = 0
        while at < len(records):
            header, data, at = _ros1_record(records, at)
            opcode = header[b"op"][0]
            if opcode == _ROS1_MESSAGE:
                seconds, rest = struct.unpack("<II", header[b"time"])
                topic, takes = connections[header[b"conn"]]
                stamp = seconds * 1_000_000_000 + rest
                topic.note(stamp)
                if takes:
                    found.append((topic.name, stamp, data))
            elif opcode == _ROS1_CONNECTION:
                about = _ros1_header(data)
                name, kind, text = (
                    own.decode(errors="replace")
                    for own in (header[b"topic"], about[b"type"], about.get(b"message_definition", b""))
                )
                topic = meet(topics, name, kind, "ros1", text, "ros1msg")
                connections[header[b"conn"]] = topic, wanted(topic)
        return found

    with file.open("rb") as opened:
        magic = opened.readline(32)
        if magic != ROS1_MAGIC:
            if magic.startswith(b"#ROSBAG"):
                raise LogError(
                    str(file),
                    f"is a bag of version {magic[8:].decode(errors='replace').strip()}; expected V2.0: rosbag fix",
                )
            raise ValueError("it does not begin as bags of ROS 1 do")
        gathered: list[Message] = []
        while opened.tell() < size:
            start = opened.tell()
            try:
                raw = opened.read(4)
                header = _ros1_header(_exactly(opened, *_U32.unpack(raw)))
                (length,) = _U32.unpack(opened.read(4))
                if length > size - opened.tell():
                    raise ValueError("a record is cut off")
                opcode = header[b"op"][0]
                if opcode == _ROS1_CHUNK:
                    packed = _exactly(opened, length)
                    records = _unpack_chunk(file, packed, header[b"compression"], *_U32.unpack(header[b"size"]))
                elif opcode in (_ROS1_MESSAGE, _ROS1_CONNECTION):  # also of bags without chunks
                    end = opened.tell() + length
                    opened.seek(start)
                    records = _exactly(opened, end - start)
                else:
                    if opcode == _ROS1_START:
                        complete = header.get(b"index_pos", b"\0" * 8) != b"\0" * 8
                    opened.seek(length, 1)
                    continue
                gathered += messages(records)
            except LogError:
                raise
            except Exception as error:  # a record that was cut can fail in any part of its decoding
                if gathered:
                    yield gathered
                raise CutOffError(start / max(1, size)) from error
            if len(gathered) >= TOGETHER or opcode == _ROS1_CHUNK:
                yield gathered
                gathered = []
        if gathered:
            yield gathered
    if not complete:
        raise CutOffError(1.0) from ValueError("the recorder did not end it")


def _exactly(opened: IO[bytes], length: int) -> bytes:
    data = opened.read(min(length, _LARGEST_CHUNK + 1))
    if len(data) != length:
        raise ValueError("a record is cut off")
    return data


def _ros1_header(data: bytes) -> dict[bytes, bytes]:
    """The values of a header by name."""
    values: dict[bytes, bytes] = {}
    at = 0
    while at < len(data):
        (length,) = _U32.unpack_from(data, at)
        name, equals, value = data[at + 4 : at + 4 + length].partition(b"=")
        at += 4 + length
        if not equals or at > len(data):
            raise ValueError("a header is cut off")
        values[name] = value
    return values


def _ros1_record(records: bytes, at: int) -> tuple[dict[bytes, bytes], bytes, int]:
    """Header and data of the record at a place, and where the next one starts."""
    (length,) = _U32.unpack_from(records, at)
    header = _ros1_header(records[at + 4 : at + 4 + length])
    start = at + 8 + length
    (size,) = _U32.unpack_from(records, start - 4)
    if start + size > len(records):
        raise ValueError("a record is longer than the chunk that holds it")
    return header, records[start : start + size], start + size


def _unpack_chunk(file: Path, packed: bytes, compression: bytes, size: int) -> bytes:
    _refuse_bomb(file, len(packed), size)
    if compression == b"none":
        data = packed
    elif compression == b"bz2":
        data = BZ2Decompressor().decompress(packed, max_length=size + 1)
    elif compression == b"lz4":
        try:
            from lz4.frame import LZ4FrameDecompressor
        except ImportError:
            raise LogError(str(file), "reading its chunks " + _NEEDS.format("lz4")) from None
        data = LZ4FrameDecompressor().decompress(packed, max_length=size + 1)
    else:
        raise LogError(str(file), f"has chunks packed by '{compression.decode(errors='replace')}'; unpack it (rosbag)")
    if len(data) != size:
        raise ValueError("a chunk has another size than it says")
    return data


# ----------------------------------------------------------------------------------------------------------------------
# zstd: of messages, and of files.


def unpack_message(file: Path, data: bytes) -> bytes:
    """A message as it was before the recorder packed it."""
    if data[:4] != _ZSTD:
        return data
    zstandard = _zstandard(file)
    size = int(zstandard.frame_content_size(data))
    _refuse_bomb(file, len(data), max(size, 0))
    unpacked: bytes = zstandard.ZstdDecompressor().decompress(data, max_output_size=_HARMLESS if size < 0 else 0)
    return unpacked


class UnpackedFiles:
    """Files that zstd packed as a whole, unpacked into a temporary folder that goes with this object."""

    def __init__(self) -> None:
        self._folder: Any = None
        self._known: dict[Path, Path] = {}

    def unpack(self, file: Path) -> Path:
        """The file itself, or what it was before it was packed.

        Raises:
            LogError: If it cannot be unpacked, or unpacks beyond reason.
        """
        if file.suffix.lower() not in ZSTD_ENDINGS:
            return file
        if file not in self._known:
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="dynident-")
                weakref.finalize(self, self._folder.cleanup)
            target = Path(self._folder.name) / f"{len(self._known)}-{file.stem}"
            zstandard = _zstandard(file)
            limit = max(_LARGEST_CHUNK, LIMITS.expansion * file.stat().st_size)
            try:
                with file.open("rb") as packed, target.open("wb") as unpacked:
                    reader = zstandard.ZstdDecompressor().stream_reader(packed)
                    while part := reader.read(PART):
                        unpacked.write(part)
                        if unpacked.tell() > limit or unpacked.tell() > 100 * LIMITS.memory_bytes:
                            raise LogError(str(file), f"unpacks to more than {limit} bytes; that is no log")
            except zstandard.ZstdError as error:
                words = f"cannot be unpacked by zstd ({error}); copy it again, or record again"
                raise LogError(str(file), words) from None
            self._known[file] = target
        return self._known[file]


def _zstandard(file: Path) -> Any:
    try:
        import zstandard
    except ImportError:
        raise LogError(str(file), "is packed by zstd, which " + _NEEDS.format("zstandard")) from None
    return zstandard
