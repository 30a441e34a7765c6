r"""The convex problem behind everything physical: nearest to given rows, among parameters that belong to bodies.

Two solves. The first finds the least distance,

.. math:: \min \|A \chi - y\|^2 \quad\text{such that}\quad J_j(\chi) \succeq \varphi B_j,\; I_a \ge 0,\;
    \text{friction takes energy},\; \text{bounds hold}

with J_j the pseudo-inertia of link j and B_j that of a prior body. The rows leave directions open; the second
settles them by the log-det distance to those bodies, without giving up more than a small share of what was reached
(along directions that the data knows less than the size of a body, as far as noise may have moved the estimate: there
the prior knows better),

.. math:: \min \sum_j \operatorname{tr} B_j^{-1} J_j - \log\det B_j^{-1} J_j \quad\text{such that}\quad
    \|A (\chi - \chi_1)\| \le \delta

so no weight has to be balanced and what the rows determine cannot drift. Links are written in the axes of their own
body, where B_j is the identity: masses of kilograms and inertias of milligrams then weigh alike.

The log-det distance alone trades mass against shape: it would rather scale a whole body than move its center. A mass
that the rows leave open and the robot's values describe therefore pays its relative change on top,

.. math:: \lambda \sum_j |M_j / M_{j,0} - 1|

an exact penalty: the mass stays where it is described unless every body with it is all but flat. Where a link would
keep less than a share s of its described inertia about the center of mass, what it lacks pays as a mass does,
:math:`\lambda \sum_j u_j` with :math:`I_{C,j} \succeq (s - u_j) I_{C,j,0}`: a Schur complement of the spatial inertia.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array, Mask, on_one_thread, record
from dynident.dynamics.terms import Column, Term
from dynident.errors import InfeasibleError, InputError
from dynident.physical.bounds import Bound
from dynident.physical.cones import (
    ConeProblem,
    Part,
    SolveError,
    from_triangle,
    log_determinant,
    triangle,
)
from dynident.physical.dissipative_friction import Condition, dissipation
from dynident.physical.inertia import inertia_share, spatial_inertia
from dynident.physical.thresholds import THRESHOLDS
from dynident.robot.model import Robot
from dynident.robot.parameters import LINK_SYMBOLS
from dynident.robot.physicality import link_label, pseudo_inertia, without_body

_MIN_SOLVER_GIVE = 0.1  # rows are scaled for the solver such that what may be given away is never tiny
_ROOMS = (1.0, 2.0, 5.0, 25.0)  # times the usual one that are tried for the second solve
_ROUNDING = 1e-12  # share of the largest singular value below which one is zero
_HOLD_WEIGHT = 1e-6  # of the size of links, in that of their bodies, in the first solve: keeps the null space finite


class ConflictError(InputError):
    """Bounds that no physical robot can fulfill together."""


@record
class PhysicalPrior:
    """Values that parameters are regularized towards where nothing else settles them.

    Attributes:
        bodies: (n_links, 10) standard parameters of physical bodies.
        others: (n_columns,) values of all that is no link; those of rotors are positive.
        scales: (n_columns,) typical size of all that is no link; for rotors, their value.
        words: In words.
        described: (n_links,) whether the body is one that the robot's values describe, not a plausible one.
    """

    bodies: Array
    others: Array
    scales: Array
    words: str
    described: Mask


@dataclass(frozen=True, eq=False)
class PhysicalProblem:
    """Rows, conditions and the prior.

    Attributes:
        robot: The robot.
        columns: Standard parameters.
        terms: Terms they belong to.
        rows: (m, n_columns) A.
        target: (m,) y.
        prior: What null-space directions are regularized towards.
        bounds: What the user knows.
        give: How far the second solve may move away from the first, in the unit of the rows.
        floor: Share of its body that each link keeps.
        deviations: Whether rows are in standard deviations: then masses, and directions, that are less known than
            their prior is large go where the prior has them.
        inertia_share: Share of the described inertia about the center of mass below which a link pays; 0 for none.
    """

    robot: Robot
    columns: tuple[Column, ...]
    terms: tuple[Term, ...]
    rows: Array
    target: Array
    prior: PhysicalPrior
    bounds: tuple[Bound, ...] = ()
    give: float = 0.01
    floor: float = THRESHOLDS.floor
    deviations: bool = False
    inertia_share: float = THRESHOLDS.kept_inertia_share

    @functools.cached_property
    def axes(self) -> list[Array]:
        """Of the bodies."""
        return [body_axes(body) for body in self.prior.bodies]

    @functools.cached_property
    def kept_masses(self) -> dict[int, float]:
        """Column and described value [kg] of every mass that the rows leave open."""
        places, spread = link_columns(self.robot, self.columns)[:, 9], standard_deviations(self.rows)
        share = THRESHOLDS.undetermined_mass_share if self.deviations else np.inf
        return {
            int(place): float(self.prior.bodies[i, 9])
            for i, place in ((i, places[i]) for i in self.described_links)
            if self.columns[place].fixed is None
            if spread[place] >= share * self.prior.bodies[i, 9]
        }

    @functools.cached_property
    def described_links(self) -> list[int]:
        """Links whose bodies the robot's values describe."""
        absent = without_body(self.robot)
        return [i for i in range(self.robot.n_links) if self.prior.described[i] and i not in absent]

    @functools.cached_property
    def friction(self) -> list[Condition]:
        """When its friction takes energy."""
        return dissipation(self.robot, self.columns, self.terms)

    @on_one_thread
    def solve(self) -> PhysicalSolution:
        """Both solves.

        Raises:
            ConflictError: When bounds contradict physics or each other, naming them.
        """
        unit = 1.0 if self.deviations else min(self.give / _MIN_SOLVER_GIVE, 1.0)
        found = replace(self, rows=self.rows / unit, target=self.target / unit, give=self.give / unit)._solve()
        strains = {name: unit**2 * strain for name, strain in found.strains.items()}
        return replace(
            found, strains=strains, **{key: unit * getattr(found, key) for key in ("least", "give", "moved")}
        )

    def _solve(self) -> PhysicalSolution:
        first = _Build(self)
        first.near_rows()
        try:
            x, multipliers, seconds = first.problem.solve()
        except InfeasibleError:
            raise self._conflict() from None
        chi = first.chi(x)
        least = float(np.linalg.norm(self.rows @ chi - self.target))
        settled, more, give = self._regularize(chi, max(self.give, 1e-6 * least))
        moved, strains = float(np.linalg.norm(self.rows @ (settled - chi))), first.strains(x, multipliers)
        return PhysicalSolution(self._signed(settled), strains, seconds + more, least, give, moved)

    def _signed(self, chi: Array) -> Array:
        """Zero where the solver left a rounding error on the wrong side of it: for readers that check signs."""
        signs = {i: 1.0 for i, column in enumerate(self.columns) if column.term == "Ia" and column.fixed is None}
        alone = (one for one in self.friction if one.rows.shape == (1, 1))
        signs.update({int(one.columns[0]): float(one.rows[0, 0]) for one in alone})
        wrong = [i for i, sign in signs.items() if sign * chi[i] < 0.0]
        chi = chi.copy()
        chi[wrong] = 0.0
        return chi

    def _regularize(self, chi: Array, give: float) -> tuple[Array, float, float]:
        """The second solve, with more room where it needs some, which the result states.

        It does where rows leave next to none, and where a described mass would move: then as much as keeps the distance
        within what noise explains.
        """
        found: tuple[Array, float, float] | None = None
        for wider in _ROOMS:
            build = _Build(self)
            build.near_bodies(chi, wider * give)
            try:
                x, _, seconds = build.problem.solve()
            except (SolveError, InfeasibleError):
                continue
            settled = build.chi(x)
            if build.margin(x) <= 0.5 * self.floor or (found is not None and not self._likely(settled)):
                continue
            found = settled, seconds + (found[1] if found else 0.0), wider * give
            if not self.deviations or not self.moved_masses(settled) or not self._likely(settled):
                break
        if found is not None:
            return self._with_inertias(chi, *found)
        raise SolveError(
            "no physical parameters were found near the least distance; bound the masses of links, or give a prior"
        )

    def _with_inertias(self, chi: Array, settled: Array, seconds: float, give: float) -> tuple[Array, float, float]:
        """The second solve in the same room, with described inertias where some would fall below their share.

        Taken where the thinnest link gains by it. Data that no physical robot explains may leave no room for it, or a
        problem too narrow to solve; which links are thin is then for the result to say.
        """
        before = self._least_inertia_share(settled)
        if before >= self.inertia_share:
            return settled, seconds, give
        build = _Build(self)
        build.near_bodies(chi, give, inertias=True)
        try:
            x, _, more = build.problem.solve()
        except SolveError:
            return settled, seconds, give
        found = build.chi(x)
        better = self._least_inertia_share(found) > before and build.margin(x) > 0.5 * self.floor
        return found if better else settled, seconds + more, give

    def _least_inertia_share(self, chi: Array) -> float:
        """Of all links that are described; one where none is."""
        places = link_columns(self.robot, self.columns)
        shares = [inertia_share(chi[places[i]], self.prior.bodies[i]) for i in self.described_links]
        return min(shares, default=1.0)

    def moved_masses(self, chi: Array) -> list[int]:
        """Columns of the described masses that torque leaves open and that are others all the same."""
        far = THRESHOLDS.moved_mass_share
        return [column for column, mass in self.kept_masses.items() if abs(chi[column] - mass) > far * mass]

    def _likely(self, chi: Array) -> bool:
        """Whether noise explains how far parameters are from the rows."""
        rank = int(np.linalg.matrix_rank(self.rows))
        return float(np.linalg.norm(self.rows @ chi - self.target)) <= usual_distance(rank)

    @on_one_thread
    def distance_without(self, group: str) -> float:
        """The least distance if one condition did not have to hold."""
        build = _Build(self, without=group)
        build.near_rows()
        chi = build.chi(build.problem.solve()[0])
        return float(np.linalg.norm(self.rows @ chi - self.target))

    def _conflict(self) -> ConflictError:
        """Which bounds contradict each other: those that strain when all may give way."""
        if not self.bounds:
            return ConflictError("values that the robot file fixes belong to no physical robot; inspect names them")
        build = _Build(self, soft=True)
        build.give_way()
        _, multipliers, _ = build.problem.solve()
        size = max(float(np.abs(multipliers[label]).max(initial=0.0)) for label in build.bound_labels)
        parts = []
        for bound, label in zip(self.bounds, build.bound_labels, strict=True):
            if np.abs(multipliers[label]).max(initial=0.0) > 1e-3 * size:
                parts.append(str(bound))
        return ConflictError(
            f"no physical robot has {' and '.join(parts)}; widen {'one of them' if len(parts) > 1 else 'it'}"
        )


@dataclass(frozen=True, eq=False)
class PhysicalSolution:
    """What solving found.

    Attributes:
        chi: (n_columns,).
        strains: How much of the squared distance each condition causes, by its name.
        seconds: Of the solver [s].
        least: The least distance, in the unit of the rows.
        give: How far the second solve was allowed to move, in the same unit.
        moved: How far it did; more than that where directions are weak.
    """

    chi: Array
    strains: Mapping[str, float]
    seconds: float
    least: float
    give: float
    moved: float


def usual_distance(rank: int) -> float:
    """Distance that noise alone exceeds once in a thousand fits, if the stated std is right and the truth physical.

    The truth is physical, so the nearest physical parameters are no farther than it; and its square is distributed as
    chi-square with as many degrees of freedom as the data determines directions.
    """
    from scipy.special import chdtri  # takes a while to load

    return float(np.sqrt(chdtri(rank, THRESHOLDS.false_alarm_rate)))


def link_columns(robot: Robot, columns: Sequence[Column]) -> NDArray[np.intp]:
    """(n_links, 10) index of each link's columns.

    Raises:
        InputError: When some of a link's ten columns are not there.
    """
    places = {column.name: i for i, column in enumerate(columns) if column.term == "rigid"}
    lacking = [
        f"{symbol}{joint.number}"
        for joint in robot.joints
        for symbol in LINK_SYMBOLS
        if f"{symbol}{joint.number}" not in places
    ]
    if lacking:
        raise InputError(
            f"standard parameter {lacking[0]} is not among the columns; physical bodies need the term rigid and all "
            "ten parameters of each link (fix known values in the robot file, not with `known`)"
        )
    return np.array([[places[f"{symbol}{joint.number}"] for symbol in LINK_SYMBOLS] for joint in robot.joints])


def standard_deviations(rows: Array) -> Array:
    """(n_columns,) of parameters from rows of unit standard deviation; infinite where rows leave a parameter open.

    Args:
        rows: (m, n_columns) of full row rank.
    """
    size = np.linalg.norm(rows, axis=0)
    scale = np.where(size > 0.0, size, 1.0)
    _, singular, vt = np.linalg.svd(rows / scale, full_matrices=False)
    kept = singular > 1e-12 * singular[0]
    half = vt[kept].T / singular[kept]
    seen = np.sum(vt[kept] ** 2, axis=0) > 1.0 - 1e-9  # the unit vector of the parameter lies in what rows can see
    return np.where(seen, np.linalg.norm(half, axis=1) / scale, np.inf)


def smallest_share(chi: Array, body: Array) -> float:
    """Smallest eigenvalue of a link's pseudo-inertia in axes where that of a body is one."""
    inverse = np.linalg.inv(np.linalg.cholesky(pseudo_inertia(body)))
    return float(np.linalg.eigvalsh(inverse @ pseudo_inertia(chi) @ inverse.T)[0])


def body_axes(body: Array) -> Array:
    """(10, 10) T of a physical body: chi = T y, y the triangle of the pseudo-inertia in axes where the body is one."""
    inverse = np.linalg.inv(np.linalg.cholesky(pseudo_inertia(body)))
    units = inverse @ pseudo_inertia(np.eye(10)) @ inverse.T
    return np.asarray(np.linalg.inv(triangle(units).T))


class _Build:
    """A cone problem for a physical one."""

    def __init__(self, given: PhysicalProblem, *, without: str = "", soft: bool = False) -> None:
        self.given, self.problem = given, ConeProblem()
        robot, columns = given.robot, given.columns
        every = link_columns(robot, columns)
        own = [i for i in range(len(every)) if i not in without_body(robot)]
        self.every, self.links, self.joints = every.ravel(), every[own], [robot.joints[i] for i in own]
        self.constant = np.array([0.0 if column.fixed is None else column.fixed for column in columns])
        open_ = np.array([column.fixed is None for column in columns])
        open_[self.every] = False
        self.constant[self.every] = 0.0
        self.others = np.flatnonzero(open_)
        self.axes = [given.axes[i] for i in own]
        self.unit = triangle(np.eye(4))
        self.y = [self.problem.variables(10) for _ in self.links]
        self.e = self.problem.variables(len(self.others))
        self.scales = given.prior.scales[self.others]
        self.groups: dict[str, list[str]] = {}
        self.bound_labels: list[str] = []
        self._fixed()
        self._bodies(without)
        self._elements(without)
        self.reach = np.arange(self.problem.n)  # the variables that parameters are made of
        self.size, self.r = 1.0, np.zeros(0, dtype=int)
        self.slack = self.problem.variables(len(given.bounds) if soft else 0)
        for number in range(len(given.bounds)):
            self._bound(number)

    def chi(self, x: Array) -> Array:
        """Standard parameters of a solution, (n_columns,)."""
        chi = self.constant.copy()
        for link, axes, y in zip(self.links, self.axes, self.y, strict=True):
            chi[link] = axes @ x[y]
        chi[self.others] = self.scales * x[self.e]
        for i, column in enumerate(self.given.columns):
            if column.fixed is not None:
                chi[i] = column.fixed  # exactly, not as near as the solver came
        return chi

    def variables_of(self, chi: Array) -> Array:
        """Variables that standard parameters (n_columns,) are made of, (n,)."""
        links = [np.linalg.solve(axes, chi[own]) for own, axes in zip(self.links, self.axes, strict=True)]
        return np.concatenate([*links, chi[self.others] / self.scales])

    def margin(self, x: Array) -> float:
        """Smallest share of its body that a link has."""
        return min(float(np.linalg.eigvalsh(from_triangle(x[y]))[0]) for y in self.y)

    def parts(self, A: Array) -> list[Part]:
        """Rows over standard parameters, (m, n_columns), as rows over the variables."""
        links = zip(self.links, self.axes, self.y, strict=True)
        found = [(y, A[:, link] @ axes) for link, axes, y in links if A[:, link].any()]
        if len(self.others):
            found.append((self.e, A[:, self.others] * self.scales))
        return found

    def near_rows(self) -> None:
        """The objective of the first solve."""
        given = self.given
        A, y = given.rows, given.target - given.rows @ self.constant
        if len(A) > A.shape[1]:
            Q, A = np.linalg.qr(A)
            y = Q.T @ y
        # Distances of a million standard deviations and of none are both to be found well.
        size = self.size = max(1.0, 1e-3 * float(np.linalg.norm(y)))
        r = self.r = self.problem.variables(len(y))
        parts = [(where, matrix / size) for where, matrix in self.parts(A)]
        self.problem.require("rows", "zero", [*parts, (r, -np.eye(len(y)))], -y / size)
        self.problem.squares.update(dict.fromkeys(r.tolist(), 1.0))
        self._hold()

    def near_bodies(self, chi: Array, give: float, *, inertias: bool = False) -> None:
        """The objective of the second solve, within a distance of the first.

        Args:
            chi: (n_columns,) of the first solve.
            give: How far from it.
            inertias: Whether links pay for losing their described inertia about the center of mass.
        """
        parts = self.parts(self.given.rows)
        where, whole = np.concatenate([one for one, _ in parts]), np.hstack([matrix for _, matrix in parts])
        A = self._released(whole, np.isin(where, self.e))
        m = len(A)
        r = self.problem.variables(m)
        size = np.sqrt(np.maximum(1.0, np.linalg.norm(A, axis=1)))
        A = A / size[:, None]  # between rows of one size and entries of one size: both extremes stall the solver
        start = -A @ self.variables_of(chi)[where]
        self.problem.require("moved", "zero", [(where, A), (r, -np.diag(give / size))], start)
        ball = np.vstack([np.zeros(m), np.eye(m)])
        self.problem.require("hold", "second order", [(r, ball)], np.eye(m + 1)[0])
        for number, y in enumerate(self.y):
            logs = log_determinant(self.problem, f"body {number}", [(y, np.eye(10))], np.zeros(10))
            self.problem.linear.update(dict.fromkeys(logs.tolist(), -1.0))
            self.problem.linear.update(zip(y.tolist(), self.unit, strict=True))
        self._keep_masses()
        if inertias:
            self._keep_inertias()
        spread = standard_deviations(self.given.rows)
        for i, x, column in zip(self.e.tolist(), self._elsewhere(), self.others, strict=True):
            if np.isfinite(spread[column]):
                continue  # the data knows it, and the prior is no more than a guess
            if self.given.columns[column].term == "Ia":  # a body of one dimension
                where = np.array([i])
                logs = log_determinant(self.problem, f"rotor {i}", [(where, np.eye(1))], np.zeros(1))
                self.problem.linear.update({i: 1.0, int(logs[0]): -1.0})
            else:
                self.problem.squares[i], self.problem.linear[i] = 1.0, -float(x)

    def _released(self, rows: Array, others: Mask) -> Array:
        """Rows of the same norm, those relaxed that know bodies less than their size.

        What friction and rotors can follow is taken out first: how well bodies are known is asked with those unknown.
        Along the directions that remain, in units of bodies, rows are singular values; where the standard deviation
        exceeds one body, what noise may have done to all such directions together counts as one.

        Args:
            rows: (m, n) over variables.
            others: (n,) which of them are no bodies.
        """
        U, size, _ = np.linalg.svd(rows[:, others], full_matrices=False)
        follows = U[:, size > _ROUNDING * size.max(initial=0.0)]
        bodies = np.where(others, 0.0, rows - follows @ (follows.T @ rows))
        _, weights, directions = np.linalg.svd(bodies, full_matrices=False)
        known = weights > _ROUNDING * weights.max(initial=0.0)
        weak = known & (weights < 1.0)
        if self.given.deviations and weak.any():
            weights[weak] /= usual_distance(int(weak.sum()))
        return np.vstack([weights[known, None] * directions[known], follows.T @ rows])

    def _keep_masses(self) -> None:
        """What masses that only a description knows pay for leaving it."""
        masses = dict(zip((int(own[9]) for own in self.links), zip(self.axes, self.y, strict=True), strict=True))
        kept = self.given.kept_masses
        moved = self.problem.variables(len(kept))
        for number, (column, described) in enumerate(kept.items()):
            axes, y = masses[column]
            row, size = axes[[9]] / described, np.ones((1, 1))
            for sign, side in ((1.0, "above"), (-1.0, "below")):
                parts = [(moved[[number]], size), (y, -sign * row)]
                self.problem.require(f"mass {column} {side}", "nonnegative", parts, np.array([sign]))
            self.problem.linear[int(moved[number])] = THRESHOLDS.kept_mass_weight

    def _keep_inertias(self) -> None:
        """What links pay whose inertia about the center of mass falls below a share of the described one."""
        given = self.given
        named = {int(own[9]): number for number, own in enumerate(self.links)}
        masses = self.every.reshape(-1, 10)[:, 9]
        upper = triangle(np.diag([1.0, 1.0, 1.0, 0.0, 0.0, 0.0]))
        lacks = self.problem.variables(len(given.described_links))
        for lack, i in zip(lacks.tolist(), given.described_links, strict=True):
            number = named[int(masses[i])]
            rows = spatial_inertia(given.prior.bodies[i]) @ self.axes[number]
            own = np.array([lack])
            parts = [(self.y[number], rows), (own, upper[:, None])]
            self.problem.require(f"inertia {i}", "semidefinite", parts, -given.inertia_share * upper)
            self.problem.require(f"lack {i}", "nonnegative", [(own, np.ones((1, 1)))], np.zeros(1))
            self.problem.linear[lack] = THRESHOLDS.kept_mass_weight

    def give_way(self) -> None:
        """The objective that tells which bounds contradict each other."""
        self.problem.linear.update(dict.fromkeys(self.slack.tolist(), 1.0))
        self.problem.require("slack", "nonnegative", [(self.slack, np.eye(len(self.slack)))], np.zeros(len(self.slack)))
        self._hold()

    def _hold(self) -> None:
        """Keep small what nothing else keeps: the trace of bodies, which cannot be negative, and squares elsewhere."""
        for joint, y in zip(self.joints, self.y, strict=True):
            if link_label(joint) in self.groups:
                self.problem.linear.update(zip(y.tolist(), _HOLD_WEIGHT * self.unit, strict=True))
            else:
                self.problem.squares.update(dict.fromkeys(y.tolist(), _HOLD_WEIGHT**2))
        for i, x, column in zip(self.e.tolist(), self._elsewhere(), self.others, strict=True):
            rotor = self.given.columns[column].term == "Ia"
            if rotor and f"rotor inertia {self.given.columns[column].name}" in self.groups:
                self.problem.linear[i] = _HOLD_WEIGHT
            else:
                self.problem.squares[i], self.problem.linear[i] = _HOLD_WEIGHT, -_HOLD_WEIGHT * float(x)

    def _elsewhere(self) -> Array:
        """The prior of the variables that are no link."""
        return np.asarray(self.given.prior.others[self.others] / self.scales)

    def strains(self, x: Array, multipliers: Mapping[str, Array]) -> dict[str, float]:
        """How much of the squared distance each group of conditions causes; they add up to all of it.

        With multipliers z and the step d that would meet the rows exactly, the condition b + A x causes -z · A d.
        """
        rows, size = self.problem.blocks["rows"], self.size
        free = rows.dense(len(self.reach))
        missed = rows.times(x) + rows.b + x[self.r]  # the rows themselves, without their residual
        step = np.zeros(self.problem.n)
        step[: len(self.reach)] = np.linalg.lstsq(free, -missed, rcond=1e-12)[0]
        return {
            group: size**2 * float(sum(-multipliers[one] @ self.problem.blocks[one].times(step) for one in labels))
            for group, labels in self.groups.items()
        }

    def _fixed(self) -> None:
        """Values that the robot file fixes for links; others are no variables."""
        fixed = [int(i) for i in self.links.ravel() if self.given.columns[i].fixed is not None]
        if fixed:
            rows = np.zeros((len(fixed), len(self.given.columns)))
            rows[range(len(fixed)), fixed] = 1.0
            values = np.array([self.given.columns[i].fixed for i in fixed], dtype=np.float64)
            self.problem.require("fixed", "zero", self.parts(rows), -values)

    def _bodies(self, without: str) -> None:
        for joint, y in zip(self.joints, self.y, strict=True):
            label = link_label(joint)
            if label != without:
                self.groups[label] = [label]
                self.problem.require(label, "semidefinite", [(y, np.eye(10))], -self.given.floor * self.unit)

    def _elements(self, without: str) -> None:
        """Rotor inertia and friction."""
        for place, i in enumerate(self.others):
            column = self.given.columns[i]
            label = f"rotor inertia {column.name}"
            if column.term == "Ia" and label != without:
                self.groups[label] = [label]
                self.problem.require(label, "nonnegative", [(self.e[[place]], np.eye(1))], np.zeros(1))
        for number, condition in enumerate(self.given.friction):
            if condition.place != without:
                self._condition(f"{condition.place} #{number}", condition)

    def _condition(self, label: str, condition: Condition) -> None:
        """Friction, or the part of it that is still open."""
        open_ = np.isin(condition.columns, self.others)
        if open_.any():
            places = np.searchsorted(self.others, condition.columns[open_])
            rest = condition.rows[:, ~open_] @ self.constant[condition.columns[~open_]]
            size = float(self.scales[places].max())
            rows = condition.rows[:, open_] * self.scales[places] / size
            self.groups.setdefault(condition.place, []).append(label)
            self.problem.require(label, condition.kind, [(self.e[places], rows)], rest / size)

    def _bound(self, number: int) -> None:
        bound, label = self.given.bounds[number], f"bound {number}"
        kind, A, b = bound.cone(self.given.robot)
        wide = np.zeros((len(b), len(self.given.columns)))
        wide[:, self.every] = A.reshape(len(b), -1)
        size = max(float(np.abs(b).max(initial=0.0)), float(self.given.prior.bodies[:, 9].mean()))
        parts = [(where, matrix / size) for where, matrix in self.parts(wide)]
        if len(self.slack):
            # Along the cone's own axis, so that enough slack fulfills any bound.
            way = np.eye(len(b))[0] if kind == "second order" else np.ones(len(b))
            parts.append((self.slack[[number]], way[:, None]))
        self.bound_labels.append(label)
        self.groups[str(bound)] = [label]
        self.problem.require(label, kind, parts, b / size)
