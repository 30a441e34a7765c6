"""Pages of the special experiments, from sections: verdict, numbers, curves, how it was done; and the same as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dynident._version import __version__
from dynident.experiments.protocol import ExperimentResult, Quantity
from dynident.report.html import Head, Html, bullets, document, element, paragraphs, section, table
from dynident.report.text import number


class Page(NamedTuple):
    """What a page says.

    Attributes:
        title: Robot and experiment.
        verdict: What was found, in one sentence.
        facts: Sentences below it.
        sections: Content by heading, in order: charts (set side by side), tables, paragraphs.
    """

    title: str
    verdict: str
    facts: Sequence[str]
    sections: Mapping[str, Sequence[Html]]


def experiment_html(found: ExperimentResult, command: str = "") -> str:
    """The HTML page of an experiment, to be written as UTF-8.

    Args:
        found: What it found.
        command: The command that does it again; left out when empty.
    """
    return page_html(_module(found).page(found), found.estimates, found.warnings, command)


def experiment_text(found: ExperimentResult) -> str:
    """The same for a terminal."""
    text: str = _module(found).text(found)
    return text


def _module(found: ExperimentResult) -> Any:
    """The sections of an experiment: `page` and `text`."""
    from dynident.report.experiments import friction, gravity, oscillation, step

    names = {"GravityMoments": gravity, "VelocityFriction": friction, "StepResult": step, "Oscillation": oscillation}
    return names[type(found).__name__]


def page_html(page: Page, estimates: Sequence[Quantity] = (), warnings: Sequence[str] = (), command: str = "") -> str:
    """A page as HTML: verdict, warnings, numbers, sections, and the command that does it again."""
    title, verdict, facts, sections = page
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
