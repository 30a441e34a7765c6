"""`report_html`: a fit as one HTML file that needs nothing else; without scripts it can still be read."""

from __future__ import annotations

from dynident.estimate.fit import Fit
from dynident.estimate.report_data import ReportData
from dynident.report.fit import bodies as links, excitation, friction, provenance, residuals, summary
from dynident.report.html import Html, element, escaped, joined, policy, script_element
from dynident.report.style import CSS
from dynident.report.text import counted

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


def report_html(fit: Fit, data: ReportData | None = None, *, command: str = "") -> str:
    """The report of an identification.

    Args:
        fit: What to report; every number of the page comes from it.
        data: Plots of the logs, see `load_report_data`; without them the sections that need them are left out.
        command: The command that makes the same result again; default the one that the fit remembers.

    Returns:
        The page, to be written as UTF-8.
    """
    data, command = data or ReportData(), command or fit.command
    bodies = links.Bodies.of(fit)
    main = [
        summary.verdict_section(fit),
        summary.warnings_section(fit),
        links.robot_section(fit, bodies),
        summary.errors_section(fit),
        summary.torque_section(fit, data.traces),
        friction.friction_section(fit),
        summary.parameters_section(fit),
        excitation.excitation_section(fit),
        residuals.residuals_section(fit, data.traces),
        links.physicality_section(fit, bodies),
        provenance.notes_section(fit),
        provenance.data_section(fit),
        provenance.check_section(fit),
        provenance.differentiators_section(fit, data.motion),
        provenance.correlation_section(fit),
        provenance.options_section(fit, command),
    ]
    title = f"{fit.robot.name}: identified dynamics"
    footer = element("footer", f"dynident {fit.version}".strip())
    return document(title, _header(fit, joined(main)), element("main", *main), footer)


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


def _header(estimate: Fit, main: str) -> Html:
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
