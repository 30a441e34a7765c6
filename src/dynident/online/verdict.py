"""Whether the motion so far supports the parameters, and if not, why."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.arrays import Mask
from dynident.identifiability.base import BaseParameters
from dynident.identifiability.states import random_states
from dynident.online.solve import Solved

TORQUE_SHARE = 0.1  # largest deviation of predicted torque, of the torque itself, over motion at large
LEAST_ROWS = 3.0  # per unknown
_STATES = 60  # of motion at large
_SHOWN = 4  # names in a message
_REMEDY = "move more joints, through other poses and at changing speed"


@dataclass(frozen=True)
class Verdict:
    """Whether the motion supports the result.

    Attributes:
        enough: Whether it does.
        reason: Why not, and what to do; what it rests on where it does.
    """

    enough: bool
    reason: str


class MotionVerdict:
    """Judges the base parameters by the torque they predict on motion at large.

    Args:
        base: The base parameters.
    """

    def __init__(self, base: BaseParameters) -> None:
        self.base = base
        self._states = base.regressor(*random_states(base.robot, _STATES))  # (n_states, n_joints, n)

    def judge(self, found: Solved, rows: float, moved: Mask) -> Verdict:
        """The verdict.

        Args:
            found: The solution; what the data alone says counts.
            rows: Equations so far.
            moved: (n_joints,) whether each joint has moved.
        """
        early = too_early(rows, self.base.n, moved, self.base.robot.joint_names)
        if early is not None:
            return early
        if found.rank < self.base.n:
            names = [name for name, known in zip(self.base.names, found.determined, strict=True) if not known]
            return Verdict(False, f"the motion leaves {listed(names)} open; {_REMEDY}")
        spread = np.sum((self._states @ found.data_covariance) * self._states, axis=(0, 2)) / _STATES
        size = np.mean((self._states @ found.values) ** 2, axis=0)
        share = np.sqrt(np.maximum(spread, 0.0) / np.maximum(size, 1e-300))
        worst = int(np.argmax(share))
        name, percent = self.base.robot.joint_names[worst], 100.0 * float(share[worst])
        if percent > 100.0 * TORQUE_SHARE:
            weak = self._weakest(found, worst)
            return Verdict(
                False,
                f"torque of {name} would be uncertain by {percent:.0f} % on other motion (at most "
                f"{100.0 * TORQUE_SHARE:.0f} %), above all by {listed(weak)}; {_REMEDY}",
            )
        return Verdict(True, f"torque is known within {percent:.2g} % on motion at large")

    def _weakest(self, found: Solved, joint: int) -> list[str]:
        """Parameters that make most of the deviation of a joint's torque."""
        columns = np.sqrt(np.mean(self._states[:, joint] ** 2, axis=0))
        weight = columns * np.sqrt(np.maximum(np.diag(found.data_covariance), 0.0))
        return [self.base.names[i] for i in np.argsort(-weight)[:2]]


def too_early(rows: float, unknowns: int, moved: Mask, names: tuple[str, ...]) -> Verdict | None:
    """A verdict while there are too few rows; None when there are enough."""
    if rows == 0.0:
        return Verdict(False, "no joint has moved so far; move the robot")
    if rows < LEAST_ROWS * unknowns:
        still = [name for name, own in zip(names, moved, strict=True) if not own]
        more = f"; {listed(still)} not moved yet" if still else ""
        return Verdict(False, f"{rows:.0f} equations in motion for {unknowns} unknowns{more}; go on moving")
    return None


def listed(names: list[str]) -> str:
    """Some names, and how many more there are."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
