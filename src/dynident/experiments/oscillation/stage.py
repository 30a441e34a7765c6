"""What both stages share: their options, their steps and what they found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dynident.arrays import Array, frozen
from dynident.experiments.oscillation.model import Group
from dynident.experiments.oscillation.swings import Swing
from dynident.experiments.protocol import ExperimentError, Quantity

_SHORTEST, _LONGEST = 2.0, 120.0  # [s]


@dataclass(frozen=True)
class Step:
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

    def __post_init__(self) -> None:
        for name in ("sent", "squares", "curve"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "run": self.label,
            "sent": self.sent.tolist(),
            "squared_frequencies": self.squares.tolist(),
            "state": self.state,
        }


def step_of(swing: Swing, sent: Array) -> Step:
    """A swing as a step of a search."""
    run = swing.run
    every = max(1, len(run.time) // 600)
    squares = np.zeros(0) if swing.modes is None else swing.modes.square
    dt = float(run.time[1] - run.time[0]) * every if len(run.time) > 1 else 0.0
    return Step(run.label, sent, squares, swing.state, dt, run.q[::every])


@dataclass(frozen=True)
class StageResult:
    """What a stage found.

    Attributes:
        name: "gravity" or "inertia".
        search: How it was searched.
        groups: The groups.
        values: (n_groups,) their values.
        std: (n_groups,) deviations; infinite where the swings do not tell.
        steps: Every swing.
        notes: Facts for people.
        warnings: Doubts.
        poses: (n_poses, n_moving) where it swung [rad or m].
        covariance: (n_groups, n_groups) of the values, as far as they are determined; default from `std` alone.
    """

    name: str
    search: str
    groups: tuple[Group, ...]
    values: Array
    std: Array
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    poses: Array = field(default_factory=lambda: np.zeros((0, 0)))
    covariance: Array = field(default_factory=lambda: np.zeros((0, 0)))

    def __post_init__(self) -> None:
        if not self.covariance.size:
            alone = np.diag(np.where(np.isfinite(self.std), self.std, 0.0) ** 2)
            object.__setattr__(self, "covariance", alone)
        for name in ("values", "std", "poses", "covariance"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def quantities(self, true: Sequence[float | None] | None = None) -> list[Quantity]:
        """The estimates, with the truth beside where it is known."""
        known = [None] * len(self.groups) if true is None else list(true)
        rows = zip(self.groups, self.values.tolist(), self.std.tolist(), known, strict=True)
        return [Quantity(group.name, value, std, group.unit, truth) for group, value, std, truth in rows]

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
