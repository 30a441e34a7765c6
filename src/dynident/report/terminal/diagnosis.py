"""The pages of `dynident check`: diagnostics of logs, and a preview of a log without a robot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console

from dynident.diagnostics.log_preview import ChannelPreview, Preview
from dynident.estimate.records import Diagnosis
from dynident.logs.bag import TopicSummary
from dynident.logs.columns import KINDS, LogColumn, bare_name, kind_of, number_of, si_unit
from dynident.logs.definitions import short_type
from dynident.logs.file import LogFile
from dynident.logs.layouts import span
from dynident.report.diagnosis import diagnosis_section
from dynident.report.html import Cell, Head, Part, Table, Text
from dynident.report.terminal import print_parts
from dynident.report.text import number, percent, plural, quantity, whole
from dynident.robot.model import Robot

_MAX_UNUSED = 20  # columns that are named


def print_diagnosis(
    diagnosis: Diagnosis, console: Console, names: Mapping[str, str] | None = None, *, every: bool = False
) -> None:
    """Print problems in logs and suggested fixes, see `diagnosis_section`."""
    print_parts(diagnosis_section(diagnosis, names, every=every).parts, console)


def print_preview(preview: Preview, console: Console, reasons: Mapping[str, str] | None = None) -> None:
    """Print what is in a log: its stamps, its channels, and columns without a meaning that have no `reasons`."""
    spare = [header for header in preview.unused if bare_name(header) not in (reasons or {})]
    kinds = ", ".join(f"{kind} of {_joints(joints)}" for kind, joints in preview.kinds.items())
    parts: list[Part] = [
        Text(preview.source, "heading"),
        *_time_lines(preview),
        *(Text(line, "caveat") for line in _row_lines(preview)),
        _channel_table(preview),
        Text(f"Found: {kinds or 'no channel that dynident knows'}"),
    ]
    if spare:
        more = f" and {len(spare) - _MAX_UNUSED} more" if len(spare) > _MAX_UNUSED else ""
        words = f"Not understood: {', '.join(spare[:_MAX_UNUSED])}{more} (map them in a column file)"
        parts.append(Text(words, "caveat"))
    print_parts(parts, console)


def print_column_table(label: str, columns: Sequence[LogColumn], robot: Robot | None, console: Console) -> None:
    """Print what the columns of a log were taken for: the name in the file, channel, joint and unit."""
    heads = [Head("name in the file"), Head("channel"), Head("joint"), Head("unit")]
    rows: list[list[Cell | str]] = [
        [row["name"], row["channel"], row["joint"], row["unit"]] for row in column_rows(columns, robot)
    ]
    print_parts([Text(f"Columns of {label}", "heading"), Table("", heads, rows, layout="tight")], console)


def print_topics(path: str, topics: Sequence[TopicSummary], console: Console) -> None:
    """Print the topics of a bag: type, number of messages, rate, and which channels each could fill."""
    heads = [
        Head("topic"),
        *(Head("type", group=1), Head("messages", True, group=1), Head("Hz", True, short="Hz", group=1)),
        Head("could fill", group=2),
    ]
    rows: list[list[Cell | str]] = [
        [one.topic, short_type(one.kind), whole(one.messages), number(one.rate, 4) if one.rate else "", _fills(one)]
        for one in topics
    ]
    parts: list[Part] = [Text(f"Topics of {path}", "heading"), Table("", heads, rows, layout="tight")]
    if any(one.channels for one in topics):
        parts.append(Text("Give the robot to read it: dynident check ROBOT BAG; --topic chooses another topic."))
    print_parts(parts, console)


def _fills(topic: TopicSummary) -> str:
    """`q, dq, tau of 6 joints: a .. f` and what is to be said of the topic."""
    by_joints: dict[tuple[str, ...], list[str]] = {}
    for kind, joints in topic.channels.items():
        by_joints.setdefault(tuple(joints), []).append(kind)
    alike = len({len(joints) for joints in by_joints}) == 1 and len(by_joints) > 1  # columns by path
    if alike:
        count = len(next(iter(by_joints)))
        words = [f"{', '.join(topic.channels)} of {plural(count, 'joint')}: {_ends(next(iter(by_joints)))}, .."]
    else:
        words = [
            f"{', '.join(kinds)} of {plural(len(joints), 'joint') if kinds[0] in KINDS else 'sensor'}: {_ends(joints)}"
            for joints, kinds in by_joints.items()
        ]
    return "; ".join([*words, *([topic.note] if topic.note else [])])


def _ends(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} .. {names[-1]}"


def print_reasons(log: LogFile, console: Console) -> None:
    """Print what a reader should know about a log, and why columns that look like channels are not read."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in log.reasons.items():
        by_reason.setdefault(reason, []).append(name)
    lines = [f"Not read: {span(names)}: {reason}" for reason, names in by_reason.items()]
    said = [Text(words, "warning") for words in log.warnings]
    print_parts([*said, *(Text(line, "caveat") for line in lines)], console)


def column_rows(columns: Sequence[LogColumn], robot: Robot | None) -> list[dict[str, str]]:
    """What columns were taken for, as plain data."""
    joints = {} if robot is None else {joint.number: joint for joint in robot.joints}
    rows = []
    for column in columns:
        joint = None if column.channel == "t" else joints.get(number_of(column.channel))
        unit = column.unit or si_unit(kind_of(column.channel), slides=joint is not None and joint.kind == "prismatic")
        scale = "" if column.scale == 1.0 else f" × {column.scale:g}"
        name = "" if joint is None else joint.name
        rows.append(
            {"name": bare_name(column.header), "channel": column.channel, "joint": name, "unit": f"{unit}{scale}"}
        )
    return rows


def _time_lines(preview: Preview) -> Iterator[Text]:
    duration = "an unknown time" if preview.duration is None else f"{number(preview.duration)} s"
    yield Text(f"{whole(preview.samples)} samples over {duration}, {quantity(preview.rate or 0.0, 'Hz')}")
    if preview.shortest_step is not None and preview.longest_step is not None:
        steps = f"{number(1e3 * preview.shortest_step, 4)} to {number(1e3 * preview.longest_step, 4)} ms"
        yield Text(f"steps {steps}, median {number(1e3 * (preview.step or 0.0), 4)} ms")
    if preview.time_unit:
        yield Text(f"time was taken to be in {preview.time_unit}; say so in a column file", "caveat")


def _row_lines(preview: Preview) -> Iterator[str]:
    """What is unusual about the rows."""
    if preview.gaps:
        where = ", ".join(number(time, 6) for time in preview.gap_times)
        more = ", .." if preview.gaps > len(preview.gap_times) else ""
        longest = number(preview.longest_gap, 4)
        yield f"{plural(preview.gaps, 'gap')}, the longest {longest} s; they begin at {where}{more} s"
    if preview.repeated_rows:
        share = percent(preview.repeated_rows / preview.samples)
        yield f"{plural(preview.repeated_rows, 'row')} ({share}) with the values of the row before"
    if preview.equal_stamps:
        yield f"{plural(preview.equal_stamps, 'row')} with the stamp of the row before"
    if preview.out_of_order:
        yield f"{plural(preview.out_of_order, 'row')} out of order, the first is row {preview.first_out_of_order}"
    if preview.time_faults:
        yield f"{plural(preview.time_faults, 'stamp')} not finite"


def _channel_table(preview: Preview) -> Table:
    numeric = [Head(text, True) for text in ("lowest", "highest", "rms", "step", "repeats")]
    rows = [
        [
            *(channel.name, channel.unit, *(number(x, 4) for x in (channel.lowest, channel.highest, channel.rms))),
            *(number(channel.step, 2) if channel.step else "none", percent(channel.repeated), _remark(channel)),
        ]
        for channel in preview.channels
    ]
    return Table("", [Head("channel"), Head("unit"), *numeric, Head("remark")], rows, layout="tight")


def _remark(channel: ChannelPreview) -> Cell:
    if channel.faults:
        return Cell("", f"{channel.faults} not finite, from row {channel.fault_row}", "red")
    return Cell("", "constant" if channel.constant else "", "yellow")


def _joints(numbers: tuple[int, ...]) -> str:
    """Joint numbers in few words: joints 1 to 6."""
    if len(numbers) > 2 and numbers == tuple(range(numbers[0], numbers[-1] + 1)):
        return f"joints {numbers[0]} to {numbers[-1]}"
    return f"joint{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
