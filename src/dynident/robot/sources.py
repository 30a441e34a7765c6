"""Where robot files come from besides a path: packages, xacro, names of `robot_descriptions`; what cannot be read."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dynident.errors import RobotFileError, suggestion
from dynident.isolation import call_in_child
from dynident.limits import LIMITS, LimitError, RefusedError
from dynident.robot.notices import list_names

READABLE = (".urdf", ".xml", ".yaml", ".yml", ".xacro")
_INSTEAD = {  # formats that hold no robot that could be read, and what to give instead
    ".sdf": "is SDF (Gazebo); give the URDF or xacro that it was made from, or convert it to URDF",
    ".world": "is SDF (Gazebo); give the URDF or xacro of the robot in it",
    ".srdf": "is an SRDF, which names groups of joints and has no masses; give the .urdf or .xacro that belongs to it",
    **dict.fromkeys(
        (".usd", ".usda", ".usdc", ".usdz"), "is USD; give the URDF or MJCF that it was imported from, or export one"
    ),
    ".mjb": "is a compiled MuJoCo model; give its .xml",
    ".mjz": "is a packed MuJoCo model; unpack it and give its .xml",
    ".proto": "is a Webots PROTO; export the robot as URDF (Webots: right click, Export URDF)",
    **dict.fromkeys((".stl", ".obj", ".dae"), "is a mesh; give the robot file that uses it"),
}
_MOST_SHOWN = 4  # files of a folder that a message names


@dataclass(frozen=True)
class ReadOptions:
    """How robot files are read.

    Attributes:
        fixed_base: Whether a base that the file lets float is meant to be held.
        xacro_args: Arguments of xacro files by name.
        packages: Folders of packages by name, before any that are searched for.
    """

    fixed_base: bool = False
    xacro_args: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)


def refuse_source(source: str) -> None:
    """Refuse what exists and is no robot file, with what to give instead."""
    path = Path(source)
    if os.path.isdir(source):
        inside = sorted(p.name for p in path.iterdir() if p.suffix.lower() in READABLE and p.is_file())
        words = f"give one of its files: {list_names(inside, _MOST_SHOWN)}" if inside else "give a robot file"
        raise RobotFileError(source, "", f"is a folder; {words}")
    suffix = path.suffix.lower()
    if suffix in _INSTEAD and (os.path.exists(path) or suffix != ".sdf"):
        raise RobotFileError(source, "", _INSTEAD[suffix])
    if suffix not in READABLE and os.path.exists(path):  # unlike Path.exists, False for a name that is too long
        raise RobotFileError(source, "", "must end in .urdf, .xml (MJCF), .xacro or .yaml")


# ----------------------------------------------------------------------------------------------------------------------
# Packages.


def resolve_package_path(source: str, near: Path, reading: ReadOptions) -> str:
    """The path that `package://name/..` stands for; other sources as they are."""
    if not source.startswith("package://"):
        return source
    name, _, inside = source.removeprefix("package://").partition("/")
    return str(Path(find_package(name, near, reading, source)) / inside)


def find_package(name: str, near: Path, reading: ReadOptions, source: str) -> str:
    """The folder of a package: around a path, then where ROS looks.

    Raises:
        RobotFileError: When there is none.
    """
    if name in reading.packages:
        return reading.packages[name]
    for folder in _package_folders(name, near.absolute()):
        if folder.is_dir():
            return str(folder)
    problem = (
        f"package '{name}' is in no folder around {near} and in neither ROS_PACKAGE_PATH nor AMENT_PREFIX_PATH; put "
        "the folder of the package beside, or name its parent in ROS_PACKAGE_PATH"
    )
    raise RobotFileError(source, "", problem)


def _package_folders(name: str, near: Path) -> Iterator[Path]:
    for folder in (near, *near.parents):
        if folder.name == name or _package_name(folder) == name:
            yield folder
        yield folder / name
    for place in filter(None, os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)):
        if Path(place).name == name:
            yield Path(place)
        yield Path(place) / name
    for place in filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)):
        yield Path(place) / "share" / name


def _package_name(folder: Path) -> str:
    manifest = folder / "package.xml"
    if not manifest.is_file():
        return ""
    with manifest.open("rb") as file:
        text = file.read(LIMITS.table_characters).decode(errors="replace")
    found = re.search(r"<name>\s*([^<\s]+)\s*</name>", text)
    return "" if found is None else found.group(1)


# ----------------------------------------------------------------------------------------------------------------------
# xacro.


def expand_xacro(path: str, reading: ReadOptions) -> str:
    """The URDF text that a xacro file expands to, in a process of its own: its macros are a program.

    Raises:
        RobotFileError: When the package xacro is missing, or cannot expand the file.
    """
    try:
        importlib.import_module("xacro")
    except ImportError:
        problem = "is xacro, which the package of that name expands: pip install xacro"
        raise RobotFileError(path, "", problem) from None
    try:
        return str(call_in_child(xacro_text, path, dict(reading.xacro_args), dict(reading.packages)))
    except LimitError as error:
        raise RobotFileError(path, "", f"xacro cannot expand it: {error}") from None
    except RefusedError as error:
        problem = f"xacro cannot expand it: {error}; arguments are given as --xacro-arg name:=value"
        raise RobotFileError(path, "", problem) from None


def xacro_text(path: str, arguments: Mapping[str, str], packages: Mapping[str, str]) -> str:
    """What `expand_xacro` does in its process."""
    xacro = importlib.import_module("xacro")
    reading = ReadOptions(packages=packages)

    def find(name: str) -> str:
        return find_package(name, Path(path).parent, reading, path)

    with _packages_found_by(find), contextlib.redirect_stderr(io.StringIO()):
        text = str(xacro.process_file(path, mappings=dict(arguments)).toxml())
    if len(text) > LIMITS.robot_bytes:
        raise LimitError(f"it expands to {len(text)} bytes, more than a robot description may have")
    return text


@contextlib.contextmanager
def _packages_found_by(find: Callable[[str], str]) -> Iterator[None]:
    """Let `$(find package)` of xacro work without a ROS workspace around it."""
    arguments: Any = importlib.import_module("xacro.substitution_args")
    own = getattr(arguments, "_eval_find", None)
    if own is None:  # another version, which looks for packages in its own way
        yield
        return

    def found(name: str) -> str:
        try:
            return find(name)
        except RobotFileError as error:
            try:
                return str(own(name))
            except (ImportError, LookupError, ValueError):  # ROS is not there, or knows neither package nor such a name
                raise error from None

    arguments._eval_find = found
    try:
        yield
    finally:
        arguments._eval_find = own


# ----------------------------------------------------------------------------------------------------------------------
# Names of the package `robot_descriptions`.


def is_description(source: str) -> bool:
    """Whether a source looks like a name of `robot_descriptions`, such as ur5e_description."""
    return re.fullmatch(r"[a-z][a-z0-9_]*_description", source) is not None and not os.path.exists(source)


def _errors_of_fetching() -> tuple[type[Exception], ...]:
    """What comes of a missing package, of files and the network, of a name that is refused, and of GitPython."""
    plain = (ImportError, OSError, ValueError)
    try:
        return (*plain, importlib.import_module("git.exc").GitError)
    except ImportError:  # where git is missing, GitPython cannot be loaded
        return plain


def description_file(name: str) -> tuple[str, ReadOptions]:
    """The file of a description, and how it is to be read.

    Raises:
        RobotFileError: When the package or the name is unknown, or the files can be neither found nor fetched.
    """
    package = importlib.util.find_spec("robot_descriptions")
    if package is None or not package.submodule_search_locations:
        problem = (
            "is no file, and names of this kind belong to the package robot_descriptions, which is not installed: "
            "pip install robot_descriptions"
        )
        raise RobotFileError(name, "", problem)
    folder = Path(next(iter(package.submodule_search_locations)))
    known = sorted(path.stem for path in folder.glob("*_description.py"))
    if name not in known:
        raise RobotFileError(name, "", f"is no name of robot_descriptions{suggestion(name, known)}")
    try:
        with contextlib.redirect_stdout(sys.stderr):  # it speaks of its downloads
            module = importlib.import_module(f"robot_descriptions.{name}")
    except _errors_of_fetching() as error:
        cache = os.environ.get("ROBOT_DESCRIPTIONS_CACHE", "~/.cache/robot_descriptions")
        words = " ".join(str(error).split())[:200] or type(error).__name__
        problem = (
            f"robot_descriptions has no copy of it in its cache ({cache}) and could not fetch one ({words}); load it "
            "once where there is network, or give the path of a robot file"
        )
        raise RobotFileError(name, "", problem) from None
    for key in ("MJCF_PATH", "URDF_PATH", "XACRO_PATH"):
        if hasattr(module, key):
            args = {str(k): str(v) for k, v in getattr(module, "XACRO_ARGS", {}).items()}
            packages = {str(k): str(v) for k, v in getattr(module, "XACRO_PACKAGE_PATHS", {}).items()}
            return str(getattr(module, key)), ReadOptions(xacro_args=args, packages=packages)
    raise RobotFileError(name, "", "robot_descriptions knows no file of it; give the path of a robot file")
