"""Straight-line programs as C: statements, literals, and the operations they cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynident.dynamics.program import LEAVES, UNARY, Op, Program

CNumber = Literal["double", "float"]
_LONGEST = 80  # characters of an intermediate result that is written in place
_OPERATORS = {Op.ADD: ("+", 1), Op.SUB: ("-", 1), Op.MUL: ("*", 2), Op.DIV: ("/", 2)}
_CALLS = {Op.SIN: "sin", Op.COS: "cos", Op.TANH: "tanh", Op.EXP: "exp", Op.ABS: "fabs"}
_UNBOUND, _WHOLE = 1, 3  # binding strength of a sum, and of what needs no brackets


@dataclass(frozen=True)
class Counts:
    """Operations of a function.

    Attributes:
        additions: And subtractions.
        multiplications: Of two numbers.
        divisions: Of two numbers.
        functions: sin, cos, tanh, exp.
        signs: Changes of sign, absolute values and signs, which cost next to nothing.
    """

    additions: int
    multiplications: int
    divisions: int
    functions: int
    signs: int

    @staticmethod
    def of(program: Program) -> Counts:
        """The operations of a program."""
        found = [op for op, _, _ in program.instructions]

        def count(*ops: Op) -> int:
            return sum(op in ops for op in found)

        return Counts(
            additions=count(Op.ADD, Op.SUB),
            multiplications=count(Op.MUL),
            divisions=count(Op.DIV),
            functions=count(Op.SIN, Op.COS, Op.TANH, Op.EXP),
            signs=count(Op.NEG, Op.ABS, Op.SIGN),
        )


def literal(value: float, number: CNumber) -> str:
    """A number as C reads it, to the last bit."""
    if number == "double":
        return repr(float(value))
    text = str(np.float32(value))
    return (text if "." in text or "e" in text else f"{text}.0") + "f"


def statements(program: Program, number: CNumber) -> tuple[list[str], list[str]]:
    """A program as statements, and the text of every output; inputs have their names in C already."""
    return _Writer(program, number).write()


class _Writer:
    """What is used once is written in place while it is short; all else has a name."""

    def __init__(self, program: Program, number: CNumber) -> None:
        self._program, self._number = program, number
        self._suffix = "f" if number == "float" else ""
        self._text: list[tuple[str, int]] = []  # text and binding strength of each node
        self._uses = [0] * len(program.instructions)
        for op, a, b in program.instructions:
            if op not in LEAVES:
                self._uses[a] += 1
                if op not in UNARY:
                    self._uses[b] += 1
        for node in program.outputs:
            self._uses[node] += 2  # named, so that nothing is computed once outputs are being written

    def write(self) -> tuple[list[str], list[str]]:
        """Lines, and the text of every output."""
        lines: list[str] = []
        for i, (op, a, b) in enumerate(self._program.instructions):
            text, strength = self._expression(op, a, b)
            if op not in LEAVES and (self._uses[i] > 1 or len(text) > _LONGEST):
                name = f"x{len(lines)}"
                lines.append(f"const {self._number} {name} = {text};")
                text, strength = name, _WHOLE
            self._text.append((text, strength))
        return lines, [self._text[node][0] for node in self._program.outputs]

    def _expression(self, op: Op, a: int, b: int) -> tuple[str, int]:
        if op == Op.INPUT:
            return self._program.inputs[a], _WHOLE
        if op == Op.CONST:
            value = self._program.constants[a]
            return literal(value, self._number), _WHOLE if value >= 0 else _UNBOUND
        if op in _CALLS:
            return f"{_CALLS[op]}{self._suffix}({self._text[a][0]})", _WHOLE
        if op == Op.SIGN:
            return f"sign_of({self._text[a][0]})", _WHOLE
        if op == Op.NEG:
            return f"-{self._bound(a, _WHOLE)}", _UNBOUND
        sign, strength = _OPERATORS[op]
        # A sum at the right keeps its brackets too: C must add in the order that was recorded.
        return f"{self._bound(a, strength)} {sign} {self._bound(b, strength + 1)}", strength

    def _bound(self, node: int, strength: int) -> str:
        text, own = self._text[node]
        return text if own >= strength else f"({text})"
