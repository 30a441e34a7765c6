"""What the columns of a log file are: names, units in brackets, unit rows and column files."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

from dynident.errors import DynidentError, RobotFileError
from dynident.logs.log import LogError
from dynident.logs.units import KINDS, size_in_si
from dynident.robot.model import Robot
from dynident.schema import parse_yaml, read_text

_NAME = re.compile(r"(?P<kind>qm|dqm|taum|dq|ddq|q|tau|i|u)(?P<number>\d+)")
_UNIT = re.compile(r"\s*(?P<name>.*?)\s*[\[(](?P<unit>[^\])]*)[\])]\s*")
_TIME = ("t", "time", "timestamp")
UNUSED = "unused"  # what a column that is left out stands for


@dataclass(frozen=True)
class ColumnRule:
    """What a foreign column stands for: a channel such as q1, or `UNUSED`."""

    column: str
    unit: str = ""
    scale: float = 1.0


@dataclass(frozen=True)
class Understood:
    """A column that dynident knows: place in the file, channel name, size in SI and unit as given."""

    place: int
    channel: str
    size: float
    unit: str = ""


def understand(
    headers: Sequence[str], units: Sequence[str], rules: Mapping[str, ColumnRule], robot: Robot | None, source: str
) -> tuple[list[Understood], list[str], list[int]]:
    """Known columns, the names of the others, and the places of those among the others that a rule leaves out.

    Args:
        headers: Header of each column, perhaps with a unit in brackets.
        units: Unit row, or empty.
        rules: Column file: what foreign names stand for.
        robot: Robot whose joints the columns belong to, None for any; what it says of its columns comes first.
        source: File, for messages.
    """
    own = column_rules(robot.columns, robot.source) if robot is not None else {}
    known: list[Understood] = []
    spare: list[str] = []
    left_out: list[int] = []
    for place, header in enumerate(headers):
        match = _UNIT.fullmatch(header)
        name, unit = (match["name"], match["unit"].strip()) if match else (header.strip(), "")
        if not unit and place < len(units):
            unit = units[place].strip().strip("[]()")
        scale = 1.0
        for rule in _rules_of(name, header.strip(), rules, own):
            name, scale, unit = rule.column, scale * rule.scale, rule.unit or unit
        channel = "t" if name.lower() in _TIME else name
        kind = "t" if channel == "t" else _kind(channel)
        if kind is None:
            spare.append(header.strip())
            left_out += [place] if name == UNUSED else []
            continue
        if twin := next((headers[column.place].strip() for column in known if column.channel == channel), None):
            both = f" ('{twin}' and '{header.strip()}')" if {twin, header.strip()} != {channel} else ""
            hint = f"remove, rename or leave out one (in a column file, '{twin}: {UNUSED}')"
            raise LogError(source, f"column '{channel}' appears twice{both}; {hint}")
        _check_joint(channel, kind, robot, source, header.strip())
        try:
            known.append(Understood(place, channel, scale * size_in_si(kind, unit), unit))
        except DynidentError as error:
            raise LogError(source, f"column '{header.strip()}': {error}") from None
    return known, spare, left_out


def positions_left_out(
    headers: Sequence[str], units: Sequence[str], rules: Mapping[str, ColumnRule], left_out: Sequence[int], source: str
) -> list[Understood]:
    """Those of the columns left out that hold positions by their names or by the format's own rules."""
    names = [headers[place] for place in left_out]
    own = [units[place] if place < len(units) else "" for place in left_out]
    known, _, _ = understand(names, own, rules, None, source)
    return [replace(column, place=left_out[column.place]) for column in known if column.channel[0] == "q"]


def _rules_of(
    name: str, header: str, rules: Mapping[str, ColumnRule], own: Mapping[str, ColumnRule]
) -> Iterator[ColumnRule]:
    """What a column stands for, one rule after the other: the robot may speak of it by its name or by its channel."""
    if found := own.get(name) or own.get(header):
        yield found
        return
    if found := rules.get(name) or rules.get(header):
        yield found
        name = found.column
    if found := own.get("t" if name.lower() in _TIME else name):
        yield found


def _kind(name: str) -> str | None:
    match = _NAME.fullmatch(name)
    return match["kind"] if match else None


def _check_joint(channel: str, kind: str, robot: Robot | None, source: str, header: str) -> None:
    """A column for a joint the robot does not have is a sign of the wrong robot file."""
    if robot is None or kind == "t":
        return
    number = channel.removeprefix(kind)
    numbers = [str(joint.number) for joint in robot.joints]
    if number not in numbers:
        name = match["name"] if (match := _UNIT.fullmatch(header)) else header
        raise LogError(
            source,
            f"column '{channel}' is for joint {number}, but robot {robot.name} has joints {', '.join(numbers)}; if the "
            f"robot is right, map it to another joint or leave it out in a column file ('{name}: {UNUSED}')",
        )


def read_rules(path: str | PathLike[str]) -> dict[str, ColumnRule]:
    """A column file: YAML that maps foreign names to channels, `{actual_q_0: q1, temp: {column: q2, unit: deg}}`."""
    source = str(path)
    try:
        text = read_text(Path(path))
    except RobotFileError as error:
        raise LogError(source, error.problem) from None
    try:
        given = parse_yaml(text, source)
    except RobotFileError as error:
        # Without a line it is the whole that is wrong, and the strict reader then speaks of robots.
        expected = "must map column names of the log to channels, such as 'actual_q_0: q1'"
        raise LogError(source, f"{error.where}: {error.problem}" if error.where else expected) from None
    return column_rules(given, source)


def column_rules(given: Mapping[str, object], source: str) -> dict[str, ColumnRule]:
    """Checked rules from a mapping of foreign names to channels, {column, unit, scale} or `UNUSED`.

    Raises:
        LogError: Naming the entry that cannot be used.
    """
    rules: dict[str, ColumnRule] = {}
    for name, value in given.items():
        record = {"column": value} if isinstance(value, str) else value
        if not isinstance(record, dict) or not set(record) <= {"column", "unit", "scale"} or "column" not in record:
            raise LogError(source, f"'{name}' must be a channel such as q1, or {{column, unit, scale}}")
        channel = str(record["column"])
        if channel == UNUSED and len(record) > 1:
            raise LogError(source, f"'{name}' is left out and has no unit or scale; write '{name}: {UNUSED}'")
        if channel not in ("t", UNUSED) and _kind(channel) is None:
            kinds = ", ".join(f"{kind}1" for kind in KINDS if kind != "t")
            raise LogError(source, f"'{name}': '{channel}' is not a channel (t, {kinds}, ...) nor '{UNUSED}'")
        scale = record.get("scale", 1.0)
        if isinstance(scale, bool) or not isinstance(scale, int | float) or not math.isfinite(scale) or scale == 0:
            raise LogError(source, f"'{name}': scale is {scale!r}; expected a number other than zero")
        rules[name] = ColumnRule(channel, str(record.get("unit", "")), float(scale))
    return rules
