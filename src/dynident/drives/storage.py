"""Drives on disk: one YAML file that people read and `replay` takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynident.arrays import Array, finite_or_none, frozen
from dynident.drives.identification import DriveEstimate
from dynident.drives.replay import ReplayErrors
from dynident.errors import DynidentError
from dynident.estimate.storage import fit_path, found_again, robot_file
from dynident.files import settled, write_together
from dynident.readers import reader, reason_of
from dynident.robot.storage import robot_from_data, robot_to_data, yaml_text
from dynident.schema import parse_yaml, read_text
from dynident.sealed import check_text, sealed_text

FORMAT = "dynident drives 1"
_FILE = "drives.yaml"


class DrivesFileError(DynidentError):
    """A file that does not hold drives."""


def drives_path(path: str | Path) -> Path:
    """The YAML file of drives, given as the file itself or as the folder that holds drives.yaml."""
    given = Path(path)
    return given if given.suffix.lower() in (".yaml", ".yml") else given / _FILE


def is_drives(path: str | Path) -> bool:
    """Whether a path is that of drives: a folder with drives.yaml, or a YAML file that says so."""
    target = drives_path(path)
    if not target.is_file():
        return False
    with target.open("rb") as file:
        return FORMAT.encode() in file.read(400)


def is_fit(path: str | Path) -> bool:
    """Whether a path is that of a fit: a folder with fit.yaml, or a YAML file that says so."""
    target = fit_path(path)
    if not target.is_file():
        return False
    with target.open("rb") as file:
        return b"format: dynident fit" in file.read(400)


def save_drives(found: DriveEstimate, path: str | Path) -> None:
    """Write drives; a folder is created when it does not exist."""
    target = drives_path(path)
    write_together(target.parent, {target.name: drives_yaml(found, target).encode()})


def drives_yaml(found: DriveEstimate, target: Path) -> str:
    """What the file of drives holds, which stands at `target`."""
    file = robot_file(found.robot, target)
    data: dict[str, Any] = {
        "format": FORMAT,
        "names": list(found.names),
        "units": list(found.units),
        "values": found.values.tolist(),
        "std": [None if not np.isfinite(x) else x for x in found.std.tolist()],
        "determined": [bool(x) for x in found.determined],
        "delay": found.delay,
        "kp": found.kp.tolist(),
        "kd": found.kd.tolist(),
        "gain_scale": found.gain_scale.tolist(),
        "gain_scale_std": [finite_or_none(x) for x in found.gain_scale_std.tolist()],
        "replay": {
            "held_out": found.held_out,
            "logs": list(found.evaluated),
            **{
                key: {"rms": own.rms.tolist(), "mad": own.mad.tolist()}
                for key, own in (("before", found.before), ("after", found.after))
            },
        },
        "notes": list(found.notes),
        "warnings": list(found.warnings),
        "covariance": found.covariance.tolist(),
        **({} if file is None else {"robot_file": file}),
        "robot": robot_to_data(found.robot),
    }
    return sealed_text(f"# Drives identified with dynident.\n{yaml_text(data)}")


def _or_infinite(values: Sequence[float | None]) -> Array:
    """Numbers, infinite where there is none."""
    return np.array([np.inf if x is None else x for x in values], dtype=float)


@reader("drives", DrivesFileError)
def load_drives(path: str | Path) -> DriveEstimate:
    """What `save_drives` wrote.

    Raises:
        DrivesFileError: Naming the file and what is wrong with it.
    """
    target = settled(drives_path(path))
    text = read_text(target)
    data = parse_yaml(text, str(target))
    if data.get("format") != FORMAT:
        raise DrivesFileError(f"{target}: holds no drives (its format is {data.get('format')!r}, expected '{FORMAT}')")
    try:
        check_text(target, text)
        before, after = (
            ReplayErrors(*(np.array(data["replay"][key][x], dtype=float) for x in ("rms", "mad")))
            for key in ("before", "after")
        )
        values, covariance = np.array(data["values"], dtype=float), np.array(data["covariance"], dtype=float)
        n = len(data["names"])
        if values.shape != (n,) or covariance.shape != (n, n) or not np.isfinite(values).all():
            raise ValueError("values or covariance do not fit the names")
        return DriveEstimate(
            tuple(str(name) for name in data["names"]),
            tuple(str(unit) for unit in data["units"]),
            values,
            covariance,
            np.array(data["determined"], dtype=bool),
            robot=found_again(robot_from_data(data["robot"], str(target)), data, str(target)),
            kp=frozen(np.array(data["kp"], dtype=float)),
            kd=frozen(np.array(data["kd"], dtype=float)),
            gain_scale=frozen(np.array(data.get("gain_scale", np.ones(len(data["kp"]))), dtype=float)),
            gain_scale_std=frozen(_or_infinite(data.get("gain_scale_std", [None] * len(data["kp"])))),
            evaluated=tuple(data["replay"]["logs"]),
            held_out=bool(data["replay"]["held_out"]),
            notes=tuple(data["notes"]),
            warnings=tuple(data["warnings"]),
            before=before,
            after=after,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DrivesFileError(f"{target}: is damaged ({reason_of(error)}); identify the drives again") from None
