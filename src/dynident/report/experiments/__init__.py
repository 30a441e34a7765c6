"""`experiment_html`: a special experiment as one HTML file: verdict, numbers, curves, how it was done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dynident._version import __version__
from dynident.experiments.protocol import Quantity
from dynident.report.html import Head, Html, bullets, document, element, paragraphs, section, table
from dynident.report.text import number


def experiment_html(
    title: str,
    verdict: str,
    facts: Sequence[str],
    sections: Mapping[str, Sequence[Html]],
    *,
    estimates: Sequence[Quantity] = (),
    warnings: Sequence[str] = (),
    command: str = "",
) -> str:
    """The page of an experiment.

    Args:
        title: Robot and experiment.
        verdict: What was found, in one sentence.
        facts: Sentences below it.
        sections: Content by heading, in order: charts (set side by side), tables, paragraphs.
        estimates: The numbers.
        warnings: What a user should know.
        command: The command that does it again; left out when empty.

    Returns:
        The page, to be written as UTF-8.
    """
    main = [element("section", element("h2", verdict), paragraphs(*facts), class_="verdict", id="verdict")]
    if warnings:
        main.append(section("warnings", "Warnings", element("div", bullets(warnings), class_="warnings")))
    if estimates:
        main.append(section("numbers", "Numbers", quantities(estimates)))
    keys = {heading: heading.lower().replace(" ", "-") for heading in sections}
    main += [section(keys[heading], heading, *_side_by_side(parts)) for heading, parts in sections.items()]
    if command:
        main.append(section("again", "Again", element("code", command, class_="command")))
    links = [element("a", heading, href=f"#{key}") for heading, key in keys.items()]
    header = element("header", element("h1", title), element("nav", *links, aria_label="Sections"))
    return document(title, header, element("main", *main), element("footer", f"dynident {__version__}"))


def quantities(estimates: Sequence[Quantity], caption: str = "Estimates with their deviations") -> Html:
    """The numbers as a table."""
    known = any(one.true is not None for one in estimates)
    heads = [Head("Parameter"), Head("Value", True), Head("Deviation", True)]
    heads += [Head("True", True)] if known else []
    rows = []
    for one in estimates:
        std = "not known" if one.std == float("inf") else number(one.std, 2)
        true = [] if not known else ["" if one.true is None else number(one.true, 5)]
        rows.append([one.name, number(one.value, 5), std, *true, one.unit])
    return table(caption, [*heads, Head("Unit")], rows)


def _side_by_side(parts: Sequence[Html]) -> list[Html]:
    """Neighbouring figures in a grid, everything else as it is."""
    laid: list[Html] = []
    figures: list[Html] = []
    for part in [*parts, Html("")]:
        if part.startswith("<figure"):
            figures.append(part)
            continue
        if figures:
            laid.append(element("div", *figures, class_="panels"))
            figures = []
        laid.append(part)
    return laid
