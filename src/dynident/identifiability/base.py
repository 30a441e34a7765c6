"""Structural base parameters: what the joint torques of a robot can ever tell about its standard parameters.

The columns of the regressor are looked at from left to right, links from the base outwards and Khalil's order within a
link. A column that depends on those before it is regrouped on them, which is what Khalil's rules do: YY goes to XX and
towards the base, MZ and M go towards the base, rotor inertia goes to ZZ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dynident.checks import Array, frozen
from dynident.dynamics.evaluate import parameters, regressor
from dynident.dynamics.terms import Column, Term, TermsLike, all_columns, resolve_terms
from dynident.errors import InputError, UnknownNameError
from dynident.identifiability.lengths import recognise
from dynident.identifiability.states import ACCELERATION, random_states, reach
from dynident.robot.model import Robot

Category = Literal["unique", "combination", "no effect", "fixed"]
TOLERANCE = 1e-8  # share of a column that must be new for the column to count as independent
_CLEAN = 1e-9  # coefficients this close to a whole number are whole
_FAINT = 3e-5  # an effect this small beside what its kind of parameter usually has deserves a word


@dataclass(frozen=True)
class BaseParameters:
    """The base parameters of a robot for a set of terms.

    Attributes:
        robot: The robot.
        terms: The terms.
        columns: Standard parameters, in regressor order.
        independent: Index into `columns` of each base parameter's own column.
        K: (n, n_columns) with beta = K chi and W = W[:, independent] K.
        coefficients: {(base, column): text} where a coefficient was recognised over the robot's named lengths.
        weakest: Share of the least independent column that no earlier column explains.
        strongest: The same for the dependent column that came nearest to being independent; 0 without one.
        warnings: What a reader should know.
    """

    robot: Robot
    terms: tuple[Term, ...]
    columns: tuple[Column, ...]
    independent: tuple[int, ...]
    K: Array
    coefficients: Mapping[tuple[int, int], str]
    weakest: float
    strongest: float
    warnings: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """Number of base parameters."""
        return len(self.independent)

    @property
    def names(self) -> tuple[str, ...]:
        """Base parameter names: the standard name, with an R before the number where others were regrouped on it."""
        result = []
        for row, index in enumerate(self.independent):
            column = self.columns[index]
            alone = np.count_nonzero(self.K[row]) == 1
            result.append(column.name if alone else f"{column.symbol}R{column.place}")
        return tuple(result)

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

    def base_values(self, values: str | Mapping[str, float] | ArrayLike | None = None) -> Array:
        """beta = K chi of a value set, (n,). Fixed parameters are no part of it."""
        return np.asarray(self.K @ parameters(self.robot, self.terms, values))

    def regressor(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Array:
        """The base columns of the regressor, (n_samples, n_joints, n)."""
        return regressor(self.robot, q, dq, ddq, self.terms)[:, :, list(self.independent)]

    def standard_values(
        self,
        beta: Mapping[str, float] | ArrayLike,
        how: Literal["minimum norm", "regrouped zero"] = "minimum norm",
        prior: str | Mapping[str, float] | ArrayLike | None = None,
    ) -> Array:
        """A full standard vector chi that realises given base values.

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
        start = fixed if prior is None else parameters(self.robot, self.terms, prior)
        gap = target - self.K @ start
        return np.asarray(start + np.linalg.lstsq(self.K, gap, rcond=None)[0])

    def _beta(self, beta: Mapping[str, float] | ArrayLike) -> Array:
        if isinstance(beta, Mapping):
            for name in beta:
                if name not in self.names:
                    raise UnknownNameError("base parameter", str(name), self.names)
            return np.array([beta.get(name, 0.0) for name in self.names])
        vector = np.asarray(beta, dtype=np.float64)
        if vector.shape != (self.n,):
            raise InputError(f"beta must have shape ({self.n},), one value per base parameter; got {vector.shape}")
        return vector

    def _order(self, row: int) -> list[int]:
        """Columns of a relation: its own first."""
        own = self.independent[row]
        return [own, *(int(j) for j in np.flatnonzero(self.K[row]) if j != own)]

    def terms_of(self, row: int) -> list[tuple[int, str]]:
        """(column, coefficient as text) of a relation, its own column first; named lengths where recognised."""
        return [(j, self.coefficients.get((row, j), f"{self.K[row, j]:.6g}")) for j in self._order(row)]

    def _expression(self, row: int) -> str:
        text = ""
        for j, coefficient in self.terms_of(row):
            sign, size = ("-", coefficient[1:]) if coefficient.startswith("-") else ("+", coefficient)
            text += f" {sign} {'' if size == '1' else size + ' '}{self.columns[j].name}"
        return text.removeprefix(" + ").strip()


def base_parameters(robot: Robot, terms: TermsLike = None, *, tolerance: float = TOLERANCE) -> BaseParameters:
    """The structural base parameters of a robot.

    Args:
        robot: The robot; locked joints reduce what can be identified.
        terms: Terms of the model; default rigid, Ia, Fv, Fc, Fo.
        tolerance: Share of a column that must be new for the column to count as independent.
    """
    resolved = resolve_terms(terms)
    described = all_columns(robot, resolved)
    free = [j for j, column in enumerate(described) if column.fixed is None]
    W, sizes = scaled_observation(robot, resolved, described)
    effect = [j for j in free if sizes[j] > tolerance]
    independent, weakest, strongest = select_columns(W, effect, tolerance)
    faintest = min((sizes[j] for j in independent), default=1.0)
    dependent = [j for j in effect if j not in set(independent)]
    K = np.zeros((len(independent), len(described)))
    K[np.arange(len(independent)), independent] = 1.0
    if dependent:
        scales = column_scales(robot, described)
        solution = np.linalg.lstsq(W[:, independent], W[:, dependent], rcond=None)[0]
        K[:, dependent] = solution * scales[independent][:, None] ** -1 * scales[dependent]
    texts = recognise(robot, resolved, independent, dependent, K)
    K = cleaned(K)
    for (row, column), (value, _) in texts.items():
        K[row, column] = value
    return BaseParameters(
        robot=robot,
        terms=resolved,
        columns=described,
        independent=tuple(independent),
        K=frozen(K),
        coefficients={place: text for place, (_, text) in texts.items()},
        weakest=weakest,
        strongest=strongest,
        warnings=_warnings(weakest, strongest, min(faintest, weakest)),
    )


def column_scales(robot: Robot, described: Sequence[Column]) -> Array:
    """Typical size of each column, (n_columns,), from the kind of its parameter: W / scales is well scaled."""
    length = reach(robot)
    weight = max(ACCELERATION * length, float(np.linalg.norm(robot.gravity)))
    kinds = {"M": weight * length, "MX": weight, "MY": weight, "MZ": weight, "Fv": 3.0, "Fc": 1.0, "Fo": 1.0}
    return np.array([kinds.get(column.symbol, ACCELERATION) for column in described])


def scaled_observation(robot: Robot, terms: Sequence[Term], described: Sequence[Column]) -> tuple[Array, Array]:
    """The regressor on random states with scaled columns, (n_rows, n_columns), and the size of each column."""
    n_samples = max(30, int(np.ceil(3.0 * len(described) / len(robot.moving))))
    W = regressor(robot, *random_states(robot, n_samples), terms)
    stacked = np.ascontiguousarray(W).reshape(-1, len(described)) / column_scales(robot, described)
    stacked = stacked / np.sqrt(len(stacked))
    return stacked, np.linalg.norm(stacked, axis=0)


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


def cleaned(K: Array) -> Array:
    """Coefficients without rounding noise: whole numbers whole, tiny ones zero."""
    whole = np.round(K)
    close = np.abs(K - whole) < _CLEAN * np.maximum(1.0, np.abs(K))
    return np.where(close, whole, K)


def _warnings(weakest: float, strongest: float, faintest: float) -> tuple[str, ...]:
    found = []
    if faintest < _FAINT:
        found.append(
            f"a base parameter is felt only through an effect of relative size {faintest:.0e}: are angles rounded in "
            f"the robot file (1.5708 for pi/2)? A tolerance of {10 * faintest:.0e} counts it as not identifiable"
        )
    if strongest > 0.0 and weakest / max(strongest, 1e-16) < 1e3:
        found.append(
            f"the rank is not clear-cut: independent columns from {weakest:.1e}, dependent ones up to {strongest:.1e}"
        )
    return tuple(found)
