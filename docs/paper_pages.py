"""What `dynident papers` prints, on the pages of the papers: `python docs/paper_pages.py [PAPER..]` writes it.

Every page has the output of its paper's command between two comments, papers/index.md that of all. Times are left out.
Tests say when a page is no longer true: quick parts each time, whole pages in the long suite.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from dynident import papers
from dynident.cli.command_line import main

FOLDER = Path(__file__).parent / "papers"
PAGES = {
    "khosla-kanade": "khosla-kanade-1987",
    "gautier": "gautier-khalil-restrepo-1995",
    "jamisola": "jamisola-dadios-ang",
    "kim": "kim-1990",
    "abhishek": "abhishek-kr5",
    "all": "index",
}
WIDTH = 118  # columns of the terminal
_reproduce = functools.cache(papers.reproduce_paper)  # once for its own page and for that of all


def printed(words: Sequence[str]) -> str:
    """What the command prints on a terminal of so many columns, without its time."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(WIDTH)
    papers.reproduce_paper = lambda name, only=(), progress=None: _reproduce(name, only)
    try:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            main(["papers", *words])
    finally:
        papers.reproduce_paper = _reproduce.__wrapped__
        os.environ.pop("COLUMNS")
        if before is not None:
            os.environ["COLUMNS"] = before
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    return "\n".join(lines[:-1]).strip("\n")  # the last line is the time


def path_of(paper: str) -> Path:
    """The page of a paper; of all, the index."""
    return FOLDER / f"{PAGES[paper]}.md"


def marks(paper: str) -> tuple[str, str]:
    """The comments between which the output stands."""
    return f"<!-- dynident papers {paper}, written by docs/paper_pages.py -->", "<!-- end of output -->"


def with_output(paper: str, output: str) -> str:
    """The page with this output."""
    begin, end = marks(paper)
    before, rest = path_of(paper).read_text().split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}\n\n```text\n{output}\n```\n\n{end}{after}"


if __name__ == "__main__":
    for name in sys.argv[1:] or [*papers.PAPERS, "all"]:
        path_of(name).write_text(with_output(name, printed([name])))
