"""The functions of the C code, each a straight-line program recorded from the library's own recursion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dynident.dynamics import equations as eq
from dynident.dynamics.program import Program, Value
from dynident.dynamics.terms import Term, along_terms, state_terms
from dynident.export.c_model import VARIANTS, CModel, Variant
from dynident.export.c_terms import Sheet, along_entries, along_torque
from dynident.robot.algebra import Number, add
from dynident.robot.model import Robot

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


@dataclass(frozen=True)
class _Kind:
    make: Maker
    arguments: tuple[str, ...]
    output: str
    purpose: str


def c_functions(model: CModel) -> tuple[CFunction, ...]:
    """All functions of a model, with base parameters first."""
    return tuple(_function(model, kind, variant) for variant in VARIANTS for kind in _kinds(model))


def mass_is_known(robot: Robot) -> bool:
    """Whether the rows tell all torque: a locked joint's motor may also turn with a moving joint."""
    return not np.any(robot.coupling[np.ix_(list(robot.locked), list(robot.moving))])


def _kinds(model: CModel) -> dict[str, _Kind]:
    motion = ["q", "dq", "ddq"]
    if model.needs_jerk:
        motion.append("dddq")
    if model.springs:
        motion.append("memory")
    full, known = (*motion, "p"), ("p",) if model.reference is not None else ()
    kinds = {
        "inverse_dynamics": _Kind(_torque, full, "tau", "torque that gives the motion, friction included"),
        "friction": _Kind(_friction, full, "tau", "its part without links and rotors: friction, offsets, small errors"),
        "gravity": _Kind(_gravity, ("q", "p"), "tau", "torque that holds the links still"),
        "bias": _Kind(_bias, ("q", "dq", "p"), "tau", "Coriolis, centrifugal and gravity torque"),
        "mass_matrix": _Kind(_mass, ("q", "p"), "M", "mass matrix over the joints, rotors included, row after row"),
        "regressor": _Kind(_regressor, (*motion, *known), "W", "W of tau = W p (+ fixed ones), row after row"),
    }
    if not mass_is_known(model.robot):
        del kinds["mass_matrix"]
    return kinds


def _function(model: CModel, name: str, variant: Variant) -> CFunction:
    kind = _kinds(model)[name]
    sheet = Sheet(model, variant)
    outputs = kind.make(sheet)
    kept = {place: x for place, x in outputs.items() if isinstance(x, Value) or x != 0.0}
    n, columns = sheet.n, len(model.beta if variant == "base" else model.chi)
    return CFunction(
        name=name if variant == "base" else f"{name}_standard",
        kind=name,
        variant=variant,
        arguments=kind.arguments,
        output=kind.output,
        size={"tau": n, "M": n * n, "W": n * columns}[kind.output],
        purpose=kind.purpose,
        program=sheet.recorder.finish(list(kept.values())),
        places=tuple(kept),
    )


def _of_state(sheet: Sheet, terms: Sequence[Term], state: eq.State) -> list[Number]:
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
