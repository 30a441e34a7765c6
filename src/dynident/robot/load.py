"""`load_robot`: one entry for files and bundled robots."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import Any

from dynident.errors import RobotFileError, suggestion
from dynident.readers import reader
from dynident.robot.dh import read_table
from dynident.robot.draft import Draft
from dynident.robot.expressions import robot_file_reader
from dynident.robot.model import Robot
from dynident.robot.overlay import KEYS, apply_loops, apply_options, apply_passive
from dynident.robot.sources import (
    READABLE,
    ReadOptions,
    description_file,
    expand_xacro,
    is_description,
    refuse_source,
    resolve_package_path,
)
from dynident.schema import parse_yaml, quote, read_text

_OVERLAY_KEYS = ("base", "name", "fixed_base", "loops", *KEYS)
_MOST_OVERLAYS = 10
_XACRO = re.compile("<xacro:")  # begins a macro; files that were expanded still declare the name space
_COMMENT = re.compile("<!--.*?-->", re.DOTALL)
_BUNDLED = resources.files("dynident.robot") / "bundled"


# Bundled robot -> its maker, and where kinematics and values of the links are from; the files say more.
BUNDLED = {
    "cmu-dd-arm-3": ("Carnegie Mellon", "Khosla & Kanade 1987; lengths invented"),
    "cmu-dd-arm-6": ("Carnegie Mellon", "Khosla & Kanade 1987; wrist lengths invented"),
    "cylindrical": ("textbook", "Khosla & Kanade 1987"),
    "kr5": ("KUKA", "Abhishek et al.; links invented"),
    "kr5-planar": ("KUKA", "Abhishek et al."),
    "minnesota": ("U. of Minnesota", "Kim 1990, Table 1; lengths invented"),
    "panda": ("Franka Emika", "maker's lengths; links invented"),
    "pendulum-1": ("textbook", "Jamisola, Dadios & Ang"),
    "pendulum-2": ("textbook", "Jamisola, Dadios & Ang"),
    "pendulum-3": ("textbook", "Jamisola, Dadios & Ang"),
    "puma560": ("Unimation", "Armstrong, Khatib & Burdick 1986"),
    "sr400": ("ACMA", "Gautier, Khalil & Restrepo 1995"),
    "tx40": ("Stäubli", "maker's lengths; links invented"),
    "ur10e": ("Universal Robots", "maker's lengths; links invented"),
}


def bundled_names() -> tuple[str, ...]:
    """Names of the robots that come with dynident."""
    return tuple(sorted(item.name.removesuffix(".yaml") for item in _BUNDLED.iterdir() if item.name.endswith(".yaml")))


def is_path(source: str) -> bool:
    """Whether a source is the path of a file, not a name that is looked up."""
    return source not in bundled_names() and not is_description(source) and not source.startswith("package://")


@reader("robot", RobotFileError)
def load_robot(
    source: str | PathLike[str], *, fixed_base: bool = False, xacro_args: Mapping[str, str] | None = None
) -> Robot:
    """The robot of a file or name.

    Args:
        source: A file (`.urdf`, `.xml` for MJCF, `.xacro`, `.yaml`), also as `package://name/file`; a bundled name such
            as "puma560"; or a name of the package `robot_descriptions`, such as "ur5e_description".
        fixed_base: That a base which the file lets float is meant to be held, as it is: no warning then.
        xacro_args: Arguments of a xacro file.

    Raises:
        RobotFileError: With file, element and remedy.
    """
    return _draft(str(source), (), ReadOptions(fixed_base, dict(xacro_args or {}))).finish()


def robot_from_urdf(text: str, source: str = "URDF text") -> Robot:
    """The robot of a URDF given as text."""
    return _urdf_draft(text, source).finish()


def _urdf_draft(text: str, source: str) -> Draft:
    from dynident.robot.urdf import read_urdf  # the XML parser is not needed for anything else

    return read_urdf(text, source)


def _draft(source: str, including: tuple[str, ...], reading: ReadOptions) -> Draft:
    if source in bundled_names():
        return read_table(parse_yaml((_BUNDLED / f"{source}.yaml").read_text(encoding="utf-8"), source), source)
    if is_description(source):
        source, own = description_file(source)
        args = {**own.xacro_args, **reading.xacro_args}
        reading = dataclasses.replace(reading, xacro_args=args, packages=own.packages)
    source = resolve_package_path(source, Path.cwd(), reading)
    if source:
        refuse_source(source)
    path = Path(source)
    suffix = path.suffix.lower()
    if suffix not in READABLE:
        words = f"is neither a file nor a bundled robot{suggestion(source, bundled_names())}"
        raise RobotFileError(source or "''", "", words)
    text = read_text(path)
    if suffix in (".yaml", ".yml"):
        given = parse_yaml(text, source)
        return _overlay(given, path, including, reading) if "base" in given else read_table(given, source)
    draft = _xml_draft(text, source, reading)
    draft.fixed_base = reading.fixed_base
    return draft


def _xml_draft(text: str, source: str, reading: ReadOptions) -> Draft:
    """The draft of a URDF, of a xacro file, or of MJCF."""
    expanded = Path(source).suffix.lower() == ".xacro" or _XACRO.search(_COMMENT.sub("", text)) is not None
    if expanded:
        text = expand_xacro(source, reading)
    elif reading.xacro_args:
        raise RobotFileError(source, "", "is no xacro file, so that --xacro-arg means nothing; leave it out")
    if not expanded and Path(source).suffix.lower() == ".xml":
        from dynident.robot.mjcf import is_mjcf, read_mjcf

        if is_mjcf(text):
            return read_mjcf(source)
    return _urdf_draft(text, source)


def _overlay(given: dict[str, Any], path: Path, including: tuple[str, ...], reading: ReadOptions) -> Draft:
    """A base robot with the keys of the overlay on top."""
    reader = robot_file_reader(str(path))
    reader.known_keys(given, "", _OVERLAY_KEYS)
    base = reader.text(given["base"], "base")
    base = resolve_package_path(base, path.parent, reading)
    if base not in bundled_names() and not is_description(base):
        if not os.path.exists(path.parent / base):
            words = f"there is neither a file '{base}' beside it nor a bundled robot{suggestion(base, bundled_names())}"
            raise reader.error("base", words)
        base = str(path.parent / base)
    here = str(path.resolve())
    if here in including:
        raise reader.error("base", "overlays include each other in a circle; one must stand on a robot")
    if len(including) >= _MOST_OVERLAYS:
        raise reader.error("base", f"more than {_MOST_OVERLAYS} overlays stand on one another; merge some")
    draft = _draft(base, (*including, here), reading)
    if "fixed_base" in given:
        if given["fixed_base"] is not True:
            problem = f"is {quote(given['fixed_base'])}; expected true: floating bases are held, not identified"
            raise reader.error("fixed_base", problem)
        draft.fixed_base = True
    draft.reader = robot_file_reader(str(path), draft.reader.names)
    draft.name = reader.text(given.get("name", draft.name), "name")
    apply_passive(draft, given)
    apply_loops(draft, given.get("loops", []))
    apply_options(draft, given)
    return draft
