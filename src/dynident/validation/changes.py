"""`parameter_changes`: the parameters of several runs, aligned by name, and how far they are apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dynident.estimate.fit import Fit
from dynident.identifiability.base import column_scales

_SAME_SHARE = 1e-4  # of a column's torque: lengths rounded to 0.1 mm, 1.5708 for pi/2; more is another geometry


@dataclass(frozen=True)
class ParameterChange:
    """A parameter in several runs; what a run does not have or know is None.

    Attributes:
        name: Of the parameter.
        unit: Of its values.
        values: Of each run.
        stds: Their deviations; None also where the data of a run says nothing.
        reference: Place of the first run that has it, which the others are compared with.
        differences: Value of each run minus that of the reference.
        deviations: The same over the deviation of the difference, sqrt(s_1^2 + s_2^2).
        alike: Whether it stands for the same sum of standard parameters in every run that has it.
    """

    name: str
    unit: str
    values: tuple[float | None, ...]
    stds: tuple[float | None, ...]
    reference: int
    differences: tuple[float | None, ...]
    deviations: tuple[float | None, ...]
    alike: bool

    @property
    def shared(self) -> bool:
        """Whether at least two runs have it."""
        return sum(value is not None for value in self.values) > 1

    @property
    def compared(self) -> int:
        """Runs whose difference from the reference can be judged."""
        return sum(z is not None for z in self.deviations)

    @property
    def largest(self) -> float:
        """Largest distance from the reference in deviations of the difference; 0 where none is known."""
        return max((abs(z) for z in self.deviations if z is not None), default=0.0)

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        lists = ("values", "stds", "differences", "deviations")
        return asdict(self) | {name: list(getattr(self, name)) for name in lists}


def parameter_changes(fits: Sequence[Fit]) -> tuple[ParameterChange, ...]:
    """Every parameter of any run: those of the first in their order, then what others have besides."""
    rows = [{row["name"]: row for row in fit.rows()} for fit in fits]
    names = dict.fromkeys(name for own in rows for name in own)
    sums = [_sums(fit) for fit in fits]
    return tuple(
        _change(name, [own.get(name) for own in rows], _alike([own[name] for own in sums if name in own]))
        for name in names
    )


def _sums(fit: Fit) -> dict[str, dict[str, float]]:
    """What each parameter stands for: by name of the standard parameter, the share of its torque that it takes over."""
    base = fit.base
    scales = column_scales(fit.robot, base.columns)
    shares = base.K * scales[list(base.independent), None] / scales
    names = [column.name for column in base.columns]
    return {name: dict(zip(names, row.tolist(), strict=True)) for name, row in zip(base.names, shares, strict=True)}


def _alike(sums: Sequence[dict[str, float]]) -> bool:
    """Whether all sums are the first but for rounding; how a coefficient is written does not count."""
    first, *others = sums
    return all(
        abs(first.get(name, 0.0) - other.get(name, 0.0)) <= _SAME_SHARE for other in others for name in first | other
    )


def _change(name: str, rows: Sequence[dict[str, Any] | None], alike: bool) -> ParameterChange:
    place = next(i for i, row in enumerate(rows) if row is not None)
    first = rows[place]
    assert first is not None
    differences: list[float | None] = []
    deviations: list[float | None] = []
    for i, row in enumerate(rows):
        known = row is not None and i != place
        differences.append(row["value"] - first["value"] if row is not None and known else None)
        deviations.append(_deviations(first, row) if row is not None and known else None)
    return ParameterChange(
        name=name,
        unit=first["unit"],
        values=tuple(None if row is None else row["value"] for row in rows),
        stds=tuple(None if row is None or not row["determined"] else row["std"] for row in rows),
        reference=place,
        differences=tuple(differences),
        deviations=tuple(deviations),
        alike=alike,
    )


def _deviations(first: dict[str, Any], other: dict[str, Any]) -> float | None:
    """Distance in deviations of the difference; None where a run does not determine the parameter."""
    if not (first["determined"] and other["determined"]) or first["std"] is None or other["std"] is None:
        return None
    spread = math.hypot(first["std"], other["std"])
    # Without any deviation, as for parameters that were eliminated in both, there is nothing to measure with.
    return float((other["value"] - first["value"]) / spread) if spread > 0.0 else None
