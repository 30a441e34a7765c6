"""What sequential estimation found: stage by stage, and all together in the robot's base parameters."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, Mask, ReadOnlyDict, frozen, place_of
from dynident.estimate.prediction import TorqueModel
from dynident.identifiability.base import BaseParameters
from dynident.information.parameter_estimate import std_text, text_table
from dynident.robot.model import Robot


@dataclass(frozen=True, eq=False)
class Stage:
    """What one experiment, or one joint's torque, added.

    Attributes:
        label: Where its data came from.
        outputs: Joints whose torque was used.
        locked: Position of each joint that was held, by variable [rad or m].
        names: What it identified: base parameters, or combinations of them written out.
        values: (m,) their values.
        std: (m,) standard deviations, with those of everything identified before carried along.
        own_std: (m,) standard deviations if what was known before were exact.
        rank: How many there are.
        condition: Condition number of the stage's own part of the data, with scaled columns.
        sigma: (n_outputs,) residual deviations, with what was known held [N·m or N].
        n_rows: Equations used.
        determined: Base parameters that are known by themselves since this stage.
        left_open: Base parameters that the outputs feel when all joints move and that are not known yet.
        note: The same in words.
    """

    label: str
    outputs: tuple[str, ...]
    locked: Mapping[str, float]
    names: tuple[str, ...]
    values: Array
    std: Array
    own_std: Array
    rank: int
    condition: float
    sigma: Array
    n_rows: float
    determined: tuple[str, ...]
    left_open: tuple[str, ...]
    note: str

    def __post_init__(self) -> None:
        for name in ("values", "std", "own_std", "sigma"):
            object.__setattr__(self, name, frozen(getattr(self, name)))
        object.__setattr__(self, "locked", ReadOnlyDict(self.locked))

    def __getitem__(self, name: str) -> float:
        """Value of what the stage identified, by name."""
        return float(self.values[place_of(name, self.names, f"parameter of stage {self.label}")])


@dataclass(frozen=True, eq=False)
class SequentialResult:
    """Base parameters of a robot, identified from tip to base.

    Attributes:
        base: What the parameters are.
        stages: In the order in which they were identified.
        nominal: (n,) base values that corrections were estimated around; zero when none were given.
        beta: (n,) values. A combination that could not be taken apart stands on its first parameter; the others, and
            those that no stage feels, have their nominal values.
        covariance: (n, n), for white residuals that are independent between stages.
        determined: (n,) whether each parameter is known by itself.
        around_nominal: Whether nominal values were given.
    """

    base: BaseParameters
    stages: tuple[Stage, ...]
    nominal: Array
    beta: Array
    covariance: Array
    determined: Mask
    around_nominal: bool

    def __post_init__(self) -> None:
        for name in ("nominal", "beta", "covariance"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.base.robot

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the base parameters; those of unique ones are the standard names."""
        return self.base.names

    @property
    def correction(self) -> Array:
        """(n,) what the data added to the nominal values."""
        return self.beta - self.nominal

    @property
    def std(self) -> Array:
        """(n,) standard deviations; infinite where a parameter is not known by itself."""
        return np.where(self.determined, np.sqrt(np.maximum(np.diag(self.covariance), 0.0)), np.inf)

    @property
    def rank(self) -> int:
        """Combinations of base parameters that all stages together determine."""
        return sum(stage.rank for stage in self.stages)

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Base parameters that are not known by themselves."""
        return tuple(name for name, known in zip(self.names, self.determined, strict=True) if not known)

    @property
    def notes(self) -> tuple[str, ...]:
        """What each stage did, in words."""
        return tuple(f"{stage.label}: {stage.note}" for stage in self.stages)

    @functools.cached_property
    def model(self) -> TorqueModel:
        """Standard parameters that predict the torque of the result; the dependent ones are zero in it."""
        chi = self.base.standard_values(self.beta, "regrouped zero")
        return TorqueModel(self.robot, self.base.terms, frozen(chi))

    def __getitem__(self, name: str) -> float:
        """Value of a base parameter by name."""
        return float(self.beta[place_of(name, self.names, "base parameter")])

    def __repr__(self) -> str:
        """A line, not the numbers."""
        found = f"{int(self.determined.sum())} of {len(self.names)} base parameters"
        return f"SequentialResult({self.robot.name}: {found} in {len(self.stages)} stages)"

    def table(self) -> str:
        """The parameters as text: name, stage, nominal and correction (where given), value, deviation, meaning."""
        stage_of = {name.split()[0]: f"{one.label} (combined)" for one in self.stages for name in one.names}
        stage_of |= {name: one.label for one in self.stages for name in one.determined}
        nominal = ("nominal", "correction") if self.around_nominal else ()
        head = ("parameter", "stage", *nominal, "value", "std", "unit", "stands for")
        lines = []
        for i, name in enumerate(self.names):
            around = (f"{self.nominal[i]:.5g}", f"{self.correction[i]:.5g}") if nominal else ()
            numbers = (*around, f"{self.beta[i]:.5g}", std_text(self.std[i]))
            lines.append((name, stage_of.get(name, "none"), *numbers, self.base.units[i], self.base.expressions[i]))
        return text_table(head, lines, ("nominal", "correction", "value", "std"))
