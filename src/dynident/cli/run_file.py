"""`RunFile`: what to identify from which logs, with which options, and what to write; relative paths start at the file.

Every option is kept as the words that the command line would have, so a run file and a command do exactly the same.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import yaml

from dynident.errors import DynidentError
from dynident.estimate.estimators import ESTIMATORS
from dynident.robot.load import bundled_names
from dynident.schema import NodeReader
from dynident.signals.observations import SignalOptions

KEYS = ("robot", "training", "validation", "output", "columns", "window", "locked", "identify", "export", "hashes")
_HINTS = get_type_hints(SignalOptions)
_CHOICES = {
    "estimator": tuple(ESTIMATORS),
    "speed": get_args(_HINTS["speed"]),
    "differentiator": get_args(_HINTS["differentiator"]),
    "check": ("stop", "tell", "off"),
    "number": ("double", "float"),
}
_LISTS = ("terms", "friction")
_NUMBERS = ("prior_std", "essential", "band", "delay", "rest_speed")
IDENTIFY_KEYS = (
    *("terms", "friction", "estimator", "prior_std", "essential", "band", "delay", "speed", "rest_speed"),
    *("differentiator", "check"),
)
_TARGETS = ("urdf", "mjcf", "yaml", "c")
_FLAGS = ("fresh", "limits")
EXPORT_KEYS = (*_TARGETS, "prior", "mass", "total_mass", "source", "fresh", "limits", "number", "name")
_HASH = re.compile(r"[0-9a-f]{64}")


class RunFileError(DynidentError):
    """A run file that cannot be followed, with its line."""


@dataclass(frozen=True)
class RunFile:
    """A run, as its file says it; all paths can be opened from the current folder.

    Attributes:
        source: The file.
        robot: Robot file or bundled name.
        training: Logs to learn from.
        validation: Logs to judge with.
        output: Folder for fit and report.
        columns: Column file, or None.
        identify: Words of the options of `dynident identify`.
        export: Words of the options of `dynident export`; empty where nothing is to be exported.
        targets: Files that the export writes.
        hashes: SHA-256 of logs at the time the file was written, by path.
    """

    source: str
    robot: str
    training: tuple[str, ...]
    validation: tuple[str, ...]
    output: str
    columns: str | None
    identify: tuple[str, ...]
    export: tuple[str, ...]
    targets: tuple[str, ...]
    hashes: dict[str, str]

    @property
    def identify_words(self) -> list[str]:
        """The command line of the identification, without the program."""
        held_out = ["--validation", *self.validation] if self.validation else []
        return ["identify", self.robot, *self.training, "-o", self.output, *held_out, *self.identify]

    @property
    def export_words(self) -> list[str]:
        """The command line of the export."""
        return ["export", self.output, *self.export]


def read_run_file(path: str | Path) -> RunFile:
    """Read a run file.

    Raises:
        RunFileError: With the line, for anything that is not understood; an unknown key with the nearest valid one.
    """
    return _Reader(str(path)).run_file()


class _Reader(NodeReader):
    """The keys of a run file, one after the other."""

    failure = RunFileError

    def run_file(self) -> RunFile:
        writes = "dynident init ROBOT FOLDER writes"
        top = self.top(missing=f"{writes} one", empty=f"{writes} a run file")
        given = self.mapping(top, "a run file", KEYS)
        for key in ("robot", "training", "output"):
            if key not in given:
                raise RunFileError(f"{self.source}: has no '{key}'; needed are robot, training and output")
        robot = self.text(given["robot"], "robot")
        columns = self.path(given["columns"], "columns") if "columns" in given else None
        export = self.section(given, "export", EXPORT_KEYS)
        return RunFile(
            source=self.source,
            robot=robot if robot in bundled_names() else self.beside(robot),
            training=self.logs(given["training"], "training"),
            validation=self.logs(given["validation"], "validation") if "validation" in given else (),
            output=self.path(given["output"], "output"),
            columns=columns,
            identify=(*self.log_words(given, columns), *self.identify_words(given)),
            export=tuple(word for key, node in export.items() for word in self.export_words(key, node)),
            targets=tuple(self.path(export[key], key) for key in _TARGETS if key in export),
            hashes=self.hashes(given),
        )

    def section(self, given: dict[str, yaml.Node], key: str, keys: tuple[str, ...]) -> dict[str, yaml.Node]:
        """A mapping within the file; empty where it is left out."""
        return self.mapping(given[key], key, keys) if key in given else {}

    def beside(self, path: str) -> str:
        """A path of the file, as it is from the current folder."""
        return os.path.normpath(Path(self.source).parent / os.path.expanduser(path))

    def path(self, node: yaml.Node, what: str) -> str:
        return self.beside(self.text(node, what))

    def logs(self, node: yaml.Node, what: str) -> tuple[str, ...]:
        """Paths of logs that are there."""
        if isinstance(node, yaml.SequenceNode) and not node.value and what == "training":
            raise self.error(node, "training has no log to learn from")
        items = node.value if isinstance(node, yaml.SequenceNode) else [node]
        found = []
        for item in items:
            path = self.path(item, f"an entry of {what}")
            if not os.path.exists(path):
                raise self.error(item, f"{what}: there is no file {path}")
            found.append(path)
        return tuple(found)

    def log_words(self, given: dict[str, yaml.Node], columns: str | None) -> list[str]:
        """Options that say how logs and robot are read."""
        words = [] if columns is None else ["--columns", columns]
        if "window" in given:
            words.append(f"--window={self.interval(given['window'], 'window')}")
        if "locked" in given:
            locked = self.mapping(given["locked"], "locked")
            words.append("--locked=" + ",".join(f"{key}={self.text(node, key)}" for key, node in locked.items()))
        return words

    def identify_words(self, given: dict[str, yaml.Node]) -> list[str]:
        words = []
        for key, node in self.section(given, "identify", IDENTIFY_KEYS).items():
            if key in _LISTS:
                value = ",".join(self.texts(node, key))
            elif key in _NUMBERS:
                value = self.number(node, key)
            else:
                value = self.text(node, key, _CHOICES[key])
            words.append(f"--{key.replace('_', '-')}={value}")
        return words

    def export_words(self, key: str, node: yaml.Node) -> list[str]:
        option = f"--{key.replace('_', '-')}"
        if key in _FLAGS:
            return [option] if self.flag(node, key) else []
        if key == "mass":
            return [f"{option}={link}={self.interval(own, link)}" for link, own in self.mapping(node, key).items()]
        readers: dict[str, Callable[[], str]] = {
            "total_mass": lambda: self.interval(node, key),
            "prior": lambda: self.text(node, key),
            "name": lambda: self.text(node, key),
            "number": lambda: self.text(node, key, _CHOICES[key]),
        }
        value: Any = readers.get(key, lambda: self.path(node, key))()
        return [f"{option}={value}"]

    def hashes(self, given: dict[str, yaml.Node]) -> dict[str, str]:
        """Hashes by path, of logs that the file names."""
        listed = [*self.texts(given["training"], "training")]
        listed += self.texts(given["validation"], "validation") if "validation" in given else []
        known = self.mapping(given["hashes"], "hashes", listed) if "hashes" in given else {}
        found = {}
        for path, node in known.items():
            digest = self.text(node, path)
            if not _HASH.fullmatch(digest):
                raise self.error(node, f"hash of {path} must be a SHA-256 of 64 digits; remove the line to do without")
            found[self.beside(path)] = digest
        return found
