"""Drives on disk: one YAML file that people read and `replay` takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dynident.arrays import frozen
from dynident.drives.identification import DriveEstimate
from dynident.drives.replay import ReplayErrors
from dynident.errors import DynidentError
from dynident.estimate.storage import found_again, robot_file
from dynident.files import write_text
from dynident.robot.storage import robot_from_data, robot_to_data, yaml_text
from dynident.schema import parse_yaml, read_text

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


def save_drives(found: DriveEstimate, path: str | Path) -> None:
    """Write drives; a folder is created when it does not exist."""
    target = drives_path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
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
    write_text(target, f"# Drives identified with dynident.\n{yaml_text(data)}")


def load_drives(path: str | Path) -> DriveEstimate:
    """What `save_drives` wrote.

    Raises:
        DrivesFileError: Naming the file and what is wrong with it.
    """
    target = drives_path(path)
    data = parse_yaml(read_text(target), str(target))
    if data.get("format") != FORMAT:
        raise DrivesFileError(f"{target}: holds no drives (its format is {data.get('format')!r}, expected '{FORMAT}')")
    try:
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
            evaluated=tuple(data["replay"]["logs"]),
            held_out=bool(data["replay"]["held_out"]),
            notes=tuple(data["notes"]),
            warnings=tuple(data["warnings"]),
            before=before,
            after=after,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DrivesFileError(f"{target}: is damaged ({error}); identify the drives again") from None
