"""What both stages share: their options, their steps and what they found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dynident.arrays import Array, record
from dynident.experiments.oscillation.model import ParameterGroup
from dynident.experiments.oscillation.swings import Swing
from dynident.experiments.protocol import ExperimentError
from dynident.information.parameter_estimate import ParameterEstimate

_SHORTEST, _LONGEST = 2.0, 120.0  # [s]


@record
class SwingStep:
    """One swing of a search, for the tables and the report.

    Attributes:
        label: Name of its run.
        sent: Value of each group that was sent.
        squares: Squared frequencies [1/s²], empty of a swing that did not.
        state: What became of it.
        sample_time: [s] of `curve`.
        curve: (n, n_moving) its positions, thinned.
    """

    label: str
    sent: Array
    squares: Array
    state: str
    sample_time: float
    curve: Array

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "run": self.label,
            "sent": self.sent.tolist(),
            "squared_frequencies": self.squares.tolist(),
            "state": self.state,
        }


def step_of(swing: Swing, sent: Array) -> SwingStep:
    """A swing as a step of a search."""
    run = swing.run
    every = max(1, len(run.time) // 600)
    squares = np.zeros(0) if swing.modes is None else swing.modes.square
    dt = float(run.time[1] - run.time[0]) * every if len(run.time) > 1 else 0.0
    return SwingStep(run.label, sent, squares, swing.state, dt, run.q[::every])


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
    steps: tuple[SwingStep, ...]
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
    groups: Sequence[ParameterGroup], values: Array, std: Array, covariance: Array | None = None
) -> ParameterEstimate:
    """Values of groups with standard deviations (n_groups,), infinite where not determined."""
    known = np.isfinite(std)
    spread = np.diag(np.where(known, std, 0.0) ** 2) if covariance is None else covariance
    return ParameterEstimate(tuple(x.name for x in groups), tuple(x.unit for x in groups), values, spread, known)
