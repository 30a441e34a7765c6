"""`read_log`, `stream_log` and `open_log`: one entry for every kind of log file."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path

from dynident.logs.axes import moving_axes
from dynident.logs.bag import bag_table
from dynident.logs.columns import UNUSED, column_rules, positions_left_out, read_rules, understand
from dynident.logs.joints import joint_rules
from dynident.logs.kept import Kept
from dynident.logs.lerobot import dataset_of, lerobot_table
from dynident.logs.log import Log, LogError, Role
from dynident.logs.mat import mat_table
from dynident.logs.memory import LogWarning
from dynident.logs.npz import npz_table
from dynident.logs.parquet import ParquetTable
from dynident.logs.rsi import rsi_rules, rsi_table
from dynident.logs.source import LogSource
from dynident.logs.stream import LogFile
from dynident.logs.table import Table, file_stamp
from dynident.logs.text import TextTable
from dynident.robot.model import Robot

Columns = str | PathLike[str] | Mapping[str, str] | None


def read_log(
    path: str | PathLike[str],
    robot: Robot | None = None,
    *,
    columns: Columns = None,
    start: float | None = None,
    stop: float | None = None,
    role: Role = "train",
    label: str = "",
) -> Log:
    """A log from CSV, CSV.gz, Parquet, npz, MATLAB's .mat, KUKA RSI XML, a ROS 2 bag or a LeRobot dataset.

    Args:
        path: The file.
        robot: Robot whose joints the columns belong to; columns for joints it does not have are then refused.
        columns: Column file (YAML) or mapping for files with other column names.
        start: Leave out samples before this time [s].
        stop: Leave out samples after this time [s].
        role: "train" or "validation".
        label: Name in reports; default the path.

    Raises:
        LogError: Naming file and column.
    """
    return _open(path, robot, columns, start, stop, role, label, keep=True).whole()


def stream_log(
    path: str | PathLike[str],
    robot: Robot | None = None,
    *,
    columns: Columns = None,
    start: float | None = None,
    stop: float | None = None,
    role: Role = "train",
    label: str = "",
) -> LogFile:
    """`read_log` for logs larger than memory: the samples stay in the file and come in blocks.

    Header and units are checked at once, the numbers as they are read. Nothing after `stop` is read.
    """
    return _open(path, robot, columns, start, stop, role, label, keep=False)


def open_log(
    path: str | PathLike[str],
    robot: Robot | None = None,
    *,
    columns: Columns = None,
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
    log = _open(path, robot, columns, start, stop, role, label, keep=True)
    if positions_only:
        log = replace(log, columns=tuple(column for column in log.columns if column.channel[0] in "tq"))
    return log.whole() if log.table.fits(len(log.columns)) else log


def _open(
    path: str | PathLike[str],
    robot: Robot | None,
    columns: Columns,
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
    if isinstance(columns, Mapping):
        rules = column_rules(columns, "columns")
    else:
        rules = {} if columns is None else read_rules(columns)
    table = _table(file, robot, [name for name, rule in rules.items() if rule.column != UNUSED], keep)
    _warn(table.warnings)
    defaults = joint_rules(table.headers, robot) | rsi_rules(table.headers)
    known, spare, left_out = understand(table.headers, table.units, defaults | rules, robot, source)
    if not any(column.channel == "t" for column in known):
        other = f"; not numbers: {', '.join(table.others[:20])}" if table.others else ""
        raise LogError(source, f"has no time column 't' [s] (columns: {', '.join(table.headers[:20])}{other})")
    known.sort(key=lambda column: column.channel != "t")
    kept = Kept() if isinstance(table, TextTable) else None
    log = LogFile(source, table, tuple(known), stamp, (*spare, *table.others), start, stop, role, label, kept=kept)
    axes = positions_left_out(table.headers, table.units, defaults, left_out, source)
    log = replace(log, doubts=tuple(moving_axes(log, axes)))
    _warn(log.doubts)
    return log


def _warn(sentences: Iterable[str]) -> None:
    for words in sentences:
        warnings.warn(words, LogWarning, stacklevel=4)  # at the caller of read_log, stream_log or open_log


def _table(file: Path, robot: Robot | None, rules: Collection[str], keep: bool) -> Table:
    kind = file.suffix.lower()
    if (kind == ".parquet" or file.is_dir()) and (dataset := dataset_of(file)):
        return lerobot_table(file, dataset)
    if kind in (".mcap", ".db3") or file.is_dir():
        mapped = dict.fromkeys(name for name, dot, _ in (rule.rpartition(".") for rule in rules) if dot)
        return bag_table(file, robot, list(mapped), keep=keep)
    if kind == ".parquet":
        return ParquetTable(file)
    if file.name.lower().endswith((".xml", ".xml.gz")):
        return rsi_table(file)
    if kind == ".npz":
        return npz_table(file)
    return mat_table(file) if kind == ".mat" else TextTable(file, keep=keep)
