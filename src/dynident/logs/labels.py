"""Names of logs for tables: the shortest end of each path that no other log shares."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath
from typing import Protocol

_NUMBER = re.compile(r"( \(\d+\))?")


class Labelled(Protocol):
    """Something about a log that knows its label and its file: a log, a record or a comparison."""

    @property
    def label(self) -> str:
        """Name in reports; the source where nobody gave one."""

    @property
    def source(self) -> str:
        """File it came from."""


def short_names(logs: Iterable[Labelled]) -> dict[str, str]:
    """A short name by label: `run.csv` for `day 1/run.csv`, or both in full where another log is called `run.csv` too.

    Names that a user gave stay as they are, and so does a number behind a path that was given more than once.
    """
    given = {log.label: log.source for log in logs}
    behind = {label: _behind(label, source) for label, source in given.items()}
    taken = {label for label, number in behind.items() if number is None}
    # By file, so that two windows of one, `run.csv` and `run.csv (2)`, do not part over its name.
    paths = {source: PurePath(source).parts for label, source in given.items() if label not in taken}
    ends = {
        source: _end(parts, [own for own in paths.values() if own != parts], taken) for source, parts in paths.items()
    }
    return {label: label if number is None else ends[given[label]] + number for label, number in behind.items()}


def _behind(label: str, source: str) -> str | None:
    """What stands behind the path in a label that is one, such as ` (2)`; None for another label."""
    match = _NUMBER.fullmatch(label.removeprefix(source)) if source and label.startswith(source) else None
    return None if match is None else match[0]


def _end(parts: tuple[str, ...], others: list[tuple[str, ...]], taken: set[str]) -> str:
    """The shortest end of a path that is neither the same end of another nor a name that was given."""
    for n in range(1, len(parts)):
        name = str(PurePath(*parts[-n:]))
        if name not in taken and all(own[-n:] != parts[-n:] for own in others):
            return name
    return str(PurePath(*parts)) if parts else "."
