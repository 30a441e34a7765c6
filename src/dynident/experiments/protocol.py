"""`Experiment`: plan, run, analyze; `ExperimentResult`: what every experiment finds, as text and as JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np

from dynident.arrays import Array, record
from dynident.errors import UnknownNameError
from dynident.experiments.bench import Bench, Bounds, ExperimentError as ExperimentError
from dynident.information.parameter_estimate import ParameterEstimate, std_text, text_table
from dynident.plant.protocol import Plant
from dynident.robot.model import Robot

PlanT = TypeVar("PlanT")
DataT = TypeVar("DataT")
ResultT = TypeVar("ResultT", bound="ExperimentResult")
Values = str | Mapping[str, float] | None  # a value set of a robot, or values by name


class Quantity(NamedTuple):
    """A parameter that an experiment found, a row of its table.

    Attributes:
        name: What it is, such as ``ZZ3`` or ``inertia``.
        value: Its value.
        std: Standard deviation; infinite where the data does not determine it.
        unit: Its unit.
        true: What the machine really has, where a simulation knows it; None elsewhere.
    """

    name: str
    value: float
    std: float
    unit: str
    true: float | None = None

    def as_dict(self) -> dict[str, float | str | None]:
        """Plain data; a standard deviation that is not known is None."""
        row = self._asdict() | {"std": None if self.std == float("inf") else self.std}
        return {key: value for key, value in row.items() if key != "true" or value is not None}


@record
class ExperimentResult:
    """What an experiment found; each experiment adds how.

    Attributes:
        robot: The robot.
        estimate: The parameters.
        true: Values of a simulated machine, by name; what is missing is not known.
        notes: What was decided on the way.
        warnings: What a reader should know.
    """

    robot: Robot
    estimate: ParameterEstimate
    true: Mapping[str, float]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.estimate.names

    @property
    def values(self) -> Array:
        """(n,)."""
        return self.estimate.values

    @property
    def std(self) -> Array:
        """(n,) standard deviations; infinite where the runs do not determine a parameter."""
        return self.estimate.std

    def __getitem__(self, name: str) -> Any:
        """Value of a parameter by name."""
        return self.estimate[name]

    @property
    def estimates(self) -> tuple[Quantity, ...]:
        """The parameters with their standard deviations, and their true values where a simulation knows them."""
        own = self.estimate
        rows = zip(own.names, own.values.tolist(), own.std.tolist(), own.units, strict=True)
        return tuple(Quantity(*row, self.true.get(row[0])) for row in rows)

    def quantity(self, name: str) -> Quantity:
        """A parameter by name."""
        found = {one.name: one for one in self.estimates}
        if name not in found:
            raise UnknownNameError("parameter", name, found)
        return found[name]

    def true_values(self, values: Values) -> Mapping[str, float]:
        """What a set of standard values says of the parameters of this experiment."""
        raise NotImplementedError

    def beside(self, values: Values) -> Self:
        """The same with the values that a simulated machine has."""
        return replace(self, true=self.true_values(values))

    def table(self) -> str:
        """The parameters as text: name, value, standard deviation, the true value where it is known, unit."""
        known = any(one.true is not None for one in self.estimates)
        head = ("parameter", "value", "std", *(("true",) if known else ()), "unit")
        lines = []
        for one in self.estimates:
            true = () if not known else ("" if one.true is None else f"{one.true:.5g}",)
            lines.append((one.name, f"{one.value:.5g}", std_text(one.std), *true, one.unit))
        return text_table(head, lines, ("value", "std", "true"))

    def details(self) -> dict[str, Any]:
        """What else the JSON object has."""
        return {}

    def as_dict(self) -> dict[str, Any]:
        """The JSON object of the verb: estimates, warnings, robot, and what this experiment adds."""
        estimates = [one.as_dict() for one in self.estimates]
        return {"estimates": estimates, "warnings": list(self.warnings), "robot": self.robot.name, **self.details()}


class Experiment(ABC, Generic[PlanT, DataT, ResultT]):
    """A test of a robot, made once: plan it, run it on a machine, analyze what was recorded.

    Args:
        robot: The robot.

    Attributes:
        notes: What is decided on the way.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.notes: list[str] = []

    @abstractmethod
    def plan(self, bounds: Bounds) -> PlanT:
        """What to do, within bounds; nothing moves."""

    @abstractmethod
    def run(self, bench: Bench, plan: PlanT) -> DataT:
        """Do it."""

    @abstractmethod
    def analyze(self, data: DataT) -> ResultT:
        """What the recordings say."""

    def perform(self, machine: Bench | Plant) -> ResultT:
        """Plan, run and analyze on a machine.

        Args:
            machine: A plant, or a bench with one, its bounds and the folder for its runs.
        """
        bench = machine if isinstance(machine, Bench) else Bench(machine)
        return self.analyze(self.run(bench, self.plan(bench.bounds)))


def merge_estimates(parts: Sequence[ParameterEstimate]) -> ParameterEstimate:
    """Estimates of separate tests as one, without covariance between them."""
    sizes = [len(one.names) for one in parts]
    covariance = np.zeros((sum(sizes), sum(sizes)))
    for end, one in zip(np.cumsum(sizes), parts, strict=True):
        own = slice(int(end) - len(one.names), int(end))
        covariance[own, own] = one.covariance
    return ParameterEstimate(
        tuple(name for one in parts for name in one.names),
        tuple(unit for one in parts for unit in one.units),
        np.concatenate([np.zeros(0), *(one.values for one in parts)]),
        covariance,
        np.concatenate([np.zeros(0, dtype=bool), *(one.determined for one in parts)]),
    )
