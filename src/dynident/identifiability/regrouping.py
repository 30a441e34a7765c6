"""Base parameters as relations over standard ones: names, expressions, categories and changes between the two."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.display import brief
from dynident.dynamics.terms import Column
from dynident.errors import InputError, UnknownNameError

Category = Literal["unique", "combination", "no effect", "fixed"]
_CLEAN = 1e-9  # coefficients this close to a whole number are whole


@brief
@dataclass(frozen=True)
class Regrouping:
    """How standard parameters chi combine into base parameters beta = K chi.

    Attributes:
        columns: Standard parameters, in order.
        independent: Index into `columns` of each base parameter's own column.
        K: (n, n_columns), the identity on the independent columns.
    """

    columns: tuple[Column, ...]
    independent: tuple[int, ...]
    K: Array

    def __getstate__(self) -> dict[str, object]:
        """What is copied and pickled: the fields, and nothing worked out from them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def texts(self) -> Mapping[tuple[int, int], str]:
        """{(base, column): text} of the coefficients that have a better text than their number."""
        return {}

    @property
    def n(self) -> int:
        """Number of base parameters."""
        return len(self.independent)

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """Base parameter names: the standard name, with an R before the number where others were regrouped on it."""
        result = []
        for row, index in enumerate(self.independent):
            column = self.columns[index]
            alone = np.count_nonzero(self.K[row]) == 1
            result.append(column.name if alone else f"{column.symbol}R{column.place}")
        return tuple(result)

    @property
    def units(self) -> tuple[str, ...]:
        """Unit of each base parameter."""
        return tuple(self.columns[index].unit for index in self.independent)

    @property
    def expressions(self) -> tuple[str, ...]:
        """Each base parameter over the standard ones, such as `ZZ3 + Ia7 + d8^2 M8`."""
        return tuple(self._expression(row) for row in range(self.n))

    @property
    def relations(self) -> tuple[dict[str, float], ...]:
        """Each base parameter as {standard name: coefficient}."""
        return tuple({self.columns[j].name: float(self.K[row, j]) for j in self._order(row)} for row in range(self.n))

    @property
    def categories(self) -> dict[str, Category]:
        """Category of every standard parameter: unique, combination, no effect or fixed."""
        base = dict(zip(self.independent, self.names, strict=True))
        result: dict[str, Category] = {}
        for j, column in enumerate(self.columns):
            if column.fixed is not None:
                result[column.name] = "fixed"
            elif not self.K[:, j].any():
                result[column.name] = "no effect"
            else:
                result[column.name] = "unique" if base.get(j) == column.name else "combination"
        return result

    def of_category(self, category: Category) -> tuple[str, ...]:
        """Names of the standard parameters of a category."""
        return tuple(name for name, found in self.categories.items() if found == category)

    def standard_values(
        self,
        beta: Mapping[str, float] | ArrayLike,
        how: Literal["minimum norm", "regrouped zero"] = "minimum norm",
        prior: str | Mapping[str, float] | ArrayLike | None = None,
    ) -> Array:
        """A full standard vector chi that realizes given base values.

        Args:
            beta: Base values, (n,) or by name (absent ones are zero).
            how: "minimum norm": nearest to `prior` (or to zero). "regrouped zero": what was regrouped is zero and the
                base value stands on its own column (Khosla & Kanade 1987, section 3.3).
            prior: Value set, mapping or vector to stay near to; only with "minimum norm".

        Returns:
            (n_columns,), with K chi = beta; fixed parameters have their fixed values.
        """
        target = self._beta(beta)
        fixed = np.array([0.0 if column.fixed is None else column.fixed for column in self.columns])
        if how == "regrouped zero":
            if prior is not None:
                raise InputError("a prior has no meaning with 'regrouped zero'; use 'minimum norm'")
            chi = fixed.copy()
            chi[list(self.independent)] = target
            return chi
        if how != "minimum norm":
            raise UnknownNameError("way to fill standard parameters", how, ("minimum norm", "regrouped zero"))
        start = fixed if prior is None else self._prior(prior)
        known = [j for j, column in enumerate(self.columns) if column.fixed is not None]
        start = np.array(start)
        start[known] = fixed[known]
        gap = target - self.K @ start
        return np.asarray(start + np.linalg.lstsq(self.K, gap, rcond=None)[0])

    def _beta(self, beta: Mapping[str, float] | ArrayLike) -> Array:
        if isinstance(beta, Mapping):
            for name in beta:
                if name not in self.names:
                    raise UnknownNameError("base parameter", str(name), self.names)
            return np.array([beta.get(name, 0.0) for name in self.names])
        try:
            vector = np.asarray(beta, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError("beta must be numbers, or a mapping by base parameter name") from None
        if vector.shape != (self.n,):
            raise InputError(f"beta must have shape ({self.n},), one value per base parameter; got {vector.shape}")
        if not np.isfinite(vector).all():
            raise InputError(f"beta of {self.names[int(np.argmin(np.isfinite(vector)))]} is not finite")
        return vector

    def _prior(self, prior: str | Mapping[str, float] | ArrayLike) -> Array:
        """A prior as a standard vector."""
        if isinstance(prior, str):
            raise InputError(f"the prior '{prior}' needs a robot; give a mapping or a vector")
        if isinstance(prior, Mapping):
            return np.array([prior.get(column.name, 0.0) for column in self.columns])
        return np.asarray(prior, dtype=np.float64)

    def _order(self, row: int) -> list[int]:
        """Columns of a relation: its own first."""
        own = self.independent[row]
        return [own, *(int(j) for j in np.flatnonzero(self.K[row]) if j != own)]

    def terms_of(self, row: int) -> list[tuple[int, str]]:
        """(column, coefficient as text) of a relation, its own column first; named lengths where recognized."""
        return [(j, self.texts.get((row, j), f"{self.K[row, j]:.6g}")) for j in self._order(row)]

    def _expression(self, row: int) -> str:
        text = ""
        for j, coefficient in self.terms_of(row):
            sign, size = ("-", coefficient[1:]) if coefficient.startswith("-") else ("+", coefficient)
            text += f" {sign} {'' if size == '1' else size + ' '}{self.columns[j].name}"
        return text.removeprefix(" + ").strip()


def select_columns(W: Array, candidates: Sequence[int], tolerance: float) -> tuple[list[int], float, float]:
    """Walk the columns from left to right and keep those that the kept ones do not explain.

    Args:
        W: (n_rows, n_columns).
        candidates: Columns to look at, in order.
        tolerance: Share of a column's norm that must remain for it to be kept.

    Returns:
        The kept columns, the smallest remaining share among them, the largest among the others.
    """
    Q = np.zeros((W.shape[0], len(candidates)))
    kept: list[int] = []
    weakest, strongest = 1.0, 0.0
    for j in candidates:
        rest = W[:, j] / np.linalg.norm(W[:, j])
        for _ in range(2):  # a second pass removes what rounding left behind in the first
            rest = rest - Q[:, : len(kept)] @ (Q[:, : len(kept)].T @ rest)
        share = float(np.linalg.norm(rest))
        if share > tolerance:
            Q[:, len(kept)] = rest / share
            kept.append(j)
            weakest = min(weakest, share)
        else:
            strongest = max(strongest, share)
    return kept, weakest, strongest


def without_rounding(K: Array) -> Array:
    """Coefficients without rounding noise: whole numbers whole, tiny ones zero."""
    whole = np.round(K)
    close = np.abs(K - whole) < _CLEAN * np.maximum(1.0, np.abs(K))
    return np.where(close, whole, K)
