"""What a robot can show of a payload at all, and which of its own joints show it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, frozen, on_one_thread
from dynident.estimate.payload_fit import payload_matrix
from dynident.identifiability.base import BaseParameters
from dynident.identifiability.helpful import Help, helpful_for_each

_ROUNDING = 1e-9  # share of the largest singular value below which a direction does not reach the torque
_NAMED = 3  # ways to move that are named


@dataclass(frozen=True, eq=False)
class PayloadAdvice:
    """The null space of a payload, and how to move for the rest.

    Attributes:
        hidden: (10, n_hidden) directions of the standard parameters that no motion shows, as unit vectors.
        units: (10,) what the parameters are measured in there: they change by direction / unit.
        remedies: What to do for each standard parameter, in words; ten.
    """

    hidden: Array
    units: Array
    remedies: tuple[str, ...]


@on_one_thread
def null_space(rows: Array) -> tuple[Array, Array]:
    """Directions that rows over ten standard parameters leave open, (10, n_hidden), and the columns' norms, (10,)."""
    norms = np.linalg.norm(rows, axis=0)
    felt = norms > _ROUNDING * max(float(norms.max()), 1e-300)
    units = np.where(felt, norms, 1.0)
    _, sizes, right = np.linalg.svd(np.where(felt, rows / units, 0.0), full_matrices=True)
    rank = int(np.sum(sizes > _ROUNDING * max(float(sizes[0]), 1e-300)))
    return frozen(right[rank:].T), frozen(units)


def payload_advice(base: BaseParameters, sigma: Array | None = None) -> PayloadAdvice:
    """What a robot's equations tell about a body on its tool.

    A body adds L pi to the base parameters; what lies in the null space of L never reaches the torque.

    Args:
        base: The robot's base parameters.
        sigma: (n_joints,) standard deviation of the torque noise [N·m or N], by which ways to move are compared;
            default the same for all.
    """
    L = payload_matrix(base)
    hidden, units = null_space(L)
    noise = np.ones(len(base.robot.joint_names)) if sigma is None else np.where(sigma > 0.0, sigma, 1.0)
    ways = helpful_for_each(base, L, noise)
    return PayloadAdvice(hidden, units, tuple(_remedy(own) for own in ways))


def _remedy(ways: tuple[Help, ...]) -> str:
    if not ways:
        return "record longer"
    return (
        f"best shown by {', '.join(f'{one.joint} {one.way}' for one in ways[:_NAMED])}; do more of it, or record longer"
    )
