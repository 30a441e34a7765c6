r"""Sequential estimation from tip to base (Khosla & Kanade 1987, section 3).

Only the links beyond a joint contribute to its torque. Off-line, experiments are done with the joints below locked, the
last joint first; on-line, all joints move and their torques are used one after the other, the last joint's first. What
a stage identifies is known in the next, with its covariance carried along (`stages.py`). A stage determines
combinations of base parameters, those of its locked robot; later stages may take them apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, record
from dynident.dynamics.terms import TermsLike
from dynident.errors import InputError, UnknownNameError
from dynident.estimate.estimators import Estimator, PriorLeastSquares, RobustLeastSquares
from dynident.estimate.stage_data import StageData, experiment as logs_experiment
from dynident.estimate.stages import KnownCombinations, NewCombinations, StagedEstimate, solve_stage
from dynident.estimate.thresholds import THRESHOLDS
from dynident.estimate.torque_error import Nominal, chosen_estimator
from dynident.identifiability.base import BaseParameters, base_parameters
from dynident.identifiability.base_regressor import nonzero_entries
from dynident.information.accumulation import accumulate
from dynident.information.information import Information, MergeError
from dynident.information.solution import dense_channels
from dynident.logs.log import LogSource
from dynident.robot.model import Robot
from dynident.signals.observations import SignalOptions

Samples = tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike]  # q, dq, ddq, tau
StageInput = Samples | LogSource | Information | StageData


@record
class StageExperiment:
    """What one stage uses.

    Attributes:
        data: q, dq, ddq and tau of the joints that move, (n_samples, n_moving) each; or a log; or the information of
            either, accumulated with the joints locked; or a `StageData`, which also has the correlation of its
            residuals.
        locked: Position of each joint that is held, by variable (`q2`) or joint name [rad or m].
        outputs: Joints whose torque is used, by name or variable; default all that move.
        label: Name of the stage; default its outputs.
    """

    data: StageInput
    locked: Mapping[str, float] = field(default_factory=dict)
    outputs: Sequence[str] | None = None
    label: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.outputs, str):
            object.__setattr__(self, "outputs", (self.outputs,))


def sequential(
    robot: Robot,
    experiments: StageExperiment | Sequence[StageExperiment],
    terms: TermsLike = None,
    *,
    nominal: Nominal | None = None,
    estimator: str | Estimator = "weighted",
    signals: SignalOptions | None = None,
) -> StagedEstimate:
    """Identify stage by stage: the off-line procedure, and any other order of experiments.

    What a stage identifies is known in the next and is not estimated again, even if later data would refine it; for the
    estimate from all data at once add the informations. Each torque should serve in one stage only: stages count as
    independent.

    Args:
        robot: The robot, without locked joints.
        experiments: One per stage, those at the tip first.
        terms: Terms of the model; default rigid, Ia, Fv, Fc, Fo.
        nominal: Standard parameter values to estimate corrections around: by name, as a vector, or one of the robot's
            sets. What no stage determines keeps them; without them it is zero.
        estimator: Method of each stage by name, or an estimator; those that need rows or standard parameters (robust,
            prior) cannot be used. Its `rank_tolerance` decides what counts as not determined; default 1e-9.
        signals: How logs are filtered.

    Raises:
        InputError, MergeError: Naming the stage whose data does not fit.
    """
    base, method = _free_base(robot, terms), _stage_method(estimator)
    start = None if nominal is None else base.base_values(nominal)
    return _identify_stages(base, _list_experiments(experiments), method, start, signals or SignalOptions())


def sequential_online(
    robot: Robot,
    data: StageInput,
    terms: TermsLike = None,
    *,
    nominal: Nominal | None = None,
    estimator: str | Estimator = "weighted",
    signals: SignalOptions | None = None,
) -> StagedEstimate:
    """Identify from motion of all joints, one torque after the other: from the last joint to the first.

    Where a loop lets a motor move links beyond others, the torques go from the one that depends on the fewest
    parameters to the one that depends on most.

    Args:
        robot: The robot, without locked joints.
        data: q, dq, ddq, tau; a log; an information; or a `StageData`, which may have several logs.
        terms: Terms of the model; default rigid, Ia, Fv, Fc, Fo.
        nominal: See `sequential`.
        estimator: See `sequential`.
        signals: How a log is filtered.
    """
    base, method = _free_base(robot, terms), _stage_method(estimator)
    start, signals = None if nominal is None else base.base_values(nominal), signals or SignalOptions()
    data = _stage_data(data, robot, base, "data", signals)
    rows = data.information
    counts = dict(zip(rows.channels, (len(factor.columns) for factor in rows.channel_factors()), strict=True))
    order = from_tip_to_base(robot, counts)
    experiments = [StageExperiment(data, outputs=(name,)) for name in order]
    return _identify_stages(base, experiments, method, start, signals)


def from_tip_to_base(robot: Robot, counts: Mapping[str, int]) -> list[str]:
    """The moving joints in the order in which their torques are used.

    Args:
        robot: The robot.
        counts: By joint, how many parameters its torque depends on.
    """
    # Parents come before children: in reverse order every link is known when a joint below it is looked at.
    order = list(reversed(robot.joint_names))
    if len(robot.active) < len(robot.joints):  # through a loop a motor moves links that do not stand on its joint
        order.sort(key=lambda name: counts.get(name, 0))
    return order


def _identify_stages(
    base: BaseParameters,
    experiments: Sequence[StageExperiment],
    method: Estimator,
    nominal: Array | None,
    signals: SignalOptions,
) -> StagedEstimate:
    """Solve the stages for corrections around nominal base values, or for the values themselves."""
    start = np.zeros(base.n) if nominal is None else nominal
    entries = nonzero_entries(base.robot, base.terms, base.independent)
    known, stages = KnownCombinations.nothing(base.n), []
    plain = method.clone().set_params(rank_tolerance=None)  # what is solved for is determined already
    for experiment in experiments:
        data = _stage_rows(experiment, base, start, signals)
        W = np.vstack([rows[:, :-1] for rows in dense_channels(data.information)[0]])
        new = known.new_combinations(W, method.rank_tolerance or THRESHOLDS.exact_rank)
        known, stage = solve_stage(data, known, new, plain, noise="unexplained")
        outputs = {base.robot.joint_names.index(name) for name in stage.outputs}
        depends = {column for row, column in entries if row in outputs}
        able = [i for i, column in enumerate(base.independent) if column in depends]
        left_open = tuple(base.names[i] for i in able if not known.determined[i])
        stages.append(
            stage.replace(
                label=experiment.label or ", ".join(stage.outputs),
                values=stage.values + new.rows @ start,
                locked=experiment.locked,
                left_open=left_open,
                note=_note(experiment, stage.outputs, new, bool(W.any()), left_open, len(able)),
            )
        )
    return StagedEstimate.after(known, base, stages, nominal=nominal)


def _stage_rows(experiment: StageExperiment, base: BaseParameters, start: Array, signals: SignalOptions) -> StageData:
    """The rows of a stage's outputs, about corrections to the base values at the start."""
    robot = base.robot.lock(**experiment.locked) if experiment.locked else base.robot
    label = experiment.label or "data"
    data = _stage_data(experiment.data, robot, base, label, signals)
    _check_columns(data.information, base, label)
    wanted = robot.joint_names if experiment.outputs is None else experiment.outputs
    rows = data.information.outputs([_joint(robot, name) for name in wanted])
    inflation = data.inflation
    if inflation is not None:
        inflation = inflation[[data.information.channels.index(name) for name in rows.channels]]
    return StageData(label, _over_base(rows, base, label).around(start), inflation)


def _stage_data(data: StageInput, robot: Robot, base: BaseParameters, label: str, signals: SignalOptions) -> StageData:
    """Samples, a log or an information of a robot, locked or free, as the data of a stage."""
    if isinstance(data, StageData):
        return data
    if isinstance(data, Information):
        return StageData(label, data)
    if isinstance(data, tuple | list):
        if len(data) != 4:
            raise InputError(f"{label}: expected four arrays q, dq, ddq, tau; got {len(data)}")
        return StageData(label, accumulate(robot, *data, base.terms, label=label))
    if not callable(getattr(data, "blocks", None)):
        raise InputError(f"{label}: is {type(data).__name__}; expected (q, dq, ddq, tau), a log or an Information")
    return logs_experiment(label, robot, data, base.terms, signals=signals)


def _free_base(robot: Robot, terms: TermsLike) -> BaseParameters:
    if robot.locked:
        raise InputError("sequential estimation takes the free robot; lock joints in the experiments")
    return base_parameters(robot, terms)


def _list_experiments(experiments: StageExperiment | Sequence[StageExperiment]) -> list[StageExperiment]:
    if isinstance(experiments, StageExperiment):
        return [experiments]
    if not isinstance(experiments, Sequence):
        raise InputError(
            f"experiments is {type(experiments).__name__}; expected StageExperiments, one per stage; for one log in "
            "which all joints move use sequential_online"
        )
    given = list(experiments)
    if not given:
        raise InputError("there is no experiment; give one StageExperiment per stage, the tip's first")
    for number, experiment in enumerate(given):
        if not isinstance(experiment, StageExperiment):
            raise InputError(f"experiment {number} is {type(experiment).__name__}; expected a StageExperiment")
    return given


def _stage_method(given: str | Estimator) -> Estimator:
    method = chosen_estimator(given)
    if isinstance(method, PriorLeastSquares | RobustLeastSquares):
        raise InputError(
            f"{type(method).__name__} cannot serve in stages, which have neither rows nor a prior of their own; use "
            "weighted, ordinary, total or ridge, and `nominal` for values to start from"
        )
    return method


def _joint(robot: Robot, name: str) -> str:
    """Name of a moving joint, from its name or variable."""
    by_variable = dict(zip(robot.position_names, robot.joint_names, strict=True))
    if name not in robot.joint_names and name not in by_variable:
        raise UnknownNameError("output", name, robot.joint_names)
    return name if name in robot.joint_names else by_variable[name]


def _check_columns(data: Information, base: BaseParameters, label: str) -> None:
    """Refuse data of another robot or of terms with other options."""
    free = base.robot.fingerprint
    meant = {
        column.name: f"robot {free}, {term.key_on(base.robot)}"
        + ("" if column.fixed is None else f", fixed at {column.fixed!r}")
        for term in base.terms
        for column in term.columns(base.robot)
    }
    for column, own in zip(data.coordinates.columns, data.definitions, strict=True):
        if column.name not in meant or (own.startswith("robot ") and own != meant[column.name]):
            raise MergeError(
                f"{label}: column {column.name} is not that of the robot and terms given; accumulate all data with the "
                "same robot (joints locked or not), the same terms and the same fixed values"
            )


def _over_base(data: Information, base: BaseParameters, label: str) -> Information:
    """The factors over the base parameters of the free robot: R K_own = (R K_own)[:, independent] K."""
    own = data.coordinates
    place = {column.name: j for j, column in enumerate(base.columns)}
    K = np.zeros((own.n, len(base.columns)))
    K[:, [place[column.name] for column in own.columns]] = own.K
    T = K[:, list(base.independent)]
    for factor in data.channel_factors():
        rows = factor.dense(own.n)[:, : own.n]
        if np.linalg.norm(rows @ K - rows @ T @ base.K) > 1e-6 * np.linalg.norm(rows @ K):
            raise InputError(
                f"{label}: its rows see more than the base parameters of {base.robot.name}; give data of this robot"
            )
    moved = data.transformed(T, base.names, base.units)
    return replace(moved, coordinates=base, definitions=("base",) * len(base.columns))


def _note(
    experiment: StageExperiment,
    outputs: Sequence[str],
    new: NewCombinations,
    moved: bool,
    left_open: Sequence[str],
    able: int,
) -> str:
    """What a stage did, in words."""
    torque = f"torque of {', '.join(outputs)}"
    m = len(new.pivots)
    if m:
        what = "parameter" if (np.count_nonzero(new.rows, axis=1) == 1).all() else "combination"
        text = f"identifies {m} new {what}{'s' if m > 1 else ''} from the {torque}"
    elif moved:
        text = f"adds nothing: the {torque} depends only on what is known already"
    else:
        text = f"adds nothing: the {torque} depends on no parameter in this motion"
    if not left_open:
        return text
    held = f" with {', '.join(experiment.locked)} locked; let them move" if experiment.locked else ""
    remedy = held or "; move the joints more variedly, or use more stages"
    return f"{text}; of the {able} that this torque depends on, not determined: {', '.join(left_open)}{remedy}"
