"""Reports on the terminal: the same sections as on the page, by `rich`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from rich import box
from rich.console import Console, JustifyMethod, RenderableType
from rich.table import Table as RichTable
from rich.text import Text as RichText

from dynident.report.html import Cell, Html, Part, Section, Table
from dynident.report.text import printable

_STYLES = {
    "soft": "dim",
    "caveat": "yellow",
    "warning": "yellow",
    "heading": "bold",
    "good": "green",
    "stop": "bold red",
}
_PADDING = {"framed": (0, 1, 0, 1), "tight": (0, 1, 0, 0), "bare": (0, 2, 0, 0)}
_SHORT_CELL = 16  # characters up to which numbers are not broken into lines


class _PageConsole(Console):
    """A console that leaves a closed pipe to its caller."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def page_console() -> Console:
    """The console of the command line; names of a file are shown as they are."""
    return _PageConsole(highlight=False, markup=False, emoji=False)


def print_parts(parts: Iterable[Part], console: Console) -> None:
    """Print what a terminal shows of some parts of a report."""
    for part in parts:
        if isinstance(part, Section):
            console.print(RichText(printable(part.title), style="bold"))
            print_parts(part.parts, console)
        elif isinstance(part, Html) or part.on == "page":
            continue
        elif isinstance(part, Table):
            for table in split_groups(part):
                console.print(rich_table(table, console.width))
        else:
            lead = "Warning: " if part.look == "warning" else ""
            console.print(RichText(f"{lead}{printable(part.words)}", style=_STYLES.get(part.look, "")))


def split_groups(table: Table) -> Iterator[Table]:
    """The table, or where it has many groups of columns several, each with the columns of no group."""
    groups = sorted({head.group for head in table.heads if head.group is not None})
    for first in range(0, max(len(groups), 1), table.abreast):
        own = {None, *groups[first : first + table.abreast]}
        places = [place for place, head in enumerate(table.heads) if head.group in own]
        heads = [table.heads[place] for place in places]
        rows = [[row[place] for place in places] for row in table.rows]
        last = [table.last[place] for place in places] if table.last else ()
        yield replace(table, heads=heads, rows=rows, last=last)


def rich_table(table: Table, width: int = 80) -> RichTable:
    """The table for a terminal of so many columns."""
    shown = [place for place, head in enumerate(table.heads) if head.terminal_text != "" and width >= head.width]
    rows = [[_cell_text(row[place]) for place in shown] for row in (*table.rows, table.last) if row]
    made = RichTable(
        box=None if table.layout == "bare" else box.SIMPLE_HEAD,
        show_header=table.layout != "bare",
        padding=_PADDING[table.layout],
        pad_edge=table.layout == "framed",
        title=table.title or None,
        title_style="bold",
        title_justify="left",
    )
    for place, own in zip(shown, zip(*rows, strict=True), strict=True):
        head = table.heads[place]
        whole = head.numeric and all(len(cell) <= _SHORT_CELL for cell in own if isinstance(cell, RichText))
        justify: JustifyMethod = "right" if head.numeric else "left"
        made.add_column(head.terminal_text, justify=justify, overflow="fold", no_wrap=whole)
    for row in rows:
        made.add_row(*row)
    return made


def _cell_text(cell: object) -> RenderableType:
    if isinstance(cell, Cell):
        return RichText(printable(cell.text), style=cell.style)
    return cell if hasattr(cell, "__rich_console__") else RichText(printable(cell))
