"""Where the inertia stage swings and with which gains: what tells the parameters best by the model."""

from __future__ import annotations

import numpy as np

from dynident.arrays import Array
from dynident.experiments.bench import Bounds
from dynident.experiments.oscillation.groups import SwingModel, nominals
from dynident.experiments.oscillation.modal_equations import Parts, parts_of

SMALLER = np.radians(0.1)  # [rad or m] amplitude unless the encoders need more
_APART = 3.0  # largest gain over the least: neighbouring modes of seven joints still part within ten periods
_CANDIDATES = 40
_OPEN = 1e-11  # singular value, over the largest, of what set-points do not tell
_WIDE = 1.2  # [rad or m] set-points lie within this of the first one


def choose_set_points(
    model: SwingModel, bounds: Bounds, values: Array | None = None, *, kp: float = 100.0, weighed: bool = False
) -> list[Array]:
    """Set-points at which swings tell the parameters best, the pose nearest to zero first.

    Args:
        model: The model.
        bounds: Where the joints may go.
        values: (n_groups,) of the gravity and the inertia groups; default the description's.
        kp: Proportional gain [1/s²].
        weighed: The weights are known, so that only inertias are looked for.
    """
    known = nominals((*model.gravity, *model.inertia)) if values is None else values
    n, first = len(model.robot.moving), len(model.gravity)
    lower, upper = np.maximum(bounds.lower, -np.pi), np.minimum(bounds.upper, np.pi)
    margin = 0.1 * (upper - lower)
    middle = np.clip(np.zeros(n), lower + margin, upper - margin)  # zero may lie at a limit
    rng = np.random.default_rng(1)
    near, far = np.maximum(lower + margin, middle - _WIDE), np.minimum(upper - margin, middle + _WIDE)
    poses = [middle, *rng.uniform(near, far, (_CANDIDATES, n))]
    parts = [parts_of(model, pose) for pose in poses]
    slopes = [design(one, known, kp)[:, first if weighed else 0 :] for one in parts]
    chosen, all_of_them = [0], _rank(np.concatenate(slopes))
    wanted = _wanted(n, 0 if weighed else first, len(model.inertia))
    while len(chosen) < wanted or _rank(np.concatenate([slopes[i] for i in chosen])) < all_of_them:
        scores = []
        for j in range(len(poses)):
            J = np.concatenate([slopes[i] for i in (*chosen, j)])
            scores.append(-np.inf if j in chosen else told(J))
        chosen.append(int(np.argmax(scores)))
    return [np.asarray(poses[j]) for j in chosen]


def _rank(J: Array) -> int:
    s = np.linalg.svd(J, compute_uv=False)
    return int((s > _OPEN * s[0]).sum())


def _wanted(n: int, weights: int, inertias: int) -> int:
    """One set-point more than it takes if each tells the inertia and the weight that every joint feels."""
    if n == 1 and not weights:
        return 1
    return max(2, 1 + -(-max(inertias, weights) // n))


def gains(kp: float, mass: Array) -> tuple[Array, Array]:
    """Squared frequencies about kp, rising (n,) [1/s²], and the gain (n, n) that gives them to a mass matrix.

    With kp alone every mode has the same frequency once the inertias are right, and a swing shows one of them. The
    spring ``L diag(squares) L^T`` with ``L L^T`` the mass matrix keeps them apart, and as it is symmetric no error of
    the inertias lets them flutter.
    """
    n, L = len(mass), np.linalg.cholesky(mass)
    squares = kp * _APART ** (np.linspace(-0.5, 0.5, n) if n > 1 else np.zeros(1))
    return squares, np.linalg.solve(L.T, squares[:, None] * L.T)


def sizes_of(values: Array) -> Array:
    """Typical size of each value; a tenth of the largest for one that is zero up to rounding."""
    size, largest = np.abs(values), max(float(np.abs(values).max(initial=0.0)), 1e-9)
    return np.where(size > 1e-9 * largest, size, 0.1 * largest)


def design(parts: Parts, values: Array, kp: float) -> Array:
    """Slopes of a swing's equations, in positions over its amplitude, with relative changes of all values.

    Args:
        parts: The equations of motion about the set-point.
        values: (n_groups,) of the machine and of the law.
        kp: Proportional gain [1/s²].

    Returns:
        (n_modes n + n, n_groups): the equations of every mode, and the balance of weights.
    """
    mass = np.tensordot(np.append(1.0, values), parts.mass, 1)
    squares, gain = gains(kp, mass)
    rows = []
    for square, shape in zip(squares, np.linalg.inv(np.linalg.cholesky(mass)), strict=True):  # columns of L^-T
        own = (parts.stiffness[1:] - square * parts.mass[1:]) @ (shape / np.abs(shape).max())  # (n_groups, n)
        rows.append(np.linalg.solve(mass @ gain, own.T))
    rows.append(np.linalg.solve(mass @ gain, parts.weight[1:].T) / SMALLER)
    return np.concatenate(rows) * sizes_of(values)


def told(J: Array) -> float:
    """How much slopes tell about all parameters together."""
    return float(np.log(np.linalg.svd(J, compute_uv=False) ** 2 + 1e-9).sum())
