r"""Torque of the links in runs at constant velocity: what does not cancel there and back.

Joints that are held give way, and velocities still change. The torque of that is linear in the links' parameters,

.. math:: \\tau = W(q, \\dot q, \\ddot q)\\, (\\hat\\chi + \\delta)

which the description of the robot gives up to some tenths; how torque changes within the points tells more about them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, frozen
from dynident.dynamics.evaluate import mass_matrix, parameters, regressor
from dynident.dynamics.terms import all_columns, resolve_terms
from dynident.experiments.velocity.groups import Group
from dynident.experiments.velocity.points import Point

TERMS = "rigid,Ia"
UNCERTAINTY = 0.3  # standard deviation of a description's parameters, as a share of them
NOISE_FLOOR = 3e-4  # share of the torque below which noise is not believed: signals are smoothed and sampled


@dataclass(frozen=True, eq=False)
class Links:
    """What is known beforehand of the torque of the links.

    Attributes:
        values: (p,) parameters by the robot's own description.
        std: (p,) their standard deviations; infinite where nothing is known.
        inertia: (n, n, p) inertia of the joints at each output per unit of each parameter.
    """

    values: Array
    std: Array
    inertia: Array

    def __post_init__(self) -> None:
        for name in ("values", "std", "inertia"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @staticmethod
    def free(n: int) -> Links:
        """Nothing known but that the outputs of n joints feel their accelerations; see `acceleration_columns`."""
        return Links(np.zeros(n * n), np.full(n * n, np.inf), np.eye(n * n).reshape(n, n, n * n))

    @staticmethod
    def of(group: Group, pose: Array) -> Links:
        """The links of a robot with the joints of a group about a pose (n_moving,)."""
        robot, places = group.robot, list(group.places)
        values = np.asarray(parameters(robot, TERMS))
        columns = all_columns(robot, resolve_terms(TERMS))
        felt = float(np.diagonal(mass_matrix(robot, pose[None])[0])[places].max())
        std = np.zeros(len(columns))
        for i, column in enumerate(columns):
            alike = [k for k, other in enumerate(columns) if other.unit == column.unit and other.term == column.term]
            near = [k for k in alike if columns[k].place == column.place]
            sizes = (np.abs(values[own]).max(initial=0.0) for own in ([i], near, alike))
            std[i] = UNCERTAINTY * next((size for size in sizes if size > 0.0), 0.0)
            if column.term == "Ia":  # few descriptions have rotors
                std[i] = max(std[i], felt)
        unit, still = np.eye(len(pose))[places], np.zeros((len(places), len(pose)))
        poses = np.tile(pose, (len(places), 1))
        moved = regressor(robot, poses, still, unit, TERMS) - regressor(robot, poses, still, still, TERMS)
        return Links(values, std, np.swapaxes(moved[:, places], 0, 1))

    def estimated(self, points: Sequence[Point]) -> tuple[Array, Array]:
        """Parameters (p,) and a root (p, k) of their covariance, from how torque changes within the points.

        There friction is nearly the same; what it follows the velocity by is estimated along.
        """
        own = [point for point in points if point.rigid is not None]
        if not own:
            return self.values, np.zeros((len(self.values), 0))
        columns = np.concatenate([x - x.mean(axis=0) for one in own if (x := one.rigid) is not None])  # (m, n, p)
        torque = np.concatenate([one.blocks - one.blocks.mean(axis=0) for one in own])
        columns = np.concatenate([columns, _viscous(own)], axis=2)
        n_free = len(torque) - len(own)  # each point has its own mean
        p, more = len(self.values), columns.shape[2] - len(self.values)
        rest = torque - columns[:, :, :p] @ self.values
        std = np.concatenate([self.std, np.full(more, np.inf)])
        known = np.isfinite(std)
        length = np.sqrt(np.mean(columns**2, axis=(0, 1)))
        scale = np.where(known, std, 1.0 / np.where(length > 0.0, length, 1.0))
        size = np.sqrt(np.mean(np.concatenate([one.blocks for one in own]) ** 2, axis=0))
        floor = (NOISE_FLOOR * size + 1e-12) ** 2
        noise = np.sqrt(np.maximum(np.sum(rest**2, axis=0) / max(n_free, 1), floor))
        for _ in range(3):  # the first noise holds what links explain
            rows = (columns * scale / noise[:, None]).reshape(-1, len(scale))
            prior = np.eye(len(scale))[known]
            left, singular, right = np.linalg.svd(np.vstack([rows, prior]), full_matrices=False)
            kept = singular > 1e-9 * singular[0]
            half = right[kept].T / singular[kept]
            change = half @ (left[:, kept].T @ np.concatenate([(rest / noise).ravel(), np.zeros(len(prior))]))
            spent = np.sum((rows @ half) ** 2) / torque.shape[1]
            residual = rest - columns @ (scale * change)
            noise = np.sqrt(np.maximum(np.sum(residual**2, axis=0) / max(n_free - spent, 1.0), floor))
        return self.values + (scale * change)[:p], (scale[:, None] * half)[:p]


def _viscous(points: Sequence[Point]) -> Array:
    """(m, n, n n) velocities within the points, at every output; none where they are not known."""
    if any(one.dq is None for one in points):
        return np.zeros((sum(len(one.blocks) for one in points), len(points[0].speed), 0))
    return acceleration_columns(np.concatenate([one.dq - one.dq.mean(axis=0) for one in points if one.dq is not None]))


def acceleration_columns(ddq: Array) -> Array:
    """(m, n, n n) accelerations (m, n) at every output: torque per unit of inertia."""
    m, n = ddq.shape
    columns = np.zeros((m, n, n, n))
    columns[:, range(n), range(n)] = ddq[:, None]
    return columns.reshape(m, n, n * n)
