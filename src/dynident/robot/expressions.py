"""Numbers written as expressions over named lengths (`pi/2`, `-d3`, `q2 - q7`), evaluated without `eval`."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_FUNCTIONS: dict[str, Callable[[float], float]] = {
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "sqrt": math.sqrt,
    "deg": math.radians,
}
_CONSTANTS = {"pi": math.pi}
_LONGEST = 200  # characters: a length in a robot table is never longer
_HIGHEST_POWER = 8


class ExpressionError(ValueError):
    """The text is not an arithmetic expression over the known names."""


def parse(text: str) -> ast.expr:
    """The syntax tree of an arithmetic expression.

    Raises:
        ExpressionError: When the text is not one.
    """
    if len(text) > _LONGEST:
        raise ExpressionError(f"'{text[:30]}...' is longer than {_LONGEST} characters")
    try:
        return ast.parse(text.replace("^", "**").strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ExpressionError(f"'{text}' is not an arithmetic expression") from None


def evaluate(value: object, names: Mapping[str, Any]) -> Any:
    """The number that `value` stands for.

    Args:
        value: A number, or an expression of + - * / ^, parentheses, `pi`, `sin cos tan asin acos atan sqrt deg`
            and the given names.
        names: Values of the names; floats, or any number type that the arithmetic operators accept.

    Raises:
        ExpressionError: For anything else, naming it.
    """
    if isinstance(value, bool):
        raise ExpressionError(f"{value} is not a number")
    if isinstance(value, int | float):
        return float(value)
    if not isinstance(value, str):
        raise ExpressionError(f"{value!r} is not a number or an expression")
    try:
        return float(value)  # also the numbers YAML takes for text, such as 1e-3
    except ValueError:
        pass
    try:
        return _walk(parse(value), names)
    except (ZeroDivisionError, OverflowError) as error:
        raise ExpressionError(f"'{value}' cannot be computed ({error})") from None
    except RecursionError:
        raise ExpressionError(f"'{value}' is nested too deeply") from None


def _walk(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Name(id=name):
            if name in names:
                return names[name]
            if name in _CONSTANTS:
                return _CONSTANTS[name]
            known = ", ".join([*names, *_CONSTANTS])
            raise ExpressionError(f"'{name}' is not a known name (known: {known})")
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_walk(operand, names)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _walk(operand, names)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            exponent = _walk(right, names)
            if not isinstance(exponent, float) or abs(exponent) > _HIGHEST_POWER:
                raise ExpressionError(f"exponents must be numbers up to {_HIGHEST_POWER}")
            return _walk(left, names) ** (int(exponent) if exponent.is_integer() else exponent)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_walk(left, names), _walk(right, names))
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in _FUNCTIONS:
            operand = _walk(argument, names)
            if not isinstance(operand, float):
                raise ExpressionError(f"{name}() takes a plain number here")
            try:
                return _FUNCTIONS[name](operand)
            except ValueError:
                raise ExpressionError(f"{name}({operand:g}) is not defined") from None
    raise ExpressionError(f"'{ast.unparse(node)}' is not arithmetic over known names")


def linear_form(value: object, names: Mapping[str, str]) -> tuple[dict[str, float], float]:
    """Coefficients and constant of an expression that must be affine in the given variables.

    Args:
        value: An expression such as ``pi/2 - q2 + q7``.
        names: Allowed variables, each mapped to the key under which its coefficient is returned.

    Returns:
        ({key: coefficient}, constant).
    """
    zero: dict[str, Any] = dict.fromkeys(names, 0.0)
    constant = evaluate(value, zero)
    coefficients: dict[str, float] = {}
    for variable, key in names.items():
        at_one = evaluate(value, {**zero, variable: 1.0}) - constant
        at_two = evaluate(value, {**zero, variable: 2.0}) - constant
        if abs(at_two - 2 * at_one) > 1e-9 * max(1.0, abs(at_one)):
            raise ExpressionError(f"'{value}' is not linear in {variable}")
        if at_one:
            coefficients[key] = coefficients.get(key, 0.0) + at_one
    # One probe with all variables at different values catches products such as q2*q7.
    probe = {variable: 1.0 + 0.37 * i for i, variable in enumerate(names)}
    expected = constant + sum(coefficients.get(names[v], 0.0) * x for v, x in probe.items())
    if abs(evaluate(value, probe) - expected) > 1e-9 * max(1.0, abs(expected)):
        raise ExpressionError(f"'{value}' is not linear in {', '.join(names)}")
    return coefficients, constant
