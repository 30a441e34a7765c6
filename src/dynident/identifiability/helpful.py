"""Which motion would show a combination of parameters that the data hardly tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynident.arrays import Array, on_one_thread
from dynident.dynamics.terms import state_terms
from dynident.identifiability.base import BaseParameters
from dynident.robot.model import Robot
from dynident.robot.placeholders import believed_limits

Way = Literal["held in other poses", "turned slowly", "turned steadily", "accelerated"]
_MOVING: tuple[Way, ...] = ("turned slowly", "turned steadily", "accelerated")
_POSES = 48  # of the other joints, at random within the limits
_WORTH = 0.3  # of the best way, from which another is worth telling
_SPEED, _ACCELERATION = 1.0, 4.0  # [rad/s or m/s] and their rate, where the robot states no limit
_SLOW = (-2.7, -1.3)  # powers of ten of the speed's share that is slow: where dry friction is not yet constant
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

    Each joint is held, turned slowly, at half its speed limit, and accelerated by itself, the others in random poses;
    the way is as good as the torque which the combination causes, in deviations of each joint's noise. Terms with
    memory along the motion have no part in it.

    Args:
        base: The base parameters.
        direction: (n,) the combination.
        sigma: (n_joints,) deviation of the torque noise.
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
    low, high, speed = _room(robot)
    poses = np.random.default_rng(seed).uniform(low, high, (_POSES, len(names)))
    ways = [(name, way) for name in names for way in _MOVING]
    moved = np.array(
        [_strength(base, directions, sigma, poses, names.index(name), way, speed) for name, way in ways]
    )  # (n_ways, k)
    held = _strength(base, directions, sigma, poses, 0, "held in other poses", speed)
    return tuple(_best(ways, own, at_rest) for own, at_rest in zip(moved.T.tolist(), held.tolist(), strict=True))


def _best(ways: list[tuple[str, Way]], moved: list[float], held: float) -> tuple[Help, ...]:
    """The ways that are worth telling, best first."""
    best = max([held, *moved])
    if not best > 0.0:
        return ()
    # A joint that shows as much at rest gains nothing by moving.
    if held > 0.9 * best:
        return (Help("all joints", "held in other poses", held / best),)
    ranked = sorted(zip(ways, moved, strict=True), key=lambda one: -one[1])
    return tuple(Help(*way, share / best) for way, share in ranked if share >= _WORTH * best)


def _strength(
    base: BaseParameters, directions: Array, sigma: Array, poses: Array, joint: int, way: Way, speed: Array
) -> Array:
    """(k,) effective torque of each combination over the poses, in deviations of the noise."""
    from dynident.dynamics.evaluate import regressor

    dq, ddq = np.zeros_like(poses), np.zeros_like(poses)
    both_ways = np.where(np.arange(len(poses)) % 2, 1.0, -1.0) * speed[joint]
    if way == "turned steadily":
        dq[:, joint] = both_ways
    if way == "turned slowly":
        dq[:, joint] = both_ways * np.logspace(*_SLOW, len(poses))
    if way == "accelerated":
        ddq[:, joint] = _ACCELERATION * speed[joint]
    terms = state_terms(base.terms)
    W = regressor(base.robot, poses, dq, ddq, terms)
    own = [(row, index) for row, index in enumerate(base.independent) if index < W.shape[2]]
    if not own:
        return np.zeros(directions.shape[1])
    torque = W[:, :, [index for _, index in own]] @ directions[[row for row, _ in own]]
    return np.asarray(np.sqrt(np.mean((torque / sigma[:, None]) ** 2, axis=(0, 1))))


def _room(robot: Robot) -> tuple[Array, Array, Array]:
    """Lower and upper positions and speeds of the moving joints."""
    limits = believed_limits(robot)
    low = np.array([-_REACH if one.lower is None else one.lower for one in limits])
    high = np.array([_REACH if one.upper is None else one.upper for one in limits])
    speed = np.array([_SPEED if one.velocity is None else 0.5 * one.velocity for one in limits])
    return low, high, speed
