"""From polynomials to SymPy: angles as cosines and sines, parameters in front of what multiplies them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from importlib import import_module
from typing import Any

from dynident.dynamics.angles import Direction
from dynident.dynamics.closed_form import ClosedForm
from dynident.dynamics.polynomials import BITS, Coefficient, Polynomial, Powers, factors
from dynident.dynamics.shortening import Shortener
from dynident.errors import DynidentError

_READABLE = 100  # fractions with a larger denominator are read more easily as decimals


def load_sympy() -> Any:
    """SymPy, or a clear word about how to get it."""
    try:
        return import_module("sympy")
    except ImportError:
        problem = "symbolic models need SymPy, which is not installed: pip install 'dynident[symbolic]'"
        raise DynidentError(problem) from None


class Converter:
    """Polynomials of a closed form as SymPy expressions.

    Args:
        form: The closed form.
        short: For reading: C23 for cos(q2 + q3), decimals for long fractions.
    """

    def __init__(self, form: ClosedForm, *, short: bool = False) -> None:
        self._sp = load_sympy()
        self._form, self._short = form, short
        self._ring = form.quantities.ring
        self._shorten = Shortener(form.quantities)
        self._taken = {*self._ring.names}
        self._leaves: dict[int, Any] = {}
        self.angles: dict[str, Direction] = {}  # short names that were used
        n = form.n
        end = len(self._ring.names)
        self._parameters = _mask(range(form.first_parameter, end))
        self._motion = _mask([*range(n, 3 * n), *form.quantities.laws])

    def symbol(self, name: str) -> Any:
        """The SymPy symbol of a name."""
        return self._sp.Symbol(name)

    def expression(self, value: Any) -> Any:
        """A number of the closed form as a SymPy expression."""
        if not isinstance(value, Polynomial):
            return self._number(value if isinstance(value, Fraction) else float(value))
        short = self._shorten(value)
        return self._grouped(short.terms, (self._parameters, self._motion)) if isinstance(short, Polynomial) else 0

    def matrix(self, rows: Sequence[Sequence[Any]]) -> Any:
        """A matrix of expressions."""
        width = len(rows[0]) if rows else 0
        return self._sp.ImmutableMatrix(len(rows), width, [self.expression(x) for row in rows for x in row])

    def _grouped(self, terms: dict[Powers, Coefficient], masks: Sequence[int]) -> Any:
        """Terms sorted by the quantities of the first mask; those with one and the same factor share it."""
        if not masks:
            return self._sum(terms)
        parts: dict[Powers, dict[Powers, Coefficient]] = {}
        for powers, k in terms.items():
            parts.setdefault(powers & masks[0], {})[powers & ~masks[0]] = k
        shared: dict[frozenset[tuple[Powers, Coefficient]], list[Any]] = {}
        for powers, rest in sorted(parts.items()):
            content = _content(rest)
            key = frozenset((p, k / content if isinstance(k, float) else _ratio(k, content)) for p, k in rest.items())
            shared.setdefault(key, []).append(self._product(powers, content))
        Add, Mul = self._sp.Add, self._sp.Mul
        return Add(*(Mul(self._grouped(dict(key), masks[1:]), Add(*own)) for key, own in shared.items()))

    def _sum(self, terms: dict[Powers, Coefficient]) -> Any:
        """A sum with its common factor in front."""
        common = 0
        if len(terms) > 1:
            lowest = dict(factors(next(iter(terms))))
            for powers in terms:
                own = dict(factors(powers))
                lowest = {place: min(e, own[place]) for place, e in lowest.items() if place in own}
            common = sum(e << (BITS * place) for place, e in lowest.items())
        rest = self._sp.Add(*(self._product(powers - common, k) for powers, k in sorted(terms.items())))
        return self._sp.Mul(self._product(common, 1), rest) if common else rest

    def _product(self, powers: Powers, k: Coefficient) -> Any:
        return self._sp.Mul(self._number(k), *(self._leaf(place) ** e for place, e in factors(powers)))

    def _number(self, k: Coefficient) -> Any:
        if isinstance(k, float) and not k.is_integer():
            return self._sp.Float(k)
        if isinstance(k, Fraction):
            if self._short and k.denominator > _READABLE:
                return self._sp.Float(float(k))
            return self._sp.Rational(k.numerator, k.denominator)
        return self._sp.Integer(int(k))

    def _leaf(self, place: int) -> Any:
        if place not in self._leaves:
            self._leaves[place] = self._made(place)
        return self._leaves[place]

    def _made(self, place: int) -> Any:
        law = self._form.quantities.laws.get(place)
        if law is not None:
            return getattr(self._sp, law.function)(self._sum(law.argument.terms))
        for angle in self._shorten.angles:
            for name, powers in (("cos", angle.cos), ("sin", angle.sin)):
                if powers == 1 << (BITS * place):
                    return self._trig(name, angle.direction)
        return self.symbol(self._ring.names[place])

    def _trig(self, name: str, direction: Direction) -> Any:
        names = self._form.robot.position_names
        short = short_angle(direction, names) if self._short else None
        if short is not None:
            while {f"C{short}", f"S{short}"} & self._taken:  # a length may be called C2
                short += "_"
            self.angles[short] = direction
            return self.symbol(f"{name[0].upper()}{short}")
        Rational = self._sp.Rational
        pairs = zip(direction, names, strict=True)
        q = [Rational(x.numerator, x.denominator) * self.symbol(v) for x, v in pairs]
        return getattr(self._sp, name)(self._sp.Add(*q))


def short_angle(direction: Direction, names: Sequence[str]) -> str | None:
    """`23` for q2 + q3, None for what is no plain sum."""
    if any(x not in (0, 1) for x in direction):
        return None
    numbers = [name.removeprefix("q") for name, x in zip(names, direction, strict=True) if x]
    return ("" if all(len(number) == 1 for number in numbers) else "_").join(numbers)


def _content(terms: dict[Powers, Coefficient]) -> Coefficient:
    """The largest number that divides all coefficients, with the sign of the first; floats have none but the sign."""
    values = [k for _, k in sorted(terms.items())]
    sign = -1 if values[0] < 0 else 1
    if any(isinstance(k, float) for k in values):
        return sign
    fractions = [Fraction(k) for k in values]
    above = math.gcd(*(k.numerator for k in fractions))
    return _ratio(sign * above, math.lcm(*(k.denominator for k in fractions)))


def _ratio(a: Coefficient, b: Coefficient) -> Coefficient:
    ratio = Fraction(a) / Fraction(b)
    return int(ratio) if ratio.denominator == 1 else ratio


def _mask(places: Iterable[int]) -> int:
    return sum(((1 << BITS) - 1) << (BITS * place) for place in places)
