"""Lines of cells as aligned text."""

from __future__ import annotations

from collections.abc import Sequence


def text_table(head: Sequence[str], lines: Sequence[Sequence[str]], right: Sequence[str]) -> str:
    """Columns aligned, the last one free.

    Args:
        head: Name of each column.
        lines: Cells, as many as there are columns.
        right: Names of the columns that end flush.
    """
    rows = [list(head), *(list(line) for line in lines)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    text = []
    for row in rows:
        cells = [
            cell.rjust(width) if name in right else cell.ljust(width)
            for cell, width, name in zip(row, widths, head, strict=True)
        ]
        text.append("  ".join(cells).rstrip())
    return "\n".join(text)


def deviation_text(std: float) -> str:
    """A standard deviation, or the words for having none."""
    return "not known" if std == float("inf") else f"{std:.2g}"
