"""The answer of `dynident compare` as a terminal page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dynident.report.comparison_words import (
    NOTHING,
    cells,
    change_words,
    differing_options,
    facts,
    headline,
    judgement,
    log_names,
    sentences,
    z_words,
)
from dynident.report.words import number, percent, printable, sentence
from dynident.validation.changes import ParameterChange
from dynident.validation.fits import FitComparison

_ABREAST = 4  # runs that stand beside each other within 80 columns
_STYLES = {"changed": "magenta", "perhaps": "yellow", "agrees": "green"}


def print_comparison(found: FitComparison, console: Console, sources: Sequence[str], *, every: bool = False) -> None:
    """The page an engineer reads after a comparison.

    Args:
        found: The comparison.
        console: Where to print.
        sources: Where each run came from.
        every: Whether to show parameters that agree as well.
    """
    console.print(Text(printable(headline(found)), style="bold"))
    for name, source in zip(found.names, sources, strict=True):
        console.print(Text(printable(f"  {name}  {source}")), soft_wrap=True)
    for text in sentences(found):
        console.print(Text(printable(text)))
    for text in found.remarks:
        console.print(Text(printable(sentence(text)), style="yellow"))
    judged = judgement(found)
    rows = [
        (joint, [NOTHING if own.get(joint) is None else percent(own[joint]) for own in judged.joints])
        for joint in found.joints
    ]
    _print(
        console, found, f"Torque error on {judged.basis}", "joint", [*rows, ("all", list(map(percent, judged.totals)))]
    )
    _print(console, found, "Runs", "", facts(found))
    _print_parameters(found, console, every=every)
    _print(console, found, "Options that differ", "option", differing_options(found), right=False)
    names = log_names(found)
    used = [(names[log.label], cells([role or None for role in log.roles], str)) for log in found.logs]
    _print(console, found, "Data", "log", used, right=False)


def _print(
    console: Console,
    found: FitComparison,
    title: str,
    head: str,
    rows: Iterable[tuple[str, Sequence[str]]],
    *,
    right: bool = True,
) -> None:
    """A table with a column for each run; many runs in several tables."""
    listed = list(rows)
    if not listed:
        return
    for first in range(0, len(found.names), _ABREAST):
        own = slice(first, first + _ABREAST)
        table = Table(box=SIMPLE_HEAD, title=title, title_style="bold", title_justify="left")
        table.add_column(head, overflow="fold")
        for name in found.names[own]:
            table.add_column(name, justify="right" if right else "left", overflow="fold")
        for name, values in listed:
            table.add_row(*(Text(printable(cell)) for cell in (name, *values[own])))
        console.print(table)


def _print_parameters(found: FitComparison, console: Console, *, every: bool) -> None:
    """Parameters that changed, the most certain first; or all of them."""
    words = {one.name: change_words(found, one) for one in found.parameters}
    if every:
        shown = list(found.parameters)
    else:
        kept = [one for one in found.parameters if words[one.name] in ("changed", "perhaps")]
        shown = sorted(kept, key=lambda one: -one.largest)
    for first in range(1, len(found.names), _ABREAST - 1) if shown else ():
        console.print(_parameter_table(found, shown, words, range(first, min(first + _ABREAST - 1, len(found.names)))))
    hidden = len(found.parameters) - len(shown)
    if hidden:
        console.print(Text(f"{hidden} of {len(found.parameters)} parameters not shown; --all shows them.", style="dim"))


def _parameter_table(
    found: FitComparison, shown: Sequence[ParameterChange], words: dict[str, str], runs: range
) -> Table:
    """The first run, and beside it each other one with its distance; wide names of a unit are left to the page."""
    title = f"Parameters, and their distance from {found.names[0]} in deviations"
    table = Table(box=SIMPLE_HEAD, title=title, title_style="bold", title_justify="left", padding=(0, 1, 0, 0))
    table.add_column("parameter", overflow="fold")
    table.add_column(found.names[0], justify="right", no_wrap=True)
    for run in runs:
        table.add_column(found.names[run], justify="right", no_wrap=True)
        table.add_column("dev.", justify="right", no_wrap=True)
    if len(found.names) == 2:
        table.add_column("unit", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for one in shown:
        row = [one.name, _value(one, 0)]
        for run in runs:
            apart = one.values[run] is None or run == one.reference
            row += [_value(one, run), "" if apart else z_words(one.deviations[run])]
        unit = [one.unit] if len(found.names) == 2 else []
        word = words[one.name]
        table.add_row(*map(Text, [*row, *unit]), Text(word, style=_STYLES.get(word, "")))
    return table


def _value(one: ParameterChange, run: int) -> str:
    value = one.values[run]
    return NOTHING if value is None else number(value, 4, zeros=True)
