"""The answer of a look at a log, as a terminal page."""

from __future__ import annotations

from collections.abc import Mapping

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dynident.diagnostics.log_preview import ChannelPreview, Preview
from dynident.estimate.records import Diagnosis, Diagnostic, Severity
from dynident.report.text import counted, number, percent, printable, quantity, whole

_MOST_UNUSED = 20  # columns that are named


_STYLES: dict[Severity, str] = {"ok": "green", "warn": "yellow", "stop": "bold red"}
_SEVERITIES: dict[Severity, str] = {
    "ok": "nothing stands in the way",
    "warn": "usable, with care",
    "stop": "put this right first: identify refuses it",
}


def print_diagnosis(
    diagnosis: Diagnosis, console: Console, names: Mapping[str, str] | None = None, *, every: bool = False
) -> None:
    """What is wrong with logs and what to do; items that are fine in one line, or with `every` in full.

    Args:
        diagnosis: The items.
        console: Where to print.
        names: Short names of the logs by label.
        every: Whether to print what is fine as well.
    """
    names = names or {}
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column()
    table.add_column()
    table.add_column(overflow="fold")
    for one in _by_weight(diagnosis):
        if every or one.severity != "ok":
            where = f"{names.get(one.log, one.log)}: " if one.log and len(diagnosis.logs) > 1 else ""
            message = _with_names(f"{where}{one.message}", names)
            table.add_row(Text(one.severity, style=_STYLES[one.severity]), Text(one.name), Text(printable(message)))
    console.print(Text(f"{diagnosis.severity}: {_SEVERITIES[diagnosis.severity]}", style=_STYLES[diagnosis.severity]))
    if table.row_count:
        console.print(table)
    bad = {one.name for one in diagnosis.diagnostics if one.severity != "ok"}
    fine = [name for name in dict.fromkeys(one.name for one in diagnosis.diagnostics) if name not in bad]
    if fine and not every:
        console.print(Text(f"fine: {', '.join(fine)}", style="green"))


def _by_weight(diagnosis: Diagnosis) -> list[Diagnostic]:
    """The worst items first."""
    return [one for severity in ("stop", "warn", "ok") for one in diagnosis.of(severity)]


def _with_names(message: str, names: Mapping[str, str]) -> str:
    for label, short in names.items():
        message = message.replace(label, short)
    return message


def print_preview(preview: Preview, console: Console) -> None:
    """What is in a log: its stamps, its channels, and what was not understood."""
    console.print(Text(printable(preview.source), style="bold"))
    for line in (*_time_lines(preview), *_row_lines(preview)):
        console.print(line)
    console.print(_channel_table(preview))
    kinds = ", ".join(f"{kind} of {_joints(joints)}" for kind, joints in preview.kinds.items())
    console.print(Text(f"Found: {kinds or 'no channel that dynident knows'}"))
    if preview.unused:
        shown = ", ".join(printable(name) for name in preview.unused[:_MOST_UNUSED])
        more = f" and {len(preview.unused) - _MOST_UNUSED} more" if len(preview.unused) > _MOST_UNUSED else ""
        console.print(Text(f"Not understood: {shown}{more} (map them in a column file)", style="yellow"))


def _time_lines(preview: Preview) -> list[Text]:
    duration = "an unknown time" if preview.duration is None else f"{number(preview.duration)} s"
    lines = [Text(f"{whole(preview.samples)} samples over {duration}, {quantity(preview.rate or 0.0, 'Hz')}")]
    if preview.shortest_step is not None and preview.longest_step is not None:
        steps = f"{number(1e3 * preview.shortest_step, 4)} to {number(1e3 * preview.longest_step, 4)} ms"
        lines.append(Text(f"steps {steps}, median {number(1e3 * (preview.step or 0.0), 4)} ms"))
    if preview.time_unit:
        lines.append(Text(f"time was taken to be in {preview.time_unit}; say so in a column file", style="yellow"))
    return lines


def _row_lines(preview: Preview) -> list[Text]:
    """What is unusual about the rows."""
    lines = []
    if preview.gaps:
        where = ", ".join(number(time, 6) for time in preview.gap_times)
        more = ", .." if preview.gaps > len(preview.gap_times) else ""
        longest = number(preview.longest_gap, 4)
        lines.append(f"{counted(preview.gaps, 'gap')}, the longest {longest} s; they begin at {where}{more} s")
    if preview.repeated_rows:
        share = percent(preview.repeated_rows / preview.samples)
        lines.append(f"{counted(preview.repeated_rows, 'row')} ({share}) with the values of the row before")
    if preview.equal_stamps:
        lines.append(f"{counted(preview.equal_stamps, 'row')} with the stamp of the row before")
    if preview.out_of_order:
        rows = counted(preview.out_of_order, "row")
        lines.append(f"{rows} out of order, the first is row {preview.first_out_of_order}")
    if preview.time_faults:
        lines.append(f"{counted(preview.time_faults, 'stamp')} not finite")
    return [Text(line, style="yellow") for line in lines]


def _channel_table(preview: Preview) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for heading in ("channel", "unit", "lowest", "highest", "rms", "step", "repeats"):
        table.add_column(heading, justify="left" if heading in ("channel", "unit") else "right", no_wrap=True)
    table.add_column("remark", overflow="fold")
    for channel in preview.channels:
        ends = (number(channel.lowest, 4), number(channel.highest, 4), number(channel.rms, 4))
        step = number(channel.step, 2) if channel.step else "none"
        table.add_row(channel.name, channel.unit, *ends, step, percent(channel.repeated), _remark(channel))
    return table


def _remark(channel: ChannelPreview) -> Text:
    if channel.faults:
        return Text(f"{channel.faults} not finite, from row {channel.fault_row}", style="red")
    return Text("constant", style="yellow") if channel.constant else Text("")


def _joints(numbers: tuple[int, ...]) -> str:
    """Joint numbers in few words: joints 1 to 6."""
    if len(numbers) > 2 and numbers == tuple(range(numbers[0], numbers[-1] + 1)):
        return f"joints {numbers[0]} to {numbers[-1]}"
    return f"joint{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
