"""The terminal pages of `dynident live`: the view while samples come, a line where there is no terminal, a summary."""

from __future__ import annotations

import math
import textwrap
from statistics import median

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from dynident.online.changes import Change
from dynident.online.state import StreamState
from dynident.report.text import UNKNOWN, number, percent, printable, whole

WIDTH = 80  # columns that every page fits into
_BAR = 16  # characters of a full bar
_DECADES = 3.0  # a standard deviation as large as the value fills the bar, one of 0.1 % empties it
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEAST_ROWS = 4  # parameters that are shown however low the terminal is
_POSITIONS = {"jumps": "jumps of position", "glitches": "glitches left out"}


def live_view(state: StreamState, height: int = 24) -> RenderableType:
    """The page while samples come.

    Args:
        state: State to show.
        height: Lines of the terminal; parameters that do not fit are counted.
    """
    around = [_head(state), _verdict(state), Text()]
    behind: list[RenderableType] = [Text(), *_errors(state), *_payload(state), *_notes(state), _counters(state)]
    rows = max(_LEAST_ROWS, height - len(around) - len(behind) - 4)
    return Group(*around, _parameters(state, rows), *behind)


def live_line(state: StreamState) -> str:
    """The state in one line, for files and pipes."""
    estimate, counters = state.estimate, state.counters
    parts = [f"{_time(state)} s", f"{whole(counters.used)} samples", f"error {percent(_worst(state)[1])}"]
    if estimate.payload is not None:
        parts.append(_mass(state))
    parts.append("enough motion" if estimate.verdict.enough else f"not yet: {estimate.verdict.reason}")
    bad = {name: getattr(counters, name) for name in ("malformed", "late", "repeated", "dropped", "overrun")}
    bad |= {name: estimate.counters.get(name, 0) for name in _POSITIONS}
    parts += [f"{count} {name}" for name, count in bad.items() if count]
    return printable(", ".join(parts))


def print_summary(state: StreamState, console: Console) -> None:
    """The page at the end: all parameters."""
    rows = len(state.estimate.names)
    console.print(Group(_head(state), _verdict(state), Text(), _parameters(state, rows), Text()), width=WIDTH)
    for part in (*_errors(state), *_payload(state), *_notes(state), _counters(state)):
        console.print(part, width=WIDTH)
    if state.latency is not None:
        median, most = (f"{1e3 * state.latency[name]:.3g} ms" for name in ("median", "most"))
        console.print(Text(f"From arrival to estimate: median {median}, 99.9 % within {most}.", style="dim"))


def interval_bar(share: float) -> str:
    """A bar for a relative standard deviation: full at 100 %, empty at 0.1 %, a third shorter per factor of ten."""
    if math.isnan(share):
        share = math.inf
    part = 1.0 if share >= 1.0 else max(0.0, 1.0 + math.log10(max(share, 1e-12)) / _DECADES)
    full, rest = divmod(round(8 * _BAR * part), 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(_BAR)


def _time(state: StreamState) -> str:
    return "-" if state.time is None else f"{state.time:.1f}"


def _head(state: StreamState) -> Text:
    words = f"  {_time(state)} s   {whole(state.estimate.samples)} samples   {whole(state.estimate.rows)} rows"
    head = Text(printable(state.source)[: WIDTH - len(words)], style="bold")
    return head.append(words, style="not bold")


def _verdict(state: StreamState) -> Text:
    verdict = state.estimate.verdict
    mark, style = ("● enough motion", "green") if verdict.enough else ("○ not enough motion yet", "yellow")
    words = Text(mark, style=style).append(f": {printable(verdict.reason)}", style="default")
    words.truncate(2 * WIDTH, overflow="ellipsis")
    return words


def _parameters(state: StreamState, rows: int) -> Table:
    """Parameters with their intervals, largest torque first as the model has them; the rest is counted."""
    estimate = state.estimate
    table = Table(box=None, padding=(0, 1), width=WIDTH)
    for head, justify in (("parameter", "left"), ("value", "right"), ("± 1 σ", "right"), ("unit", "left")):
        table.add_column(head, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    table.add_column("interval", width=_BAR, no_wrap=True)
    count, scales = len(estimate.names), _scales(state)
    shown = count if count <= rows else rows - 1
    for k in range(shown):
        value, std = float(estimate.values[k]), float(estimate.std[k])
        share = std / scales[k] if scales[k] else math.inf
        sure = bool(estimate.determined[k])
        style = "default" if sure else "dim"
        spread = number(std, 2) if math.isfinite(std) else "open"
        bar = Text(interval_bar(share if sure else math.inf), style=_color(share) if sure else "dim")
        cells = (printable(estimate.names[k])[:28], number(value, 4), spread, printable(estimate.units[k]))
        table.add_row(*(Text(cell, style=style) for cell in cells), bar)
    if shown < count:
        table.add_row(Text(f"and {count - shown} more", style="dim"))
    return table


def _scales(state: StreamState) -> list[float]:
    """What standard deviations are compared with: a value, or the usual size of its kind where it is smaller than that.

    Many products of inertia are zero; against themselves their intervals would never shrink.
    """
    estimate = state.estimate
    sizes = [abs(float(value)) for value in estimate.values]
    usual = {
        unit: median([x for x, own in zip(sizes, estimate.units, strict=True) if own == unit])
        for unit in set(estimate.units)
    }
    return [max(size, usual[unit]) for size, unit in zip(sizes, estimate.units, strict=True)]


def _color(share: float) -> str:
    return "green" if share < 0.05 else "cyan" if share < 0.3 else "yellow"


def _worst(state: StreamState) -> tuple[str, float]:
    """Joint with the largest relative torque error."""
    shares = [(joint, float(x)) for joint, x in zip(state.estimate.joints, state.estimate.relative_error, strict=True)]
    return max(shares, key=lambda pair: -1.0 if math.isnan(pair[1]) else pair[1])


def _errors(state: StreamState) -> list[Text]:
    """Torque errors of all joints, as many to a line as fit."""
    lines, line = [], "Torque error "
    for joint, share in zip(state.estimate.joints, state.estimate.relative_error, strict=True):
        shown = percent(float(share))
        part = f"  {printable(joint)} {'-' if shown == UNKNOWN else shown}"
        if len(line) + len(part) > WIDTH:
            lines.append(line)
            line = " " * 13
        line += part
    return [Text(text[:WIDTH]) for text in (*lines, line)]


def _mass(state: StreamState) -> str:
    payload = state.estimate.payload
    if payload.present is False:
        return "no payload"
    if payload.present is None:
        return "payload not known yet"
    return f"payload {number(payload.mass, 4)} ± {number(payload.mass_std, 2)} kg"


def _payload(state: StreamState) -> list[Text]:
    estimate = state.estimate
    if estimate.payload is None:
        return []
    words = _mass(state)
    center = [one for one in estimate.payload.numbers if one.name in ("cx", "cy", "cz")]
    if estimate.payload.present and all(one.value is not None for one in center):
        words += ", center " + " ".join(number(one.value, 3) for one in center) + " m"
    lines = [Text(f"{words[:1].upper()}{words[1:]}", style="bold")]
    return lines + [
        Text(_change(change), style="dim" if change.provisional else "") for change in estimate.changes[-2:]
    ]


def _change(change: Change) -> str:
    """A change in one line: when, from which mass to which, and whether that is still to be refined."""
    half = max(change.time - change.instant, change.instant - change.before)
    spread = f" ± {half:.1f} s" if half >= 1.0 else f" ± {1e3 * half:.0f} ms" if math.isfinite(half) else ""
    when = change.instant if math.isfinite(change.instant) else change.time
    masses = f"{round(change.mass_before, 2) + 0.0:.2f} to {round(change.mass_after, 2) + 0.0:.2f}"
    if math.isfinite(change.mass_after_std):
        masses += f" ± {number(change.mass_after_std, 1)}"
    ending = "provisional" if change.provisional else f"noticed at {change.found:.2f} s"
    return f"  {change.kind} at {when:.2f} s{spread}: {masses} kg, {ending}"


def _notes(state: StreamState) -> list[Text]:
    """What a reader should know about the model, a line or more each."""
    notes = [textwrap.wrap(f"Note: {printable(note)}.", WIDTH) for note in state.estimate.notes]
    return [Text(line, style="yellow") for lines in notes for line in lines]


def _counters(state: StreamState) -> Text:
    """What became of the packets; losses stand out."""
    counters = state.counters
    line = Text(f"{whole(counters.received)} received, {whole(counters.used)} used", style="dim")
    for name in ("malformed", "late", "repeated", "dropped", "overrun", "restarts"):
        count = getattr(counters, name)
        if count:
            line.append(f", {whole(count)} {name}", style="red" if name in ("dropped", "overrun") else "yellow")
    for name, words in _POSITIONS.items():
        count = state.estimate.counters.get(name, 0)
        if count:
            line.append(f", {whole(count)} {words}", style="yellow")
    return line
