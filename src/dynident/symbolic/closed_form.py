"""Which angles a robot's closed form is best written in.

Joints with parallel axes add up: after joints 2 and 3 of a usual arm, only q2 + q3 matters to what comes behind. So the
equations are worked out in angles summed along runs of parallel joints, in which they are shortest.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.dynamics import equations as eq
from dynident.dynamics.evaluate import check_held_motors
from dynident.dynamics.state import Actuation, State, make_state
from dynident.dynamics.terms import Column, Term, all_columns
from dynident.errors import InputError
from dynident.robot.algebra import ZERO, Number, Vector, add, mul, snap_rounding, sub, total
from dynident.robot.model import Robot
from dynident.symbolic.polynomials import ClosedFormError, Polynomial, Ring, derivative

Direction = tuple[Fraction, ...]  # an angle as a combination of the moving joints' positions
_PARALLEL = 1e-12
_LARGEST_MULTIPLE = 6


# Independent angles of a robot: each as a combination of the moving joints' positions; the run of parallel joints that
# each belongs to (those of one family may be added up); whole multiples of the angles that make up each tree joint's
# position, None for prismatic joints.
Angles = tuple[tuple[Direction, ...], tuple[int, ...], tuple[tuple[int, ...] | None, ...]]


def angles_of(robot: Robot) -> Angles:
    """Angles summed along parallel joints; those of single joints where some joint is no whole multiple of the sums."""
    follow = Actuation(robot).follow
    rows = [tuple(_ratio(robot, j, x) for x in row) for j, row in enumerate(follow)]
    families, summed = _sum_parallel(robot, rows)
    choices = [
        [(summed[j], families[j]) for j in range(len(rows)) if families[j] is not None],
        _single(robot, rows, families),
    ]
    for candidates in choices:
        directions, own = _independent(candidates)
        whole = [None if families[j] is None else _multiples(rows[j], directions) for j in range(len(rows))]
        if all(families[j] is None or whole[j] is not None for j in range(len(rows))):
            return tuple(directions), tuple(own), tuple(whole)
    raise ClosedFormError(
        f"robot {robot.name}: passive joints follow by ratios too odd for a closed form; expected small whole numbers"
    )


def _ratio(robot: Robot, joint: int, value: float) -> Fraction:
    ratio = Fraction(float(value)).limit_denominator(60)
    if robot.joints[joint].kind == "revolute" and abs(float(ratio) - value) > 1e-12:
        raise ClosedFormError(
            f"robot {robot.name}: joint {robot.joints[joint].name} follows by {value:g}, which is no simple ratio; "
            "its closed form cannot be written"
        )
    return ratio


def _sum_parallel(robot: Robot, rows: list[Direction]) -> tuple[list[int | None], list[Direction]]:
    """For each tree joint its family and the sum of positions along its run of parallel joints."""
    families: list[int | None] = []
    sums: list[Direction] = []
    known: dict[int, tuple[int, Array]] = {}  # family -> joint it starts from, axis in that joint's link frame
    for index, joint in enumerate(robot.joints):
        if joint.kind == "prismatic":
            families.append(None)
            sums.append(())
            continue
        axis, carrier = joint.before.rotation[:, 2], joint.parent
        while carrier >= 0 and robot.joints[carrier].kind == "prismatic":
            above = robot.joints[carrier]
            axis, carrier = above.before.rotation @ above.after.rotation @ axis, above.parent
        along = 0.0 if carrier < 0 else float((robot.joints[carrier].after.rotation @ axis)[2])
        if abs(abs(along) - 1.0) < _PARALLEL:
            families.append(families[carrier])
            sums.append(tuple(x + round(along) * y for x, y in zip(rows[index], sums[carrier], strict=True)))
            continue
        same = (f for f, (start, own) in known.items() if start == carrier and abs(abs(own @ axis) - 1.0) < _PARALLEL)
        family = next(same, len(known))
        known.setdefault(family, (carrier, axis))
        families.append(family)
        sums.append(rows[index])
    return families, sums


def _single(robot: Robot, rows: list[Direction], families: list[int | None]) -> list[tuple[Direction, int | None]]:
    """Each moving joint's own angle, or the part of it of which all joints are multiples."""
    found: list[tuple[Direction, int | None]] = []
    for i in range(len(robot.moving)):
        users = [j for j in range(len(rows)) if families[j] is not None and rows[j][i]]
        if users:
            below = math.lcm(*(rows[j][i].denominator for j in users))
            part = Fraction(math.gcd(*(int(rows[j][i] * below) for j in users)), below)
            found.append((tuple(part if k == i else Fraction(0) for k in range(len(robot.moving))), families[users[0]]))
    return found


def _independent(candidates: list[tuple[Direction, int | None]]) -> tuple[list[Direction], list[int]]:
    """Candidates from the front that the ones before do not span."""
    directions: list[Direction] = []
    families: list[int] = []
    for direction, family in candidates:
        if family is not None and any(direction) and _combination(direction, directions) is None:
            directions.append(direction)
            families.append(family)
    return directions, families


def _multiples(direction: Direction, directions: list[Direction]) -> tuple[int, ...] | None:
    found = _combination(direction, directions)
    if found is None or any(x.denominator != 1 or abs(x) > _LARGEST_MULTIPLE for x in found):
        return None
    return tuple(int(x) for x in found)


def _combination(target: Direction, directions: list[Direction]) -> list[Fraction] | None:
    """Factors with which the (independent) directions make the target, None when they cannot."""
    if not any(target):
        return [Fraction(0)] * len(directions)
    if not directions:
        return None
    matrix = np.array([[float(x) for x in d] for d in directions]).T
    solution = np.linalg.lstsq(matrix, np.array([float(x) for x in target]), rcond=None)[0]
    found = [Fraction(float(x)).limit_denominator(60) for x in solution]
    pairs = list(zip(found, directions, strict=True))
    made = tuple(sum((f * d[i] for f, d in pairs), Fraction(0)) for i in range(len(target)))
    return found if made == target else None


# ----------------------------------------------------------------------------------------------------------------------
# The equations of a robot as polynomials: what the recursion gives when its numbers are symbols.
#
# .. math:: M(q)\,\ddot q + B(q)\,[\dot q\dot q] + C(q)\,[\dot q^2] + g(q) = \Gamma
#
# with the centrifugal matrix C, (n, n), and the Coriolis matrix B, (n, n (n-1)/2), over the products of different
# velocities (Kim 1990, eq. 20). These torques are at the joints; the regressor has its rows at actuated coordinates.

_INERTIAL = ("rigid", "Ia")


Law = tuple[str, Polynomial]  # sign or tanh of a velocity, which is no polynomial: function and argument


class Quantities:
    """A robot's positions, velocities, lengths and parameters as quantities of a ring, and functions of them.

    Attributes:
        ring: The ring.
        q, dq, ddq: State of the moving joints.
        trig: (direction, place of the cosine) of each angle; its sine is next to it.
        families: Run of parallel joints of each angle.
        lengths: Named lengths; those that are zero are plain zeros.
        gravity: Gravity vector; its components that are not zero are quantities.
        constants: Value of every length and gravity quantity.
        laws: {place: function of the state that the quantity stands for}.
    """

    def __init__(self, robot: Robot) -> None:
        self.ring = ring = Ring()
        names = robot.position_names
        self.q = [ring.quantity(name) for name in names]
        self.dq = [ring.quantity(f"d{name}") for name in names]
        self.ddq = [ring.quantity(f"dd{name}") for name in names]
        directions, self.families, self._of_joint = angles_of(robot)
        self.trig: list[tuple[Direction, int]] = []
        self._pairs = []
        for k, direction in enumerate(directions):
            self.trig.append((direction, len(ring.names)))
            self._pairs.append(ring.angle(str(k)))
        self._known: dict[Polynomial, tuple[Number, Number]] = {}
        self._angles(robot)
        self.laws: dict[int, Law] = {}
        taken = {*ring.names, *robot.parameter_names}
        self.constants: dict[str, float] = {}
        self.lengths = {name: self._constant(name, value, taken) for name, value in robot.lengths.items()}
        self.gravity = self._gravity(robot, taken)

    def _constant(self, name: str, value: float, taken: set[str]) -> Number:
        if value == 0.0:
            return 0.0
        while name in taken:
            name += "_"
        taken.add(name)
        self.constants[name] = float(value)
        return self.ring.quantity(name)

    def _gravity(self, robot: Robot, taken: set[str]) -> Vector:
        """g along an axis, or gx, gy, gz; the sign of a single component stays outside."""
        values = [float(x) for x in robot.gravity]
        if sum(x != 0.0 for x in values) == 1:
            x, y, z = (mul(math.copysign(1.0, v), self._constant("g", abs(v), taken)) if v else 0.0 for v in values)
            return x, y, z
        x, y, z = (self._constant(f"g{axis}", v, taken) for axis, v in zip("xyz", values, strict=True))
        return x, y, z

    def _angles(self, robot: Robot) -> None:
        """Cosine and sine of every revolute joint's position by the addition theorems, known before they are asked."""
        actuation = Actuation(robot)
        for multiples, row, rest in zip(self._of_joint, actuation.follow, actuation.rest, strict=True):
            if multiples is None or not any(multiples):
                continue
            cosine, sine = snap_rounding(math.cos(rest)), snap_rounding(math.sin(rest))
            for count, (c, s) in zip(multiples, self._pairs, strict=True):
                for _ in range(abs(count)):
                    turned = s if count > 0 else -s
                    cosine, sine = (
                        sub(mul(cosine, c), mul(sine, turned)),
                        add(mul(sine, c), mul(cosine, turned)),
                    )
            position = add(total(*(mul(float(w), x) for w, x in zip(row, self.q, strict=True))), float(rest))
            self._known[position] = cosine, sine

    def cos(self, x: Number) -> Number:
        """Cosine of a joint's position."""
        return self._known[x][0]

    def sin(self, x: Number) -> Number:
        """Sine of a joint's position."""
        return self._known[x][1]

    def sign(self, x: Number) -> Number:
        """Sign of a velocity, as a quantity of its own."""
        return self._law("sign", x)

    def tanh(self, x: Number) -> Number:
        """tanh of a scaled velocity, as a quantity of its own."""
        return self._law("tanh", x)

    def exp(self, x: Number) -> Number:
        """Refused: only springs along lines need it."""
        raise ClosedFormError("springs along lines between two points have no closed form here; take numbers")

    def log(self, x: Number) -> Number:
        """Refused: only springs along lines need it."""
        return self.exp(x)

    def _law(self, function: str, x: Polynomial) -> Number:
        """An odd function, the same quantity for x and -x; a sign also for all multiples of x."""
        leading = x.terms[min(x.terms)]
        flip = leading < 0
        size = abs(float(leading)) if function == "sign" else 1.0
        law = function, (-x if flip else x) / size
        place = next((p for p, known in self.laws.items() if known == law), None)
        if place is None:
            place = len(self.ring.names)
            self.ring.quantity(f"{function} {place}")
            self.laws[place] = law
        value = Polynomial(self.ring, {self.ring.power(place): 1})
        return -value if flip else value

    def rates(self, joint: int) -> dict[int, Any]:
        """Derivatives by a moving joint's position, {place: derivative}."""
        rates: dict[int, Any] = {joint: 1.0}
        for (direction, place), (c, s) in zip(self.trig, self._pairs, strict=True):
            if direction[joint]:
                rate = float(direction[joint])
                rates[place], rates[place + 1] = mul(-rate, s), mul(rate, c)
        return rates


def require_closed_form(robot: Robot) -> None:
    """Refuse what is no robot, and robots whose loops are closed by numbers."""
    if not isinstance(robot, Robot):
        hint = f"load it first: di.load_robot({robot!r})" if isinstance(robot, str) else "expected a Robot"
        raise InputError(f"a {type(robot).__name__} is no robot; {hint}")
    if robot.closure is not None:
        raise InputError(f"the loops of robot {robot.name} have no closed form; they are closed sample by sample")


class ClosedForm:
    """The equations of a robot for a set of terms; each part is worked out when it is first asked for.

    Args:
        robot: The robot.
        terms: Terms of the model.
        parameters: Standard parameters to keep, {name: name to show}; others are zero. Default: all that are not
            fixed at zero.
    """

    def __init__(self, robot: Robot, terms: Sequence[Term], parameters: Mapping[str, str] | None = None) -> None:
        self.robot, self.terms, self._renamed = robot, tuple(terms), parameters
        self.columns = all_columns(robot, self.terms)
        self.quantities = Quantities(robot)
        try:
            self._state = self._make(self.quantities.dq, self.quantities.ddq)
        except TypeError:  # a geometry that divides by lengths or takes roots of them
            self.quantities = Quantities(dataclasses.replace(robot, lengths={}, geometry=None))
            self._state = self._make(self.quantities.dq, self.quantities.ddq)
        for term in self.terms:  # quantities of the friction laws come before the parameters
            if term.name != "rigid":
                list(term.torque(self._state))
        self.first_parameter = len(self.quantities.ring.names)
        self.chi = [self._parameter(column.name, column.fixed, parameters) for column in self.columns]
        self.shown = tuple(
            j for j, column in enumerate(self.columns) if parameters is None or column.name in parameters
        )

    def _parameter(self, name: str, fixed: float | None, kept: Mapping[str, str] | None) -> Number:
        if kept is not None:
            return self.quantities.ring.quantity(kept[name]) if name in kept else 0.0
        return self.quantities.ring.quantity(name) if fixed is None else float(fixed)

    @property
    def shown_columns(self) -> tuple[Column, ...]:
        """Columns of the parameters that are kept, under the names that are shown."""
        kept = [self.columns[j] for j in self.shown]
        if self._renamed is None:
            return tuple(kept)
        return tuple(dataclasses.replace(column, name=self._renamed[column.name]) for column in kept)

    def _make(self, dq: Sequence[Number], ddq: Sequence[Number]) -> State:
        known = self.quantities
        lengths = {name: known.lengths.get(name, value) for name, value in self.robot.lengths.items()}
        state = make_state(self.robot, known, known.q, dq, ddq, lengths=lengths)
        gravity = known.gravity if any(not isinstance(x, float) for x in known.gravity) else ZERO
        return dataclasses.replace(state, gravity=gravity)

    @property
    def n(self) -> int:
        """Number of moving joints."""
        return len(self.robot.moving)

    @functools.cached_property
    def regressor(self) -> dict[tuple[int, int], Any]:
        """Entries (row, column) of W that are not zero."""
        entries = eq.regressor_entries(self._state, self.terms)
        return {place: x for place, x in entries.items() if isinstance(x, Polynomial) or x}

    @functools.cached_property
    def torque(self) -> list[Any]:
        """W chi, the torque at the actuated coordinates."""
        result: list[Any] = [0.0] * self.n
        for (row, column), number in self.regressor.items():
            result[row] = add(result[row], mul(number, self.chi[column]))
        return result

    @functools.cached_property
    def mass(self) -> list[list[Any]]:
        """M, over the moving joints."""
        check_held_motors(self.robot)
        return eq.mass_entries(self._state, self._inertial, self._inertial_values)

    @functools.cached_property
    def gravity(self) -> list[Any]:
        """g, the torque at the joints that holds the robot still."""
        check_held_motors(self.robot)
        still: list[Number] = [0.0] * self.n
        rows = eq.inverse_dynamics(self._make(still, still), self._inertial, self._inertial_values)
        coupling = self.robot.moving_coupling
        return [total(*(mul(float(coupling[i, j]), rows[i]) for i in range(self.n))) for j in range(self.n)]

    @property
    def _inertial(self) -> list[Term]:
        return [term for term in self.terms if term.name in _INERTIAL]

    @property
    def _inertial_values(self) -> list[Number]:
        return [x for x, column in zip(self.chi, self.columns, strict=True) if column.term in _INERTIAL]

    @functools.cached_property
    def symbols(self) -> list[list[list[Any]]]:
        """Christoffel symbols c[i][j][k] = (dM_ij/dq_k + dM_ik/dq_j - dM_jk/dq_i) / 2."""
        n = self.n
        rates = [self.quantities.rates(k) for k in range(n)]
        D = [[[derivative(x, rate) for rate in rates] for x in row] for row in self.mass]

        def symbol(i: int, j: int, k: int) -> Any:
            return mul(0.5, sub(add(D[i][j][k], D[i][k][j]), D[j][k][i]))

        return [[[symbol(i, j, k) for k in range(n)] for j in range(n)] for i in range(n)]

    @property
    def centrifugal(self) -> list[list[Any]]:
        """C of eq. (20), (n, n): factors of the squared velocities."""
        return [[self.symbols[i][j][j] for j in range(self.n)] for i in range(self.n)]

    @property
    def coriolis(self) -> list[list[Any]]:
        """B of eq. (20), (n, n (n-1)/2): factors of products of two velocities, in the order of `velocity_pairs`."""
        return [[mul(2.0, self.symbols[i][j][k]) for j, k in self.velocity_pairs] for i in range(self.n)]

    @property
    def velocity_pairs(self) -> list[tuple[int, int]]:
        """Pairs of joints in the order of B's columns: 12, 13, .. 23, .."""
        return list(itertools.combinations(range(self.n), 2))

    @functools.cached_property
    def christoffel(self) -> list[list[Any]]:
        """C(q, dq) with C dq = B [dq dq] + C [dq²] and dM/dt - 2 C skew-symmetric."""
        dq, n = self.quantities.dq, self.n
        return [[total(*(mul(self.symbols[i][j][k], dq[k]) for k in range(n))) for j in range(n)] for i in range(n)]
