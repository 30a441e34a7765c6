"""Logs as ROS 2 bags: MCAP files, SQLite files and rosbag2 directories of them."""

from __future__ import annotations

import hashlib
import sqlite3
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dynident.errors import InputError, RobotFileError
from dynident.logs.jointstate import JOINT_STATE, Received, fullest, publishers
from dynident.logs.log import LogError
from dynident.logs.memory import LARGEST_RATIO, LogWarning, MemoryTable
from dynident.logs.table import file_digest
from dynident.robot.model import Robot
from dynident.robot.reading import parse_yaml, read_text

_LARGEST_CHUNK = 1 << 28  # bytes of a chunk after unpacking; recorders cut at a few MB
_HARMLESS = 1 << 24  # bytes that may unpack at any ratio


def bag_table(path: Path, robot: Robot | None) -> MemoryTable:
    """The joint states of a bag: `t` since the first of them, `NAME.position`, `NAME.velocity` and `NAME.effort`.

    Of several topics, or of messages about different joints, those that know most of the robot's joints are taken.
    What can be read of a bag that was cut off is used, with a `LogWarning` that says how much.

    Raises:
        LogError: If there is no bag, or no joint state in it.
    """
    files = _files(path)
    topics: dict[str, str] = {}
    try:
        found = publishers(message for file in files for message in _messages(file, topics))
    except InputError as error:
        raise LogError(str(path), str(error)) from None
    except OSError as error:
        raise LogError(str(path), f"cannot be read ({error.strerror})") from None
    if not found:
        held = ", ".join(f"{name} ({kind})" for name, kind in sorted(topics.items())[:20])
        raise LogError(str(path), f"has no message {JOINT_STATE[0]} that names joints; its topics: {held or 'none'}")
    chosen = fullest(found, [joint.name for joint in robot.joints] if robot is not None else [])
    headers, columns = chosen.columns()
    others = [f"{name} (topic {one.topic})" for one in found if one is not chosen for name in one.names]
    digests = [file_digest(file) for file in files]
    digest = digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
    return MemoryTable(headers, columns, others, digest)


def _files(path: Path) -> list[Path]:
    """The files of a bag in their order."""
    if not path.exists():
        raise LogError(str(path), "no such file; check the path")
    if not path.is_dir():
        return [path]
    metadata = path / "metadata.yaml"
    names = _listed(metadata) if metadata.exists() else []
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


def _listed(metadata: Path) -> list[str]:
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


def _messages(file: Path, topics: dict[str, str]) -> Iterator[Received]:
    """The joint states of one file, as far as it can be read; the topics it has are put into `topics`."""
    read = _sqlite_messages(file, topics) if file.suffix.lower() == ".db3" else _mcap_messages(file, topics)
    count = 0
    try:
        for message in read:
            count += 1
            yield message
    except (LogError, OSError):
        raise
    except Exception as error:  # the libraries let through what their parts raise
        if count == 0:
            cause = error.__cause__ or error
            raise LogError(str(file), f"cannot be read as a bag ({cause or type(cause).__name__})") from None
        share = f" after {error.args[0]:.0%} of its bytes" if isinstance(error, _CutOffError) else ""
        words = f"{file}: is cut off or damaged{share}; the {count} joint states before that are used"
        warnings.warn(words, LogWarning, stacklevel=2)


class _CutOffError(Exception):
    """The share of a file, 0 to 1, after which it could not be read on."""


def _mcap_messages(file: Path, topics: dict[str, str]) -> Iterator[Received]:
    try:
        from mcap.records import Channel, Chunk, Message, Schema
        from mcap.stream_reader import StreamReader, breakup_chunk
    except ImportError:
        raise LogError(str(file), "reading MCAP needs mcap: pip install 'dynident[ros]'") from None
    kinds: dict[int, str] = {}
    wanted: dict[int, str] = {}  # topic by channel
    with file.open("rb") as opened:
        records = StreamReader(opened, emit_chunks=True, record_size_limit=file.stat().st_size).records
        while True:
            try:
                record: Any = next(records)
                if isinstance(record, Chunk):
                    _refuse_bomb(file, record)
                inner = breakup_chunk(record, validate_crc=True) if isinstance(record, Chunk) else [record]
            except StopIteration:
                return
            except LogError:
                raise
            except Exception as error:  # a record that was cut can fail in any part of its decoding
                raise _CutOffError(opened.tell() / max(1, file.stat().st_size)) from error
            for part in inner:
                if isinstance(part, Schema):
                    kinds[part.id] = part.name
                elif isinstance(part, Channel):
                    topics[part.topic] = kinds.get(part.schema_id, "no type")
                    if topics[part.topic] in JOINT_STATE:
                        wanted[part.id] = _checked(file, part.topic, part.message_encoding)
                elif isinstance(part, Message) and part.channel_id in wanted:
                    yield Received(wanted[part.channel_id], part.log_time, part.data)


def _refuse_bomb(file: Path, chunk: Any) -> None:
    size = chunk.uncompressed_size
    if size > _LARGEST_CHUNK or (size > _HARMLESS and size > LARGEST_RATIO * len(chunk.data)):
        raise LogError(str(file), f"a chunk of {len(chunk.data)} bytes unpacks to {size}; that is no log")


def _checked(file: Path, topic: str, encoding: str) -> str:
    if encoding != "cdr":
        raise LogError(str(file), f"topic {topic} is encoded as '{encoding}', not as ROS 2 does (cdr); convert the bag")
    return topic


def _sqlite_messages(file: Path, topics: dict[str, str]) -> Iterator[Received]:
    base = sqlite3.connect(f"file:{quote(str(file.resolve()))}?mode=ro", uri=True)
    try:
        names: dict[int, str] = {}
        for key, name, kind, encoding in base.execute("SELECT id, name, type, serialization_format FROM topics"):
            topics[name] = kind
            if kind in JOINT_STATE:
                names[key] = _checked(file, name, encoding)
        for key, stamp, data in base.execute("SELECT topic_id, timestamp, data FROM messages ORDER BY timestamp, id"):
            if key in names:
                yield Received(names[key], stamp, bytes(data))
    finally:
        base.close()
