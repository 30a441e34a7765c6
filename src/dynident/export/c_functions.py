"""The functions of the C code, each a straight-line program recorded from the library's own recursion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynident.dynamics import equations as eq
from dynident.dynamics.jit.program import Op, Program, Value
from dynident.dynamics.jit.program_text import ATOM, OPERATORS, Syntax, Text, in_brackets, write_program
from dynident.dynamics.state import State
from dynident.dynamics.terms import Term, along_terms, state_terms
from dynident.export.c_model import VARIANTS, CModel, Variant
from dynident.export.c_terms import Sheet, along_entries, along_torque
from dynident.robot.algebra import Number, add

INERTIAL = ("rigid", "Ia")
Outputs = dict[int, Number]  # by place in the output array
Maker = Callable[[Sheet], Outputs]


@dataclass(frozen=True)
class CFunction:
    """One function.

    Attributes:
        name: Without the prefix, such as "gravity"; the variant for standard parameters ends in "_standard".
        kind: The name without the variant.
        variant: Which parameters it takes.
        arguments: Names of its inputs, in order: among q, dq, ddq, dddq, memory, p.
        output: Name of its output array.
        size: Length of the output.
        purpose: What it computes, in words.
        program: How.
        places: Place in the output of each of the program's outputs; the others are zero.
    """

    name: str
    kind: str
    variant: Variant
    arguments: tuple[str, ...]
    output: str
    size: int
    purpose: str
    program: Program
    places: tuple[int, ...]


# How a function is recorded, its arguments, its output and its purpose in words.
Kind = tuple[Maker, tuple[str, ...], str, str]


def record_functions(model: CModel) -> tuple[CFunction, ...]:
    """All functions of a model, with base parameters first."""
    return tuple(_function(model, kind, variant) for variant in VARIANTS for kind in _kinds(model))


def _kinds(model: CModel) -> dict[str, Kind]:
    motion = ["q", "dq", "ddq"]
    if model.needs_jerk:
        motion.append("dddq")
    if model.springs:
        motion.append("memory")
    full, known = (*motion, "p"), ("p",) if model.reference is not None else ()
    kinds: dict[str, Kind] = {
        "inverse_dynamics": (_torque, full, "tau", "torque that gives the motion, friction included"),
        "friction": (_friction, full, "tau", "its part without links and rotors: friction, offsets, small errors"),
        "gravity": (_gravity, ("q", "p"), "tau", "torque that holds the links still"),
        "bias": (_bias, ("q", "dq", "p"), "tau", "Coriolis, centrifugal and gravity torque"),
        "mass_matrix": (_mass, ("q", "p"), "M", "mass matrix over the joints, rotors included, row after row"),
        "regressor": (_regressor, (*motion, *known), "W", "W of tau = W p (+ fixed ones), row after row"),
    }
    if model.robot.locked_motors_move:
        del kinds["mass_matrix"]
    return kinds


def _function(model: CModel, name: str, variant: Variant) -> CFunction:
    make, arguments, output, purpose = _kinds(model)[name]
    sheet = Sheet(model, variant)
    outputs = make(sheet)
    kept = {place: x for place, x in outputs.items() if isinstance(x, Value) or x != 0.0}
    n, columns = sheet.n, len(model.beta if variant == "base" else model.chi)
    return CFunction(
        name=name if variant == "base" else f"{name}_standard",
        kind=name,
        variant=variant,
        arguments=arguments,
        output=output,
        size={"tau": n, "M": n * n, "W": n * columns}[output],
        purpose=purpose,
        program=sheet.recorder.finish(list(kept.values())),
        places=tuple(kept),
    )


def _of_state(sheet: Sheet, terms: Sequence[Term], state: State) -> list[Number]:
    """Torque of terms that are functions of the state."""
    return eq.inverse_dynamics(state, terms, [x for term in terms for x in sheet.chi[term.key]])


def _inertial(sheet: Sheet) -> list[Term]:
    return [term for term in sheet.model.terms if term.name in INERTIAL]


def _torque(sheet: Sheet) -> Outputs:
    rows = _of_state(sheet, state_terms(sheet.model.terms), sheet.state())
    return dict(enumerate(add(x, y) for x, y in zip(rows, along_torque(sheet), strict=True)))


def _friction(sheet: Sheet) -> Outputs:
    terms = [term for term in state_terms(sheet.model.terms) if term.name not in INERTIAL]
    rows = _of_state(sheet, terms, sheet.state())
    return dict(enumerate(add(x, y) for x, y in zip(rows, along_torque(sheet), strict=True)))


def _gravity(sheet: Sheet) -> Outputs:
    return dict(enumerate(_of_state(sheet, _inertial(sheet), sheet.state(moving=False, accelerating=False))))


def _bias(sheet: Sheet) -> Outputs:
    return dict(enumerate(_of_state(sheet, _inertial(sheet), sheet.state(accelerating=False))))


def _mass(sheet: Sheet) -> Outputs:
    terms, state = _inertial(sheet), sheet.state(moving=False, accelerating=False)
    matrix = eq.mass_entries(state, terms, [x for term in terms for x in sheet.chi[term.key]])
    return dict(enumerate(x for row in matrix for x in row))


def _regressor(sheet: Sheet) -> Outputs:
    base, robot = sheet.model.base, sheet.robot
    n_columns = len(base.columns)
    chosen = range(n_columns) if sheet.variant == "standard" else base.independent
    place = {index: column for column, index in enumerate(chosen)}
    of_state = state_terms(base.terms)
    found = dict(eq.regressor_entries(sheet.state(), of_state))
    first = sum(len(term.columns(robot)) for term in of_state)  # terms of the state come first in a base
    for term in along_terms(base.terms):
        for row, column, number in along_entries(term, sheet):
            found[row, first + column] = add(found.get((row, first + column), 0.0), number)
        first += len(term.columns(robot))
    return {row * len(place) + place[column]: x for (row, column), x in found.items() if column in place}


# ----------------------------------------------------------------------------------------------------------------------
# Straight-line programs as C: statements, literals, and the operations they cost.

CNumber = Literal["double", "float"]
_CALLS = {Op.SIN: "sin", Op.COS: "cos", Op.TANH: "tanh", Op.EXP: "exp", Op.LOG: "log", Op.ABS: "fabs"}


@dataclass(frozen=True)
class Counts:
    """Operations of a function.

    Attributes:
        additions: And subtractions.
        multiplications: Of two numbers.
        divisions: Of two numbers.
        functions: sin, cos, tanh, exp, log.
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
            functions=count(Op.SIN, Op.COS, Op.TANH, Op.EXP, Op.LOG),
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
    suffix = "f" if number == "float" else ""

    def call(op: Op, text: str) -> str:
        return f"sign_of({text})" if op == Op.SIGN else f"{_CALLS[op]}{suffix}({text})"

    def binary(op: Op, left: Text, right: Text) -> str:
        sign, strength = OPERATORS[op]
        # A sum at the right keeps its brackets too: C must add in the order that was recorded.
        return f"{in_brackets(left, strength)} {sign} {in_brackets(right, strength + 1)}"

    syntax = Syntax(
        name=lambda i: f"x{i}",
        assign=lambda name, text: f"const {number} {name} = {text};",
        constant=lambda value: literal(value, number),
        call=call,
        binary=binary,
        negated_strength=ATOM,
        longest=80,
        names_outputs=True,
    )
    return write_program(program, syntax)
