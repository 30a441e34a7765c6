"""Logs as bags of ROS 1 and ROS 2: the states of joints in them, whatever the type of the messages."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynident.arrays import Array
from dynident.errors import InputError, RobotFileError, suggestion
from dynident.limits import LIMITS, LimitError
from dynident.logs.bag_files import ZSTD_ENDINGS, CutOffError, Topics, UnpackedFiles, read_messages
from dynident.logs.columns import kind_of, number_of
from dynident.logs.layouts import joint_affixes, joints_by_affix, recognize
from dynident.logs.log import LogError
from dynident.logs.message_layout import Layout, Message
from dynident.logs.message_types import COLUMN_KINDS, Topic, decoder_of, recipe_of, words_of
from dynident.logs.publishers import (
    Decode,
    JointStates,
    Key,
    MessageSorter,
    Publisher,
    Share,
    concatenate_states,
    joint_of,
    merge_publishers,
)
from dynident.logs.tables import LogTable, MemoryTable, file_digest, file_stamp, refuse_size
from dynident.readers import reader, reason_of
from dynident.robot.model import Robot
from dynident.schema import parse_yaml, read_text

PLAIN_ENDINGS = (".mcap", ".db3", ".bag")
BAG_ENDINGS = (*PLAIN_ENDINGS, *(plain + packed for plain in (".mcap", ".db3") for packed in ZSTD_ENDINGS))
SMALL_BAG = 1 << 25  # bytes of numbers up to which a log is read whole
KEPT_BAG = 1 << 28  # bytes of numbers that stay in memory, so that the bag is not unpacked at each pass
_TOGETHER = 4096  # messages that are decoded together
_FETCHED = 1 << 23  # bytes that are
_MEASURED = ("q", "tau", "i")  # what a log is looked for; velocity follows from position


def bag_table(
    path: Path, robot: Robot | None, names: Sequence[str] = (), keep: bool = True, topics: Sequence[str] = ()
) -> LogTable:
    """The states of joints in a bag: `t` since the first of them, `NAME.position`, `NAME.effort` and so on.

    Of several topics, or of messages about different joints, those are taken that know most of the robot's joints, and
    of these one that tells both their position and their effort. What only others know is merged with them: joints,
    effort, and targets where they cost nothing. What can be read of a bag that was cut off is used. The table's
    warnings say all this.

    Args:
        path: The bag.
        robot: The robot, or None.
        names: Names such as `shoulder.position` that a column file gives a meaning.
        keep: Whether to keep the numbers of a bag that is not large, so that it need not be unpacked again.
        topics: The topics to read, the main one first; empty to look for them.

    Raises:
        LogError: If there is no bag, no such topic, or no state of joints in it.
    """
    bag = BagTable(path, keep, topics)
    found = list(bag.found.values())
    if not found:
        raise LogError(str(path), bag.nothing_found())
    called = _names_of_joints(path, found, robot, names)
    known = {one.key: _Knowledge.of(one, robot, names, called) for one in found}
    chosen = max(found, key=lambda one: (one.topic == next(iter(topics), ""), *known[one.key].rank))
    if chosen.topic in bag.faults:
        raise LogError(str(path), _faulty(bag.faults[chosen.topic]))
    able = [one for one in found if one.topic not in bag.faults]
    taken, optional = _spread(able, chosen, known, robot, names, topics)
    others = [words for one in found if one.key not in taken for words in _name_unused(one)]
    bag.warnings += tuple(f"{path}: {words}; the topic is left out" for words in bag.faults.values())
    if optional and sum(bag.found[key].n_bytes for key in taken) > LIMITS.memory_bytes:
        bag.warnings += (f"{path}: is too large to merge targets of other topics, which are left out",)
        taken = {key: own for key, own in taken.items() if key not in optional}
    if len(taken) == 1:
        bag.choose(chosen, others)
        return bag
    states = bag.gather(taken)
    shares = [Share(bag.found[key], own, states[key], key in optional) for key, own in taken.items()]
    headers, columns, said = merge_publishers(str(path), shares)
    return MemoryTable(headers, columns, others, bag.digest, [*bag.warnings, *said])


def _names_of_joints(
    path: Path, found: Sequence[Publisher], robot: Robot | None, names: Sequence[str]
) -> dict[str, str]:
    """The joints that are looked for by the names of the bag: the robot's, and those that a column file names.

    Raises:
        LogError: If the bag has them several times, as that of two arms.
    """
    called = {joint_of(name): joint_of(name) for name in names}
    if robot is None:
        return called
    published = {name for one in found for name in one.names}
    affixes = [] if published & called.keys() else joint_affixes(published, robot)
    if len(affixes) > 1:
        several = " and ".join(f"'{before}..{behind}'" for before, behind, _ in affixes)
        words = f"has the joints of robot {robot.name} more than once, as {several}"
        raise LogError(str(path), f"{words}; choose a topic (--topic), or map them in a column file")
    return {joint.name: joint.name for joint in robot.joints} | joints_by_affix(published, robot) | called


def _name_unused(publisher: Publisher) -> list[str]:
    """What is not read of a publisher: its joints, in few words where they are many."""
    names = publisher.names
    if len(names) > 3:
        return [f"{names[0]} .. {names[-1]} (topic {publisher.topic})"]
    return [f"{name} (topic {publisher.topic})" for name in names]


def _faulty(words: str) -> str:
    return f"{words}; choose another topic (--topic), or record again"


@dataclass(frozen=True)
class _Knowledge:
    """What a publisher knows of the joints that are looked for.

    Attributes:
        channels: By column, the kind of channel and the joint, or the column itself where a column file names it.
        joints: Number of joints whose position it knows.
        kinds: Number of kinds among position and torque or current that it tells.
        count: Number of messages.
        named: Whether its messages name the joints.
    """

    channels: dict[str, tuple[str, str]]
    joints: int
    kinds: int
    count: int
    named: bool

    @classmethod
    def of(
        cls, publisher: Publisher, robot: Robot | None, names: Sequence[str], called: Mapping[str, str]
    ) -> _Knowledge:
        """What it knows; `called` are the joints that are looked for, by the names of the bag."""
        headers = publisher.headers[1:]
        published = {header: header.removeprefix(f"{joint_of(header)}.") for header in headers}
        channels = {
            header: (COLUMN_KINDS.get(end, ""), called[joint_of(header)])
            for header, end in published.items()
            if joint_of(header) in called
        }
        if robot is not None:  # columns that are called by their paths in the message
            numbers = {joint.number: joint.name for joint in robot.joints}
            for header, rule in recognize(headers, robot).rules.items():
                if rule.column != "t" and number_of(rule.column) in numbers:
                    channels.setdefault(header, (kind_of(rule.column), numbers[number_of(rule.column)]))
        kinds = {kind for kind, _ in channels.values()} or {COLUMN_KINDS.get(end, "") for end in published.values()}
        joints = {joint for header, (kind, joint) in channels.items() if kind == "q" or header in names}
        n_kinds = len({"tau" if kind == "i" else kind for kind in kinds} & set(_MEASURED))
        return cls(channels, len(joints), n_kinds, publisher.count, headers != list(publisher.names))

    @property
    def rank(self) -> tuple[int, int, int, bool]:
        """The more, the better."""
        return self.joints, self.kinds, self.count, self.named


def _spread(
    found: Sequence[Publisher],
    chosen: Publisher,
    known: dict[Key, _Knowledge],
    robot: Robot | None,
    names: Sequence[str],
    topics: Sequence[str],
) -> tuple[dict[Key, tuple[str, ...]], set[Key]]:
    """Which columns to take from which publisher, and from which of them only if they cost nothing.

    All that the chosen one has, and from the others the joints that it does not know, torque where it has none, and
    targets. What several others know is taken from the fullest of them. Of topics that the user chose, everything.
    """
    taken: dict[Key, tuple[str, ...]] = {chosen.key: tuple(chosen.headers[1:])}
    if topics:
        for one in sorted(found, key=lambda one: list(topics).index(one.topic)):
            had = {header for own in taken.values() for header in own}
            if one.key != chosen.key and (more := tuple(header for header in one.headers[1:] if header not in had)):
                taken[one.key] = more
        return taken, set()
    have = set(known[chosen.key].channels.values())
    optional: set[Key] = set()
    moving = [robot.joints[i].name for i in robot.active] if robot is not None else []
    wanted = list(dict.fromkeys([*moving, *(joint_of(name) for name in names)]))
    others = sorted((one for one in found if one.key != chosen.key), key=lambda one: known[one.key].rank[1:])
    for kinds in (("q", ""), ("tau", "i"), ("target",)):
        for joint in wanted:
            if any((kind, joint) in have for kind in kinds):
                continue
            able = [one for one in others if any((kind, joint) in known[one.key].channels.values() for kind in kinds)]
            if not able:
                continue
            best = able[-1]
            own = known[best.key].channels
            more = tuple(
                header for header, (kind, of) in own.items() if of == joint and (kinds[0] == "q" or kind in kinds)
            )
            if kinds == ("target",):
                if best.key in taken and best.key not in optional:
                    more = tuple(header for header in more if header not in taken[best.key])
                else:
                    optional.add(best.key)
            taken[best.key] = (*taken.get(best.key, ()), *(h for h in more if h not in taken.get(best.key, ())))
            have |= {own[header] for header in more}
    return taken, optional


class BagTable:
    """The files of a bag, read once to know what is in them, and the messages of one publisher as columns.

    Args:
        path: The bag.
        keep: Whether to keep the numbers of a bag that is not large.
        chosen: Topics to read; empty for all that hold states of joints.

    Attributes:
        found: Its publishers.
        topics: All topics by name.
        faults: By topic, why it cannot be read.
    """

    headers: list[str]
    others: list[str]

    def __init__(self, path: Path, keep: bool, chosen: Sequence[str] = ()) -> None:
        self.path, self.files = path, _files(path)
        self.units: list[str] = []
        self.topics: Topics = {}
        said: list[str] = []
        self._chosen = tuple(chosen)
        self._stamps = [file_stamp(file) for file in self.files]
        self._unpacked = UnpackedFiles()
        self._kept: dict[Key, list[JointStates]] | None = {} if keep else None
        sorter, size = self._sorter(self.topics), 0
        with self._reading():
            for messages in self._batches(self.topics, said):
                for key, block in sorter.feed(messages).items():
                    size += block.n_bytes
                    if size > KEPT_BAG:
                        self._kept = None
                    if self._kept is not None:
                        self._kept.setdefault(key, []).append(block)
            digests = [file_digest(file) for file in self.files]
        for name in self._chosen:
            if name not in self.topics:
                raise LogError(str(path), f"has no topic {name}{suggestion(name, self.topics)}")
        self.found = {key: one for key, one in sorter.found.items() if one.headers[1:]}
        self.faults = sorter.faults
        self.warnings = tuple(said)
        self.digest = digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()

    def nothing_found(self) -> str:
        """Why there is nothing to read."""
        if self.faults:
            return _faulty(next(iter(self.faults.values())))
        if self._chosen:
            return f"has no message with numbers in topic {', '.join(self._chosen)}; record again, or choose another"
        return (
            "has no message that names joints, such as sensor_msgs/JointState; 'dynident check BAG' lists its topics, "
            f"and --topic chooses one of another type; its topics: {self._listed()}"
        )

    def _listed(self) -> str:
        return ", ".join(f"{name} ({own.kind})" for name, own in sorted(self.topics.items())[:20]) or "none"

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
        topics: Topics = {}
        sorter = self._sorter(topics)
        with self._reading():
            for messages in self._batches(topics, []):  # what there is to say of the files was said
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

    def _sorter(self, topics: Topics) -> MessageSorter:
        """What sorts the messages of topics, which it learns to decode when they come."""
        known: dict[str, Decode] = {}

        def decoders(name: str) -> Decode:
            if name not in known:
                chosen = name in self._chosen
                command = topics[name].is_command and name != next(iter(self._chosen), "")
                try:
                    known[name] = decoder_of(topics[name], chosen, command)
                except InputError as error:
                    known[name] = _refuse(str(error))
            return known[name]

        return MessageSorter(decoders)

    def _wanted(self, topic: Topic) -> bool:
        return topic.name in self._chosen if self._chosen else recipe_of(topic.kind) is not None

    def _batches(self, topics: Topics, said: list[str]) -> Iterator[list[Message]]:
        """The messages of all files, many at a time, as short chunks would be slow to decode one by one."""
        batch: list[Message] = []
        size = 0
        for file in self.files:
            for messages in self._messages(file, topics, said):
                batch += messages
                size += sum(len(message[2]) for message in messages)
                if len(batch) >= _TOGETHER or size >= _FETCHED:
                    yield batch
                    batch, size = [], 0
        if batch:
            yield batch

    def _messages(self, file: Path, topics: Topics, said: list[str]) -> Iterator[list[Message]]:
        """The messages of one file, as far as it can be read; where that is not to its end, `said` gets a sentence."""
        count = 0
        try:
            for messages in read_messages(self._unpacked.unpack(file), topics, self._wanted):
                count += len(messages)
                yield messages
        except LogError as error:  # which may name a file that was unpacked
            raise LogError(str(file), error.problem) from None
        except LimitError as error:
            raise LogError(str(file), str(error)) from None
        except OSError:
            raise
        except Exception as error:  # the libraries let through what their parts raise
            if count == 0:
                cause = error.__cause__ or error
                words = f"cannot be read as a bag ({reason_of(cause)}); copy it again, or record again"
                raise LogError(str(file), words) from None
            share = f" after {error.args[0]:.0%} of its bytes" if isinstance(error, CutOffError) else ""
            said.append(f"{file}: is cut off or damaged{share}; the {count} messages before that are used")

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except LogError:
            raise
        except OSError as error:
            raise LogError(str(self.path), f"cannot be read ({error.strerror})") from None


def _refuse(words: str) -> Decode:
    def decode(data: bytes) -> Layout:
        raise InputError(words)

    return decode


def _files(path: Path) -> list[Path]:
    """The files of a bag in their order."""
    if not path.exists():
        raise LogError(str(path), "no such file; check the path")
    if not path.is_dir():
        return [path]
    metadata = path / "metadata.yaml"
    names = _file_names(metadata) if metadata.exists() else []
    files = [_stored_name(path, name) for name in names]
    files = files or sorted(file for file in path.iterdir() if file.name.lower().endswith(BAG_ENDINGS))
    if not files:
        raise LogError(str(path), "is a directory without metadata.yaml, .mcap or .db3 files; give a bag or a log file")
    for file in files:
        if not file.is_file():
            raise LogError(str(path), f"{file.name}, which its metadata.yaml names, is missing; copy the directory")
        if not file.name.lower().endswith(BAG_ENDINGS):
            raise LogError(str(path), f"{file.name} has another ending than {', '.join(BAG_ENDINGS)}; convert the bag")
    return files


def _stored_name(folder: Path, name: str) -> Path:
    """A file that metadata.yaml names; what packed it may have left out its own ending there."""
    file = folder / Path(name).name
    packed = [folder / f"{file.name}{ending}" for ending in ZSTD_ENDINGS]
    return file if file.exists() else next((one for one in packed if one.exists()), file)


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


# ----------------------------------------------------------------------------------------------------------------------
# What is in a bag, for `dynident check`.


@dataclass(frozen=True)
class TopicSummary:
    """A topic of a bag, and what it could fill.

    Attributes:
        topic: Its name.
        kind: Type of its messages.
        messages: How many.
        rate: Messages per second; zero where that is not known.
        channels: By kind of channel, the joints, or the columns of a type without names of joints.
        note: What else it holds, or why it cannot be read.
    """

    topic: str
    kind: str
    messages: int
    rate: float
    channels: dict[str, list[str]]
    note: str

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        own = {"topic": self.topic, "type": self.kind, "messages": self.messages, "rate": self.rate}
        return own | {"channels": self.channels, "note": self.note}


@reader("bag", LogError)
def list_topics(path: Path) -> list[TopicSummary]:
    """The topics of a bag and the channels that each could fill, sorted by name.

    Raises:
        LogError: If the bag cannot be read.
    """
    bag = BagTable(path, keep=False)
    return [_summary(bag, topic) for _, topic in sorted(bag.topics.items())]


def _summary(bag: BagTable, topic: Topic) -> TopicSummary:
    channels: dict[str, list[str]] = {}
    note = words_of(topic.kind)
    for one in bag.found.values():
        if one.topic != topic.name:
            continue
        layout = recognize(one.headers[1:], None)
        doubts = {name: doubt.rule for name, doubt in layout.doubts.items() if doubt.rule is not None}
        for header in one.headers[1:]:
            end = header.removeprefix(f"{joint_of(header)}.")
            rule = layout.rules.get(header) or doubts.get(header)
            kind = COLUMN_KINDS.get(end) or (end if end in COLUMN_KINDS else kind_of(rule.column) if rule else "")
            if kind:
                channels.setdefault(kind, []).append(joint_of(header))
    if topic.name in bag.faults:
        note = bag.faults[topic.name]
    elif not note and recipe_of(topic.kind) is None:
        note = "only with --topic, its numbers as columns"
    return TopicSummary(topic.name, topic.kind, topic.count, topic.rate, channels, note)
