"""Closed forms as Python: straight-line functions with common sub-expressions computed once.

Torque, mass matrix, gravity and regressor come from the recursion itself, on recording numbers, which is far shorter
than the expanded closed form; the velocity matrices come from the closed form.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynident.dynamics import equations as eq
from dynident.dynamics.jit.program import LEAVES, UNARY, Op, Program, Recorder
from dynident.dynamics.state import State, make_state
from dynident.robot.algebra import ZERO, Number, mul, total
from dynident.symbolic.closed_form import ClosedForm
from dynident.symbolic.polynomials import BITS, Polynomial, factors

_FUNCTIONS = {
    "M": ("mass_matrix", "Mass matrix over the joints, rotors included."),
    "C": ("centrifugal_matrix", "Factors of the squared speeds."),
    "B": ("coriolis_matrix", "Factors of dq1 dq2, dq1 dq3, .. dq2 dq3, .."),
    "christoffel": ("christoffel_matrix", "C(q, dq): times dq it is the centrifugal and Coriolis torque."),
    "g": ("gravity", "Torque at the joints that holds the robot still."),
    "tau": ("inverse_dynamics", "Torque at the actuated coordinates."),
    "W": ("regressor", "W, with torque = W times the parameters in the order of COLUMNS."),
}
_STATES = {"M": "q", "C": "q", "B": "q", "g": "q", "christoffel": "q dq", "tau": "q dq ddq", "W": "q dq ddq"}
_INERTIAL = ("rigid", "Ia")
_WIDTH = 100
_LONGEST = 60  # characters of an intermediate result that is written in place
_OPERATORS = {Op.ADD: ("+", 1), Op.SUB: ("-", 1), Op.MUL: ("*", 2), Op.DIV: ("/", 2)}
_CALLS = {Op.SIN: "sin", Op.COS: "cos", Op.SIGN: "sign", Op.TANH: "tanh"}
_TAKEN = frozenset({"q", "dq", "ddq", "parameters", "constants", "sin", "cos", "sign", "tanh"})


def as_python(form: ClosedForm, parts: Sequence[str], values: Mapping[str, float] | None = None) -> str:
    """A module with one function per part, for floats or for arrays of samples."""
    writer = _Writer(form)
    functions = [writer.function(part) for part in parts]
    head = [f'"""Equations of {form.robot.name}. Positions may be floats or arrays of samples."""', ""]
    head += ["from numpy import cos, sign, sin, tanh", ""]
    head += [_mapping("CONSTANTS", form.quantities.constants)]
    if values is None and set(writer.parameters) <= set(form.robot.parameter_names):
        own = form.robot.value_set()
        values = {name: own.get(name, 0.0) for name in writer.parameters}
    if values is not None:
        head.append(_mapping("PARAMETERS", {name: float(values.get(name, 0.0)) for name in writer.parameters}))
    if "W" in parts:
        head.append(_wrapped("COLUMNS = [", [f'"{column.name}"' for column in form.shown_columns], "]"))
    default = "=PARAMETERS" if values is not None else ""
    return "\n".join(head) + "\n" + "".join(f"\n\n{text.replace('@DEFAULT', default)}" for text in functions)


class _Writer:
    """Writes the functions of one robot."""

    def __init__(self, form: ClosedForm) -> None:
        self.form = form
        self.parameters = [form.quantities.ring.names[p] for p in range(form.first_parameter, self._end(form))]
        self._constants = list(form.quantities.constants)
        self._leaves: dict[int, Number] = {}  # quantities of the closed form on the numbers of the function at hand
        self._names = [
            *(prefix + name for prefix in ("", "d", "dd") for name in form.robot.position_names),
            *self._constants,
            *self.parameters,
        ]

    @staticmethod
    def _end(form: ClosedForm) -> int:
        return form.first_parameter + sum(isinstance(x, Polynomial) for x in form.chi)

    def function(self, part: str) -> str:
        """Source of one function."""
        recorder = Recorder(self._names)
        self._leaves.clear()
        shape, numbers = self._numbers(part, recorder)
        program = recorder.finish(numbers)
        name, doc = _FUNCTIONS[part]
        states = _STATES[part].split()
        used = {program.inputs[a] for op, a, _ in program.instructions if op == Op.INPUT}
        arguments = [*states, *(["parameters@DEFAULT"] if part != "W" else []), "constants=CONSTANTS"]
        lines = [f"def {name}({', '.join(arguments)}):", f'    """{doc}"""']
        for state in states:
            own = [state[: -len("q")] + v for v in self.form.robot.position_names]
            if used & set(own):
                lines.append(f"    {', '.join(own)}{',' if len(own) == 1 else ''} = {state}")
        local = {name: name + "_" if name in _TAKEN else name for name in self._names}
        lines += [f'    {local[n]} = constants["{n}"]' for n in self._constants if n in used]
        lines += [f'    {local[n]} = parameters["{n}"]' for n in self.parameters if n in used]
        body, outputs = _Body(program, local, self._prefix()).write()
        lines += [f"    {line}" for line in body]
        lines += [f"    {line}" for line in _result(outputs, shape).splitlines()]
        return "\n".join(lines) + "\n"

    def _prefix(self) -> str:
        """A letter for intermediate results that no name starts with, digits behind it."""
        letters = ("x", "y", "z", "w", "t_", "step_")
        return next(p for p in letters if not any(re.fullmatch(rf"{p}\d+", name) for name in self._names))

    def _numbers(self, part: str, recorder: Recorder) -> tuple[tuple[int, ...], list[Number]]:
        """Shape and entries of a part on recorded numbers."""
        form, n = self.form, self.form.n
        if part in ("C", "B", "christoffel"):
            rows = {"C": form.centrifugal, "B": form.coriolis, "christoffel": form.christoffel}[part]
            return (n, len(rows[0])), [self._evaluate(x, recorder) for row in rows for x in row]
        chi = [self._leaf(_place(x), recorder) if isinstance(x, Polynomial) else x for x in form.chi]
        inertial = [term for term in form.terms if term.name in _INERTIAL]
        inertial_chi = [x for x, column in zip(chi, form.columns, strict=True) if column.term in _INERTIAL]
        moves = part in ("tau", "W")
        state = self._state(recorder, moves)
        if part == "M":
            return (n, n), [x for row in eq.mass_entries(state, inertial, inertial_chi) for x in row]
        if part == "W":
            entries = eq.regressor_entries(state, form.terms)
            return (n, len(form.shown)), [entries.get((i, j), 0.0) for i in range(n) for j in form.shown]
        if part == "tau":
            return (n,), eq.inverse_dynamics(state, form.terms, chi)
        rows_torque = eq.inverse_dynamics(state, inertial, inertial_chi)
        moving = list(form.robot.moving)
        coupling = form.robot.coupling[np.ix_(moving, moving)]
        return (n,), [total(*(mul(float(coupling[i, j]), rows_torque[i]) for i in range(n))) for j in range(n)]

    def _state(self, recorder: Recorder, moves: bool) -> State:
        robot, known = self.form.robot, self.form.quantities
        names = robot.position_names
        still: list[Number] = [0.0] * self.form.n
        q = [recorder.input(v) for v in names]
        dq, ddq = ([recorder.input(f"{d}{v}") for v in names] if moves else still for d in ("d", "dd"))
        lengths = {
            name: recorder.input(known.ring.names[_place(x)]) if isinstance(x, Polynomial) else x
            for name, x in known.lengths.items()
        }
        state = make_state(robot, recorder, q, dq, ddq, lengths={**robot.lengths, **lengths})
        x, y, z = (self._evaluate(v, recorder) for v in known.gravity)
        return dataclasses.replace(state, gravity=(x, y, z) if known.gravity != ZERO else ZERO)

    def _evaluate(self, value: Any, recorder: Recorder) -> Number:
        """A polynomial on recorded numbers, parameters outside."""
        if not isinstance(value, Polynomial):
            return value
        low = (1 << (BITS * self.form.first_parameter)) - 1
        parts: dict[int, list[Number]] = {}
        for powers, k in sorted(value.terms.items()):
            number: Number = 1.0
            for place, exponent in factors(powers & low):
                for _ in range(exponent):
                    number = mul(number, self._leaf(place, recorder))
            parts.setdefault(powers & ~low, []).append(mul(float(k), number))
        result: Number = 0.0
        for powers, numbers in parts.items():
            own: Number = total(*numbers)
            for place, _ in factors(powers):
                own = mul(own, self._leaf(place, recorder))
            result = total(result, own)
        return result

    def _leaf(self, place: int, recorder: Recorder) -> Number:
        if place not in self._leaves:
            self._leaves[place] = self._made(place, recorder)
        return self._leaves[place]

    def _made(self, place: int, recorder: Recorder) -> Number:
        known = self.form.quantities
        for direction, cosine in known.trig:
            if place in (cosine, cosine + 1):
                names = self.form.robot.position_names
                angle = total(*(mul(float(x), recorder.input(v)) for x, v in zip(direction, names, strict=True)))
                return recorder.cos(angle) if place == cosine else recorder.sin(angle)
        return recorder.input(known.ring.names[place])


class _Body:
    """Turns a program into assignments; what is used once is written in place while it is short."""

    def __init__(self, program: Program, local: Mapping[str, str], prefix: str) -> None:
        self._program, self._local, self._prefix = program, local, prefix
        self._text: list[tuple[str, int]] = []  # text and binding strength of each node
        self._uses = [0] * len(program.instructions)
        for op, a, b in program.instructions:
            if op not in LEAVES:
                self._uses[a] += 1
                if op not in UNARY:
                    self._uses[b] += 1
        for node in program.outputs:
            self._uses[node] += 1

    def write(self) -> tuple[list[str], list[str]]:
        """Lines, and the text of every output."""
        lines: list[str] = []
        for i, (op, a, b) in enumerate(self._program.instructions):
            text, strength = self._expression(op, a, b)
            if op not in LEAVES and (self._uses[i] > 1 or len(text) > _LONGEST):
                name = f"{self._prefix}{len(lines) + 1}"
                lines.append(f"{name} = {text}")
                text, strength = name, 3
            self._text.append((text, strength))
        return lines, [self._text[node][0] for node in self._program.outputs]

    def _expression(self, op: Op, a: int, b: int) -> tuple[str, int]:
        if op == Op.INPUT:
            return self._local[self._program.inputs[a]], 3
        if op == Op.CONST:
            value = self._program.constants[a]
            return repr(int(value) if value.is_integer() and abs(value) < 1e6 else value), 3 if value >= 0 else 1
        if op in _CALLS:
            return f"{_CALLS[op]}({self._text[a][0]})", 3
        if op == Op.NEG:
            return f"-{self._bound(a, 2)}", 1
        sign, strength = _OPERATORS[op]
        negative = self._text[b][0] if self._text[b][1] == 1 else ""
        if op == Op.ADD and negative.startswith("-"):  # a + -b - c is a - b - c
            return f"{self._bound(a, 1)} - {negative[1:]}", 1
        right = strength if op in (Op.ADD, Op.MUL) else strength + 1
        space = " " if strength == 1 else ""
        return f"{self._bound(a, strength)}{space}{sign}{space}{self._bound(b, right)}", strength

    def _bound(self, node: int, strength: int) -> str:
        text, own = self._text[node]
        return text if own >= strength else f"({text})"


def _place(value: Polynomial) -> int:
    """Place of a single quantity."""
    return factors(next(iter(value.terms)))[0][0]


def _result(outputs: Sequence[str], shape: tuple[int, ...]) -> str:
    if len(shape) == 1:
        return _wrapped("return [", outputs, "]")
    rows = [outputs[i * shape[1] : (i + 1) * shape[1]] for i in range(shape[0])]
    inner = "\n".join("    " + _wrapped("[", row, "],").replace("\n", "\n    ") for row in rows)
    return f"return [\n{inner}\n]"


def _mapping(name: str, values: Mapping[str, float]) -> str:
    return _wrapped(f"{name} = {{", [f'"{key}": {float(value)!r}' for key, value in values.items()], "}")


def _wrapped(left: str, items: Sequence[str], right: str) -> str:
    """Items on one line, or on several where they do not fit."""
    if len(line := f"{left}{', '.join(items)}{right}") <= _WIDTH:
        return line
    lines, current = [left], "   "
    for item in items:
        if len(current) + len(item) + 2 > _WIDTH and current.strip():
            lines.append(current)
            current = "   "
        current += f" {item},"
    return "\n".join([*lines, current, right])
