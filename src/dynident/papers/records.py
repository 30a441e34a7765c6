"""What a reproduced paper is made of: items beside printed values, tables and figures, and the paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dynident.errors import UnknownNameError
from dynident.report.charts import Curve
from dynident.report.html import Html
from dynident.report.text import number

Value = float | str
EXACT = 1e-9  # what rounding may leave of equations, and of least squares with exact data
_DIGITS = 6  # of a number that is shown
_NOTHING = 1e-3  # of the tolerance: digits of less depend on the processor


@dataclass(frozen=True)
class Item:
    """One number, or word, of a paper beside what comes out here.

    Attributes:
        name: Of the parameter or quantity.
        here: What comes out here.
        printed: What the paper prints; None where it prints nothing.
        corrected: What it should print; None where the printed value stands.
        within: Largest absolute difference from the corrected, else the printed value that counts as reproduced.
        unit: Of the values.
        reason: Why the printed value is corrected, or where a missing one is from.
        more: Further columns of the table, such as initial values.
    """

    name: str
    here: Value
    printed: Value | None = None
    corrected: Value | None = None
    within: float = 0.0
    unit: str = ""
    reason: str = ""
    more: tuple[Value, ...] = ()

    def __post_init__(self) -> None:
        if self.printed is None and self.corrected is None:
            raise ValueError(f"item {self.name}: nothing to compare with")

    @property
    def expected(self) -> Value:
        """The corrected value, or where the printed one stands that."""
        value = self.printed if self.corrected is None else self.corrected
        assert value is not None
        return value

    @property
    def distance(self) -> float:
        """Difference from what is expected in tolerances; infinite between different words, and where not finite."""
        if isinstance(self.here, str) or isinstance(self.expected, str):
            return 0.0 if self.here == self.expected else math.inf
        apart = abs(self.here - self.expected)
        if not math.isfinite(apart):
            return math.inf
        return apart / self.within if self.within else (0.0 if apart == 0.0 else math.inf)

    @property
    def works(self) -> bool:
        """Whether it is reproduced."""
        return self.distance <= 1.0

    @property
    def here_text(self) -> str:
        """What comes out here as text; where zero is expected, what is next to nothing shows no digits of rounding."""
        nothing = max(EXACT, _NOTHING * self.within)
        if self.expected == 0.0 and self.within and isinstance(self.here, float) and abs(self.here) < nothing:
            return f"< {number(nothing, 1)}"
        return value_text(self.here)

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "name": self.name,
            "here": self.here,
            "printed": self.printed,
            "corrected": self.corrected,
            "within": self.within,
            "unit": self.unit,
            "reason": self.reason,
            "more": list(self.more),
            "works": self.works,
        }


def value_text(value: Value | None) -> str:
    """A value as text; nothing for none."""
    if value is None:
        return ""
    return value if isinstance(value, str) else number(value, _DIGITS)


def equation_item(name: str, right: float, printed: float, reason: str, *, unit: str = "") -> Item:
    """An equation by its largest difference from the recursion, corrected and as printed: zero, where it is right."""
    if printed <= EXACT:
        return Item(name, right, 0.0, within=EXACT, unit=unit)
    return Item(name, right, printed, 0.0, EXACT, unit, reason)


@dataclass(frozen=True)
class Graph:
    """A chart that a figure of a paper is reproduced as.

    Attributes:
        title: What it shows.
        curves: What is drawn.
        x_unit, y_unit: Of the axes.
    """

    title: str
    curves: tuple[Curve, ...]
    x_unit: str
    y_unit: str


@dataclass(frozen=True)
class Reproduction:
    """A table or figure of a paper, made again.

    Attributes:
        procedure: What was done, in a sentence or two.
        call: The public function or command that does it.
        items: Its numbers.
        columns: Names of the further columns, `Item.more`.
        notes: What is wrong in the paper, what is assumed, what the numbers say.
        graphs: Charts.
        pictures: Drawings for the page.
    """

    procedure: str
    call: str
    items: tuple[Item, ...]
    columns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    graphs: tuple[Graph, ...] = ()
    pictures: tuple[Html, ...] = ()

    @property
    def works(self) -> bool:
        """Whether every item is reproduced."""
        return all(item.works for item in self.items)

    @property
    def farthest(self) -> Item:
        """The item that is farthest from what is expected, in tolerances; corrected ones first where all are near."""
        far = {id(item): item.distance if item.distance > _NOTHING else 0.0 for item in self.items}
        return max(self.items, key=lambda item: (far[id(item)], item.corrected is not None))


@dataclass(frozen=True)
class Part:
    """A table or figure of a paper, or something that its text claims.

    Attributes:
        key: To ask for it, such as "table-3".
        title: What it shows.
        make: Makes it again; None where there is nothing to compute.
        why: Where there is nothing to compute, what it is.
        found: What came out; None before it was made.
        seconds: How long that took [s].
    """

    key: str
    title: str
    make: Callable[[], Reproduction] | None = None
    why: str = ""
    found: Reproduction | None = None
    seconds: float = 0.0

    @property
    def state(self) -> str:
        """In a word or two."""
        if self.found is None:
            return "nothing to compute" if self.make is None else "not run"
        return "works" if self.found.works else "DIFFERS"

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        plain: dict[str, Any] = {"key": self.key, "title": self.title, "state": self.state}
        if self.found is None:
            return {**plain, "why": self.why} if self.make is None else plain
        found = self.found
        return {
            **plain,
            "procedure": found.procedure,
            "call": found.call,
            "columns": list(found.columns),
            "items": [item.as_dict() for item in found.items],
            "notes": list(found.notes),
            "seconds": round(self.seconds, 2),
        }


@dataclass(frozen=True)
class Paper:
    """A paper with its tables and figures.

    Attributes:
        key: To ask for it, such as "kim".
        authors, title, year: Of the paper; no year where it has none.
        parts: Its tables and figures, in its order, and claims of its text.
    """

    key: str
    authors: str
    title: str
    year: str
    parts: tuple[Part, ...]

    @property
    def name(self) -> str:
        """Authors and year."""
        return f"{self.authors} {self.year}".strip()

    @property
    def works(self) -> bool:
        """Whether all that was made is reproduced."""
        return all(part.found.works for part in self.parts if part.found is not None)

    @property
    def seconds(self) -> float:
        """How long all parts took [s]."""
        return sum(part.seconds for part in self.parts)

    def only(self, keys: Sequence[str]) -> Paper:
        """The same with some parts; all without keys.

        Raises:
            UnknownNameError: For a key that is none of its.
        """
        known = [part.key for part in self.parts]
        for key in keys:
            if key not in known:
                raise UnknownNameError(f"part of {self.key}", key, known)
        return replace(self, parts=tuple(part for part in self.parts if not keys or part.key in keys))

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "paper": self.key,
            "authors": self.authors,
            "title": self.title,
            "year": self.year,
            "works": self.works,
            "seconds": round(self.seconds, 2),
            "parts": [part.as_dict() for part in self.parts],
        }
