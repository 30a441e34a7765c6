r"""A feasible interior-point method: minimize f(x) while c(x) > 0, and c(x) > 0 at every step on the way.

The barrier problem :math:`f - \mu \sum \log c_i` is followed as :math:`\mu` falls. Steps are Newton's for the primal
and dual variables with a damped BFGS estimate of the Lagrangian's curvature; the constraints' own part,
:math:`J' \operatorname{diag}(\lambda / c) J`, is exact, which is what makes thousands of limits cheap. Every iterate
is a motion that respects its limits, so whoever stops the search has one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from dynident.arrays import Array

_BOUNDARY = 0.99  # share of the way to a limit that one step may go
_TINY_STEP = 1e-8
_LEAST_SLACK_SHARE = 0.005  # that a limit keeps in one step
_BENDS = 2  # corrections tried in one search
_DAMPING = 0.1
_Map = Callable[[Array], Array]
_PATIENCE = 12  # steps after which the barrier falls whether or not its problem is solved


class ConstrainedProblem(Protocol):
    """What the method needs to know; J is the derivative of the constraints where `linearize` was last called."""

    def value(self, x: Array) -> float:
        """f(x)."""

    def gradient(self) -> Array:
        """Derivative of f where `value` was last called."""

    def slack(self, x: Array) -> Array:
        """c(x), positive where the limits are respected."""

    def linearize(self) -> None:
        """Take J where `slack` was last called."""

    def times(self, dx: Array) -> Array:
        """J dx."""

    def pull(self, v: Array) -> Array:
        """J' v."""

    def gram(self, d: Array) -> Array:
        """J' diag(d) J."""


def minimize(
    problem: ConstrainedProblem,
    x: Array,
    *,
    barrier: float = 1.0,
    last_barrier: float = 1e-4,
    iterations: int = 200,
    tolerance: float = 1e-4,
    report: Callable[[Array, float], None] | None = None,
) -> tuple[Array, float, bool]:
    """Minimize from a strictly feasible point.

    Args:
        problem: The problem.
        x: Where to begin, c(x) > 0.
        barrier: First barrier parameter.
        last_barrier: The last one; f ends above its minimum by about this times the number of active limits.
        iterations: Most steps.
        tolerance: Improvement of f per step, over the last ten, below which the search has settled.
        report: Called with x and f after every step.

    Returns:
        The point, which is feasible, f there, and whether the search converged.
    """
    f, c = problem.value(x), problem.slack(x)
    g = problem.gradient()
    problem.linearize()
    push = problem.pull(1.0 / c)  # of the barrier, per unit of its parameter
    H = _first_curvature(g)
    mu, duals = barrier, barrier / c
    history = [f]
    settled = False
    for step_number in range(1, iterations + 1):
        solve = _solver(H + problem.gram(duals / c))
        dx = solve(mu * push - g)
        change = problem.times(dx)
        duals_step = mu / c - duals - duals * change / c
        bend = _bend(problem, solve, duals / c)
        s, f_new, c_new = _search(problem, x, dx, change, (f, c, float(g @ dx)), mu, bend)
        if s is None:
            if mu <= last_barrier:
                settled = True
                break
            mu, H = max(0.25 * mu, last_barrier), _first_curvature(g)
            duals = mu / c
            continue
        duals = np.clip(duals + _dual_length(duals, duals_step) * duals_step, 1e-3 * mu / c_new, 1e3 * mu / c_new)
        old = g - problem.pull(duals)
        x, f, c = x + s, f_new, c_new
        g = problem.gradient()
        problem.linearize()
        H = _update_curvature(H, s, g - problem.pull(duals) - old)
        history.append(f)
        if report is not None:
            report(x, f)
        push = problem.pull(1.0 / c)
        remaining = float(np.abs(g - mu * push).max())
        if mu > last_barrier and (remaining < 30.0 * mu or step_number % _PATIENCE == 0):
            # What was learnt about the curvature belongs to the old barrier: going on with it ends too early.
            mu, H = max(0.25 * mu, last_barrier), _first_curvature(g)
        elif mu <= last_barrier and len(history) > 10 and (history[-11] - history[-1]) < 10.0 * tolerance:
            settled = True
            break
    return x, f, settled


def _first_curvature(g: Array) -> Array:
    """A curvature to begin with: weak, because long steps are cut by the limits and short ones are never corrected."""
    return np.eye(len(g)) * max(0.01 * float(np.linalg.norm(g)), 1e-6)


def _solver(matrix: Array) -> _Map:
    """Solves with a matrix that is positive definite up to rounding, which a little weight on the diagonal corrects."""
    scale = 1.0 / np.sqrt(np.diag(matrix))
    scaled = matrix * scale * scale[:, None]
    ridge = 0.0
    while True:
        try:
            lower = np.linalg.cholesky(scaled + ridge * np.eye(len(matrix)))
            break
        except np.linalg.LinAlgError:
            ridge = max(10.0 * ridge, 1e-12)
    return lambda right: np.asarray(scale * np.linalg.solve(lower.T, np.linalg.solve(lower, scale * right)))


def _bend(problem: ConstrainedProblem, solve: _Map, weights: Array) -> _Map:
    """Bends a step along limits that are curved, so that it does not have to be cut short (second-order correction).

    It gives what to add to a step after which the slacks are less by so much than their derivative foretold.
    """
    return lambda missing: solve(problem.pull(weights * missing))


def _search(
    problem: ConstrainedProblem,
    x: Array,
    dx: Array,
    change: Array,
    here: tuple[float, Array, float],
    mu: float,
    bend: _Map,
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
        if bends and not (c_new > _LEAST_SLACK_SHARE * c).all():
            bends -= 1
            s = s + bend(np.maximum(c + step * change - c_new, 0.0))
            c_new = problem.slack(x + s)
        if (c_new > _LEAST_SLACK_SHARE * c).all():
            f_new = problem.value(x + s)
            if f_new - mu * float(np.sum(np.log(c_new))) <= merit + 1e-4 * step * slope:
                return s, f_new, c_new
        step *= 0.5
    problem.value(x), problem.slack(x)
    return None, f, c


def _dual_length(duals: Array, step: Array) -> float:
    falling = step < 0.0
    return float(np.min(-_BOUNDARY * duals[falling] / step[falling], initial=1.0))


def _update_curvature(H: Array, s: Array, y: Array) -> Array:
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
