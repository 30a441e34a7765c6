"""Where a result comes from: versions, files with their hashes, options as given, and the command that made it."""

from __future__ import annotations

import dataclasses
import hashlib
import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynident._version import __version__
from dynident.dynamics.terms.term import Term
from dynident.estimate.estimator import Estimator
from dynident.estimate.fit import Fit
from dynident.estimate.records import FileRecord, Provenance
from dynident.options import given_options

_PART = 1 << 20  # bytes that are read at once


def versions() -> dict[str, str]:
    """Of the software that numbers depend on."""
    import scipy

    return {
        "dynident": __version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
    }


def provenance_of(options: Any) -> Provenance:
    """What a fit remembers of its making, besides the hashes of its logs.

    Args:
        options: Record of options; those that differ from their defaults are kept, as plain data.
    """
    given = {name: _plain(value) for name, value in given_options(options).items()}
    return Provenance(versions(), given)


def made_by(
    fit: Fit,
    command: str,
    files: Iterable[tuple[str, str]],
    messages: Iterable[str] = (),
    reading: Mapping[str, Any] | None = None,
) -> Fit:
    """The fit with the command that made it.

    Args:
        fit: The fit.
        command: As it can be typed again.
        files: What each file besides the logs is, and its path; one that does not exist, such as the name of a bundled
            robot, has no hash.
        messages: Warnings about its making.
        reading: Options of reading its logs that hold for further logs too, such as the topics of bags.
    """
    listed = tuple(FileRecord(what, path, _digest(path)) for what, path in files)
    known = fit.provenance or Provenance({}, {})
    options = {**known.options, **(reading or {})}
    made = dataclasses.replace(known, command=command, files=listed, options=options)
    return dataclasses.replace(fit, warnings=(*fit.warnings, *messages), provenance=made)


def _digest(path: str) -> str:
    """SHA-256 of a file; empty where there is none."""
    if not Path(path).is_file():
        return ""
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(_PART):
            found.update(part)
    return found.hexdigest()


def _plain(value: Any) -> Any:
    """An option as YAML can hold it."""
    if isinstance(value, Term):
        return value.key
    if isinstance(value, Estimator):
        return type(value).__name__  # its own options stand with the estimator
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(one) for one in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
