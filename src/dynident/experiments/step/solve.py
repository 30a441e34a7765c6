"""Base combinations of inertial parameters from effective inertias: joint by joint from the tip, or all together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynident.arrays import Array, frozen
from dynident.errors import UnknownNameError
from dynident.experiments.step.poses import InertiaBase

Way = Literal["sequential", "together"]
WAYS: tuple[Way, ...] = ("sequential", "together")
_RANK = 1e-8  # share of the largest singular value of scaled rows that counts
_CLEAR = 0.1  # the same for what a joint settles on its own
_OPEN = 1e-6  # part of a parameter in directions that no row tells


@dataclass(frozen=True)
class Inertia:
    """An effective inertia that was measured.

    Attributes:
        motor: The motor, as a place in `robot.joint_names`.
        pose: (n_moving,) [rad or m].
        value: Me [kg·m² or kg].
        std: Its deviation.
    """

    motor: int
    pose: Array
    value: float
    std: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "pose", frozen(self.pose))


@dataclass(frozen=True)
class Combinations:
    """Values of the base combinations.

    Attributes:
        base: What they are.
        beta: (n,) values.
        covariance: (n, n).
        told: (n,) whether the poses tell each of them.
        condition: Of the scaled rows over what they tell.
        left: (n_inertias,) measured minus computed inertia, in deviations.
        shares: (n_inertias,) size of the same, as a share of the inertia.
        new: How many of them each motor told first, by place in `robot.joint_names`.
    """

    base: InertiaBase
    beta: Array
    covariance: Array
    told: tuple[bool, ...]
    condition: float
    left: Array
    shares: Array
    new: dict[int, int]

    def __post_init__(self) -> None:
        for name in ("beta", "covariance", "left", "shares"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @property
    def std(self) -> Array:
        """Deviations, (n,); infinite where the poses do not tell."""
        own = np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0))
        return np.where(self.told, own, np.inf)


def solve_inertias(base: InertiaBase, inertias: Sequence[Inertia], way: Way = "sequential") -> Combinations:
    """Base combinations from measured inertias.

    Args:
        base: What can be told.
        inertias: What was measured.
        way: "sequential": what the joints towards the tip told is taken as known by those towards the base (Kim 1990,
            section 4). "together": one weighted least-squares problem.
    """
    if way not in WAYS:
        raise UnknownNameError("way to solve", way, WAYS)
    H = np.vstack([base.rows(one.pose, one.motor) for one in inertias])
    y = np.array([one.value - float(base.known(one.pose, one.motor)[0]) for one in inertias])
    std = np.array([max(one.std, 1e-12 * abs(one.value), 1e-300) for one in inertias])
    scale = np.linalg.norm(H, axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    X = H / scale
    owners = np.array([one.motor for one in inertias])
    all_of_them = np.ones(len(y), dtype=bool)
    groups = [owners == motor for motor in sorted(set(owners.tolist()), reverse=True)]
    groups = [all_of_them] if way == "together" else [*groups, all_of_them]
    beta, covariance, open_, new = _stages(X, y, std, groups, owners)
    told = tuple(bool(x) for x in np.linalg.norm(open_, axis=1) < _OPEN)
    sizes = np.linalg.svd(X, compute_uv=False)
    sizes = sizes[sizes > _RANK * sizes[0]]
    left = y - X @ beta
    spare = len(y) - (X.shape[1] - open_.shape[1])
    # Inertias that agree less than their deviations say are less certain than these.
    covariance = covariance * max(1.0, float(np.sum((left / std) ** 2)) / spare if spare > 0 else 1.0)
    shares = np.abs(left) / np.array([abs(one.value) for one in inertias])
    return Combinations(
        base,
        beta / scale,
        covariance / np.outer(scale, scale),
        told,
        float(sizes[0] / sizes[-1]),
        left / std,
        shares,
        new,
    )


def _stages(
    X: Array, y: Array, std: Array, groups: Sequence[Array], owners: Array
) -> tuple[Array, Array, Array, dict[int, int]]:
    """Solve group after group; each moves only along what the groups before left open.

    Returns:
        Values and covariance of scaled parameters, directions that stay open (n, n_open), directions that each told.
    """
    n = X.shape[1]
    beta, covariance, open_ = np.zeros(n), np.zeros((n, n)), np.eye(n)
    new: dict[int, int] = {}
    for turn, group in enumerate(groups):
        # A joint settles only what it tells well; the rest is left to those that follow, and at last to all of them.
        clear = _RANK if turn == len(groups) - 1 else _CLEAR
        rows, weight = X[group], 1.0 / std[group]
        left, sizes, right = np.linalg.svd((rows * weight[:, None]) @ open_, full_matrices=True)
        plain = np.linalg.svd(rows @ open_, compute_uv=False)
        rank = int(np.sum(plain > clear * np.linalg.norm(X))) if open_.shape[1] else 0
        new[int(owners[group][0])] = new.get(int(owners[group][0]), 0) + rank
        G = open_ @ (right[:rank].T / sizes[:rank]) @ (left[:, :rank].T * weight)
        keep = np.eye(n) - G @ rows
        beta = beta + G @ (y[group] - rows @ beta)
        covariance = keep @ covariance @ keep.T + (G * std[group] ** 2) @ G.T
        open_ = open_ @ right[rank:].T
    return beta, covariance, open_, new
