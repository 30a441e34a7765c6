"""`oscillate`: weights, then inertias, of a machine from its natural oscillations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from numpy.typing import ArrayLike

from dynident.arrays import as_samples
from dynident.errors import InputError, UnknownNameError
from dynident.experiments.answer import ExperimentError, Quantity, answer, quantity_table
from dynident.experiments.bench import Bench
from dynident.experiments.oscillation.gravity_stage import gravity_stage
from dynident.experiments.oscillation.groups import SwingModel, swing_model
from dynident.experiments.oscillation.inertia_stage import inertia_stage
from dynident.experiments.oscillation.searches import creep, random_walk
from dynident.experiments.oscillation.stage import StageOptions, StageResult
from dynident.experiments.oscillation.starts import NoTopError
from dynident.plant.protocol import Plant

StageName = Literal["both", "gravity", "inertia"]
SearchName = Literal["extrapolate", "creep", "walk"]
STAGES = ("both", "gravity", "inertia")
SEARCHES = {"extrapolate": gravity_stage, "creep": creep, "walk": random_walk}


@dataclass(frozen=True)
class Oscillation:
    """What the natural oscillations of a machine told.

    Attributes:
        model: The model and its groups.
        stages: What each stage found, in order.
        truth: Value set of the simulated machine, to show beside; None where nobody knows.
    """

    model: SwingModel
    stages: tuple[StageResult, ...]
    truth: str | Mapping[str, float] | None = None
    known: bool = False

    @property
    def estimates(self) -> list[Quantity]:
        """Every number with its deviation."""
        found = []
        for stage in self.stages:
            true = self.model.true_values(stage.groups, self.truth) if self.known else None
            found += stage.quantities(true)
        return found

    @property
    def warnings(self) -> list[str]:
        """What a user should know."""
        return [warning for stage in self.stages for warning in stage.warnings]

    def as_dict(self) -> dict[str, Any]:
        """Plain data: estimates, warnings, stages with every swing."""
        stages = [stage.as_dict() for stage in self.stages]
        return answer(self.estimates, self.warnings, robot=self.model.robot.name, stages=stages)

    def table(self) -> str:
        """The numbers as text."""
        return quantity_table(self.estimates)


def oscillate(
    machine: Bench | Plant,
    *,
    stage: StageName = "both",
    search: SearchName = "extrapolate",
    nominal: str | Mapping[str, float] | None = None,
    options: StageOptions | None = None,
    pose: ArrayLike | None = None,
    kp: float = 100.0,
    set_points: Sequence[ArrayLike] | None = None,
) -> Oscillation:
    """Identify a machine through its natural oscillations.

    In the gravity stage only the model's weight, Coriolis and centrifugal torque are sent: over-estimates swing,
    under-estimates fall. In the inertia stage a proportional control is added: squared frequencies equal kp when the
    inertia is right. It estimates weights as well: with the gravity stage's result as prior, or alone, also where the
    weight of a joint has no slope that could swing (a slide, a vertical axis).

    Args:
        machine: A plant, or a bench with one.
        stage: Both, or one of them.
        search: Of the gravity stage: "extrapolate", or the paper's "creep" and "walk".
        nominal: What is known before, a value set or a mapping; default the robot's own values.
        options: Over-estimate, amplitude, bounds and lengths of the runs.
        pose: (n_moving,) where to look for the pose in which the weight stands upright [rad or m].
        kp: Gain of the inertia stage [1/s²].
        set_points: Of the inertia stage, (n_moving,) each [rad or m]; default poses that tell most.

    Raises:
        ExperimentError: When the machine cannot be swung; what was recorded is on the bench.

    References:
        Jamisola, Dadios, Ang: Dynamics parameters identification of rigid-body manipulators through natural
        oscillations.
    """
    if stage not in STAGES:
        raise UnknownNameError("stage", str(stage), STAGES)
    if search not in SEARCHES:
        raise UnknownNameError("search", str(search), SEARCHES)
    bench = machine if isinstance(machine, Bench) else Bench(machine)
    robot = bench.robot
    if robot.closure is not None:
        raise InputError(f"robot {robot.name}: its loops are closed numerically, for which this is not offered")
    model = swing_model(robot, nominal)
    where = None if pose is None else as_samples(pose, "pose", robot.joint_names, 1)[0]
    points = None if set_points is None else [as_samples(x, "set-point", robot.joint_names, 1)[0] for x in set_points]
    found: list[StageResult] = []
    skipped = ""
    if stage != "inertia" and model.gravity:
        try:
            found.append(SEARCHES[search](bench, model, options, pose=where))
        except NoTopError as error:
            if stage == "gravity":
                raise
            skipped = str(error)
    elif stage == "gravity":
        raise InputError(f"robot {robot.name}: gravity acts on none of its joints; use stage='inertia'")
    if stage != "gravity":
        weights = found[0] if found else None
        try:
            last = inertia_stage(bench, model, options, weights=weights, kp=kp, set_points=points)
        except ExperimentError as error:
            if not skipped:
                raise
            raise ExperimentError(f"{skipped}; here it did not go on: {error}") from None
        more = (f"gravity stage left out, the inertia stage found the weights: {skipped}",) if skipped else ()
        found.append(replace(last, warnings=(*more, *last.warnings)))
    return Oscillation(model, tuple(found))
