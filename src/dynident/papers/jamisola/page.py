"""The tables of Jamisola, Dadios, Ang as one HTML file, beside the printed values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.papers.jamisola.tables import DISCRIMINATION, PaperRow, PaperTable
from dynident.report.charts import Curve, chart
from dynident.report.experiments import linked_section, page_html, verdict_section
from dynident.report.html import Head, Html, Part, Table, Text


def paper_html(robot: str, tables: Sequence[PaperTable], *, command: str = "") -> str:
    """The page of the paper's tables made again.

    Args:
        robot: Name of the robot.
        tables: The tables.
        command: The command that does it again.
    """
    verdict = "; ".join(one.title for one in tables)
    facts = [f"{one.stage.capitalize()} stage: {' '.join(one.facts)}" for one in tables]
    sections = [verdict_section(verdict, facts)]
    for one in tables:
        heading = f"Table {one.number}" if one.number else f"{one.stage.capitalize()} stage"
        parts: list[Part] = [_period_table(one), *([_curve(one)] if sum(not row.falls for row in one.rows) > 1 else [])]
        sections.append(linked_section(heading, [*parts, *(_candidates(one) if one.candidates else [])]))
    warnings = [warning for one in tables for warning in one.warnings]
    title = f"{robot}: natural oscillations as in the paper"
    return page_html(title, sections, warnings=warnings, command=command)


def _period_table(one: PaperTable) -> Table:
    heads = [Head("Factor", True), *(Head(name, True) for name in one.joints), Head("Printed", True)]
    rows = [[f"{row.factors[0]:.3f}", *_cells(row, len(one.joints)), row.printed or "-"] for row in one.rows]
    return Table(f"Number of periods in {one.updates} updates", heads, rows)


def _cells(row: PaperRow, count: int) -> list[str]:
    return ["falls"] * count if row.falls else [f"{x:.2f}" for x in row.periods]


def _curve(one: PaperTable) -> Html:
    rows = sorted((row for row in one.rows if not row.falls), key=lambda row: row.factors[0])
    factor = np.array([row.factors[0] for row in rows])
    curves = [Curve("counted here (mean of the links)", factor, np.array([np.mean(row.periods) for row in rows]))]
    printed = [(row.factors[0], float(row.printed)) for row in rows if row.printed not in ("", "falls")]
    if printed:
        x, y = np.array(printed).T
        curves.append(Curve("printed", x, y, "predicted"))
    return chart("Periods against the factor", curves, x_unit="factor", y_unit="periods", key=f"paper-{one.stage}")


def _candidates(one: PaperTable) -> list[Part]:
    heads = [
        *(Head(name, True) for name in one.names),
        *(Head(name, True) for name in one.joints),
        Head("Tracking error [deg]", True),
    ]
    rows = [
        [
            *(f"{x:.3f}" for x in row.factors),
            *_cells(row, len(one.joints)),
            "" if row.error is None else f"{np.degrees(row.error):.4f}",
        ]
        for row in one.candidates
    ]
    title = "All combinations; a tracking error where counting cannot tell them from the aim"
    parts: list[Part] = [Table(title, heads, rows), *(Text(fact) for fact in one.candidate_facts)]
    if one.discrimination:
        heads = [Head(DISCRIMINATION[0].capitalize()), *(Head(name.capitalize(), True) for name in DISCRIMINATION[1:])]
        title = "How well the check tells each parameter, and last the combination that it tells least"
        parts.append(Table(title, heads, [list(row) for row in one.discrimination_rows()]))
    return parts
