"""How well a given motion excites the base parameters: rank, condition, weak directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, as_samples, frozen, on_one_thread
from dynident.display import brief
from dynident.dynamics.terms import Coulomb, state_terms
from dynident.dynamics.terms.friction import FrictionTerm
from dynident.errors import InputError
from dynident.identifiability.base import BaseParameters
from dynident.identifiability.states import closed_poses
from dynident.robot.model import Robot
from dynident.robot.placeholders import believed_limits

REST_VELOCITY = 0.01  # [rad/s or m/s] a slower joint is at rest, and dry friction holds it with a torque nobody knows
_BLOCK = 4096  # samples per block: memory does not grow with the length of the motion
_RANK_SHARE = 1e-9
_WEAK_SHARE = 1e-2  # singular values below this share of the largest are called weak


@brief
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


@brief
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
    base: BaseParameters, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, *, rest_velocity: float = REST_VELOCITY
) -> Excitation:
    """Excitation of the base parameters by a motion, in constant memory.

    Where the terms include dry friction, the equation of a joint at rest does not count, as in `identify` and `check`:
    its friction is whatever holds the joint, and the column's sign(0) = 0 would pass for a second direction of motion.

    Args:
        base: The base parameters.
        q, dq, ddq: Positions, velocities and accelerations, (n_samples, n_joints) each [rad or m, s].
        rest_velocity: A joint that is not faster than this is at rest [rad/s or m/s].

    Raises:
        InputError: If the motion has no samples, or `rest_velocity` is negative.
    """
    if not (np.isfinite(rest_velocity) and rest_velocity >= 0.0):
        raise InputError(f"rest_velocity is {rest_velocity}; expected zero or a positive velocity")
    names = base.robot.joint_names
    positions = as_samples(q, "q", names)
    if len(positions) == 0:
        raise InputError("the motion has no samples")
    velocities = as_samples(dq, "dq", names, len(positions))
    accelerations = as_samples(ddq, "ddq", names, len(positions))
    dry = any(isinstance(term, Coulomb | FrictionTerm) for term in base.terms)
    R, n_rows = np.zeros((0, base.n)), 0
    for start in range(0, len(positions), _BLOCK):
        part = slice(start, start + _BLOCK)
        W = base.regressor(positions[part], velocities[part], accelerations[part])
        moving = np.abs(velocities[part]) > rest_velocity if dry else np.ones(W.shape[:2], dtype=bool)
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


# ----------------------------------------------------------------------------------------------------------------------
# Which motion would show a combination of parameters that the data hardly tells.

Way = Literal["held in other poses", "turned slowly", "turned steadily", "accelerated"]
_AT_REST: Way = "held in other poses"
_MOVING: tuple[Way, ...] = ("turned slowly", "turned steadily", "accelerated")
_POSES = 48  # of the other joints, at random within the limits
_WORTH = 0.3  # of the best way, from which another is worth telling
_VELOCITY, _ACCELERATION = 1.0, 4.0  # [rad/s or m/s] and their rate, where the robot states no limit
_SLOW = (-2.7, -1.3)  # powers of ten of the velocity's share that is slow: where dry friction is not yet constant
_REACH = np.pi  # [rad or m] on each side of a joint without limits


@dataclass(frozen=True)
class Help:
    """A motion that shows a combination.

    Attributes:
        joint: Joint to move.
        way: How.
        share: Torque by which it shows it, as a share of what the best single joint shows.
    """

    joint: str
    way: Way
    share: float


def helpful_motions(base: BaseParameters, direction: Array, sigma: Array, seed: int = 0) -> tuple[Help, ...]:
    """What to move so that torque depends more on a combination of base parameters, best first.

    Each joint is held, turned slowly, at half its velocity limit, and accelerated by itself, the others in random
    poses; the way is as good as the torque which the combination causes, in standard deviations of each joint's noise.
    Terms with memory along the motion have no part in it.

    Args:
        base: The base parameters.
        direction: (n,) the combination.
        sigma: (n_joints,) standard deviation of the torque noise.
        seed: Of the poses.

    Returns:
        The ways that are at least 30 % as good as the best; nothing where none shows it.
    """
    return helpful_for_each(base, direction[:, None], sigma, seed)[0]


@on_one_thread
def helpful_for_each(
    base: BaseParameters, directions: Array, sigma: Array, seed: int = 0
) -> tuple[tuple[Help, ...], ...]:
    """`helpful_motions` of several combinations, (n, k), at the cost of one."""
    robot, names = base.robot, base.robot.joint_names
    low, high, velocity = _room(robot)
    rng = np.random.default_rng(seed)
    poses = rng.uniform(low, high, (_POSES, len(names)))
    if robot.closure is not None:
        poses = closed_poses(robot, poses, 0.5 * (high - low), rng)
    ways = [(name, way) for name in names for way in _MOVING]
    motions = [_motion(poses, names.index(name), way, velocity) for name, way in ways]
    *moved, held = _strengths(base, directions, sigma, poses, [*motions, _motion(poses, 0, _AT_REST, velocity)])
    return tuple(
        _best(ways, own, at_rest) for own, at_rest in zip(np.transpose(moved).tolist(), held.tolist(), strict=True)
    )


def _best(ways: list[tuple[str, Way]], moved: list[float], held: float) -> tuple[Help, ...]:
    """The ways that are worth telling, best first."""
    best = max([held, *moved])
    if not best > 0.0:
        return ()
    # A joint that shows as much at rest gains nothing by moving.
    if held > 0.9 * best:
        return (Help("all joints", _AT_REST, held / best),)
    ranked = sorted(zip(ways, moved, strict=True), key=lambda one: -one[1])
    return tuple(Help(*way, share / best) for way, share in ranked if share >= _WORTH * best)


def _motion(poses: Array, joint: int, way: Way, velocity: Array) -> tuple[Array, Array]:
    """Velocities and accelerations of a way to move a joint in each pose, (n_poses, n_joints)."""
    dq, ddq = np.zeros_like(poses), np.zeros_like(poses)
    both_ways = np.where(np.arange(len(poses)) % 2, 1.0, -1.0) * velocity[joint]
    if way == "turned steadily":
        dq[:, joint] = both_ways
    if way == "turned slowly":
        dq[:, joint] = both_ways * np.logspace(*_SLOW, len(poses))
    if way == "accelerated":
        ddq[:, joint] = _ACCELERATION * velocity[joint]
    return dq, ddq


def _strengths(
    base: BaseParameters, directions: Array, sigma: Array, poses: Array, motions: Sequence[tuple[Array, Array]]
) -> Array:
    """(n_motions, k) effective torque of each combination over the poses, in standard deviations of the noise."""
    from dynident.dynamics.evaluate import regressor

    dq, ddq = (np.concatenate(own) for own in zip(*motions, strict=True))
    W = regressor(base.robot, np.tile(poses, (len(motions), 1)), dq, ddq, state_terms(base.terms))
    own = [(row, index) for row, index in enumerate(base.independent) if index < W.shape[2]]
    if not own:
        return np.zeros((len(motions), directions.shape[1]))
    torque = W[:, :, [index for _, index in own]] @ directions[[row for row, _ in own]]
    shares = (torque / sigma[:, None]).reshape(len(motions), -1, directions.shape[1])
    return np.asarray(np.sqrt(np.mean(shares**2, axis=1)))


def _room(robot: Robot) -> tuple[Array, Array, Array]:
    """Lower and upper positions and velocities of the moving joints."""
    limits = believed_limits(robot)
    low = np.array([-_REACH if one.lower is None else one.lower for one in limits])
    high = np.array([_REACH if one.upper is None else one.upper for one in limits])
    velocity = np.array([_VELOCITY if one.velocity is None else 0.5 * one.velocity for one in limits])
    return low, high, velocity


def fourier_basis(t: Array, harmonics: int, frequency: float) -> tuple[Array, Array, Array]:
    """Basis of a Fourier series of H harmonics, sines then cosines, with its first and second derivatives.

    Args:
        t: Time, (n_samples,), [s].
        harmonics: H.
        frequency: Of the first harmonic, [Hz].

    Returns:
        Values, derivatives [1/s] and second derivatives [1/s²], (n_samples, 2 H) each.
    """
    w = 2.0 * np.pi * frequency * np.arange(1, harmonics + 1)
    phase = t[:, None] * w
    sine, cosine = np.sin(phase), np.cos(phase)
    return np.hstack([sine, cosine]), np.hstack([w * cosine, -w * sine]), np.hstack([-w * w * sine, -w * w * cosine])
