"""How well the latest values explain what comes: errors of each joint, and how alike neighboring ones are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, Mask
from dynident.identifiability.base import BaseParameters
from dynident.identifiability.states import random_states
from dynident.online.history import OnlineSolution
from dynident.online.thresholds import THRESHOLDS

_HELD = 64  # instants summed up at once


class ErrorMonitor:
    """Running sums over the last seconds of motion.

    Args:
        n_joints: Joints.
        instants: Instants after which one counts 1/e.

    Attributes:
        scale: (n_joints,) standard deviation of a row of each joint, over the one that errors are summed up in.
    """

    def __init__(self, n_joints: int, instants: float) -> None:
        self.n = n_joints
        self.share = float(np.exp(-1.0 / max(instants, 1.0)))
        # Lines: squared errors, products of neighboring errors, squared torques, count; in weights.
        self._sums = np.zeros((4, n_joints))
        self._last = np.zeros(n_joints)
        self.scale = np.ones(n_joints)
        self._fresh = np.zeros((_HELD, 2, n_joints))  # not summed up yet: that is done for many at once
        self._count = 0

    def see(self, error: Array, tau: Array) -> None:
        """Errors and torques of one instant over `scale`, (n_joints,); zero for joints at rest."""
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
        n, errors, taus = len(errors), errors * self.scale, taus * self.scale
        fade = (self.share ** np.arange(n - 1, -1, -1))[:, None]
        before = np.vstack([self._last, errors[:-1]])
        fresh = (errors**2, errors * before, taus**2, taus != 0.0)
        self._sums *= self.share**n
        self._sums += np.array([np.sum(fade * x, axis=0) for x in fresh])
        self._last = errors[-1].copy()

    def rescale(self, scale: Array) -> None:
        """Errors come over another scale from now on."""
        self._sum_up()
        self.scale = scale

    def fade(self, share: float) -> None:
        """Let all that was seen count only so much from now on."""
        self._sum_up()
        self._sums *= share

    @property
    def mean_square(self) -> float:
        """Mean of all joints' squared errors in weights; zero before anything was seen."""
        sums = self.sums
        return float((sums[0] / self.scale**2).sum() / max(sums[3].sum(), 1e-300))

    def typical(self, rows: float) -> Array:
        """(n_joints,) root mean square error, of so many errors of size one beside those that were seen."""
        sums = self.sums
        return np.asarray(np.sqrt((rows + sums[0]) / (rows + sums[3])))

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
            return THRESHOLDS.most_inflation
        total = float((sums[0] / self.scale**2).sum())
        alike = float((sums[1] / self.scale**2).sum()) / total if total > 0.0 else 0.0
        alike = min(max(alike, 0.0), THRESHOLDS.most_alike)
        return (1.0 + alike) / (1.0 - alike)


# ----------------------------------------------------------------------------------------------------------------------
# Whether the motion so far supports the parameters, and if not, why.

_STATES = 60  # of motion at large
_SHOWN = 4  # names in a message
_REMEDY = "move more joints, through other poses and at changing velocity"


@dataclass(frozen=True)
class MotionVerdict:
    """Whether the motion supports the result.

    Attributes:
        enough: Whether it does.
        reason: Why not, and what to do; what it rests on where it does.
    """

    enough: bool
    reason: str


def torque_states(base: BaseParameters) -> Array:
    """(n_states, n_joints, n) rows of motion at large, on which the torque that parameters predict is evaluated."""
    return base.regressor(*random_states(base.robot, _STATES))


def assess_motion(
    base: BaseParameters, states: Array, found: OnlineSolution, rows: float, moved: Mask
) -> MotionVerdict:
    """Whether the motion so far supports the base parameters, by the torque that they predict on motion at large.

    Args:
        base: The base parameters.
        states: Rows by `torque_states`.
        found: The solution; what the data alone determines counts.
        rows: Equations so far.
        moved: (n_joints,) whether each joint has moved.
    """
    early = too_early(rows, base.n, moved, base.robot.joint_names)
    if early is not None:
        return early
    if found.rank < base.n:
        names = [name for name, known in zip(base.names, found.determined, strict=True) if not known]
        return MotionVerdict(False, f"the motion leaves {list_names(names)} open; {_REMEDY}")
    spread = np.sum((states @ found.data_covariance) * states, axis=(0, 2)) / _STATES
    size = np.mean((states @ found.values) ** 2, axis=0)
    share = np.sqrt(np.maximum(spread, 0.0) / np.maximum(size, 1e-300))
    worst, most = int(np.argmax(share)), 100.0 * THRESHOLDS.torque_share
    name, percent = base.robot.joint_names[worst], 100.0 * float(share[worst])
    if percent <= most:
        return MotionVerdict(True, f"torque is known within {percent:.2g} % on motion at large")
    # Parameters that make most of the standard deviation of the joint's torque.
    weight = np.sqrt(np.mean(states[:, worst] ** 2, axis=0)) * np.sqrt(np.maximum(np.diag(found.data_covariance), 0.0))
    weak = list_names([base.names[i] for i in np.argsort(-weight)[:2]])
    return MotionVerdict(
        False,
        f"torque of {name} would be uncertain by {percent:.0f} % on other motion (at most {most:.0f} %), above all by "
        f"{weak}; {_REMEDY}",
    )


def too_early(rows: float, unknowns: int, moved: Mask, names: tuple[str, ...]) -> MotionVerdict | None:
    """A verdict while there are too few rows; None when there are enough."""
    if rows == 0.0:
        return MotionVerdict(False, "no joint has moved so far; move the robot")
    if rows < THRESHOLDS.verdict_rows_per_unknown * unknowns:
        still = [name for name, own in zip(names, moved, strict=True) if not own]
        more = f"; {list_names(still)} not moved yet" if still else ""
        return MotionVerdict(False, f"{rows:.0f} equations in motion for {unknowns} unknowns{more}; go on moving")
    return None


def list_names(names: list[str]) -> str:
    """Some names, and how many more there are."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
