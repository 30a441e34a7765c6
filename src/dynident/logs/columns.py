"""The columns of log files: units, names, unit rows, column files."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from dynident.errors import DynidentError, RobotFileError, UnknownNameError
from dynident.logs.log import LogError
from dynident.readers import reader
from dynident.robot.model import Robot
from dynident.schema import parse_yaml, read_text

KINDS = {
    "t": "s",
    "q": "rad",
    "dq": "rad/s",
    "ddq": "rad/s²",
    "tau": "N·m",
    "qm": "rad",
    "dqm": "rad/s",
    "taum": "N·m",
    "i": "A",
    "u": "V",
    "target": "rad",
    "kp": "N·m/rad",
    "kd": "N·m·s/rad",
    "tau_ff": "N·m",
    "temp": "°C",
}
_ANGLE = {"rad": 1.0, "deg": math.pi / 180.0, "°": math.pi / 180.0, "rev": 2.0 * math.pi, "turn": 2.0 * math.pi}
_LENGTH = {"m": 1.0, "mm": 1e-3, "cm": 1e-2}
_TIME = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "min": 60.0}
_STIFFNESS = {"N·m/rad": 1.0, "Nm/rad": 1.0, "N/m": 1.0, "N·m/deg": 180.0 / math.pi, "Nm/deg": 180.0 / math.pi}
_DAMPING = {"N·m·s/rad": 1.0, "Nms/rad": 1.0, "N·s/m": 1.0, "Ns/m": 1.0}
_TORQUE = {"N·m": 1.0, "Nm": 1.0, "N*m": 1.0, "N m": 1.0, "mNm": 1e-3, "kNm": 1e3, "N": 1.0, "kN": 1e3}


def _rates(sizes: dict[str, float], power: int) -> dict[str, float]:
    suffix = {1: ("/s",), 2: ("/s²", "/s2", "/s^2")}[power]
    return {f"{unit}{end}": size for unit, size in sizes.items() for end in suffix}


_POSITION = _ANGLE | _LENGTH
_VELOCITY = _rates(_POSITION, 1) | {"rpm": 2.0 * math.pi / 60.0}
SIZES = {
    "t": _TIME,
    "q": _POSITION,
    "qm": _POSITION,
    "dq": _VELOCITY,
    "dqm": _VELOCITY,
    "ddq": _rates(_POSITION, 2),
    "tau": _TORQUE,
    "taum": _TORQUE,
    "i": {"A": 1.0, "mA": 1e-3},
    "u": {"V": 1.0, "mV": 1e-3},
    "target": _POSITION,
    "kp": _STIFFNESS,
    "kd": _DAMPING,
    "tau_ff": _TORQUE,
    "temp": {"°C": 1.0, "degC": 1.0, "C": 1.0, "K": 1.0},
}
_ZERO = {("temp", "K"): -273.15}  # where the zero of a unit lies in SI as used here, for units that do not share it


def si_unit(kind: str, *, slides: bool = False) -> str:
    """The SI unit of a kind of channel, of a joint that turns or slides."""
    unit = KINDS[kind]
    if slides and kind in ("q", "dq", "ddq", "tau", "target", "kp", "kd", "tau_ff"):
        return unit.replace("N·m", "N").replace("rad", "m")
    return unit


def size_in_si(kind: str, unit: str) -> float:
    """What one `unit` of a kind of channel (q, tau, ...) is in SI.

    Raises:
        UnknownNameError: Listing the units of that kind.
    """
    if not unit:
        return 1.0
    sizes = SIZES[kind]
    if unit not in sizes:
        raise UnknownNameError(f"unit for {kind}", unit, sizes)
    return sizes[unit]


# ----------------------------------------------------------------------------------------------------------------------
# What the columns of a log file are: names, units in brackets, unit rows and column files.

_NAME = re.compile(r"(?P<kind>qm|dqm|taum|dq|ddq|q|tau_ff|tau|i|u|target|temp|kp|kd)(?P<number>\d+)")
_COLUMNS_TIME = ("t", "time", "timestamp")
UNUSED = "unused"  # what a column that is left out stands for


@dataclass(frozen=True)
class ColumnRule:
    """What a foreign column stands for: a channel such as q1, or `UNUSED`."""

    column: str
    unit: str = ""
    scale: float = 1.0


@dataclass(frozen=True)
class LogColumn:
    """A column of a log file that is a channel.

    Attributes:
        channel: Name of the channel, such as q1.
        header: Name of the column as written in the file.
        place: In the file.
        unit: Unit as given; empty if none was.
        scale: What the numbers are multiplied by besides their unit.
    """

    channel: str
    header: str
    place: int = -1
    unit: str = ""
    scale: float = 1.0

    @property
    def size(self) -> float:
        """One of its numbers in SI.

        Raises:
            UnknownNameError: Listing the units that the channel may have.
        """
        return self.scale * size_in_si(kind_of(self.channel), self.unit)

    @property
    def zero(self) -> float:
        """What a number of zero is."""
        return _ZERO.get((kind_of(self.channel), self.unit), 0.0)

    def rule(self, channel: str, *, unit: str = "", factor: float = 1.0) -> dict[str, Any]:
        """An entry of a column file that reads this column as `channel`, in `unit` or `factor` times as large."""
        entry: dict[str, Any] = {"column": channel}
        if unit or self.unit:
            entry["unit"] = unit or self.unit
        if self.scale * factor != 1.0:
            entry["scale"] = float(f"{self.scale * factor:.6g}")
        return {self.header: entry}


def bare_name(header: str) -> str:
    """A header without its unit."""
    return split_header(header)[0]


def split_header(header: str) -> tuple[str, str]:
    """Name and unit of a header such as `tau1 [N·m]`; the unit is empty where there is none. `q[0]` is a name."""
    whole = header.strip()
    if not whole.endswith(("]", ")")) or "\n" in whole:
        return whole, ""
    closed = max(whole.rfind(mark, 0, -1) for mark in "])")  # a unit has no closing bracket of its own
    places = [place for mark in "[(" if (place := whole.find(mark, closed + 1)) >= 0]
    if not places:
        return whole, ""
    unit = whole[min(places) + 1 : -1]
    if unit.isdecimal() and whole.endswith("]"):
        return whole, ""
    return whole[: min(places)].rstrip(), unit.strip()


def own_rule(name: str) -> ColumnRule | None:
    """What a name stands for that is a channel or a time; None for others."""
    if name.lower() in _COLUMNS_TIME:
        return ColumnRule("t")
    return None if _kind(name) is None else ColumnRule(name)


def kind_of(channel: str) -> str:
    """The kind of a channel: tau for tau3."""
    return channel.rstrip("0123456789")


def number_of(channel: str) -> int:
    """The joint of a channel: 3 for tau3."""
    return int(channel.removeprefix(kind_of(channel)))


def read_headers(
    headers: Sequence[str],
    units: Sequence[str],
    rules: Mapping[str, ColumnRule],
    robot: Robot | None,
    source: str,
    layout: Mapping[str, ColumnRule] | None = None,
    doubtful: Collection[str] = (),
) -> tuple[list[LogColumn], list[str], list[int]]:
    """Known columns, the names of the others, and the places of those among the others that a rule leaves out.

    Args:
        headers: Header of each column, perhaps with a unit in brackets.
        units: Unit row, or empty.
        rules: Column file: what foreign names stand for.
        robot: Robot whose joints the columns belong to, None for any; what it says of its columns comes first.
        source: File, for messages.
        layout: What names stand for by the layout of the file, where neither robot nor column file says it.
        doubtful: Names that are not read unless robot or column file says what they are.
    """
    layout = layout or {}
    own = column_rules(robot.columns, robot.source) if robot is not None else {}
    known: list[LogColumn] = []
    spare: list[str] = []
    left_out: list[int] = []
    for place, header in enumerate(headers):
        name, unit = split_header(header)
        if not unit and place < len(units):
            unit = units[place].strip().strip("[]()")
        scale = 1.0
        given = list(_rules_of(name, header.strip(), rules, own, layout))
        for rule in given:
            by_layout = rule is layout.get(name)  # a unit in the file is known better
            name, scale, unit = (
                rule.column,
                scale * rule.scale,
                (unit or rule.unit) if by_layout else (rule.unit or unit),
            )
        if not given and name in doubtful:
            spare.append(header.strip())
            continue
        channel = "t" if name.lower() in _COLUMNS_TIME else name
        kind = "t" if channel == "t" else _kind(channel)
        if kind is None:
            spare.append(header.strip())
            left_out += [place] if name == UNUSED else []
            continue
        if twin := next((column.header for column in known if column.channel == channel), None):
            both = f" ('{twin}' and '{header.strip()}')" if {twin, header.strip()} != {channel} else ""
            hint = f"remove, rename or leave out one (in a column file, '{twin}: {UNUSED}')"
            raise LogError(source, f"column '{channel}' appears twice{both}; {hint}")
        _check_joint(channel, kind, robot, source, header.strip())
        column = LogColumn(channel, header.strip(), place, unit, scale)
        try:
            _ = column.size
        except DynidentError as error:
            raise LogError(source, f"column '{column.header}': {error}") from None
        known.append(column)
    return known, spare, left_out


def positions_left_out(
    headers: Sequence[str], units: Sequence[str], rules: Mapping[str, ColumnRule], left_out: Sequence[int]
) -> list[LogColumn]:
    """Those of the columns left out that hold positions by their names or by the layout of the file."""
    found: list[LogColumn] = []
    for place in left_out:
        header, name = headers[place].strip(), bare_name(headers[place])
        rule = rules.get(name, ColumnRule(name))
        unit = split_header(header)[1] or (units[place].strip("[]() ") if place < len(units) else "")
        if _kind(rule.column) in ("q", "qm") and (unit or rule.unit or "rad") in _POSITION:
            found.append(LogColumn(rule.column, header, place, unit or rule.unit, rule.scale))
    return found


def _rules_of(
    name: str,
    header: str,
    rules: Mapping[str, ColumnRule],
    own: Mapping[str, ColumnRule],
    layout: Mapping[str, ColumnRule],
) -> Iterator[ColumnRule]:
    """What a column stands for, one rule after the other: the robot may speak of it by its name or by its channel."""
    # In a file that counts from 0, q1 is another channel than the q1 that the robot speaks of.
    by_name = name not in layout or _kind(name) is None
    if by_name and (found := own.get(name) or own.get(header)):
        yield found
        return
    if found := rules.get(name) or rules.get(header) or layout.get(name):
        yield found
        name = found.column
    if found := own.get("t" if name.lower() in _COLUMNS_TIME else name):
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
        name = bare_name(header)
        raise LogError(
            source,
            f"column '{channel}' is for joint {number}, but robot {robot.name} has joints {', '.join(numbers)}; if the "
            f"robot is right, map it to another joint or leave it out in a column file ('{name}: {UNUSED}')",
        )


@reader("column file", LogError)
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


def remember_columns(robot: Robot, path: str | PathLike[str] | None) -> Robot:
    """The robot with the rules of a column file among its own, so that they hold for all of its logs.

    Raises:
        LogError: If the file cannot be used.
    """
    if path is None:
        return robot
    own = column_rules(robot.columns, robot.source)
    columns: dict[str, Mapping[str, str | float]] = dict(robot.columns)
    for name, rule in read_rules(path).items():
        if name in own:  # the robot comes first
            continue
        more = own.get(rule.column, ColumnRule(rule.column))
        merged = ColumnRule(more.column, more.unit or rule.unit, more.scale * rule.scale)
        columns[name] = {
            "column": merged.column,
            **({"unit": merged.unit} if merged.unit else {}),
            **({"scale": merged.scale} if merged.scale != 1.0 else {}),
        }
    return replace(robot, columns=columns)


QUANTITIES = {"position": "q", "velocity": "dq", "effort": "tau"}  # of a ROS joint state
