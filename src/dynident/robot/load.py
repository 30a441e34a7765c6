"""`load_robot`: one entry for files and bundled robots."""

from __future__ import annotations

import os
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import Any

from dynident.errors import RobotFileError, suggestion
from dynident.robot.dh import read_table
from dynident.robot.draft import Draft
from dynident.robot.expressions import robot_file_reader
from dynident.robot.model import Robot
from dynident.robot.overlay import KEYS, apply_loops, apply_options, apply_passive
from dynident.schema import parse_yaml, read_text

_OVERLAY_KEYS = ("base", "name", "loops", *KEYS)
_MOST_OVERLAYS = 10
_BUNDLED = resources.files("dynident.robot") / "bundled"


def bundled_names() -> tuple[str, ...]:
    """Names of the robots that come with dynident."""
    return tuple(sorted(item.name.removesuffix(".yaml") for item in _BUNDLED.iterdir() if item.name.endswith(".yaml")))


def load_robot(source: str | PathLike[str]) -> Robot:
    """The robot of a file (`.urdf`, `.xml` for MJCF, `.yaml`) or of a bundled name such as "puma560".

    Raises:
        RobotFileError: With file, element and remedy.
    """
    return _draft(str(source), ()).finish()


def robot_from_urdf(text: str, source: str = "URDF text") -> Robot:
    """The robot of a URDF given as text."""
    return _urdf_draft(text, source).finish()


def _urdf_draft(text: str, source: str) -> Draft:
    from dynident.robot.urdf import read_urdf  # the XML parser is not needed for anything else

    return read_urdf(text, source)


def _draft(source: str, including: tuple[str, ...]) -> Draft:
    if source in bundled_names():
        return read_table(parse_yaml((_BUNDLED / f"{source}.yaml").read_text(encoding="utf-8"), source), source)
    path = Path(source)
    suffix = path.suffix.lower()
    if suffix not in (".urdf", ".xml", ".yaml", ".yml"):
        if source and os.path.exists(path):  # unlike Path.exists, False for a name that is too long
            raise RobotFileError(source, "", "must end in .urdf or .yaml")
        words = f"is neither a file nor a bundled robot{suggestion(source, bundled_names())}"
        raise RobotFileError(source or "''", "", words)
    text = read_text(path)
    if suffix == ".xml":
        from dynident.robot.mjcf import is_mjcf, read_mjcf

        if is_mjcf(text):
            return read_mjcf(path)
    if suffix in (".urdf", ".xml"):
        return _urdf_draft(text, source)
    given = parse_yaml(text, source)
    if "base" in given:
        return _overlay(given, path, including)
    return read_table(given, source)


def _overlay(given: dict[str, Any], path: Path, including: tuple[str, ...]) -> Draft:
    """A base robot with the keys of the overlay on top."""
    reader = robot_file_reader(str(path))
    reader.known_keys(given, "", _OVERLAY_KEYS)
    base = reader.text(given["base"], "base")
    if base not in bundled_names():
        if not os.path.exists(path.parent / base):
            words = f"there is neither a file '{base}' beside it nor a bundled robot{suggestion(base, bundled_names())}"
            raise reader.error("base", words)
        base = str(path.parent / base)
    here = str(path.resolve())
    if here in including:
        raise reader.error("base", "overlays include each other in a circle; one must stand on a robot")
    if len(including) >= _MOST_OVERLAYS:
        raise reader.error("base", f"more than {_MOST_OVERLAYS} overlays stand on one another; merge some")
    draft = _draft(base, (*including, here))
    draft.reader = robot_file_reader(str(path), draft.reader.names)
    draft.name = reader.text(given.get("name", draft.name), "name")
    apply_passive(draft, given)
    apply_loops(draft, given.get("loops", []))
    apply_options(draft, given)
    return draft
