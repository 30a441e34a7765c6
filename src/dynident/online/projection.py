"""Physical parameters at a lower rate, off the sample path."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.identifiability.base import BaseParameters
from dynident.identifiability.base_regressor import BaseRegressor
from dynident.information.factor import Factor, absorb
from dynident.information.information import Information, Segment
from dynident.online.history import StretchRows
from dynident.physical.fitting import physical_fit
from dynident.physical.result import PhysicalParameters


def as_information(base: BaseParameters, part: StretchRows, lean: Array | None = None) -> Information:
    """Rows as an `Information` of one channel, all joints stacked with their fixed weights.

    Args:
        base: The base parameters that the rows are over.
        part: The rows.
        lean: (m, n + 1) weighted rows that hold values near known ones, to be counted with them.
    """
    R, rows = part.R, part.rows
    if lean is not None and len(lean):
        R, rows = R.copy(), rows + len(lean)
        absorb(R, np.array(lean.T, order="C"))
    regressor = BaseRegressor.of(base.robot, base.terms)
    factor = Factor(tuple(range(base.n)), np.triu(R), rows)
    return Information(base, regressor.definitions, ("joints",), (Segment("on-line", (factor,)),))


class Projector:
    """Projects now and then in a thread of its own; while one projection runs, others are not begun.

    Args:
        base: The base parameters.
        period: Time between projections [s].
    """

    def __init__(self, base: BaseParameters, period: float) -> None:
        self.base, self.period = base, period
        self.latest: PhysicalParameters | None = None
        self.time: float | None = None
        self.problem: str | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="physical")
        self._running: Future[PhysicalParameters] | None = None
        self._begun = -np.inf

    def due(self, time: float) -> bool:
        """Whether it is time for a projection and none is running."""
        self.collect()
        return self._running is None and time - self._begun >= self.period

    def begin(self, time: float, data: Information) -> None:
        """Begin a projection."""
        self._begun = time
        self._running = self._pool.submit(physical_fit, data, self.base)

    def collect(self, wait: bool = False) -> None:
        """Take what has been finished, or wait for it."""
        if self._running is None or not (wait or self._running.done()):
            return
        try:
            self.latest, self.time, self.problem = self._running.result(), self._begun, None
        except DynidentError as error:  # too little data so far, or no solver installed: the estimate goes on
            self.problem = str(error)
        self._running = None

    def close(self) -> None:
        """End the thread."""
        self._pool.shutdown(wait=True, cancel_futures=True)
