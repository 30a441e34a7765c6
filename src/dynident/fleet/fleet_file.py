"""`FleetFile`: the robots of a fleet, where their logs lie, and what paths and columns say of each log."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from dynident.display import brief
from dynident.errors import DynidentError
from dynident.fleet.options import FleetOptions
from dynident.options import given_options, option_fields
from dynident.pipeline.options import IdentifyOptions
from dynident.readers import reader
from dynident.robot.load import is_path
from dynident.schema import OptionReader

FIELDS = ("serial", "date", "payload", "temperature")  # that a path may name
FROM_LOG = ("date", "payload", "temperature")  # that a column of a log may hold
IDENTIFY_KEYS = (
    *("terms", "friction", "estimator", "band", "delay", "velocity_source", "rest_velocity", "differentiator"),
    *("filter", "decimation", "check"),
)
_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_SHAPES = {"serial": r"[^/]+?", "date": r"[^/]+?", "payload": _NUMBER, "temperature": _NUMBER}
_TOKEN = re.compile(r"\{(\w*)\}|(\*\*/?)|(\*)|(\?)")
_PLAIN_SERIAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class FleetFileError(DynidentError):
    """A fleet file that cannot be followed, with its line."""


@dataclass(frozen=True)
class PathPattern:
    """Where logs lie, and what their paths say: `logs/{serial}/{date}_{payload}kg.parquet`.

    Attributes:
        text: As it is written; relative to the folder of the fleet file, or with a protocol (s3://..).
        glob: The same for a file system, each field being a star.
    """

    text: str

    @property
    def glob(self) -> str:
        """What a file system lists."""
        return re.sub(r"\{\w*\}", "*", self.text)

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of its fields."""
        return tuple(dict.fromkeys(re.findall(r"\{(\w*)\}", self.text)))

    def match(self, path: str) -> dict[str, str] | None:
        """What a path says; None where it does not fit."""
        parts, end, known = [], 0, set()
        for token in _TOKEN.finditer(self.text):
            parts.append(re.escape(self.text[end : token.start()]))
            name, end = token[1], token.end()
            if name:
                parts.append(f"(?P={name})" if name in known else f"(?P<{name}>{_SHAPES[name]})")
                known.add(name)
            else:
                parts.append("(?:.*/)?" if token[2] == "**/" else ".*" if token[2] else "[^/]*" if token[3] else "[^/]")
        found = re.fullmatch("".join([*parts, re.escape(self.text[end:])]), path)
        return None if found is None else found.groupdict()


@dataclass(frozen=True)
class RobotType:
    """Robots that share a description.

    Attributes:
        name: Of the type.
        robot: Robot file or bundled name.
        logs: Where their logs lie.
        serials: Serial numbers; empty for all that paths name.
        columns: Column file; None for none.
        services: By serial, dates after which a robot is another one: a gearbox changed, a controller updated.
        from_log: Columns that hold what paths do not say, by field.
    """

    name: str
    robot: str
    logs: tuple[PathPattern, ...]
    serials: tuple[str, ...] = ()
    columns: str | None = None
    services: Mapping[str, tuple[datetime, ...]] = field(default_factory=dict)
    from_log: Mapping[str, str] = field(default_factory=dict)


@brief
@dataclass(frozen=True)
class FleetFile:
    """A fleet, as its file says it; all paths can be opened from the current folder.

    Attributes:
        source: The file.
        name: Of the fleet.
        types: Its types of robots.
        storage: Options of the file system, see fsspec: endpoint_url, anon, ..
        options: Of the fleet.
        identify: Of the identification.
    """

    source: str
    name: str
    types: tuple[RobotType, ...]
    storage: Mapping[str, Any]
    options: FleetOptions
    identify: IdentifyOptions

    @property
    def settings(self) -> str:
        """Digest of all options that shape a factor."""
        parts = [given_options(self.identify), self.options.segments, self.options.pilot_s]
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]

    def date_of(self, text: str) -> datetime | None:
        """The time a text from a path stands for, in UTC where it has no zone; None where it is none."""
        shape = self.options.date_format
        try:
            found = datetime.strptime(text, shape) if shape else datetime.fromisoformat(text)
        except ValueError:
            return None
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


@reader("fleet file", FleetFileError)
def read_fleet_file(path: str | Path) -> FleetFile:
    """Read a fleet file.

    Raises:
        FleetFileError: With the line, for anything that is not understood.
    """
    return _FleetFileReader(str(path)).fleet_file()


class _FleetFileReader(OptionReader):
    """The keys of a fleet file."""

    failure = FleetFileError

    def fleet_file(self) -> FleetFile:
        writes = "dynident fleet init FOLDER drafts"
        top = self.top(missing=f"{writes} one", empty=f"{writes} a fleet file")
        own = tuple(option_fields(FleetOptions))
        given = self.mapping(top, "a fleet file", ("fleet", "types", "storage", "identify", *own))
        if "types" not in given:
            raise self.error(None, "has no 'types'; give at least one: types: {NAME: {robot: FILE, logs: PATTERN}}")
        fleet = self.options(FleetOptions, {key: given[key] for key in own if key in given}, {})
        types = tuple(self.robot_type(key, node, fleet) for key, node in self.mapping(given["types"], "types").items())
        if not types:
            raise self.error(given["types"], "types is empty; give at least one")
        nodes = self.mapping(given["identify"], "identify", IDENTIFY_KEYS) if "identify" in given else {}
        identify = self.options(IdentifyOptions, nodes, {})
        if identify.estimator not in ("weighted", "ordinary", "total", "ridge"):
            raise self.error(
                nodes.get("estimator"),
                f"estimator {identify.estimator} needs the rows of all logs at once; take weighted, ordinary, total or "
                "ridge, which factors are enough for",
            )
        storage = self.mapping(given["storage"], "storage") if "storage" in given else {}
        return FleetFile(
            source=self.source,
            name=self.text(given["fleet"], "fleet") if "fleet" in given else Path(self.source).stem,
            types=types,
            storage={key: yaml.safe_load(yaml.serialize(node)) for key, node in storage.items()},
            options=fleet,
            identify=identify,
        )

    def robot_type(self, name: str, node: yaml.Node, fleet: FleetOptions) -> RobotType:
        """One type of robots."""
        keys = ("robot", "logs", "serials", "columns", "services", "from_log")
        given = self.mapping(node, f"type {name}", keys)
        for key in ("robot", "logs"):
            if key not in given:
                raise self.error(node, f"type {name} has no '{key}'; needed are robot and logs")
        robot = self.text(given["robot"], "robot")
        serials = tuple(self.texts(given["serials"], "serials")) if "serials" in given else ()
        for serial in serials:
            self.plain_serial(given["serials"], serial)
        items = given["logs"].value if isinstance(given["logs"], yaml.SequenceNode) else [given["logs"]]
        from_log = self.mapping(given["from_log"], "from_log", FROM_LOG) if "from_log" in given else {}
        dates = FleetFile(self.source, "", (), {}, fleet, IdentifyOptions())
        services = {}
        for serial, own in (self.mapping(given["services"], "services") if "services" in given else {}).items():
            found = [(text, dates.date_of(text)) for text in self.texts(own, f"services of {serial}")]
            for text, date in found:
                if date is None:
                    raise self.error(own, f"services of {serial}: '{text}' is no date; expected {_date_words(fleet)}")
            services[serial] = tuple(sorted(date for _, date in found if date is not None))
        return RobotType(
            name=self.plain_serial(node, name),
            robot=self.beside(robot) if is_path(robot) else robot,
            logs=tuple(self.pattern(item, serials) for item in items),
            serials=serials,
            columns=self.path(given["columns"], "columns") if "columns" in given else None,
            services=services,
            from_log={key: self.text(own, key) for key, own in from_log.items()},
        )

    def plain_serial(self, node: yaml.Node | None, text: str) -> str:
        """A name that may be part of a folder's name."""
        if not _PLAIN_SERIAL.fullmatch(text):
            raise self.error(node, f"'{text}' must consist of letters, digits, '.', '_' and '-'")
        return text

    def pattern(self, node: yaml.Node, serials: tuple[str, ...]) -> PathPattern:
        """Where logs lie."""
        text = self.text(node, "an entry of logs")
        found = PathPattern(text if "://" in text else os.path.abspath(self.beside(text)))
        for name in found.fields:
            if name not in FIELDS:
                raise self.error(node, f"logs: unknown field '{{{name}}}'; fields are {{{'}, {'.join(FIELDS)}}}")
        if "serial" not in found.fields and len(serials) != 1:
            raise self.error(node, "logs: {serial} must stand in the path where a type has several robots")
        return found


def _date_words(fleet: FleetOptions) -> str:
    return fleet.date_format or "ISO 8601, such as 2026-03-01"


def plain_settings(fleet: FleetFile) -> dict[str, Any]:
    """The options of a fleet as plain data, for its store."""
    return {"fleet": fleet.name, **asdict(fleet.options), "identify": given_options(fleet.identify)}
