"""`report_html`: an estimate as one HTML file that needs nothing else, neither network nor script."""

from __future__ import annotations

from dynident.estimate.estimate import Estimate
from dynident.report import checkup, friction, provenance, sections
from dynident.report.markup import Html, element, escaped, joined
from dynident.report.style import CSS
from dynident.report.words import counted

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"  # whatever a name in a file says, nothing is fetched or run
_LINKS = {
    "warnings": "Warnings",
    "errors": "Errors",
    "torque": "Torque",
    "friction": "Friction",
    "parameters": "Parameters",
    "decisions": "Decisions",
    "data": "Data",
    "check": "Check",
    "differentiators": "Differentiation",
    "deviations": "Deviations",
    "options": "Options",
}


def report_html(estimate: Estimate, command: str = "") -> str:
    """The report of an identification.

    Args:
        estimate: What to report; every number of the page comes from it.
        command: The command that makes the same result again; left out when empty.

    Returns:
        The page, to be written as UTF-8.
    """
    main = [
        sections.verdict_section(estimate),
        sections.warnings_section(estimate),
        sections.errors_section(estimate),
        sections.torque_section(estimate),
        friction.friction_section(estimate),
        sections.parameters_section(estimate),
        provenance.notes_section(estimate),
        provenance.data_section(estimate),
        checkup.check_section(estimate),
        provenance.differentiators_section(estimate),
        provenance.correlation_section(estimate),
        provenance.options_section(estimate, command),
    ]
    title = f"{estimate.robot.name}: identified dynamics"
    body = element(
        "body",
        _header(estimate, joined(main)),
        element("main", *main),
        element("footer", f"dynident {estimate.version}".strip()),
    )
    return f"<!DOCTYPE html>\n{element('html', page_head(title), body, lang='en')}\n"


def page_head(title: str, css: str = "") -> Html:
    """Head of a page that fetches and runs nothing; `css` adds to the common style."""
    return element(
        "head",
        element("meta", charset="utf-8"),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{escaped(_POLICY)}">\n'),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Html(CSS + css)),
    )


def _header(estimate: Estimate, main: str) -> Html:
    """Title and links to the sections that are there."""
    logs = counted(len(estimate.data), "training log")
    if estimate.validation:
        logs += f", {len(estimate.validation)} held out"
    facts = (
        f"{counted(len(estimate.robot.joint_names), 'joint')}, {counted(len(estimate.names), 'base parameter')}, {logs}"
    )
    links = [element("a", words, href=f"#{name}") for name, words in _LINKS.items() if f'<section id="{name}"' in main]
    return element(
        "header",
        element("h1", estimate.robot.name, ": identified dynamics"),
        element("p", facts, class_="soft"),
        element("nav", *links, aria_label="Sections"),
    )
