"""The logs of a fleet: files that the patterns of its file find, with what their paths say."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from dynident.errors import InputError
from dynident.fleet.fleet_file import FleetFile, FleetFileError, PathPattern, RobotType


@dataclass(frozen=True)
class LogRef:
    """A log of a robot, before anybody has opened it.

    Attributes:
        uri: Where it lies.
        stamp: Size and time of change, or the tag of its content, by which a change is seen without reading.
        robot: Serial number.
        date: When it was recorded, ISO 8601 in UTC.
        payload: What the tool carries [kg]; None where nothing says it.
        temperature: Of the joints or of the hall [°C]; None where nothing says it.
    """

    uri: str
    stamp: str
    robot: str
    date: str
    payload: float | None = None
    temperature: float | None = None

    @property
    def order(self) -> tuple[str, str]:
        """What logs are sorted by."""
        return self.date, self.uri

    @property
    def month(self) -> str:
        """Of its date, such as 2026-03."""
        return self.date[:7]

    def key(self, pilot: str) -> str:
        """Name of what is kept of it under a pilot."""
        return hashlib.sha256(f"{self.uri} {self.stamp} {pilot}".encode()).hexdigest()[:20]


def list_logs(fleet: FleetFile) -> dict[str, tuple[RobotType, tuple[LogRef, ...]]]:
    """By serial number: the type of a robot and its logs, sorted by date.

    A date that neither the path nor a column says is the time of change of the file.

    Raises:
        FleetFileError: When nothing is found, a serial number belongs to two types, or a date is none.
    """
    found: dict[str, tuple[RobotType, dict[str, LogRef]]] = {}
    for kind in fleet.types:
        before = len(found)
        for pattern in kind.logs:
            for uri, path, info in _files(pattern, fleet.storage):
                said = pattern.match(uri if "://" in pattern.text else path)
                if said is None:
                    continue
                serial = said.get("serial") or kind.serials[0]
                if kind.serials and serial not in kind.serials:
                    continue
                if serial in found and found[serial][0].name != kind.name:
                    raise FleetFileError(
                        f"{fleet.source}: serial {serial} is of type {found[serial][0].name} and of {kind.name}; "
                        "serial numbers must be different"
                    )
                found.setdefault(serial, (kind, {}))[1][uri] = _log_ref(fleet, uri, info, serial, said)
        if len(found) == before:
            patterns = ", ".join(pattern.text for pattern in kind.logs)
            raise FleetFileError(f"{fleet.source}: type {kind.name}: no log is found at {patterns}; check the path")
    return {
        serial: (kind, tuple(sorted(logs.values(), key=lambda one: one.order)))
        for serial, (kind, logs) in sorted(found.items())
    }


def _files(pattern: PathPattern, storage: Mapping[str, Any]) -> list[tuple[str, str, Mapping[str, Any]]]:
    """(uri, path, facts) of each file of a pattern."""
    fs, path = file_system(pattern.glob, storage)
    try:
        listed = fs.glob(path, detail=True)
    except OSError as error:
        raise InputError(f"{pattern.text}: cannot be listed ({error})") from None
    remote = "://" in pattern.text
    return [
        (fs.unstrip_protocol(one) if remote else one, one, info)
        for one, info in listed.items()
        if info.get("type") == "file"
    ]


def file_system(uri: str, storage: Mapping[str, Any]) -> tuple[Any, str]:
    """The file system of a path, and the path in it.

    Raises:
        InputError: When fsspec, or the package of the protocol, is not installed.
    """
    try:
        import fsspec
    except ImportError:
        raise InputError("fleets need fsspec and distributed: pip install 'dynident[fleet]'") from None
    try:
        fs, path = fsspec.core.url_to_fs(uri, **(storage if "://" in uri else {}))
    except (ImportError, ValueError) as error:
        raise InputError(f"{uri}: {error}") from None
    fs.invalidate_cache()
    return fs, path


def _log_ref(fleet: FleetFile, uri: str, info: Mapping[str, Any], serial: str, said: Mapping[str, str]) -> LogRef:
    changed = stamp_time(info)
    date = None if changed is None else changed
    if "date" in said:
        date = fleet.date_of(said["date"])
        if date is None:
            shape = fleet.options.date_format or "ISO 8601, such as 2026-03-01; name another with date_format"
            raise FleetFileError(f"{fleet.source}: {uri}: '{said['date']}' is no date; expected {shape}")
    if date is None:
        raise FleetFileError(f"{fleet.source}: {uri}: nothing says when it was recorded; put {{date}} into the pattern")
    numbers = {name: float(said[name]) for name in ("payload", "temperature") if said.get(name) is not None}
    return LogRef(uri, stamp_of(info), serial, date.isoformat(timespec="seconds"), **numbers)


def stamp_time(info: Mapping[str, Any]) -> datetime | None:
    """When a file was changed."""
    value = next((info[key] for key in ("mtime", "LastModified", "last_modified", "updated") if key in info), None)
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value, UTC)
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value.astimezone(UTC) if isinstance(value, datetime) else None


def stamp_of(info: Mapping[str, Any]) -> str:
    """Size and time of change, or tag."""
    mark = next((info[key] for key in ("ETag", "etag", "mtime", "LastModified", "created") if key in info), "")
    return f"{info.get('size')} {mark}"


def with_date(ref: LogRef, date: str) -> LogRef:
    """The log with the date that a column of it says."""
    return replace(ref, date=date)
