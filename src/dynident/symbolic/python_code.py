"""Closed forms as Python: straight-line functions with common sub-expressions computed once.

Torque, mass matrix, gravity and regressor come from the recursion itself, on recording numbers, which is far shorter
than the expanded closed form; the velocity matrices come from the closed form.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from dynident.dynamics import equations as eq
from dynident.dynamics.jit.program import Op, Recorder
from dynident.dynamics.jit.program_text import OPERATORS, PRODUCT, SUM, Syntax, Text, in_brackets, write_program
from dynident.dynamics.state import State, make_state
from dynident.robot.algebra import ZERO, Number, mul, total
from dynident.symbolic.closed_form import ClosedForm
from dynident.symbolic.polynomials import BITS, Polynomial, factors

_FUNCTIONS = {
    "M": ("mass_matrix", "Mass matrix over the joints, rotors included."),
    "C": ("centrifugal_matrix", "Factors of the squared velocities."),
    "B": ("coriolis_matrix", "Factors of dq1 dq2, dq1 dq3, .. dq2 dq3, .."),
    "christoffel": ("christoffel_matrix", "C(q, dq): times dq it is the centrifugal and Coriolis torque."),
    "g": ("gravity", "Torque at the joints that holds the robot still."),
    "tau": ("inverse_dynamics", "Torque at the actuated coordinates."),
    "W": ("regressor", "W, with torque = W times the parameters in the order of COLUMNS."),
}
_STATES = {"M": "q", "C": "q", "B": "q", "g": "q", "christoffel": "q dq", "tau": "q dq ddq", "W": "q dq ddq"}
_INERTIAL = ("rigid", "Ia")
_WIDTH = 100
_CALLS = {Op.SIN: "sin", Op.COS: "cos", Op.SIGN: "sign", Op.TANH: "tanh"}
_TAKEN = frozenset({"q", "dq", "ddq", "parameters", "constants", "sin", "cos", "sign", "tanh"})


def as_python(form: ClosedForm, parts: Sequence[str], values: Mapping[str, float] | None = None) -> str:
    """A module with one function per part, for floats or for arrays of samples."""
    writer = _PythonWriter(form)
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
        head.append(_wrap_items("COLUMNS = [", [f'"{column.name}"' for column in form.shown_columns], "]"))
    default = "=PARAMETERS" if values is not None else ""
    return "\n".join(head) + "\n" + "".join(f"\n\n{text.replace('@DEFAULT', default)}" for text in functions)


class _PythonWriter:
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
        body, outputs = write_program(program, _python_syntax(self._prefix()), lambda name: local[name])
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
        coupling = form.robot.moving_coupling
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
            self._leaves[place] = self._make_leaf(place, recorder)
        return self._leaves[place]

    def _make_leaf(self, place: int, recorder: Recorder) -> Number:
        known = self.form.quantities
        for direction, cosine in known.trig:
            if place in (cosine, cosine + 1):
                names = self.form.robot.position_names
                angle = total(*(mul(float(x), recorder.input(v)) for x, v in zip(direction, names, strict=True)))
                return recorder.cos(angle) if place == cosine else recorder.sin(angle)
        return recorder.input(known.ring.names[place])


def _binary(op: Op, left: Text, right: Text) -> str:
    sign, strength = OPERATORS[op]
    if op == Op.ADD and right[1] == SUM and right[0].startswith("-"):  # a + -b - c is a - b - c
        return f"{in_brackets(left, SUM)} - {right[0][1:]}"
    space = " " if strength == SUM else ""
    behind = in_brackets(right, strength if op in (Op.ADD, Op.MUL) else strength + 1)
    return f"{in_brackets(left, strength)}{space}{sign}{space}{behind}"


def _python_syntax(prefix: str) -> Syntax:
    """Python, with intermediate results named by a prefix and their number."""
    return Syntax(
        name=lambda i: f"{prefix}{i + 1}",
        assign=lambda name, text: f"{name} = {text}",
        constant=lambda value: repr(int(value) if value.is_integer() and abs(value) < 1e6 else value),
        call=lambda op, text: f"{_CALLS[op]}({text})",
        binary=_binary,
        negated_strength=PRODUCT,
        longest=60,
    )


def _place(value: Polynomial) -> int:
    """Place of a single quantity."""
    return factors(next(iter(value.terms)))[0][0]


def _result(outputs: Sequence[str], shape: tuple[int, ...]) -> str:
    if len(shape) == 1:
        return _wrap_items("return [", outputs, "]")
    rows = [outputs[i * shape[1] : (i + 1) * shape[1]] for i in range(shape[0])]
    inner = "\n".join("    " + _wrap_items("[", row, "],").replace("\n", "\n    ") for row in rows)
    return f"return [\n{inner}\n]"


def _mapping(name: str, values: Mapping[str, float]) -> str:
    return _wrap_items(f"{name} = {{", [f'"{key}": {float(value)!r}' for key, value in values.items()], "}")


def _wrap_items(left: str, items: Sequence[str], right: str) -> str:
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
