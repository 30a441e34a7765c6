"""A payload as a page and as text: ten numbers in a frame that is named, and how they were found."""

from __future__ import annotations

import numpy as np

from dynident.estimate.fit import Fit
from dynident.information.parameter_estimate import text_table
from dynident.payload.identification import PayloadEstimate
from dynident.payload.known_payload import PayloadComparison
from dynident.pipeline.known_payload import KnownPayloadCheck
from dynident.report.experiments import linked_section, page_html, verdict_section
from dynident.report.html import Head, Section, Table, Text, bullets
from dynident.report.text import number, percent, sentence

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


def known_text(check: KnownPayloadCheck) -> str:
    """A known payload against what was found, for a terminal."""
    lines = []
    if check.numbers:
        rows = [
            (one.name, f"{one.predicted:.5g}", f"{one.loaded:.5g}", f"{one.loaded_std:.2g}", f"{one.deviations:.2g}",
             one.agreement)
            for one in check.numbers
        ]  # fmt: skip
        head = ("number", "known", "found", "std", "diff/std", "")
        lines += ["Against the known payload:", "", text_table(head, rows, ("known", "found", "std")), ""]
    if check.parameters is not None:
        lines += ["What it must change in the base parameters, and what it does change:", ""]
        lines += [_changes(check.parameters), "", _agreeing(check.parameters)]
    return "\n".join([*lines, *(f"Note: {sentence(note)}" for note in check.notes)])


def _changes(found: PayloadComparison) -> str:
    """The parameters that the payload changes, within the width of a terminal."""
    head = ("parameter", "unloaded", "predicted", "loaded", "std", "diff/std", "")
    rows = [
        (row.name, f"{row.unloaded:.4g}", f"{row.predicted:.4g}", f"{row.loaded:.4g}",
         f"{np.hypot(row.unloaded_std, row.loaded_std):.2g}", f"{row.deviations:.2g}", row.agreement)
        for row in found.changed
    ]  # fmt: skip
    return text_table(head, rows, ("unloaded", "predicted", "loaded", "std"))


def _agreeing(found: PayloadComparison) -> str:
    own = [row.agreement for row in found.rows]
    words = {"agrees": "agree", "doubtful": "are doubtful", "differs": "differ", "not determined": "are not determined"}
    counted = ", ".join(f"{own.count(word)} {text}" for word, text in words.items() if word in own)
    return f"Of all {len(own)} parameters {counted}. Expected are 95 % within two standard deviations."


def known_sections(check: KnownPayloadCheck) -> list[Section]:
    """The same as sections of a page."""
    sections = []
    texts = [Head("Number"), *(Head(text, True) for text in ("Known", "Found", "Std", "Difference/std")), Head("")]
    if check.numbers:
        rows = [
            [one.name, number(one.predicted, 5), number(one.loaded, 5), number(one.loaded_std, 2),
             number(one.deviations, 2), one.agreement]
            for one in check.numbers
        ]  # fmt: skip
        sections.append(linked_section("Known payload", [Table("Known numbers against identified ones", texts, rows)]))
    if check.parameters is not None:
        columns = ("Unloaded", "Std", "Predicted", "Loaded", "Std", "Difference/std")
        heads = [Head("Parameter"), *(Head(text, True) for text in columns), Head("")]
        cells = [
            [row.name, number(row.unloaded, 4), number(row.unloaded_std, 2), number(row.predicted, 4),
             number(row.loaded, 4), number(row.loaded_std, 2), number(row.deviations, 2), row.agreement]
            for row in check.parameters.changed
        ]  # fmt: skip
        table = Table("Base parameters that the payload changes", heads, cells)
        sections.append(linked_section("Parameters with it", [table, Text(_agreeing(check.parameters))]))
    if check.notes:
        sections.append(linked_section("About it", [bullets([sentence(note) for note in check.notes])]))
    return sections


def known_html(check: KnownPayloadCheck, fit: Fit, command: str = "") -> str:
    """The page of a known payload and two fits."""
    assert check.parameters is not None
    verdict = f"Known payload: {percent(check.parameters.agreeing)} of the parameters agree"
    sections = [verdict_section(verdict, [_agreeing(check.parameters)]), *known_sections(check)]
    return page_html(f"{fit.robot.name}: known payload", sections, (), (), command)


def payload_html(found: PayloadEstimate, fit: Fit, command: str = "", check: KnownPayloadCheck | None = None) -> str:
    """The HTML page, to be written as UTF-8.

    Args:
        found: The payload.
        fit: The fit of the robot without it.
        command: The command that does it again; left out when empty.
        check: A known payload against it.
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
    sections += known_sections(check) if check is not None else []
    if found.notes:
        sections.append(linked_section("Notes", [bullets([sentence(note) for note in found.notes])]))
    return page_html(f"{fit.robot.name}: payload", sections, (), found.warnings, command)
