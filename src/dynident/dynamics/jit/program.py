"""Recording numbers: run the recursion on them and get the straight-line program of a robot.

Constants are folded, equal sub-expressions are computed once, and what no output needs is dropped. A program is plain
data; a back end (see `numpy_backend`) turns it into something that runs on batches.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from dynident.robot.algebra import Number


class Op(IntEnum):
    """Operations of a program; an instruction is (op, a, b) with node numbers a, b."""

    INPUT = 0  # a: which input
    CONST = 1  # a: which constant
    ADD = 2
    SUB = 3
    MUL = 4
    DIV = 5
    NEG = 6
    SIN = 7
    COS = 8
    SIGN = 9
    TANH = 10
    ABS = 11
    EXP = 12
    LOG = 13

    __hash__ = int.__hash__  # that of enumerations is a function in Python, and every instruction is looked up


UNARY = frozenset({Op.NEG, Op.SIN, Op.COS, Op.SIGN, Op.TANH, Op.ABS, Op.EXP, Op.LOG})
_COMMUTATIVE = (Op.ADD, Op.MUL)
LEAVES = frozenset({Op.INPUT, Op.CONST})
Instruction = tuple[Op, int, int]
_PLAIN = (float, int)


@dataclass(frozen=True)
class Program:
    """A straight-line program.

    Attributes:
        inputs: Names of the inputs, such as "q0", "ddq3", "chi12".
        constants: Values of the constants.
        instructions: Nodes in order; node i may use nodes before i.
        outputs: Node of each output.
    """

    inputs: tuple[str, ...]
    constants: tuple[float, ...]
    instructions: tuple[Instruction, ...]
    outputs: tuple[int, ...]

    @property
    def n_operations(self) -> int:
        """Number of arithmetic operations per sample."""
        return sum(op not in LEAVES for op, _, _ in self.instructions)

    @property
    def fingerprint(self) -> str:
        """Hash of the program's text, the same on every machine."""
        digest = hashlib.sha256(repr((self.inputs, self.outputs)).encode())
        digest.update(struct.pack(f"<{len(self.constants)}d", *self.constants))
        for instruction in self.instructions:
            digest.update(struct.pack("<3q", *instruction))
        return digest.hexdigest()[:24]


class Recorder:
    """Collects the instructions that recorded values leave behind."""

    def __init__(self, inputs: Sequence[str]) -> None:
        self.inputs = tuple(inputs)
        self.nodes: list[Instruction] = []
        self.constants: list[float] = []
        self._known: dict[Instruction, int] = {}
        self._constant_node: dict[float, int] = {}

    def input(self, name: str) -> Value:
        """The recorded value of an input."""
        return self._emit(Op.INPUT, self.inputs.index(name))

    def node(self, value: Number) -> int:
        """Node of a recorded value or of a plain number."""
        if isinstance(value, Value):
            return value.node
        number = float(value)
        if number not in self._constant_node:
            self.constants.append(number)
            self.nodes.append((Op.CONST, len(self.constants) - 1, 0))
            self._constant_node[number] = len(self.nodes) - 1
        return self._constant_node[number]

    def _emit(self, op: Op, a: int, b: int = 0) -> Value:
        if a > b and op in _COMMUTATIVE:
            a, b = b, a  # commutative: one order, so that equal expressions meet
        key = (op, a, b)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self.nodes)
            self.nodes.append(key)
        return Value(self, found)

    def sin(self, x: Number) -> Value:
        """sin(x)."""
        return self._emit(Op.SIN, self.node(x))

    def cos(self, x: Number) -> Value:
        """cos(x)."""
        return self._emit(Op.COS, self.node(x))

    def sign(self, x: Number) -> Value:
        """-1, 0 or 1."""
        return self._emit(Op.SIGN, self.node(x))

    def tanh(self, x: Number) -> Value:
        """tanh(x)."""
        return self._emit(Op.TANH, self.node(x))

    def abs(self, x: Number) -> Value:
        """|x|."""
        return self._emit(Op.ABS, self.node(x))

    def exp(self, x: Number) -> Value:
        """e to the x."""
        return self._emit(Op.EXP, self.node(x))

    def log(self, x: Number) -> Value:
        """Natural logarithm."""
        return self._emit(Op.LOG, self.node(x))

    def finish(self, outputs: Sequence[Number]) -> Program:
        """The program that computes `outputs`, without anything they do not need."""
        targets = [self.node(value) for value in outputs]
        needed = [False] * len(self.nodes)
        for target in targets:
            needed[target] = True
        for i in range(len(self.nodes) - 1, -1, -1):
            op, a, b = self.nodes[i]
            if needed[i] and op not in LEAVES:
                needed[a] = True
                if op not in UNARY:
                    needed[b] = True
        renumbered: dict[int, int] = {}
        constants: list[float] = []
        kept: list[Instruction] = []
        for i, (op, a, b) in enumerate(self.nodes):
            if not needed[i]:
                continue
            renumbered[i] = len(kept)
            if op == Op.CONST:
                constants.append(self.constants[a])
                kept.append((op, len(constants) - 1, 0))
            elif op == Op.INPUT:
                kept.append((op, a, 0))
            else:
                kept.append((op, renumbered[a], 0 if op in UNARY else renumbered[b]))
        return Program(self.inputs, tuple(constants), tuple(kept), tuple(renumbered[t] for t in targets))


class Value:
    """A number that remembers how it was made."""

    __slots__ = ("node", "recorder")

    def __init__(self, recorder: Recorder, node: int) -> None:
        self.recorder = recorder
        self.node = node

    def _negated(self) -> Value | None:
        """x if this value is -x."""
        op, a, _ = self.recorder.nodes[self.node]
        return Value(self.recorder, a) if op == Op.NEG else None

    def __neg__(self) -> Value:
        inner = self._negated()
        return inner if inner is not None else self.recorder._emit(Op.NEG, self.node)

    def __add__(self, other: Number) -> Any:
        if isinstance(other, _PLAIN):
            if other == 0:
                return self
        elif (inner := other._negated()) is not None:
            return self - inner
        elif (inner := self._negated()) is not None:
            return other - inner
        return self.recorder._emit(Op.ADD, self.node, self.recorder.node(other))

    __radd__ = __add__

    def __sub__(self, other: Number) -> Any:
        if isinstance(other, _PLAIN):
            if other == 0:
                return self
        elif other.node == self.node:
            return 0.0
        elif (inner := other._negated()) is not None:
            return self + inner
        return self.recorder._emit(Op.SUB, self.node, self.recorder.node(other))

    def __rsub__(self, other: Number) -> Any:
        if other == 0:
            return -self
        return self.recorder._emit(Op.SUB, self.recorder.node(other), self.node)

    def __mul__(self, other: Number) -> Any:
        if isinstance(other, _PLAIN):
            if other == 0:
                return 0.0
            if other == 1:
                return self
            if other < 0:
                return -(self * -other)
        elif (inner := other._negated()) is not None:
            return -(self * inner)
        if (inner := self._negated()) is not None:
            return -(inner * other)
        return self.recorder._emit(Op.MUL, self.node, self.recorder.node(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Number) -> Any:
        if isinstance(other, _PLAIN):
            return self * (1.0 / other)
        return self.recorder._emit(Op.DIV, self.node, other.node)

    def __rtruediv__(self, other: Number) -> Any:
        if other == 0:
            return 0.0
        return self.recorder._emit(Op.DIV, self.recorder.node(other), self.node)

    def __pow__(self, exponent: int) -> Any:
        if not isinstance(exponent, int) or exponent < 0:
            return NotImplemented
        result: Any = 1.0
        for _ in range(exponent):
            result = self * result
        return result

    def __abs__(self) -> Value:
        return self.recorder.abs(self)
