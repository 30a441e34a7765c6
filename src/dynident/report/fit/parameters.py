"""What can be trusted, at a glance: every standard parameter of every link in one table of marks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dynident.estimate.fit import Fit
from dynident.identifiability.base import BaseParameters
from dynident.report.fit.trust import Trust, trust_of
from dynident.report.html import Html, element, paragraphs
from dynident.report.text import percent
from dynident.robot.parameters import LINK_SYMBOLS

_MARKS: Mapping[Trust, str] = {"good": "●", "fair": "◑", "weak": "○", "not determined": "✕"}
_CLASSES: Mapping[Trust, str] = {"good": "good", "fair": "fair", "weak": "weak", "not determined": "none"}
_ELEMENTS = ("Ia", "Fv", "Fc", "Fo")


def trust_map(estimate: Fit) -> Html:
    """A table of links and symbols; each cell says how far that number can be trusted, and in which sum it is known."""
    base = estimate.base
    cells = _cells(estimate)
    symbols = [s for s in (*LINK_SYMBOLS, *_ELEMENTS) if any(c.symbol == s for c in base.columns)]
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
    key = [
        *(("good", "●", "known to 5 %"), ("fair", "◑", "known to 15 %"), ("weak", "○", "less well")),
        *(("none", "✕", "not told by this data"), ("sum", "+", "only in a sum: hover or focus to see it")),
        *(("sum", "→", "regrouped into the sums of others"), ("no", "·", "no effect on torque")),
    ]
    legend = element(
        "ul",
        *(
            element("li", element("b", mark, class_=f"cell {kind}", aria_hidden="true"), words)
            for kind, mark, words in key
        ),
        class_="key",
    )
    told = (
        "A mark stands for each number of each link. Most numbers of a robot cannot be known one by one: what joint "
        "torque tells are sums of them, and the mark is that of the sum."
    )
    return element("div", element("h3", "What can be trusted"), paragraphs(told), legend, _scrolled(grid))


def _scrolled(grid: Html) -> Html:
    return element("div", grid, class_="wide", role="region", aria_label="Trust in every parameter", tabindex=0)


def _cells(estimate: Fit) -> dict[str, Html]:
    """A cell for each standard parameter, by name."""
    base = estimate.base
    rows = dict(zip(base.independent, estimate.rows(), strict=True))
    categories = base.categories
    found = {}
    for j, column in enumerate(base.columns):
        category = categories[column.name]
        if category == "no effect":
            found[column.name] = _cell("·", "no", f"{column.name} has no effect on any joint torque")
        elif category == "fixed":
            found[column.name] = _cell("=", "no", f"{column.name} is given as {column.fixed:g}")
        elif j in rows:
            row, trust = rows[j], trust_of(rows[j])
            sum_ = row["expression"] != row["name"]
            known = "not determined" if trust == "not determined" else f"known to {percent(row['relative_std'])}"
            what = f"{row['name']} = {row['expression']}" if sum_ else row["name"]
            found[column.name] = _cell(_MARKS[trust] + ("+" if sum_ else ""), _CLASSES[trust], f"{what}: {known}")
        else:
            found[column.name] = _cell("→", "sum", f"{column.name} is part of {_sums(base, j)}")
    return found


def _sums(base: BaseParameters, column: int) -> str:
    return ", ".join(base.names[row] for row in np.flatnonzero(base.K[:, column]))


def _cell(mark: str, kind: str, told: str) -> Html:
    return element("td", element("span", mark, title=told, tabindex=0, aria_label=told), class_=f"cell {kind}")
