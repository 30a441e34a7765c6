"""Whether loops can be assembled and moved as described, asked once when a robot is read."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from dynident.arrays import Array
from dynident.robot.algebra import snapped
from dynident.robot.loops import Placement, is_assembled, loop_rows, loop_size
from dynident.robot.model import Closure, Robot
from dynident.schema import LocatedReader

LARGEST_STEP = 0.2  # [rad, or sizes of the loop] of Newton's method from a guess
_MOST_STEPS = 60
CLOSED = 1e-9  # residual, in sizes of the loop or rad
SINGULAR = 1e-5  # sine of the angle between what solved joints do to the loops
_NEAR = 0.5  # [rad, or sizes of the loop] from the branch as written to where the loop closes
_NUDGE = 1e-3  # [rad or sizes of the loop] by which active joints are moved


def checked_closure(reader: LocatedReader, robot: Robot, closure: Closure) -> Closure:
    """The closure with its branch where the loops close.

    Raises:
        RobotFileError: When they do not close near the branch, do not determine the joints they are solved for, or
            hold active joints that should move independently.
    """
    words = "loop " + ", ".join(loop.name for loop in closure.loops)
    problem = _Problem(robot, closure)
    solved, gap = problem.closed(closure.reference, closure.branch)
    found = ", ".join(f"{robot.joints[j].variable} = {x:.4g}" for j, x in zip(closure.solved, solved, strict=True))
    if not gap <= CLOSED or not problem.assembled(closure.reference, solved):
        raise reader.error(
            words,
            f"does not close near its branch: a gap of {gap:.3g} (in rad, or in sizes of the loop) remains at {found}; "
            "check lengths and signs, or give a branch at a pose that the machine can take",
        )
    moved = np.abs(solved - closure.branch) / problem.units
    if moved.max() > _NEAR:
        raise reader.error(
            words, f"its branch leads to {found}, far from what is written; write these if they are meant"
        )
    _check_ranks(reader, problem, closure.reference, solved, words)
    # Rounded, so that the start of every calculation is the same on every machine.
    return dataclasses.replace(closure, branch=np.round(solved, 9))


def _check_ranks(reader: LocatedReader, problem: _Problem, q: Array, solved: Array, words: str) -> None:
    robot, closure = problem.robot, problem.closure
    _, by_active, own = problem.rows(q, solved)
    left, sizes, right = np.linalg.svd(own * problem.units)
    if np.count_nonzero(sizes > SINGULAR) < len(solved):
        name = robot.joints[closure.solved[int(np.argmax(np.abs(right[-1])))]].variable
        raise reader.error(
            words,
            f"does not determine {name} at its branch; solve for fewer joints, or give a pose that is not singular",
        )
    held = left[:, len(solved) :].T @ by_active
    for column, joint in enumerate(robot.active):
        if np.abs(held[:, column]).max(initial=0.0) > 1e-6:
            name = robot.joints[joint].variable
            raise reader.error(words, f"holds {name} fast; name more passive joints under 'solve', or check the axes")
    if not np.abs(by_active).max() > 0.0:
        raise reader.error(words, "no active joint moves it; check the links of its frames")
    for direction in np.eye(len(q)) * _NUDGE:
        _, gap = problem.closed(q + direction, solved)
        if not gap <= CLOSED:
            raise reader.error(words, f"opens by {gap:.3g} when joints move; check that its axes are parallel or meet")


class _Problem:
    """The loops of a robot as functions of plain numbers."""

    def __init__(self, robot: Robot, closure: Closure) -> None:
        self.robot, self.closure = robot, closure
        size = max(loop_size(loop, robot.joints) for loop in closure.loops)
        self.units = np.array([size if robot.joints[j].kind == "prismatic" else 1.0 for j in closure.solved])

    def _placed(self, q: Array, solved: Array) -> list[Placement]:
        tree = self.robot.follow @ q + self.closure.follow @ solved + self.robot.follow_offset
        return [
            Placement(1.0, 0.0, float(x))
            if joint.kind == "prismatic"
            else Placement(snapped(math.cos(x)), snapped(math.sin(x)), 0.0)
            for joint, x in zip(self.robot.joints, tree, strict=True)
        ]

    def assembled(self, q: Array, solved: Array) -> bool:
        """Whether all loops have their frames the right way round."""
        placed = self._placed(q, solved)
        return all(is_assembled(loop, self.robot.joints, placed) for loop in self.closure.loops)

    def rows(self, q: Array, solved: Array) -> tuple[Array, Array, Array]:
        """Residual (n_rows,), and its derivatives by active and by solved joints, (n_rows, n) each."""
        placed = self._placed(q, solved)
        residual: list[float] = []
        jacobian = []
        for loop in self.closure.loops:
            rows = loop_rows(loop, self.robot.joints, placed)
            block = np.zeros((len(rows.residual), len(self.robot.joints)))
            for joint, derivative in rows.jacobian.items():
                block[:, joint] = derivative
            residual += rows.residual
            jacobian.append(block)
        by_tree = np.concatenate(jacobian)
        return np.array(residual), by_tree @ self.robot.follow, by_tree @ self.closure.follow

    def closed(self, q: Array, solved: Array) -> tuple[Array, float]:
        """Solved positions at which the loops close, by Newton's method with short steps, and the gap that is left."""
        for _ in range(_MOST_STEPS):
            residual, _, own = self.rows(q, solved)
            step = np.linalg.lstsq(own * self.units, -residual, rcond=1e-9)[0]
            longest = float(np.abs(step).max())
            solved = solved + step * self.units * min(1.0, LARGEST_STEP / max(longest, 1e-300))
            if longest < 1e-14:
                break
        return solved, float(np.abs(self.rows(q, solved)[0]).max())
