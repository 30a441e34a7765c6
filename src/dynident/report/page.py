"""`report_html`: an estimate as one HTML file that needs nothing else; without scripts it can still be read."""

from __future__ import annotations

from dynident.estimate.estimate import Estimate
from dynident.report import checkup, excitation, friction, physicality, provenance, residuals, sections
from dynident.report.markup import Html, element, escaped, joined
from dynident.report.script import policy, script_element
from dynident.report.style import CSS
from dynident.report.words import counted

_LINKS = {
    "warnings": "Warnings",
    "robot": "Robot",
    "errors": "Errors",
    "torque": "Torque",
    "friction": "Friction",
    "parameters": "Parameters",
    "excitation": "Excitation",
    "residuals": "Residuals",
    "physicality": "Physicality",
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
        command: The command that makes the same result again; default the one that the estimate remembers.

    Returns:
        The page, to be written as UTF-8.
    """
    command = command or str((estimate.provenance or {}).get("command", ""))
    bodies = physicality.Bodies.of(estimate)
    main = [
        sections.verdict_section(estimate),
        sections.warnings_section(estimate),
        physicality.robot_section(estimate, bodies),
        sections.errors_section(estimate),
        sections.torque_section(estimate),
        friction.friction_section(estimate),
        sections.parameters_section(estimate),
        excitation.excitation_section(estimate),
        residuals.residuals_section(estimate),
        physicality.physicality_section(estimate, bodies),
        provenance.notes_section(estimate),
        provenance.data_section(estimate),
        checkup.check_section(estimate),
        provenance.differentiators_section(estimate),
        provenance.correlation_section(estimate),
        provenance.options_section(estimate, command),
    ]
    title = f"{estimate.robot.name}: identified dynamics"
    footer = element("footer", f"dynident {estimate.version}".strip())
    return document(title, _header(estimate, joined(main)), element("main", *main), footer)


def document(title: str, *body: Html, css: str = "") -> str:
    """A whole page that fetches nothing and runs nothing but the common script; `css` adds to the common style."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{escaped(policy())}">\n'),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Html(CSS + css)),
    )
    return f"<!DOCTYPE html>\n{element('html', head, element('body', *body, script_element()), lang='en')}\n"


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
