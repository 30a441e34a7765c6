"""Friction in the words of simulators and controllers: torque at velocities, plain viscous and Coulomb coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from dynident.arrays import Array, finite_or_none
from dynident.display import brief
from dynident.dynamics.evaluate import joint_torque, regressor
from dynident.dynamics.linearization import TermCourse
from dynident.dynamics.terms import all_columns, along_terms, resolve_terms, state_terms
from dynident.dynamics.terms.friction import FrictionTerm
from dynident.dynamics.terms.term import MotionSamples, Term, all_places
from dynident.errors import InputError
from dynident.estimate.fit import Fit
from dynident.estimate.friction_parts import FRICTION, WINDING_RADII, FixedLoad, TorqueParts, only_friction
from dynident.estimate.friction_view import FrictionView
from dynident.estimate.thresholds import THRESHOLDS
from dynident.identifiability.base import BaseParameters
from dynident.information.parameter_estimate import ParameterEstimate, text_table
from dynident.logs.read import short_names

REMARK = (
    "coefficients of friction terms that overlap trade against each other, and none of them alone is the friction of "
    "the joint; these equivalents are of all of them together, and what simulators and controllers want"
)


_PLAIN = ("Fv", "Fc", "Fo")
_ROUNDING = 1e-9  # of a standard deviation


@dataclass(frozen=True)
class EquivalentFriction:
    """Plain friction that comes closest to what was identified: viscous v + coulomb sign(v) + offset.

    Attributes:
        joint: Name.
        viscous: [N·m·s/rad or N·s/m].
        coulomb: All that is constant in steady motion [N·m or N], at the median load of the training data.
        hysteresis: The part of it that builds up while a joint turns back (pre-sliding) [N·m or N].
        offset: [N·m or N].
        lost: RMS of what the plain form leaves of the friction, as a share of its RMS.
        fastest: Velocity up to which it holds [rad/s or m/s].
        unit: Of torque.
    """

    joint: str
    viscous: float | None
    coulomb: float | None
    hysteresis: float
    offset: float
    lost: float | None
    fastest: float
    unit: str


@brief
@dataclass(frozen=True)
class FrictionSummary:
    """Friction of a robot, joint by joint.

    Attributes:
        joints: One each.
        drift: Remarks on joints whose friction differs between logs by more than noise.
        remark: What the numbers are, and are not.
    """

    joints: tuple[EquivalentFriction, ...]
    drift: tuple[str, ...]
    remark: str = REMARK

    def rows(self) -> list[dict[str, Any]]:
        """Plain data, one mapping for each joint; what is not known is None."""
        return [dict(vars(one)) for one in self.joints]

    def table(self) -> str:
        """The joints as text."""
        head = ("joint", "viscous", "Coulomb", "hysteresis", "offset", "lost", "up to", "unit of torque")
        lines = [
            (
                *(one.joint, _number_text(one.viscous), _number_text(one.coulomb), _number_text(one.hysteresis)),
                _number_text(one.offset),
                *("" if one.lost is None else f"{100.0 * one.lost:.2g} %", f"{one.fastest:.3g}", one.unit),
            )
            for one in self.joints
        ]
        return text_table(head, lines, head[1:7])


def _number_text(value: float | None) -> str:
    return "not known" if value is None else f"{value:.4g}"


def friction_summary(fit: Fit) -> FrictionSummary:
    """Equivalent plain friction of each joint, over the velocities that occurred.

    The identified friction of a joint in steady motion, all terms together at the median load, is projected by least
    squares onto Fv v + Fc sign(v) + Fo, at the velocities of the training data. Where it has no other terms than these
    three, they are taken as they are.

    Raises:
        InputError: For a fit without friction, or stored before fits kept what this needs.
    """
    view, robot, found = _view(fit), fit.robot, []
    plain, load = _plain_parameters(fit), _median_load(view.points)
    for joint, own in enumerate(robot.moving_joints):
        velocities = view.points[0, joint]
        velocities = velocities[np.isfinite(velocities)]
        viscous, coulomb, offset, lost = (
            (*plain[own.number], 0.0)
            if own.number in plain
            else _plain(velocities, view.velocity[joint], view.curve[joint], float(view.offset[joint]))
        )
        hysteresis = _hysteresis(fit, joint, load)
        fastest = float(np.abs(velocities).max(initial=0.0))
        found.append(EquivalentFriction(own.name, viscous, coulomb, hysteresis, offset, lost, fastest, own.torque_unit))
    return FrictionSummary(tuple(found), drift_notes(fit))


def _plain_parameters(fit: Fit) -> dict[int, tuple[float, float, float]]:
    """Fv, Fc and Fo by number of the joint, of a model without other friction; without joints that motors couple."""
    robot, base, found = fit.robot, fit.predictive_base, {}
    if any(term.name in FRICTION and term.name not in _PLAIN for term in base.terms):
        return {}
    known = fit.predictive.determined & (np.array(base.expressions) == np.array(base.names))
    values = {name: x for name, x, own in zip(base.names, fit.predictive.values.tolist(), known, strict=True) if own}
    coupled = robot.moving_coupling != np.eye(len(robot.moving_joints))
    for joint, shared in zip(robot.moving_joints, coupled.any(axis=0) | coupled.any(axis=1), strict=True):
        names = [f"{symbol}{joint.number}" for symbol in _PLAIN]
        if not shared and all(name in values for name in names):
            viscous, coulomb, offset = (values[name] for name in names)
            found[joint.number] = viscous, coulomb, offset
    return found


def _hysteresis(fit: Fit, joint: int, load: Array) -> float:
    """Torque of all springs of a joint's friction while they slip [N·m or N]."""
    base = fit.predictive_base
    springs = [term for term in base.terms if isinstance(term, FrictionTerm) and term.law.remembers]
    if not springs:
        return 0.0
    (torque,), (std,) = steady_friction(fit.predictive, base, joint, np.ones(1), load, springs)
    return 0.0 if abs(torque) <= _ROUNDING * std else float(torque)  # springs of both signs may cancel


def _plain(
    velocities: Array, grid: Array, curve: Array, offset: float
) -> tuple[float | None, float | None, float, float | None]:
    """Viscous, Coulomb, offset with that of the curve, and the share of the curve that they do not describe."""
    if len(np.unique(np.abs(velocities))) < 3:
        return None, None, offset, None
    torque = np.interp(velocities, grid, curve)
    columns = np.stack([velocities, np.sign(velocities), np.ones(len(velocities))], axis=1)
    found = np.linalg.lstsq(columns, torque, rcond=1e-9)[0]
    left = float(np.linalg.norm(torque - columns @ found) / max(float(np.linalg.norm(torque)), 1e-300))
    viscous, coulomb, beside = (float(x) for x in found)
    return viscous, coulomb, offset + beside, left


# ----------------------------------------------------------------------------------------------------------------------
# Friction as torque at velocities: what overlapping columns have in common, whatever each of them says.


@dataclass(frozen=True)
class FrictionTorque:
    """Friction of a joint in steady motion at the median load, half the difference between both directions.

    Attributes:
        joint: Name.
        velocity: [rad/s or m/s].
        unit: Of torque.
        predictive: Of the model that predicts [N·m or N].
        predictive_std: Its standard deviation.
        parameters: Of the parameters in `Fit.estimate`.
        parameters_std: Its standard deviation; infinite where the data does not determine them.
    """

    joint: str
    velocity: float
    unit: str
    predictive: float
    predictive_std: float
    parameters: float
    parameters_std: float

    @property
    def name(self) -> str:
        """What it is, in words."""
        return f"friction of {self.joint} at {self.velocity:.2g} {'m' if self.unit == 'N' else 'rad'}/s"

    def as_dict(self) -> dict[str, Any]:
        """Plain data; what is not known is None."""
        return {k: finite_or_none(x) if isinstance(x, float) else x for k, x in vars(self).items()}


def friction_torques(fit: Fit) -> tuple[FrictionTorque, ...]:
    """Friction of each joint at the median and at the highest velocity of the training, by both answers of a fit.

    Raises:
        InputError: For a fit without friction, or stored before fits kept what this needs.
    """
    view, answers = _view(fit), (fit.predictive, fit.estimate)
    known = _KNOWN.get(view)
    if known is None or known[0] != answers:
        known = _KNOWN[view] = answers, _friction_torques(fit)
    return known[1]


# What notes, report and terminal of a fit all ask for; estimates and views are compared by identity.
_KNOWN: WeakKeyDictionary[
    FrictionView, tuple[tuple[ParameterEstimate, ParameterEstimate], tuple[FrictionTorque, ...]]
] = WeakKeyDictionary()


def _friction_torques(fit: Fit) -> tuple[FrictionTorque, ...]:
    points, found = _view(fit).points, []
    load = _median_load(points)
    answers = ((fit.predictive, fit.predictive_base), (fit.estimate, fit.base))
    for joint, own in enumerate(fit.robot.moving_joints):
        measured = np.abs(_finite_values(points[0, joint]))
        velocities = np.unique([np.median(measured), measured.max()])
        velocities = velocities[velocities > 0.0]
        if not len(velocities):
            continue
        torque, std = np.array([steady_friction(*answer, joint, velocities, load) for answer in answers]).swapaxes(0, 1)
        for k, v in enumerate(velocities.tolist()):
            numbers = torque[0, k], std[0, k], torque[1, k], std[1, k]
            found.append(FrictionTorque(own.name, v, own.torque_unit, *map(float, numbers)))
    return tuple(found)


def steady_friction(
    estimate: ParameterEstimate,
    base: BaseParameters,
    joint: int,
    velocities: Array,
    load: Array,
    terms: Sequence[Term] | None = None,
) -> tuple[Array, Array]:
    """Friction of a joint in steady motion, all springs slipping, the others at rest: w beta and sqrt(w C w').

    The rows w are half the difference between both directions, so offsets cancel.

    Args:
        estimate: Values and covariance.
        base: Its base parameters; only columns of friction count.
        joint: Number of the joint.
        velocities: (m,) positive [rad/s or m/s].
        load: (n_rows,) torque of the links.
        terms: Those of the friction that count; default all.

    Returns:
        Torque at the joint and its standard deviation, (m,) each [N·m or N].
    """
    robot, m = base.robot, len(velocities)
    still = np.zeros((2 * (m + 1), len(robot.joint_names)))
    own = [term for term in base.terms if term.name in FRICTION] if terms is None else list(terms)
    of_state, along = state_terms(own), along_terms(own)
    radii = [x for term in own if isinstance(term, FrictionTerm) and term.law.remembers for x in term.scales]
    far = WINDING_RADII * max(radii, default=0.0) * robot.moving_joints[joint].radian
    sums = joint_torque(robot, np.eye(len(robot.joint_names))).T[joint]  # (n_outputs,)
    names = [column.name for column in all_columns(robot, (*of_state, *along))]
    n_state, places = len(all_columns(robot, of_state)), all_places(robot, along)
    q, dq = still.copy(), still.copy()
    for first, sign in ((0, -1.0), (m + 1, 1.0)):  # the first sample of each lies far behind: springs wind up
        q[first, joint], dq[first + 1 : first + 1 + m, joint] = -sign * far, sign * velocities
    lines = np.zeros((len(names), len(still)))
    if of_state:
        lines[:n_state] = np.tensordot(sums, regressor(robot, still, dq, still, of_state), (0, 1)).T
    course = TermCourse(robot, along, FixedLoad(robot, load))
    followed = course.columns_first(MotionSamples.of_stretch(q, dq, still)) if along else ()
    for (output, column), line in zip(places, followed, strict=True):
        lines[n_state + column] += sums[output] * line
    columns = 0.5 * (lines[:, m + 2 :] - lines[:, 1 : m + 1]).T
    place = {base.columns[j].name: i for i, j in enumerate(base.independent)}  # what was regrouped is zero
    W = np.zeros((len(velocities), base.n))
    for k, name in enumerate(names):
        if name in place:
            W[:, place[name]] = columns[:, k]
    std = np.sqrt(np.maximum(np.einsum("ni,ij,nj->n", W, estimate.covariance, W), 0.0))
    return W @ estimate.values, np.where(W[:, ~estimate.determined].any(1), np.inf, std)


def _view(fit: Fit) -> FrictionView:
    if fit.friction_view is None:
        raise InputError("this fit keeps no view of its friction; identify again, with friction among the terms")
    return fit.friction_view


def _median_load(points: Array) -> Array:
    """(n_joints,) typical torque of the links, from the points of a friction view."""
    return np.array([np.median(np.abs(_finite_values(own))) for own in points[4]])


def _finite_values(values: Array) -> Array:
    known = values[np.isfinite(values)]
    return known if len(known) else np.zeros(1)


# ----------------------------------------------------------------------------------------------------------------------
# Friction that differs between logs.


def drift_notes(fit: Fit) -> tuple[str, ...]:
    """A sentence for each joint whose friction differs between training logs by more than noise."""
    view = fit.friction_view
    if view is None or len(view.logs) < 2:
        return ()
    notes = []
    short = short_names([*fit.data, *fit.held_out])
    logs = [short.get(label, label) for label in view.logs]
    for joint, name in enumerate(fit.robot.joint_names):
        level, std = view.level[:, joint], view.level_std[:, joint]
        if disagree(level, std):
            known = np.flatnonzero(np.isfinite(level))
            low, high = known[np.argmin(level[known])], known[np.argmax(level[known])]
            notes.append(
                f"{name}: friction differs between logs by more than noise, from {100.0 * level[low]:.0f} % of the "
                f"model's ({logs[low]}) to {100.0 * level[high]:.0f} % ({logs[high]})"
            )
    return tuple(notes)


def disagree(values: Array, std: Array) -> bool:
    """Whether values differ by more than their standard deviations explain, and by enough to matter."""
    usable = np.isfinite(values) & np.isfinite(std) & (std > 0.0)
    own, weight = values[usable], 1.0 / std[usable] ** 2
    d = len(own) - 1
    if d < 1 or np.ptp(own) < THRESHOLDS.friction_drift:
        return False
    mean = float(weight @ own / weight.sum())
    # The quantile of chi square by Wilson & Hilferty 1931.
    bound = d * (1.0 - 2.0 / (9.0 * d) + THRESHOLDS.friction_drift_std * np.sqrt(2.0 / (9.0 * d))) ** 3
    return bool(weight @ (own - mean) ** 2 > bound)


# ----------------------------------------------------------------------------------------------------------------------
# Plain friction of robots whose motors turn with several joints: viscous and Coulomb coefficients of every element.
#
# `friction_summary` looks at one joint after the other. Where elements act along several joints, what belongs to which
# of them shows only when all joints move.

N_STATES = 600
_MIN_SLIPPING_VELOCITY = 0.01  # [rad/s or m/s] faster than this, all springs slip


def plain_elements(fit: Fit, seed: int = 0) -> tuple[dict[str, float], float]:
    """Viscous and Coulomb coefficients, none negative, nearest to all friction of a fit in steady motion.

    Velocities of the joints are drawn from the training data, each by itself; friction that grows with load is taken at
    the median load.

    Args:
        fit: The estimate.
        seed: Of the draws.

    Returns:
        Values by name (Fv1, .., Fcm6), and the RMS of what they leave as a share of that of the friction.

    Raises:
        InputError: For a fit that keeps no view of its friction.
    """
    from scipy.optimize import nnls  # takes a while to load

    robot, points = fit.robot, _view(fit).points
    rng = np.random.default_rng(seed)
    dq = np.stack([rng.choice(_finite_values(own), N_STATES) for own in points[0]], axis=1)  # (N_STATES, n_joints)
    torque = _steady_friction(fit, dq, _median_load(points))
    terms = resolve_terms("Fv,Fc")
    still = np.zeros_like(dq)
    rows = regressor(robot, still, dq, still, terms)  # (N_STATES, n_rows, n_columns)
    columns = joint_torque(robot, np.eye(dq.shape[1])).T @ rows
    # Every joint counts alike, or the small ones would be left to chance.
    size = np.maximum(np.sqrt(np.mean(torque**2, axis=0)), 1e-12)
    A = (columns / size[:, None]).reshape(-1, columns.shape[2])
    y = (torque / size).ravel()
    found, left = nnls(A, y)
    names = [column.name for column in all_columns(robot, terms)]
    return dict(zip(names, found.tolist(), strict=True)), float(left / max(float(np.linalg.norm(y)), 1e-300))


def _steady_friction(fit: Fit, dq: Array, load: Array) -> Array:
    """Friction at the joints with all springs slipping, (n_samples, n_joints)."""
    own = only_friction(fit.model)
    radii = [x for term in own.terms if isinstance(term, FrictionTerm) and term.law.remembers for x in term.scales]
    n, n_joints = dq.shape
    # Every state comes right behind one that lies so far back that springs are wound up on the way.
    q, velocity = np.zeros((2 * n, n_joints)), np.zeros((2 * n, n_joints))
    q[0::2], velocity[1::2] = -dq * 2.0 * max(radii, default=0.0) / _MIN_SLIPPING_VELOCITY, dq
    still = np.zeros_like(q)
    samples = MotionSamples.of_stretch(q, velocity, still)
    return np.asarray(TorqueParts(own, FixedLoad(fit.robot, load)).of_groups(samples, still).sum(0)[1::2])
