"""`read_log`, `stream_log` and `open_log`: one entry for every format of log file, and the table of formats."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from os import PathLike
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from dynident.errors import suggestion
from dynident.logs.bag import BAG_ENDINGS, bag_table
from dynident.logs.columns import (
    UNUSED,
    ColumnRule,
    LogColumn,
    bare_name,
    column_rules,
    kind_of,
    number_of,
    own_rule,
    positions_left_out,
    read_headers,
    read_rules,
)
from dynident.logs.file import LogFile
from dynident.logs.layouts import LABELS, Doubt, Recognition, column_file, doubts_in_words, other_robot, recognize
from dynident.logs.lerobot import dataset_of, lerobot_table
from dynident.logs.log import HELD, Log, LogError, LogSource, Role
from dynident.logs.mat import mat_table
from dynident.logs.parquet import ParquetTable
from dynident.logs.rsi import rsi_table
from dynident.logs.tables import LogTable, LogWarning, MemoryTable, check_headers, file_stamp, npz_table, refuse_pickle
from dynident.logs.text import KeptNumbers, TextTable
from dynident.readers import reader
from dynident.robot.model import Robot

# ----------------------------------------------------------------------------------------------------------------------
# Axes of a machine that the robot has no joint for: its equations hold while they are at rest.


def moving_axes(log: LogFile, axes: Sequence[LogColumn]) -> Iterator[str]:
    """What to say of axes that were left out and move, within the window of the log.

    Args:
        log: The log, whose first column is time.
        axes: Columns of positions that were left out.

    Yields:
        A sentence for each axis that is more than `HELD` from where it was first.
    """
    if not axes:
        return
    first, farthest = np.full(len(axes), np.nan), np.zeros(len(axes))
    try:
        for block in replace(log, columns=(log.columns[0], *axes), kept=None).rows():
            inside = (block[0] >= _or(log.start, -np.inf)) & (block[0] <= _or(log.stop, np.inf))
            values = block[1:, inside]
            for k, own in enumerate(values):
                known = own[np.isfinite(own)]
                first[k] = known[0] if np.isnan(first[k]) and len(known) else first[k]
                farthest[k] = max(farthest[k], float(np.abs(known - first[k]).max(initial=0.0)))
    except LogError as error:  # a column may be left out because it cannot be read
        yield f"{error}; whether the axes that are left out are at rest is not known"
        return
    for axis, far in zip(axes, farthest, strict=True):
        if far > HELD:
            name = log.table.headers[axis.place].strip()
            yield (
                f"{log.source}: column '{name}' is left out, but moves by {far:.3g} rad or m: the equations of a robot "
                "without this joint hold only while it is at rest; choose a time window in which it rests, or a robot "
                "that has the joint"
            )


def _or(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


# ----------------------------------------------------------------------------------------------------------------------
# The formats of log files. A new one is a reader in this room and its line in this table.

Read = Callable[
    [Path, Robot | None, Sequence[str], bool], LogTable
]  # file, robot, names that rules map, whether to keep


@dataclass(frozen=True)
class LogFormat:
    """A format of log files.

    Attributes:
        name: In words.
        contents: What such a file holds, in the documentation.
        read: Opens a file; the names that a column file maps say what to look for, and a small file may be kept.
        endings: Of its files, in small letters.
        magic: What its files begin with, for those with an ending that no format has.
        folder: The file within that makes a folder a log of this format; empty where no folder is one.
        words: What its endings do not say of its files, in the documentation.
        accepts: Whether a file or folder is of this format, beyond its ending.

    What its headers stand for is a matter of `layouts.LAYOUTS`, as many formats have the same layouts.
    """

    name: str
    read: Read
    _: KW_ONLY
    contents: str
    endings: tuple[str, ...] = ()
    magic: bytes = b""
    folder: str = ""
    words: str = ""
    accepts: Callable[[Path], bool] = lambda path: True

    def __post_init__(self) -> None:
        key = f"{type(self).__module__}.{self.name}"  # each is listed, and lets nothing but `LogError` out
        object.__setattr__(self, "read", reader(self.name, LogError, key=key)(self.read))


BAG = LogFormat(
    "ROS bag",
    bag_table,
    contents="bags of ROS 1 and ROS 2, the states of joints in them, see [bags](#bags); streamed when large "
    "(`dynident[ros]` for MCAP, for zstd and lz4, and for most types of messages)",
    endings=BAG_ENDINGS,
    magic=b"\x89MCAP0",
    folder="metadata.yaml",
    words="rosbag2 directory",
)
_MAGIC_OF_BAGS = (b"#ROSBAG", b"SQLite format 3")
TEXT = LogFormat(
    "text",
    lambda path, robot, mapped, keep: TextTable(path, keep=keep),
    contents="a header, perhaps a unit row, rows of numbers; streamed when large",
    words="other text",
    endings=(".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz", ".dat"),
)
FORMATS = (  # the first that knows a file reads it
    LogFormat(
        "LeRobot dataset",
        lambda path, robot, mapped, keep: lerobot_table(path),
        contents="vectors with the names of `meta/info.json` (`dynident[parquet]`)",
        endings=(".parquet",),
        folder="meta/info.json",
        words="of a LeRobot dataset, or its folder",
        accepts=lambda path: dataset_of(path) is not None,
    ),
    BAG,
    LogFormat(
        "Parquet",
        lambda path, robot, mapped, keep: ParquetTable(path),
        contents="a column per channel; streamed when large (`dynident[parquet]`)",
        endings=(".parquet",),
        magic=b"PAR1",
    ),
    LogFormat(
        "KUKA RSI",
        lambda path, robot, mapped, keep: rsi_table(path),
        contents="records `<Rob>` of KUKA's Robot Sensor Interface: `IPOC` [ms], `AIPos` [deg] as q, `MACur` [A] as i",
        endings=(".xml", ".xml.gz"),
        magic=b"<Rob",
    ),
    LogFormat(
        "NumPy archive",
        lambda path, robot, mapped, keep: npz_table(path),
        contents="arrays `t`, `q1`.., or `q` (n_samples, n) for q1 to qn",
        endings=(".npz",),
        magic=b"PK\x03\x04",
    ),
    LogFormat(
        "MATLAB",
        lambda path, robot, mapped, keep: mat_table(path),
        contents="as npz, samples down or across, also in structs; v5, and v7.3 with `dynident[mat]`; no tables or "
        "timeseries",
        endings=(".mat",),
        magic=b"MATLAB",
    ),
    TEXT,
)
LOG_ENDINGS = tuple(ending for one in FORMATS for ending in one.endings)


def is_log_folder(folder: Path) -> bool:
    """Whether a folder is itself a log, such as a bag, by the file that its format wants within."""
    return any(one.folder and (folder / one.folder).is_file() for one in FORMATS)


def format_of(file: Path) -> LogFormat:
    """The format of a log file, by its ending or, where no format has that, by what it begins with; else text.

    A folder without the file of any format is taken for a bag, whose reader looks for what was left of one.
    """
    if file.is_dir():
        return next((one for one in FORMATS if one.folder and (file / one.folder).is_file()), BAG)
    for one in FORMATS:
        if file.name.lower().endswith(one.endings) and one.accepts(file):
            return one
    try:
        with file.open("rb") as opened:
            head = opened.read(16)
    except (OSError, ValueError):  # the reader says what is wrong
        return TEXT
    if head.startswith(_MAGIC_OF_BAGS):
        return BAG
    return next((one for one in FORMATS if one.magic and head.startswith(one.magic)), TEXT)


def is_bag(file: Path) -> bool:
    """Whether a file or folder is read as a bag."""
    return format_of(file) is BAG


# ----------------------------------------------------------------------------------------------------------------------
# `read_log`, `stream_log` and `open_log`.

Columns = str | PathLike[str] | Mapping[str, str] | None


@reader("log", LogError)
def read_log(
    path: str | PathLike[str],
    robot: Robot | None = None,
    *,
    columns: Columns = None,
    topics: Sequence[str] = (),
    start: float | None = None,
    stop: float | None = None,
    role: Role = "train",
    label: str = "",
) -> Log:
    """A log from text, Parquet, npz, MATLAB's .mat, KUKA RSI XML, a ROS 2 bag or another format of the reference.

    Args:
        path: The file.
        robot: Robot whose joints the columns belong to; columns for joints it does not have are then refused.
        columns: Column file (YAML) or mapping for files with other column names.
        topics: Topics of a bag to read, the main one first; empty to look for those that know the robot's joints.
        start: Leave out samples before this time [s].
        stop: Leave out samples after this time [s].
        role: "train" or "validation".
        label: Name in reports; default the path.

    Raises:
        LogError: Naming file and column.
    """
    return _open(path, robot, columns, topics, start, stop, role, label, keep=True).whole()


@reader("log", LogError)
def stream_log(
    path: str | PathLike[str],
    robot: Robot | None = None,
    *,
    columns: Columns = None,
    topics: Sequence[str] = (),
    start: float | None = None,
    stop: float | None = None,
    role: Role = "train",
    label: str = "",
) -> LogFile:
    """`read_log` for logs larger than memory: the samples stay in the file and come in blocks.

    Header and units are checked at once, the numbers as they are read. Nothing after `stop` is read.
    """
    return _open(path, robot, columns, topics, start, stop, role, label, keep=False)


@reader("log", LogError)
def open_log(
    path: str | PathLike[str],
    robot: Robot | None = None,
    *,
    columns: Columns = None,
    topics: Sequence[str] = (),
    start: float | None = None,
    stop: float | None = None,
    role: Role = "train",
    label: str = "",
    positions_only: bool = False,
) -> LogSource:
    """`read_log` for a small file, `stream_log` for a large one.

    Small is a text of up to 64 MB after unpacking, a Parquet file or a bag with up to 32 MB of numbers, and every other
    file.
    With `positions_only`, no other column is looked at.
    """
    log = _open(path, robot, columns, topics, start, stop, role, label, keep=True)
    if positions_only:
        log = replace(
            log, columns=tuple(column for column in log.columns if kind_of(column.channel) in ("t", "q", "qm"))
        )
    return log.whole() if log.table.fits(len(log.columns)) else log


def _open(
    path: str | PathLike[str],
    robot: Robot | None,
    columns: Columns,
    topics: Sequence[str],
    start: float | None,
    stop: float | None,
    role: Role,
    label: str,
    *,
    keep: bool,
) -> LogFile:
    """The file with its columns understood; `keep` a small text, so that it is unpacked only once."""
    file = Path(path)
    source = str(file)
    stamp = file_stamp(file)
    refuse_pickle(file)
    rules = _rules(columns)
    table = _read(file, robot, rules, topics, keep)
    _warn(table.warnings)
    if columns is not None and not isinstance(columns, Mapping):  # a mapping may serve logs of several layouts
        _check_names(table, rules, source, str(columns))
    layout = _recognize(table, robot, rules)
    known, spare, left_out = read_headers(table.headers, table.units, rules, robot, source, layout.rules, layout.doubts)
    unread = set(map(bare_name, spare))
    reasons = {name: doubt.reason for name, doubt in layout.doubts.items() if name in unread}
    if not any(column.channel == "t" for column in known):
        other = f"; not numbers: {', '.join(table.others[:20])}" if table.others else ""
        listed = f"columns: {', '.join(table.headers[:20])}{other}"
        raise LogError(source, f"has no time column 't' [s] ({listed}); name one in a column file ('NAME: t')")
    if len(known) == 1:
        raise LogError(source, _nothing_understood(table, layout, robot))
    known.sort(key=lambda column: column.channel != "t")
    kept = KeptNumbers() if isinstance(table, TextTable) else None
    log = LogFile(
        source,
        table,
        tuple(known),
        stamp,
        (*spare, *table.others),
        start,
        stop,
        role,
        label,
        kept=kept,
        reasons=reasons,
    )
    proposed = {name: doubt.rule for name, doubt in layout.doubts.items() if doubt.rule is not None}
    axes = positions_left_out(table.headers, table.units, proposed | dict(layout.rules), left_out)
    said = [f"{source}: {layout.said}"] if layout.said else []
    log = replace(log, doubts=(*said, *moving_axes(log, axes)))
    _warn(log.doubts)
    return log


def _read(
    file: Path, robot: Robot | None, rules: Mapping[str, ColumnRule], topics: Sequence[str], keep: bool
) -> LogTable:
    """The table of a file; what column file and robot map are names to look for."""
    own = column_rules(robot.columns, robot.source) if robot is not None else {}
    mapped = [name for name, rule in ({**own, **rules}).items() if rule.column != UNUSED]
    found = format_of(file)
    if topics and found is not BAG:
        raise LogError(str(file), f"is no bag and has no topics; leave out --topic {topics[0]}")
    table = bag_table(file, robot, mapped, keep, topics) if topics else found.read(file, robot, mapped, keep)
    check_headers(file, table.headers)
    return table


def _rules(columns: Columns) -> dict[str, ColumnRule]:
    if columns is None:
        return {}
    return column_rules(columns, "columns") if isinstance(columns, Mapping) else read_rules(columns)


def _recognize(table: LogTable, robot: Robot | None, rules: Mapping[str, ColumnRule]) -> Recognition:
    """What the layout of a table says of its columns; what its reader doubts comes first."""
    mapped = {*rules, *(robot.columns if robot is not None else ())}
    names = [name for header in table.headers for name in (bare_name(header), header.strip()) if name in mapped]
    labels = table.labels if isinstance(table, TextTable) else {}
    found = recognize(table.headers, robot, labels, [*names, *map(bare_name, names)])
    if isinstance(table, TextTable) and any(name in found.joints for name in found.rules):
        table.require_constant([header for header in labels if LABELS.fullmatch(header)])
    if not isinstance(table, MemoryTable):
        return found
    rules, doubts = dict(found.rules), dict(found.doubts)
    for name, doubt in table.doubts.items():
        if name not in names and (rule := rules.pop(name, None)) is not None:
            doubts[name] = Doubt(doubt.reason, replace(rule, unit=doubt.unit))
    return replace(found, rules=rules, doubts=doubts)


def _check_names(table: LogTable, rules: Mapping[str, ColumnRule], source: str, given: str) -> None:
    """Refuse a column file that names a column that the log has not."""
    known = {name for header in table.headers for name in (bare_name(header), header.strip())}
    for name in rules:
        if name in known:
            continue
        if words := next((other for other in table.others if other.startswith(f"{name} (")), ""):
            raise LogError(source, f"column {words}, which {given} names, does not hold numbers; leave it out there")
        hint = suggestion(name, dict.fromkeys(map(bare_name, table.headers)))
        raise LogError(source, f"has no column '{name}', which {given} names{hint}")


def _nothing_understood(table: LogTable, layout: Recognition, robot: Robot | None) -> str:
    """Why a log has no channel."""
    strangers = other_robot(layout, robot) if robot is not None else ""
    doubts = strangers or doubts_in_words(layout.doubts)
    doubtful = {} if strangers else layout.doubts
    names = [header for header in table.headers if own_rule(name := bare_name(header)) is None and name not in doubtful]
    names = [name for name in names if layout.rules.get(name, ColumnRule("")).column != "t"]
    parts = [doubts, f"not understood: {', '.join(names[:20])} (map them in a column file)" if names else ""]
    return (
        f"no channel was understood: {'; '.join(filter(None, parts))}; "
        "'dynident check ROBOT LOG -o columns.yaml' proposes a column file"
    )


@reader("log", LogError)
def propose_columns(
    path: str | PathLike[str], robot: Robot | None = None, *, columns: Columns = None, topics: Sequence[str] = ()
) -> str:
    """The text of a column file for a log, complete but for the columns that are in doubt.

    Args:
        path: The log.
        robot: The robot, None for any.
        columns: What is known already.
        topics: Topics of a bag to read.

    Raises:
        LogError: If the file cannot be read as a table.
    """
    file, rules = Path(path), _rules(columns)
    refuse_pickle(file)
    table = _read(file, robot, {}, topics, False)
    layout = _recognize(table, robot, rules)
    names = dict.fromkeys(bare_name(header) for header in table.headers)
    numbers = {} if robot is None else {joint.number: joint.name for joint in robot.joints}
    understood: list[tuple[str, ColumnRule, str]] = []
    doubts = dict(layout.doubts)
    unknown: list[str] = []
    for name in names:
        rule = rules.get(name) or layout.rules.get(name) or own_rule(name)
        if name in doubts:
            continue
        if rule is None:
            unknown.append(name)
        elif robot is not None and rule.column not in ("t", UNUSED) and number_of(rule.column) not in numbers:
            doubts[name] = Doubt(f"is for a joint that robot {robot.name} does not have", ColumnRule(UNUSED))
        else:
            joint = numbers.get(number_of(rule.column), "") if rule.column not in ("t", UNUSED) else ""
            understood.append((name, rule, joint))
    return column_file(str(file), understood, doubts, unknown)


def _warn(sentences: Iterable[str]) -> None:
    for words in sentences:
        warnings.warn(words, LogWarning, stacklevel=5)  # at the caller of read_log, stream_log or open_log


# ----------------------------------------------------------------------------------------------------------------------
# Names of logs for tables: the shortest end of each path that no other log shares.

_NUMBER = re.compile(r"( \(\d+\))?")


def short_names(logs: Iterable[Any]) -> dict[str, str]:
    """A short name by label: `run.csv` for `day 1/run.csv`, or both in full where another log is called `run.csv` too.

    Names that a user gave stay as they are, and so does a number behind a path that was given more than once.

    Args:
        logs: Logs, or records about logs: all that has a `label` and a `source`.
    """
    given = {log.label: log.source for log in logs}
    behind = {label: _behind(label, source) for label, source in given.items()}
    taken = {label for label, number in behind.items() if number is None}
    # By file, so that two windows of one, `run.csv` and `run.csv (2)`, do not part over its name.
    paths = {source: PurePath(source).parts for label, source in given.items() if label not in taken}
    ends = {
        source: _end(parts, [own for own in paths.values() if own != parts], taken) for source, parts in paths.items()
    }
    return {label: label if number is None else ends[given[label]] + number for label, number in behind.items()}


def _behind(label: str, source: str) -> str | None:
    """What stands behind the path in a label that is one, such as ` (2)`; None for another label."""
    match = _NUMBER.fullmatch(label.removeprefix(source)) if source and label.startswith(source) else None
    return None if match is None else match[0]


def _end(parts: tuple[str, ...], others: list[tuple[str, ...]], taken: set[str]) -> str:
    """The shortest end of a path that is neither the same end of another nor a name that was given."""
    for n in range(1, len(parts)):
        name = str(PurePath(*parts[-n:]))
        if name not in taken and all(own[-n:] != parts[-n:] for own in others):
            return name
    return str(PurePath(*parts)) if parts else "."
