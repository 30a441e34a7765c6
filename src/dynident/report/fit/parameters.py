"""The parameters: a map of what can be trusted, link by link, and the table of base parameters."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Mapping, Sequence

import numpy as np

from dynident.estimate.fit import Fit
from dynident.report.fit.trust import KINDS, TRUST, Trust, trust_mark, trust_of
from dynident.report.html import (
    Cell,
    Head,
    Html,
    Part,
    Section,
    Table,
    Text,
    concatenate,
    element,
    paragraphs,
    scrolling,
)
from dynident.report.text import number, percent, plural, sentence
from dynident.report.thresholds import THRESHOLDS
from dynident.robot.parameters import LINK_SYMBOLS
from dynident.validation.comparison import DIFFERENCE

_DOTS: Mapping[Trust, str] = {"good": "●", "fair": "◑", "weak": "○", "not determined": "✕"}
_GOOD, _FAIR = (f"{100.0 * x:.0f} %" for x in (THRESHOLDS.good_relative_std, THRESHOLDS.fair_relative_std))
_MEANINGS: Mapping[Trust, str] = {
    "good": f"relative standard deviation below {_GOOD}",
    "fair": f"below {_FAIR}",
    "weak": f"{_FAIR} or more",
    "not determined": "not determined by the data",
}
_WIDE = 110  # columns of a terminal from which there is room for what parameters stand for


def parameters_section(estimate: Fit) -> Section:
    """Every base parameter with its uncertainty."""
    text = (
        "Base parameters are the linear combinations of standard parameters that joint torque identifies. Inertias and "
        f"first moments are in link frames, about the frame's origin. Standard deviations {estimate.covariance_kind}. "
        "A value below twice its standard deviation does not differ significantly from zero: the motion did not excite "
        "it enough, or it is small."
    )
    key = [element("li", trust_mark(trust), f": {_MEANINGS[trust]}") for trust in TRUST]
    parts: list[Part] = [
        trust_map(estimate),
        Text("Base parameters", "heading", on="page"),
        Text(text, on="page"),
        element("ul", *key, class_="key"),
        *(Text(sentence(note), "caveat", on="page") for note in estimate.notes if note.startswith(DIFFERENCE)),
        _table(estimate),
        _download(estimate),
        Text(f"Standard deviations {estimate.covariance_kind}.", "soft", on="terminal"),
    ]
    return Section("parameters", "Parameters", parts, "Parameters")


def _table(estimate: Fit) -> Table:
    heads = [
        *(Head("Parameter"), Head("Trust"), Head("Value", True), Head("Std", True), Head("Relative", True)),
        *(Head("Robot file", True, short=""), Head("Unit"), Head("Stands for", class_="long", width=_WIDE)),
        Head("Category", short=""),
    ]
    rows = []
    described = described_values(estimate)
    for row, index, cad in zip(estimate.rows(), estimate.base.independent, described, strict=True):
        meaning = sentence(estimate.base.columns[index].meaning).rstrip(".")
        regrouped = [element("code", row["expression"])] if row["expression"] != row["name"] else []
        numbers = number(row["value"], zeros=True), number(row["std"], 2, zeros=True), percent(row["relative_std"])
        stands_for = Cell(concatenate([meaning, *regrouped]), row["expression"])
        before = "" if cad is None else number(cad, zeros=True)
        rows.append(
            [row["name"], trust_mark(trust_of(row)), *numbers, before, row["unit"], stands_for, row["category"]]
        )
    caption = f"{plural(len(rows), 'base parameter')}, links from the base outwards"
    return Table(caption, heads, rows, title="Parameters")


def described_values(estimate: Fit) -> Sequence[float | None]:
    """Base parameters from the values of the robot's file, beside the identified ones; None where it gives none."""
    base = estimate.base
    if not estimate.robot.link_parameters().any():
        return [None] * base.n
    values = base.base_values()
    known = [
        base.columns[index].term == "rigid" or value != 0.0
        for index, value in zip(base.independent, values, strict=True)
    ]
    return [float(value) if own else None for value, own in zip(values, known, strict=True)]


def _download(estimate: Fit) -> Html:
    """The table as a CSV file that the page carries."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["parameter", "value", "std", "relative_std", "robot_file", "unit", "trust", "category", "expression"]
    )
    for row, cad in zip(estimate.rows(), described_values(estimate), strict=True):
        numbers = (row["value"], row["std"], row["relative_std"], cad)
        cells = ("" if x is None else repr(float(x)) for x in numbers)
        writer.writerow([row["name"], *cells, row["unit"], trust_of(row), row["category"], row["expression"]])
    data = base64.b64encode(text.getvalue().encode()).decode()
    link = element("a", "Download the table as CSV", href=f"data:text/csv;base64,{data}", download="parameters.csv")
    return element("p", link, class_="tools")


def trust_map(estimate: Fit) -> Html:
    """A table of links and symbols; each cell shows how far that parameter can be trusted, and in which combination."""
    base = estimate.base
    cells = _map_cells(estimate)
    symbols = [s for s in (*LINK_SYMBOLS, "Ia", "Fv", "Fc", "Fo") if any(c.symbol == s for c in base.columns)]
    places = list(dict.fromkeys(c.place for c in base.columns if c.symbol in symbols))
    labels = {str(joint.number): f"{joint.number} {joint.name}" for joint in base.robot.joints}
    head = element(
        "tr", element("th", "Link, by its joint", scope="col"), *(element("th", s, scope="col") for s in symbols)
    )
    names = {(c.place, c.symbol): c.name for c in base.columns}
    rows = [
        element(
            "tr",
            element("th", labels.get(place, place), scope="row"),
            *(cells.get(names.get((place, s), ""), element("td", "")) for s in symbols),
        )
        for place in places
    ]
    caption = element("caption", element("span", "Marks of trust, by link and parameter"))
    grid = element("table", caption, element("thead", head), element("tbody", *rows), class_="map")
    marks = [
        *(("good", "●", f"std below {_GOOD}"), ("fair", "◑", f"std below {_FAIR}"), ("weak", "○", "larger std")),
        *(("none", "✕", "not determined by the data"), ("sum", "+", "only in a combination: hover or focus to see it")),
        *(("sum", "→", "regrouped into other parameters"), ("no", "·", "no effect on torque")),
    ]
    key = [
        element("li", element("b", dots, class_=f"cell {kind}", aria_hidden="true"), words)
        for kind, dots, words in marks
    ]
    text = (
        "A mark stands for each standard parameter of each link. Most of them are identifiable only in linear "
        "combination, and then the mark is that of the combination (a base parameter)."
    )
    return element(
        "div",
        element("h3", "What can be trusted"),
        paragraphs(text),
        element("ul", *key, class_="key"),
        scrolling(grid, "Trust in every parameter"),
    )


def _map_cells(estimate: Fit) -> dict[str, Html]:
    """A cell for each standard parameter, by name."""
    base = estimate.base
    rows = dict(zip(base.independent, estimate.rows(), strict=True))
    categories = base.categories
    cells = {}
    for j, column in enumerate(base.columns):
        category = categories[column.name]
        if category == "no effect":
            shown = ("·", "no", f"{column.name} has no effect on any joint torque")
        elif category == "fixed":
            shown = ("=", "no", f"{column.name} is given as {column.fixed:g}")
        elif j in rows:
            row, trust = rows[j], trust_of(rows[j])
            regrouped = row["expression"] != row["name"]
            what = f"{row['name']} = {row['expression']}" if regrouped else row["name"]
            lost = trust == "not determined"
            known = "not determined" if lost else f"relative standard deviation {percent(row['relative_std'])}"
            shown = (_DOTS[trust] + ("+" if regrouped else ""), KINDS[trust], f"{what}: {known}")
        else:
            others = ", ".join(base.names[row] for row in np.flatnonzero(base.K[:, j]))
            shown = ("→", "sum", f"{column.name} is part of {others}")
        dots, kind, words = shown
        mark = element("span", dots, title=words, tabindex=0, aria_label=words)
        cells[column.name] = element("td", mark, class_=f"cell {kind}")
    return cells
