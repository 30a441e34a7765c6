"""The tables of Jamisola, Dadios, Ang as one HTML file, beside the printed values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.papers.jamisola.tables import PaperTable
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
        parts: list[Part] = [_table(f"Number of periods in {one.updates} updates", one, *one.period_rows())]
        parts += [_curve(one)] if sum(not row.falls for row in one.rows) > 1 else []
        sections.append(linked_section(heading, [*parts, *(_candidates(one) if one.candidates else [])]))
    warnings = [warning for one in tables for warning in one.warnings]
    title = f"{robot}: natural oscillations as in the paper"
    return page_html(title, sections, warnings=warnings, command=command)


def _table(title: str, one: PaperTable, head: Sequence[str], *rows: Sequence[str]) -> Table:
    own = (*one.names, *one.joints)
    return Table(title, [Head(name if name in own else name.capitalize(), True) for name in head], rows)


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
    title = "All combinations; a tracking error where counting cannot distinguish them from the aim"
    parts: list[Part] = [_table(title, one, *one.candidate_rows()), *(Text(fact) for fact in one.candidate_facts)]
    if one.discrimination:
        head, *rows = one.discrimination_rows()
        title = "How well the check shows each parameter, and last the combination that it shows least"
        parts.append(Table(title, [Head(name.capitalize(), name != head[0]) for name in head], rows))
    return parts
