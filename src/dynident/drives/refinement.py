r"""Simulation-error least squares: the drives whose replay is nearest, from the linear estimate and with it as prior.

.. math:: \min_\theta \sum_j \|q_j - \hat q_j(\theta)\|^2 / (f_j s_j^2)
    + (\theta - \theta_0)' C_0^{-1} (\theta - \theta_0)

with s_j the replay error of joint j at the linear estimate and f_j the samples that weigh as much as one independent
sample. Joints of branches that part at the base do not move each other, so that one simulation has a step of a
parameter in each branch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.drives.replay import ClosedLoopReplay, Commands, DriveValues
from dynident.drives.thresholds import THRESHOLDS
from dynident.robot.model import BASE, Robot

_STEP_STD = 0.1  # standard deviations of the prior by which parameters are moved for derivatives
_MOST_ROUNDS = 6


@dataclass(frozen=True, eq=False)
class Refined:
    """Values by simulation-error least squares.

    Attributes:
        values: (n,) parameters.
        covariance: (n, n).
        before: ClosedLoopReplay error at the beginning on the part held out [rad or m].
        after: The same with these values.
    """

    values: Array
    covariance: Array
    before: float
    after: float


def refine_drives(
    robot: Robot,
    commands: Sequence[Commands],
    start: Array,
    covariance: Array,
    joints: Sequence[int | None],
    least: Array,
    candidate: Callable[[Array], DriveValues],
) -> Refined:
    """Refine on the first part of each stretch and evaluate on the last.

    Args:
        robot: The robot.
        commands: The stretches.
        start: (n,) parameters to begin with.
        covariance: (n, n) of them, the prior.
        joints: The moving joint of each parameter; None for one that all joints share.
        least: (n,) values that parameters must not go below.
        candidate: A robot to simulate from parameters.
    """
    from scipy.optimize import least_squares

    parts = [_divide(one) for one in commands]
    fitted, left_out = (ClosedLoopReplay(robot, [pair[k] for pair in parts]) for k in (0, 1))
    std = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    free = std > 0.0
    root = np.linalg.cholesky(covariance[np.ix_(free, free)] + 1e-12 * np.diag(std[free] ** 2))
    steps = np.where(free, _STEP_STD * std, 0.0)
    groups = _groups(robot, [joint for joint, is_free in zip(joints, free, strict=True) if is_free])
    measured = np.concatenate([one.positions for one in fitted.commands])

    def values_of(x: Array) -> Array:
        found = start.copy()
        found[free] = x
        return found

    def off(candidates: Sequence[Array]) -> Array:
        """(n_candidates, n_samples, n_joints) simulated less measured positions."""
        courses = fitted.positions([candidate(values_of(x)) for x in candidates])
        return np.asarray(np.nan_to_num(np.concatenate(courses, axis=1) - measured, nan=1e3, posinf=1e3, neginf=-1e3))

    (first,) = off([start[free]])
    scale = np.sqrt(_inflation(first)) * np.sqrt(np.mean(first**2, axis=0)).clip(1e-9)

    def residual(x: Array) -> Array:
        prior = np.linalg.solve(root, x - start[free])
        return np.concatenate([(off([x])[0] / scale).ravel(), prior])

    def jacobian(x: Array) -> Array:
        moved = []
        for group in groups:
            one = x.copy()
            one[[k for k, _ in group]] += steps[free][[k for k, _ in group]]
            moved.append(one)
        base, *courses = off([x, *moved]) / scale
        J = np.zeros((base.size, len(x)))
        for group, course in zip(groups, courses, strict=True):
            change = course - base
            for k, own in group:
                column = np.zeros_like(base)
                column[:, own] = change[:, own] / steps[free][k]
                J[:, k] = column.ravel()
        return np.vstack([J, np.linalg.solve(root, np.eye(len(x)))])

    bounds = np.where(start[free] < least[free], start[free], least[free])
    found = least_squares(
        residual, start[free], jac=jacobian, bounds=(bounds, np.inf), x_scale=std[free], max_nfev=_MOST_ROUNDS
    )
    values = values_of(found.x)
    spread = np.zeros_like(covariance)
    spread[np.ix_(free, free)] = np.linalg.inv(found.jac.T @ found.jac)
    before, after = (one.total for one in left_out.errors([candidate(start), candidate(values)]))
    return Refined(values, spread, before, after)


def _divide(commands: Commands) -> tuple[Commands, Commands]:
    """The first and the last part of a stretch."""
    cut = round((1.0 - THRESHOLDS.left_out_share) * len(commands.time))

    def part(own: slice) -> Commands:
        stamps = commands.time[own]
        stretch = commands.targets[own], commands.feedforward[own], commands.positions[own]
        return Commands(commands.label, stamps - stamps[0], *stretch, commands.kp, commands.kd)

    return part(slice(0, cut)), part(slice(cut, None))


def _inflation(errors: Array) -> Array:
    """(n_joints,) samples that weigh as much as one independent sample, errors taken as autoregressive."""
    together = np.sum(errors[1:] * errors[:-1], axis=0) / np.maximum(np.sum(errors**2, axis=0), 1e-300)
    alike = np.clip(together, 0.0, THRESHOLDS.most_alike)
    return np.asarray((1.0 + alike) / (1.0 - alike))


def _groups(robot: Robot, joints: Sequence[int | None]) -> list[list[tuple[int, list[int]]]]:
    """Parameters that may be moved together, each with the joints that it moves."""
    branches = _branches(robot)
    waiting: dict[int, list[int]] = {}
    shared = []
    for k, joint in enumerate(joints):
        if joint is None:
            shared.append([(k, list(range(len(branches))))])
        else:
            waiting.setdefault(branches[joint], []).append(k)
    groups = []
    for number in range(max((len(own) for own in waiting.values()), default=0)):
        group = [
            (own[number], [j for j, other in enumerate(branches) if other == branch])
            for branch, own in waiting.items()
            if number < len(own)
        ]
        groups.append(group)
    return [*groups, *shared]


def _branches(robot: Robot) -> list[int]:
    """Which branch of the tree, by its first joint, each moving joint is on; all the same where loops close."""
    moving = [robot.active[i] for i in robot.moving]
    if robot.closure is not None or not np.array_equal(np.abs(robot.follow) > 0.0, np.eye(len(robot.joints)) > 0.0):
        return [0] * len(moving)
    roots = []
    for place in moving:
        while robot.joints[place].parent != BASE:
            place = robot.joints[place].parent
        roots.append(place)
    return roots
