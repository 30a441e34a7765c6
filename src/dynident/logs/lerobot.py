"""Logs as LeRobot datasets: Parquet with vectors per row, whose names stand in `meta/info.json`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.logs.log import LogError
from dynident.logs.tables import MemoryTable, file_digest, refuse_bomb

_FEATURES = {
    "observation.state": "position",
    "observation.velocity": "velocity",
    "observation.effort": "effort",
    "observation.torque": "effort",
    "observation.current": "current",
}
_ENDINGS = {"pos": "position", "vel": "velocity", "torque": "effort", "tau": "effort"}
_APART = 1.0  # seconds put between episodes: a gap, which filters do not cross
_DEPTH = 4  # folders between a data file and the dataset


def dataset_of(path: Path) -> Path | None:
    """The folder of the LeRobot dataset that a path is, or is a data file of."""
    folders = [path] if path.is_dir() else list(path.absolute().parents[:_DEPTH])
    return next((folder for folder in folders if (folder / "meta" / "info.json").is_file()), None)


def lerobot_table(path: Path) -> MemoryTable:
    """One data file of a dataset, or all of them: `t` [s], `NAME.position`, `NAME.effort` and so on.

    Each episode starts at time zero; they follow one another with a second between them.

    Raises:
        LogError: If it is no dataset, a file cannot be read, or a vector has no fixed length.
    """
    source, dataset = str(path), dataset_of(path)
    if dataset is None:
        raise LogError(source, "is no LeRobot dataset; it has no meta/info.json")
    features, rate = _features(dataset)
    files = sorted((dataset / "data").rglob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise LogError(source, "has no data/**/*.parquet; copy the whole dataset")
    parts = [_columns(file, features) for file in files]
    for file, part in zip(files, parts, strict=True):
        if part.keys() != parts[0].keys():
            raise LogError(source, f"{file.name} has other columns than {files[0].name}")
    together = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if "timestamp" not in together:
        raise LogError(source, f"has no column 'timestamp' [s] (columns: {', '.join(list(together)[:20])})")
    together["timestamp"] = _episode_times(together, rate)
    digest = hashlib.sha256("".join(map(file_digest, files)).encode()).hexdigest()
    return MemoryTable(list(together), list(together.values()), [], digest)


def _features(dataset: Path) -> tuple[dict[str, list[str]], float]:
    """Headers of the elements of each vector, and the frames per second (0 if not given)."""
    file = dataset / "meta" / "info.json"
    try:
        info = json.loads(file.read_text(encoding="utf-8"))
        described: Mapping[str, Any] = dict(info["features"])
        rate = float(info.get("fps") or 0.0)
        return {name: list(_headers(name, about)) for name, about in described.items()}, rate
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        shown = f"{type(error).__name__}: {error}"
        raise LogError(str(file), f"does not describe the features of a dataset ({shown})") from None


def _headers(feature: str, about: Mapping[str, Any]) -> Iterator[str]:
    """`NAME.position` for what is measured at a joint, else `FEATURE.NAME`; numbers where there are no names."""
    names = about.get("names")
    if isinstance(names, Mapping):  # {"motors": [..]}
        names = next(iter(names.values()), None)
    if not isinstance(names, Sequence) or isinstance(names, str):
        shape = about["shape"]
        names = [str(i + 1) for i in range(int(shape[0]))] if len(shape) == 1 and shape[0] < 1000 else []
    for name in map(str, names):
        joint, _, ending = name.rpartition(".")
        quantity = _ENDINGS.get(ending, ending)
        if feature not in _FEATURES:
            yield f"{feature}.{name}"
        elif not joint or quantity not in _FEATURES.values():
            yield f"{name}.{_FEATURES[feature]}"
        else:  # a state may hold more than positions; other vectors may repeat the names of the state
            yield f"{joint}.{quantity if feature == 'observation.state' else _FEATURES[feature]}"


def _columns(file: Path, features: Mapping[str, list[str]]) -> dict[str, Array]:
    """The numbers of a data file by header, (n_samples,) each."""
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise LogError(str(file), "reading Parquet needs pyarrow: pip install 'dynident[parquet]'") from None
    try:
        with parquet.ParquetFile(file) as opened:
            kept = [field.name for field in opened.schema_arrow if _is_numeric(arrow, field.type)]
            n_numbers = opened.metadata.num_rows * sum(max(1, len(features.get(name, ()))) for name in kept)
            refuse_bomb(file, 8 * n_numbers)
            table = opened.read(columns=kept, use_threads=False)
    except FileNotFoundError:
        raise LogError(str(file), "no such file; check the path") from None
    except (OSError, arrow.ArrowException) as error:
        raise LogError(str(file), f"cannot be read as Parquet ({str(error).splitlines()[0]})") from None
    columns: dict[str, Array] = {}
    for name in kept:
        values = table.column(name).combine_chunks()
        if not hasattr(values, "flatten") or not arrow.types.is_nested(values.type):
            columns[name] = values.to_numpy(zero_copy_only=False)
            continue
        headers = features.get(name, [])
        flat = values.flatten().to_numpy(zero_copy_only=False)
        lengths = (
            np.diff(values.offsets.to_numpy()) if hasattr(values, "offsets") else np.array([values.type.list_size])
        )
        if len(flat) != len(headers) * table.num_rows or (lengths != len(headers)).any():
            raise LogError(
                str(file), f"'{name}' has vectors of other lengths than the {len(headers)} of meta/info.json"
            )
        if twice := columns.keys() & set(headers):
            raise LogError(str(file), f"column '{min(twice)}' appears twice; remove or rename one")
        columns.update(zip(headers, flat.reshape(table.num_rows, len(headers)).T, strict=True))
    return columns


def _is_numeric(arrow: Any, kind: Any) -> bool:
    """Whether a column holds numbers or vectors of them."""
    types = arrow.types
    if types.is_list(kind) or types.is_fixed_size_list(kind) or types.is_large_list(kind):
        kind = kind.value_type
    return bool(types.is_floating(kind) or types.is_integer(kind))


def _episode_times(columns: Mapping[str, Array], rate: float) -> Array:
    """Time that goes on from episode to episode [s]."""
    stamps = columns["timestamp"]
    time = stamps.astype(np.float64)
    if stamps.dtype == np.float32 and rate > 0.0 and "frame_index" in columns:
        # Single precision makes the steps of a steady recording jitter; the frames tell the same without.
        exact = columns["frame_index"] / rate
        time = np.where(np.abs(time - exact) <= 1e-6 + 2e-7 * np.abs(exact), exact, time)
    if len(time) and "episode_index" in columns:
        apart = max(_APART, 10.0 / rate if rate > 0.0 else 0.0)
        starts = np.flatnonzero(np.diff(columns["episode_index"])) + 1
        for start, end in pairwise([*starts, len(time)]):
            time[start:end] += time[start - 1] + apart - time[start]
    return time
