"""Dual numbers: the recursion runs on them and gives the derivative of its result along a direction."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dynident.dynamics import equations as eq
from dynident.dynamics.closure import map_values
from dynident.dynamics.jit.program import Recorder
from dynident.dynamics.state import State, make_state
from dynident.dynamics.terms import Entry, Rigid, along_terms
from dynident.dynamics.terms.friction import FrictionTerm
from dynident.dynamics.terms.friction_laws import ElementMotion
from dynident.dynamics.terms.linearized import Tilt, Zero
from dynident.dynamics.terms.temperature import TemperatureFriction
from dynident.dynamics.terms.term import AlongTerm
from dynident.export.c_model import CModel, Variant
from dynident.robot.algebra import Functions, Number, Vector, add, mul, sub, total


class Dual:
    """A number and its slope along a direction, both of any number type."""

    __slots__ = ("slope", "value")

    def __init__(self, value: Number, slope: Number = 0.0) -> None:
        self.value, self.slope = value, slope

    def __neg__(self) -> Dual:
        return Dual(sub(0.0, self.value), sub(0.0, self.slope))

    def __add__(self, other: Any) -> Dual:
        other = _dual(other)
        return Dual(add(self.value, other.value), add(self.slope, other.slope))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Dual:
        other = _dual(other)
        return Dual(sub(self.value, other.value), sub(self.slope, other.slope))

    def __rsub__(self, other: Any) -> Dual:
        return _dual(other) - self

    def __mul__(self, other: Any) -> Dual:
        other = _dual(other)
        slope = add(mul(self.slope, other.value), mul(self.value, other.slope))
        return Dual(mul(self.value, other.value), slope)

    __rmul__ = __mul__


def _dual(x: Any) -> Dual:
    return x if isinstance(x, Dual) else Dual(x)


def slope_of(x: Any) -> Number:
    """The slope of a result; that of a plain number is zero."""
    return x.slope if isinstance(x, Dual) else 0.0


class DualFunctions:
    """The functions that the recursion of the links needs, on dual numbers.

    Args:
        functions: Those of the numbers within.
    """

    def __init__(self, functions: Functions) -> None:
        self._functions = functions

    def sin(self, x: Dual) -> Dual:
        """sin(x)."""
        return Dual(self._functions.sin(x.value), mul(x.slope, self._functions.cos(x.value)))

    def cos(self, x: Dual) -> Dual:
        """cos(x)."""
        return Dual(self._functions.cos(x.value), sub(0.0, mul(x.slope, self._functions.sin(x.value))))

    def sign(self, x: Dual) -> Dual:
        """-1, 0 or 1: flat but for a jump."""
        return Dual(self._functions.sign(x.value))

    def tanh(self, x: Dual) -> Dual:
        """tanh(x)."""
        value = self._functions.tanh(x.value)
        return Dual(value, mul(x.slope, sub(1.0, mul(value, value))))

    def exp(self, x: Dual) -> Dual:
        """e to the x."""
        value = self._functions.exp(x.value)
        return Dual(value, mul(x.slope, value))

    def log(self, x: Dual) -> Dual:
        """Natural logarithm."""
        return Dual(self._functions.log(x.value), x.slope / x.value)


# ----------------------------------------------------------------------------------------------------------------------
# Terms that follow a motion, on recorded numbers: what they add to the torque, and their columns.
#
# Laws of friction are not written a second time: those of the library run on arrays of recorded numbers. Joint zeros
# are the exact derivative of the links' torque, where the library takes a difference quotient: single precision has no
# digits to spare for one.


class Sheet:
    """The inputs of a C function as recorded numbers, under their names in C.

    Args:
        model: What is exported.
        variant: Which parameters p holds.
    """

    def __init__(self, model: CModel, variant: Variant) -> None:
        self.model, self.robot, self.variant = model, model.robot, variant
        self.n = n = len(model.robot.moving)
        sizes = {"q": n, "dq": n, "ddq": n, "dddq": n, "p": len(model.values(variant))}
        sizes["memory->spring"] = len(model.springs)
        names = [f"{name}[{i}]" for name, size in sizes.items() for i in range(size)]
        self.recorder = Recorder(names)
        inputs = iter([self.recorder.input(name) for name in names])
        own = {name: [next(inputs) for _ in range(size)] for name, size in sizes.items()}
        self.q, self.dq, self.ddq, self.dddq = own["q"], own["dq"], own["ddq"], own["dddq"]
        self.springs, self._p = own["memory->spring"], own["p"]

    @functools.cached_property
    def chi(self) -> dict[str, list[Number]]:
        """Standard parameters of each term by its key; with base parameters, those that were regrouped are zero."""
        base = self.model.base
        if self.variant == "standard":
            chi: list[Number] = list(self._p[: len(base.columns)])
        else:
            chi = [column.fixed or 0.0 for column in base.columns]
            for row, index in enumerate(base.independent):
                chi[index] = self._p[row]
        values = iter(chi)
        return {term.key: [next(values) for _ in term.columns(self.robot)] for term in base.terms}

    @functools.cached_property
    def reference(self) -> list[Number]:
        """Parameters of the links that some terms are linear around."""
        given = self.model.reference
        assert given is not None, "checked when the model was made"
        values = iter(self._p[len(self._p) - np.count_nonzero(given) :])
        return [next(values) if x else 0.0 for x in given]

    def state(self, moving: bool = True, accelerating: bool = True) -> State:
        """The robot in the recorded state, or at rest, or at constant velocities."""
        still: list[Number] = [0.0] * self.n
        dq, ddq = self.dq if moving else still, self.ddq if accelerating else still
        return make_state(self.robot, self.recorder, self.q, dq, ddq)

    @functools.cached_property
    def reference_torque(self) -> list[Number]:
        """Torque of the reference's links at the rows."""
        return eq.inverse_dynamics(self.state(), [Rigid()], self.reference)


def along_torque(sheet: Sheet) -> list[Number]:
    """Torque at the rows of all terms that follow a motion."""
    torques: list[Number] = [0.0] * sheet.n
    for term in along_terms(sheet.model.terms):
        chi = sheet.chi[term.key]
        for row, number in _torque(term, sheet, chi):
            torques[row] = add(torques[row], number)
    return torques


def _torque(term: AlongTerm, sheet: Sheet, chi: Sequence[Number]) -> Iterator[tuple[int, Number]]:
    """What a term adds to the rows. Links that are tilted or turned are gone through once, not column by column."""
    if isinstance(term, Zero):
        seed: list[Number] = [0.0] * sheet.n
        for joint, value in zip(_joints(term, sheet), chi, strict=True):
            seed[joint] = value
        yield from enumerate(_derivative(sheet, seed))
        return
    if isinstance(term, Tilt):
        yield from enumerate(_weight(sheet, [(axis, chi[i]) for i, axis in enumerate(_axes(term, sheet))]))
        yield from ((row, mul(chi[column], x)) for row, column, x in _upright_entries(term, sheet))
        return
    if isinstance(term, TemperatureFriction):
        return  # the code has no temperatures: friction is that at the reference
    assert isinstance(term, FrictionTerm)
    width = term.columns_per_element
    for number, (kinds, element) in enumerate(zip(_laws(term, sheet), term.elements(sheet.robot), strict=True)):
        friction = total(*(mul(chi[width * number + k], phi) for k, phi in enumerate(kinds)))
        for row, place in enumerate(sheet.robot.moving):
            yield row, mul(float(element.torque[place]), friction)


def along_entries(term: AlongTerm, sheet: Sheet) -> Iterator[Entry]:
    """Entries (row, column, number) of a term that follows a motion."""
    if isinstance(term, Zero):
        for column, joint in enumerate(_joints(term, sheet)):
            seed: list[Number] = [float(i == joint) for i in range(sheet.n)]
            yield from ((row, column, x) for row, x in enumerate(_derivative(sheet, seed)))
        return
    if isinstance(term, Tilt):
        for column, axis in enumerate(_axes(term, sheet)):
            yield from ((row, column, x) for row, x in enumerate(_weight(sheet, [(axis, 1.0)])))
        yield from _upright_entries(term, sheet)
        return
    if isinstance(term, TemperatureFriction):
        return
    assert isinstance(term, FrictionTerm)
    width = term.columns_per_element
    for number, (kinds, element) in enumerate(zip(_laws(term, sheet), term.elements(sheet.robot), strict=True)):
        for row, place in enumerate(sheet.robot.moving):
            yield from (
                (row, width * number + k, mul(float(element.torque[place]), phi)) for k, phi in enumerate(kinds)
            )


def _laws(term: FrictionTerm, sheet: Sheet) -> list[list[Number]]:
    """The law on each element, one number per kind of column."""
    robot, directions, nothing = sheet.robot, term.directions(sheet.robot), list[Number]()
    functions, wound = ColumnFunctions(sheet.recorder), list[Any]()
    if term.law.remembers:
        motion = ElementMotion(functions=functions)
        shares = [mul(1.0 / radius, x) for (_, radius), x in zip(sheet.model.springs, sheet.springs, strict=True)]
        wound = [_column(shares[k :: len(term.scales)]) for k in range(len(term.scales))]
    else:
        motion = ElementMotion(
            load=_column(
                map_values(term.load_shares(robot), sheet.reference_torque) if term.law.needs_load else nothing
            ),
            position=_column(map_values(directions, sheet.q)),
            velocity=_column(map_values(directions, sheet.dq)),
            jerk=_column(map_values(directions, sheet.dddq) if term.needs_jerk else nothing),
            unit=term.units(robot)[:, None],
            functions=functions,
        )
    found = term.values(motion, wound)
    return [[column[number, 0] for column in found] for number in range(len(directions))]


class ColumnFunctions:
    """The functions that laws of friction may use, on arrays of recorded numbers.

    Args:
        recorder: Where the numbers are recorded.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.sin, self.cos, self.sign, self.tanh, self.exp, self.log = (
            np.frompyfunc(function, 1, 1)
            for function in (recorder.sin, recorder.cos, recorder.sign, recorder.tanh, recorder.exp, recorder.log)
        )


def _column(numbers: Sequence[Number]) -> Any:
    """Recorded numbers as an array of objects, (n, 1): one sample."""
    column = np.empty((len(numbers), 1), dtype=object)
    for i, number in enumerate(numbers):
        column[i, 0] = number
    return column


def _axes(term: Tilt, sheet: Sheet) -> list[int]:
    """Base axes that gravity is turned about."""
    return ["xyz".index(column.place) for column in term.columns(sheet.robot)[:2]]


def _weight(sheet: Sheet, turns: Sequence[tuple[int, Number]]) -> list[Number]:
    """Torque of the reference's links at rest, in what small turns about base axes add to gravity."""
    pulls = [(turn, np.cross(np.eye(3)[axis], sheet.robot.gravity)) for axis, turn in turns]
    x, y, z = (total(*(mul(float(pull[i]), turn) for turn, pull in pulls)) for i in range(3))
    gravity: Vector = (x, y, z)
    state = dataclasses.replace(sheet.state(moving=False, accelerating=False), gravity=gravity)
    return eq.inverse_dynamics(state, [Rigid()], sheet.reference)


def _upright_entries(term: Tilt, sheet: Sheet) -> Iterator[Entry]:
    """Cosine and sine of upright joints."""
    for row, column in term.places(sheet.robot):
        if column >= 2:
            wave = sheet.recorder.sin if column % 2 else sheet.recorder.cos
            yield row, column, wave(sheet.q[row])


def _joints(term: Zero, sheet: Sheet) -> list[int]:
    """The joints whose zeros a term is for, among the moving ones."""
    robot = sheet.robot
    labels = [str(joint.number) for joint in robot.moving_joints]
    return [labels.index(column.place) for column in term.columns(robot)]


def _derivative(sheet: Sheet, seed: Sequence[Number]) -> list[Number]:
    """How the torque of the reference's links changes when the joints move along `seed`."""
    q = [Dual(x, slope) for x, slope in zip(sheet.q, seed, strict=True)]
    dq, ddq = ([Dual(x) for x in values] for values in (sheet.dq, sheet.ddq))
    state = make_state(sheet.robot, DualFunctions(sheet.recorder), q, dq, ddq)
    links = [x if isinstance(x, float) else Dual(x) for x in sheet.reference]
    return [slope_of(x) for x in eq.inverse_dynamics(state, [Rigid()], links)]
