r"""When a payload changed: the instant that best explains the rows about it, once both payloads are known.

A change at t0 enters the rows through the filters. With S the response of the torque's low-pass to a step, averaged
over the box of a row, chi_0 the unknowns before and chi_1 those after, the rows about it are

.. math:: y(t) = W(t)\,(\chi_0 + S(t - t_0)\,(\chi_1 - \chi_0)) + e(t)

so t0 is where the sum of squares of e is least, and possible instants are those at which it is not much larger. Where
the robot rested, all instants of the rest are as good.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.online.thresholds import THRESHOLDS

_MOST_TRIED = 2000  # instants
Response = Callable[[Array], Array]  # share of a step that filtered torque shows so long after it [s]


def at_once(after: Array) -> Array:
    """The response of no filter at all."""
    return np.asarray(after >= 0.0, dtype=np.float64)


class RecentRows:
    """The last rows, box by box.

    Args:
        k: Unknowns.
        n_joints: Joints.
        boxes: How many are kept, at least.
    """

    def __init__(self, k: int, n_joints: int, boxes: int) -> None:
        self.k, self.n, self.boxes = k, n_joints, boxes
        self._held: deque[tuple[Array, Array]] = deque()
        self._count = 0

    def add(self, time: Array, rows: Array) -> None:
        """More boxes: ends (m,) [s], and rows (k + 1, m, n_joints) with the torque last."""
        self._held.append((np.array(time), np.array(rows)))
        self._count += len(time)
        while self._count - len(self._held[0][0]) >= self.boxes:
            self._count -= len(self._held.popleft()[0])

    def weigh(self, weights: Array) -> None:
        """Weigh all rows again, by (n_joints,) factors."""
        self._held = deque((time, rows * weights) for time, rows in self._held)

    def all(self) -> tuple[Array, Array]:
        """Ends of the boxes (m,) and their rows (k + 1, m, n_joints)."""
        times = [np.zeros(0), *(time for time, _ in self._held)]
        rows = [np.zeros((self.k + 1, 0, self.n)), *(rows for _, rows in self._held)]
        return np.concatenate(times), np.concatenate(rows, axis=1)

    def as_arrays(self) -> dict[str, Any]:
        """Plain arrays, for checkpoints."""
        time, rows = self.all()
        return {"time": time, "rows": rows}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Continue from what `as_arrays` gave."""
        self._held.clear()
        self._count = 0
        if len(arrays["time"]):
            self.add(arrays["time"], arrays["rows"])


def possible_instants(
    recent: RecentRows,
    values: tuple[Array, Array],
    span: tuple[float, float],
    variance: float,
    response: Response,
    offsets: Array,
) -> tuple[float, float, float] | None:
    """The most likely instant of a change, the earliest and the latest that are possible; None if rows leave it open.

    Args:
        recent: Rows before and after.
        values: (k,) unknowns before, and after.
        span: Where to look [s].
        variance: Of a row, times the rows that weigh as much as one independent row.
        response: Of the filters.
        offsets: (box,) instants of a box against its end [s], the sample time apart.
    """
    time, rows = recent.all()
    step = max(float(np.ptp(offsets)) / max(len(offsets) - 1, 1), (span[1] - span[0]) / _MOST_TRIED, 1e-9)
    tried = np.arange(span[0], span[1] + step, step)
    before, after = (np.tensordot(own, rows[:-1], 1) for own in values)  # (m, n_joints)
    change = after - before
    slope, bend = np.sum((rows[-1] - before) * change, axis=1), np.sum(change**2, axis=1)
    shares = np.mean([response(time[None] + offset - tried[:, None]) for offset in offsets], axis=0)  # (n_tried, m)
    costs = shares**2 @ bend - 2.0 * shares @ slope
    best = int(np.argmin(costs))
    possible = np.flatnonzero(costs <= costs[best] + THRESHOLDS.possible_variances * variance)
    first, last = int(possible[0]), int(possible[-1])
    if first == 0 or last == len(tried) - 1:
        return None
    margin = (
        2.0 * step
    )  # a sample shows what happened since the one before, and torque that is held belongs to its middle
    return float(tried[best]), float(tried[first]) - margin, float(tried[last]) + margin
