"""Nonlinear least squares for a handful of numbers, of which the data may leave some open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, on_one_thread
from dynident.errors import SingularError

_OPEN = 1e-7  # singular value, over the largest, below which a direction is not determined
_EXACT = 1e-12  # the same for equations whose slopes are exact
_DONE = 1e-11


@dataclass(frozen=True)
class Solved:
    """A least-squares solution.

    Attributes:
        values: (n,) what fits best; directions that the data leaves open stay at the start.
        std: (n,) deviations; infinite where a number is not determined.
        misfit: Root mean square of the weighted residual per degree of freedom; 1 where deviations were right, and
            1 without a degree of freedom.
        covariance: (n, n) of the numbers, as far as they are determined.
    """

    values: Array
    std: Array
    misfit: float
    covariance: Array


@on_one_thread
def gauss_newton(residual: Callable[[Array], Array], start: Array, scale: Array, *, steps: int = 60) -> Solved:
    """Minimise the sum of squares of weighted residuals, with steps that shorten until they help.

    Args:
        residual: Weighted residuals (m,) of values (n,); not finite where the values are impossible.
        start: (n,) where to begin; possible.
        scale: (n,) typical size of each value.
        steps: At most so many.

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
    return _judged(x, rest, _jacobian(residual, x, scale), scale)


@on_one_thread
def linear_least_squares(A: Array, y: Array, start: Array, scale: Array) -> Solved:
    """Solve weighted equations ``A x = y``; directions that they leave open stay at the start.

    Args:
        A: (m, n), rows over their standard deviations.
        y: (m,), likewise.
        start: (n,).
        scale: (n,) typical size of each value.
    """
    x = start + scale * np.linalg.lstsq(A * scale, y - A @ start, rcond=_EXACT)[0]
    return _judged(x, A @ x - y, A * scale, scale, _EXACT)


def _judged(x: Array, rest: Array, J: Array, scale: Array, least: float = _OPEN) -> Solved:
    """Deviations: those of the residuals' weights, made larger where the residuals are."""
    _, s, Vt = np.linalg.svd(J, full_matrices=False)
    seen = s > least * max(float(s.max(initial=0.0)), 1e-300)
    freedom = len(rest) - int(seen.sum())
    misfit = float(np.sqrt(rest @ rest / freedom)) if freedom > 0 else 1.0
    spread = Vt[seen].T / s[seen] * scale[:, None] * max(1.0, misfit)
    covariance = spread @ spread.T
    known = (Vt[seen] ** 2).sum(axis=0) > 1.0 - 1e-6
    return Solved(x, np.where(known, np.sqrt(np.diag(covariance)), np.inf), misfit, covariance)


def _jacobian(residual: Callable[[Array], Array], x: Array, scale: Array) -> Array:
    """Derivatives by values over their scale, (m, n)."""
    columns = []
    for i in range(len(x)):
        step = np.zeros(len(x))
        step[i] = 1e-6 * scale[i]
        columns.append((residual(x + step) - residual(x - step)) / 2e-6)
    J = np.stack(columns, axis=1)
    return np.asarray(np.where(np.isfinite(J), J, 0.0))
