"""The Fourier fit of torque against angle (Abhishek et al., eq. 22).

.. math:: \tau = a_0 + \\sum_n a_n \\sin n\varphi + b_n \\cos n\varphi

For one revolute joint of rigid links with the others held it ends at n = 1, and gravity has no part in a0.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.arrays import Array, on_one_thread, record
from dynident.experiments.gravity.slow_runs import SlowRun
from dynident.experiments.gravity.structure import GravityBase, SweepStage, gravity_columns
from dynident.experiments.thresholds import GRAVITY
from dynident.information.parameter_estimate import ParameterEstimate
from dynident.robot.model import Robot

HIGHEST = 3  # order up to which harmonics are reported
_EXACT = 1e-12  # share of the torque below which a residual is rounding
_CHANGES = 0.2  # share of the velocity by which it must change from place to place to tell viscous friction
_ROUNDS = 4  # of taking it off
_SMOOTH = 5  # degree of the polynomial along the angle that an oscillation's acceleration is instrumented by


@record
class FourierFit:
    """A fit of one run.

    Attributes:
        run: What was fitted.
        order: Highest harmonic; 0 for a joint that slides.
        names: a0, a1, b1, a2 ..; and `inertia`, `inertia2` .. unless the velocity is constant to rounding.
        coefficients: (n,) [N·m or N; kg·m² or kg].
        covariance: (n, n), with neighboring residuals taken as alike as they are.
        project: (n, n_places) what makes coefficients from averages over both ways; for model columns too.
        rms: Residual of the averaged torque [N·m or N].
        condition: Of the fitted functions over the angles covered.
        orders: Fits of every order that was tried.
    """

    run: SlowRun
    order: int
    names: tuple[str, ...]
    coefficients: Array
    covariance: Array
    project: Array
    rms: float
    condition: float
    orders: tuple[FourierFit, ...] = ()

    @functools.cached_property
    def friction(self) -> SlowFriction:
        """What the averages took away."""
        return slow_friction(self)

    @property
    def std(self) -> Array:
        """(n,) standard deviations of the coefficients."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def weighing(self) -> tuple[int, ...]:
        """Places of the coefficients that hold weight: all harmonics; of a joint that slides, the constant."""
        if self.order == 0:
            return (0,)
        return tuple(range(1, 1 + 2 * self.order))

    def harmonic(self, n: int) -> tuple[float, float, float]:
        """Amplitude of the n-th harmonic, its standard deviation, and the angle at which it is largest [rad]."""
        i = self.names.index(f"a{n}")
        a, b = self.coefficients[i : i + 2]
        size = math.hypot(a, b)
        way = np.array([a, b]) / size if size > 0.0 else np.array([1.0, 0.0])
        std = math.sqrt(max(float(way @ self.covariance[i : i + 2, i : i + 2] @ way), 0.0))
        return size, std, math.atan2(a, b) / n

    def torque(self, angle: Array) -> Array:
        """The fit at angles (n,), without inertia [N·m or N]."""
        basis = harmonics(angle, self.order)
        return np.asarray(basis @ self.coefficients[: basis.shape[1]])

    def as_dict(self, robot: Robot) -> dict[str, Any]:
        """Plain data; angles in radians."""
        run = self.run
        held = dict(zip(robot.position_names, run.pose.tolist(), strict=True))
        held.pop(robot.position_names[run.joint])
        harmonics = []
        for one in self.orders if self.order else ():
            size, std, _ = one.harmonic(one.order)
            harmonics.append({"order": one.order, "amplitude": size, "std": std, "rms": one.rms})
        found: dict[str, Any] = {
            "joint": robot.joint_names[run.joint],
            "run": run.label,
            "held": held,
            "range": list(run.range),
            "velocity": 0.5 * sum(run.velocities),
            "order": self.order,
            "coefficients": dict(zip(self.names, self.coefficients.tolist(), strict=True)),
            "std": dict(zip(self.names, self.std.tolist(), strict=True)),
            "rms": self.rms,
            "condition": self.condition,
            "harmonics": harmonics,
            "friction": self.friction.as_dict(),
            "sticking": run.sticking,
        }
        if self.order:
            size, std, peak = self.harmonic(1)
            found |= {"amplitude": size, "amplitude_std": std, "largest_at": peak}
        return found


def harmonics(angle: Array, order: int) -> Array:
    """The functions 1, sin φ, cos φ, sin 2φ .. at angles (n,), (n, 1 + 2 order)."""
    parts = [np.ones_like(angle)]
    for n in range(1, order + 1):
        parts += [np.sin(n * angle), np.cos(n * angle)]
    return np.column_stack(parts)


@on_one_thread
def fourier_fit(run: SlowRun, order: int, inertial: Array | None = None) -> FourierFit:
    """Fit the averages of a run over both ways.

    Inertia is always fitted along: only where its torque is small against the noise could it be left out, and nobody
    knows it beforehand. At a nearly constant velocity that costs nothing; in an oscillation its torque goes with the
    angle and looks much like a sine, and the standard deviations say so.

    Args:
        run: The run.
        order: Highest harmonic; 0 for a joint that slides.
        inertial: (n_samples, k) torques of which that of inertia is a sum; default the joint's acceleration, which is
            all there is where the joint's own inertia does not change with its position.
    """
    functions = harmonics(run.angle, order)
    names = ["a0", *(f"{part}{n}" for n in range(1, order + 1) for part in "ab")]
    condition = float(np.linalg.cond(run.half_sum(functions)))
    if run.accelerates:
        pushed = run.acceleration[:, None] if inertial is None else inertial
        functions = np.column_stack([functions, pushed])
        names += [f"inertia{k or ''}" for k in (0, *range(2, pushed.shape[1] + 1))]
    averaged, root = run.half_sum(functions), np.sqrt(run.weights)
    project = _projection(run, averaged * root[:, None], 1 + 2 * order) * root
    torque = _even_torque(run, functions, project)
    coefficients = project @ torque
    rest = root * (torque - averaged @ coefficients)
    freedom = max(len(rest) - len(coefficients), 1)
    floor = (_EXACT * np.abs(torque).max(initial=1e-300) * root.mean()) ** 2
    variance = max(float(rest @ rest) / freedom, floor) * alike(rest)
    scaled = project / root
    return FourierFit(
        run=run,
        order=order,
        names=tuple(names),
        coefficients=coefficients,
        covariance=variance * scaled @ scaled.T,
        project=project,
        rms=float(np.sqrt(np.mean((torque - averaged @ coefficients) ** 2))),
        condition=condition,
    )


def _projection(run: SlowRun, rows: Array, exact: int) -> Array:
    """(n, n_places) what makes coefficients from weighted averages.

    Accelerations come from noisy positions; by least squares their noise would draw inertia towards zero, and weight
    that looks like it would take over. So an oscillation's is instrumented by its smooth part along the angle, in which
    hardly any of that noise is left. The first `exact` columns are functions of the angle and need no instrument.
    """
    if not run.oscillates or rows.shape[1] == exact:
        return np.asarray(np.linalg.pinv(rows), dtype=np.float64)
    root = np.sqrt(run.weights)
    along = np.interp(run.angles, run.range, (-1.0, 1.0))
    smooth = np.polynomial.legendre.legvander(along, _SMOOTH) * root[:, None]
    instruments = rows.copy()
    instruments[:, exact:] = smooth @ (np.linalg.pinv(smooth) @ rows[:, exact:])
    return np.asarray(np.linalg.pinv(instruments.T @ rows) @ instruments.T, dtype=np.float64)


def _even_torque(run: SlowRun, functions: Array, project: Array) -> Array:
    """(n_places,) half the sum of torque over both ways, without what viscous friction leaves in it.

    Samples of both ways lie at slightly different angles of a place, and an oscillation has other velocities there. The
    half difference tells viscous friction where the velocity changes from place to place; elsewhere it is not needed.
    """
    torque, across = run.half_sum(run.tau), run.half_difference(run.velocity)
    if np.ptp(across) < _CHANGES * np.abs(across).max():
        return torque
    left, found = run.half_sum(run.velocity), torque
    slope = np.linalg.pinv(np.column_stack([across, np.ones_like(across)]))[0]
    for _ in range(_ROUNDS):  # each is a thousand times nearer
        found = torque - left * float(slope @ run.half_difference(run.tau - functions @ (project @ found)))
    return found


def alike(residual: Array) -> float:
    """How many neighboring residuals weigh as much as one that is independent, 1 + 2 sum of autocorrelations."""
    energy = float(residual @ residual)
    total = 1.0
    for lag in range(1, len(residual) // 4):
        share = float(residual[lag:] @ residual[:-lag]) / energy if energy > 0.0 else 0.0
        if share < 0.05:
            break
        total += 2.0 * share
    return total


def fits(run: SlowRun, highest: int = HIGHEST, inertial: Array | None = None) -> tuple[FourierFit, ...]:
    """Fits of order 1, 2 .. as far as the range of angles lets them be distinguished; see `fourier_fit`."""
    found = [fourier_fit(run, 1, inertial)]
    for order in range(2, highest + 1):
        if run.n_places < 2 * (2 * order + 2):
            break
        next_one = fourier_fit(run, order, inertial)
        if next_one.condition > GRAVITY.highest_condition:
            break
        found.append(next_one)
    return tuple(found)


def best(found: Sequence[FourierFit]) -> FourierFit:
    """The lowest order whose residual no higher one improves clearly."""
    chosen = found[0]
    for one in found[1:]:
        size, std, _ = one.harmonic(one.order)
        if one.rms < (1.0 - GRAVITY.order_gain) * chosen.rms and size > GRAVITY.order_std * std:
            chosen = one
    return chosen


# ----------------------------------------------------------------------------------------------------------------------
# From Fourier coefficients to moments, link by link from the tip (Abhishek et al., eq. 21).

_FLOOR = 1e-12  # share of the largest coefficient that is rounding


@on_one_thread
def solve_moments(
    base: GravityBase, parts: Sequence[SweepStage], found: Sequence[Sequence[FourierFit]]
) -> ParameterEstimate:
    """The recursion: what a stage adds, with the links beyond it as the stages before have found them.

    Args:
        base: What gravity shows.
        parts: The stages.
        found: The fits of each.
    """
    n = base.n
    values, covariance, determined = np.zeros(n), np.zeros((n, n)), np.zeros(n, dtype=bool)
    known: list[int] = []
    for stage, fits in zip(parts, found, strict=True):
        fresh = list(stage.fresh)
        if not fresh:
            continue
        rows, weight, noise = _weight_rows(base, fits)
        root = _whitening(noise)
        u, s, vt = np.linalg.svd(root @ rows[:, fresh], full_matrices=False)
        plain = np.linalg.svd(rows[:, fresh], compute_uv=False)
        sure = plain > GRAVITY.undetermined_share * float(np.linalg.norm(base.robot.gravity))
        keep = np.arange(len(s)) < np.count_nonzero(sure)
        solved = (vt[keep].T / s[keep]) @ u[:, keep].T @ root  # fresh = solved @ (weight - rows[:, known] @ values)
        values[fresh] = solved @ (weight - rows[:, known] @ values[known])
        spread = solved @ rows[:, known]
        covariance[np.ix_(fresh, known)] = -spread @ covariance[np.ix_(known, known)]
        covariance[np.ix_(known, fresh)] = covariance[np.ix_(fresh, known)].T
        covariance[np.ix_(fresh, fresh)] = (
            solved @ noise @ solved.T + spread @ covariance[np.ix_(known, known)] @ spread.T
        )
        lost = np.sqrt(np.maximum(1.0 - np.sum(vt[keep] ** 2, axis=0), 0.0))
        # What leans on a moment beyond that nobody determined is not determined either.
        open_beyond = [i for i, k in enumerate(known) if not determined[k]]
        leaning = np.abs(spread[:, open_beyond]).max(axis=1, initial=0.0) > GRAVITY.undetermined_share
        determined[fresh] = (lost < 1e-6) & ~leaning
        known += fresh
    return ParameterEstimate.of(base, values, covariance, determined)


def _whitening(noise: Array) -> Array:
    """R with R noise Rᵀ = 1; coefficients that lean on each other almost fully are no obstacle."""
    std = np.sqrt(np.diag(noise))
    alike = noise / np.outer(std, std)
    return np.asarray(np.linalg.inv(np.linalg.cholesky(alike + _FLOOR * np.eye(len(std)))) / std)


def _weight_rows(base: GravityBase, fits: Sequence[FourierFit]) -> tuple[Array, Array, Array]:
    """What the coefficients are of the gravity base (n_rows, n), their values without what is known, their noise."""
    rows, weight, noise = [], [], []
    for fit in fits:
        torque = gravity_columns(base.robot, fit.run.q)[:, fit.run.joint]
        made = fit.project @ fit.run.half_sum(torque)  # (n_coefficients, n_columns)
        sizes = np.linalg.norm(made, axis=1)
        # A harmonic that rigid links do not have was fitted to keep it out; it says nothing about them.
        own = [i for i in fit.weighing if sizes[i] > GRAVITY.absent_share * sizes[list(fit.weighing)].max()]
        made = made[own]
        rows.append(made[:, list(base.independent)])
        weight.append(fit.coefficients[own] - made @ base.fixed)
        noise.append(fit.covariance[np.ix_(own, own)])
    total = np.zeros((len(np.concatenate(weight)),) * 2)
    start = 0
    for block in noise:
        total[start : start + len(block), start : start + len(block)] = block
        start += len(block)
    scale = max(float(np.abs(np.concatenate(weight)).max()), 1e-9)
    return np.concatenate(rows), np.concatenate(weight), total + (_FLOOR * scale) ** 2 * np.eye(len(total))


# ----------------------------------------------------------------------------------------------------------------------
# What the averages took away: friction of a slow run, and how it depends on the load.


@dataclass(frozen=True)
class SlowFriction:
    """Half the difference of both ways.

    Attributes:
        level: Its mean over the places [N·m or N].
        slope: Friction per weight on the joint, F = F0 + slope |weight|.
        slope_std: Standard deviation of the slope; infinite where the weight hardly changes.
        change: How much of the friction the slope makes over the weights seen [N·m or N].
    """

    level: float
    slope: float
    slope_std: float
    change: float

    @property
    def loaded(self) -> bool:
        """Whether friction depends on the load."""
        return abs(self.slope) > GRAVITY.friction_slope_std * self.slope_std and abs(
            self.change
        ) > GRAVITY.friction_change_share * abs(self.level)

    @property
    def left(self) -> float:
        """What averages may keep of it when it follows the motor's torque instead of the weight [N·m or N].

        With F = F0 + k |tau|, half the sum of both ways is g + k F where the weight outweighs friction.
        """
        return abs(self.slope * self.level) if self.loaded else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        std = self.slope_std if math.isfinite(self.slope_std) else None
        return {"level": self.level, "per_load": self.slope, "per_load_std": std, "depends_on_load": self.loaded}


def frictions(fit: FourierFit) -> Array:
    """(n_places,) half the difference of both ways, of what the fit leaves [N·m or N]: angles may differ a little."""
    run = fit.run
    return run.half_difference(run.tau - fit.torque(run.angle))


@on_one_thread
def slow_friction(fit: FourierFit) -> SlowFriction:
    """Friction of the run behind a fit."""
    run = fit.run
    friction = frictions(fit)
    level = float(friction.mean())
    weight = fit.torque(run.angles)
    if fit.order:
        weight = weight - fit.coefficients[0]  # the offset is no load
    size = np.abs(weight)
    if np.ptp(size) < 1e-9 * max(float(size.max()), 1.0):
        return SlowFriction(level, 0.0, math.inf, 0.0)
    A = np.column_stack([np.ones_like(size), size])
    project = np.linalg.pinv(A)
    found = project @ friction
    rest = friction - A @ found
    variance = float(rest @ rest) / max(len(rest) - 2, 1) * alike(rest)
    std = math.sqrt(variance * float(project[1] @ project[1]))
    return SlowFriction(level, float(found[1]), std, float(found[1] * np.ptp(size)))
