"""Solutions of closed loops carried from pose to pose, for many samples at once.

Arrays have their samples last: q (n_active, n_samples), s (n_solved, n_samples).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array, Mask
from dynident.dynamics.closure import closure_of
from dynident.dynamics.kernels import CLOSING, kernel
from dynident.robot.loops import loop_size, n_rows
from dynident.robot.model import Robot

STRIDE = 0.25  # [rad, or sizes of the loop] that solved joints move in a step
_CORRECTION = 0.08  # of these that Newton's method may add: more, and it may have gone elsewhere
_LONGEST = 1.0  # of these that Newton's method may go at once
_CONTRACTION = 0.5  # of its steps, at least
_LAST_STEP = 1e-8  # of Newton's method: it converges quadratically, so what follows is rounding
_CLOSED = 1e-7  # residual before that last step
_SHORTEST = 1e-5  # share of the way at which a step is given up
Places = NDArray[np.intp]


@dataclass
class Found:
    """Solutions of a batch.

    Attributes:
        s: (n_solved, n_samples) positions.
        G: (n_solved, n_active, n_samples) their derivatives.
        pivot: (n_samples,) how clearly the loops determine them: 0 at a singular pose, about 1 far from any.
        reached: (n_active, n_samples) the pose that was reached.
        fine: (n_samples,) whether that is the one asked for.
    """

    s: Array
    G: Array
    pivot: Array
    reached: Array
    fine: Mask

    def take(self, own: Places | slice) -> Found:
        """The solutions of some samples."""
        return Found(self.s[:, own], self.G[:, :, own], self.pivot[own], self.reached[:, own], self.fine[own])

    def put(self, own: Places, other: Found) -> None:
        """Replace the solutions of some samples."""
        self.s[:, own], self.G[:, :, own], self.pivot[own] = other.s, other.G, other.pivot
        self.reached[:, own], self.fine[own] = other.reached, other.fine


class Tracker:
    """Newton's method on the loops of a robot, and ways from pose to pose.

    Attributes:
        robot: The robot, no joint of it locked.
        units: (n_solved,) what counts as one: a radian, or the size of the loops [m].
        active_units: (n_active,) likewise.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot, closure = robot, closure_of(robot)
        self.n, self.k = len(robot.active), len(closure.solved)
        size = max(loop_size(loop, robot.joints) for loop in closure.loops)
        slides = np.array([joint.kind == "prismatic" for joint in robot.joints])
        self.units = np.where(slides[list(closure.solved)], size, 1.0)
        self.active_units = np.where(slides[list(robot.active)], size, 1.0)
        self._places = [place[0] for place in kernel(robot, CLOSING, ())[1]]
        self._n_residuals = sum(n_rows(loop) for loop in closure.loops)

    def close(self, q: Array, guess: Array) -> Found:
        """Solutions near a guess, by Newton's method."""
        n = q.shape[1]
        found = Found(guess.copy(), np.zeros((self.k, self.n, n)), np.zeros(n), q, np.zeros(n, bool))
        live, longest = np.arange(n), np.full(n, _LONGEST)
        while len(live):
            residual, step, pivot, G = self._evaluate(q[:, live], found.s[:, live])
            length = np.abs(step / self.units[:, None]).max(0)
            last = length < _LAST_STEP
            found.s[:, live] += step
            own = live[last]
            found.fine[own] = residual[last] < _CLOSED
            found.pivot[own], found.G[:, :, own] = pivot[last], G[:, :, last]
            on = (length < longest) & ~last  # steps that do not become much shorter lead nowhere
            live, longest = live[on], _CONTRACTION * length[on]
        return found

    def track(self, known: Found, goal: Array) -> Found:
        """Known solutions carried straight to other poses."""
        found = Found(known.s.copy(), known.G.copy(), known.pivot.copy(), known.reached.copy(), known.fine.copy())
        start, n = known.reached, goal.shape[1]
        way, share, longest = goal - start, np.zeros(n), np.ones(n)
        live = np.flatnonzero(found.fine)
        while len(live):
            tangent = np.einsum("kin,in->kn", found.G[:, :, live], way[:, live])
            with np.errstate(divide="ignore"):
                stride = STRIDE / np.abs(tangent / self.units[:, None]).max(0)
            step = np.minimum(np.minimum(1.0 - share[live], longest[live]), stride)
            guess = found.s[:, live] + tangent * step
            ahead = np.where(share[live] + step < 1.0, share[live] + step, 1.0)
            near = self.close(start[:, live] + ahead * way[:, live], guess)
            added = np.abs((near.s - guess) / self.units[:, None]).max(0)
            good = near.fine & (added < _CORRECTION)
            found.put(live[good], near.take(np.flatnonzero(good)))
            share[live[good]] = ahead[good]
            longest[live] = np.where(good, 2.0 * step, 0.25 * step)
            live = live[(share[live] < 1.0) & (longest[live] > _SHORTEST)]
        found.fine &= share == 1.0
        exact = np.flatnonzero(found.fine)
        found.reached[:, exact] = goal[:, exact]
        return found

    def _evaluate(self, q: Array, s: Array) -> tuple[Array, Array, Array, Array]:
        """Largest residual (n,), step (k, n), smallest pivot (n,), G (k, n_active, n)."""
        n = q.shape[1]
        run, _ = kernel(self.robot, CLOSING, (), n)
        out = np.zeros((self._n_residuals + self.k * (2 + self.n), n))
        run([*q, *s], out, self._places)
        ends = np.cumsum([self._n_residuals, self.k, self.k])
        residual, step, squares, G = np.split(out, ends)
        pivot = np.sqrt((squares * self.units[:, None] ** 2).min(0))
        return np.abs(residual).max(0, initial=0.0), step, pivot, G.reshape(self.k, self.n, n)
