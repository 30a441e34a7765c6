from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dynident.symbolic.polynomials import ClosedFormError, Polynomial, Ring, derivative, exact, factors


@pytest.fixture
def ring() -> tuple[Ring, dict[str, Polynomial]]:
    ring = Ring()
    c, s = ring.angle("u")
    return ring, {"c": c, "s": s, "a": ring.quantity("a"), "b": ring.quantity("b")}


def value(polynomial, u: float, a: float, b: float) -> float:
    """A polynomial's value by hand."""
    numbers = [np.cos(u), np.sin(u), a, b]
    terms = polynomial.terms.items() if isinstance(polynomial, Polynomial) else [(0, polynomial)]
    return sum(float(k) * np.prod([numbers[p] ** e for p, e in factors(powers)]) for powers, k in terms)


def test_arithmetic_agrees_with_numbers(ring):
    _, x = ring
    c, s, a, b = x["c"], x["s"], x["a"], x["b"]
    made = (a * c - b * s + 0.5) * (a * s + b * c - 2) * (s - 3 * c) + (a - b) ** 3 / 4 - (1 - s)
    u, p, q = 0.7, 1.3, -0.4
    C, S = np.cos(u), np.sin(u)
    by_hand = (p * C - q * S + 0.5) * (p * S + q * C - 2) * (S - 3 * C) + (p - q) ** 3 / 4 - (1 - S)
    assert value(made, u, p, q) == pytest.approx(by_hand, rel=1e-14)


def test_equal_functions_have_equal_terms(ring):
    _, x = ring
    c, s, a = x["c"], x["s"], x["a"]
    assert s * s * a == a - a * c * c
    assert (c + s) * (c - s) == 2 * c * c - 1
    zero = s**4 + c**4 + 2 * s * s * c * c - 1
    assert isinstance(zero, float)
    assert zero == 0.0


def test_derivative_of_an_angle(ring):
    _, x = ring
    c, s, a = x["c"], x["s"], x["a"]
    f = a * s * c * c - 3 * s
    slope = derivative(f, {0: -s, 1: c})
    h, u = 1e-6, 0.4
    assert value(slope, u, 2.0, 0) == pytest.approx(
        (value(f, u + h, 2.0, 0) - value(f, u - h, 2.0, 0)) / (2 * h), rel=1e-8
    )
    assert derivative(2.0, {0: -s}) == 0.0


def test_numbers_are_as_exact_as_they_were_written():
    assert exact(2.0) == 2
    assert isinstance(exact(2.0), int)
    assert exact(0.5) == Fraction(1, 2)
    assert exact(-0.4318) == Fraction(-2159, 5000)
    assert exact(1e-6) == Fraction(1, 10**6)
    assert isinstance(exact(np.sqrt(0.5)), float)


def test_rounding_does_not_leave_terms_behind(ring):
    _, x = ring
    third, a = np.sqrt(0.5) / 3, x["a"]
    assert a * third * 3 - a * np.sqrt(0.5) == 0.0


def test_what_cannot_be_written_out_is_refused(ring):
    _, x = ring
    with pytest.raises(ClosedFormError, match="powers of 32"):
        x["a"] ** 40
    for bad in (lambda: x["a"] / x["b"], lambda: 1.0 / x["a"], lambda: x["a"] ** 0.5, lambda: x["a"] + "b"):
        with pytest.raises(TypeError):
            bad()
    many = Ring()
    long = sum((many.quantity(str(i)) for i in range(2300)), 0.0)
    with pytest.raises(ClosedFormError, match="too long to be written out"):
        long * long
