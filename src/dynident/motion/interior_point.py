r"""A feasible interior-point method: minimise f(x) while c(x) > 0, and c(x) > 0 at every step on the way.

The barrier problem :math:`f - \mu \sum \log c_i` is followed as :math:`\mu` falls. Steps are Newton's for the primal
and dual variables with a damped BFGS estimate of the Lagrangian's curvature; the constraints' own part,
:math:`J' \operatorname{diag}(\lambda / c) J`, is exact, which is what makes thousands of limits cheap. Every iterate
is a motion that respects its limits, so whoever stops the search has one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dynident.arrays import Array

_BOUNDARY = 0.99  # share of the way to a limit that one step may go
_TINY_STEP = 1e-8
_LEAST = 0.005  # share of its slack that a limit keeps in one step
_BENDS = 2  # corrections tried in one search
_DAMPING = 0.1
_PATIENCE = 12  # steps after which the barrier falls whether or not its problem is solved


class Slopes(Protocol):
    """Derivative J of the constraints at a point."""

    def times(self, dx: Array) -> Array:
        """J dx."""

    def pull(self, v: Array) -> Array:
        """J' v."""

    def gram(self, d: Array) -> Array:
        """J' diag(d) J."""


class Problem(Protocol):
    """What the method needs to know."""

    def value(self, x: Array) -> float:
        """f(x)."""

    def gradient(self) -> Array:
        """Derivative of f where `value` was last called."""

    def slack(self, x: Array) -> Array:
        """c(x), positive where the limits are respected."""

    def slopes(self) -> Slopes:
        """J where `slack` was last called."""


@dataclass
class Outcome:
    """Where the search ended.

    Attributes:
        x: The point, feasible.
        value: f there.
        barrier: Last barrier parameter.
        iterations: Steps taken.
        settled: Whether it converged.
    """

    x: Array
    value: float
    barrier: float
    iterations: int
    settled: bool


Report = Callable[[Array, float], None]


def minimise(
    problem: Problem,
    x: Array,
    *,
    barrier: float = 1.0,
    last_barrier: float = 1e-4,
    iterations: int = 200,
    tolerance: float = 1e-4,
    report: Report | None = None,
) -> Outcome:
    """Minimise from a strictly feasible point.

    Args:
        problem: The problem.
        x: Where to begin, c(x) > 0.
        barrier: First barrier parameter.
        last_barrier: The last one; f ends above its minimum by about this times the number of active limits.
        iterations: Most steps.
        tolerance: Improvement of f per step, over the last ten, below which the search has settled.
        report: Called with x and f after every step.
    """
    f, c = problem.value(x), problem.slack(x)
    g, J = problem.gradient(), problem.slopes()
    push = J.pull(1.0 / c)  # of the barrier, per unit of its parameter
    H = _first_curvature(g)
    mu, duals = barrier, barrier / c
    history = [f]
    settled = False
    step_number = 0
    for step_number in range(1, iterations + 1):
        newton = _Solver(H + J.gram(duals / c))
        dx = newton(mu * push - g)
        change = J.times(dx)
        duals_step = mu / c - duals - duals * change / c
        bend = _Bend(newton, J, duals / c)
        s, f_new, c_new = _search(problem, x, dx, change, (f, c, float(g @ dx)), mu, bend)
        if s is None:
            if mu <= last_barrier:
                settled = True
                break
            mu, H = max(0.25 * mu, last_barrier), _first_curvature(g)
            duals = mu / c
            continue
        duals = np.clip(duals + _dual_length(duals, duals_step) * duals_step, 1e-3 * mu / c_new, 1e3 * mu / c_new)
        old = g - J.pull(duals)
        x, f, c = x + s, f_new, c_new
        g, J = problem.gradient(), problem.slopes()
        H = _updated(H, s, g - J.pull(duals) - old)
        history.append(f)
        if report is not None:
            report(x, f)
        push = J.pull(1.0 / c)
        remaining = float(np.abs(g - mu * push).max())
        if mu > last_barrier and (remaining < 30.0 * mu or step_number % _PATIENCE == 0):
            # What was learnt about the curvature belongs to the old barrier: going on with it ends too early.
            mu, H = max(0.25 * mu, last_barrier), _first_curvature(g)
        elif mu <= last_barrier and len(history) > 10 and (history[-11] - history[-1]) < 10.0 * tolerance:
            settled = True
            break
    return Outcome(x, f, mu, step_number, settled)


def _first_curvature(g: Array) -> Array:
    """A curvature to begin with: weak, because long steps are cut by the limits and short ones are never mended."""
    return np.eye(len(g)) * max(0.01 * float(np.linalg.norm(g)), 1e-6)


class _Solver:
    """Solves with a matrix that is positive definite up to rounding, which a little weight on the diagonal mends."""

    def __init__(self, matrix: Array) -> None:
        self._scale = 1.0 / np.sqrt(np.diag(matrix))
        scaled = matrix * self._scale * self._scale[:, None]
        ridge = 0.0
        while True:
            try:
                self._lower = np.linalg.cholesky(scaled + ridge * np.eye(len(matrix)))
                break
            except np.linalg.LinAlgError:
                ridge = max(10.0 * ridge, 1e-12)

    def __call__(self, right: Array) -> Array:
        half = np.linalg.solve(self._lower, self._scale * right)
        return np.asarray(self._scale * np.linalg.solve(self._lower.T, half))


@dataclass
class _Bend:
    """Bends a step along limits that are curved, so that it does not have to be cut short (second-order correction)."""

    solve: _Solver
    J: Slopes
    weights: Array

    def __call__(self, missing: Array) -> Array:
        """What to add to a step after which the slacks are less by `missing` than their derivative foretold."""
        return self.solve(self.J.pull(self.weights * missing))


def _search(
    problem: Problem, x: Array, dx: Array, change: Array, here: tuple[float, Array, float], mu: float, bend: _Bend
) -> tuple[Array | None, float, Array]:
    """A step along dx that stays inside and lowers the barrier function; None when there is none."""
    f, c, slope = here
    closing = change < 0.0
    step = float(np.min(-_BOUNDARY * c[closing] / change[closing], initial=1.0))
    slope = slope - mu * float(np.sum(change / c))
    merit = f - mu * float(np.sum(np.log(c)))
    bends = _BENDS
    while step > _TINY_STEP:
        s = step * dx
        c_new = problem.slack(x + s)
        if bends and not (c_new > _LEAST * c).all():
            bends -= 1
            s = s + bend(np.maximum(c + step * change - c_new, 0.0))
            c_new = problem.slack(x + s)
        if (c_new > _LEAST * c).all():
            f_new = problem.value(x + s)
            if f_new - mu * float(np.sum(np.log(c_new))) <= merit + 1e-4 * step * slope:
                return s, f_new, c_new
        step *= 0.5
    problem.value(x), problem.slack(x)
    return None, f, c


def _dual_length(duals: Array, step: Array) -> float:
    falling = step < 0.0
    return float(np.min(-_BOUNDARY * duals[falling] / step[falling], initial=1.0))


def _updated(H: Array, s: Array, y: Array) -> Array:
    """Powell's damped BFGS update: stays positive definite whatever the curvature."""
    Hs = H @ s
    curved = float(s @ Hs)
    along = float(s @ y)
    if along < _DAMPING * curved:
        share = (1.0 - _DAMPING) * curved / (curved - along)
        y = share * y + (1.0 - share) * Hs
        along = float(s @ y)
    if curved <= 0.0 or along <= 0.0:
        return H
    return np.asarray(H - np.outer(Hs, Hs) / curved + np.outer(y, y) / along)
