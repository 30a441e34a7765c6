"""`Trial`: how well the equations of a robot explain its logs if some columns mean something else than they say.

Every explanation is a linear map of positions and one of torques, so one look at the moments of a sample answers all
torque maps at once. A fit counts only with friction that takes energy: a joint whose torque has the wrong sign is
explained as well as before by friction that drives it, and by nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from dynident.blas import on_one_thread
from dynident.check.sample import Sample
from dynident.checks import Array
from dynident.dynamics.evaluate import inverse_dynamics
from dynident.identifiability.base import BaseParameters
from dynident.information.absorb import absorb
from dynident.information.observation_model import observation_model

_PASSES = 3  # of the fit: the weight of a joint is what the fit before left of it
_LEAST = 1e-3  # share of its torque that is always left of a joint
_PIVOT = 1e-9  # of the largest: a direction with less is not seen


@dataclass(frozen=True)
class Left:
    """What an explanation leaves of the torque.

    Attributes:
        shares: (n_joints,) residual over torque of each joint, at moments in motion.
        rows: (n_joints,) moments behind it.
    """

    shares: Array
    rows: Array

    @property
    def score(self) -> float:
        """Sum over joints of the logarithm of what is left: joints count alike, however strong they are."""
        return float(np.log(self.shares).sum())


class Seen:
    """The moments of a sample under one map of the positions, compressed: answers for any map of the torques."""

    def __init__(self, triangles: list[Array], columns: list[Array], rows: Array, n: int, bounded: Array) -> None:
        self._triangles, self._columns, self._rows = triangles, columns, rows
        self._n, self._bounded = n, bounded

    @on_one_thread
    def left(self, torques: Array) -> Left:
        """What is left with these torques as combinations of the logged ones.

        Args:
            torques: (n_joints, n_joints): row j of the equations uses torques[j] @ tau.
        """
        parts = []
        for triangle, columns, how in zip(self._triangles, self._columns, torques, strict=True):
            m = len(columns)
            mixed = triangle[:, m:] @ np.append(how, -1.0)
            parts.append((triangle[:m, :m], mixed[:m], float(mixed[m:] @ mixed[m:]), columns))
        counts = np.maximum(self._rows, 1)
        size = np.sqrt([(z @ z + rest) / n for (_, z, rest, _), n in zip(parts, counts, strict=True)])
        size = np.maximum(size, 1e-12)
        sigma = np.maximum(np.sqrt([rest / n for (_, _, rest, _), n in zip(parts, counts, strict=True)]), _LEAST * size)
        for _ in range(_PASSES):
            values = self._fit(parts, sigma)
            squares = [np.sum((A @ values[own] - z) ** 2) + rest for A, z, rest, own in parts]
            sigma = np.maximum(np.sqrt(np.array(squares) / counts), _LEAST * size)
        return Left(sigma / size, self._rows)

    def _fit(self, parts: list[tuple[Array, Array, float, Array]], sigma: Array) -> Array:
        """Weighted least squares with friction that is not negative, (n,)."""
        whole = np.zeros((sum(len(z) for _, z, _, _ in parts), self._n + 1))
        first = 0
        for (A, z, _, own), size in zip(parts, sigma, strict=True):
            whole[first : first + len(z), own] = A / size
            whole[first : first + len(z), -1] = z / size
            first += len(z)
        order = np.argsort(self._bounded, kind="stable")  # free ones first
        R: Array = np.asarray(np.linalg.qr(whole[:, [*order, self._n]], mode="r"))
        free = int(np.count_nonzero(~self._bounded))
        values = np.zeros(self._n)
        positive, _ = nnls(R[free:, free:-1], R[free:, -1])
        values[order[free:]] = positive
        values[order[:free]] = _solved(R[:free, :free], R[:free, -1] - R[:free, free:-1] @ positive)
        return values


def _solved(R: Array, z: Array) -> Array:
    """R x = z; directions that are not seen are left at zero."""
    diagonal = np.abs(np.diag(R))
    if diagonal.min(initial=np.inf) > _PIVOT * diagonal.max(initial=0.0):
        return np.asarray(solve_triangular(R, z))
    return np.asarray(np.linalg.lstsq(R, z, rcond=_PIVOT)[0])


class Trial:
    """Tries explanations of a sample.

    Args:
        base: Base parameters of the robot.
        sample: The moments.
    """

    def __init__(self, base: BaseParameters, sample: Sample) -> None:
        self.base, self.sample, self.robot = base, sample, base.robot
        self._model = observation_model(base.robot, base.terms, "base")
        described = [base.columns[i] for i in base.independent]
        self._bounded = np.array([column.symbol in ("Fv", "Fc") for column in described])

    @on_one_thread
    def seen(self, positions: Array, clock: float = 1.0) -> Seen:
        """The sample with other positions.

        Args:
            positions: (n_joints, n_joints): joint positions are positions @ logged ones, about the joints' zeros.
            clock: Length of a logged second [s].
        """
        zero = self.robot.zero[list(self.robot.moving)][:, None]
        q = positions @ (self.sample.q - zero) + zero
        dq, ddq = positions @ self.sample.dq / clock, positions @ self.sample.ddq / clock**2
        used = (np.abs(np.sign(positions)) @ self.sample.moving) > 0
        felt = self._model.felt_columns([*q, *dq, *ddq])
        known = np.zeros_like(q)
        if self._model.known:
            known = inverse_dynamics(self.robot, q.T, dq.T, ddq.T, self._model.of_state, self._model.known).T
        triangles, first = [], 0
        for channel, own in enumerate(self._model.layout.columns):
            rows = np.concatenate([felt[first : first + len(own)], self.sample.tau, known[channel : channel + 1]])
            first += len(own)
            triangle = np.zeros((len(rows), len(rows)))
            absorb(triangle, np.ascontiguousarray(rows[:, used[channel]]))
            triangles.append(triangle)
        columns = [np.array(own, dtype=int) for own in self._model.layout.columns]
        return Seen(triangles, columns, used.sum(1), self.base.n, self._bounded)
