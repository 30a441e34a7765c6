"""`read_log`: one entry for every kind of log file."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping
from os import PathLike
from pathlib import Path

import numpy as np

from dynident.checks import Array
from dynident.logs.columns import ColumnRule, read_rules, understand
from dynident.logs.log import Log, LogError, Role
from dynident.logs.text import parse_table, read_bytes
from dynident.robot.model import Robot


def read_log(
    path: str | PathLike[str],
    robot: Robot | None = None,
    *,
    columns: str | PathLike[str] | Mapping[str, str] | None = None,
    start: float | None = None,
    stop: float | None = None,
    role: Role = "train",
    label: str = "",
) -> Log:
    """A log from CSV, CSV.gz, Parquet or npz.

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
    file = Path(path)
    rules = _rules(columns)
    suffixes = [suffix.lower() for suffix in file.suffixes]
    if suffixes[-1:] == [".parquet"]:
        headers, units, values, digest = _parquet(file)
    elif suffixes[-1:] == [".npz"]:
        headers, units, values, digest = _npz(file)
    else:
        content = read_bytes(file)
        table = parse_table(content, str(file))
        headers, units, values = table.headers, table.units, table.values
        digest = hashlib.sha256(content).hexdigest()
    known, spare = understand(headers, units, rules, robot, str(file))
    channels = {column.channel: values[:, column.place] * column.size for column in known}
    if "t" not in channels:
        raise LogError(str(file), f"has no time column 't' [s] (columns: {', '.join(headers[:20])})")
    time = channels.pop("t")
    _check(time, channels, str(file))
    log = Log(str(file), digest, time, channels, tuple(spare), role, label)
    return log if start is None and stop is None else log.window(start, stop)


def _rules(columns: str | PathLike[str] | Mapping[str, str] | None) -> dict[str, ColumnRule]:
    if columns is None:
        return {}
    if isinstance(columns, Mapping):
        return {name: ColumnRule(channel) for name, channel in columns.items()}
    return read_rules(Path(columns))


def _check(time: Array, channels: Mapping[str, Array], source: str) -> None:
    """Numbers must be finite and time must not run backwards."""
    for name, values in {"t": time, **channels}.items():
        bad = ~np.isfinite(values)
        if bad.any():
            row = int(np.argmax(bad))
            raise LogError(
                source,
                f"column '{name}' is {values[row]} at row {row + 1} ({int(bad.sum())} in all); repair the log",
            )
    if len(time) < 2:
        raise LogError(source, f"has {len(time)} samples; a log needs many")
    steps = np.diff(time)
    if (steps < 0.0).any():
        row = int(np.argmax(steps < 0.0))
        raise LogError(
            source,
            f"time runs backwards from {time[row]:g} to {time[row + 1]:g} s at row {row + 2}; sort or split the log",
        )
    if not (steps > 0.0).any():
        raise LogError(source, "time never advances; check the time column and its unit")


def _parquet(path: Path) -> tuple[list[str], list[str], Array, str]:
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise LogError(str(path), "reading Parquet needs pyarrow: pip install 'dynident[parquet]'") from None
    try:
        table = parquet.read_table(path)
    except FileNotFoundError:
        raise LogError(str(path), "no such file; check the path") from None
    except (OSError, arrow.ArrowException) as error:
        raise LogError(str(path), f"cannot be read as Parquet ({str(error).splitlines()[0]})") from None
    numeric = [
        field.name
        for field in table.schema
        if arrow.types.is_floating(field.type) or arrow.types.is_integer(field.type)
    ]
    values = (
        np.column_stack([table.column(name).to_numpy().astype(np.float64) for name in numeric]) if numeric else None
    )
    if values is None:
        raise LogError(str(path), "has no numeric column")
    return numeric, [], values, _file_digest(path)


def _npz(path: Path) -> tuple[list[str], list[str], Array, str]:
    """One array per column, or (n_samples, n) arrays named q, dq, tau, ... for columns 1 to n."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except FileNotFoundError:
        raise LogError(str(path), "no such file; check the path") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise LogError(str(path), f"cannot be read as npz ({error})") from None
    headers: list[str] = []
    columns: list[Array] = []
    for name, array in arrays.items():
        if array.dtype.kind not in "fiu" or array.ndim not in (1, 2):
            continue
        for i in range(1 if array.ndim == 1 else array.shape[1]):
            headers.append(name if array.ndim == 1 else f"{name}{i + 1}")
            columns.append(np.asarray(array if array.ndim == 1 else array[:, i], dtype=np.float64))
    lengths = {len(column) for column in columns}
    if len(lengths) != 1:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise LogError(str(path), f"its arrays must have one length (it has {shapes or 'none'})")
    return headers, [], np.column_stack(columns), _file_digest(path)


def _file_digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()
