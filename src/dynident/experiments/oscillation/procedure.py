"""The searches of the paper: creeping down from above until the arm falls, and a descent by random steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dynident.arrays import Array, as_samples, record
from dynident.errors import InputError
from dynident.experiments.bench import Bench, Bounds
from dynident.experiments.options import OscillationOptions
from dynident.experiments.oscillation.gravity_stage import ADVICE, GravitySearch, run_gravity_stage
from dynident.experiments.oscillation.inertia_stage import run_inertia_stage
from dynident.experiments.oscillation.model import SwingModel, equations_about, swing_model
from dynident.experiments.oscillation.swings import (
    NaturalControl,
    NoTopError,
    StageResult,
    Swing,
    estimate_groups,
    refuse,
    slow_start,
    upright_pose,
)
from dynident.experiments.protocol import Experiment, ExperimentError, ExperimentResult, Values, merge_estimates
from dynident.experiments.thresholds import OSCILLATION
from dynident.options import keywords
from dynident.plant.protocol import Plant
from dynident.robot.model import Robot

FINEST = 1e-3  # step of a factor at which creeping ends: that of the paper's tables
_PATIENCE = 8.0  # e-foldings, of a weight too low by a step, that a run waits for: a tenth of the step still falls
_BELOW = 0.9  # of what is sent: where a walk takes the weights to be, for the length of its runs
_SHRINK = 0.6  # of the steps after a fall or a step that did not help


def creep(
    bench: Bench,
    model: SwingModel,
    options: OscillationOptions | None = None,
    *,
    pose: Array | None = None,
    finest: float = FINEST,
) -> StageResult:
    """The paper's search: lower one weight after the other until the arm falls, then by finer steps.

    The others stay over-estimated meanwhile, so that only the one that is lowered can make it fall. That is exact for
    an upright chain, whose weights do not mix; on other robots it is near at best.

    Args:
        bench: The machine.
        model: The model.
        options: How; amplitude, reach and factor are used.
        pose: Where to look for the upright pose.
        finest: Step of the factor at which it ends.

    Raises:
        ExperimentError: As `run_gravity_stage`.
    """
    if not 0.0 < finest < 0.1:
        raise InputError(f"finest is {finest}; expected a step of a factor between 0 and 0.1")
    how = options or OscillationOptions()
    search = GravitySearch(bench, model, how, upright_pose(model, bench.bounds, pose))
    values = search.begin()
    found, std = values.copy(), np.full(len(values), np.inf)
    about = equations_about(model, search.pose)
    for k in range(len(values)):
        if not (values[k] and search.has_effect(about, k)):
            continue
        low, high = _bracket_fall(search, values, k, finest)
        found[k] = 0.5 * (low + high) * values[k]
        std[k] = 0.5 * (high - low) * abs(values[k])  # a fall that is slower than a run had patience for widens it
    return _result(search, "creep", found, std)


def _bracket_fall(search: GravitySearch, values: Array, k: int, finest: float) -> tuple[float, float]:
    """The factor at which the arm falls and the last one at which it did not."""
    high, step = search.how.factor, 0.1

    def falls(factor: float) -> bool:
        sent = search.how.factor * values
        sent[k] = factor * values[k]
        one = _slow_swing(search, sent, values, k, step)
        if one.state in ("saturated", "limit"):  # not "held": a run is shorter than a slow swing
            raise refuse("gravity", one, ADVICE[one.state])
        return one.state == "falls"

    while True:
        while high > step and not falls(high - step):
            high -= step
        if step <= finest * 1.001 or high <= step:
            return high - step, high
        step *= 0.1
        while high < search.how.factor and falls(high):  # which takes longer than the coarse steps had patience for
            high += step


def _slow_swing(search: GravitySearch, sent: Array, values: Array, k: int, step: float) -> Swing:
    """A swing in the mode that is about to fall, for as long as a fall takes if the weight is too low by a step."""
    model = search.model
    target = search.balance(sent, values) + search.offset
    about = equations_about(model, target)
    mass = about.mass @ model.chi
    stiffness = about.stiffness @ (model.weight(values) - model.weight(sent))
    lower = sent.copy()
    lower[k] -= step * values[k]
    change = about.stiffness @ (model.weight(sent) - model.weight(lower))
    start = slow_start(mass, stiffness, search.amplitude)
    rate = abs(float(start @ change @ start) / float(start @ mass @ start))
    length = float(np.clip(_PATIENCE / np.sqrt(max(rate, 1e-9)), 1.0, 120.0))
    control = NaturalControl(model, model.weight(sent), model.chi, 0.0, target)
    label = f"creep-{model.gravity[k].name}-{sent[k] / values[k]:.4f}"
    reach = OSCILLATION.fall_ratio * search.amplitude
    return search.run(control, start, length, label=label, sent=sent, fastest=100.0, reach=reach, count=1)


def random_walk(
    bench: Bench,
    model: SwingModel,
    options: OscillationOptions | None = None,
    *,
    pose: Array | None = None,
    finest: float = 5e-3,
    runs: int = 80,
    seed: int = 0,
) -> StageResult:
    """The descent by random steps that the paper suggests: lower one weight or another while the swing gets slower.

    Args:
        bench: The machine.
        model: The model.
        options: How.
        pose: Where to look for the upright pose.
        finest: Size of the steps, relative, at which it ends.
        runs: At most so many runs.
        seed: Of the steps.

    Raises:
        ExperimentError: As `run_gravity_stage`.
    """
    if not 0.0 < finest < 0.1 or runs < 1:
        raise InputError(f"finest is {finest}, runs is {runs}; expected a step between 0 and 0.1 and at least one run")
    how = options or OscillationOptions()
    search = GravitySearch(bench, model, how, upright_pose(model, bench.bounds, pose))
    begun = search.begin()
    rng, sizes = np.random.default_rng(seed), np.where(begun != 0.0, 0.25, 0.0)
    sent, best = how.factor * begun, np.inf
    for number in range(runs):
        if not (sizes >= finest).any():
            break
        k = int(rng.choice(np.flatnonzero(sizes >= finest)))
        trial = sent.copy()
        trial[k] *= 1.0 - sizes[k] * abs(rng.standard_normal())
        one = search.swing(trial, _BELOW * trial, f"walk-{number + 1}")
        value = one.modes.log_product if one.modes is not None and one.state == "swings" else np.inf
        if value < best:
            sent, best = trial, value
        else:  # it fell, or nothing could be determined: more careful with this weight
            sizes[k] *= _SHRINK
    std = np.where(sent != 0.0, np.abs(sent) * np.maximum(sizes, finest) / _SHRINK, np.inf)
    return _result(search, "walk", sent, std)


def _result(search: GravitySearch, name: str, values: Array, std: Array) -> StageResult:
    groups, known = search.model.gravity, np.isfinite(std)
    estimate = estimate_groups(groups, values, np.diag(np.where(known, std, 0.0) ** 2), known)
    left = estimate.undetermined
    warnings = [f"gravity stage: a search by {name} cannot find {', '.join(left)}, which the description has at zero"]
    if name == "walk":
        warnings.append(
            "gravity stage: a walk ends above the weights, by as much as it had left; its standard deviation is a guess"
        )
    kept = warnings if left else warnings[1:]
    fell = sum(step.state == "falls" for step in search.steps)
    notes = (f"{len(search.steps)} swings, of which {fell} fell",)
    return StageResult(
        *("gravity", name, groups, estimate, tuple(search.steps), notes, tuple(kept)), poses=search.pose[None]
    )


# ----------------------------------------------------------------------------------------------------------------------
# `oscillate`: weights, then inertias, of a machine from its natural oscillations.

SEARCHES = {"extrapolate": run_gravity_stage, "creep": creep, "walk": random_walk}


@record
class Oscillation(ExperimentResult):
    """What the free oscillations of a machine show.

    Attributes:
        model: The model and its groups.
        stages: What each stage found, in order.
    """

    model: SwingModel
    stages: tuple[StageResult, ...]

    def true_values(self, values: Values) -> Mapping[str, float]:
        """Groups of a set of standard values; those that are factors are not known."""
        groups = [group for stage in self.stages for group in stage.groups]
        found = zip(groups, self.model.true_values(groups, values), strict=True)
        return {group.name: value for group, value in found if value is not None}

    def details(self) -> dict[str, Any]:
        """Stages with every swing."""
        return {"stages": [stage.as_dict() for stage in self.stages]}


@keywords(OscillationOptions)
def oscillate(machine: Bench | Plant, options: OscillationOptions) -> Oscillation:
    """Identify a machine through its natural oscillations.

    In the gravity stage only the model's weight, Coriolis and centrifugal torque are sent: over-estimates swing,
    under-estimates fall. In the inertia stage a proportional control is added: squared frequencies equal kp when the
    inertia is right. It estimates weights as well: with the gravity stage's result as prior, or alone, also where the
    weight of a joint has no slope that could swing (a slide, a vertical axis).

    Args:
        machine: A plant, or a bench with one.
        options: See `OscillationOptions`.

    Raises:
        ExperimentError: When the machine cannot be swung; what was recorded is on the bench.

    References:
        Jamisola, Dadios, Ang: Dynamics parameters identification of rigid-body manipulators through natural
        oscillations.
    """
    return OscillationExperiment(machine.robot, options).perform(machine)


class OscillationExperiment(Experiment[SwingModel, list[StageResult], Oscillation]):
    """The free-oscillation test: a stage for the weights, then one for the inertias.

    Args:
        robot: The robot.
        options: How.
    """

    def __init__(self, robot: Robot, options: OscillationOptions) -> None:
        super().__init__(robot)
        if robot.closure is not None:
            raise InputError(f"robot {robot.name}: its loops are closed numerically, for which this is not offered")
        self.options, self._model = options, swing_model(robot, options.nominal)

    def plan(self, bounds: Bounds) -> SwingModel:
        """The model and its groups; where to swing follows from what the swings before have shown."""
        if self.options.stage == "gravity" and not self._model.gravity:
            raise InputError(f"robot {self.robot.name}: gravity acts on none of its joints; use stage='inertia'")
        return self._model

    def run(self, bench: Bench, plan: SwingModel) -> list[StageResult]:
        """The stages, one after the other."""
        how, joints = self.options, self.robot.joint_names
        where = None if how.pose is None else as_samples(how.pose, "pose", joints, 1)[0]
        points = None if how.set_points is None else [as_samples(x, "set-point", joints, 1)[0] for x in how.set_points]
        found: list[StageResult] = []
        skipped = ""
        if how.stage != "inertia" and plan.gravity:
            try:
                found.append(SEARCHES[how.search](bench, plan, how, pose=where))
            except NoTopError as error:
                if how.stage == "gravity":
                    raise
                skipped = str(error)
        if how.stage == "gravity":
            return found
        try:
            weights = found[0] if found else None
            last = run_inertia_stage(bench, plan, how, weights=weights, kp=how.kp, set_points=points)
        except ExperimentError as error:
            if not skipped:
                raise
            raise ExperimentError(f"{skipped}; here it did not go on: {error}") from None
        more = (f"gravity stage left out, the inertia stage found the weights: {skipped}",) if skipped else ()
        return [*found, replace(last, warnings=(*more, *last.warnings))]

    def analyze(self, data: list[StageResult]) -> Oscillation:
        """All stages together."""
        return Oscillation(
            robot=self.robot,
            estimate=merge_estimates([stage.estimate for stage in data]),
            true={},
            notes=(),
            warnings=tuple(warning for stage in data for warning in stage.warnings),
            model=self._model,
            stages=tuple(data),
        )
