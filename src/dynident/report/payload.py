"""A payload as a page and as text: ten numbers in a frame that is named, and how they were found."""

from __future__ import annotations

from dynident.estimate.fit import Fit
from dynident.payload.identification import PayloadEstimate
from dynident.report.experiments import linked_section, page_html, verdict_section
from dynident.report.html import Head, Table, bullets
from dynident.report.text import number, sentence

_HOW = {
    "loaded": "from loaded runs of {} as identified",
    "joint": "from loaded and unloaded runs of {} together",
}


def payload_text(found: PayloadEstimate, robot: str) -> str:
    """The page an engineer reads on a terminal."""
    lines = [f"Payload {_HOW[found.method].format(robot)}", "", found.table(), "", frame_sentence(found)]
    return "\n".join([*lines, *(f"Note: {note}" for note in found.notes)])


def frame_sentence(found: PayloadEstimate) -> str:
    """Which frame the numbers are in, and about which point."""
    return f"In {found.frame}; inertia about the center of mass, entries of the matrix with their sign."


def payload_html(found: PayloadEstimate, fit: Fit, command: str = "") -> str:
    """The HTML page, to be written as UTF-8.

    Args:
        found: The payload.
        fit: The fit of the robot without it.
        command: The command that does it again; left out when empty.
    """
    mass = found["mass"]
    verdict = (
        "Payload: nothing can be stated"
        if mass.value is None or mass.std is None
        else f"Payload of {number(mass.value, 4)} ± {number(mass.std, 2)} kg"
    )
    heads = [Head("Number"), Head("Value", True), Head("Standard deviation", True), Head("Unit"), Head("Withheld")]
    rows = [
        [one.name, "", "", one.unit, sentence(one.reason)]
        if one.value is None or one.std is None
        else [one.name, number(one.value, 5), number(one.std, 2), one.unit, ""]
        for one in found.numbers
    ]
    if not any(row[-1] for row in rows):
        heads, rows = heads[:-1], [row[:-1] for row in rows]
    sections = [
        verdict_section(verdict, [f"{_HOW[found.method].format(fit.robot.name).capitalize()}.", frame_sentence(found)]),
        linked_section("Numbers", [Table(f"Mass, center of mass and inertia in {found.frame}", heads, rows)]),
    ]
    if found.notes:
        sections.append(linked_section("Notes", [bullets([sentence(note) for note in found.notes])]))
    return page_html(f"{fit.robot.name}: payload", sections, (), found.warnings, command)
