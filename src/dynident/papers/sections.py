"""Reproduced papers as sections of a report: for the terminal, and as a page."""

from __future__ import annotations

from collections.abc import Sequence

from dynident._version import __version__
from dynident.papers.records import Item, Paper, Part, Reproduction, value_text
from dynident.report.charts import chart
from dynident.report.html import Head, Html, Part as Shown, Section, Table, Text, element, page
from dynident.report.text import number, plural

_WIDE = 150  # columns of a terminal on which the summary has all its columns


def paper_sections(paper: Paper) -> list[Section]:
    """A section for each part that was made, and one for what has nothing to compute."""
    sections = [_part_section(part, part.found) for part in paper.parts if part.found is not None]
    idle = [part for part in paper.parts if part.make is None]
    if idle:
        lines = [Text(f"{part.title}: {part.why}", look="item") for part in idle]
        sections.append(Section("nothing-to-compute", "Nothing to compute", lines, link="Nothing to compute"))
    return sections


def _part_section(part: Part, found: Reproduction) -> Section:
    parts: list[Shown] = [Text(found.procedure), Text(f"By {found.call}", look="soft"), _item_table(found)]
    reasons = dict.fromkeys(item.reason for item in found.items if item.reason)
    parts += [Text(f"{_marks(found.items, reason)}: {reason}", look="item") for reason in reasons]
    parts += [Text(note, look="item") for note in found.notes]
    parts += [
        chart(one.title, one.curves, x_unit=one.x_unit, y_unit=one.y_unit, key=f"{part.key}-{place}")
        for place, one in enumerate(found.graphs)
    ]
    parts += found.pictures
    return Section(part.key, part.title, parts, link=part.title.split(":")[0])


def _marks(items: Sequence[Item], reason: str) -> str:
    """Names of the items that share a reason; of many, how many."""
    names = [item.name for item in items if item.reason == reason]
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} .. {names[-1]}"


def _item_table(found: Reproduction) -> Table:
    """Values here, printed and corrected; columns that no item fills are left out."""
    items = found.items
    known = {
        "Printed": any(item.printed is not None for item in items),
        "Corrected": any(item.corrected is not None for item in items),
        "Unit": any(item.unit for item in items),
    }
    heads = [Head("Quantity"), *(Head(name, True, short=name) for name in found.columns), Head("Here", True)]
    heads += [Head(name, True) for name in ("Printed", "Corrected") if known[name]]
    heads += [Head("Within", True), *([Head("Unit")] if known["Unit"] else []), Head("")]
    heads[-1] = Head("Reproduced", short="")
    rows = []
    for item in items:
        row = [item.name, *map(value_text, item.more), item.here_text]
        row += [value_text(item.printed)] if known["Printed"] else []
        row += [value_text(item.corrected)] if known["Corrected"] else []
        row += [number(item.within, 3) if item.within else "exactly"]
        row += [item.unit] if known["Unit"] else []
        rows.append([*row, "works" if item.works else "DIFFERS"])
    return Table("Here, and in the paper", heads, rows, layout="tight")


def summary_section(papers: Sequence[Paper]) -> Section:
    """All parts line by line: the command, the item that is farthest from what is expected, whether it works."""
    heads = [Head("Part"), Head("Procedure", width=_WIDE), Head("Values", True, width=_WIDE), Head("Farthest")]
    heads += [Head("Here", True), Head("Expected", True), Head("Which", width=_WIDE), Head("State")]
    rows = []
    for paper in papers:
        for part in paper.parts:
            if part.found is None:
                continue
            item = part.found.farthest
            which = "printed" if item.corrected is None else "corrected"
            expected = f"{value_text(item.expected)} {item.unit}".strip()
            row = [f"{paper.key} --only {part.key}", part.title, str(len(part.found.items)), item.name]
            rows.append([*row, item.here_text, expected, which, part.state])
    caption = "The value of each that is farthest from what is expected; the command is dynident papers and the part"
    return Section("summary", "Item by item", [Table(caption, heads, rows, layout="tight")], link="Item by item")


def verdict(papers: Sequence[Paper]) -> str:
    """How much is reproduced, in a sentence."""
    made = [part for paper in papers for part in paper.parts if part.found is not None]
    items = [item for part in made if part.found is not None for item in part.found.items]
    differing = [item for item in items if not item.works]
    what = "table, figure or claim" if len(made) == 1 else "tables, figures and claims"
    counted = f"{len(made)} {what} with {plural(len(items), 'value')}"
    if not differing:
        return f"{counted}: all reproduced"
    return f"{counted}: {len(differing)} not reproduced"


def papers_html(papers: Sequence[Paper], command: str = "") -> str:
    """The page, to be written as UTF-8.

    Args:
        papers: One or more that were made.
        command: The command that does it again; left out when empty.
    """
    facts: list[Shown] = [Text(f"{paper.name}: {paper.title}.") for paper in papers]
    sections = [Section("verdict", f"{verdict(papers)}.", facts)]
    sections += [summary_section(papers)] if len(papers) > 1 else paper_sections(papers[0])
    if command:
        sections.append(Section("again", "Command", [element("code", command, class_="command")]))
    title = "Five papers" if len(papers) > 1 else papers[0].name
    return page(title, sections, version=__version__, facts=Html(""))
