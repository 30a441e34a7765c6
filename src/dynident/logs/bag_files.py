"""Files of bags: the messages in MCAP and SQLite files of ROS 2 and in bags of ROS 1, as far as they can be read."""

from __future__ import annotations

import struct
import tempfile
import weakref
import zlib
from bz2 import BZ2Decompressor
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from dynident import limits, schema
from dynident.limits import Expansion, LimitError
from dynident.logs.log import LogError
from dynident.logs.message_layout import Message
from dynident.logs.message_types import Topic
from dynident.logs.tables import PART

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
    """The topic of this name, which is new or known already.

    Raises:
        LimitError: If there are more topics, or longer names and definitions, than a bag has.
    """
    own = limits.LIMITS
    if not all(isinstance(word, str) for word in (name, kind, encoding, definition, form)):
        raise ValueError("a topic has no name or type")
    if len(name) > own.name_characters or len(kind) > own.name_characters:
        raise LimitError(f"has a topic with a name of {max(len(name), len(kind))} characters")
    if len(definition) > own.definition_characters:
        words = f"has a definition of {len(definition)} characters for {kind}"
        raise LimitError(f"{words}, more than {own.definition_characters}")
    if name not in topics and len(topics) >= own.columns:
        raise LimitError(f"has more than {own.columns} topics")
    topic = topics.setdefault(name, Topic(name, kind, encoding, definition, form))
    if definition and not topic.definition:
        topic.definition, topic.form = definition, form
    return topic


class _Unpacker:
    """Unpacks the chunks and messages of a file, each and all together no further than a log may.

    Args:
        file: The file.
    """

    def __init__(self, file: Path) -> None:
        self.file, self._meter = file, Expansion.of(file)

    def unpack(self, packed: bytes, compression: str, size: int) -> bytes:
        """A chunk, which must have the size that it claims.

        Raises:
            LogError: If a library is missing.
            LimitError: If it unpacks beyond reason.
            ValueError: If it is damaged.
        """
        self.claim(len(packed), size)
        if compression == "zstd":
            library = _zstandard(self.file)
            unpacker = library.ZstdDecompressor(max_window_size=limits.LIMITS.chunk_bytes)
            data: bytes = unpacker.stream_reader(packed).read(size + 1)
        elif compression == "lz4":
            try:
                from lz4.frame import LZ4FrameDecompressor
            except ImportError:
                raise LogError(str(self.file), "reading its chunks " + _NEEDS.format("lz4")) from None
            data = LZ4FrameDecompressor().decompress(packed, max_length=size + 1)
        elif compression == "bz2":
            data = BZ2Decompressor().decompress(packed, max_length=size + 1)
        elif compression in ("", "none"):
            data = packed
        else:
            raise LogError(str(self.file), f"has chunks packed by {schema.quote(compression)}; unpack it (rosbag)")
        if len(data) != size:
            raise ValueError("a chunk has another size than it says")
        return data

    def claim(self, packed: int, size: int) -> None:
        """Refuse what claims to unpack beyond reason; more than it claims never comes out."""
        own = limits.LIMITS
        if size > own.chunk_bytes or (size > own.harmless_chunk_bytes and size > own.expansion * packed):
            raise LimitError(f"a chunk of {packed} bytes unpacks to {size}; that is no log")
        self._meter.add(size)

    def message(self, data: bytes) -> bytes:
        """A message as it was before the recorder packed it."""
        if len(data) > limits.LIMITS.message_bytes:
            raise LimitError(f"has a message of {len(data)} bytes; that is no log of joints")
        if data[:4] != _ZSTD:
            return data
        library = _zstandard(self.file)
        size = int(library.frame_content_size(data))
        most = limits.LIMITS.message_bytes
        if size > most:
            raise LimitError(f"has a message that unpacks to {size} bytes; that is no log of joints")
        unpacker = library.ZstdDecompressor(max_window_size=limits.LIMITS.chunk_bytes)
        unpacked: bytes = unpacker.decompress(data, max_output_size=most if size < 0 else 0)
        self._meter.add(len(unpacked))
        return unpacked


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
    unpacker = _Unpacker(file)

    def describe(opcode: int, body: bytes) -> None:
        if opcode == _SCHEMA:
            schema = Schema.read(_stream(body))
            schemas[schema.id] = schema
            if len(schemas) > limits.LIMITS.columns:
                raise LimitError(f"has more than {limits.LIMITS.columns} types of messages")
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
                        found.append((topic.name, stamp, unpacker.message(records[start:at])))
            else:
                opcode, length = _HEAD.unpack_from(records, at)
                start, at = at + _HEAD.size, at + _HEAD.size + length
                describe(opcode, records[start:at])
            if start > at or at > end:
                raise ValueError("a record is longer than the chunk that holds it")
        return found

    size = file.stat().st_size
    with file.open("rb") as opened:
        stretches = _stretches(opened, size, unpacker)
        while True:
            try:
                found = messages(next(stretches))
            except StopIteration:
                return
            except (LogError, LimitError):
                raise
            except Exception as error:  # a record that was cut can fail in any part of its decoding
                raise CutOffError(opened.tell() / max(1, size)) from error
            if found:
                yield found


def _stretches(opened: IO[bytes], size: int, unpacker: _Unpacker) -> Iterator[bytes]:
    """The records of a file as bytes: what a chunk holds, or a record that is in none. Indices are skipped."""
    from mcap.records import Chunk

    if opened.read(len(MCAP_MAGIC)) != MCAP_MAGIC:
        raise ValueError("it does not begin as MCAP files do")
    while True:
        head = opened.read(_HEAD.size)
        if len(head) < _HEAD.size:
            raise ValueError("it ends without a footer")
        opcode, length = _HEAD.unpack(head)
        if opcode == 0 or length > size - opened.tell():  # zeros are what a file system leaves of a lost end
            raise ValueError("a record is cut off")
        if opcode in (_CHUNK, _SCHEMA, _CHANNEL, _MESSAGE) and length > limits.LIMITS.chunk_bytes:
            raise LimitError(f"has a record of {length} bytes; that is no log")
        if opcode == _CHUNK:
            chunk = Chunk.read(_stream(opened.read(length)))
            records = unpacker.unpack(chunk.data, chunk.compression, chunk.uncompressed_size)
            if chunk.uncompressed_crc and zlib.crc32(records) != chunk.uncompressed_crc:
                raise ValueError("a chunk is damaged: its CRC is another")
            yield records
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

    base = _open_sqlite(file)
    unpacker = _Unpacker(file)
    try:
        definitions: dict[str, tuple[str, str]] = {}
        if _has_table(base, "message_definitions"):  # bags before ROS 2 Iron have no such table
            rows = base.execute("SELECT topic_type, encoded_message_definition, encoding FROM message_definitions")
            definitions = {kind: (text, form) for kind, text, form in rows}
        for table in ("topics", "messages"):
            if not _has_table(base, table):
                raise ValueError(f"it has no table {table}")
        own: dict[int, Topic] = {}
        for key, name, kind, encoding in base.execute("SELECT id, name, type, serialization_format FROM topics"):
            own[int(key)] = meet(topics, name, kind, encoding, *definitions.get(kind, ("", "")))
        taken = [key for key, topic in own.items() if wanted(topic)]
        listed = ",".join(map(str, taken))
        counts = "SELECT topic_id, count(*), min(timestamp), max(timestamp) FROM messages GROUP BY topic_id"
        try:
            for key, count, first, last in base.execute(counts):
                if key in own and key not in taken and count:
                    own[key].note(int(first))
                    own[key].note(int(last))
                    own[key].count += int(count) - 2
        except sqlite3.DatabaseError as error:  # a damaged page; the messages before it are read below
            _refuse_endless(error)
        rows = base.execute(
            f"SELECT topic_id, timestamp, data FROM messages WHERE topic_id IN ({listed}) ORDER BY timestamp, id"
        )
        messages: list[Message] = []
        size = 0
        try:
            for key, stamp, data in rows:
                if type(stamp) is not int or type(data) is not bytes:  # bytes(n) would be n zeros
                    raise ValueError("a message has no bytes or no time")
                own[key].note(stamp)
                messages.append((own[key].name, stamp, unpacker.message(data)))
                size += len(data)
                if len(messages) == TOGETHER or size > limits.LIMITS.message_bytes:
                    yield messages
                    messages, size = [], 0
        except (LogError, LimitError):
            raise
        except Exception as error:  # those before a row that is damaged are good
            _refuse_endless(error)
            yield messages
            raise
        yield messages
    finally:
        base.close()


def _open_sqlite(file: Path) -> Any:
    """The database, which runs no code of its own, returns no cell larger than a log has, and ends in time."""
    import sqlite3

    base = sqlite3.connect(f"file:{quote(str(file.resolve()))}?mode=ro", uri=True)
    base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limits.LIMITS.chunk_bytes)
    base.execute("PRAGMA trusted_schema = OFF")
    base.execute("PRAGMA cell_size_check = ON")
    steps = 1_000_000 + limits.LIMITS.sqlite_steps * file.stat().st_size
    base.set_progress_handler(lambda: True, steps)  # interrupts the query that takes so many
    return base


def _refuse_endless(error: BaseException) -> None:
    if "interrupted" in str(error):
        raise LimitError("has more to compute than messages to read; that is no bag") from None


def _has_table(base: Any, name: str) -> bool:
    """Whether there is such a table.

    Raises:
        ValueError: If it is a view, or computes columns: those can run without end.
    """
    found = base.execute("SELECT type, rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
    if found is None:
        return False
    computed = [row[1] for row in base.execute(f"PRAGMA table_xinfo({name})") if row[6]]
    if found[0] != "table" or not found[1] or computed:
        raise LimitError(f"has {name} as something that is computed, not as a table; that is no bag")
    return True


# ----------------------------------------------------------------------------------------------------------------------
# ROS 1: records of a header of named values and of data, most of them in chunks. Indices are not needed.

_ROS1_MESSAGE, _ROS1_START, _ROS1_CHUNK, _ROS1_CONNECTION = 2, 3, 5, 7
_U32 = struct.Struct("<I")


def _ros1_messages(file: Path, topics: Topics, wanted: Wanted) -> Iterator[list[Message]]:
    connections: dict[bytes, tuple[Topic, bool]] = {}
    unpacker = _Unpacker(file)
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
                    found.append((topic.name, stamp, unpacker.message(data)))
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
                    compression = header[b"compression"].decode(errors="replace") or "?"
                    records = unpacker.unpack(packed, compression, *_U32.unpack(header[b"size"]))
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
            except (LogError, LimitError):
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
    if length > limits.LIMITS.chunk_bytes:
        raise LimitError(f"has a record of {length} bytes; that is no log")
    data = opened.read(length)
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


# ----------------------------------------------------------------------------------------------------------------------
# Files that zstd packed as a whole.


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
            meter = Expansion.of(file, 100 * limits.LIMITS.memory_bytes)
            try:
                with file.open("rb") as packed, target.open("wb") as unpacked:
                    window = limits.LIMITS.chunk_bytes
                    reader = zstandard.ZstdDecompressor(max_window_size=window).stream_reader(packed)
                    while part := reader.read(PART):
                        meter.add(len(part))
                        unpacked.write(part)
            except LimitError as error:
                raise LogError(str(file), str(error)) from None
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
