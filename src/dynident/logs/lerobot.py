"""Logs as LeRobot datasets: Parquet with vectors per row, whose names stand in `meta/info.json`."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.errors import RobotFileError
from dynident.logs.log import LogError
from dynident.logs.parquet import check_parquet
from dynident.logs.tables import MemoryTable, UnitDoubt, check_headers, file_digest, refuse_bomb
from dynident.readers import reason_of
from dynident.schema import parse_json, read_text

_FEATURES = {
    "observation.state": "position",
    "observation.velocity": "velocity",
    "observation.effort": "effort",
    "observation.torque": "effort",
    "observation.current": "current",
    "action": "target",
}
_ENDINGS = {"pos": "position", "vel": "velocity", "torque": "effort", "tau": "effort"}
_APART = 1.0  # seconds put between episodes: a gap, which filters do not cross
_RADIANS = 4.0 * math.pi  # positions beyond are no radians: arms do not turn so far
_FULL = 100.0  # LeRobot's normalized positions end here
_TOLERANCE = 1e-3  # of single precision at 100
_SMALL_ARMS = ("so100", "so101", "koch", "moss", "lekiwi", "omx")  # of LeRobot's own drivers, which never write radians
_GRIPPERS = ("gripper", "jaw")
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
    features, rate, kind = _features(dataset)
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
    old = not any(".pos" in name for about in features.values() for name in about.names)
    headers, doubts, said = _units(source, together, kind.startswith(_SMALL_ARMS), old)
    if not any(name.endswith((".effort", ".current")) for name in together):
        commands = " and commands" if any(name.endswith(".target") for name in together) else ""
        said.append(f"{source}: holds positions{commands}, but torque is missing: no effort, torque or current")
    return MemoryTable(headers, list(together.values()), [], digest, said, doubts)


@dataclass(frozen=True)
class _Vector:
    """A feature of the dataset: the names of its elements as given, and their headers."""

    names: tuple[str, ...]
    headers: tuple[str, ...]


def _units(
    source: str, columns: Mapping[str, Array], small_arm: bool, old: bool
) -> tuple[list[str], dict[str, UnitDoubt], list[str]]:
    """Headers with units where positions are no radians, the names whose unit is in doubt, and what to say.

    LeRobot's drivers write degrees or, by default since mid 2025, each joint's calibrated range as -100 to 100, and
    its metadata do not say which. Normalized positions never leave their range, so what does is in degrees. Drivers
    before wrote names without `.pos`, and degrees. Grippers are in percent of their opening.

    Args:
        source: The dataset, for messages.
        columns: By header.
        small_arm: Whether the driver is known never to write radians.
        old: Whether names have no `.pos`.
    """
    positions = [name for name in columns if name.endswith((".position", ".target"))]
    grippers = {name for name in positions if any(word in name.lower() for word in _GRIPPERS)}
    arm = [name for name in positions if name not in grippers]
    measured = [np.nanmax(np.abs(columns[name]), initial=0.0) for name in arm if name.endswith(".position")]
    farthest = float(max(measured, default=0.0))
    if not small_arm and farthest <= _RADIANS:
        return list(columns), {}, []
    doubts = {name: UnitDoubt("is a share of the gripper's opening in percent, not an angle") for name in grippers}
    if farthest > _FULL + _TOLERANCE or (small_arm and old):
        words = f"reach {farthest:.4g}" if farthest > _FULL + _TOLERANCE else "were written by LeRobot's first drivers"
        said = [f"{source}: positions and commands {words} and are read as degrees"]
        return [f"{name} [deg]" if name in arm else name for name in columns], doubts, said
    reason = (
        f"is in degrees or in LeRobot's -100 to 100 (positions reach {farthest:.4g}): in a column file give "
        "'unit: deg', or the scale from the calibration"
    )
    return list(columns), doubts | {name: UnitDoubt(reason, "deg") for name in arm}, []


def _features(dataset: Path) -> tuple[dict[str, _Vector], float, str]:
    """The vectors of the dataset, the frames per second (0 if not given), and the kind of robot."""
    file = dataset / "meta" / "info.json"
    try:
        info = parse_json(read_text(file, what="the description of a dataset"))
        described: Mapping[str, Any] = dict(info["features"])
        rate = float(info.get("fps") or 0.0)
        vectors = {
            name: _Vector(tuple(_element_names(about)), tuple(_headers(name, about)))
            for name, about in described.items()
        }
        return vectors, rate, str(info.get("robot_type") or "").lower().replace("_", "")
    except RobotFileError as error:
        raise LogError(str(file), error.problem) from None
    except Exception as error:  # a damaged file can make any part of it fail
        shown = f"{type(error).__name__}: {reason_of(error)}"
        raise LogError(str(file), f"does not describe the features of a dataset ({shown})") from error


def _headers(feature: str, about: Mapping[str, Any]) -> Iterator[str]:
    """`NAME.position` for what is measured at a joint, else `FEATURE.NAME`; numbers where there are no names."""
    for name in _element_names(about):
        joint, _, ending = name.rpartition(".")
        quantity = _ENDINGS.get(ending, ending)
        # A command without names, or of something else than a position, belongs to no joint.
        unnamed = feature == "action" and (
            name.isdigit() or (quantity in _FEATURES.values() and quantity != "position")
        )
        if feature not in _FEATURES or unnamed:
            yield f"{feature}.{name}"
        elif not joint or quantity not in _FEATURES.values():
            yield f"{name}.{_FEATURES[feature]}"
        else:  # a state may hold more than positions; other vectors may repeat the names of the state
            yield f"{joint}.{quantity if feature == 'observation.state' else _FEATURES[feature]}"


def _element_names(about: Mapping[str, Any]) -> list[str]:
    """The names of a vector's elements; numbers where there are none."""
    names = about.get("names")
    if isinstance(names, Mapping):  # {"motors": [..]}
        names = next(iter(names.values()), None)
    if isinstance(names, Sequence) and not isinstance(names, str):
        return [str(name) for name in names]
    shape = about["shape"]
    return [str(i + 1) for i in range(int(shape[0]))] if len(shape) == 1 and shape[0] < 1000 else []


def _columns(file: Path, features: Mapping[str, _Vector]) -> dict[str, Array]:
    """The numbers of a data file by header, (n_samples,) each."""
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise LogError(str(file), "reading Parquet needs pyarrow: pip install pyarrow") from None
    check_parquet(file)
    try:
        with parquet.ParquetFile(file) as opened:
            headers = {name: vector.headers for name, vector in features.items()}
            kept = [field.name for field in opened.schema_arrow if _is_numeric(arrow, field.type)]
            check_headers(file, [name for own in kept for name in (headers.get(own) or (own,))])
            n_numbers = opened.metadata.num_rows * sum(max(1, len(headers.get(name, ()))) for name in kept)
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
        own = headers.get(name, ())
        flat = values.flatten().to_numpy(zero_copy_only=False)
        lengths = (
            np.diff(values.offsets.to_numpy()) if hasattr(values, "offsets") else np.array([values.type.list_size])
        )
        if len(flat) != len(own) * table.num_rows or (lengths != len(own)).any():
            raise LogError(str(file), f"'{name}' has vectors of other lengths than the {len(own)} of meta/info.json")
        if twice := columns.keys() & set(own):
            raise LogError(str(file), f"column '{min(twice)}' appears twice; remove or rename one")
        columns.update(zip(own, flat.reshape(table.num_rows, len(own)).T, strict=True))
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
