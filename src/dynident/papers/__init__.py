"""The papers that dynident grew from: every table and figure made again, beside the printed values."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from dynident.errors import UnknownNameError

if TYPE_CHECKING:
    from dynident.options import Progress
    from dynident.papers.records import Paper

PAPERS = {  # name -> folder of this room
    "khosla-kanade": "khosla_kanade",
    "gautier": "gautier",
    "jamisola": "jamisola",
    "kim": "kim",
    "abhishek": "abhishek",
}
__all__ = ["PAPERS", "load_paper", "reproduce_paper"]


def load_paper(name: str) -> Paper:
    """A paper with what it consists of; nothing is computed yet.

    Args:
        name: One of `PAPERS`.
    """
    if name not in PAPERS:
        raise UnknownNameError("paper", name, list(PAPERS))
    paper: Paper = import_module(f"dynident.papers.{PAPERS[name]}.paper").PAPER
    return paper


def reproduce_paper(name: str, only: Sequence[str] = (), *, progress: Progress | None = None) -> Paper:
    """Make the tables and figures of a paper again.

    Args:
        name: One of `PAPERS`.
        only: Keys of the parts to make, such as "table-3"; default all.
        progress: Called with the name of each part, parts done and parts in all.

    Returns:
        The paper with what came out, part by part (`found`).
    """
    paper, made = load_paper(name).only(only), []
    for place, part in enumerate(paper.parts):
        if progress is not None:
            progress(f"{name}: {part.title}", place, len(paper.parts))
        begin = time.perf_counter()
        if part.make is not None:
            found = part.make()
            part = replace(part, found=found, seconds=time.perf_counter() - begin)
        made.append(part)
    return replace(paper, parts=tuple(made))
