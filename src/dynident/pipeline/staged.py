"""Other ways from the same logs to parameters: stages from tip to base, stages of a file, energy and power.

All give base parameters with a covariance; torque on training and validation logs is predicted with them as with any
fit, so that the ways can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.terms import along_terms, resolve_terms, split_terms, with_springs
from dynident.errors import InputError, UnknownNameError
from dynident.estimate.covariance import null_space, residual_correlation
from dynident.estimate.energy import EnergyRows, observed_energy, observed_power
from dynident.estimate.estimator import Estimator
from dynident.estimate.estimators import ESTIMATORS, PriorLeastSquares
from dynident.estimate.sequential_estimation import StageExperiment, sequential, sequential_online
from dynident.estimate.stage_data import StageData, observed_experiment
from dynident.estimate.stages import StagedEstimate
from dynident.estimate.two_step_estimation import solve_in_steps, solve_together
from dynident.identifiability.base import BaseParameters, base_parameters
from dynident.information.information import Information
from dynident.information.parameter_estimate import ParameterEstimate, SolveRecord
from dynident.information.solution import residual_square
from dynident.information.thresholds import THRESHOLDS as ENOUGH
from dynident.logs.log import torque_kind
from dynident.pipeline.fitting import FittedModel, estimator_of, model_of
from dynident.pipeline.model_selection import select_model
from dynident.pipeline.options import IdentifyOptions
from dynident.pipeline.preprocessing import TrainingData
from dynident.pipeline.stage_file import StageRule, read_stages
from dynident.robot.model import Robot
from dynident.signals.observations import Observations, observe
from dynident.signals.thresholds import THRESHOLDS as SIGNALS

# Widths of dry friction are found by the data; energy that dry friction takes is Fc times the way, whatever the width.
_TERMS = "rigid,Ia,Fv,Fc,Fo"
_WAYS = {"sequential": "--sequential", "stages": "--stages", "model": "--model"}
_ROWS: Mapping[str, Callable[..., EnergyRows]] = {"energy": observed_energy, "power": observed_power}
_CARRIED = "are carried from stage to stage and allow for correlation between neighboring residuals"
_ALIKE = "allow for rows that overlap and for correlation between neighboring residuals"


def staged_method(options: IdentifyOptions) -> str:
    """Which of the ways of this module is asked for: sequential, stages, model, or none of them (empty).

    Raises:
        InputError: For two ways at once, or an option that has no meaning with the one asked for.
    """
    given = [name for name, own in (("sequential", options.sequential), ("stages", options.stages)) if own is not None]
    given += ["model"] if options.model != "torque" else []
    if not given:
        return ""
    if len(given) > 1:
        raise InputError(f"{_WAYS[given[0]]} and {_WAYS[given[1]]} are two ways to estimate; leave one of them out")
    way = _WAYS[given[0]]
    if options.friction not in (None, "basic"):
        raise InputError(f"{way} has the friction of its terms alone; leave --friction out, or name terms (--terms)")
    if options.terms is not None and along_terms(resolve_terms(options.terms)):
        raise InputError(f"{way} takes terms that are functions of the state: rigid, Ia, Fv, Fc, Fo")
    method = estimator_of(options.estimator)
    if method.needs_rows or isinstance(method, PriorLeastSquares):
        raise InputError(f"{way} takes the estimators weighted, ordinary, total and ridge")
    if given == ["sequential"] and options.essential is not None:
        raise InputError("--essential has no meaning with --sequential, whose stages find combinations; use --stages")
    if options.stages is not None:
        stage_rules(options.stages)  # a file that cannot be read is refused before any log is looked at
    return given[0]


def stage_rules(given: object) -> tuple[StageRule, ...]:
    """The stages of a file, or those that were given."""
    if isinstance(given, str | Path):
        return read_stages(given)
    rules = tuple(given) if isinstance(given, Sequence) else ()
    if not rules or not all(isinstance(one, StageRule) for one in rules):
        raise InputError("stages must be a YAML file of stages, or a sequence of pipeline.StageRule, at least one")
    return rules


def fit_staged(data: TrainingData, options: IdentifyOptions) -> FittedModel:
    """Base parameters by stages or by another model than that of torque.

    Raises:
        InputError: When the logs do not fit the way, or no equation moves.
    """
    way = staged_method(options)
    selection = select_model(data, replace(options, friction=()))  # the delay and the source of velocities
    data = selection.data
    terms = with_springs(split_terms(_TERMS), data.robot) if options.terms is None else options.terms
    base = base_parameters(data.robot, terms)
    train = _Training(data, base, options)
    data.progress("estimating", 0, 1)
    if way == "sequential":
        found = train.sequential(options.sequential == "online")
    elif way == "stages":
        found = train.in_steps(options.stages)
    else:
        found = train.balanced(options.model)
    data.progress("estimating", 1, 1)
    if not isinstance(found.coordinates, BaseParameters) or found.base.robot.fingerprint != data.robot.fingerprint:
        raise InputError(
            "no stage lets all joints move, so nothing says how what the stages found belongs together; add a stage "
            "without locked joints, or use --sequential offline, which carries combinations"
        )
    # The width is nothing that an energy knows; predictions have the usual one.
    own = data.basic if way == "model" and options.terms is None else found.base
    assert own.names == found.names
    return FittedModel(
        base=own,
        estimate=_estimate(data, own, found, _ALIKE if way == "model" else _CARRIED),
        model=model_of(own, found.values, None),
        fitted=None,
        data=data,
        eliminated=tuple(one for stage in found.stages for one in stage.eliminated),
        notes=(*selection.notes, *_notes(found, way)),
        warnings=(*own.warnings, *found.warnings, *_gain_warning(data)),
    )


@dataclass(frozen=True, eq=False)
class _Training:
    """Logs as the data of stages.

    Attributes:
        data: The logs.
        base: Base parameters of the robot.
        options: Of the identification.
    """

    data: TrainingData
    base: BaseParameters
    options: IdentifyOptions

    @property
    def estimator(self) -> Estimator:
        return estimator_of(self.options.estimator)

    def sequential(self, online: bool) -> StagedEstimate:
        """From the tip to the base: with all joints moving, or through logs in which joints are locked."""
        robot, terms = self.data.robot, self.base.terms
        if online:
            whole = self._stage("all logs", self.data.train, {})
            return sequential_online(robot, whole, terms, estimator=self.estimator)
        groups = _alike([(one, _still(one)) for one in self.data.train])
        if not any(held for _, held in groups):
            raise InputError(
                "all joints move in every log, so none is a stage with locked joints; use --sequential online, or "
                "record logs in which the joints below stand still"
            )
        order = sorted(groups, key=lambda own: (len(robot.joint_names) - len(own[1]), -_lowest(robot, own[1])))
        stages = []
        for logs, held in order:
            label = ", ".join(one.log.label for one in logs)
            stages.append(StageExperiment(self._stage(label, logs, held), held, label=label))
        return sequential(robot, stages, terms, estimator=self.estimator)

    def in_steps(self, given: object) -> StagedEstimate:
        """Stage by stage as a file says, single parameters being carried."""
        rules = stage_rules(given)
        names, used = self.data.robot.joint_names, set()
        stages = []
        for rule in rules:
            logs = [one for one in self.data.train if not rule.logs or any(_fits(one, own) for own in rule.logs)]
            for own in rule.logs:
                if not any(_fits(one, own) for one in self.data.train):
                    labels = ", ".join(Path(one.log.label).name for one in self.data.train)
                    raise InputError(f"stage {rule.name}: none of the training logs is {own}; given are {labels}")
            used |= {id(one) for one in logs}
            held = self._held(rule, logs)
            moving = [name for name in names if name not in held]
            outputs = [self._joint(name, f"output of stage {rule.name}") for name in rule.outputs] or moving
            for name in outputs:
                if name in held:
                    raise InputError(f"stage {rule.name}: {name} is locked, so its torque cannot be used")
            stages.append(self._stage(rule.name, logs, held, outputs))
        for one in self.data.train:
            if id(one) not in used:
                raise InputError(f"{one.log.label}: is in no stage; add it to one, or leave it out")
        return solve_in_steps(stages, self.estimator, essential=self.options.essential)

    def balanced(self, model: str) -> StagedEstimate:
        """From energies, or power, of each log."""
        rows = [_ROWS[model](one, self.base.terms) for one in self.data.train]
        parts = [
            StageData(one.log.label, own.information, np.array([own.inflation]))
            for one, own in zip(self.data.train, rows, strict=True)
        ]
        return solve_together(parts, self.estimator, essential=self.options.essential)

    def _stage(
        self, name: str, logs: Sequence[Observations], held: Mapping[str, float], outputs: Sequence[str] | None = None
    ) -> StageData:
        robot, base, observed = self.data.robot, self.base, list(logs)
        locked = robot.lock(**held) if held else robot
        # Where the motor of a held joint turns with another one, its torque is in no row of the locked robot.
        if held and not locked.locked_motors_move:
            base = base_parameters(locked, self.base.terms)
            observed = [observe(one.log, locked, replace(one.options, band=one.band)) for one in logs]
        shown = self.options.delay is None and logs[0].options.delay != 0.0
        return observed_experiment(name, observed, base, outputs=outputs, correct_delay=shown)

    def _held(self, rule: StageRule, logs: Sequence[Observations]) -> dict[str, float]:
        """Positions of the joints that a rule says are locked, which must stand still in its logs."""
        held: dict[str, float] = {}
        for given in rule.locked:
            name = self._joint(given, f"locked joint of stage {rule.name}")
            at = [_still(one).get(name) for one in logs]
            for one, position in zip(logs, at, strict=True):
                if position is None:
                    raise InputError(
                        f"stage {rule.name}: {name} moves in {one.log.label}; leave it out of locked, or give a log "
                        "in which it stands still"
                    )
            positions = np.array(at, dtype=float)
            radian = self.data.robot.radians[self.data.robot.joint_names.index(name)]
            if np.ptp(positions) > SIGNALS.standstill_rad * radian:
                raise InputError(
                    f"stage {rule.name}: {name} stands at {positions.min():.4g} in one log and at "
                    f"{positions.max():.4g} in another; make them stages of their own"
                )
            held[name] = float(positions.mean())
        return held

    def _joint(self, name: str, what: str) -> str:
        """Name of a moving joint, from its name or variable."""
        robot = self.data.robot
        by_variable = dict(zip(robot.position_names, robot.joint_names, strict=True))
        if name not in robot.joint_names and name not in by_variable:
            raise UnknownNameError(what, name, robot.joint_names)
        return name if name in robot.joint_names else by_variable[name]


def _fits(one: Observations, pattern: str) -> bool:
    """Whether a log has a file name or label, in which * stands for anything."""
    names = (one.log.label, one.log.source, Path(one.log.source).name)
    return any(fnmatch(name, pattern) for name in names)


def _still(one: Observations) -> dict[str, float]:
    """Position of each joint that stands still in a log, by name [rad or m]."""
    low, high, robot = one.survey.lowest, one.survey.highest, one.robot
    still = high - low <= SIGNALS.standstill_rad * robot.radians
    middle = (0.5 * (low + high)).tolist()
    return {name: x for name, x, own in zip(robot.joint_names, middle, still, strict=True) if own}


def _lowest(robot: Robot, held: Mapping[str, float]) -> int:
    """Place of the first joint that moves; ties go to the stage nearer to the tip."""
    return min(i for i, name in enumerate(robot.joint_names) if name not in held)


def _alike(
    logs: Sequence[tuple[Observations, dict[str, float]]],
) -> list[tuple[list[Observations], dict[str, float]]]:
    """Logs in groups in which the same joints stand at the same places."""
    groups: list[tuple[list[Observations], dict[str, float]]] = []
    for one, held in logs:
        reach = dict(zip(one.robot.joint_names, SIGNALS.standstill_rad * one.robot.radians, strict=True))
        for members, own in groups:
            if own.keys() == held.keys() and all(abs(own[name] - x) <= reach[name] for name, x in held.items()):
                members.append(one)
                break
        else:
            groups.append(([one], held))
    return groups


# ----------------------------------------------------------------------------------------------------------------------
# What a fit keeps of it.


def _estimate(data: TrainingData, base: BaseParameters, found: StagedEstimate, kind: str) -> ParameterEstimate:
    """The parameters, with the residuals that they leave of the torque of the training logs."""
    torque, values = data.rows.information(base), found.values
    factors = torque.channel_factors()
    squares = np.array([residual_square(factor.dense(base.n), values) for factor in factors])
    counts = np.array([factor.n_rows for factor in factors], dtype=float)
    if not counts.any():
        raise InputError("no joint moves long enough to be identified; record more motion")
    sigma = np.sqrt(squares / np.maximum(counts, 1.0))
    conditions = [stage.condition for stage in found.stages if np.isfinite(stage.condition)]
    solved = SolveRecord(
        rank=found.rank,
        singular_values=np.zeros(0),
        condition=max(conditions, default=float("nan")),
        gap=(np.nan, np.nan),
        channels=torque.channels,
        residual_std=sigma,
        channel_weights=np.where(sigma > 0.0, np.maximum(sigma, 1e-150) ** -2.0, 0.0),
        determined=found.determined,
        n_rows=float(sum(stage.n_rows for stage in found.stages)),
        iterations=0,
        covariance_kind=kind,
        variance_inflation=residual_correlation(data.rows.rows(base, None), values).inflation,
        null_space=None if found.determined.all() else _null_space(found, torque),
    )
    return ParameterEstimate.of(base, values, found.covariance, found.determined, solve=solved)


def _null_space(found: StagedEstimate, torque: Information) -> Array | None:
    """What the data says nothing about; None where the stages alone left something open."""
    last = found.stages[-1].fitted
    whole = last is not None and last.names_ == found.names
    fitted = (
        last
        if whole and last is not None
        else ESTIMATORS["weighted"]().set_params(rank_tolerance=ENOUGH.noisy_rank).fit(torque)
    )
    if fitted.determined_.all():
        return None
    directions, scale = null_space(fitted)
    return np.asarray(directions / scale[:, None])


def _notes(found: StagedEstimate, way: str) -> list[str]:
    """What each stage did, in words."""
    if way == "sequential":
        return list(found.notes)
    notes = []
    for stage in found.stages[-1:] if way == "model" else found.stages:
        words = f"{stage.n_rows:g} equations for {len(stage.names)} parameters"
        words += f", {len(stage.known)} known" if way == "stages" else ""
        words += f"; condition {stage.condition:.3g}"
        words += f"; eliminated {len(stage.eliminated)}" if stage.eliminated else ""
        notes.append(f"{'stage ' if way == 'stages' else ''}{stage.label}: {words}")
    return notes


def _gain_warning(data: TrainingData) -> tuple[str, ...]:
    drive = data.robot.drive
    by_current = any(torque_kind(next(iter(one.log.blocks())), data.robot) == "i" for one in data.train)
    if not by_current or drive.gain_tolerances is None or not drive.gain_tolerances.any():
        return ()
    return ("standard deviations leave out the tolerance of the drive gains; those of a fit without stages have it",)
