r"""Springs and counterbalances: torque that is a function of position, linear in a stiffness or a force.

A spring acts along a coordinate x, a sum of joint positions, or along a line between two points on both sides of a
joint, whose length l follows from x. Its potential energy is linear in its parameters, and so is the torque dU/dx that
a motor needs against it:

- linear: :math:`U = K_s (l - r)^2 / 2`, with rest position or free length r. Where r is not known,
  :math:`U = K_s l^2 / 2 + K_p l` with a preload :math:`K_p` of its own.
- gas: a cylinder that pushes with :math:`F_g (h / (h - s))^n` once it is pushed in by s below its reference length.
- hydraulic: a cylinder that pulls with the same force once it is pulled out by s, against gas in an accumulator.

h is the volume of the gas at the reference length over the area of the piston (for a gas spring that of its rod), n the
polytropic exponent, 1 where the gas keeps its temperature.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from dynident.arrays import Array, frozen
from dynident.robot.algebra import Functions, Number, add, mul, sub

SpringKind = Literal["linear", "gas", "hydraulic"]
SPRING_KINDS: tuple[SpringKind, ...] = ("linear", "gas", "hydraulic")
STIFFNESS, PRELOAD, FORCE = "Ks", "Kp", "Fg"
SPRING_SYMBOLS = (STIFFNESS, PRELOAD, FORCE)
SPRING_MEANINGS = {STIFFNESS: "stiffness", PRELOAD: "preload", FORCE: "force at the reference length"}


@dataclass(frozen=True)
class Line:
    r"""The line between a point on the link before a joint and one on the link that it moves.

    Its squared length is :math:`l_0^2 - 2 (c \cos x + s \sin x)` of a joint that turns, and
    :math:`l_0^2 + (x - c)^2` of one that slides.

    Attributes:
        square: :math:`l_0^2` [m²].
        cosine, sine: c and s: [m²] of a joint that turns, [m] and unused of one that slides.
    """

    square: float
    cosine: float
    sine: float

    @staticmethod
    def between(before: Array, after: Array, prismatic: bool) -> Line:
        """Between two points (3,) in the joint frame, the one that stays behind and the one that moves [m]."""
        if prismatic:
            across = float(np.sum((before[:2] - after[:2]) ** 2))
            return Line(across, float(before[2] - after[2]), 0.0)
        along = float(before @ before + after @ after - 2.0 * before[2] * after[2])
        cosine = float(before[0] * after[0] + before[1] * after[1])
        return Line(along, cosine, float(before[1] * after[0] - before[0] * after[1]))

    def lengths(self, prismatic: bool) -> tuple[float, float]:
        """The shortest and the longest it can be [m]; a slide has no longest."""
        if prismatic:
            return float(np.sqrt(self.square)), np.inf
        swing = 2.0 * float(np.hypot(self.cosine, self.sine))
        return float(np.sqrt(max(self.square - swing, 0.0))), float(np.sqrt(self.square + swing))

    def length(self, x: Number, functions: Functions, prismatic: bool) -> tuple[Number, Number]:
        """Length, and by how much it grows with x."""
        if prismatic:
            along = sub(x, self.cosine)
            length = _root(add(self.square, mul(along, along)), functions)
            return length, along / length
        c, s = functions.cos(x), functions.sin(x)
        half = add(mul(self.cosine, c), mul(self.sine, s))
        length = _root(sub(self.square, mul(2.0, half)), functions)
        return length, sub(mul(self.cosine, s), mul(self.sine, c)) / length


def _root(x: Number, functions: Functions) -> Number:
    return functions.exp(mul(0.5, functions.log(x)))


@dataclass(frozen=True)
class Spring:
    """A spring of a robot.

    Attributes:
        label: Ends the names of its parameters: Ks2.
        joints: (n_joints,) coefficients of x over the positions of the tree joints.
        prismatic: Whether x is a length.
        kind: "linear", "gas" or "hydraulic".
        line: The line it acts along; None where it acts along x itself.
        rest: Of a linear spring, x or the length at which it is relaxed; None where that is not known [rad or m].
        reference: Of a cylinder, the length at which its force is Fg [m].
        gas_column: Of a cylinder, h [m].
        exponent: Of a cylinder, n.
    """

    label: str
    joints: Array
    prismatic: bool
    kind: SpringKind = "linear"
    line: Line | None = None
    rest: float | None = None
    reference: float = 0.0
    gas_column: float = 1.0
    exponent: float = 1.0
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "joints", frozen(self.joints))
        object.__setattr__(self, "names", tuple(symbol + self.label for symbol in self.symbols))

    @property
    def symbols(self) -> tuple[str, ...]:
        """Symbols of its parameters."""
        if self.kind != "linear":
            return (FORCE,)
        return (STIFFNESS, PRELOAD) if self.rest is None else (STIFFNESS,)

    def unit(self, symbol: str) -> str:
        """Unit of a parameter."""
        along_length = self.prismatic or self.line is not None
        if symbol == STIFFNESS:
            return "N/m" if along_length else "N·m/rad"
        return "N" if along_length else "N·m"

    def torques(self, x: Number, functions: Functions) -> Iterator[Number]:
        """dU/dx for each parameter."""
        length, slope = (x, 1.0) if self.line is None else self.line.length(x, functions, self.prismatic)
        if self.kind == "linear":
            yield mul(length if self.rest is None else sub(length, self.rest), slope)
            if self.rest is None:
                yield slope
            return
        press, way = self._compression(length)
        force = 1.0 / press if self.exponent == 1.0 else functions.exp(mul(-self.exponent, functions.log(press)))
        yield mul(mul(way, force), slope)

    def energies(self, x: Number, functions: Functions) -> Iterator[Number]:
        """U for each parameter, zero where it is relaxed or at its reference length."""
        length = x if self.line is None else self.line.length(x, functions, self.prismatic)[0]
        if self.kind == "linear":
            away = length if self.rest is None else sub(length, self.rest)
            yield mul(0.5, mul(away, away))
            if self.rest is None:
                yield length
            return
        press = self._compression(length)[0]
        if self.exponent == 1.0:
            yield mul(-self.gas_column, functions.log(press))
        else:
            lower = 1.0 - self.exponent
            yield mul(-self.gas_column / lower, sub(functions.exp(mul(lower, functions.log(press))), 1.0))

    def _compression(self, length: Number) -> tuple[Number, float]:
        """Share of the gas volume that is left, 1 - s / h, and the sign with which s grows with the length."""
        way = -1.0 if self.kind == "gas" else 1.0
        stroke = mul(way, sub(length, self.reference))
        return sub(1.0, mul(1.0 / self.gas_column, stroke)), way

    def least_volume(self) -> float:
        """Smallest share of the gas volume over all positions; above zero for a cylinder that can be built."""
        if self.line is None or self.kind == "linear":
            return 1.0
        shortest, longest = self.line.lengths(self.prismatic)
        return float(self._compression(shortest if self.kind == "gas" else longest)[0])

    def data(self) -> tuple[object, ...]:
        """What shapes its equations, for a fingerprint."""
        line = None if self.line is None else (self.line.square, self.line.cosine, self.line.sine)
        shape = (self.rest, self.reference, self.gas_column, self.exponent)
        return (self.label, self.joints.tolist(), self.prismatic, self.kind, line, shape)
