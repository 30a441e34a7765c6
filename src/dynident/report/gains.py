"""Drive gains as a page and as text: what each motor's current is worth, and how far to believe it."""

from __future__ import annotations

import numpy as np

from dynident.payload.gains_from_logs import LoggedGains
from dynident.report.experiments import linked_section, page_html, verdict_section
from dynident.report.html import Head, Table, bullets
from dynident.report.text import number, percent, sentence


def gains_text(found: LoggedGains) -> str:
    """The page an engineer reads on a terminal."""
    lines = [_headline(found), "", found.table(), "", _how(found)]
    return "\n".join([*lines, *(f"Note: {sentence(note)}" for note in found.notes)])


def gains_html(found: LoggedGains, command: str = "") -> str:
    """The HTML page, to be written as UTF-8.

    Args:
        found: The gains.
        command: The command that does it again; left out when empty.
    """
    heads = [Head("Joint"), Head("Gain", True), Head("Std", True), Head("Unit"), Head("Nominal", True)]
    rows = [
        [one["joint"], number(one["gain"], 5), number(one["std"], 2), one["unit"], number(one["nominal"], 5),
         number(one["factor"], 5)]
        for one in found.as_dict()["gains"]
    ]  # fmt: skip
    table = Table("Drive gains and what the nominal ones must be multiplied by", [*heads, Head("Factor", True)], rows)
    payload = [[name, number(value, 5)] for name, value in found.found.payload.items()]
    about = "Standard parameters of the payload in the frame of its link, SI"
    beside = Table(about, [Head("Parameter"), Head("Value", True)], payload)
    sections = [
        verdict_section(_headline(found), [_how(found)]),
        linked_section("Gains", [table]),
        linked_section("Payload", [beside]),
        linked_section("Notes", [bullets([sentence(note) for note in found.notes])]),
    ]
    return page_html(f"{found.robot.name}: drive gains", sections, (), found.warnings, command)


def _headline(found: LoggedGains) -> str:
    relative = found.std / np.abs(found.found.gains)
    least, most = percent(float(relative.min())), percent(float(relative.max()))
    what = {"i": "Drive gains", "taum": "Factors on motor torque", "tau": "Factors on joint torque"}[found.kind]
    return f"{what} of {found.robot.name}, known to {least.removesuffix(' %')} to {most}"


def _how(found: LoggedGains) -> str:
    """What the standard deviations allow for."""
    if found.known_std:
        spread = percent(found.known_std)
        return f"Standard deviations allow for correlated residuals and for known values off by {spread}."
    return "Standard deviations allow for correlated residuals; the known values count as exact (see --known-std)."
