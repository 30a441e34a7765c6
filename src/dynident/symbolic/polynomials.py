"""Polynomials in named quantities, cosines and sines: the number type on which the recursion gives closed forms.

A robot's equations are polynomials in the cosines and sines of its joint angles, in velocities, accelerations, lengths
and parameters. They are kept expanded, with every square of a sine written as one minus the square of the cosine. That
form is unique: two expressions are equal exactly when their terms are, and a difference that is zero has no terms left.

A product of powers is one Python integer with a few bits for each quantity's exponent, so multiplying is adding. That
makes the regressor of a six-joint arm a matter of a tenth of a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dynident.errors import DynidentError

Coefficient = int | Fraction | float
Powers = int  # packed exponents of all quantities
BITS = 6
_HIGHEST = 1 << (BITS - 1)  # an exponent with this bit set is about to leave its field
_MOST_WORK = 5_000_000  # products of terms, about twenty seconds; what takes longer is nothing to read
_DIGITS = 12  # numbers with at most so many digits are what somebody wrote, and exact
_ROUNDING = 1e-14  # what is left of a float coefficient that cancels


class ClosedFormError(DynidentError):
    """A robot whose equations have no closed form of readable size."""


def exact(value: float) -> Coefficient:
    """A number as exactly as it was meant: whole, a short decimal fraction, or else the float itself."""
    value = float(value)
    if value.is_integer():
        return int(value)
    text = repr(value)
    if len(text.split("e")[0].lstrip("-0.").replace(".", "")) <= _DIGITS:
        return _whole(Fraction(text))
    return value


def _whole(value: Coefficient) -> Coefficient:
    return int(value) if isinstance(value, Fraction) and value.denominator == 1 else value


def _negligible(value: Coefficient) -> bool:
    return not value or (isinstance(value, float) and abs(value) < _ROUNDING)


class Ring:
    """The quantities that polynomials are made of.

    Attributes:
        names: Names of the quantities, in order; a quantity's place is its index.
        sines: {packed square of a sine: packed square of its cosine}, the rewriting rule.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.sines: dict[Powers, Powers] = {}
        self._alert = 0
        self._work = 0

    def quantity(self, name: str) -> Polynomial:
        """A new quantity."""
        place = len(self.names)
        self.names.append(name)
        self._alert |= _HIGHEST << (BITS * place)
        return Polynomial(self, {self.power(place): 1})

    def angle(self, name: str) -> tuple[Polynomial, Polynomial]:
        """Cosine and sine of a new angle."""
        cosine, sine = self.quantity(f"cos {name}"), self.quantity(f"sin {name}")
        place = len(self.names) - 1
        self._alert |= self.power(place, 2)
        self.sines[self.power(place, 2)] = self.power(place - 1, 2)
        return cosine, sine

    @staticmethod
    def power(place: int, exponent: int = 1) -> Powers:
        """A power of one quantity."""
        return exponent << (BITS * place)

    def product(self, a: Mapping[Powers, Coefficient], b: Mapping[Powers, Coefficient]) -> dict[Powers, Coefficient]:
        """Terms of a product, sines reduced."""
        self._work += len(a) * len(b)
        if self._work > _MOST_WORK:
            raise ClosedFormError(
                "the closed form of this robot is too long to be written out (rotations by odd angles between its "
                "joints?); print it as Python, which keeps intermediate results, or lock joints"
            )
        result: dict[Powers, Coefficient] = {}
        get, alert, waiting = result.get, self._alert, []
        others = list(b.items())
        for first, k in a.items():
            for second, x in others:
                powers = first + second
                if powers & alert:
                    waiting.append((powers, k * x))
                else:
                    result[powers] = get(powers, 0) + k * x
        for powers, k in waiting:
            for reduced, x in self._reduced(powers, k):
                result[reduced] = get(reduced, 0) + x
        return {powers: _whole(k) for powers, k in result.items() if not _negligible(k)}

    def _reduced(self, powers: Powers, k: Coefficient) -> list[tuple[Powers, Coefficient]]:
        """A term without squares of sines."""
        parts = [(powers, k)]
        for sine, cosine in self.sines.items():
            if powers & sine:
                parts = [new for p, x in parts for new in ((p - sine, x), (p - sine + cosine, -x))]
        if any(p & self._alert for p, _ in parts):
            raise ClosedFormError(f"a closed form with powers of {_HIGHEST} and more is not supported")
        return parts


class Polynomial:
    """A sum of products of powers; zero is never a polynomial but the plain 0.0, which the recursion folds away.

    Attributes:
        ring: Its quantities.
        terms: {packed powers: coefficient}.
    """

    __slots__ = ("ring", "terms")

    def __init__(self, ring: Ring, terms: dict[Powers, Coefficient]) -> None:
        self.ring = ring
        self.terms = terms

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.ring is other.ring and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __repr__(self) -> str:
        return f"<polynomial of {len(self.terms)} terms>"

    def _of(self, value: Any) -> dict[Powers, Coefficient]:
        return value.terms if isinstance(value, Polynomial) else {0: exact(value)}

    def _made(self, terms: dict[Powers, Coefficient]) -> Any:
        return Polynomial(self.ring, terms) if terms else 0.0

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Polynomial | int | float):
            return NotImplemented
        few, many = sorted((self.terms, self._of(other)), key=len)
        terms = dict(many)
        for powers, k in few.items():
            value = terms.get(powers, 0) + k
            if _negligible(value):
                terms.pop(powers, None)
            else:
                terms[powers] = _whole(value)
        return self._made(terms)

    __radd__ = __add__

    def __neg__(self) -> Polynomial:
        return Polynomial(self.ring, {powers: -k for powers, k in self.terms.items()})

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return (-self) + other

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, Polynomial | int | float):
            return NotImplemented
        return self._made(self.ring.product(self.terms, self._of(other)))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if not isinstance(other, int | float):
            return NotImplemented
        divisor = exact(other)
        factor = Fraction(1, divisor) if isinstance(divisor, int) else 1 / divisor
        return self._made(self.ring.product(self.terms, {0: factor}))

    def __pow__(self, exponent: Any) -> Any:
        if not isinstance(exponent, int) or exponent < 0:
            return NotImplemented
        result: Any = 1.0
        for _ in range(exponent):
            result = self * result
        return result


def factors(powers: Powers) -> list[tuple[int, int]]:
    """(place, exponent) of every quantity in a term."""
    found = []
    place = 0
    while powers:
        skipped = ((powers & -powers).bit_length() - 1) // BITS
        powers >>= BITS * skipped
        place += skipped
        found.append((place, powers & ((1 << BITS) - 1)))
        powers >>= BITS
        place += 1
    return found


def derivative(value: Any, rates: Mapping[int, Any]) -> Any:
    """Derivative of a polynomial by a variable.

    Args:
        value: A polynomial, or a plain number.
        rates: {place of a quantity that depends on the variable: its derivative}.
    """
    if not isinstance(value, Polynomial):
        return 0.0
    ring = value.ring
    result: Any = 0.0
    for place, rate in rates.items():
        field = ((1 << BITS) - 1) << (BITS * place)
        one = ring.power(place)
        terms = {p - one: k * ((p & field) >> (BITS * place)) for p, k in value.terms.items() if p & field}
        if terms:
            result = Polynomial(ring, terms) * rate + result
    return result
