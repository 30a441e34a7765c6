"""Layouts: how tools name the columns of logs, what such names stand for, and why some are not read.

A name is understood where name, count and order leave one meaning. Otherwise the column is doubtful: it is not read,
and the doubt says why and what the column might be.
"""

from __future__ import annotations

import re
import textwrap
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from dynident.logs.columns import UNUSED, ColumnRule, bare_name
from dynident.robot.model import Robot


@dataclass(frozen=True)
class Names:
    """Columns of one kind in a layout.

    Attributes:
        pattern: Of the whole name without its unit; its group `index` is the place of the joint, `joint` its name, and
            `word`, where there is one, says which quantity it is.
        kind: Kind of channel; empty where `word` says it.
        unit: Where the tool writes another than SI.
        reason: Why such columns are not read; empty where they are.
    """

    pattern: str
    kind: str = ""
    unit: str = ""
    reason: str = ""


@dataclass(frozen=True)
class ColumnLayout:
    """How a tool names the columns of a log.

    Attributes:
        tool: The tool, in words.
        names: Its columns; the first pattern that matches a name counts.
        order: What an index counts. "axes": the joints of an arm from base to tip; "numbers": the same, but from 0 or
            1; "message": joints in an order that only the sender knows, unless labels in the rows name them; "motors":
            see `motors`; "joint numbers": the number of the joint as it stands.
        motors: Beginnings of the names of joints by index, where the maker fixes them.
    """

    tool: str
    names: tuple[Names, ...]
    order: Literal["axes", "numbers", "message", "motors", "joint numbers"] = "message"
    motors: tuple[str, ...] = ()


_WORDS = {
    **dict.fromkeys(("position", "positions", "pos", "q"), "q"),
    **dict.fromkeys(("velocity", "velocities", "vel", "dq"), "dq"),
    **dict.fromkeys(("effort", "torque", "trq", "force", "tau", "tauEst", "tau_est", "tau_J"), "tau"),
    **dict.fromkeys(("current", "cur"), "i"),
    "target": "target",
}
_QUANTITY = r"(?P<word>position|velocity|effort|current)"
_ARRAY = r"(?P<word>positions?|velocity|velocities|effort)"
_COMMANDED = r"(?:.*[/.])?(?:desired|reference|command(?:ed|s|_interface)?|target|goal|setpoint|output)[/.]"
_ERROR = r"(?:.*[/.])?error[/.]"
_AT = r"(?:\[(?P<index>\d+)\]|[./]?(?P<place>\d+))"
_MODEL = "is the controller's model of the torque, not a measurement"
_ASKED = "is a command, not a measurement"
LEGS = tuple(f"{leg}_{part}" for leg in ("FR", "FL", "RR", "RL") for part in ("hip", "thigh", "calf"))
LAYOUTS = (  # the first that knows a name counts
    ColumnLayout(
        "UR RTDE",
        (
            Names(r"actual_q_(?P<index>\d)", "q"),
            Names(r"actual_qd_(?P<index>\d)", "dq"),
            Names(r"actual_current_(?P<index>\d)", "i"),
            Names(r"target_q_(?P<index>\d)", "target"),
            Names(r"joint_temperatures_(?P<index>\d)", "temp"),
            Names(r"target_moment_(?P<index>\d)", "tau", reason=_MODEL),
            Names(r"actual_current_as_torque_(?P<index>\d)", "tau", reason="is current times a constant of the maker"),
            Names(r"target_current_(?P<index>\d)", "i", reason=_ASKED),
            Names(r"target_qd_(?P<index>\d)", "dq", reason=_ASKED),
        ),
        "axes",
    ),
    ColumnLayout(
        "libfranka",
        (
            Names(r"(?:state\.)?q\[(?P<index>\d)\]", "q"),
            Names(r"(?:state\.)?dq\[(?P<index>\d)\]", "dq"),
            Names(r"(?:state\.)?tau_J\[(?P<index>\d)\]", "tau"),
            Names(r"(?:state\.)?q_d\[(?P<index>\d)\]", "target"),
            Names(r"(?:state\.)?dq_d\[(?P<index>\d)\]", "dq", reason=_ASKED),
            Names(r"(?:cmd\.|state\.)?tau_J_d\[(?P<index>\d)\]", "tau", reason=_ASKED),
        ),
        "numbers",
    ),
    ColumnLayout(
        "Unitree LowState",
        (
            Names(r"(?:.*[./])?motor_?[sS]tate\[(?P<index>\d+)\][./](?P<word>q|dq|tauEst|tau_est)"),
            Names(r"(?:.*[./])?motor_?[cC]md\[(?P<index>\d+)\][./]q", "target"),
        ),
        "motors",
        motors=LEGS,
    ),
    ColumnLayout(
        "KUKA RSI",
        (Names(r"AIPos\.A(?P<index>\d+)", "q"), Names(r"MACur\.A(?P<index>\d+)", "i")),
        "joint numbers",
    ),
    ColumnLayout(  # rostopic echo -p, PlotJuggler, ros2_control: arrays of messages
        "ROS messages",
        (
            Names(_ERROR + _ARRAY + _AT, reason="is an error, not a measurement"),
            Names(_COMMANDED + r"positions?" + _AT, "target"),
            Names(_COMMANDED + _ARRAY + _AT, reason=_ASKED),
            Names(r"(?:field\.|.*/)?(?:actual[/.]|feedback[/.])?" + _ARRAY + _AT),
        ),
    ),
    ColumnLayout(  # PlotJuggler, ros2_control, bags and LeRobot as they are read, and people's own
        "names of joints",
        (
            Names(_ERROR + r"(?P<joint>[^/]+)/" + _QUANTITY, reason="is an error, not a measurement"),
            Names(_COMMANDED + r"(?P<joint>[^/]+)/position", "target"),
            Names(_COMMANDED + r"(?P<joint>[^/]+)/" + _QUANTITY, reason=_ASKED),
            Names(r"(?:.*/)?(?:state_interface\.)?(?P<joint>[^/]+)/" + _QUANTITY),
            Names(r"(?P<joint>.+)\.(?P<word>position|velocity|effort|current|target)"),
            Names(r"(?P<joint>.+)_(?P<word>position|pos|velocity|vel|effort|torque|trq|force|tau|current|cur|target)"),
        ),
    ),
    ColumnLayout(
        "numbers",
        (
            Names(r"(?P<word>taum|dqm|qm|ddq|dq|q|tau|i|u|target)(?:_?(?P<index>\d+)|\[(?P<place>\d+)\])"),
            Names(r"(?:joint_?)?(?P<word>pos|position|vel|velocity|effort|torque|current|tau_J)_?(?P<index>\d+)"),
        ),
        "numbers",
    ),
)
CLOCKS = (  # name of a time, another name that must be there, what it stands for
    ("__time", "", ColumnRule("t")),  # PlotJuggler
    ("%time", "", ColumnRule("t", "ns")),  # rostopic echo -p
    ("time", "success_rate", ColumnRule("t", "ms")),  # libfranka's logToCSV
)
LABELS = re.compile(r"field\.(?:joint_)?names?(?P<index>\d+)")  # cells that name the joint of an index


@dataclass(frozen=True)
class Doubt:
    """Why a column is not read.

    Attributes:
        reason: In words, the column being the subject.
        rule: What it may stand for; None where nothing can be proposed.
    """

    reason: str
    rule: ColumnRule | None = None


@dataclass(frozen=True)
class Recognition:
    """What the names of columns stand for.

    Attributes:
        rules: By name, what it stands for.
        doubts: By name, why it is not read.
        joints: By name, the joint as the file calls it.
        said: What a reader of results should know of how joints were recognized; empty where they have their names.
    """

    rules: Mapping[str, ColumnRule]
    doubts: Mapping[str, Doubt]
    joints: Mapping[str, str]
    said: str = ""


@dataclass(frozen=True)
class _Match:
    """A name that a layout knows."""

    name: str
    kind: str
    unit: str
    reason: str
    key: int | str  # place of the joint, or its name


def recognize(
    headers: Sequence[str], robot: Robot | None, labels: Mapping[str, str] | None = None, mapped: Iterable[str] = ()
) -> Recognition:
    """What headers stand for by the layouts of the tools that write them.

    Args:
        headers: Of a log, perhaps with units.
        robot: Robot whose joints the columns belong to, None for any.
        labels: Cells of the first row that are words, by header.
        mapped: Names that the user maps; they are counted, but never doubtful.
    """
    names = [bare_name(header) for header in headers]
    taken: defaultdict[int, list[_Match]] = defaultdict(list)
    for name in names:
        for number, layout in enumerate(LAYOUTS):
            if found := _match(name, layout):
                taken[number].append(found)
                break
    rules = {name: rule for name, beside, rule in CLOCKS if name in names and (not beside or beside in names)}
    doubts: dict[str, Doubt] = {}
    joints: dict[str, str] = {}
    called = {int(m["index"]): text for name, text in (labels or {}).items() if (m := LABELS.fullmatch(name))}
    for number in sorted(taken):
        matches = [_name_joint(match, called) for match in taken[number]]
        joints |= {match.name: match.key for match in matches if isinstance(match.key, str)}
        for match, joint, doubt in _place_joints(LAYOUTS[number], matches, robot):
            rule = None if joint is None or not match.kind else ColumnRule(f"{match.kind}{joint}", match.unit)
            if match.reason or doubt:
                doubts[match.name] = Doubt(match.reason or doubt, rule)
            elif rule is not None and rule.column != match.name:
                rules[match.name] = rule
    for name in mapped:
        doubts.pop(name, None)
    _part_twins(names, rules, doubts, frozenset(mapped))
    called_other = {} if robot is None else joints_by_affix(set(joints.values()), robot)
    if robot is None or not any(name in rules for name, joint in joints.items() if joint in called_other):
        called_other = {}
    return Recognition(rules, doubts, joints, _affix_in_words(called_other, robot))


def _match(name: str, layout: ColumnLayout) -> _Match | None:
    for known in layout.names:
        if match := re.fullmatch(known.pattern, name):
            groups = match.groupdict()
            word = groups.get("word") or ""
            kind = known.kind or _WORDS.get(word, word)
            place = groups.get("index") or groups.get("place")
            key = groups["joint"] if place is None else int(place)
            return _Match(name, kind, known.unit, known.reason, key)
    return None


def _name_joint(match: _Match, called: Mapping[int, str]) -> _Match:
    """The match by the name of its joint where the rows of the file give it."""
    if match.name.startswith("field.") and match.key in called:
        return replace(match, key=called[int(match.key)])
    return match


Placed = tuple[_Match, int | None, str]  # a name, the number of its joint, and why it is in doubt


def _place_joints(layout: ColumnLayout, found: Sequence[_Match], robot: Robot | None) -> list[Placed]:
    """The number of the joint of each name, and why it is doubtful."""
    words = [match for match in found if isinstance(match.key, str)]
    indexed = [match for match in found if not isinstance(match.key, str)]
    result: list[Placed] = _by_name(words, robot)
    if layout.motors and robot is not None and (own := _motors(layout.motors, robot)):
        for match in indexed:
            result.append((match, own.get(int(match.key)), ""))
        return result
    if layout.order == "joint numbers":
        return [*result, *((match, int(match.key), "") for match in indexed)]
    return [*result, *_by_index(layout, indexed, robot)]


def _motors(motors: Sequence[str], robot: Robot) -> dict[int, int]:
    """Numbers of the joints that a maker's motors move, by index of the motor."""
    numbers = {joint.name.removesuffix("_joint"): joint.number for joint in robot.joints}
    return {index: numbers[motor] for index, motor in enumerate(motors) if motor in numbers}


def _by_name(found: Sequence[_Match], robot: Robot | None) -> list[Placed]:
    order = list(dict.fromkeys(str(match.key) for match in found if match.kind == "q"))
    if robot is None:
        hint = "names a joint; give the robot whose joint it is"
        return [(match, order.index(str(match.key)) + 1 if match.key in order else None, hint) for match in found]
    numbers = {joint.name: joint.number for joint in robot.joints}
    numbers |= {
        name: numbers[joint] for name, joint in joints_by_affix({str(match.key) for match in found}, robot).items()
    }
    if any(match.key in numbers for match in found):  # the other names are of other things
        return [(match, numbers.get(str(match.key)), "") for match in found]
    # Where no name is known, the order of the file is a guess, which only a column file may make.
    active = [robot.joints[i] for i in robot.active]
    guess = (
        {name: joint.number for name, joint in zip(order, active, strict=False)} if len(order) == len(active) else {}
    )
    return [(match, guess.get(str(match.key)), f"names no joint of robot {robot.name}") for match in found]


_SEPARATORS = "_-/.:"


def joint_affixes(names: Collection[str], robot: Robot) -> list[tuple[str, str, bool]]:
    """What stands before and behind the names of all of the robot's joints in a file, or is missing there.

    `panda_` where the file says panda_joint1 .. panda_joint7 and the robot joint1 .. joint7; True where it is the robot
    whose names have it. Files with the robot's own names have none, files of two arms several.
    """
    own = [robot.joints[i].name for i in robot.active]
    if len(own) < 2 or any(joint.name in names for joint in robot.joints):
        return []
    found: set[tuple[str, str, bool]] = set()
    for name in names:
        for longer, shorter, stripped in ((name, own[0], False), (own[0], name, True)):
            at = longer.find(shorter) if shorter else -1
            if at < 0 or longer == shorter:
                continue
            before, behind = longer[:at], longer[at + len(shorter) :]
            apart = (not before or before[-1] in _SEPARATORS) and (not behind or behind[0] in _SEPARATORS)
            if apart and all(_with_affix(joint, before, behind, stripped) in names for joint in own):
                found.add((before, behind, stripped))
    return sorted(found)


def _with_affix(joint: str, before: str, behind: str, stripped: bool) -> str:
    """How a file calls a joint of the robot; empty where that cannot be."""
    if not stripped:
        return f"{before}{joint}{behind}"
    fits = joint.startswith(before) and joint.endswith(behind) and len(joint) > len(before) + len(behind)
    return joint[len(before) : len(joint) - len(behind)] if fits else ""


def joints_by_affix(names: Collection[str], robot: Robot) -> dict[str, str]:
    """The robot's joints by the names of a file that differ from theirs by one prefix and suffix; else empty."""
    affixes = joint_affixes(names, robot)
    if len(affixes) != 1:
        return {}
    called = {_with_affix(joint.name, *affixes[0]): joint.name for joint in robot.joints}
    return {name: joint for name, joint in called.items() if name in names}


def _affix_in_words(called: Mapping[str, str], robot: Robot | None) -> str:
    if not called or robot is None:
        return ""
    (first, own), *_, (last, other) = called.items()
    return f"its joints {first} .. {last} are read as {own} .. {other} of robot {robot.name}, by what their names share"


def _by_index(layout: ColumnLayout, found: Sequence[_Match], robot: Robot | None) -> list[Placed]:
    kinds: defaultdict[str, set[int]] = defaultdict(set)
    for match in found:
        if not match.reason:
            kinds[match.kind].add(int(match.key))
    from_zero = {kind for kind, places in kinds.items() if 0 in places}
    if layout.order == "numbers" and not from_zero:
        return [(match, int(match.key), "") for match in found]
    numbers = None if robot is None else [robot.joints[i].number for i in robot.active]
    positions = kinds.get("q") or kinds.get("qm") or set().union(*kinds.values())
    first = 0 if from_zero or positions != set(range(1, len(positions) + 1)) else 1
    reason = ""
    if (others := sorted(set(kinds) - from_zero)) and from_zero:
        starts = f"{', '.join(sorted(from_zero))} does, {', '.join(others)} does not"
        reason = f"may count from 0 or from 1: in this file {starts} start at 0"
    elif positions != set(range(first, first + len(positions))):
        reason = f"counts from 0, but of 0 to {max(positions, default=0)} only {len(positions)} are there"
    if robot is not None and numbers is not None:
        called = [robot.joints[i].name for i in robot.active]
        if not reason and len(positions) != len(numbers):
            reason = (
                f"is one of {len(positions)} joints, but robot {robot.name} has {len(numbers)}: {', '.join(called)}"
            )
        if not reason and layout.order in ("message", "motors") and called != sorted(called, key=_natural):
            reason = (
                f"has a place in a message that names no joints; senders often sort them by name "
                f"({', '.join(sorted(called, key=_natural))}), but robot {robot.name} has {', '.join(called)}"
            )
    elif not reason and layout.order in ("message", "motors"):
        reason = "has a place in a message that names no joints; give the robot whose joints they are"
    result: list[Placed] = []
    for match in found:
        place = int(match.key) - first
        known = place + 1 if numbers is None else numbers[place] if 0 <= place < len(numbers) else None
        result.append((match, known, reason))
    return result


def _natural(name: str) -> list[tuple[int, str]]:
    """Joint 10 behind joint 9."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


def _part_twins(
    names: Sequence[str], rules: dict[str, ColumnRule], doubts: dict[str, Doubt], mapped: frozenset[str]
) -> None:
    """Names that layouts give the same channel are doubtful, all of them."""
    own: defaultdict[str, list[str]] = defaultdict(list)
    for name, rule in rules.items():
        if name in names and name not in mapped:
            own[rule.column].append(name)
    for channel, twins in own.items():
        named = channel in names and channel not in rules and channel not in mapped  # a name that is the channel's own
        if len(twins) > 1 or named:
            for k, name in enumerate(twins):
                rule = rules.pop(name)
                other = channel if named else twins[0 if k else 1]
                doubts[name] = Doubt(
                    f"stands for {channel}, as '{other}' does",
                    ColumnRule(UNUSED) if k or named else rule,
                )


# ----------------------------------------------------------------------------------------------------------------------
# What to say of columns that were not read.


def doubts_in_words(doubts: Mapping[str, Doubt]) -> str:
    """Columns that are not read and why, those of one reason together: `a_0 .. a_5: is ..; b: ..`."""
    by_reason: defaultdict[str, list[str]] = defaultdict(list)
    for name, doubt in doubts.items():
        by_reason[doubt.reason].append(name)
    return "; ".join(f"{span(names)}: {reason}" for reason, names in by_reason.items())


def span(names: Sequence[str]) -> str:
    """Names in few words: the first and the last."""
    quoted = [f"'{name}'" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{quoted[0]} {'and' if len(quoted) == 2 else '..'} {quoted[-1]}"


def other_robot(recognition: Recognition, robot: Robot) -> str:
    """Both lists of joints, where the names in the file are none of the robot's; else empty."""
    called = list(dict.fromkeys(recognition.joints.values()))
    if not called or any(joint.name in called for joint in robot.joints):
        return ""
    own = [robot.joints[i].name for i in robot.active]
    return f"its joints are [{', '.join(called)}], those of robot {robot.name} [{', '.join(own)}]"


# ----------------------------------------------------------------------------------------------------------------------
# A column file as text, complete but for the lines that are in doubt.

_PLAIN = re.compile(r"[A-Za-z_/][\w./-]*")
_BOOLEAN = ("y", "n", "yes", "no", "on", "off", "true", "false", "null")


def column_file(
    source: str, columns: Sequence[tuple[str, ColumnRule, str]], doubts: Mapping[str, Doubt], unknown: Sequence[str]
) -> str:
    """The text of a column file.

    Args:
        source: The log, for its first line.
        columns: Names that are understood, what they stand for, and the joint or empty.
        doubts: Names that are in doubt.
        unknown: Names that nothing is known of.
    """
    lines = [f"# Columns of {source}. Lines with '?' are in doubt: correct them and remove '# ?', or leave them out."]
    for name, rule, joint in columns:
        lines.append(f"{_key(name)}: {_value(rule)}" + (f"  # {joint}" if joint else ""))
    for reason, group in groupby(doubts.items(), key=lambda item: item[1].reason):
        lines += [
            "",
            *textwrap.wrap(f"In doubt, because each {reason}", 100, initial_indent="# ", subsequent_indent="# "),
        ]
        lines += [f"# ? {_key(name)}: {_value(doubt.rule) if doubt.rule else 'channel'}" for name, doubt in group]
    if unknown:
        lines += ["", "# Not understood (a channel is q1, dq1, tau1, i1, target1, ..):"]
        lines += [f"# ? {_key(name)}: channel" for name in unknown]
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    if _PLAIN.fullmatch(name) and name.lower() not in _BOOLEAN:
        return name
    return "'" + name.replace("'", "''") + "'"


def _value(rule: ColumnRule) -> str:
    parts = [f"column: {rule.column}"]
    parts += [f"unit: {_key(rule.unit)}"] if rule.unit else []
    parts += [f"scale: {rule.scale:.12g}"] if rule.scale != 1.0 else []
    return rule.column if len(parts) == 1 else f"{{{', '.join(parts)}}}"
