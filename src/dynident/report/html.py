"""HTML as a type: text becomes markup only by being escaped, so nothing from a file can act as markup."""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files

from dynident.report.text import printable

_VOID = {"meta", "br", "wbr"}
_BLOCKS = {"section", "div", "p", "h1", "h2", "h3", "table", "caption", "thead", "tbody", "tr", "ul", "li", "figure"}
_BLOCKS |= {"details", "summary", "dl", "nav", "header", "main", "footer", "svg", "style", "title", "head", "body"}
_LONG_NAME = 20  # characters; shorter ones stay on a line
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|Hz|N·m|N|ms|s|min|h)(?!\w))")


class Html(str):
    """Text that is markup."""

    __slots__ = ()


def escaped(content: object) -> Html:
    """Markup as it is, anything else as text, in which a unit stays on the line of its number."""
    if isinstance(content, Html):
        return content
    return Html(_BEFORE_UNIT.sub("&nbsp;", html.escape(printable(content))))


def joined(parts: Iterable[object]) -> Html:
    """Parts one after the other."""
    return Html("".join(escaped(part) for part in parts))


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
    return Html(f"<{tag}{own}>{joined(content)}</{tag}>{end}")


@dataclass(frozen=True)
class Head:
    """Head of a table's column.

    Attributes:
        text: What it says.
        numeric: Whether its cells are numbers, set flush right.
        class_: Class of its cells.
    """

    text: str
    numeric: bool = False
    class_: str = ""

    @property
    def classes(self) -> str | None:
        """Classes of a cell."""
        return " ".join(filter(None, ("number" if self.numeric else "", self.class_))) or None


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
    return element("div", whole, class_="wide", role="region", aria_label=caption, tabindex=0)


def _row(heads: Sequence[Head], cells: Sequence[object], class_: str | None = None) -> Html:
    first, *others = zip(heads, cells, strict=True)
    named = element("th", breakable(first[1]), scope="row", class_=first[0].classes)
    return element("tr", named, *(element("td", cell, class_=one.classes) for one, cell in others), class_=class_)


def breakable(name: object) -> Html:
    """A name that may be broken after its underscores, slashes and dots if it is long; markup stays as it is."""
    if isinstance(name, Html) or len(str(name)) <= _LONG_NAME:
        return escaped(name)
    return Html(re.sub(r"([_/.])(?=[^_/.])", r"\1<wbr>", escaped(name)))


def section(name: str, title: str, *content: object) -> Html:
    """A section of the page with a heading and a name to link to."""
    return element("section", element("h2", title), *content, id=name)


def paragraphs(*texts: object, class_: str | None = None) -> Html:
    """A paragraph each."""
    return joined(element("p", text, class_=class_) for text in texts)


def bullets(texts: Iterable[object]) -> Html:
    """A list."""
    return element("ul", *(element("li", text) for text in texts))


# ----------------------------------------------------------------------------------------------------------------------
# The script of a page, and the policy that lets nothing but it run.


@functools.cache
def source() -> str:
    """The script's text."""
    return files("dynident.report").joinpath("page.js").read_text(encoding="utf-8")


def policy() -> str:
    """Content security policy: whatever a name in a file says, nothing is fetched, and only our script runs."""
    digest = base64.b64encode(hashlib.sha256(source().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


def script_element() -> Html:
    """The script, for the end of a page's body."""
    return Html(f"<script>{source()}</script>\n")
