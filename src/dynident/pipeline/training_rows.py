"""`TrainingRows`: equations of the training logs over any base parameters; the pipeline's one object with state."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from dynident.arrays import Array
from dynident.errors import InputError
from dynident.identifiability.base import BaseParameters
from dynident.information.information import Information
from dynident.pipeline.factor_cache import factor_of_log
from dynident.signals.observe import Observations
from dynident.signals.rows import ObservedRows

LEAST_EQUATIONS = 5  # per parameter: with fewer, the fit follows the noise
Progress = Callable[[str, int, int], None]  # what is being done, steps done, steps in all


class TrainingRows:
    """Equations of the training logs, filtered in one way.

    Args:
        observations: The training logs.
        store: Folder for the factor of each finished log; None for none.
        progress: Called with what is being done, and how much of it is done.
    """

    def __init__(self, observations: tuple[Observations, ...], store: Path | None, progress: Progress) -> None:
        self.observations, self._store, self._progress = observations, store, progress

    def rows(self, base: BaseParameters, point: Array | None = None, seconds: float = math.inf) -> ObservedRows:
        """The equations themselves, to be gone through again.

        Args:
            base: Base parameters.
            point: (10 n_links,) what some terms are linearized around; None without such terms.
            seconds: Length of the part of each log that is used [s].
        """
        return ObservedRows(self.observations, base, point, seconds)

    def information(self, base: BaseParameters, point: Array | None = None, seconds: float = math.inf) -> Information:
        """Their factors; see `rows`.

        Raises:
            InputError: When all rows together give too few equations in motion for the parameters.
        """
        whole = math.isinf(seconds)
        parts = []
        for number, one in enumerate(self.observations):
            self._progress("gathering equations", number, len(self.observations))
            source = ObservedRows((one,), base, point, seconds)
            parts.append(factor_of_log(source, self._store if whole else None))
        self._progress("gathering equations", len(self.observations), len(self.observations))
        found = sum(parts[1:], start=parts[0])
        if whole and found.n_rows < LEAST_EQUATIONS * base.n:
            names = ", ".join(one.log.label for one in self.observations)
            raise InputError(
                f"{names}: gives {found.n_rows:g} equations in motion for {base.n} parameters; at least "
                f"{LEAST_EQUATIONS} per parameter are needed: use longer logs or fewer terms"
            )
        return found
