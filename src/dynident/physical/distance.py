"""How far any set of parameters is from a physical robot, and the nearest one that is.

Standard values are compared link by link through the pseudo-inertia, in axes where a body of the link's size is one:

.. math:: d_j = \\|L_j^{-1} (J_j - J_j') L_j^{-T}\\|_F \\,/\\, \\|L_j^{-1} J_j L_j^{-T}\\|_F

Base values say nothing about single links, so they are compared by what they mean: the torque of random motion, or the
covariance that came with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynident.arrays import Array, Mask, frozen, on_one_thread
from dynident.display import brief
from dynident.dynamics.terms import Column, Term, TermsLike, all_columns, resolve_terms
from dynident.errors import InputError, UnknownNameError
from dynident.identifiability.base import BaseParameters, base_parameters
from dynident.identifiability.states import random_states
from dynident.physical.bounds import Bound
from dynident.physical.cones import from_triangle
from dynident.physical.dissipative_friction import dissipation
from dynident.physical.fitting import bodies_of
from dynident.physical.prior import PLAUSIBLE, PriorLike, physical_prior, plausible_bodies
from dynident.physical.problem import PhysicalProblem, body_axes, link_columns, smallest_share
from dynident.physical.result import LinkBody
from dynident.physical.thresholds import THRESHOLDS
from dynident.robot.model import Robot
from dynident.robot.parameters import LINK_SYMBOLS
from dynident.robot.physicality import Violation, link_label, violations, without_body

N_RANDOM_STATES = 200  # of random motion
_TERMS = ("rigid", "rigid,Ia", "rigid,Ia,Fv,Fc", "rigid,Ia,Fv,Fc,Fo")
_ROUNDING = 1e-9
Values = str | Mapping[str, float] | None
_Towards = tuple[PriorLike, tuple[Bound, ...], float]  # prior, bounds and floor of the nearest physical robot


@brief
@dataclass(frozen=True)
class PhysicalCheck:
    """Whether standard values belong to a physical robot.

    Attributes:
        margins: Smallest eigenvalue of each link's pseudo-inertia, as a share of that of a body of its size; by link.
            Negative: no body has these numbers.
        unknown: Links of which not all ten numbers are given; about them nothing can be said.
        violations: The conditions that are broken, links first, then rotors and friction.
    """

    margins: Mapping[str, float]
    unknown: tuple[str, ...]
    violations: tuple[Violation, ...]

    @property
    def physical(self) -> bool:
        """Whether nothing is broken."""
        return not self.violations

    def sentences(self) -> list[str]:
        """What is broken, one sentence each."""
        return [str(one) for one in self.violations]


def distance_to_physical(robot: Robot, values: Values = None) -> PhysicalCheck:
    """Check standard values.

    Args:
        robot: The robot.
        values: Name of one of its value sets (default: its own), or a mapping by parameter name.
    """
    given = _standard(robot, values)
    sizes = plausible_bodies(robot)
    margins: dict[str, float] = {}
    unknown, broken = [], []
    for i, (joint, size) in enumerate(zip(robot.joints, sizes, strict=True)):
        names, label = [f"{symbol}{joint.number}" for symbol in LINK_SYMBOLS], link_label(joint)
        if not all(name in given for name in names):
            unknown.append(label)
        if label in unknown or i in without_body(robot):
            continue
        chi = np.array([given[name] for name in names])
        margins[label] = smallest_share(chi, size)
        broken += violations(chi, label)
    terms = resolve_terms("Ia,Fv,Fc")
    columns = all_columns(robot, terms)
    broken += _broken_elements(robot, columns, terms, given)
    return PhysicalCheck(margins, tuple(unknown), tuple(broken))


def _broken_elements(
    robot: Robot, columns: Sequence[Column], terms: Sequence[Term], given: Mapping[str, float]
) -> list[Violation]:
    """Rotors and friction that break a condition."""
    chi = np.array([given.get(column.name, 0.0) for column in columns])
    found = [
        Violation(column.name, "rotor inertia must not be negative", float(x), column.unit)
        for column, x in zip(columns, chi, strict=True)
        if column.term == "Ia" and x < 0.0
    ]
    for condition in dissipation(robot, columns, terms):
        values = condition.rows @ chi[condition.columns]
        size = _ROUNDING * float(np.abs(chi[condition.columns]).max(initial=0.0))
        lowest = float(
            np.linalg.eigvalsh(from_triangle(values))[0] if condition.kind == "semidefinite" else values.min()
        )
        if lowest < -size:
            unit = columns[condition.columns[0]].unit
            found.append(Violation(condition.place, "friction must take energy in every motion", lowest, unit))
    return found


@brief
@dataclass(frozen=True, eq=False)
class NearestPhysical:
    """The physical robot nearest to given values.

    Attributes:
        values: Standard parameters by name.
        distance: To the given values, in the unit that `metric` states.
        metric: What the distance means, in words.
        distances: For standard values, the relative distance of each link of which all ten numbers were given.
        moved: How much each given value changes, by name.
        links: The bodies.
        prior: What settled the parameters that were not given.
        strains: How much of the squared distance each condition causes, by name.
        feasible: Whether the given values are physical already.
    """

    values: Mapping[str, float]
    distance: float
    metric: str
    distances: Mapping[str, float]
    moved: Mapping[str, float]
    links: tuple[LinkBody, ...]
    prior: str
    strains: Mapping[str, float]
    feasible: bool


@on_one_thread
def nearest_physical(
    robot: Robot,
    values: Values = None,
    *,
    covariance: Array | None = None,
    terms: TermsLike = None,
    prior: PriorLike = PLAUSIBLE,
    bounds: Sequence[Bound] = (),
    floor: float = THRESHOLDS.floor,
) -> NearestPhysical:
    """The physical robot nearest to standard or base values, such as those that a paper prints.

    Args:
        robot: The robot.
        values: Name of one of its value sets or base value sets, or a mapping by standard or by base name.
        covariance: (n, n) of base values in the order of the base parameters; the distance is then in its std.
        terms: Terms that base values belong to; default the fewest among rigid, Ia, Fv, Fc, Fo that know all names.
        prior: What settles what the values leave open, see `physical_fit`.
        bounds: Bounds on masses and centers of mass.
        floor: Share of its prior body that each link keeps.
    """
    base_set, towards = _base_set(robot, values), (prior, tuple(bounds), floor)
    if base_set is not None:
        return _nearest_base(robot, base_set, covariance, terms, towards)
    if covariance is not None:
        raise InputError("a covariance goes with base values; standard values are compared link by link")
    return _nearest_standard(robot, _standard(robot, values), towards)


def _standard(robot: Robot, values: Values) -> Mapping[str, float]:
    if isinstance(values, Mapping):
        for name in values:
            if name not in robot.parameter_names:
                raise UnknownNameError("standard parameter", str(name), robot.parameter_names)
        given: Mapping[str, float] = {**values, **robot.fixed}
    else:
        given = robot.value_set(values)
    for name, value in given.items():
        if isinstance(value, str) or not np.isfinite(value):
            raise InputError(f"the value of {name} is {value!r}; expected a finite number")
    return given


def _base_set(robot: Robot, values: Values) -> Mapping[str, float] | None:
    """Base values, or None where standard ones are meant."""
    if isinstance(values, Mapping):
        return None if all(name in robot.parameter_names for name in values) else values
    if values is None or values in robot.values:
        return None
    if values not in robot.base_values:
        raise UnknownNameError("parameter set", values, [*robot.values, *robot.base_values])
    return robot.base_values[values]


def _nearest_base(
    robot: Robot, given: Mapping[str, float], covariance: Array | None, terms: TermsLike, towards: _Towards
) -> NearestPhysical:
    base = _base_knowing(robot, given, terms)
    beta = np.array([given.get(name, 0.0) for name in base.names])
    R, metric = _base_metric(base, beta, covariance)
    step = THRESHOLDS.prior_shift_relative if covariance is None else THRESHOLDS.prior_shift_of_covariance_std
    chi, found = _nearest(robot, base.columns, base.terms, R @ base.K, R @ beta, step, towards, metric)
    return replace(found, moved=dict(zip(base.names, (base.K @ chi - beta).tolist(), strict=True)))


def _nearest(
    robot: Robot,
    columns: tuple[Column, ...],
    terms: tuple[Term, ...],
    A: Array,
    y: Array,
    step: float,
    towards: _Towards,
    metric: str,
) -> tuple[Array, NearestPhysical]:
    """Standard parameters (n_columns,) nearest to rows A chi = y, and what is known of them whatever the rows are."""
    prior, bounds, floor = towards
    values = physical_prior(robot, columns, A, y, prior)
    problem = PhysicalProblem(robot, columns, terms, A, y, values, bounds, step, floor)
    found = problem.solve()
    return found.chi, NearestPhysical(
        values={column.name: float(x) for column, x in zip(columns, found.chi, strict=True)},
        distance=float(np.linalg.norm(A @ found.chi - y)),
        metric=metric,
        distances={},
        moved={},
        links=bodies_of(problem, found),
        prior=values.words,
        strains=found.strains,
        feasible=found.least < 2.0 * found.give,
    )


def _base_knowing(robot: Robot, given: Mapping[str, float], terms: TermsLike) -> BaseParameters:
    """The base parameters that base values belong to."""
    tried = [base_parameters(robot, one) for one in ((terms,) if terms is not None else _TERMS)]
    for base in tried:
        if all(name in base.names for name in given):
            return base
    lacking = next(name for name in given if name not in tried[-1].names)
    raise UnknownNameError("base parameter", lacking, tried[-1].names)


def _base_metric(base: BaseParameters, beta: Array, covariance: Array | None) -> tuple[Array, str]:
    """R with ||R (beta' - beta)|| the distance, and what it means."""
    if covariance is not None:
        C = np.asarray(covariance, dtype=np.float64)
        if C.shape != (base.n, base.n) or not np.all(np.linalg.eigvalsh(C) > 0.0):
            raise InputError(f"covariance must be positive definite with shape ({base.n}, {base.n}); got {C.shape}")
        return np.asarray(np.linalg.inv(np.linalg.cholesky(C))), "standard deviations"
    W = base.regressor(*random_states(base.robot, N_RANDOM_STATES)).reshape(-1, base.n)
    size = float(np.linalg.norm(W @ beta))
    if size == 0.0:
        raise InputError("all base values are zero; there is nothing to compare with")
    return np.asarray(np.linalg.qr(W)[1] / size), "share of the torque of random motion"


def _nearest_standard(robot: Robot, given: Mapping[str, float], towards: _Towards) -> NearestPhysical:
    terms = resolve_terms("rigid,Ia,Fv,Fc,Fo")
    columns = all_columns(robot, terms)
    start = np.array([given.get(column.name, 0.0) for column in columns])
    known = np.array([column.name in given for column in columns])
    A, complete = _standard_metric(robot, columns, start, known)
    metric = "root of the sum of squares of relative changes: pseudo-inertias of links, single numbers elsewhere"
    step = 0.1 * THRESHOLDS.prior_shift_relative
    chi, found = _nearest(robot, columns, terms, A, A @ start, step, towards, metric)
    moved = A @ (chi - start)
    return replace(
        found,
        distance=float(np.linalg.norm(moved)),
        distances={label: float(np.linalg.norm(moved[rows])) for label, rows in complete.items()},
        moved={c.name: float(x) for c, x, own in zip(columns, chi - start, known, strict=True) if own},
    )


def _standard_metric(
    robot: Robot, columns: Sequence[Column], chi: Array, known: Mask
) -> tuple[Array, dict[str, slice]]:
    """Rows of the relative changes of given values, and which of them belong to links that are given in full."""
    rows: list[Array] = []
    complete: dict[str, slice] = {}
    n, links = len(columns), link_columns(robot, columns)
    done = np.zeros(n, dtype=bool)
    for joint, place, body in zip(robot.joints, links, plausible_bodies(robot), strict=True):
        if known[place].all() and chi[place].any():
            own = np.linalg.inv(body_axes(body))
            block = np.zeros((10, n))
            block[:, place] = own / np.linalg.norm(own @ chi[place])
            complete[link_label(joint)] = slice(len(rows), len(rows) + 10)
            rows += list(block)
            done[place] = True
    for i in np.flatnonzero(known & ~done).tolist():
        if columns[i].fixed is None:
            rows.append(np.eye(n)[i] / _size(columns, chi, i))
    if not rows:
        raise InputError(f"no standard value of {robot.name} is given; there is nothing to compare with")
    return frozen(rows), complete


def _size(columns: Sequence[Column], chi: Array, i: int) -> float:
    """Size of a single number: its own, or that of its kind where it is zero."""
    alike = [abs(x) for column, x in zip(columns, chi, strict=True) if column.unit == columns[i].unit]
    return float(abs(chi[i]) or max(alike) or 1.0)
