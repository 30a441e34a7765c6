"""`dynident papers`: tables and figures of the papers, made again beside the printed values."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynident.cli.arguments import command, output_argument, print_answer
from dynident.errors import InputError
from dynident.options import Answer, Quiet, option

if TYPE_CHECKING:
    from dynident.papers.records import Paper

_ALL = "all"


@dataclass(frozen=True, kw_only=True)
class PapersArguments(Quiet, Answer):
    """`dynident papers` on the command line."""

    paper: str | None = option(
        None,
        "khosla-kanade, gautier, jamisola, kim, abhishek, or all",
        positional=True,
        metavar="PAPER",
        shown="with --list all of them",
    )
    only: tuple[str, ...] = option(
        (), "parts of the paper to make, such as table-3; --list has their names", many=True, metavar="PART"
    )
    list: bool = option(False, "list tables, figures and claims; compute nothing")
    output: str | None = output_argument(None, "page to write beside the tables", "F.html")


def run_papers(options: PapersArguments) -> int:
    """`dynident papers`."""
    from dynident.files import check_target, write_text
    from dynident.papers import PAPERS

    names = list(PAPERS) if options.paper in (None, _ALL) else [str(options.paper)]
    if options.list:
        if options.output is not None or options.only:
            raise InputError("--list computes nothing; leave -o and --only out")
        return _show_list(options, names)
    if options.paper is None:
        raise InputError(f"which paper? Give one of {', '.join(PAPERS)}, all, or --list")
    if options.only and len(names) > 1:
        raise InputError("--only is about one paper; name it in place of all")
    if options.quiet and options.output is None and not options.json:
        raise InputError("--quiet leaves nothing to do; add -o F.html or --json, or leave it out")
    if options.output is not None:
        if Path(options.output).suffix.lower() not in (".html", ".htm"):
            raise InputError(f"{options.output}: -o writes a page; give it a name that ends in .html")
        check_target(options.output)
    begin = time.perf_counter()
    papers = _reproduce(options, names)
    seconds = time.perf_counter() - begin
    if options.output is not None:
        from dynident.papers.sections import papers_html

        write_text(options.output, papers_html(papers, command("papers", options)))
    print_answer(options, lambda: _answer(papers, seconds), lambda: _show(options, papers, seconds))
    return 0 if all(paper.works for paper in papers) else 1


def _reproduce(options: PapersArguments, names: Sequence[str]) -> list[Paper]:
    from dynident.cli.inputs import progress_bar
    from dynident.papers import load_paper, reproduce_paper

    for name in names:
        load_paper(name).only(options.only)  # a wrong name is refused before anything is computed
    papers = []
    with progress_bar(options.quiet or options.json) as progress:
        for place, name in enumerate(names):
            if progress is not None and len(names) > 1:
                progress("papers", place, len(names))
            papers.append(reproduce_paper(name, options.only, progress=progress))
    return papers


def _answer(papers: Sequence[Paper], seconds: float) -> dict[str, Any]:
    return {
        "papers": [paper.as_dict() for paper in papers],
        "works": all(paper.works for paper in papers),
        "seconds": round(seconds, 2),
    }


def _show(options: PapersArguments, papers: Sequence[Paper], seconds: float) -> None:
    from dynident.papers.sections import paper_sections, summary_section, verdict
    from dynident.report.terminal import page_console, print_parts

    console = page_console()
    if len(papers) > 1:
        print_parts([summary_section(papers)], console)
    else:
        for section in paper_sections(papers[0]):
            print_parts([section], console)
            print()
    sys.stdout.flush()
    print(f"{verdict(papers)}.")
    print(f"{seconds:.0f} s")
    if options.output is not None:
        print(f"Page: {options.output}")


def _show_list(options: PapersArguments, names: Sequence[str]) -> int:
    from dynident.papers import load_paper
    from dynident.report.html import Head, Section, Table
    from dynident.report.terminal import page_console, print_parts

    papers = [load_paper(name) for name in names]

    def show() -> None:
        console = page_console()
        for paper in papers:
            rows = [[part.key, part.title, part.why] for part in paper.parts]
            parts = [Table("", [Head("Part"), Head("What"), Head("Why not")], rows, layout="bare")]
            print_parts([Section(paper.key, f"{paper.key}: {paper.name}, {paper.title}", parts)], console)

    return print_answer(options, lambda: {"papers": [paper.as_dict() for paper in papers]}, show)
