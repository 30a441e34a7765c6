"""Pages as data and as HTML: sections of texts, tables and figures that page and terminal both render.

`Html` is markup as a type: text becomes markup only by being escaped, so nothing from a file can act as markup.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal, TypeAlias

from dynident.report.text import printable, sentence

_VOID = {"meta", "br", "wbr"}
_BLOCKS = {"section", "div", "p", "h1", "h2", "h3", "table", "caption", "thead", "tbody", "tr", "ul", "li", "figure"}
_BLOCKS |= {"details", "summary", "dl", "nav", "header", "main", "footer", "svg", "style", "title", "head", "body"}
_LONG_NAME = 20  # characters; shorter ones stay on a line
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|Hz|N·m|N|ms|s|min|h)(?!\w))")


class Html(str):
    """Text that is markup; a terminal does not show it."""

    __slots__ = ()


class Figure(Html):
    """Markup of a figure; neighbors in a section stand side by side."""

    __slots__ = ()


# ----------------------------------------------------------------------------------------------------------------------
# What a report contains, as data.

Place = Literal["both", "page", "terminal"]
TextLook = Literal["", "soft", "caveat", "heading", "item", "warning", "good", "stop"]
Mark = Literal["good", "fair", "weak", "none"]
DOTS: dict[Mark, str] = {"good": "●●●", "fair": "●●○", "weak": "●○○", "none": "○○○"}
STYLES: dict[Mark, str] = {"good": "green", "fair": "cyan", "weak": "yellow", "none": "magenta"}


@dataclass(frozen=True)
class Cell:
    """A cell that page and terminal show differently.

    Attributes:
        page: Text or markup for the page.
        text: For the terminal.
        style: Of the terminal, in words of `rich`.
    """

    page: object
    text: str
    style: str = ""


@dataclass(frozen=True)
class Head:
    """Head of a table's column.

    Attributes:
        text: On the page; empty for a column that only a terminal shows.
        numeric: Whether its cells are numbers, set flush right.
        class_: Class of its cells.
        short: On the terminal, default `text` in lower case; empty for a column that only the page shows.
        width: Columns of a terminal from which it has room there.
        group: Number of the group of columns it belongs to; a terminal shows groups that do not fit in further tables.
    """

    text: str
    numeric: bool = False
    class_: str = ""
    short: str | None = None
    width: int = 0
    group: int | None = None

    @property
    def classes(self) -> str | None:
        """Classes of a cell."""
        return " ".join(filter(None, ("number" if self.numeric else "", self.class_))) or None

    @property
    def terminal_text(self) -> str:
        """On the terminal: RMS error, but joint."""
        if self.short is not None:
            return self.short
        return self.text[:1].lower() + self.text[1:] if self.text[1:2].islower() else self.text


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        caption: What it shows, on the page.
        heads: Columns; the first one names the rows.
        rows: Cells: text, markup, or a `Cell`.
        last: A closing row, set apart.
        title: What it shows, on the terminal.
        on: Where it is shown.
        layout: On the terminal: with heads and a line below them, the same with little room between columns, or bare.
        abreast: Groups of columns that a terminal shows side by side.
    """

    caption: str
    heads: Sequence[Head]
    rows: Sequence[Sequence[object]]
    last: Sequence[object] = ()
    title: str = ""
    on: Place = "both"
    layout: Literal["framed", "tight", "bare"] = "framed"
    abreast: int = 4


@dataclass(frozen=True)
class Text:
    """A paragraph, a heading inside a section, or an item of a list.

    Attributes:
        words: Text, or markup for the page.
        look: How it stands out.
        on: Where it is shown.
    """

    words: object
    look: TextLook = ""
    on: Place = "both"


@dataclass(frozen=True)
class Section:
    """A section of a report.

    Attributes:
        key: Name to link to; empty for a part that is folded away on the page.
        title: Heading.
        parts: Content in order: texts, tables, folded parts; markup and figures for the page only.
        link: Words of the link to it beside the page; default none.
        folded: Whether the page shows its heading alone until it is opened.
        mark: Of a verdict: dots and color before its heading.
    """

    key: str
    title: str
    parts: Sequence[Part]
    link: str = ""
    folded: bool = False
    mark: Mark | None = None


Part: TypeAlias = Text | Table | Section | Html


def mark(word: str, kind: Mark, *, dots: str | None = None, style: str | None = None) -> Cell:
    """A word with dots and a color."""
    shown = element("b", DOTS[kind] if dots is None else dots, aria_hidden="true")
    return Cell(element("span", shown, word, class_=f"mark {kind}"), word, STYLES[kind] if style is None else style)


# ----------------------------------------------------------------------------------------------------------------------
# The data as HTML.


def escape(content: object) -> Html:
    """Markup as it is, anything else as text, in which a unit stays on the line of its number."""
    if isinstance(content, Html):
        return content
    if isinstance(content, Cell):
        return escape(content.page)
    return Html(_BEFORE_UNIT.sub("&nbsp;", html.escape(printable(content))))


def concatenate(parts: Iterable[object]) -> Html:
    """Parts one after the other."""
    return Html("".join(escape(part) for part in parts))


def element(tag: str, *content: object, **attributes: object) -> Html:
    """An element. `class_` is the attribute class, `aria_label` is aria-label; an attribute of None is left out."""
    own = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html.escape(printable(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    end = "\n" if tag in _BLOCKS else ""
    if tag in _VOID:
        return Html(f"<{tag}{own}>\n")
    return Html(f"<{tag}{own}>{concatenate(content)}</{tag}>{end}")


def render(part: Part) -> Html:
    """A part of a report as HTML."""
    if isinstance(part, Html):
        return part
    if isinstance(part, Section):
        content = render_all(part.parts)
        if not part.key:
            return element("details", element("summary", part.title), content)
        if part.key == "verdict":
            dots = () if part.mark is None else (element("b", DOTS[part.mark], aria_hidden="true"),)
            title = element("h2", *dots, part.title)
            return element("section", title, content, id=part.key, class_=f"verdict {part.mark or ''}".strip())
        head = element("summary", element("h2", part.title))
        return element("section", element("details", head, content, open=None if part.folded else ""), id=part.key)
    if isinstance(part, Table):
        places = [place for place, head in enumerate(part.heads) if head.text]
        shown = [[row[place] for place in places] for row in (*part.rows, part.last) if row]
        heads, last = [part.heads[place] for place in places], shown.pop() if part.last else ()
        return table(part.caption, heads, shown, last=last)
    if part.look == "heading":
        return element("h3", part.words)
    return element("p", part.words, class_=part.look if part.look in ("soft", "caveat") else None)


def render_all(parts: Iterable[Part]) -> Html:
    """Parts of a report as HTML: neighboring figures side by side, neighboring items in a list."""
    shown = [part for part in parts if getattr(part, "on", "both") != "terminal"]
    laid: list[Html] = []
    for kind, run in itertools.groupby(shown, _kind):
        if kind == "figure":
            laid.append(element("div", *run, class_="panels"))
        elif kind in ("item", "warning"):
            words = [part.words for part in run if isinstance(part, Text)]
            if kind == "warning":
                laid.append(element("div", bullets(sentence(str(one)) for one in words), class_="warnings"))
            else:
                laid.append(bullets(words))
        else:
            laid += map(render, run)
    return concatenate(laid)


def _kind(part: object) -> str:
    return "figure" if isinstance(part, Figure) else getattr(part, "look", "")


def table(
    caption: str, heads: Sequence[Head], rows: Iterable[Sequence[object]], *, last: Sequence[object] = ()
) -> Html:
    """A table in a box of its own that scrolls sideways when it is wider than the page.

    Args:
        caption: What the table shows.
        heads: Columns; the first one names the rows.
        rows: Cells, text or markup.
        last: A closing row, set apart.
    """
    head = element("tr", *(element("th", one.text, scope="col", class_=one.classes) for one in heads))
    body = [_row(heads, row) for row in rows]
    if last:
        body.append(_row(heads, last, "total"))
    whole = element(
        "table", element("caption", element("span", caption)), element("thead", head), element("tbody", *body)
    )
    return scrolling(whole, caption)


def scrolling(content: Html, label: str) -> Html:
    """A box that scrolls sideways."""
    return element("div", content, class_="wide", role="region", aria_label=label, tabindex=0)


def _row(heads: Sequence[Head], cells: Sequence[object], class_: str | None = None) -> Html:
    first, *others = zip(heads, cells, strict=True)
    named = element("th", breakable(first[1]), scope="row", class_=first[0].classes)
    return element("tr", named, *(element("td", cell, class_=one.classes) for one, cell in others), class_=class_)


def breakable(name: object) -> Html:
    """A name that may be broken after its underscores, slashes and dots if it is long; markup stays as it is."""
    if isinstance(name, (Html, Cell)) or len(str(name)) <= _LONG_NAME:
        return escape(name)
    return Html(re.sub(r"([_/.])(?=[^_/.])", r"\1<wbr>", escape(name)))


def figure(caption: object, *content: object, class_: str | None = None, **attributes: object) -> Figure:
    """A figure with its caption."""
    return Figure(element("figure", element("figcaption", caption), *content, class_=class_, **attributes))


def with_code(text: str) -> Html:
    """Text whose parts between backticks are code."""
    return concatenate(element("code", part) if i % 2 else part for i, part in enumerate(text.split("`")))


def legend(*marks: tuple[str, str]) -> Html:
    """Words beside samples of lines and dots."""
    items = (element("li", element("i", class_=kind, aria_hidden="true"), words) for kind, words in marks)
    return element("ul", *items, class_="legend")


def definitions(rows: Iterable[tuple[object, object]]) -> Html:
    """Names with their values."""
    return element("dl", *(part for name, value in rows for part in (element("dt", name), element("dd", value))))


def section(name: str, title: str, *content: object) -> Html:
    """A section of the page with a heading and a name to link to."""
    return element("section", element("h2", title), *content, id=name)


def paragraphs(*texts: object, class_: str | None = None) -> Html:
    """A paragraph each."""
    return concatenate(element("p", text, class_=class_) for text in texts)


def bullets(texts: Iterable[object]) -> Html:
    """A list."""
    return element("ul", *(element("li", text) for text in texts))


# ----------------------------------------------------------------------------------------------------------------------
# The whole page: style and script stand in it, and a policy lets nothing but that script run.


@functools.cache
def _asset(name: str) -> str:
    return files("dynident.report").joinpath(name).read_text(encoding="utf-8")


def source() -> str:
    """The script's text."""
    return _asset("page.js")


def policy() -> str:
    """Content security policy: whatever a name in a file says, nothing is fetched, and only our script runs."""
    digest = base64.b64encode(hashlib.sha256(source().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


def document(title: str, *body: Html) -> str:
    """A whole page that fetches nothing and runs nothing but the common script."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{escape(policy())}">\n'),
        element("meta", name="generator", content="dynident"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Html(_asset("style.css"))),
    )
    script = Html(f"<script>{source()}</script>\n")
    return f"<!DOCTYPE html>\n{element('html', head, element('body', *body, script), lang='en')}\n"


def page(title: str, sections: Iterable[Section | None], *, version: str, facts: Html | str = "") -> str:
    """The page of a report.

    Args:
        title: Its heading.
        sections: In order; None for one that has nothing to show.
        version: Of dynident, for the foot of the page.
        facts: Below the heading.
    """
    shown = [one for one in sections if one is not None]
    links = [element("a", one.link, href=f"#{one.key}") for one in shown if one.link]
    facts = facts if isinstance(facts, Html) else paragraphs(facts, class_="soft")
    header = element("header", element("h1", title), facts)
    beside = [element("nav", *links, aria_label="Sections")] if links else []
    content = element("div", *beside, element("main", *map(render, shown)), class_="frame" if links else None)
    return document(title, header, content, element("footer", f"dynident {version}".strip()))
