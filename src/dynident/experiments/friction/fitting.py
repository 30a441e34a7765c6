"""Friction as a linear function of its parameters at given velocities: eq. (7) for one joint, eq. (8) for two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np

from dynident.arrays import Array, record
from dynident.dynamics.recursion import NUMPY_FUNCTIONS
from dynident.dynamics.terms import resolve_terms
from dynident.dynamics.terms.friction import FrictionTerm
from dynident.dynamics.terms.friction_laws import FRICTION_LAWS, ElementMotion
from dynident.errors import InputError
from dynident.experiments.friction.groups import JointGroup
from dynident.experiments.friction.links import Links
from dynident.experiments.friction.points import Point, noise_floor
from dynident.experiments.thresholds import FRICTION
from dynident.information.parameter_estimate import ParameterEstimate
from dynident.robot.model import Element


def shapes(text: str | Sequence[str] | None) -> tuple[FrictionTerm, ...]:
    """Laws beside viscous and Coulomb friction from their names, such as "stribeck(0.2)"."""
    if not text:
        return ()
    found = []
    for law in resolve_terms(text):
        if not isinstance(law, FrictionTerm) or not law.law.shows_at_constant_velocity:
            able = ", ".join(name for name, one in FRICTION_LAWS.items() if one.shows_at_constant_velocity)
            raise InputError(f"{law.name} does not show at constant velocity; expected among {able}")
        found.append(law)
    return tuple(found)


def friction_columns(
    group: JointGroup, velocity: Array, odd: Array, laws: Sequence[FrictionTerm] = (), *, offset: bool = True
) -> tuple[tuple[str, ...], tuple[str, ...], Array]:
    """What each parameter adds to the friction at given velocities.

    Viscous and Coulomb friction of every element, an offset of every actuated coordinate, and further laws.

    Args:
        group: The joints.
        velocity: (n_points, n) joint velocities.
        odd: (n_points,) whether offsets have canceled.
        laws: Further laws.
        offset: Whether there are offsets at all.

    Returns:
        Names and units of the parameters, and (n_points, n, n_columns) torque at the actuated coordinates per unit of
        each.
    """
    names, units, values = [], [], []
    for element, direction, push in zip(group.elements, group.directions, group.pushes, strict=True):
        v = velocity @ direction
        sliding = element.prismatic
        kinds = [("Fv", v, "N·s/m" if sliding else "N·m·s/rad"), ("Fc", np.sign(v), "N" if sliding else "N·m")]
        # The offset of an element that acts on two motors is the sum of theirs.
        if offset and np.count_nonzero(push) == 1 and not odd.all():
            kinds.append(("Fo", 1.0 - odd, "N" if sliding else "N·m"))
        for symbol, phi, unit in kinds:
            if symbol in element.names:
                names.append(element.names[symbol])
                units.append(unit)
                values.append(np.outer(phi, push))
        for law in laws:
            for name, unit, phi in _law_columns(law, element, v):
                names.append(name)
                units.append(unit)
                values.append(np.outer(phi, push))
    return tuple(names), tuple(units), np.stack(values, axis=-1)


def _law_columns(law: FrictionTerm, element: Element, v: Array) -> list[tuple[str, str, Array]]:
    # A joint that keeps its velocity slips for certain: no smoothing about standstill, as in filtered logs.
    motion = ElementMotion(velocity=v, unit=element.radian, functions=NUMPY_FUNCTIONS, sticks=not law.law.dry)
    found = law.values(motion)
    if law.law.dry:
        found = [phi / np.abs(motion.sign) for phi in found]
    columns = law.element_columns(element.label, element.label, sliding=element.prismatic)
    return [(column.name, column.unit, phi) for column, phi in zip(columns, found, strict=True)]


def stack_points(points: Sequence[Point]) -> tuple[Array, Array, Array, Array]:
    """Velocities (m, n), torques (m, n), standard deviations of the means (m, n), and whether points are odd (m,)."""
    velocity = np.array([point.velocity for point in points])
    torque = np.array([point.torque for point in points])
    return velocity, torque, np.array([point.std for point in points]), np.array([float(point.odd) for point in points])


# ----------------------------------------------------------------------------------------------------------------------
# Least squares of friction at constant velocities: values, what is not determined, and what the model misses.


@dataclass(frozen=True, eq=False)
class Misfit:
    """What the model misses, against the scatter of the points.

    Attributes:
        rms: (n,) residual of each output [N·m or N].
        scatter: (n,) standard deviation of a point's mean.
        friction: (n,) RMS friction.
        ratio: Mean square of the residuals over that of the scatter: 1 for a model that misses nothing.
        chance: Probability of such a ratio, or a larger one, where the model misses nothing; None without spare points.
    """

    rms: Array
    scatter: Array
    friction: Array
    ratio: float
    chance: float | None

    @property
    def matters(self) -> bool:
        """Whether it is no chance, and more than half a per cent of the friction."""
        return self.chance is not None and self.chance < 1e-3 and bool(np.any(self.rms > 0.005 * self.friction))

    def as_dict(self) -> dict[str, object]:
        """Plain data."""
        return {
            "rms": self.rms.tolist(),
            "scatter": self.scatter.tolist(),
            "ratio": self.ratio,
            "chance": self.chance,
            "matters": self.matters,
        }


@record
class VelocityFit(ParameterEstimate):
    """Friction of one group of joints; values are the least ones that fit where parameters are not determined.

    Attributes:
        group: The joints.
        points: What was measured, without the torque of the links.
        laws: Laws beside viscous and Coulomb friction.
        open: (p, k) changes of the parameters that leave the torque as it is; k = 0 where all are determined.
        residual: (m, n) measured friction minus that of the model [N·m or N].
        misfit: What the model misses.
        inertia: (n, n) of the joints at each output, about the pose of the runs; with standard deviations.
    """

    _: KW_ONLY
    group: JointGroup
    points: tuple[Point, ...]
    laws: tuple[FrictionTerm, ...]
    open: Array
    residual: Array
    misfit: Misfit
    inertia: tuple[Array, Array]

    @property
    def rank(self) -> int:
        """Number of combinations that the points determine."""
        return len(self.names) - int(self.open.shape[1])

    def friction(self, velocity: Array, *, offset: bool = False) -> Array:
        """Friction of the model at joint velocities (m, n), (m, n) at the actuated coordinates."""
        even = np.zeros(len(velocity)) if offset else np.ones(len(velocity))
        names, _, columns = friction_columns(self.group, velocity, even, self.laws)
        values = dict(zip(self.names, self.values, strict=True))
        return np.asarray(columns @ np.array([values.get(name, 0.0) for name in names]))


def fit_friction(
    group: JointGroup, points: Sequence[Point], laws: Sequence[FrictionTerm] = (), links: Links | None = None
) -> VelocityFit:
    """Least squares over all points; each output counts by the scatter of its points.

    Standard deviations come from the scatter or, where the model misses more than that, from the residual; that of the
    links whose torque was taken off is added.

    Args:
        group: The joints.
        points: What was measured.
        laws: Laws beside viscous and Coulomb friction.
        links: What is known of the links beforehand; default that joints have an inertia.
    """
    links = Links.free(len(group.places)) if links is None else links
    chi, root = links.estimated(points)
    points = [point.without(chi, root) for point in points]
    velocity, torque, std, odd = stack_points(points)
    names, units, columns = friction_columns(group, velocity, odd, laws)
    size = np.sqrt(np.mean(torque**2, axis=0))
    scatter = np.maximum(np.sqrt(np.mean(std**2, axis=0)), noise_floor(points, FRICTION.scatter_floor))
    rows = (columns / scatter[:, None]).reshape(-1, len(names))
    solve, spread, open_ = _solve_rows(rows)
    values = solve @ (torque / scatter).ravel()
    residual = torque - columns @ values
    misfit = _misfit(residual, scatter, size, rows.shape[1] - open_.shape[1], [len(one.blocks) for one in points])
    covariance = spread * max(misfit.ratio, 1.0)
    doubts = [np.zeros((*one.velocity.shape, 0)) if one.doubt is None else one.doubt for one in points]
    change = np.einsum("pmr,mrk->pk", solve.reshape(len(values), *torque.shape) / scatter, np.array(doubts))
    covariance = covariance + change @ change.T
    inertia, inertia_std = links.inertia @ chi, np.linalg.norm(links.inertia @ root, axis=2)
    return VelocityFit(
        group=group,
        points=tuple(points),
        laws=tuple(laws),
        names=names,
        units=units,
        values=values,
        covariance=covariance,
        determined=np.abs(open_).max(axis=1, initial=0.0) <= FRICTION.same_column_share,
        open=open_,
        residual=residual,
        misfit=misfit,
        inertia=(inertia, inertia_std),
    )


def _solve_rows(rows: Array) -> tuple[Array, Array, Array]:
    """What makes values of a target, covariance for unit noise, and directions left open (largest entry one)."""
    size = np.linalg.norm(rows, axis=0)
    size[size == 0.0] = 1.0
    left, singular, right = np.linalg.svd(rows / size, full_matrices=True)
    kept = int(np.sum(singular > FRICTION.same_column_share * singular[0]))
    back = right[:kept].T / singular[:kept]
    covariance = (back @ back.T) / np.outer(size, size)
    return back @ left[:, :kept].T / size[:, None], covariance, _readable(right[kept:].T / size[:, None])


def _readable(directions: Array) -> Array:
    """The same space with as many zeros as there are directions, each with largest entry one."""
    found = np.array(directions)
    for k in range(found.shape[1]):
        pivot = int(np.argmax(np.abs(found[:, k])))
        found[:, k] /= found[pivot, k]
        for other in range(found.shape[1]):
            if other != k:
                found[:, other] -= found[pivot, other] * found[:, k]
    return np.where(np.abs(found) < FRICTION.same_column_share, 0.0, found)


def _misfit(residual: Array, scatter: Array, size: Array, rank: int, blocks: Sequence[int]) -> Misfit:
    from scipy.special import fdtrc  # scipy.stats would take seconds to import

    spare = residual.size - rank
    rms = np.sqrt(np.mean(residual**2, axis=0))
    if spare < 1:
        return Misfit(rms, scatter, size, 1.0, None)
    ratio = float(np.sum((residual / scatter) ** 2) / spare)
    chance = float(fdtrc(spare, sum(n - 1 for n in blocks) * residual.shape[1], ratio))
    return Misfit(rms, scatter, size, ratio, chance)
