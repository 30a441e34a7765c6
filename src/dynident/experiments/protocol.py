"""What an experiment found: numbers with deviations, warnings, and the shape in which the command line gives them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dynident.errors import DynidentError
from dynident.information.parameter_estimate import std_text, text_table


class ExperimentError(DynidentError):
    """An experiment that had to end without an answer; its runs so far are with the `Bench`."""


@dataclass(frozen=True)
class Quantity:
    """A number that an experiment found.

    Attributes:
        name: What it is, such as ``ZZ3`` or ``inertia``.
        value: Its value.
        std: Standard deviation; infinite where the data does not tell it.
        unit: Its unit.
        true: What the machine really has, where a simulation knows it; None elsewhere.
    """

    name: str
    value: float
    std: float
    unit: str
    true: float | None = None

    def as_dict(self) -> dict[str, float | str | None]:
        """Plain data; a deviation that is not known is None."""
        std = None if self.std == float("inf") else self.std
        row: dict[str, float | str | None] = {"name": self.name, "value": self.value, "std": std, "unit": self.unit}
        return row if self.true is None else {**row, "true": self.true}


def answer(estimates: Sequence[Quantity], warnings: Sequence[str], **more: Any) -> dict[str, Any]:
    """The JSON object of an experiment: estimates, warnings, and what else it has to tell."""
    return {"estimates": [one.as_dict() for one in estimates], "warnings": list(warnings), **more}


def quantity_table(estimates: Sequence[Quantity]) -> str:
    """The numbers as text: name, value, deviation, unit, and where a simulation knows it the true value."""
    known = any(one.true is not None for one in estimates)
    head = ("parameter", "value", "std", *(("true",) if known else ()), "unit")
    lines = []
    for one in estimates:
        true = () if not known else ("" if one.true is None else f"{one.true:.5g}",)
        lines.append((one.name, f"{one.value:.5g}", std_text(one.std), *true, one.unit))
    return text_table(head, lines, ("value", "std", "true"))
