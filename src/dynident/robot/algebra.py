"""Vectors, rotations and frames over any number type.

The recursion of the dynamics is written once and runs on floats, NumPy arrays, symbols or recorded numbers. All it
needs is here, and loads no NumPy. Python floats that are exactly 0, 1 or -1 are folded away, so the zeros and ones of a
robot's geometry never cost an operation, whatever the number type is.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

Number = Any  # float, NumPy array, SymPy expression or recorded value: whatever has + - *
Vector = tuple[Number, Number, Number]
Matrix = tuple[Vector, Vector, Vector]
Frame = tuple[Matrix, Vector]  # axes of a frame and its origin, in the frame before it

ZERO: Vector = (0.0, 0.0, 0.0)
AXIS_Z: Vector = (0.0, 0.0, 1.0)
UNIT: Matrix = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
IDENTITY: Frame = (UNIT, ZERO)

_PLAIN = (float, int)
_ROUNDING = 1e-15  # cos(pi/2) is 6e-17 in floating point; a geometry entry below this is a zero


class Functions(Protocol):
    """The functions of a number type that arithmetic operators do not give.

    A new one goes into `NumpyFunctions`, `PlantFunctions`, `Recorder` and `ColumnFunctions` (mypy names the first that
    lacks it), and its `Op` into both kernels and the reverse pass of `dynamics/jit` and into `export/c_functions.py`.
    """

    def sin(self, x: Number) -> Number:
        """sin(x)."""

    def cos(self, x: Number) -> Number:
        """cos(x)."""

    def sign(self, x: Number) -> Number:
        """-1, 0 or 1."""

    def tanh(self, x: Number) -> Number:
        """tanh(x)."""

    def exp(self, x: Number) -> Number:
        """e to the x."""

    def log(self, x: Number) -> Number:
        """Natural logarithm."""


def is_number(value: Number, constant: float) -> bool:
    """Whether `value` is the plain Python number `constant`."""
    return isinstance(value, _PLAIN) and value == constant


def is_zero(a: Vector) -> bool:
    """Whether all components are plain zeros."""
    return is_number(a[0], 0) and is_number(a[1], 0) and is_number(a[2], 0)


def is_unit(m: Matrix) -> bool:
    """Whether the rotation is the plain identity."""
    return m is UNIT or all(is_number(m[i][j], float(i == j)) for i in range(3) for j in range(3))


def add(a: Number, b: Number) -> Number:
    """a + b."""
    if isinstance(a, _PLAIN) and a == 0:
        return b
    return a if isinstance(b, _PLAIN) and b == 0 else a + b


def sub(a: Number, b: Number) -> Number:
    """a - b."""
    if is_number(b, 0):
        return a
    return -b if is_number(a, 0) else a - b


def mul(a: Number, b: Number) -> Number:
    """a * b."""
    # Written out: recording the equations of an arm comes here some ten thousand times.
    plain_a, plain_b = isinstance(a, _PLAIN), isinstance(b, _PLAIN)
    if (plain_a and a == 0) or (plain_b and b == 0):
        return 0.0
    if plain_a and (a == 1 or a == -1):
        return b if a == 1 else -b
    if plain_b and (b == 1 or b == -1):
        return a if b == 1 else -a
    return a * b


def total(*values: Number) -> Number:
    """Sum of the values."""
    result: Number = 0.0
    for value in values:
        result = add(result, value)
    return result


def vadd(a: Vector, b: Vector) -> Vector:
    """a + b."""
    return add(a[0], b[0]), add(a[1], b[1]), add(a[2], b[2])


def vsub(a: Vector, b: Vector) -> Vector:
    """a - b."""
    return sub(a[0], b[0]), sub(a[1], b[1]), sub(a[2], b[2])


def scale(k: Number, a: Vector) -> Vector:
    """k a."""
    return mul(k, a[0]), mul(k, a[1]), mul(k, a[2])


def dot(a: Vector, b: Vector) -> Number:
    """a · b."""
    x, y, z = mul(a[0], b[0]), mul(a[1], b[1]), mul(a[2], b[2])
    return add(add(x, y), z)


def cross(a: Vector, b: Vector) -> Vector:
    """a x b."""
    return (
        sub(mul(a[1], b[2]), mul(a[2], b[1])),
        sub(mul(a[2], b[0]), mul(a[0], b[2])),
        sub(mul(a[0], b[1]), mul(a[1], b[0])),
    )


def transpose(m: Matrix) -> Matrix:
    """m'."""
    return (m[0][0], m[1][0], m[2][0]), (m[0][1], m[1][1], m[2][1]), (m[0][2], m[1][2], m[2][2])


def rotate(m: Matrix, a: Vector) -> Vector:
    """m a: components in the frame before, from components in this frame."""
    return dot(m[0], a), dot(m[1], a), dot(m[2], a)


def unrotate(m: Matrix, a: Vector) -> Vector:
    """m' a: components in this frame, from components in the frame before."""
    return rotate(transpose(m), a)


def product(a: Matrix, b: Matrix) -> Matrix:
    """a b."""
    bt = transpose(b)
    return rotate(bt, a[0]), rotate(bt, a[1]), rotate(bt, a[2])


def compose(a: Frame, b: Frame) -> Frame:
    """Frame b, given in frame a, as seen from the frame before a."""
    return product(a[0], b[0]), vadd(rotate(a[0], b[1]), a[1])


def snap_rounding(value: float) -> float:
    """`value`, with the rounding of sines and cosines of right angles removed."""
    if abs(value) < _ROUNDING:
        return 0.0
    return math.copysign(1.0, value) if abs(abs(value) - 1.0) < _ROUNDING else value


def turn_x(angle: float) -> Frame:
    """Rotation about x [rad]."""
    c, s = snap_rounding(math.cos(angle)), snap_rounding(math.sin(angle))
    return ((1.0, 0.0, 0.0), (0.0, c, -s), (0.0, s, c)), ZERO


def turn_z(angle: float) -> Frame:
    """Rotation about z [rad]."""
    c, s = snap_rounding(math.cos(angle)), snap_rounding(math.sin(angle))
    return z_rotation(c, s), ZERO


def z_rotation(c: Number, s: Number) -> Matrix:
    """Rotation about z by the angle whose cosine and sine are given."""
    return (c, -s, 0.0), (s, c, 0.0), AXIS_Z


def shift(x: Number = 0.0, y: Number = 0.0, z: Number = 0.0) -> Frame:
    """Translation [m]."""
    return UNIT, (x, y, z)
