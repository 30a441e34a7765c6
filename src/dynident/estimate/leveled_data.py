"""Training data without the levels of viscous friction: factors, equations, and what uncertain levels add."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, replace

import numpy as np

from dynident.arrays import Array, on_one_thread
from dynident.estimate.estimator import Estimator
from dynident.estimate.friction_levels import FrictionLevels
from dynident.identifiability.base_regressor import RegressorBlock, RowSource
from dynident.identifiability.regrouping import Regrouping
from dynident.information.information import Information


@dataclass(frozen=True, eq=False)
class FoundLevels:
    """Levels, with all of their covariance.

    Attributes:
        levels: The levels.
        covariance: (n_logs * n, n_logs * n), log after log, in the units of the coefficients.
    """

    levels: FrictionLevels
    covariance: Array

    def taken_out(self, information: Information) -> Information:
        """The same data with the torque of each log's level on the right-hand side."""
        names = information.names
        parts = [
            information.select([i]).around(self.levels.of_log(segment.label, names)).segments[0]
            for i, segment in enumerate(information.segments)
        ]
        return replace(information, segments=tuple(parts))

    @on_one_thread
    def covariance_of(self, information: Information, fitted: Estimator, kept: list[int]) -> Array:
        """What uncertain levels add to the covariance of parameters that were fitted, (n, n).

        Args:
            information: What they were fitted to.
            fitted: The estimator.
            kept: Places of the parameters among those of the data.
        """
        n, own = information.coordinates.n, self.levels
        viscous = [information.names.index(name) for name in own.names]
        crossed = np.zeros((len(kept), len(own.logs) * len(viscous)))
        for segment in information.segments:
            first = own.logs.index(segment.label) * len(viscous)
            for factor, weight in zip(segment.factors, fitted.channel_weights_, strict=True):
                rows = factor.dense(n)
                crossed[:, first : first + len(viscous)] += weight * (rows[:, kept].T @ rows[:, viscous])
        D = -fitted.inverse_ @ crossed
        return np.asarray(D @ self.covariance @ D.T)


@dataclass(frozen=True, eq=False)
class LeveledRows:
    """Equations with the torque of each log's level taken out.

    Attributes:
        source: The equations as they are.
        levels: The levels.
    """

    source: RowSource
    levels: FrictionLevels

    @property
    def coordinates(self) -> Regrouping:
        """The base parameters."""
        return self.source.coordinates

    @property
    def definitions(self) -> tuple[str, ...]:
        """What each standard column means."""
        return self.source.definitions

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return self.source.channels

    def of_logs(self, labels: Container[str]) -> LeveledRows:
        """The rows of some logs alone."""
        return replace(self, source=self.source.of_logs(labels))  # type: ignore[attr-defined]

    def blocks(self) -> Iterator[RegressorBlock]:
        """All rows, in order."""
        names = self.coordinates.names
        for block in self.source.blocks():
            shift = self.levels.of_log(block.log, names)
            lines = []
            for columns, part in zip(block.columns, block.columns_first, strict=True):
                moved = np.array(part)
                moved[len(columns) :] -= shift[list(columns)] @ part[: len(columns)]
                lines.append(moved)
            yield replace(block, columns_first=tuple(lines))
