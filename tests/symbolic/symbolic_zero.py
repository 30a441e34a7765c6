"""Whether a SymPy expression is identically zero, decided by SymPy alone."""

from __future__ import annotations

import sympy as sp


def canonical(expression: sp.Expr) -> sp.Expr:
    """Expanded, angle sums taken apart, squares of sines replaced: zero exactly when the function is."""
    expanded = sp.expand(sp.expand_trig(sp.sympify(expression)))
    while True:
        reduced = sp.expand(
            expanded.replace(
                lambda x: x.is_Pow and x.exp.is_Integer and x.exp > 1 and isinstance(x.base, sp.sin),
                lambda x: x.base ** (x.exp - 2) * (1 - sp.cos(x.base.args[0]) ** 2),
            )
        )
        if reduced == expanded:
            return reduced
        expanded = reduced


def assert_equal(found: object, expected: object) -> None:
    """Expressions or matrices are the same function, to zero."""
    difference = sp.Matrix([found]) - sp.Matrix([expected])
    for entry in difference:
        assert canonical(entry) == 0, entry
