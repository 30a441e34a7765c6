"""What is searched: groups of parameters with one number each, for the weight and for the inertia of the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, Mask, on_one_thread, record
from dynident.dynamics.evaluate import columns, joint_torque, parameters, regressor
from dynident.errors import InputError, SingularError
from dynident.identifiability.base import base_parameters
from dynident.identifiability.regrouping import select_columns
from dynident.identifiability.states import random_states
from dynident.robot.model import Robot

_NEW = 1e-8  # share of a column that others must leave open
_STEP = 1e-4  # [rad or m] of difference quotients of the weight: their error is its square


@record
class ParameterGroup:
    """Parameters that change together.

    Attributes:
        name: As in reports, such as ``MXR1`` or ``fm4``.
        unit: Unit of its value; empty for a factor.
        nominal: The value that the description has.
        direction: (n_columns,) by how much the model's standard parameters grow with the value.
        relation: (n_columns,) the value of a set of standard parameters; None where a set does not determine it.
    """

    name: str
    unit: str
    nominal: float
    direction: Array
    relation: Array | None = None


@record
class SwingModel:
    """The model that is sent to the machine; its weight and its inertia have parameters of their own.

    Attributes:
        robot: The robot.
        terms: Terms of the model.
        chi: (n_columns,) what the description says.
        gravity: Groups that are searched in the gravity stage.
        inertia: Groups that are searched in the inertia stage.
        lumped: The inertia groups are all of the inertia, as in the paper; else a weight acts as inertia too.
    """

    robot: Robot
    terms: str
    chi: Array
    gravity: tuple[ParameterGroup, ...]
    inertia: tuple[ParameterGroup, ...]
    lumped: bool = False

    def weight(self, values: Array) -> Array:
        """Standard parameters for given values of the gravity groups, (n_columns,)."""
        return _with_values(self.chi, self.gravity, values)

    def motion(self, values: Array, weight: Array | None = None) -> Array:
        """Standard parameters for given values of the inertia groups, on top of a known weight."""
        return _with_values(self.chi if weight is None or self.lumped else weight, self.inertia, values)

    def true_values(
        self, groups: Sequence[ParameterGroup], values: str | Mapping[str, float] | None
    ) -> list[float | None]:
        """What a set of standard values says about groups."""
        chi = parameters(self.robot, self.terms, values)
        return [None if one.relation is None else float(one.relation @ chi) for one in groups]


def nominals(groups: Sequence[ParameterGroup]) -> Array:
    """Values that the description has, (n_groups,)."""
    return np.array([one.nominal for one in groups])


def _with_values(chi: Array, groups: Sequence[ParameterGroup], values: Array) -> Array:
    steps = [(value - one.nominal) * one.direction for one, value in zip(groups, values, strict=True)]
    return np.asarray(chi + np.sum(steps, axis=0)) if steps else chi


def swing_model(robot: Robot, values: str | Mapping[str, float] | None = None) -> SwingModel:
    """The base parameters of a robot as groups: those that gravity acts on, and the remaining ones.

    Args:
        robot: The robot.
        values: What is known before: a value set or a mapping; default the robot's own.
    """
    known = parameters(robot, "rigid,Ia", values)
    has_rotors = any(known[j] for j, column in enumerate(columns(robot, "rigid,Ia")) if column.term == "Ia")
    terms = "rigid,Ia" if has_rotors else "rigid"
    chi = parameters(robot, terms, values)
    if not np.any(chi):
        raise InputError(f"robot {robot.name} has no values to start from; give it parameters (in its file)")
    base = base_parameters(robot, terms)
    q, dq, ddq = random_states(robot, max(30, base.n))
    own = list(base.independent)
    W = np.ascontiguousarray(regressor(robot, q, 0.0 * dq, 0.0 * ddq, terms)).reshape(-1, len(base.columns))[:, own]
    sizes = np.linalg.norm(W, axis=0)
    present = [j for j in range(base.n) if sizes[j] > _NEW * max(sizes.max(), 1e-300)]
    kept = select_columns(W, present, _NEW)[0] if present else []
    gravity = []
    over = np.linalg.lstsq(W[:, kept], W, rcond=None)[0] if kept else np.zeros((0, base.n))
    for row, j in enumerate(kept):
        relation = np.where(np.abs(over[row]) > 1e-9, over[row], 0.0) @ base.K
        gravity.append(_base_group(base.names[j], base.units[j], chi, own[j], relation))
    inertia = []
    for j in (j for j in range(base.n) if j not in kept):
        less = {own[k]: -over[row, j] for row, k in enumerate(kept) if abs(over[row, j]) > 1e-9}
        inertia.append(_base_group(base.names[j], base.units[j], chi, own[j], base.K[j], less))
    return SwingModel(robot, terms, chi, tuple(gravity), tuple(inertia))


def _base_group(
    name: str, unit: str, chi: Array, column: int, relation: Array, less: Mapping[int, float] | None = None
) -> ParameterGroup:
    """A base parameter: it grows with its own column, and its value is what regrouping says.

    Args:
        name: As in reports.
        unit: Of its value.
        chi: What the description has.
        column: Its own.
        relation: Its value by standard parameters.
        less: Change of other columns that keeps the weight as it is.
    """
    direction = np.zeros(len(chi))
    direction[column] = 1.0
    for other, share in (less or {}).items():
        direction[other] = share
    return ParameterGroup(name, unit, float(relation @ chi), direction, relation)


@dataclass(frozen=True)
class PoseEquations:
    """The equations about a pose at the joints, linear in some parameters, which are the last axis.

    Attributes:
        pose: (n,) [rad or m].
        weight: (n, n_parameters) torque that holds it.
        stiffness: (n, n, n_parameters) how that changes with the position.
        mass: (n, n, n_parameters) mass matrix.
    """

    pose: Array
    weight: Array
    stiffness: Array
    mass: Array

    def mass_of(self, values: Array) -> Array:
        """Mass matrix of given parameters, (n, n)."""
        return np.tensordot(values, np.moveaxis(self.mass, -1, 0), 1)

    def stiffness_of(self, values: Array) -> Array:
        """Slope of the weight of given parameters, (n, n)."""
        return np.tensordot(values, np.moveaxis(self.stiffness, -1, 0), 1)


def equations_about(model: SwingModel, pose: Array) -> PoseEquations:
    """The equations of a robot about a pose, by standard parameter."""
    n = len(pose)
    rest, unit = np.zeros((1, n)), np.eye(n)
    shifted = np.concatenate([pose + _STEP * unit, pose - _STEP * unit, np.broadcast_to(pose, (n + 1, n))])
    pushed = np.concatenate([np.zeros((2 * n, n)), unit, rest])
    W = regressor(model.robot, shifted, np.zeros_like(shifted), pushed, model.terms)
    coupling = joint_torque(model.robot, unit)
    at_joints = np.einsum("sic,ij->sjc", W, coupling)
    weight = at_joints[-1]
    stiffness = np.moveaxis(at_joints[:n] - at_joints[n : 2 * n], 0, 1) / (2.0 * _STEP)
    mass = np.moveaxis(at_joints[2 * n : 3 * n] - weight, 0, 1)
    return PoseEquations(pose, weight, np.asarray(stiffness), np.asarray(mass))


# ----------------------------------------------------------------------------------------------------------------------
# Nonlinear least squares for a handful of numbers, of which the data may leave some open.

_OPEN = 1e-7  # singular value, over the largest, below which a direction is not determined
_EXACT = 1e-12  # the same for equations whose slopes are exact
_DONE = 1e-11


Solution = tuple[Array, Array, Mask, float]  # values, covariance, whether each is determined, misfit


@on_one_thread
def gauss_newton(residual: Callable[[Array], Array], start: Array, scale: Array, *, steps: int = 60) -> Solution:
    """Minimize the sum of squares of weighted residuals, with steps that shorten until they help.

    Args:
        residual: Weighted residuals (m,) of values (n,); not finite where the values are impossible.
        start: (n,) where to begin; possible.
        scale: (n,) typical size of each value.
        steps: At most so many.

    Returns:
        What fits best (n,), directions that the data leaves open stay at the start; covariance (n, n), as far as
        numbers are determined; whether each is (n,); and the misfit: root mean square of the weighted residual per
        degree of freedom, 1 where standard deviations were right and without a degree of freedom.

    Raises:
        SingularError: When the start is impossible.
    """
    x, rest = start.copy(), residual(start)
    if not np.isfinite(rest).all():
        raise SingularError("least squares: the values to start from are impossible")
    for _ in range(steps):
        J = _jacobian(residual, x, scale)
        move, cost = np.linalg.lstsq(J, -rest, rcond=_OPEN)[0], float(rest @ rest)
        share, better = 1.0, False
        while share > 1e-6 and not better:
            after = residual(x + share * scale * move)
            better = bool(np.isfinite(after).all()) and float(after @ after) < cost
            share = share if better else 0.5 * share
        if not better:
            break
        x, rest = x + share * scale * move, after
        if cost - float(rest @ rest) < _DONE * cost + 1e-18:
            break
    return _solution(x, rest, _jacobian(residual, x, scale), scale)


@on_one_thread
def linear_least_squares(A: Array, y: Array, start: Array, scale: Array) -> Solution:
    """Solve weighted equations ``A x = y``; directions that they leave open stay at the start; as `gauss_newton`.

    Args:
        A: (m, n), rows over their standard deviations.
        y: (m,), likewise.
        start: (n,).
        scale: (n,) typical size of each value.
    """
    x = start + scale * np.linalg.lstsq(A * scale, y - A @ start, rcond=_EXACT)[0]
    return _solution(x, A @ x - y, A * scale, scale, _EXACT)


def _solution(x: Array, rest: Array, J: Array, scale: Array, least: float = _OPEN) -> Solution:
    """Standard deviations: those of the residuals' weights, made larger where the residuals are."""
    _, s, Vt = np.linalg.svd(J, full_matrices=False)
    seen = s > least * max(float(s.max(initial=0.0)), 1e-300)
    freedom = len(rest) - int(seen.sum())
    misfit = float(np.sqrt(rest @ rest / freedom)) if freedom > 0 else 1.0
    spread = Vt[seen].T / s[seen] * scale[:, None] * max(1.0, misfit)
    covariance = spread @ spread.T
    known = (Vt[seen] ** 2).sum(axis=0) > 1.0 - 1e-6
    return x, covariance, known, misfit


def _jacobian(residual: Callable[[Array], Array], x: Array, scale: Array) -> Array:
    """Derivatives by values over their scale, (m, n)."""
    columns = []
    for i in range(len(x)):
        step = np.zeros(len(x))
        step[i] = 1e-6 * scale[i]
        columns.append((residual(x + step) - residual(x - step)) / 2e-6)
    J = np.stack(columns, axis=1)
    return np.asarray(np.where(np.isfinite(J), J, 0.0))
