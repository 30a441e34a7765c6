"""Sentences on a terminal, wrapped to its width."""

from __future__ import annotations

import textwrap

from dynident.report.inspection import page_console
from dynident.report.words import printable


def print_prose(text: str, width: int | None = None) -> None:
    """Print lines, each wrapped between words; what is indented hangs two further in. Long paths stay whole.

    Args:
        text: Lines.
        width: Of the terminal; default that of the page.
    """
    room = page_console().width if width is None else width
    for line in text.split("\n"):
        lead = line[: len(line) - len(line.lstrip())]
        hanging = f"{lead}  " if lead else ""
        parts = textwrap.wrap(
            printable(line.strip()),
            room,
            initial_indent=lead,
            subsequent_indent=hanging,
            break_long_words=False,
            break_on_hyphens=False,
        )
        print("\n".join(parts))
