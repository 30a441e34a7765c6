"""Shorter forms of expanded trigonometric polynomials: squares of sines, and cosines of sums and differences.

Two terms are put together where that is exact: A - A c² is A s², and A cu cv - A su sv is A cos(u + v). Sums are only
looked for among angles of parallel joints, where they mean something. Each step leaves fewer terms, so it ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from typing import Any

from dynident.errors import DynidentError
from dynident.symbolic.closed_form import ClosedForm, Direction, Quantities
from dynident.symbolic.polynomials import BITS, Coefficient, Polynomial, Powers, Ring, factors

Terms = dict[Powers, Coefficient]


@dataclass(frozen=True)
class Angle:
    """An angle: its direction over the moving joints, its family, and the packed powers of its cosine and sine."""

    direction: Direction
    family: int
    cos: Powers
    sin: Powers


class Shortener:
    """Shortens polynomials over a robot's quantities. The result is for reading and converting, not for arithmetic.

    Attributes:
        angles: The ring's angles, and the sums that were found.
    """

    def __init__(self, quantities: Quantities) -> None:
        self._ring = quantities.ring
        self.angles = [
            Angle(direction, family, Ring.power(place), Ring.power(place + 1))
            for (direction, place), family in zip(quantities.trig, quantities.families, strict=True)
        ]
        self._own = len(self.angles)
        self._known = {(angle.direction, angle.family): angle for angle in self.angles}

    def __call__(self, value: Any) -> Any:
        """The same function in fewer terms."""
        if not isinstance(value, Polynomial):
            return value
        terms = dict(value.terms)
        size = len(terms) + 1
        while len(terms) < size:
            size = len(terms)
            for u, v in self._pairs():
                self._add_up(terms, u, v)
            for angle in self.angles[: self._own]:
                _square(terms, angle.cos, angle.sin)
        return Polynomial(value.ring, terms) if terms else 0.0

    def _pairs(self) -> Iterator[tuple[Angle, Angle]]:
        angles = list(self.angles)
        for i, u in enumerate(angles):
            for v in angles[i + 1 :]:
                if u.family == v.family:
                    yield u, v

    def _angle(self, u: Angle, v: Angle, sign: int) -> tuple[Angle, int] | None:
        """The angle u + sign v with its first part positive, and -1 if it was turned for that; None for no angle."""
        direction = tuple(a + sign * b for a, b in zip(u.direction, v.direction, strict=True))
        first = next((x for x in direction if x), Fraction(0))
        if not first:
            return None
        turned = 1 if first > 0 else -1
        direction = tuple(turned * x for x in direction)
        key = (direction, u.family)
        if key not in self._known:
            place = len(self._ring.names)
            self._ring.quantity(f"cos of sum {place}")
            self._ring.quantity(f"sin of sum {place}")
            self._known[key] = Angle(direction, u.family, Ring.power(place), Ring.power(place + 1))
            self.angles.append(self._known[key])
        return self._known[key], turned

    def _add_up(self, terms: Terms, u: Angle, v: Angle) -> None:
        """Put products of two angles together where both halves of an addition theorem are there."""
        for first, second, outer in (
            (u.cos + v.cos, u.sin + v.sin, "cos"),  # cos(u + v) = cu cv - su sv, cos(u - v) = cu cv + su sv
            (u.sin + v.cos, u.cos + v.sin, "sin"),  # sin(u + v) = su cv + cu sv, sin(u - v) = su cv - cu sv
        ):
            for powers in [p for p in terms if _has(p, first)]:
                rest = powers - first
                k, x = terms.get(powers), terms.get(rest + second)
                if k is None or x is None or abs(k) != abs(x):
                    continue
                sign = (1 if k == x else -1) * (-1 if outer == "cos" else 1)
                found = self._angle(u, v, sign)
                if found is None:
                    continue
                angle, turned = found
                new = rest + (angle.cos if outer == "cos" else angle.sin)
                del terms[powers], terms[rest + second]
                _put_term(terms, new, k if outer == "cos" else k * turned)


def _square(terms: Terms, cos: Powers, sin: Powers) -> None:
    """A - A c² = A s²."""
    for powers in [p for p in terms if _has(p, 2 * cos)]:
        rest = powers - 2 * cos
        k, x = terms.get(powers), terms.get(rest)
        if k is not None and x is not None and k == -x:
            del terms[powers], terms[rest]
            _put_term(terms, rest + 2 * sin, x)


def _put_term(terms: Terms, powers: Powers, k: Coefficient) -> None:
    value = terms.get(powers, 0) + k
    if value:
        terms[powers] = value
    else:
        terms.pop(powers, None)


def _has(powers: Powers, part: Powers) -> bool:
    """Whether a term contains all the powers of a part made of one or two quantities."""
    while part:
        low = ((part & -part).bit_length() - 1) // BITS * BITS
        if (powers >> low) & ((1 << BITS) - 1) < (part >> low) & ((1 << BITS) - 1):
            return False
        part &= ~(((1 << BITS) - 1) << low)
    return True


# ----------------------------------------------------------------------------------------------------------------------
# From polynomials to SymPy: angles as cosines and sines, parameters in front of what multiplies them.

_READABLE = 100  # fractions with a larger denominator are read more easily as decimals


def load_sympy() -> Any:
    """SymPy, or a clear word about how to get it."""
    try:
        return import_module("sympy")
    except ImportError:
        problem = "symbolic models need SymPy, which is not installed: pip install sympy"
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
            self._leaves[place] = self._make_leaf(place)
        return self._leaves[place]

    def _make_leaf(self, place: int) -> Any:
        law = self._form.quantities.laws.get(place)
        if law is not None:
            function, argument = law
            return getattr(self._sp, function)(self._sum(argument.terms))
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
