"""`ParameterEstimate`: the one result of every method that estimates parameters, and how it was solved."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Self

import numpy as np

from dynident.arrays import Array, Mask, finite_or_none, frozen, frozen_mask, place_of, record
from dynident.display import data_frame, html_table
from dynident.errors import InputError, UnknownNameError
from dynident.identifiability.regrouping import Regrouping

Plain = None | bool | int | float | str | list[Any] | dict[str, Any]  # what JSON and YAML hold


@record
class SolveRecord:
    """How a least-squares problem was solved, and what its residuals were.

    Attributes:
        rank: Directions that the data determines.
        singular_values: Of the weighted factor with columns scaled to unit norm, largest first.
        condition: Ratio of the first to the last of the `rank` singular values.
        gap: The last singular value kept and the first dropped, as shares of the largest.
        channels: Output channels.
        residual_std: (n_channels,) standard deviation of each channel's residual [N·m or N].
        channel_weights: (n_channels,) one over the square of what each channel was divided by.
        determined: (n,) whether the data alone, without a prior, determines each parameter.
        n_rows: Equations.
        iterations: Rounds of weighting.
        covariance_kind: What the covariance allows for: "white", "segments", or in words.
        variance_inflation: (n_channels,) rows that weigh as much as one independent row; None where residuals are
            taken as white.
        std_white_noise: (n,) standard deviations by the textbook formula for white noise; None where they are those.
        null_space: (n, k) combinations of parameters along which the data says nothing; None if there are none.
        warnings: What a reader should know.
    """

    rank: int
    singular_values: Array
    condition: float
    gap: tuple[float, float]
    channels: tuple[str, ...]
    residual_std: Array
    channel_weights: Array
    determined: Mask
    n_rows: float
    iterations: int
    covariance_kind: str = "white"
    variance_inflation: Array | None = None
    std_white_noise: Array | None = None
    null_space: Array | None = None
    warnings: tuple[str, ...] = ()

    def replace(self, **changes: Any) -> Self:
        """The same with other fields."""
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True)
class Parameter:
    """One parameter of an estimate.

    Attributes:
        name: Such as MXR2.
        value: In its unit.
        std: Standard deviation; None where the data does not determine it.
        relative_std: The same as a share of the value; None at zero.
        unit: Unit.
        category: unique or combination.
        determined: Whether the data determines it.
        expression: What it stands for in standard parameters.
        meaning: The parameter that it is named after, in words.
    """

    name: str
    value: float
    std: float | None
    relative_std: float | None
    unit: str
    category: str
    determined: bool
    expression: str
    meaning: str

    def __str__(self) -> str:
        """A line: MXR2 = -8.723 ± 0.010 kg·m: first moment ..."""
        known = f"± {std_text(self.std)} {self.unit}" if self.determined else f"{self.unit}, not determined"
        regrouped = f" = {self.expression}" if self.expression != self.name else ""
        return f"{self.name} = {self.value:.5g} {known}: {self.meaning or self.category}{regrouped}"


@record
class ParameterEstimate:
    """Values of parameters and how uncertain they are.

    Attributes:
        names: Names of the parameters.
        units: Their units.
        values: (n,).
        covariance: (n, n) over the determined directions.
        determined: (n,) whether each parameter is determined by the data and, where there is one, a prior.
        coordinates: What the parameters are: expressions, categories; base parameters know robot and terms as well.
        linearization: (10 n_links,) standard parameters of the links that some terms are linearized around; or None.
        solve: How they were found; None where no least-squares problem stands behind them.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Array
    covariance: Array
    determined: Mask
    coordinates: Regrouping | None = None
    linearization: Array | None = None
    solve: SolveRecord | None = None

    @classmethod
    def of(cls, coordinates: Regrouping, values: Array, covariance: Array, determined: Any, **more: Any) -> Self:
        """Values of base parameters, which have their names and units."""
        names, units = coordinates.names, coordinates.units
        return cls(names, units, values, covariance, determined, coordinates=coordinates, **more)

    @property
    def std(self) -> Array:
        """(n,) standard deviations; infinite where a parameter is not determined."""
        return frozen(np.where(self.determined, np.sqrt(np.maximum(np.diag(self.covariance), 0.0)), np.inf))

    @property
    def relative_std(self) -> Array:
        """(n,) standard deviations as a share of the values; infinite at zero."""
        with np.errstate(divide="ignore"):
            return np.where(self.values == 0.0, np.inf, self.std / np.abs(np.where(self.values, self.values, 1.0)))

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Parameters that are not determined."""
        return tuple(name for name, known in zip(self.names, self.determined, strict=True) if not known)

    @property
    def rank(self) -> int:
        """Directions that the data determines."""
        return int(self.determined.sum()) if self.solve is None else self.solve.rank

    @property
    def condition(self) -> float:
        """Condition number of the weighted data with scaled columns; NaN where nothing was solved."""
        return float("nan") if self.solve is None else self.solve.condition

    @property
    def sigma(self) -> Array:
        """(n_channels,) standard deviation of each channel's residual [N·m or N]."""
        return np.zeros(0) if self.solve is None else self.solve.residual_std

    @property
    def n_rows(self) -> float:
        """Equations behind the estimate."""
        return 0.0 if self.solve is None else self.solve.n_rows

    def __getitem__(self, name: str) -> float:
        """Value of a parameter by name."""
        return float(self.values[place_of(name, self.names, "base parameter")])

    def __repr__(self) -> str:
        """A line, not the numbers."""
        return f"{type(self).__name__}({int(self.determined.sum())} of {len(self.names)} parameters determined)"

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper ends of the confidence intervals, (n,) each, for normal errors."""
        if not 0.0 < level < 1.0:
            raise InputError(f"level is {level}; expected a share between 0 and 1, such as 0.95")
        half = NormalDist().inv_cdf(0.5 + 0.5 * level) * self.std
        return self.values - half, self.values + half

    def rows(self) -> list[dict[str, Any]]:
        """The parameters as plain data, one mapping each; what is not known is None."""
        own, std, relative = self.coordinates, self.std, self.relative_std
        white = None if self.solve is None else self.solve.std_white_noise
        white = std if white is None else white
        expressions = self.names if own is None else own.expressions
        categories = [""] * len(self.names)
        if own is not None:
            by_column = own.categories
            categories = [by_column[own.columns[j].name] for j in own.independent]
        return [
            {
                "name": name,
                "value": float(self.values[i]),
                "std": finite_or_none(std[i]),
                "relative_std": finite_or_none(relative[i]),
                "white_std": finite_or_none(white[i]),
                "unit": self.units[i],
                "category": categories[i],
                "determined": bool(self.determined[i]),
                "expression": expressions[i],
            }
            for i, name in enumerate(self.names)
        ]

    def table(self) -> str:
        """The parameters as text: name, value, standard deviation, relative one, unit, category, expression."""
        head = ("parameter", "value", "std", "rel. std", "unit", "category", "stands for")
        return text_table(head, [_cells(row) for row in self.rows()], ("value", "std", "rel. std"))

    def to_dict(self) -> dict[str, Plain]:
        """Plain data: one mapping for each parameter, rank and condition."""
        condition = None if not np.isfinite(self.condition) else self.condition
        return {"parameters": self.rows(), "rank": self.rank, "condition": condition}

    def to_frame(self, library: str | None = None) -> Any:
        """The parameters as a data frame of pandas or polars, see `rows`."""
        rows = self.rows()
        return data_frame({key: [row[key] for row in rows] for key in rows[0]} if rows else {}, library, index="name")

    def parameter(self, name: str) -> Parameter:
        """All that is known of a parameter.

        Raises:
            UnknownNameError: Naming the nearest one.
        """
        place = place_of(name, self.names, "base parameter")
        row, own = self.rows()[place], self.coordinates
        meaning = "" if own is None else own.columns[own.independent[place]].meaning
        return Parameter(**{key: x for key, x in row.items() if key != "white_std"}, meaning=meaning)

    def _repr_html_(self) -> str:
        head = ("parameter", "value", "std", "rel. std", "unit", "category", "stands for")
        return html_table(head, [_cells(row) for row in self.rows()], repr(self))

    def restrict(self, names: Iterable[str]) -> ParameterEstimate:
        """Only some of the parameters, with their part of the covariance."""
        wanted = list(names)
        for name in wanted:
            if name not in self.names:
                raise UnknownNameError("base parameter", name, self.names)
        own = [self.names.index(name) for name in wanted]
        return ParameterEstimate(
            tuple(wanted),
            tuple(self.units[i] for i in own),
            self.values[own],
            self.covariance[np.ix_(own, own)],
            self.determined[own],
        )

    def transform(self, matrix: Array, names: Sequence[str], units: Sequence[str]) -> ParameterEstimate:
        """Linear combinations matrix @ values, (m, n), with their covariance."""
        mixed = np.asarray(matrix, dtype=np.float64)
        if mixed.shape != (len(names), len(self.names)) or len(units) != len(names):
            raise InputError(f"matrix must have shape ({len(names)}, {len(self.names)}); got {mixed.shape}")
        open_part = np.abs(mixed) @ ~self.determined > 0.0
        return ParameterEstimate(
            tuple(names), tuple(units), mixed @ self.values, mixed @ self.covariance @ mixed.T, frozen_mask(~open_part)
        )

    def replace(self, **changes: Any) -> Self:
        """The same with other fields."""
        return dataclasses.replace(self, **changes)


def text_table(head: Sequence[str], lines: Sequence[Sequence[str]], right: Sequence[str]) -> str:
    """Lines of cells as aligned text, the last column free.

    Args:
        head: Name of each column.
        lines: Cells, as many as there are columns.
        right: Names of the columns that end flush.
    """
    rows = [list(head), *(list(line) for line in lines)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    text = []
    for row in rows:
        cells = [
            cell.rjust(width) if name in right else cell.ljust(width)
            for cell, width, name in zip(row, widths, head, strict=True)
        ]
        text.append("  ".join(cells).rstrip())
    return "\n".join(text)


def std_text(std: float | None) -> str:
    """A standard deviation, or the words for having none."""
    return "not known" if std is None or std == float("inf") else f"{std:.2g}"


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    relative = row["relative_std"]
    return (
        row["name"],
        f"{row['value']:.5g}",
        std_text(row["std"]),
        "" if relative is None else f"{100.0 * relative:.3g} %",
        row["unit"],
        row["category"],
        row["expression"],
    )
