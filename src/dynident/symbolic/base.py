"""Base parameters with exact coefficients over a robot's named lengths.

In the closed form every column of the regressor is a sum of independent functions of the state, with polynomials of the
lengths as factors. Columns depend on each other exactly when these factors do, so regrouping is the elimination of a
matrix of polynomials, without states, tolerances or guesses. Which rows and columns matter is found out modulo a large
prime at random lengths; the elimination itself is exact, and its result is checked against every row.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from dynident.display import brief
from dynident.dynamics.evaluate import parameters
from dynident.dynamics.terms import Column, Term, TermsLike, resolve_terms
from dynident.errors import DynidentError
from dynident.identifiability.base import base_parameters
from dynident.robot.model import Robot
from dynident.symbolic.closed_form import ClosedForm, require_closed_form
from dynident.symbolic.model import SymbolicModel, symbolic_model
from dynident.symbolic.polynomials import BITS, Polynomial, factors
from dynident.symbolic.sympy_forms import load_sympy

_PRIME = (1 << 61) - 1
Row = dict[int, Any]  # column -> factor


@brief
@dataclass(frozen=True, eq=False)
class SymbolicBase:
    """Base parameters of a robot with exact coefficients.

    Attributes:
        robot: The robot.
        terms: The terms.
        columns: Standard parameters, in order.
        independent: Index into `columns` of each base parameter's own column.
        K: SymPy matrix (n, n_columns) over the named lengths, beta = K chi; the identity on the independent columns.
        constants: Value of each length (and of gravity, g) that may stand in K.
        warnings: What a reader should know.
    """

    robot: Robot
    terms: tuple[Term, ...]
    columns: tuple[Column, ...]
    independent: tuple[int, ...]
    K: Any
    constants: Mapping[str, float]
    warnings: tuple[str, ...] = ()

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
            alone = sum(self.K[row, j] != 0 for j in range(self.K.cols)) == 1
            result.append(column.name if alone else f"{column.symbol}R{column.place}")
        return tuple(result)

    @property
    def expressions(self) -> tuple[Any, ...]:
        """Each base parameter as a SymPy expression over standard parameters and lengths."""
        return tuple(self._expression(row) for row in range(self.n))

    def _expression(self, row: int) -> Any:
        """Parameters with one and the same coefficient share it."""
        sp = load_sympy()
        shared: dict[Any, list[Any]] = {}
        for j, column in enumerate(self.columns):
            coefficient = self.K[row, j]
            sign = -1 if coefficient.could_extract_minus_sign() else 1
            shared.setdefault(sign * coefficient, []).append(sign * sp.Symbol(column.name))
        parts = []
        for coefficient, own in shared.items():
            flip = -1 if all(x.could_extract_minus_sign() for x in own) else 1
            parts.append(sp.Mul(flip * coefficient, sp.Add(*(flip * x for x in own))))
        return sp.Add(*parts)

    def model(self) -> SymbolicModel:
        """The closed-form equations in base parameters, which have the shortest form."""
        own = [self.columns[index].name for index in self.independent]
        return symbolic_model(self.robot, self.terms, parameters=dict(zip(own, self.names, strict=True)))

    def print_as(self, form: Literal["text", "latex", "python"], values: str | None = None) -> str:
        """Relations and the equations over them, in one of three forms.

        Args:
            form: "text", "latex" or "python".
            values: Value set whose base values the Python functions use when none are given; default the robot's own.
        """
        model = self.model()
        if form == "text":
            return f"{self.text()}\n{model.text()}"
        if form == "latex":
            return f"{self.latex()}\n{model.latex()}"
        relations = "".join(f"#   {line}\n" for line in self.text().splitlines())
        return f"{model.python(values=self.base_values(values))}\n\n# What the parameters are\n{relations}"

    def base_values(self, values: str | None = None) -> dict[str, float]:
        """beta = K chi of one of the robot's value sets, by name."""
        sp = load_sympy()
        chi = parameters(self.robot, self.terms, values)
        lengths = {sp.Symbol(name): value for name, value in self.constants.items()}
        beta = self.K.subs(lengths) * sp.Matrix(chi.tolist())
        return {name: float(x) for name, x in zip(self.names, beta, strict=True)}

    def text(self) -> str:
        """One line per base parameter."""
        sp = load_sympy()
        pairs = list(zip(self.names, self.expressions, strict=True))
        lines = [f"{name} = {sp.sstr(x, full_prec=False)}" for name, x in pairs if str(x) != name]
        single = [name for name, x in pairs if str(x) == name]
        alone = [f"Identified as they are: {', '.join(single)}"] if single else []
        return "\n".join(["Base parameters:", *lines, *alone]) + "\n"

    def latex(self) -> str:
        """The relations as one `align*` block."""
        from dynident.symbolic.model import latex_name

        sp = load_sympy()
        lines = []
        for name, expression in zip(self.names, self.expressions, strict=True):
            if str(expression) != name:
                known = {symbol: latex_name(symbol.name) for symbol in expression.free_symbols}
                lines.append(f"{latex_name(name)} &= {sp.latex(expression, symbol_names=known)}")
        body = " \\\\\n".join(lines)
        return f"% Base parameters\n\\begin{{align*}}\n{body}\n\\end{{align*}}\n" if lines else ""


def symbolic_base(robot: Robot, terms: TermsLike = None) -> SymbolicBase:
    """The structural base parameters of a robot, exactly.

    The columns they stand on are those of `base_parameters`, so names and values agree with it. Only where the robot's
    numbers hide what its named lengths could show (two lengths that happen to be equal) there are more of them, and a
    warning says so.

    Args:
        robot: The robot. Lengths without a name are numbers in the result.
        terms: Terms of the model; default rigid, Ia, Fv, Fc, Fo.
    """
    require_closed_form(robot)
    resolved = resolve_terms(terms, robot)
    form = ClosedForm(robot, resolved)
    numeric = base_parameters(robot, resolved)
    if _has_rounded_numbers(form):
        sp = load_sympy()
        why = "coefficients are rounded numbers: the robot has rotations by odd angles, or joints locked at them"
        numbers = [[sp.Integer(int(x)) if x.is_integer() else sp.Float(x) for x in row] for row in numeric.K.tolist()]
        K = sp.ImmutableMatrix(numbers)
        return SymbolicBase(robot, resolved, form.columns, numeric.independent, K, {}, (why,))
    work = _Elimination(form)
    pivots, rows = work.pivots(numeric.independent)
    more = f"with general lengths the robot has {len(pivots)} base parameters, with its own values {numeric.n}"
    K = work.solve(pivots, rows)
    warnings = (more,) if len(pivots) != numeric.n else ()
    return SymbolicBase(robot, resolved, form.columns, tuple(pivots), K, form.quantities.constants, warnings)


def _has_rounded_numbers(form: ClosedForm) -> bool:
    """Whether the equations contain numbers that are not exact."""
    values = [x for x in form.regressor.values() if isinstance(x, Polynomial)]
    return any(isinstance(k, float) for x in values for k in x.terms.values())


class _Elimination:
    """The factors of the regressor's independent functions, as rows over the standard parameters."""

    def __init__(self, form: ClosedForm) -> None:
        self._sp = load_sympy()
        self._form = form
        known = form.quantities
        # Gravity is a constant too: a mass on a vertical slide and an offset of its motor depend through it.
        self._lengths = [place for place, name in enumerate(known.ring.names) if name in known.constants]
        self._names = [known.ring.names[place] for place in self._lengths]
        self._field = self._sp.QQ.frac_field(*self._names) if self._names else self._sp.QQ
        self._rows = self._collect()

    def _collect(self) -> list[Row]:
        """Distinct rows {column: polynomial of the lengths}, short ones first."""
        mask = sum(((1 << BITS) - 1) << (BITS * place) for place in self._lengths)
        rows: dict[tuple[int, int], dict[int, dict[int, Any]]] = {}
        for (i, j), x in self._form.regressor.items():
            if self._form.columns[j].fixed is not None:
                continue
            terms = x.terms if isinstance(x, Polynomial) else {0: x}
            for powers, k in terms.items():
                rows.setdefault((i, powers & ~mask), {}).setdefault(j, {})[powers & mask] = k
        distinct = {tuple((j, tuple(sorted(f.items()))) for j, f in sorted(row.items())) for row in rows.values()}
        ordered = sorted(distinct, key=lambda row: (len(row), sum(len(f) for _, f in row), row))
        return [{j: dict(f) for j, f in row} for row in ordered]

    def pivots(self, preferred: Sequence[int]) -> tuple[list[int], list[Row]]:
        """Independent columns, preferred ones first, then from the left; and enough rows to solve for all others."""
        rng = random.Random(5)
        value = {place: rng.randrange(1, _PRIME) for place in self._lengths}
        order = [*preferred, *(j for j in range(len(self._form.columns)) if j not in set(preferred))]
        rank_of = {column: rank for rank, column in enumerate(order)}
        kept: dict[int, dict[int, int]] = {}  # pivot (as a rank) -> reduced row
        used: list[Row] = []
        for row in self._rows:
            numbers = {rank_of[j]: self._modulo(f, value) for j, f in row.items()}
            rest = _reduce({j: x for j, x in numbers.items() if x}, kept)
            if rest:
                pivot = min(rest)
                scale = pow(rest[pivot], -1, _PRIME)
                kept[pivot] = {j: x * scale % _PRIME for j, x in rest.items()}
                used.append(row)
        return sorted(order[rank] for rank in kept), used

    def _modulo(self, factor: dict[int, Any], value: dict[int, int]) -> int:
        total = 0
        for powers, k in factor.items():
            numerator, denominator = k.as_integer_ratio()
            x = numerator * pow(denominator, -1, _PRIME)
            for place, exponent in factors(powers):
                x = x * pow(value[place], exponent, _PRIME) % _PRIME
            total += x
        return total % _PRIME

    def solve(self, pivots: Sequence[int], rows: Sequence[Row]) -> Any:
        """K with the identity on the pivots, exact, checked against all rows."""
        sp = self._sp
        others = [j for j in range(len(self._form.columns)) if j not in set(pivots)]
        place = {j: i for i, j in enumerate([*pivots, *others])}
        matrix = {i: {place[j]: self._polynomial(f) for j, f in row.items()} for i, row in enumerate(rows)}
        shape = (len(rows), len(place))
        sparse = import_module("sympy.polys.matrices.sdm")
        reduced, found, _ = sparse.sdm_irref(sparse.SDM(matrix, shape, self._field))
        if found != list(range(len(pivots))):
            raise DynidentError("the exact elimination does not confirm the rank found modulo a prime")
        self._check(reduced, place)
        K = sp.zeros(len(pivots), len(place))
        back = [*pivots, *others]
        for i, row in reduced.items():
            for j, x in row.items():
                K[i, back[j]] = self._field.to_sympy(x)
        return sp.ImmutableMatrix(K)

    def _polynomial(self, factor: dict[int, Any]) -> Any:
        """A factor as an element of the field of rational functions of the lengths."""
        field = self._field
        result = field.zero
        generators = dict(zip(self._lengths, field.gens, strict=True)) if self._names else {}
        for powers, k in factor.items():
            term = field.convert_from(self._sp.QQ(*k.as_integer_ratio()), self._sp.QQ)
            for place, exponent in factors(powers):
                term *= generators[place] ** exponent
            result += term
        return result

    def _check(self, reduced: Any, place: dict[int, int]) -> None:
        """Every row must be the combination of the reduced rows that its pivots demand."""
        for row in self._rows:
            mine = {place[j]: self._polynomial(f) for j, f in row.items()}
            made: dict[int, Any] = {}
            for i, x in mine.items():
                for j, y in reduced.get(i, {}).items():
                    made[j] = made.get(j, self._field.zero) + x * y
            if any(made.get(j, self._field.zero) != x for j, x in mine.items()) or any(
                x and j not in mine for j, x in made.items()
            ):
                raise DynidentError("a regrouping relation does not hold for all functions of the state")


def _reduce(row: dict[int, int], kept: dict[int, dict[int, int]]) -> dict[int, int]:
    """A row without the pivots of the kept rows, modulo the prime."""
    while True:
        pivot = min((j for j in row if j in kept), default=None)
        if pivot is None:
            return row
        scale = row[pivot]
        for j, x in kept[pivot].items():
            value = (row.get(j, 0) - scale * x) % _PRIME
            if value:
                row[j] = value
            else:
                row.pop(j, None)
