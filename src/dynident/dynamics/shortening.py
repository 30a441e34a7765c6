"""Shorter forms of expanded trigonometric polynomials: squares of sines, and cosines of sums and differences.

Two terms are put together where that is exact: A - A c² is A s², and A cu cv - A su sv is A cos(u + v). Sums are only
looked for among angles of parallel joints, where they mean something. Each step leaves fewer terms, so it ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dynident.dynamics.angles import Direction
from dynident.dynamics.closed_form import Quantities
from dynident.dynamics.polynomials import BITS, Coefficient, Polynomial, Powers, Ring

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
                _put(terms, new, k if outer == "cos" else k * turned)


def _square(terms: Terms, cos: Powers, sin: Powers) -> None:
    """A - A c² = A s²."""
    for powers in [p for p in terms if _has(p, 2 * cos)]:
        rest = powers - 2 * cos
        k, x = terms.get(powers), terms.get(rest)
        if k is not None and x is not None and k == -x:
            del terms[powers], terms[rest]
            _put(terms, rest + 2 * sin, x)


def _put(terms: Terms, powers: Powers, k: Coefficient) -> None:
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
