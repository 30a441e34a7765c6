r"""Criteria of an experiment: smooth functions of the information matrix A, to be minimised, with their derivatives.

====================  ==============================================================================================
determinant           -log det A: the volume of the confidence ellipsoid (D-optimal)
condition             log of the condition number of W with columns of unit norm
smallest              -log of the smallest singular value of W with scaled columns (E-optimal)
interval              log of the largest deviation of a parameter beside its size
====================  ==============================================================================================

Largest and smallest are taken softly, as the mean of order 16 of all of them, so that the derivative exists where two
change places.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynident.arrays import Array

Criterion = Callable[[Array, Array], tuple[float, Array]]
_ORDER = 16.0
_TIE = 0.1  # a parameter's mean information counts so much beside the worst, both as logarithms
_FLOOR = 1e-14  # eigenvalues below this share of the largest count as this share
_NOTHING = 1e-100  # information of a motion that stands still; its inverse is still a number


def determinant(A: Array, sizes: Array) -> tuple[float, Array]:
    """-log det A."""
    try:
        if A.max() < _NOTHING:  # of a motion that stands still
            raise np.linalg.LinAlgError
        lower = np.linalg.cholesky(A)
        inverse = np.linalg.inv(lower)
        return -2.0 * float(np.sum(np.log(np.diag(lower)))), -(inverse.T @ inverse)
    except np.linalg.LinAlgError:
        values, vectors = _spectrum(A)
        return -float(np.sum(np.log(values))), -(vectors / values) @ vectors.T


def condition(A: Array, sizes: Array) -> tuple[float, Array]:
    """Log of the condition number with unit columns."""
    norms = np.sqrt(np.maximum(np.diag(A), _NOTHING))
    scaled = A / norms / norms[:, None]
    values, vectors = _spectrum(scaled)
    high, high_slope = _soft_largest(np.log(values))
    low, low_slope = _soft_largest(-np.log(values))
    slope = (vectors * ((high_slope - low_slope) / values)) @ vectors.T
    # The columns' norms depend on A as well: scaled = D A D with D = diag(A)^-1/2.
    own = np.sum(slope * scaled, axis=1) / norms**2
    return 0.5 * (high + low), 0.5 * (slope / norms / norms[:, None] - np.diag(own))


def smallest(A: Array, sizes: Array) -> tuple[float, Array]:
    """-log of the smallest singular value."""
    values, vectors = _spectrum(A)
    low, slope = _soft_largest(-np.log(values))
    return 0.5 * low, (vectors * (-0.5 * slope / values)) @ vectors.T


def interval(A: Array, sizes: Array) -> tuple[float, Array]:
    """Log of the largest deviation, each divided by its parameter's size."""
    values, vectors = _spectrum(A)
    C = (vectors / values) @ vectors.T
    worst, share = _soft_largest(np.log(np.diag(C) / sizes**2))
    weights = share / np.diag(C)
    return 0.5 * worst, -0.5 * (C * weights) @ C


def _spectrum(A: Array) -> tuple[Array, Array]:
    values, vectors = np.linalg.eigh(A)
    return np.maximum(values, _FLOOR * max(float(values[-1]), _NOTHING)), vectors


def _soft_largest(logs: Array) -> tuple[float, Array]:
    """Log of the mean of order 16 of numbers given by their logs, and its derivative with respect to the logs."""
    top = float(logs.max())
    powers = np.exp(_ORDER * (logs - top))
    return top + float(np.log(powers.sum())) / _ORDER, powers / powers.sum()


def with_tie_break(criterion: Criterion) -> Criterion:
    """A criterion with a small share of the determinant's.

    The other criteria look at the worst direction only: what does not concern it, such as a wrist that is known well,
    might as well stand still. Among motions that are equally good there, the one that tells more is wanted.
    """
    if criterion is determinant:
        return criterion

    def both(A: Array, sizes: Array) -> tuple[float, Array]:
        (value, slope), (volume, more) = criterion(A, sizes), determinant(A, sizes)
        share = _TIE / len(A)
        return value + share * volume, slope + share * more

    return both


CRITERIA: dict[str, Criterion] = {
    "determinant": determinant,
    "condition": condition,
    "smallest": smallest,
    "interval": interval,
}
