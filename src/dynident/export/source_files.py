"""The files that a robot was read from: which one to edit, and which ones never to overwrite."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dynident.errors import InputError, RobotFileError
from dynident.export.verification import ExportError
from dynident.files import check_target
from dynident.robot.load import bundled_names
from dynident.robot.model import Robot
from dynident.schema import parse_yaml, read_text

_MOST_OVERLAYS = 10


def origin_files(robot: Robot) -> tuple[Path, ...]:
    """The files a robot was read from, overlays first and what they stand on last; empty for a bundled robot.

    Files that are no longer there are named all the same: their place must not be taken.
    """
    source = robot.source
    files: list[Path] = []
    while source not in bundled_names() and len(files) <= _MOST_OVERLAYS:
        path = Path(source)
        if path.suffix.lower() not in (".urdf", ".xml", ".yaml", ".yml"):
            break
        files.append(path)
        base = _base_of(path)
        if base is None or base in bundled_names():
            break
        source = str(path.parent / base)
    return tuple(files)


def _base_of(path: Path) -> str | None:
    """What an overlay stands on, None for any other file."""
    if path.suffix.lower() not in (".yaml", ".yml"):
        return None
    try:
        base = parse_yaml(read_text(path), str(path)).get("base")
    except RobotFileError:
        return None
    return base if isinstance(base, str) else None


def check_export_target(path: str | Path, suffixes: tuple[str, ...], protected: tuple[Path, ...]) -> Path:
    """The path to write to, refused before any work is done for it.

    Args:
        path: Where to.
        suffixes: Endings the format may have, such as ".urdf".
        protected: Files that must stay as they are.

    Raises:
        InputError: When it cannot be written, has another ending, or is a file the robot came from.
    """
    check_target(path)
    target = Path(path)
    if target.suffix.lower() not in suffixes:
        raise InputError(f"{target}: must end in {' or '.join(suffixes)}, so that it is read as what it is")
    for file in protected:
        if target.resolve() == file.resolve() or (target.exists() and file.exists() and target.samefile(file)):
            raise InputError(f"{target}: is the file the robot was read from; give the export another name")
    return target


def edited_file(robot: Robot, root: str, given: str | Path | None, fresh: bool) -> Path | None:
    """The user's own file that an export keeps, or None where a new one is to be made.

    Args:
        robot: The robot.
        root: Root element of the format, "robot" or "mujoco".
        given: The file, where the robot does not tell.
        fresh: Make a new file in any case.

    Raises:
        InputError: When the file is not there.
    """
    if given is not None and fresh:
        raise InputError("source is the file to keep, fresh asks for a new one; give one of the two")
    if fresh:
        return None
    if given is not None:
        if not Path(given).is_file():
            raise InputError(f"{given}: no such file; give the {_FORMS[root]} whose text is to be kept")
        return Path(given)
    found = origin_files(robot)
    if not found or found[-1].suffix.lower() in (".yaml", ".yml"):
        if found and not found[0].is_file():
            raise InputError(
                f"robot {robot.name} was read from {found[0]}, which is not there; give the file to keep as source, "
                "or have a new one made (fresh)"
            )
        return None
    return _own_format(robot, root, found[-1])


_FORMS = {"robot": "URDF", "mujoco": "MJCF"}


def _own_format(robot: Robot, root: str, file: Path) -> Path | None:
    """The file, if it is of the format."""
    if root == "mujoco" and file.suffix.lower() == ".urdf":
        return None
    if not file.is_file():
        raise InputError(
            f"robot {robot.name} was read from {file}, which is not there; give the file to keep as source, or have a "
            "new one made (fresh)"
        )
    if file.suffix.lower() == ".urdf":
        return file
    from dynident.robot.mjcf import is_mjcf

    return file if is_mjcf(read_text(file)) == (root == "mujoco") else None


# ----------------------------------------------------------------------------------------------------------------------
# Whether a file that is to be kept describes the robot whose values it gets.

_CLOSE = 1e-9  # [m, or entries of rotations] geometry of the file against the robot's


def check_same_tree(file: Robot, robot: Robot, source: str) -> None:
    """Refuse a file that describes another machine than the robot.

    Raises:
        ExportError: Naming the first joint that differs.
    """
    names, own = ([joint.name for joint in r.joints] for r in (file, robot))
    if names != own:
        words = f"has the joints {', '.join(names)}; robot {robot.name} has {', '.join(own)}"
        raise ExportError(f"{source}: {words}; give the file the robot was read from")
    for there, here in zip(file.joints, robot.joints, strict=True):
        pairs = [(getattr(there, part), getattr(here, part)) for part in ("before", "after")]
        alike = all(
            np.abs(a.rotation - b.rotation).max() < _CLOSE and np.abs(a.translation - b.translation).max() < _CLOSE
            for a, b in pairs
        )
        if not alike or (there.kind, there.parent) != (here.kind, here.parent):
            raise ExportError(
                f"{source}: joint '{here.name}' is not the robot's: the file was changed since, or is not it"
            )
    if not np.array_equal(file.follow, robot.follow) or not np.allclose(file.follow_offset, robot.follow_offset):
        raise ExportError(
            f"{source}: passive joints move otherwise than those of robot {robot.name}, whose overlay says how they "
            "follow; write that into the file (a <mimic> in URDF), or have a new one made (fresh)"
        )
