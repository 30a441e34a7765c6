"""Pages of the special experiments, from sections: verdict, numbers, curves, how it was done; and the same as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dynident._version import __version__
from dynident.experiments.protocol import ExperimentResult, Quantity
from dynident.report.html import Head, Html, Part, Section, Table, Text, bullets, element, page
from dynident.report.text import number

Page = tuple[str, Sequence[Section]]  # title; the verdict, which tells what was found, and further sections


def experiment_html(found: ExperimentResult, command: str = "") -> str:
    """The HTML page of an experiment, to be written as UTF-8.

    Args:
        found: What it found.
        command: The command that does it again; left out when empty.
    """
    title, sections = _module(found).page(found)
    return page_html(title, sections, found.estimates, found.warnings, command)


def experiment_text(found: ExperimentResult) -> str:
    """The same for a terminal."""
    text: str = _module(found).text(found)
    return text


def _module(found: ExperimentResult) -> Any:
    """The sections of an experiment: `page` and `text`."""
    from dynident.report.experiments import friction, gravity, oscillation, step

    names = {"GravityMoments": gravity, "VelocityFriction": friction, "StepResult": step, "Oscillation": oscillation}
    return names[type(found).__name__]


def verdict_section(verdict: str, facts: Sequence[str]) -> Section:
    """What was found in one sentence, and sentences below it."""
    return Section("verdict", verdict, [Text(fact) for fact in facts])


def linked_section(title: str, parts: Sequence[Part]) -> Section:
    """A section that the top of the page links to."""
    return Section(title.lower().replace(" ", "-"), title, parts, link=title)


def page_html(
    title: str,
    sections: Sequence[Section],
    estimates: Sequence[Quantity] = (),
    warnings: Sequence[str] = (),
    command: str = "",
) -> str:
    """A page as HTML: verdict, warnings, numbers, further sections, and the command that does it again."""
    verdict, *others = sections
    shown: list[Section] = [verdict]
    if warnings:
        shown.append(Section("warnings", "Warnings", [element("div", bullets(warnings), class_="warnings")]))
    if estimates:
        shown.append(Section("numbers", "Numbers", [_quantities(estimates)]))
    shown += others
    if command:
        shown.append(Section("again", "Command", [element("code", command, class_="command")]))
    return page(title, shown, version=__version__, facts=Html(""))


def _quantities(estimates: Sequence[Quantity]) -> Table:
    """The numbers as a table."""
    known = any(one.true is not None for one in estimates)
    heads = [Head("Parameter"), Head("Value", True), Head("Std", True)]
    heads += [Head("True", True)] if known else []
    rows = []
    for one in estimates:
        std = "not known" if one.std == float("inf") else number(one.std, 2)
        true = [] if not known else ["" if one.true is None else number(one.true, 5)]
        rows.append([one.name, number(one.value, 5), std, *true, one.unit])
    return Table("Estimates with their standard deviations", [*heads, Head("Unit")], rows)
