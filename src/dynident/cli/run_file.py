"""`RunFile`: what to identify from which logs, with which options, and what to write; relative paths start at the file.

Its keys are the fields of the option records of `identify` and `export`, so a run file and a command do the same.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dynident.cli.arguments import warn
from dynident.cli.export import ExportArguments
from dynident.cli.identify import IdentifyArguments
from dynident.deprecated import renamed_options
from dynident.errors import DynidentError
from dynident.export.fit_export import wanted_formats
from dynident.export.options import ExportOptions
from dynident.options import LockedJoints, LogReading, given_options, option_fields
from dynident.pipeline.options import IdentifyOptions
from dynident.readers import reader
from dynident.robot.load import is_path
from dynident.schema import OptionReader

READING_KEYS = (*option_fields(LogReading), *option_fields(LockedJoints))
KEYS = ("robot", "training", "validation", "output", *READING_KEYS, "identify", "export", "hashes")


def _section_keys(cls: Any) -> tuple[str, ...]:
    """Options of a record that a command line can give."""
    return tuple(name for name, field in option_fields(cls).items() if field.metadata.get("cli", True))


IDENTIFY_KEYS = (*_section_keys(IdentifyOptions), "prior_std")
EXPORT_KEYS = (*_section_keys(ExportOptions), "mass", "total_mass")
_RENAMED = {"identify": renamed_options(IdentifyOptions), "export": renamed_options(ExportOptions)}
_HASH = re.compile(r"[0-9a-f]{64}")


class RunFileError(DynidentError):
    """A run file that cannot be followed, with its line."""


@dataclass(frozen=True)
class RunFile:
    """A run, as its file says it; all paths can be opened from the current folder.

    Attributes:
        source: The file.
        identify: Options of the identification.
        export: Options of the export; None where nothing is to be exported.
        hashes: SHA-256 of logs at the time the file was written, by path.
    """

    source: str
    identify: IdentifyArguments
    export: ExportArguments | None
    hashes: dict[str, str]


@reader("run file", RunFileError)
def read_run_file(path: str | Path) -> RunFile:
    """Read a run file.

    Raises:
        RunFileError: With the line, for anything that is not understood; an unknown key with the nearest valid one.
    """
    return _RunFileReader(str(path)).run_file()


class _RunFileReader(OptionReader):
    """The keys of a run file, one after the other."""

    failure = RunFileError
    warn = staticmethod(warn)

    def run_file(self) -> RunFile:
        writes = "dynident init ROBOT FOLDER writes"
        top = self.top(missing=f"{writes} one", empty=f"{writes} a run file")
        given = self.mapping(top, "a run file", KEYS)
        for key in ("robot", "training", "output"):
            if key not in given:
                raise RunFileError(f"{self.source}: has no '{key}'; needed are robot, training and output")
        robot, output = self.text(given["robot"], "robot"), self.path(given["output"], "output")
        files = {
            "robot": self.beside(robot) if is_path(robot) else robot,
            "logs": self.logs(given["training"], "training"),
            "validation": self.logs(given["validation"], "validation") if "validation" in given else (),
            "output": output,
        }
        reading = {key: given[key] for key in READING_KEYS if key in given}
        identify = reading | self.section(given, "identify", IDENTIFY_KEYS)
        section = self.section(given, "export", EXPORT_KEYS)
        export = self.options(ExportArguments, section, {"fit": output})
        if not wanted_formats(export) and given_options(export).keys() - {"fit"}:
            words = "export names no file to write; add urdf, mjcf, yaml or c, or remove it"
            raise self.error(given["export"], words)
        return RunFile(
            source=self.source,
            identify=self.options(IdentifyArguments, identify, files),
            export=export if wanted_formats(export) else None,
            hashes=self.hashes(given),
        )

    def section(self, given: dict[str, yaml.Node], key: str, keys: tuple[str, ...]) -> dict[str, yaml.Node]:
        """A mapping within the file; empty where it is left out."""
        if key not in given:
            return {}
        old = _RENAMED[key].keys() & {str(name.value) for name, _ in _entries(given[key])}
        return self.mapping(given[key], key, (*keys, *old))

    def logs(self, node: yaml.Node, what: str) -> tuple[str, ...]:
        """Paths of logs that are there."""
        if isinstance(node, yaml.SequenceNode) and not node.value and what == "training":
            raise self.error(node, "training has no log")
        items = node.value if isinstance(node, yaml.SequenceNode) else [node]
        found = []
        for item in items:
            path = self.path(item, f"an entry of {what}")
            if not os.path.exists(path):
                raise self.error(item, f"{what}: there is no file {path}")
            found.append(path)
        return tuple(found)

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


def _entries(node: yaml.Node) -> list[tuple[yaml.Node, yaml.Node]]:
    """Keys and values of a mapping; none where it is something else, which its reader refuses."""
    return node.value if isinstance(node, yaml.MappingNode) else []
