"""Factors of finished logs in a folder: a later run with the same logs and options takes them from there."""

from __future__ import annotations

import hashlib
import re
from dataclasses import asdict
from pathlib import Path

import numpy as np

from dynident._version import __version__
from dynident.errors import DynidentError, InputError
from dynident.files import is_ours, make_folder, remove_leftovers
from dynident.identifiability.base_regressor import RowSource
from dynident.information.information import Information
from dynident.information.row_source import accumulate_source
from dynident.information.storage import load_information
from dynident.logs.log import Log, LogError, LogSource
from dynident.signals.rows import ObservedRows

_NAME = re.compile(r"[0-9a-f]{20}\.npz")  # see `_key`


class FactorCache:
    """Factors of finished logs in a folder.

    Args:
        folder: Where they are; None for no folder.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._used: set[Path] = set()

    def factor_of(self, rows: ObservedRows, source: RowSource, *, keep: bool) -> Information:
        """The factor of one log, from the folder where an earlier run left it there.

        Args:
            rows: The equations of the log, which say what shaped the factor.
            source: The same, to be gone through.
            keep: Whether the factor is worth a file.

        Raises:
            LogError: When the log has no training data.
        """
        file = self._folder / f"{_key(rows)}.npz" if self._folder is not None and keep else None
        if file is not None and file.exists():
            try:
                found = load_information(file)
            except DynidentError:
                file.unlink()  # damaged: made again
            else:
                self._used.add(file)
                return found
        label = rows.observations[0].log.label
        try:
            information = accumulate_source(source)
        except InputError as error:
            if isinstance(error, LogError) or label in str(error):
                raise
            if rows.rule.purpose == "parameters":  # all of it lies near reversals: the other logs serve alone
                return Information(source.coordinates, source.definitions, source.channels, ())
            raise LogError(label, "no joint moves long enough to be identified; record more motion") from None
        if file is not None:
            make_folder(file.parent)
            information.save(file)
            self._used.add(file)
        return information

    def remove_stale(self) -> None:
        """Remove factors that this run has not used: of other options, or of logs that have changed."""
        if self._folder is not None and self._folder.is_dir():
            for file in written_factors(self._folder) - self._used:
                file.unlink()
            remove_leftovers(self._folder)


def written_factors(folder: Path) -> set[Path]:
    """Files of factors in a folder; others, whatever they are called, are not ours to remove."""
    return {file for file in folder.glob("*.npz") if _NAME.fullmatch(file.name) and is_ours(file)}


def _key(rows: ObservedRows) -> str:
    """Name of a log's factor: everything that shaped it."""
    one = rows.observations[0]
    parts = [_content(one.log), one.log.label, one.band, sorted(asdict(one.options).items())]
    # The definitions name the robot as it is with every joint free; the fingerprint says where joints are locked.
    parts += [one.survey.start, one.survey.stop, rows.definitions, rows.coordinates.independent, one.robot.fingerprint]
    parts += [asdict(one.survey.grid), asdict(rows.rule)]  # in full: the repr of a record may be a short one
    drive = one.robot.drive
    parts += [drive.gear_ratios.tolist(), None if drive.gains is None else drive.gains.tolist()]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:20]


def _content(log: LogSource) -> str:
    """What tells a log's content from any other's.

    A log made in memory may carry any digest, and columns of one file can be read in many ways; so the numbers count,
    all of a log in memory and the first of a long one.
    """
    first = log if isinstance(log, Log) else next(iter(log.blocks()))
    digest = hashlib.sha256(f"{log.digest} {__version__}".encode() + np.ascontiguousarray(first.time).tobytes())
    for name, values in first.channels.items():
        digest.update(name.encode() + np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()
