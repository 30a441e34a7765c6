"""The files that a robot was read from: which one to edit, and which ones never to overwrite."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dynident._version import __version__
from dynident.arrays import Array
from dynident.errors import InputError, RobotFileError
from dynident.export.values import same, split_link
from dynident.export.verification import ExportError
from dynident.export.xml_edit import Edits, Span, comment
from dynident.files import check_target
from dynident.robot.load import bundled_names
from dynident.robot.model import Robot
from dynident.robot.physicality import link_label
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


def check_export_target(path: str | Path, suffixes: tuple[str, ...], robot: Robot, kept: Path | None = None) -> Path:
    """The path to write to, refused before any work is done for it.

    Args:
        path: Where to.
        suffixes: Endings the format may have, such as ".urdf".
        robot: The robot, whose own files must stay as they are.
        kept: The user's file that is edited, which must stay, too.

    Raises:
        InputError: When it cannot be written, has another ending, or is a file the robot came from.
    """
    check_target(path)
    target = Path(path)
    if target.suffix.lower() not in suffixes:
        raise InputError(f"{target}: must end in {' or '.join(suffixes)}, so that it is read as what it is")
    for file in (*origin_files(robot), *([kept] if kept else [])):
        if target.resolve() == file.resolve() or (target.exists() and file.exists() and target.samefile(file)):
            raise InputError(f"{target}: is the file the robot was read from; give the export another name")
    return target


def edited_file(robot: Robot, root: str, given: str | Path | None, from_scratch: bool) -> Path | None:
    """The user's own file that an export keeps, or None where a new one is to be made.

    Args:
        robot: The robot.
        root: Root element of the format, "robot" or "mujoco".
        given: The file, where the robot does not name it.
        from_scratch: Make a new file in any case.

    Raises:
        InputError: When the file is not there.
    """
    if given is not None and from_scratch:
        raise InputError("source is the file to keep, from_scratch asks for a new one; give one of the two")
    if from_scratch:
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
                "or have a new one made (from_scratch)"
            )
        return None
    return _own_format(robot, root, found[-1])


def urdf_of(robot: Robot) -> Path | None:
    """The URDF that a robot stands on, directly or through overlays, where it is still there."""
    files = origin_files(robot)
    return files[-1] if files and files[-1].suffix.lower() == ".urdf" and files[-1].is_file() else None


_FORMS = {"robot": "URDF", "mujoco": "MJCF"}


def _own_format(robot: Robot, root: str, file: Path) -> Path | None:
    """The file, if it is of the format."""
    if root == "mujoco" and file.suffix.lower() == ".urdf":
        return None
    if not file.is_file():
        raise InputError(
            f"robot {robot.name} was read from {file}, which is not there; give the file to keep as source, or have a "
            "new one made (from_scratch)"
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
            "follow; write that into the file (a <mimic> in URDF), or have a new one made (from_scratch)"
        )


# ----------------------------------------------------------------------------------------------------------------------
# The user's own file with new numbers: its bodies, its joints, and what the reader should know.


@dataclass(frozen=True)
class KeptBody:
    """A body of a file that is to be kept.

    Attributes:
        name: Its name, or where it stands.
        span: Its element.
        on: The robot's link it is part of, or `BASE`.
        chi: (10,) its own parameters in that link's frame.
        leads: Whether it is the one that the joint moves; others are fixed to it.
    """

    name: str
    span: Span
    on: int
    chi: Array
    leads: bool


@dataclass(frozen=True)
class KeptFile:
    """A URDF or MJCF file that is to be kept.

    Attributes:
        content: Its bytes.
        robot: The robot in it.
        root: Its root element.
        bodies: Its bodies, parents first.
        joints: Element of every joint of the robot, with the rotor inertia and friction it has in this format.
        beside: The same of passive joints and tendons, by the labels that the reader gives them.
    """

    content: bytes
    robot: Robot
    root: Span
    bodies: tuple[KeptBody, ...]
    joints: tuple[tuple[Span, tuple[float, ...]], ...]
    beside: Mapping[str, tuple[Span, tuple[float, ...]]] = field(default_factory=dict)

    def write_links(
        self,
        robot: Robot,
        chi: Array,
        put: Callable[[KeptBody, Array, str], None],
        clear: Callable[[KeptBody], None],
    ) -> list[str]:
        """New parameters of the links that changed.

        Args:
            robot: The robot.
            chi: (n_links, 10) standard parameters of its links.
            put: Gives a body parameters (10,); the label of its link is for messages.
            clear: Takes a body's away.

        Returns:
            Warnings.
        """
        warnings, old = [], self.robot.link_parameters()
        leading = {body.on: body for body in self.bodies if body.leads}
        for place, joint in enumerate(robot.joints):
            if same(chi[place], old[place]):
                continue
            label = link_label(joint)
            if place not in leading:
                raise ExportError(
                    f"{label}: is only a joint in the file, which has several on one body, and cannot hold a mass; "
                    "have a new file made (from_scratch)"
                )
            fixed = {body.name: body for body in self.bodies if body.on == place and body is not leading[place]}
            own, emptied = split_link(chi[place], {name: body.chi for name, body in fixed.items()}, label)
            put(leading[place], own, label)
            for name in emptied:
                clear(fixed[name])
            if emptied:
                names = ", ".join(emptied)
                why = "because what would be left beside them is no body"
                warnings.append(f"{label}: holds the masses of {names} as well, {why}")
        return warnings


def head_comment(robot: Robot, lost: tuple[str, ...], note: str) -> str:
    """The comment on top of a file: where its numbers come from and what it does not hold."""
    lines = [f"dynident: {__version__}, identified values of {robot.name}, SI units."]
    lines += [" ".join(note.split())] if note.strip() else []
    lines += [f"Not in this file: {words}." for words in lost]
    return comment(lines)


_NAMED_FILES = {"mesh": "meshdir", "hfield": "meshdir", "skin": "meshdir", "texture": "texturedir"}


def moved_files(edits: Edits, root: Span, source: Path, target: Path) -> list[str]:
    """Name meshes and textures as seen from the folder of the new file; warnings for those that are not there."""
    old, new = source.resolve().parent, target.resolve().parent
    if old == new:
        return []
    compiler: dict[str, str] = {}
    for span in root.all("compiler"):
        compiler |= span.attributes
    missing = []
    for span in (one for one in root.walk() if one.tag in _NAMED_FILES):
        key = "filename" if root.tag == "robot" else "file"
        name = span.attributes.get(key, "")
        folder = compiler.get(_NAMED_FILES[span.tag], compiler.get("assetdir", ""))
        if not name or "://" in name or Path(name).is_absolute() or Path(folder).is_absolute():
            continue
        if (old / folder / name).is_file() and compiler.get("strippath") != "true":
            edits.set(span, **{key: os.path.relpath(old / folder / name, new / folder)})
        else:
            missing.append(name)
    return [f"meshes such as {missing[0]} are named relative to {source.parent}"] if missing else []
