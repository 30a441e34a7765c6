"""How well the latest values explain what comes: errors of each joint, and how alike neighbouring ones are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, Mask
from dynident.identifiability.base import BaseParameters
from dynident.identifiability.states import random_states
from dynident.online.history import Solved

_HELD = 64  # instants summed up at once
MOST_ALIKE = 0.98  # autocorrelation of neighbouring errors that is believed


class Watch:
    """Running sums over the last seconds of motion.

    Args:
        n_joints: Joints.
        instants: Instants after which one counts 1/e.
    """

    def __init__(self, n_joints: int, instants: float) -> None:
        self.n = n_joints
        self.share = float(np.exp(-1.0 / max(instants, 1.0)))
        # Lines: squared errors, products of neighbouring errors, squared torques, count; in weights.
        self._sums = np.zeros((4, n_joints))
        self._last = np.zeros(n_joints)
        self._fresh = np.zeros((_HELD, 2, n_joints))  # not summed up yet: that is done for many at once
        self._count = 0

    def see(self, error: Array, tau: Array) -> None:
        """Errors and torques of one instant in weights, (n_joints,); zero for joints at rest."""
        self._fresh[self._count, 0], self._fresh[self._count, 1] = error, tau
        self._count += 1
        if self._count == _HELD:
            self._sum_up()

    def _sum_up(self) -> None:
        if self._count:
            count, self._count = self._count, 0
            self.see_many(self._fresh[:count, 0], self._fresh[:count, 1])

    @property
    def sums(self) -> Array:
        """The sums with all that was seen."""
        self._sum_up()
        return self._sums

    def see_many(self, errors: Array, taus: Array) -> None:
        """Errors and torques of many instants, (n, n_joints)."""
        self._sum_up()
        n = len(errors)
        fade = (self.share ** np.arange(n - 1, -1, -1))[:, None]
        before = np.vstack([self._last, errors[:-1]])
        fresh = (errors**2, errors * before, taus**2, taus != 0.0)
        self._sums *= self.share**n
        self._sums += np.array([np.sum(fade * x, axis=0) for x in fresh])
        self._last = errors[-1].copy()

    def fade(self, share: float) -> None:
        """Let all that was seen count only so much from now on."""
        self._sum_up()
        self._sums *= share

    @property
    def mean_square(self) -> float:
        """Mean of all joints' squared errors in weights; zero before anything was seen."""
        sums = self.sums
        return float(sums[0].sum() / max(sums[3].sum(), 1e-300))

    def as_array(self) -> Array:
        """The sums and the last error as one array, for checkpoints."""
        return np.vstack([self.sums, self._last])

    def restore(self, array: Array) -> None:
        """Continue from what `as_array` gave."""
        self._sums, self._last, self._count = np.array(array[:-1]), np.array(array[-1]), 0

    @property
    def errors(self) -> Array:
        """(n_joints,) root mean square error in weights; NaN before anything was seen."""
        sums = self.sums
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.sqrt(sums[0] / sums[3]))

    @property
    def relative(self) -> Array:
        """(n_joints,) error over torque; NaN before anything was seen."""
        sums = self.sums
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.sqrt(sums[0] / sums[2]))

    @property
    def inflation(self) -> float:
        """Rows that weigh as much as one independent row, errors taken as autoregressive of first order.

        Before anything was seen, the most that is believed.
        """
        sums = self.sums
        if not sums[3].any():
            return (1.0 + MOST_ALIKE) / (1.0 - MOST_ALIKE)
        total = float(sums[0].sum())
        alike = float(sums[1].sum()) / total if total > 0.0 else 0.0
        alike = min(max(alike, 0.0), MOST_ALIKE)
        return (1.0 + alike) / (1.0 - alike)


# ----------------------------------------------------------------------------------------------------------------------
# Whether the motion so far supports the parameters, and if not, why.

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
