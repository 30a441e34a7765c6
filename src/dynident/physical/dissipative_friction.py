r"""When friction takes energy: conditions on the friction as a whole, not on the sign of each coefficient.

Friction elements act along directions s with laws of velocities e · v, where v are those of the joints. The power
they take is

.. math:: P(v) = \sum_k (s_k \cdot v)\, F_k\, \varphi_k(e_k \cdot v)

Where two motors turn one joint, a single coefficient may have either sign as long as P is never negative (Gautier,
Khalil, Restrepo 1995: Fv6 alone would feed energy). So:

- viscous friction: the matrix sum F_k (s_k e_k' + e_k s_k') / 2 is positive semidefinite;
- dry friction: P is linear between the planes e_k · v = 0, so it is nowhere negative if it is not on the lines where
  these planes meet. That is finitely many linear conditions. With laws that depend on the velocity (a falling or
  smoothed sign), they hold at a range of velocities; with friction that winds up, for motion to and fro of any
  amplitude.
- what grows with the load must not feed energy under any load: each coefficient for itself, but where driving and being
  driven differ, their sum in both cases.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.dynamics.recursion import NUMPY_FUNCTIONS
from dynident.dynamics.terms import Column, Coulomb, Term
from dynident.dynamics.terms.friction import FrictionTerm
from dynident.dynamics.terms.friction_laws import FRICTION_LAWS, Dissipation, ElementMotion
from dynident.physical.cones import Kind, triangle
from dynident.robot.model import Element, Robot

TESTED_VELOCITIES_RAD_S = (0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)  # [rad/s] at which curves must take energy
SATURATED_VELOCITY_RAD_S = 1e3  # [rad/s] where every sign has reached one
_ROUNDING = 1e-9
_SLOW_SHARE, _FAST_SHARE = (
    1e-2,
    0.25,
)  # of the highest velocity: the lowest that friction is looked at; powers rule above
_SLOW_SPEEDS, _FAST_SPEEDS = 20, 25  # velocities looked at below and above; between them powers bend by a thousandth


@dataclass(frozen=True)
class Condition:
    """Something that friction must fulfil.

    Attributes:
        place: Which friction, in words.
        kind: "nonnegative" or "semidefinite".
        columns: (k,) indices of the columns that take part.
        rows: (m, k): rows @ x must not be negative, or be the stacked triangle of a positive semidefinite matrix.
    """

    place: str
    kind: Kind
    columns: NDArray[np.intp]
    rows: Array


# Elements that share joints; (n_elements, d) directions e of velocities over these joints, and s of torques.
_CoupledElements = tuple[tuple[Element, ...], Array, Array]


def dissipation(robot: Robot, columns: Sequence[Column], terms: Sequence[Term]) -> list[Condition]:
    """The conditions under which the friction of a model takes energy.

    Args:
        robot: The robot.
        columns: All columns of the model.
        terms: Its terms.
    """
    found: list[Condition] = []
    for part in _parts(robot):
        elements, velocity, torque = part
        viscous = {e.label: _index(columns, "Fv", e) for e in elements}
        own = [(k, place) for k, e in enumerate(elements) if (place := viscous[e.label]) is not None]
        if own:
            outer = [np.outer(torque[k], velocity[k]) for k, _ in own]
            rows = triangle(np.array([0.5 * (one + one.T) for one in outer])).T
            kind: Kind = "semidefinite" if len(rows) > 1 else "nonnegative"
            found.append(Condition(f"viscous {_words(elements)}", kind, np.array([i for _, i in own]), rows))
        found += _curves(part, robot, columns, terms)
        found += _loads(part, columns, terms)
    return found


def steady_power(
    robot: Robot,
    columns: Sequence[Column],
    terms: Sequence[Term],
    fastest: Mapping[str, float],
) -> list[Condition]:
    """The conditions under which all friction together takes energy in steady motion, whatever its parts do.

    That of no load and what grows with the load must do so each; then their sum does under any load. What winds up must
    do so in every cycle, however short: a spring that slips takes energy, and one of negative stiffness gives more than
    it took (Prandtl-Ishlinskii operators with nonnegative weights). Two of them with opposite signs cancel in steady
    motion, where nothing else would bound them.

    Args:
        robot: The robot.
        columns: All columns of the model.
        terms: Its terms.
        fastest: Velocity of each element, by its label, up to which that must hold [rad/s or m/s].
    """
    places: dict[tuple[str, str], list[int]] = {}
    for i, column in enumerate(columns):
        places.setdefault((column.term, column.place), []).append(i)
    laws = [term for term in terms if term.name in ("Fv", "Fc") or _dissipation(term.name) != "none"]
    winding = {law.name for law in laws if isinstance(law, FrictionTerm) and law.law.remembers}
    found: list[Condition] = []
    for part in _parts(robot):
        elements, velocity, torque = part
        found += [one for one in _each_alone(part, columns, winding) if one.place in fastest]
        rows: list[Array] = []
        for ray in meeting_lines(velocity):
            rates, levers = velocity @ ray, torque @ ray
            turning = [(e, abs(rate)) for e, rate in zip(elements, rates, strict=True) if abs(rate) > _ROUNDING]
            highest = max((fastest.get(e.label, 0.0) / (e.radian * rate) for e, rate in turning), default=0.0)
            if highest <= 0.0:
                continue
            lowest, middle = min(_SLOW_SHARE * highest, TESTED_VELOCITIES_RAD_S[0]), _FAST_SHARE * highest
            slow = np.geomspace(lowest, middle, _SLOW_SPEEDS, endpoint=False)
            speeds = np.concatenate([slow, np.linspace(middle, highest, _FAST_SPEEDS)])
            speeds = np.concatenate([speeds, -speeds])
            for loaded in (False, True):
                power = np.zeros((len(speeds), len(columns)))
                for element, rate, lever in zip(elements, rates, levers, strict=True):
                    for law in laws:
                        own = places.get((law.name, _place(law, element)), [])
                        if own and abs(rate) > _ROUNDING and loaded == (_dissipation(law.name) == "load"):
                            values = _steady_values(law, element, speeds * rate)
                            power[:, own] += lever * (np.sign(speeds) * values).T
                rows += list(power)
        found += _inequalities(_words(elements), rows)
    return found


def _words(elements: Sequence[Element]) -> str:
    return "friction of " + ", ".join(element.label for element in elements)


def _parts(robot: Robot) -> list[_CoupledElements]:
    """Elements with friction, those together that share joints.

    A joint that a loop is solved for moves as the pose wants; it counts as a direction of its own.
    """
    elements = [e for e in robot.elements if {"Fv", "Fc"} & set(e.names)]
    moving, solved = list(robot.moving), max((len(e.solved) for e in elements), default=0)
    if not elements:
        return []

    def both(direction: Array, element: Element) -> Array:
        more = np.zeros(solved)
        more[: len(element.solved)] = element.solved
        return np.concatenate([direction @ robot.coupling[:, moving], more])

    velocity = np.array([both(e.velocity, e) for e in elements])
    torque = np.array([both(e.torque, e) for e in elements])
    touched = (np.abs(velocity) > _ROUNDING) | (np.abs(torque) > _ROUNDING)
    rest, result = [k for k in range(len(elements)) if touched[k].any()], []
    while rest:
        group = [rest.pop(0)]
        joints = touched[group[0]]
        while more := [k for k in rest if (touched[k] & joints).any()]:
            group += more
            rest = [k for k in rest if k not in more]
            joints = joints | touched[more].any(0)
        group.sort()
        shared = np.flatnonzero(joints)
        result.append((tuple(elements[k] for k in group), velocity[group][:, shared], torque[group][:, shared]))
    return result


def _index(columns: Sequence[Column], symbol: str, element: Element) -> int | None:
    """Place of an element's own column of a state term."""
    name = element.names.get(symbol)
    return next((i for i, column in enumerate(columns) if column.name == name and column.term == symbol), None)


def _curves(part: _CoupledElements, robot: Robot, columns: Sequence[Column], terms: Sequence[Term]) -> list[Condition]:
    """Dry friction, and friction that grows with powers of the velocity, along the lines where planes meet."""
    elements, velocity, torque = part
    places = {(c.term, c.place): [] for c in columns}  # type: dict[tuple[str, str], list[int]]
    for i, column in enumerate(columns):
        places[column.term, column.place].append(i)
    result = []
    for what, plain in (("dry", "Fc"), ("viscous", "Fv")):
        laws = [term for term in terms if term.name == plain or _dissipation(term.name) == what]
        shaped = any(isinstance(term, FrictionTerm) and not term.law.remembers for term in laws)
        if what == "viscous" and not shaped:
            continue
        speeds = TESTED_VELOCITIES_RAD_S if shaped else (SATURATED_VELOCITY_RAD_S,)
        signs = (1.0, -1.0) if any(isinstance(term, FrictionTerm) and term.law.even for term in laws) else (1.0,)
        rows: list[Array] = []
        for ray in meeting_lines(velocity):
            for speed, sign, amplitude in itertools.product(speeds, signs, _amplitudes(laws)):
                row = np.zeros(len(columns))
                for k, element in enumerate(elements):
                    rate = sign * float(velocity[k] @ ray)
                    lever = sign * float(torque[k] @ ray)
                    for law in laws:
                        own = places.get((law.name, _place(law, element)), [])
                        if own:
                            row[own] += lever * _values(law, element, speed * rate, amplitude)
                rows.append(row)
        result += _inequalities(f"{what} {_words(elements)}", rows)
    return result


def _dissipation(name: str) -> Dissipation:
    """With what a term must take energy, where it is a law of friction."""
    return FRICTION_LAWS[name].dissipation if name in FRICTION_LAWS else "none"


def _place(law: Term, element: Element) -> str:
    name = element.names.get(law.name)
    return element.label if name is None else name.removeprefix(law.name)


def _steady_values(law: Term, element: Element, speeds: Array) -> Array:
    """Values of a law's columns on one element at constant velocities [rad/s], under load 1, (n_columns, n_speeds)."""
    unit = element.radian
    if isinstance(law, FrictionTerm) and law.law.remembers:
        return np.repeat(np.sign(speeds)[None], len(law.scales), axis=0)
    if isinstance(law, FrictionTerm):
        motion = ElementMotion(velocity=speeds * unit, unit=unit, load=1.0, functions=NUMPY_FUNCTIONS)
        found = law.values(motion)
        return np.array([np.broadcast_to(np.asarray(x, dtype=np.float64), speeds.shape) for x in found])
    if isinstance(law, Coulomb):
        width = law.width(element)
        return np.asarray(np.tanh(speeds * unit / width) if width else np.sign(speeds))[None]
    return np.asarray(speeds * unit)[None]


def _values(law: Term, element: Element, speed: float, amplitude: float) -> Array:
    """Values of a law's columns on one element that moves to and fro at a speed."""
    unit = element.radian
    if abs(speed) < _ROUNDING:
        return np.zeros(1)
    if isinstance(law, FrictionTerm) and law.law.remembers:
        # The share of its energy that a spring wound over an amplitude does not give back.
        return np.array([np.sign(speed) * max(0.0, 1.0 - radius / amplitude) for radius in law.scales])
    if isinstance(law, Coulomb):
        width = law.width(element)
        return np.array([np.tanh(speed * unit / width) if width else np.sign(speed)])
    if isinstance(law, FrictionTerm):
        return np.array(law.values(ElementMotion(velocity=speed * unit, unit=unit, functions=NUMPY_FUNCTIONS)))
    return np.array([speed * unit])


def _amplitudes(laws: Sequence[Term]) -> list[float]:
    """Amplitudes between which what wound-up friction takes changes one way only [rad]."""
    winding = [law for law in laws if isinstance(law, FrictionTerm) and law.law.remembers]
    radii = sorted(radius for law in winding for radius in law.scales)
    return [*radii, np.inf] if radii else [np.inf]


def _inequalities(place: str, rows: Sequence[Array]) -> list[Condition]:
    """Rows over all columns as one condition; those that repeat another or are empty are left out."""
    found: dict[tuple[float, ...], Array] = {}
    for row in rows:
        size = float(np.abs(row).max(initial=0.0))
        if size > 0.0:
            found.setdefault(tuple(np.round(row / size, 9)), row / size)
    if not found:
        return []
    stacked = np.array(list(found.values()))
    own = np.flatnonzero(np.abs(stacked).max(0) > _ROUNDING)
    return [Condition(place, "nonnegative", own, stacked[:, own])]


def meeting_lines(planes: Array) -> list[Array]:
    """Directions of the lines where planes e_k · v = 0 meet, one of each pair v, -v.

    Args:
        planes: (n_planes, d) normals that span all d dimensions, or fewer: directions that no plane sees are left out.
    """
    d = planes.shape[1]
    if d == 1:
        return [np.ones(1)]
    _, singular, vt = np.linalg.svd(planes)
    rank = int(np.sum(singular > _ROUNDING * singular[0]))
    if rank == 1:
        return [vt[0]]
    seen = vt[:rank]
    inner = planes @ seen.T
    lines: list[Array] = []
    for chosen in itertools.combinations(range(len(planes)), rank - 1):
        _, found, turned = np.linalg.svd(inner[list(chosen)])
        line = turned[-1] @ seen
        fresh = not any(abs(abs(float(line @ other)) - 1.0) < _ROUNDING for other in lines)
        if np.sum(found > _ROUNDING) == rank - 1 and fresh:
            lines.append(line)
    return lines


def _loads(part: _CoupledElements, columns: Sequence[Column], terms: Sequence[Term]) -> list[Condition]:
    """Friction per load: the sign with which an element takes energy, with and against its load where they differ."""
    laws = [term for term in terms if _dissipation(term.name) == "load"]
    if not any(isinstance(law, FrictionTerm) and law.law.even for law in laws):
        alone = _each_alone(part, columns, {law.name for law in laws})
        return [replace(one, place=f"load-dependent {_words(part[0])}") for one in alone]
    elements, velocity, torque = part
    result = []
    for k, element in enumerate(elements):
        sign = np.sign(float(torque[k] @ velocity[k])) or 1.0
        rows = []
        for speed in (*TESTED_VELOCITIES_RAD_S, *(-x for x in TESTED_VELOCITIES_RAD_S)):
            row = np.zeros(len(columns))
            for law in laws:
                own = [i for i, x in enumerate(columns) if (x.term, x.place) == (law.name, element.label)]
                if own:
                    row[own] = sign * np.sign(speed) * _steady_values(law, element, np.array([speed]))[:, 0]
            rows.append(row)
        result += _inequalities(f"load-dependent {_words([element])}", rows)
    return result


def _each_alone(part: _CoupledElements, columns: Sequence[Column], names: Collection[str]) -> list[Condition]:
    """Coefficients of some terms that take energy each for itself; the place is the element's label."""
    elements, velocity, torque = part
    result = []
    for k, element in enumerate(elements):
        sign = np.sign(float(torque[k] @ velocity[k])) or 1.0
        own = [i for i, column in enumerate(columns) if column.term in names and column.place == element.label]
        result += [Condition(element.label, "nonnegative", np.array([i]), np.array([[sign]])) for i in own]
    return result
