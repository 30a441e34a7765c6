"""The answer of `dynident compare` as a terminal page."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from dynident.report.comparison import (
    change_words,
    data_section,
    errors_section,
    options_section,
    parameter_table,
    runs_section,
    verdict_section,
)
from dynident.report.html import Text
from dynident.report.terminal import print_parts
from dynident.report.text import printable, sentence
from dynident.validation.comparison import FitComparison


def print_comparison(found: FitComparison, console: Console, sources: Sequence[str], *, every: bool = False) -> None:
    """The page an engineer reads after a comparison: sections of the page, in short.

    Args:
        found: The comparison.
        console: Where to print.
        sources: Where each run came from.
        every: Whether to show parameters that agree as well.
    """
    verdict = verdict_section(found)
    print_parts([Text(verdict.title, "heading")], console)
    for name, source in zip(found.names, sources, strict=True):
        console.print(printable(f"  {name}  {source}"), soft_wrap=True)
    print_parts([*verdict.parts, *(Text(sentence(words), "caveat") for words in found.remarks)], console)
    print_parts([*errors_section(found).parts, *runs_section(found).parts], console)
    shown = list(found.parameters)
    if not every:
        worth_a_look = [one for one in shown if change_words(found, one) in ("changed", "perhaps")]
        shown = sorted(worth_a_look, key=lambda one: -one.largest)
    if shown:
        print_parts([parameter_table(found, shown)], console)
    hidden = len(found.parameters) - len(shown)
    if hidden:
        words = f"{hidden} of {len(found.parameters)} parameters not shown; --all shows them."
        print_parts([Text(words, "soft")], console)
    print_parts([*options_section(found).parts, *data_section(found).parts], console)
