"""`PacketReader`: JSON packets as samples of a robot."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from dynident.arrays import Array
from dynident.errors import DynidentError, InputError
from dynident.logs.columns import QUANTITIES, ColumnRule, column_rules, read_headers, read_rules
from dynident.logs.layouts import recognize
from dynident.logs.log import Log, channel_names
from dynident.logs.read import Columns
from dynident.online.sources.source import Samples, signals_of
from dynident.online.state import Counters
from dynident.online.thresholds import THRESHOLDS
from dynident.robot.model import Robot

KINDS = ("q", "dq", "tau", "qm", "dqm", "taum", "i")


# JSON packets: one sample each, in one of three forms.
#
# {"t": 0.01, "q": [..], "tau": [..]}                                      in the order of the robot's joints
# {"t": 0.01, "joints": {"elbow": {"q": 0.3, "tau": 1.2}, ..}}             by joint name
# {"header": {"stamp": {"sec": 1, "nanosec": 0}}, "name": ["elbow", ..], "position": [..], "effort": [..]}
#
# Velocities (dq, velocity), motor-side channels (qm, dqm, taum) and currents (i) stand where a log would have them, and
# "seq" may number the packets. What a packet says is understood as the columns of a log are, once for each layout.


LONGEST = 1 << 14  # bytes of a packet: forty joints with every channel
_MOST_LAYOUTS = 16  # a sender has one or two; a hostile one must not fill the memory
_RAW_BEYOND = 1e15  # of any channel in any unit
_TIMES = ("t", "time", "timestamp")


class PacketError(DynidentError):
    """A packet that is not a sample."""


class PacketReader:
    """Packets to samples; what is malformed is counted and left out.

    Columns mean what they mean in a log: names, the robot's own `columns`, gears, couplings, gains. Positions, torques
    and velocities are linear functions of them.

    Args:
        robot: The robot.
        columns: Column file or mapping for senders with other names; see `read_log`.
        label: What messages call the sender.
        tally: What it counts into.
    """

    def __init__(self, robot: Robot, columns: Columns, label: str, tally: Counters) -> None:
        self.robot, self.label, self._tally = robot, label, tally
        self._rules: dict[str, ColumnRule] = {}
        if columns is not None:
            self._rules = column_rules(columns, "columns") if isinstance(columns, Mapping) else read_rules(columns)
        self._numbers = {joint.name: joint.number for joint in robot.joints}
        self._n = len(robot.joint_names)
        self._layouts: dict[tuple[Hashable, ...], Any] = {}

    def block(self, packets: Iterable[tuple[float, bytes]]) -> Samples | None:
        """The samples of packets with their times of arrival; None if none of them is one."""
        rows: list[tuple[float, int, float, Array]] = []
        for arrived, data in packets:
            self._tally.received += 1
            try:
                time, sequence, row = self.sample(data)
            except PacketError as error:
                self._tally.refuse(error)
                continue
            rows.append((time, sequence, arrived, row))
        if not rows:
            return None
        width = min(len(row) for *_, row in rows)
        stamps, numbers, arrivals = (np.array([row[k] for row in rows]) for k in range(3))
        values = np.array([row[:width] for *_, row in rows])
        return Samples.of_signals(stamps, values, self._n, numbers, arrivals)

    def sample(self, data: bytes) -> tuple[float, int, Array]:
        """Stamp [s], sequence number, and q, tau and perhaps dq after each other.

        Raises:
            PacketError: Saying what is wrong with it.
        """
        given, sequence, layout, numbers = _flatten(_message(data))
        for value in numbers:
            if type(value) is not float and type(value) is not int:
                raise PacketError(f"has {type(value).__name__} where a number belongs")
        if layout not in self._layouts:
            self._learn(layout)
        size, matrix, offset = self._layouts[layout]
        try:
            values = np.array(numbers, dtype=np.float64)
        except OverflowError:
            raise PacketError("has a number that is beyond reason") from None
        time = size * given
        # No comparison holds for a number that is not finite.
        if np.abs(values).max() <= _RAW_BEYOND and abs(time) <= THRESHOLDS.latest_stamp_s:
            row = values @ matrix + offset
            if np.abs(row).max() <= THRESHOLDS.largest_signal:
                return time, sequence, row
        raise PacketError("has a number that is not finite or beyond reason (t is in seconds)")

    def _learn(self, layout: tuple[Hashable, ...]) -> None:
        """Work out what the columns of a new layout mean."""
        try:
            found = self.matrix(self._columns(layout))
        except DynidentError as error:
            raise PacketError(str(error)) from None
        if len(self._layouts) >= _MOST_LAYOUTS:
            self._layouts.clear()
        self._layouts[layout] = found

    def _columns(self, layout: tuple[Any, ...]) -> list[str]:
        """Columns of a layout; of a joint or quantity that the robot does not have, the sender's own words."""
        form, *parts = layout
        if form == "arrays":
            return [name for kind, count in parts for name in self._array_columns(kind, count)]
        known = {(kind, joint): f"{kind}{number}" for joint, number in self._numbers.items() for kind in KINDS}
        return [known.get((quantity, joint), f"{joint}.{quantity}") for quantity, joint in parts]

    def _array_columns(self, kind: str, count: int) -> list[str]:
        """Columns of one kind that are given as a list: of the moving joints, or of these and the locked ones."""
        robot = self.robot
        if count == len(robot.moving):
            return channel_names(kind, robot)
        if count == len(robot.active):
            return [f"{kind}{robot.joints[i].number}" for i in robot.active]
        raise InputError(
            f"has {count} values of {kind}; robot {robot.name} moves {len(robot.moving)} joints: "
            f"{', '.join(robot.joint_names)}"
        )

    def matrix(self, columns: Sequence[str]) -> tuple[float, Array, Array]:
        """Unit of the time [s], and the map of the columns to q, tau and (if they are there) dq: `x @ matrix + offset`.

        The functions that read logs are affine in the columns; what they make of unit vectors is the map.

        Raises:
            LogError: Naming the columns that are missing.
        """
        layout = recognize(columns, self.robot, mapped=self._rules)
        known, _, _ = read_headers(
            ["t", *columns], (), self._rules, self.robot, self.label, layout.rules, layout.doubts
        )
        clock = next((column.size for column in known if column.channel == "t"), 1.0)
        own = [column for column in known if column.channel != "t"]
        units = np.vstack([np.zeros(len(own)), np.eye(len(own))])
        values = {column.channel: units[:, k] for k, column in enumerate(own)}
        answer = signals_of(Log(self.label, "", np.zeros(len(units)), values), self.robot)
        matrix = np.zeros((len(columns), answer.shape[1]))
        for k, column in enumerate(own):
            matrix[column.place - 1] = column.size * (answer[k + 1] - answer[0])
        return clock, matrix, answer[0]


def _constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")


_decoder = json.JSONDecoder(parse_constant=_constant)


def _message(data: bytes) -> dict[str, Any]:
    """The JSON object in a packet."""
    if len(data) > LONGEST:
        raise PacketError(f"is longer than {LONGEST} bytes")
    try:
        found = _decoder.decode(data.decode())
    except RecursionError:
        raise PacketError("is nested beyond reason") from None
    except ValueError as error:
        raise PacketError(f"is not JSON ({error})") from None
    if not isinstance(found, dict):
        raise PacketError("is not a JSON object")
    return found


def _flatten(message: dict[str, Any]) -> tuple[float, int, tuple[Hashable, ...], list[Any]]:
    """A packet as a row of a log: its time as given, its number (-1 without), its columns and their numbers."""
    layout: list[Hashable]
    values: list[Any] = []
    if "joints" in message:
        layout = ["joints"]
        for joint, own in _object(message["joints"], "joints").items():
            for quantity, value in _object(own, f"joint {joint}").items():
                layout.append((quantity, joint))
                values.append(value)
    elif "name" in message:
        names = _list(message["name"], "name")
        if not all(type(name) is str for name in names):
            raise PacketError("name is not a list of words")
        layout = ["joints"]
        for quantity in (*QUANTITIES, "current"):
            own = _list(message.get(quantity, []), quantity)
            if len(own) not in (0, len(names)):
                raise PacketError(f"has {len(names)} names but {len(own)} values of {quantity}")
            layout.extend((quantity, name) for name in names[: len(own)])
            values.extend(own)
    else:
        layout = ["arrays"]
        for kind in KINDS:
            if kind in message:
                own = _list(message[kind], kind)
                layout.append((kind, len(own)))
                values.extend(own)
    return _time(message), _sequence(message), tuple(layout), values


def _time(message: dict[str, Any]) -> float:
    for key in _TIMES:
        if key in message:
            return _number(message[key], key)
    stamp = _object(_object(message.get("header"), "header").get("stamp"), "stamp") if "header" in message else {}
    if "sec" not in stamp:
        raise PacketError("has no time: t [s], or header.stamp with sec and nanosec")
    return _number(stamp["sec"], "sec") + 1e-9 * _number(stamp.get("nanosec", 0), "nanosec")


def _number(value: object, name: str) -> float:
    try:
        if isinstance(value, float | int) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    except OverflowError:
        pass
    raise PacketError(f"{name} is not a number")


def _sequence(message: dict[str, Any]) -> int:
    number = message.get("seq", -1)
    if type(number) is not int or not -1 <= number < 1 << 62:
        raise PacketError("seq is not a whole number")
    return number


def _object(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise PacketError(f"{name} is not an object")
    return value


def _list(value: object, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise PacketError(f"{name} is not a list")
    return value
