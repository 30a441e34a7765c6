"""`check_html`: diagnostics of logs as a page: what is wrong, in which channel of which joint, and the raw signals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from dynident._version import __version__
from dynident.arrays import Array
from dynident.diagnostics.log_preview import ChannelPreview, Preview, preview
from dynident.estimate.records import Diagnosis, Diagnostic
from dynident.logs.columns import kind_of, number_of
from dynident.logs.log import LogSource
from dynident.logs.read import short_names
from dynident.report.charts import Curve, curves_svg
from dynident.report.diagnosis import diagnosis_section
from dynident.report.html import Figure, Head, Mark, Part, Section, Table, Text, element, figure, page
from dynident.report.text import number, percent, plural, quantity, sentence, whole
from dynident.robot.model import Joint, Limits, Robot

_POINTS = 1500  # of a raw signal that is drawn
_MAX_LOGS = 12  # logs whose signals are drawn
_DRAWN = ("q", "dq", "tau", "taum", "i", "temp")  # kinds of channels, in this order
_MARKS: dict[str, Mark] = {"ok": "good", "warn": "fair", "stop": "weak"}
_HEADLINES = {
    "ok": "ok: nothing stands in the way of an identification",
    "warn": "warn: usable, with care",
    "stop": "stop: fix this first, identify refuses these logs",
}


def check_html(
    logs: Sequence[LogSource], robot: Robot | None = None, diagnosis: Diagnosis | None = None, command: str = ""
) -> str:
    """The page of `dynident check`, to be written as UTF-8.

    Args:
        logs: The logs; each is read once more.
        robot: Names the joints and their limits; None without one.
        diagnosis: What is wrong with them; None without a robot.
        command: The command that makes the page again; left out when empty.
    """
    names = short_names(logs)
    sections: list[Section] = []
    if diagnosis is None:
        facts = [Text("No robot was given, so only what is in the logs is shown, not whether it is right.")]
        sections.append(Section("verdict", plural(len(logs), "log"), facts))
    else:
        sections += [_verdict(diagnosis), *_diagnostics(diagnosis, names)]
    for place, log in enumerate(logs):
        found, wrong = preview(log), _of_log(diagnosis, log.label)
        parts: list[Part] = [*_facts(found), _channels(found, robot, wrong)]
        if place < _MAX_LOGS:
            parts += _signals(log, found, robot, place)
        folded = len(logs) > 1 and not any(one.log for one in wrong)
        sections.append(Section(f"log{place}", names[log.label], parts, names[log.label], folded=folded))
    if command:
        sections.append(Section("again", "Command", [element("code", command, class_="command")]))
    title = "Logs" if robot is None else f"{robot.name}: logs"
    return page(title, sections, version=__version__)


def _verdict(diagnosis: Diagnosis) -> Section:
    """How bad it is, and what to do first."""
    severity = diagnosis.severity
    parts = [Text(f"{one.name}: {sentence(one.message)}") for one in diagnosis.of("stop")]
    counts = {"warn": len(diagnosis.of("warn")), "ok": len(diagnosis.of("ok"))}
    parts.append(Text(f"{plural(counts['warn'], 'warning')}, {counts['ok']} diagnostics passed."))
    if diagnosis.fix:
        parts.append(Text("A correction helps on parts of the logs that were held out: write it with -o F.yaml."))
    return Section("verdict", _HEADLINES[severity], parts, mark=_MARKS[severity])


def _diagnostics(diagnosis: Diagnosis, names: Mapping[str, str]) -> Iterator[Section]:
    """What is wrong, and folded what is not."""
    passed = diagnosis.of("ok")
    wrong = [one for one in diagnosis.diagnostics if one.severity != "ok"]
    for key, title, own in (("wrong", "Problems and suggested fixes", wrong), ("passed", "Passed", passed)):
        if own:
            whole = diagnosis_section(Diagnosis(tuple(own), diagnosis.logs), names, every=True)
            tables = [part for part in whole.parts if isinstance(part, Table)]
            yield Section(key, title, tables, title.split()[0], folded=key == "passed")


def _of_log(diagnosis: Diagnosis | None, label: str) -> list[Diagnostic]:
    """What is wrong with a log."""
    wrong = [] if diagnosis is None else [*diagnosis.of("stop"), *diagnosis.of("warn")]
    return [one for one in wrong if one.log in ("", label)]


def _facts(found: Preview) -> Iterator[Text]:
    duration = "an unknown time" if found.duration is None else f"{number(found.duration)} s"
    start = "" if not found.start else f", the first stamp is {number(found.start, 8)} s"
    yield Text(f"{whole(found.samples)} samples over {duration} at {quantity(found.rate or 0.0, 'Hz')}{start}.")
    rows = {
        "gap in time": found.gaps,
        "row with the values of the row before": found.repeated_rows,
        "row with the stamp of the row before": found.equal_stamps,
        "row out of order": found.out_of_order,
        "stamp that is not finite": found.time_faults,
    }
    for what, count in rows.items():
        if count:
            noun, _, rest = what.partition(" ")
            yield Text(f"{plural(count, noun)} {rest}.", "caveat")
    if found.unused:
        yield Text(f"Columns that are not read: {', '.join(found.unused)}.", "soft")


def _channels(found: Preview, robot: Robot | None, wrong: Sequence[Diagnostic]) -> Table:
    """Raw range of every channel, its joint, the limits of the joint, and what names it."""
    heads = [Head("Channel"), Head("Column"), Head("Joint"), Head("Unit")]
    heads += [Head(name, True) for name in ("Lowest", "Highest", "RMS", "Step", "Repeats")]
    heads += [Head("Limits of the robot file"), Head("Remark", class_="text")]
    rows = []
    for channel in found.channels:
        joint = _joint(channel.name, robot)
        values = (number(x, 4) for x in (channel.lowest, channel.highest, channel.rms))
        step = number(channel.step, 2) if channel.step else "none"
        remarks = [*_remarks(channel), *(one.name for one in wrong if _names(one, channel, joint))]
        rows.append(
            [
                *(channel.name, channel.header, "" if joint is None else joint.name, channel.unit, *values, step),
                *(percent(channel.repeated), _limits(channel, joint), ", ".join(remarks)),
            ]
        )
    return Table("Channels as they were recorded", heads, rows)


def _joint(channel: str, robot: Robot | None) -> Joint | None:
    return None if robot is None else next((x for x in robot.joints if x.number == number_of(channel)), None)


def _limits(channel: ChannelPreview, joint: Joint | None) -> str:
    """Limits of the joint that a channel should keep."""
    limits = Limits() if joint is None else joint.limits
    kind = kind_of(channel.name)
    if kind == "q" and limits.lower is not None and limits.upper is not None:
        return f"{number(limits.lower, 4)} to {number(limits.upper, 4)}"
    most = {"dq": limits.velocity, "tau": limits.effort}.get(kind)
    return "" if most is None else f"± {number(most, 4)}"


def _remarks(channel: ChannelPreview) -> Iterator[str]:
    if channel.faults:
        yield f"{channel.faults} not finite, from row {channel.fault_row}"
    if channel.constant:
        yield "constant"


def _names(one: Diagnostic, channel: ChannelPreview, joint: Joint | None) -> bool:
    """Whether a message names a channel, or its joint."""
    words = one.message.replace(",", " ").replace(":", " ").replace("(", " ").replace(")", " ").split()
    return channel.name in words or (joint is not None and joint.name in words)


def _signals(log: LogSource, found: Preview, robot: Robot | None, place: int) -> Iterator[Section]:
    """The raw signals of a log, folded."""
    thin = max(1, -(-found.samples // _POINTS))
    time, values, seen = [], [], 0
    for block in log.blocks():
        picked = slice(-seen % thin, None, thin)
        time.append(block.time[picked])
        values.append({name: x[picked] for name, x in block.channels.items()})
        seen += len(block)
    if not seen:
        return
    stamps = np.concatenate(time)
    known = stamps[np.isfinite(stamps)]
    shown = stamps - (known.min() if len(known) else 0.0)
    for kind in _DRAWN:
        own = [channel for channel in found.channels if kind_of(channel.name) == kind]
        figures = [_signal(channel, robot, shown, values, f"log{place}-{channel.name}") for channel in own]
        if figures:
            yield Section("", f"Raw signals: {', '.join(channel.name for channel in own)}", figures)


def _signal(
    channel: ChannelPreview, robot: Robot | None, time: Array, values: Sequence[Mapping[str, Array]], key: str
) -> Figure:
    joint = _joint(channel.name, robot)
    name = channel.name if joint is None else f"{channel.name}, {joint.name}"
    signal = np.concatenate([block[channel.name] for block in values])
    usable = np.isfinite(signal) & np.isfinite(time)
    curve = Curve(channel.name, time[usable], signal[usable], "predicted")
    if not usable.any():
        return figure(name, element("p", "no finite value"))
    return figure(
        f"{name} [{channel.unit}]", curves_svg(f"Raw {name}", [curve], x_unit="s", y_unit=channel.unit, key=key)
    )
