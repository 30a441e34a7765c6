"""How well a given motion excites the base parameters: rank, condition, weak directions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, as_samples, frozen, on_one_thread
from dynident.dynamics.friction_terms import ElementLaw
from dynident.dynamics.terms import Coulomb
from dynident.errors import InputError
from dynident.identifiability.base import BaseParameters

REST_SPEED = 0.01  # [rad/s or m/s] a slower joint is at rest, and dry friction holds it with a torque nobody knows
_BLOCK = 4096  # samples per block: memory does not grow with the length of the motion
_RANK_SHARE = 1e-9
_WEAK_SHARE = 1e-2  # singular values below this share of the largest are called weak


@dataclass(frozen=True)
class WeakDirection:
    """A combination of base parameters that the motion hardly moves.

    Attributes:
        strength: Singular value as a share of the largest, columns scaled to unit norm.
        parts: Base parameters in the direction with their share in it, largest first.
    """

    strength: float
    parts: tuple[tuple[str, float], ...]

    def __str__(self) -> str:
        """Such as `0.62 MX4 - 0.55 Ia4 (3e-05)`."""
        text = "".join(f" {'-' if x < 0 else '+'} {abs(x):.2f} {name}" for name, x in self.parts)
        return f"{text.removeprefix(' + ').strip()} ({self.strength:.1e})"


@dataclass(frozen=True)
class Excitation:
    """Quality of a motion for a set of base parameters.

    Attributes:
        names: Base parameter names.
        n_rows: Equations the motion gives; with dry friction, those of joints that move.
        singular_values: Of the base regressor with columns scaled to unit norm, largest first.
        condition: Their ratio, infinite when the rank is not full.
        raw_condition: The same without scaling.
        rank: Number of directions the motion determines.
        unexcited: Base parameters whose column is zero throughout the motion.
        weak: The weakest directions.
    """

    names: tuple[str, ...]
    n_rows: int
    singular_values: Array
    condition: float
    raw_condition: float
    rank: int
    unexcited: tuple[str, ...]
    weak: tuple[WeakDirection, ...]

    @property
    def persistent(self) -> bool:
        """Whether the motion is persistently exciting: every base parameter is determined."""
        return self.rank == len(self.names)


@on_one_thread
def excitation(
    base: BaseParameters, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, *, rest_speed: float = REST_SPEED
) -> Excitation:
    """Excitation of the base parameters by a motion, in constant memory.

    Where the terms include dry friction, the equation of a joint at rest does not count, as in `identify` and `check`:
    its friction is whatever holds the joint, and the column's sign(0) = 0 would pass for a second direction of motion.

    Args:
        base: The base parameters.
        q, dq, ddq: Positions, velocities and accelerations, (n_samples, n_joints) each [rad or m, s].
        rest_speed: A joint that is not faster than this is at rest [rad/s or m/s].

    Raises:
        InputError: If the motion has no samples, or `rest_speed` is negative.
    """
    if not (np.isfinite(rest_speed) and rest_speed >= 0.0):
        raise InputError(f"rest_speed is {rest_speed}; expected zero or a positive velocity")
    names = base.robot.joint_names
    positions = as_samples(q, "q", names)
    if len(positions) == 0:
        raise InputError("the motion has no samples")
    speeds = as_samples(dq, "dq", names, len(positions))
    accelerations = as_samples(ddq, "ddq", names, len(positions))
    dry = any(isinstance(term, Coulomb | ElementLaw) for term in base.terms)
    R, n_rows = np.zeros((0, base.n)), 0
    for start in range(0, len(positions), _BLOCK):
        part = slice(start, start + _BLOCK)
        W = base.regressor(positions[part], speeds[part], accelerations[part])
        moving = np.abs(speeds[part]) > rest_speed if dry else np.ones(W.shape[:2], dtype=bool)
        R = np.asarray(np.linalg.qr(np.vstack([R, W[moving]]), mode="r"))
        n_rows += int(moving.sum())
    return excitation_of(base.names, R, n_rows)


def excitation_of(names: tuple[str, ...], R: Array, n_rows: int) -> Excitation:
    """Excitation from rows over the base columns or their triangle R, (k, n)."""
    norms = np.linalg.norm(R, axis=0)
    silent = norms <= _RANK_SHARE * max(float(norms.max()), 1e-300)
    scaled = R / np.where(silent, 1.0, norms)
    scaled[:, silent] = 0.0
    _, singular, directions = np.linalg.svd(scaled, full_matrices=True)
    padded = np.zeros(len(names))
    padded[: len(singular)] = singular
    rank = int(np.sum(padded > _RANK_SHARE * padded[0]))
    raw = np.linalg.svd(R, compute_uv=False)
    full = rank == len(names)
    return Excitation(
        names=names,
        n_rows=n_rows,
        singular_values=frozen(padded),
        condition=float(padded[0] / padded[-1]) if full else float("inf"),
        raw_condition=float(raw[0] / raw[-1]) if full else float("inf"),
        rank=rank,
        unexcited=tuple(name for name, quiet in zip(names, silent, strict=True) if quiet),
        weak=tuple(
            _direction(names, directions[i], float(padded[i] / padded[0]))
            for i in range(len(names) - 1, -1, -1)
            if padded[i] < _WEAK_SHARE * padded[0]
        )[:10],
    )


def _direction(names: tuple[str, ...], vector: Array, strength: float) -> WeakDirection:
    order = np.argsort(-np.abs(vector))
    largest = [int(i) for i in order[:6] if abs(vector[i]) > 0.1]
    sign = 1.0 if not largest or vector[largest[0]] > 0 else -1.0
    return WeakDirection(strength, tuple((names[i], sign * float(vector[i])) for i in largest))
