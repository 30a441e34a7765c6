"""Dual numbers: the recursion runs on them and gives the derivative of its result along a direction."""

from __future__ import annotations

from typing import Any

from dynident.dynamics.equations import Functions
from dynident.robot.algebra import Number, add, mul, sub


class Dual:
    """A number and its slope along a direction, both of any number type."""

    __slots__ = ("slope", "value")

    def __init__(self, value: Number, slope: Number = 0.0) -> None:
        self.value, self.slope = value, slope

    def __neg__(self) -> Dual:
        return Dual(sub(0.0, self.value), sub(0.0, self.slope))

    def __add__(self, other: Any) -> Dual:
        other = _dual(other)
        return Dual(add(self.value, other.value), add(self.slope, other.slope))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Dual:
        other = _dual(other)
        return Dual(sub(self.value, other.value), sub(self.slope, other.slope))

    def __rsub__(self, other: Any) -> Dual:
        return _dual(other) - self

    def __mul__(self, other: Any) -> Dual:
        other = _dual(other)
        slope = add(mul(self.slope, other.value), mul(self.value, other.slope))
        return Dual(mul(self.value, other.value), slope)

    __rmul__ = __mul__


def _dual(x: Any) -> Dual:
    return x if isinstance(x, Dual) else Dual(x)


def slope_of(x: Any) -> Number:
    """The slope of a result; that of a plain number is zero."""
    return x.slope if isinstance(x, Dual) else 0.0


class DualFunctions:
    """The functions that the recursion of the links needs, on dual numbers.

    Args:
        functions: Those of the numbers within.
    """

    def __init__(self, functions: Functions) -> None:
        self._functions = functions

    def sin(self, x: Dual) -> Dual:
        """sin(x)."""
        return Dual(self._functions.sin(x.value), mul(x.slope, self._functions.cos(x.value)))

    def cos(self, x: Dual) -> Dual:
        """cos(x)."""
        return Dual(self._functions.cos(x.value), sub(0.0, mul(x.slope, self._functions.sin(x.value))))

    def sign(self, x: Dual) -> Dual:
        """-1, 0 or 1: flat but for a jump."""
        return Dual(self._functions.sign(x.value))

    def tanh(self, x: Dual) -> Dual:
        """tanh(x)."""
        value = self._functions.tanh(x.value)
        return Dual(value, mul(x.slope, sub(1.0, mul(value, value))))
