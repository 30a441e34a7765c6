"""Loops that are closed numerically, along motions of a search: solutions, their derivatives, and a limit of their own.

The solved joints s follow the active ones q with ds = G dq, so what depends on both changes by its derivative by q and
that by s through G. Samples that no solution reaches are no error here: they break a limit, and the search turns back.
"""

from __future__ import annotations

import functools

import numpy as np

from dynident.arrays import Array, Mask
from dynident.dynamics.jit.program import Program
from dynident.dynamics.loop_assembly import LoopSolutions, all_active, assembly
from dynident.motion.space import Tape
from dynident.motion.thresholds import THRESHOLDS
from dynident.robot.model import Robot

_SMALL = 0.2  # [rad, or sizes of the loop] that a motion changes in a step that is followed
_KEPT = 8  # solutions of the last poses asked for


class LoopSolver:
    """Solutions for whole motions, carried along from one motion of a search to the next.

    Args:
        robot: The robot, whose loops are closed numerically.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot, self._moving = robot, list(robot.moving)
        self._kept: dict[bytes, LoopSolutions] = {}

    def at(self, q: Array) -> LoopSolutions:
        """Solutions at positions of the moving joints (n_samples, n_joints), `fine` where there is one."""
        key = q.tobytes()
        if key not in self._kept:
            found = self._solve(all_active(self._robot, q))
            self._kept = dict([*self._kept.items()][1 - _KEPT :])
            self._kept[key] = found
        return self._kept[key]

    def forget(self) -> None:
        """Begin again, so that a search does not depend on those before it."""
        self._kept = {}

    def closable(self, q: Array) -> Mask:
        """Poses at which the loops can be closed and determine the passive joints clearly, (n_samples,)."""
        found = self.at(q)
        return np.asarray(found.fine & (found.pivot > THRESHOLDS.least_pivot))

    def jacobian(self, q: Array) -> Array:
        """G by the moving joints, (n_solved, n_joints, n_samples)."""
        return self.at(q).G[:, self._moving]

    def _solve(self, q: Array) -> LoopSolutions:
        own = assembly(self._robot)
        before = next((one for one in reversed(self._kept.values()) if one.s.shape[1] == q.shape[1]), None)
        units = own.tracker.active_units[:, None]
        if before is None or not before.fine.any() or (np.abs(q - before.reached) / units).max() > _SMALL:
            return own.attempt(q)
        found = own.tracker.track(before, q)  # a way this short leads to no other way of assembly
        lost = np.flatnonzero(~found.fine)
        if len(lost):
            found.put(lost, own.attempt(q[:, lost]))
        return found


class ClosingTape(Tape):
    """A tape of a program that takes the positions of the solved joints behind its other inputs.

    Args:
        program: The program.
        n_samples: Samples in a batch.
        solver: Of the loops.
        repeats: Times that a batch holds the same motion one after the other.
    """

    def __init__(self, program: Program, n_samples: int, solver: LoopSolver, repeats: int = 1) -> None:
        super().__init__(program, n_samples)
        self._solver, self._repeats = solver, repeats

    def evaluate(self, *inputs: Array) -> Array:
        """As `Tape.evaluate`, of the inputs but the solved joints."""
        own = inputs[0][: len(inputs[0]) // self._repeats]
        self._jacobian = self._solver.jacobian(own)
        return super().evaluate(*inputs, np.tile(self._solver.at(own).s, self._repeats).T)

    def pull(self) -> Array:
        """As `Tape.pull`, with what the solved joints do when the active ones move."""
        slopes = super().pull()
        n_solved, n = self._jacobian.shape[:2]
        through = slopes[-n_solved:].reshape(n_solved, self._repeats, -1)
        slopes[:n] += np.einsum("sjk,srk->jrk", self._jacobian, through).reshape(n, -1)
        return slopes[:-n_solved]


@functools.lru_cache(maxsize=4)
def loop_solver(robot: Robot) -> LoopSolver:
    """The solver of a robot's loops, which all that a search looks at share."""
    return LoopSolver(robot)


def make_tape(program: Program, n_samples: int, robot: Robot, repeats: int = 1) -> Tape:
    """A tape of a robot's program; see `ClosingTape` for `repeats`."""
    if robot.closure is None:
        return Tape(program, n_samples)
    return ClosingTape(program, n_samples, loop_solver(robot), repeats)
