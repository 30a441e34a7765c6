r"""Torque of the links in runs at constant velocity: what does not cancel there and back.

Joints that are held give way, and velocities still change. The torque of that is linear in the links' parameters,

.. math:: \\tau = W(q, \\dot q, \\ddot q)\\, (\\hat\\chi + \\delta)

which the description of the robot gives up to some tenths; how torque changes within the points tells more about them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.arrays import Array, on_one_thread, record
from dynident.dynamics.evaluate import mass_matrix, parameters, regressor
from dynident.dynamics.terms import all_columns, resolve_terms
from dynident.experiments.friction.groups import JointGroup
from dynident.experiments.friction.points import Point, noise_floor
from dynident.experiments.thresholds import FRICTION

TERMS = "rigid,Ia"
_FREE = 1e3  # times what would explain all torque: the standard deviation of what nothing is known of


@record
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

    @staticmethod
    def free(n: int) -> Links:
        """Nothing known but that the outputs of n joints feel their accelerations; see `acceleration_columns`."""
        return Links(np.zeros(n * n), np.full(n * n, np.inf), np.eye(n * n).reshape(n, n, n * n))

    @staticmethod
    def of(group: JointGroup, pose: Array) -> Links:
        """The links of a robot with the joints of a group about a pose (n_moving,)."""
        robot, places = group.robot, list(group.places)
        values = np.asarray(parameters(robot, TERMS))
        columns = all_columns(robot, resolve_terms(TERMS))
        effective = float(np.diagonal(mass_matrix(robot, pose[None])[0])[places].max())
        std = np.zeros(len(columns))
        for i, column in enumerate(columns):
            alike = [k for k, other in enumerate(columns) if other.unit == column.unit and other.term == column.term]
            near = [k for k in alike if columns[k].place == column.place]
            sizes = (np.abs(values[own]).max(initial=0.0) for own in ([i], near, alike))
            std[i] = FRICTION.description_std * next((size for size in sizes if size > 0.0), 0.0)
            if column.term == "Ia":  # few descriptions have rotors
                std[i] = max(std[i], effective)
        unit, still = np.eye(len(pose))[places], np.zeros((len(places), len(pose)))
        poses = np.tile(pose, (len(places), 1))
        moved = regressor(robot, poses, still, unit, TERMS) - regressor(robot, poses, still, still, TERMS)
        return Links(values, std, np.swapaxes(moved[:, places], 0, 1))

    @on_one_thread
    def estimated(self, points: Sequence[Point]) -> tuple[Array, Array]:
        """Parameters (p,) and a root (p, r) of their covariance, from how torque changes within the points.

        There friction is nearly the same; what it follows the velocity by is estimated along. Columns are noisy where
        joints hardly move, and least squares would draw parameters to zero; products of columns from every other sample
        with those from the samples between have no such bias. Where torque hardly changes the description stays.
        """
        own = [point for point in points if point.rigid is not None]
        p = len(self.values)
        if not own:
            return self.values, np.zeros((p, 0))
        torque = np.concatenate([one.blocks - one.blocks.mean(axis=0) for one in own])  # (m, n)
        one, two = (_within([point.rigid[k] for point in own if point.rigid is not None]) for k in (0, 1))
        rest = torque - 0.5 * (one + two) @ self.values
        one, two = (np.concatenate([x, _viscous(own)], axis=2) for x in (one, two))
        floor = noise_floor(own, FRICTION.noise_floor) ** 2
        spare = max(len(torque) - len(own), 1)  # each point has its own mean
        noise = np.maximum(np.sum(rest**2, axis=0) / spare, floor)
        length = np.sqrt(np.mean(one**2 + two**2, axis=(0, 1)))
        free = _FREE * np.sqrt(np.mean(torque**2) + floor.max()) / np.where(length > 0.0, length, 1.0)
        std = np.where(np.isfinite(own_std := np.append(self.std, np.full(one.shape[2] - p, np.inf))), own_std, free)
        for _ in range(3):  # the first noise holds what links explain
            half, change = _posterior(one * std, two * std, torque, self.values / std[:p], noise)
            left = rest - 0.5 * (one + two) @ (std * change)
            spent = np.sum((0.5 * (one + two) * std @ half) ** 2 / noise[:, None]) / torque.shape[1]
            noise = np.maximum(np.sum(left**2, axis=0) / max(spare - spent, 1.0), floor)
        explained = np.sqrt(np.mean((torque - left) ** 2, axis=0))
        if (explained < FRICTION.clear_ratio * np.sqrt(noise)).any():
            # Feedback answers the noise of positions, so that of torque is not independent of the columns: only what
            # stands far above it is believed.
            return self.values, np.diag(std[:p])
        return self.values + (std * change)[:p], (std[:, None] * half)[:p]


def _posterior(one: Array, two: Array, torque: Array, origin: Array, noise: Array) -> tuple[Array, Array]:
    """Root of the covariance (p, p) and mean (p,) of changes with unit prior variance.

    Args:
        one, two: (m, n, p) columns with independent noise.
        torque: (m, n).
        origin: Values of the first parameters that changes are counted from.
        noise: (n,) variance of the torque.
    """
    weighted = one / noise[:, None]
    N = np.einsum("mnp,mnq->pq", weighted, two)
    rests = [torque - x[:, :, : len(origin)] @ origin for x in (two, one)]
    right = np.einsum("mnp,mn->p", weighted, rests[0]) + np.einsum("mnp,mn->p", two / noise[:, None], rests[1])
    size, directions = np.linalg.eigh(0.5 * (N + N.T))
    inverse = 1.0 / (np.maximum(size, 0.0) + 1.0)
    # Where noise is all there is of the columns, what they seem to say is noise too.
    seen = np.where(size > 0.0, directions.T @ (0.5 * right), 0.0)
    return directions * np.sqrt(inverse), directions @ (inverse * seen)


def _within(columns: Sequence[Array]) -> Array:
    """(m, n, p) columns of all points, each without its mean."""
    return np.concatenate([x - x.mean(axis=0) for x in columns])


def _viscous(points: Sequence[Point]) -> Array:
    """(m, n, n n) velocities within the points, at every output; none where they are not known."""
    if any(one.dq is None for one in points):
        return np.zeros((sum(len(one.blocks) for one in points), len(points[0].velocity), 0))
    return acceleration_columns(np.concatenate([one.dq - one.dq.mean(axis=0) for one in points if one.dq is not None]))


def acceleration_columns(ddq: Array) -> Array:
    """(m, n, n n) accelerations (m, n) at every output: torque per unit of inertia."""
    m, n = ddq.shape
    columns = np.zeros((m, n, n, n))
    columns[:, range(n), range(n)] = ddq[:, None]
    return columns.reshape(m, n, n * n)
