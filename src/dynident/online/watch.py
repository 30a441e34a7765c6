"""How well the latest values explain what comes: errors of each joint, and how alike neighbouring ones are."""

from __future__ import annotations

import numpy as np

from dynident.arrays import Array

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
