"""Logs as ROS 2 bags: the joint states of MCAP and SQLite files, as far as they can be read."""

from __future__ import annotations

import hashlib
import sqlite3
import struct
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from dynident.arrays import Array
from dynident.errors import InputError, RobotFileError
from dynident.logs.joint_state import JOINT_STATE, Message
from dynident.logs.log import LogError
from dynident.logs.publishers import (
    JointStates,
    Key,
    MessageSorter,
    Publisher,
    concatenate_states,
    fullest,
    merge_publishers,
    spread_joints,
)
from dynident.logs.tables import LARGEST_RATIO, LogTable, MemoryTable, file_digest, file_stamp, refuse_size
from dynident.robot.model import Robot
from dynident.schema import parse_yaml, read_text

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
        raise LogError(str(file), "reading MCAP needs mcap: pip install mcap") from None
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
                wanted[channel.id] = check_topic(file, channel.topic, channel.message_encoding)

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


def check_topic(file: Path, topic: str, encoding: str) -> str:
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


# ----------------------------------------------------------------------------------------------------------------------
# Logs as ROS 2 bags: MCAP files, SQLite files and rosbag2 directories of them.

SMALL_BAG = 1 << 25  # bytes of numbers up to which a log is read whole
KEPT_BAG = 1 << 28  # bytes of numbers that stay in memory, so that the bag is not unpacked at each pass
_TOGETHER = 4096  # messages that are decoded together
_FETCHED = 1 << 23  # bytes that are


def bag_table(path: Path, robot: Robot | None, names: Sequence[str] = (), keep: bool = True) -> LogTable:
    """The joint states of a bag: `t` since the first of them, `NAME.position`, `NAME.velocity` and `NAME.effort`.

    Of several topics, or of messages about different joints, those that know most of the robot's joints are taken.
    Joints that only others know are merged with them. What can be read of a bag that was cut off is used. The table's
    warnings say both.

    Args:
        path: The bag.
        robot: The robot, or None.
        names: Names such as `shoulder.position` that a column file gives a meaning.
        keep: Whether to keep the numbers of a bag that is not large, so that it need not be unpacked again.

    Raises:
        LogError: If there is no bag, or no joint state in it.
    """
    mapped = list(dict.fromkeys(name for name, dot, _ in (own.rpartition(".") for own in names) if dot))
    bag = BagTable(path, keep)
    found = list(bag.found.values())
    if not found:
        held = ", ".join(f"{name} ({kind})" for name, kind in sorted(bag.topics.items())[:20])
        raise LogError(str(path), f"has no message {JOINT_STATE[0]} that names joints; its topics: {held or 'none'}")
    known = [joint.name for joint in robot.joints] if robot is not None else []
    chosen = fullest(found, {*known, *mapped})
    wanted = [*(robot.joint_names if robot is not None else ()), *mapped]
    taken = spread_joints(found, chosen, wanted)
    others = [f"{name} (topic {one.topic})" for one in found if one.key not in taken for name in one.names]
    if len(taken) == 1:
        bag.choose(chosen, others)
        return bag
    states = bag.gather(taken)
    headers, columns, words = merge_publishers(str(path), [(bag.found[key], taken[key], states[key]) for key in taken])
    return MemoryTable(headers, columns, others, bag.digest, [*bag.warnings, words])


class BagTable:
    """The files of a bag, read once to know what is in them, and the messages of one publisher as columns.

    Args:
        path: The bag.
        keep: Whether to keep the numbers of a bag that is not large.

    Attributes:
        found: Its publishers.
        topics: Kind of message by topic.
    """

    headers: list[str]
    others: list[str]

    def __init__(self, path: Path, keep: bool) -> None:
        self.path, self.files = path, _files(path)
        self.units: list[str] = []
        self.topics: dict[str, str] = {}
        said: list[str] = []
        self._stamps = [file_stamp(file) for file in self.files]
        self._kept: dict[Key, list[JointStates]] | None = {} if keep else None
        sorter, size = MessageSorter(), 0
        with self._reading():
            for messages in _batches(self.files, self.topics, said):
                for key, block in sorter.feed(messages).items():
                    size += block.n_bytes
                    if size > KEPT_BAG:
                        self._kept = None
                    if self._kept is not None:
                        self._kept.setdefault(key, []).append(block)
            digests = [file_digest(file) for file in self.files]
        self.found = sorter.found
        self.warnings = tuple(said)
        self.digest = digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()

    def choose(self, publisher: Publisher, others: Sequence[str]) -> None:
        """Give the columns of one publisher, and let go of the numbers of all others."""
        self.headers, self.others, self._publisher = publisher.headers, list(others), publisher
        if self._kept is not None:
            self._kept = {publisher.key: self._kept[publisher.key]}

    def fits(self, n_columns: int) -> bool:
        """Whether so many columns are small enough for a log in memory."""
        return self._publisher.count * n_columns * 8 <= SMALL_BAG

    def parts(self, places: Sequence[int]) -> Iterator[Array]:
        """The columns at these places, (n_places, n) each."""
        for _, block in self.blocks([self._publisher.key]):
            yield self._publisher.columns(block, places)

    def blocks(self, keys: Collection[Key]) -> Iterator[tuple[Key, JointStates]]:
        """The messages of some publishers, from memory or from the files."""
        if self._kept is not None:
            yield from ((key, block) for key in keys for block in self._kept[key])
            return
        if [file_stamp(file) for file in self.files] != self._stamps:
            raise LogError(str(self.path), "has changed since it was opened; open it again")
        sorter = MessageSorter()
        with self._reading():
            for messages in _batches(self.files, {}, []):  # what there is to say of the files was said
                yield from ((key, block) for key, block in sorter.feed(messages).items() if key in keys)

    def gather(self, keys: Collection[Key]) -> dict[Key, JointStates]:
        """All messages of some publishers in memory."""
        own: dict[Key, list[JointStates]] = {key: [] for key in keys}
        size = 0
        for key, block in self.blocks(keys):
            own[key].append(block)
            size += block.n_bytes
            refuse_size(self.path, size)
        return {key: concatenate_states(blocks) for key, blocks in own.items()}

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except InputError as error:
            raise LogError(str(self.path), str(error)) from None
        except OSError as error:
            raise LogError(str(self.path), f"cannot be read ({error.strerror})") from None


def _files(path: Path) -> list[Path]:
    """The files of a bag in their order."""
    if not path.exists():
        raise LogError(str(path), "no such file; check the path")
    if not path.is_dir():
        return [path]
    metadata = path / "metadata.yaml"
    names = _file_names(metadata) if metadata.exists() else []
    files = [path / Path(name).name for name in names]
    files = files or sorted(file for file in path.iterdir() if file.suffix in (".mcap", ".db3"))
    if not files:
        raise LogError(str(path), "is a directory without metadata.yaml, .mcap or .db3 files; give a bag or a log file")
    for file in files:
        if not file.is_file():
            raise LogError(str(path), f"{file.name}, which its metadata.yaml names, is missing; copy the directory")
        if file.suffix not in (".mcap", ".db3"):
            raise LogError(str(path), f"{file.name} is compressed as a whole; unpack it (ros2 bag convert)")
    return files


def _file_names(metadata: Path) -> list[str]:
    """The files that a metadata.yaml names."""
    try:
        given: Any = parse_yaml(read_text(metadata), str(metadata))
    except RobotFileError as error:
        raise LogError(str(metadata), error.problem) from None
    about = given.get("rosbag2_bagfile_information")
    names = about.get("relative_file_paths") if isinstance(about, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise LogError(str(metadata), "has no list rosbag2_bagfile_information.relative_file_paths")
    return names


def _batches(files: Sequence[Path], topics: dict[str, str], said: list[str]) -> Iterator[list[Message]]:
    """The joint states of all files, many at a time, as short chunks would be slow to decode one by one."""
    batch: list[Message] = []
    size = 0
    for file in files:
        for messages in _messages(file, topics, said):
            batch += messages
            size += sum(len(message[2]) for message in messages)
            if len(batch) >= _TOGETHER or size >= _FETCHED:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


def _messages(file: Path, topics: dict[str, str], said: list[str]) -> Iterator[list[Message]]:
    """The joint states of one file, as far as it can be read; where that is not to its end, `said` gets a sentence."""
    read = _sqlite_messages(file, topics) if file.suffix.lower() == ".db3" else mcap_messages(file, topics)
    count = 0
    try:
        for messages in read:
            count += len(messages)
            yield messages
    except (LogError, OSError):
        raise
    except Exception as error:  # the libraries let through what their parts raise
        if count == 0:
            cause = error.__cause__ or error
            raise LogError(str(file), f"cannot be read as a bag ({cause or type(cause).__name__})") from None
        share = f" after {error.args[0]:.0%} of its bytes" if isinstance(error, CutOffError) else ""
        said.append(f"{file}: is cut off or damaged{share}; the {count} joint states before that are used")


def _sqlite_messages(file: Path, topics: dict[str, str]) -> Iterator[list[Message]]:
    base = sqlite3.connect(f"file:{quote(str(file.resolve()))}?mode=ro", uri=True)
    try:
        names: dict[int, str] = {}
        for key, name, kind, encoding in base.execute("SELECT id, name, type, serialization_format FROM topics"):
            topics[name] = kind
            if kind in JOINT_STATE:
                names[key] = check_topic(file, name, encoding)
        rows = base.execute("SELECT topic_id, timestamp, data FROM messages ORDER BY timestamp, id")
        messages: list[Message] = []
        try:
            for key, stamp, data in rows:
                if key in names:
                    messages.append((names[key], int(stamp), bytes(data)))
                if len(messages) == _TOGETHER:
                    yield messages
                    messages = []
        except Exception:  # those before a row that is damaged are good
            yield messages
            raise
        yield messages
    finally:
        base.close()
