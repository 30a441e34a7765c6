"""What both stages share: the length of a swing, the error of a stage and what it found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dynident.arrays import Array, Mask, record
from dynident.experiments.oscillation.model import ParameterGroup
from dynident.experiments.oscillation.swings import Swing
from dynident.experiments.protocol import ExperimentError
from dynident.information.parameter_estimate import ParameterEstimate

_SHORTEST, _LONGEST = 2.0, 120.0  # [s]


@record
class StageResult:
    """What a stage found.

    Attributes:
        name: "gravity" or "inertia".
        search: How it was searched.
        groups: The groups.
        estimate: Their values; not determined where the swings do not show them.
        steps: Every swing.
        notes: Facts for people.
        warnings: Doubts.
        poses: (n_poses, n_moving) where it swung [rad or m].
    """

    name: str
    search: str
    groups: tuple[ParameterGroup, ...]
    estimate: ParameterEstimate
    steps: tuple[Swing, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    poses: Array

    @property
    def values(self) -> Array:
        """(n_groups,)."""
        return self.estimate.values

    @property
    def std(self) -> Array:
        """(n_groups,) standard deviations; infinite where the swings do not determine a group."""
        return self.estimate.std

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "stage": self.name,
            "search": self.search,
            "groups": [one.name for one in self.groups],
            "nominal": [one.nominal for one in self.groups],
            "poses": self.poses.tolist(),
            "notes": list(self.notes),
            "steps": [one.as_dict() for one in self.steps],
        }


def duration_for(square: float, periods: float, sample_time: float) -> float:
    """Time for so many periods of a squared frequency, within reason [s]."""
    length = periods * 2.0 * np.pi / np.sqrt(max(square, 1e-6))
    return float(np.clip(length, max(_SHORTEST, 50 * sample_time), _LONGEST))


def refuse(stage: str, swing: Swing, advice: str) -> ExperimentError:
    """The error of a stage that cannot go on."""
    return ExperimentError(f"{stage} stage, run {swing.run.label}: the machine {swing.why}; {advice}")


def estimate_groups(
    groups: Sequence[ParameterGroup], values: Array, covariance: Array, determined: Mask
) -> ParameterEstimate:
    """Values of groups (n_groups,) as an estimate."""
    names, units = tuple(x.name for x in groups), tuple(x.unit for x in groups)
    return ParameterEstimate(names, units, values, covariance, determined)
