"""Logs on any file system: opened on the worker that needs them, by its own connection."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from dynident.errors import DynidentError
from dynident.fleet.listing import LogRef, file_system, stamp_of, with_date
from dynident.logs.columns import bare_name
from dynident.logs.log import Log, LogError, LogSource
from dynident.logs.read import open_log, stream_log
from dynident.logs.tables import LogWarning
from dynident.robot.model import Robot


class AccessError(DynidentError):
    """A log that could not be reached, or changed while it was read: no fault of its content, worth another try."""


@dataclass(frozen=True)
class LogReader:
    """How the logs of a type are read.

    Attributes:
        columns: Column file; None for none.
        from_log: Columns that hold what paths do not say, by field.
        storage: Options of the file system.
    """

    columns: str | None = None
    from_log: Mapping[str, str] = field(default_factory=dict)
    storage: Mapping[str, Any] = field(default_factory=dict)

    @contextmanager
    def opened(self, ref: LogRef, robot: Robot) -> Iterator[tuple[LogSource, LogRef]]:
        """A log, and what is known of it with what its columns say; a remote one is there as long as it is open.

        Raises:
            AccessError: When it cannot be reached, or is not the same before and after.
            LogError: When it cannot be used.
        """
        with self._local(ref) as path, warnings.catch_warnings():
            warnings.simplefilter("ignore", LogWarning)  # the diagnostics say it
            try:
                log = open_log(path, robot, columns=self.columns, label=ref.uri)
                if isinstance(log, Log):
                    log = replace(log, source=ref.uri)
                yield log, self._said(ref, path, robot)
            except DynidentError as error:
                self._check_stamp(ref)  # what changed while it was read has no content to complain about
                words = str(error).replace(str(path), ref.uri)
                if words == str(error):
                    raise
                raise LogError(ref.uri, words.removeprefix(f"{ref.uri}: ")) from None
            self._check_stamp(ref)

    def date(self, ref: LogRef, robot: Robot) -> LogRef:
        """The log with the date that a column says; without such a column as it is.

        Raises:
            AccessError, LogError: As `opened`.
        """
        if "date" not in self.from_log:
            return ref
        with self._local(ref) as path:
            return self._said(ref, path, robot)

    @contextmanager
    def _local(self, ref: LogRef) -> Iterator[Path]:
        self._check_stamp(ref)
        if "://" not in ref.uri:
            yield Path(ref.uri)
            return
        folder = Path(tempfile.mkdtemp(prefix="dynident-"))
        try:
            fs, path = file_system(ref.uri, self.storage)
            target = folder / Path(path).name
            with _reaching(ref):
                fs.get_file(path, str(target))
            yield target
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _check_stamp(self, ref: LogRef) -> None:
        with _reaching(ref):
            fs, path = file_system(ref.uri, self.storage)
            now = stamp_of(fs.info(path))
        if now != ref.stamp:
            raise AccessError(f"{ref.uri}: has changed since it was listed; the next run reads it again")

    def _said(self, ref: LogRef, path: Path, robot: Robot) -> LogRef:
        """What columns of the log say of it."""
        if not self.from_log:
            return ref
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LogWarning)
            table = stream_log(path, robot, columns=self.columns).table
        for name, column in self.from_log.items():
            places = [i for i, header in enumerate(table.headers) if column in (header.strip(), bare_name(header))]
            if not places:
                raise LogError(ref.uri, f"has no numeric column '{column}', which from_log names for its {name}")
            values = np.concatenate([part[0] for part in table.parts(places[:1])])
            if not len(values) or not np.isfinite(values[:1] if name == "date" else values).all():
                raise LogError(ref.uri, f"column '{column}', its {name}, has values that are not finite")
            if name == "date":
                ref = with_date(ref, _date_of(float(values[0]), ref, column))
            else:
                ref = replace(ref, **{name: float(values.mean())})  # type: ignore[arg-type]
        return ref


def _date_of(stamp: float, ref: LogRef, column: str) -> str:
    try:
        if stamp < 1e8:  # 1973: seconds since the controller was switched on
            raise ValueError
        return datetime.fromtimestamp(stamp, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        raise LogError(ref.uri, f"column '{column}' begins with {stamp:g}; expected UNIX time [s]") from None


@contextmanager
def _reaching(ref: LogRef) -> Iterator[None]:
    """Whatever goes wrong between here and the storage is no fault of the log."""
    try:
        yield
    except DynidentError:
        raise
    except FileNotFoundError:
        raise AccessError(f"{ref.uri}: is gone; list the logs again") from None
    except Exception as error:  # every protocol has errors of its own
        raise AccessError(f"{ref.uri}: cannot be reached ({type(error).__name__}: {error})") from None
