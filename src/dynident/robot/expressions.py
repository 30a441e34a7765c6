"""Numbers written as expressions over named lengths (`pi/2`, `-d3`, `q2 - q7`), evaluated without `eval`."""

from __future__ import annotations

import ast
import functools
import math
import operator
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from dynident.errors import suggestion
from dynident.schema import LARGEST_NUMBER, LONGEST_NUMBER, LocatedReader, plain_number, quote

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
RESERVED = (*_FUNCTIONS, *_CONSTANTS)
_HIGHEST_POWER = 8
_ODD_LITERAL = re.compile(r"(?<![\w.])(0[xXoObB]|\d[\w.]*_)")  # 0x10 and 1_000 are Python, not arithmetic


class ExpressionError(ValueError):
    """The text is not an arithmetic expression over the known names."""


@functools.lru_cache(maxsize=256)
def parse(text: str) -> ast.expr:
    """The syntax tree of an arithmetic expression.

    Raises:
        ExpressionError: When the text is not one.
    """
    if len(text) > LONGEST_NUMBER:
        raise ExpressionError(f"{quote(text)} is longer than {LONGEST_NUMBER} characters")
    if _ODD_LITERAL.search(text):
        raise ExpressionError(f"{quote(text)} has a number that is not in plain decimal notation")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's remarks on odd syntax; it is refused below anyway
            return ast.parse(text.replace("^", "**").strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ExpressionError(f"{quote(text)} is not an arithmetic expression") from None


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
        try:
            return float(value)
        except OverflowError:
            raise ExpressionError("the number is too large") from None
    if not isinstance(value, str):
        raise ExpressionError(f"{quote(value)} is not a number or an expression")
    number = plain_number(value)  # also the numbers YAML takes for text, such as 1e-3
    if number is not None:
        return number
    try:
        return _walk(parse(value), names)
    except NotImplementedError:
        known = f"numbers, known names, + - * / ^ and {', '.join(_FUNCTIONS)}"
        raise ExpressionError(f"{quote(value)} may only contain {known}") from None
    except (ZeroDivisionError, OverflowError) as error:
        raise ExpressionError(f"{quote(value)} cannot be computed ({error})") from None
    except RecursionError:
        raise ExpressionError(f"{quote(value)} is nested too deeply") from None


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
            raise ExpressionError(f"'{name}' is not a known name{suggestion(name, [*names, *_CONSTANTS])}")
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_walk(operand, names)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _walk(operand, names)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            exponent = _walk(right, names)
            if not isinstance(exponent, float) or abs(exponent) > _HIGHEST_POWER:
                raise ExpressionError(f"exponents must be numbers up to {_HIGHEST_POWER}")
            power = _walk(left, names) ** (int(exponent) if exponent.is_integer() else exponent)
            if isinstance(power, complex):
                raise ExpressionError(f"a negative number to the power {exponent:g} is not defined")
            return power
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
    raise NotImplementedError  # more than arithmetic


def linear_form(
    value: object, names: Mapping[str, str], constants: Mapping[str, float] | None = None
) -> tuple[dict[str, float], float]:
    """Coefficients and constant of an expression that must be affine in the given variables.

    Args:
        value: An expression such as ``pi/2 - q2 + q7``.
        names: Allowed variables, each mapped to the key under which its coefficient is returned.
        constants: Names with a value, such as lengths.

    Returns:
        ({key: coefficient}, constant).
    """
    zero: dict[str, Any] = {**(constants or {}), **dict.fromkeys(names, 0.0)}
    constant = _sane(evaluate(value, zero), value)
    coefficients: dict[str, float] = {}
    for variable, key in names.items():
        at_one = _sane(evaluate(value, {**zero, variable: 1.0}) - constant, value)
        at_two = evaluate(value, {**zero, variable: 2.0}) - constant
        if not abs(at_two - 2 * at_one) <= 1e-9 * max(1.0, abs(at_one)):
            raise ExpressionError(f"{quote(value)} is not linear in {variable}")
        if at_one:
            coefficients[key] = coefficients.get(key, 0.0) + at_one
    # One probe with all variables at different values catches products such as q2*q7.
    probe = {variable: 0.77 + 0.37 * i for i, variable in enumerate(names)}
    expected = constant + sum(coefficients.get(names[v], 0.0) * x for v, x in probe.items())
    if not abs(evaluate(value, {**zero, **probe}) - expected) <= 1e-9 * max(1.0, abs(expected)):
        raise ExpressionError(f"{quote(value)} is not linear in {', '.join(names)}")
    return coefficients, constant


def _sane(number: float, value: object) -> float:
    """A constant or coefficient of a linear form, refused when it is not finite or absurd."""
    if not abs(number) <= LARGEST_NUMBER:
        raise ExpressionError(f"{quote(value)} has a number that is not finite or beyond {LARGEST_NUMBER:g}")
    return number


def robot_file_reader(source: str, names: Mapping[str, Any] | None = None) -> LocatedReader:
    """Access to the values of a robot file, whose numbers may be expressions over named lengths."""
    return LocatedReader(source, evaluate, names)
