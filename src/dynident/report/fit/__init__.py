"""`report_html`: a fit as one HTML file that needs nothing else; without scripts it can still be read."""

from __future__ import annotations

from dataclasses import replace

from dynident.estimate.fit import Fit
from dynident.report.fit import bodies, excitation, friction, parameters, provenance, residuals, summary
from dynident.report.html import page
from dynident.report.plot_data import ReportData
from dynident.report.text import plural

_OPEN = ("verdict", "torque", "errors", "warnings", "parameters")  # sections that are not folded at first


def report_html(fit: Fit, data: ReportData | None = None, *, command: str = "") -> str:
    """The report of an identification.

    Args:
        fit: What to report; every number of the page comes from it.
        data: Plots of the logs, see `load_report_data`; without them the sections that need them are left out.
        command: The command that makes the same result again; default the one that the fit remembers.

    Returns:
        The page, to be written as UTF-8.
    """
    data = data or ReportData()
    links = bodies.find_bodies(fit)
    sections = [
        summary.verdict_section(fit),
        summary.torque_section(fit, data.traces),
        summary.errors_section(fit),
        summary.warnings_section(fit.warnings),
        parameters.parameters_section(fit),
        friction.friction_section(fit),
        residuals.residuals_section(fit, data.traces),
        provenance.check_section(fit),
        bodies.robot_section(fit, links),
        bodies.physicality_section(links),
        excitation.excitation_section(fit),
        provenance.notes_section(fit),
        provenance.data_section(fit),
        provenance.differentiators_section(fit, data.motion),
        provenance.uncertainty_section(fit),
        provenance.options_section(fit, command or fit.command),
    ]
    sections = [one if one is None else replace(one, folded=one.key not in _OPEN) for one in sections]
    logs = plural(len(fit.data), "training log")
    if fit.validation:
        logs += f", {len(fit.validation)} held out"
    facts = f"{plural(len(fit.robot.joint_names), 'joint')}, {plural(len(fit.names), 'base parameter')}, {logs}"
    return page(f"{fit.robot.name}: identified dynamics", sections, version=fit.version, facts=facts)
