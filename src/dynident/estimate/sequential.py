"""Sequential estimation from tip to base (Khosla & Kanade 1987, section 3).

The torque of a joint is felt by the links beyond it alone. Off-line, experiments are done with the joints below locked,
the last joint first; on-line, all joints move and their torques are used one after the other, the last joint's first.
What a stage identifies is known in the next, with its deviations carried along:

    theta = argmin |y - W_known c - W_new theta|,    cov(theta) = own + J cov(c) J',    J = d theta / d c

A stage sees combinations of base parameters, those of its locked robot; later stages may take them apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from dynident.checks import Array
from dynident.dynamics.terms import Term, TermsLike, resolve_terms
from dynident.errors import InputError, UnknownNameError
from dynident.estimate.estimators import Estimator, PriorLeastSquares, RobustLeastSquares
from dynident.estimate.knowledge import TOLERANCE, Fresh, Knowledge, combination_texts
from dynident.estimate.sequential_result import SequentialResult, Stage
from dynident.estimate.torque_error import Nominal, chosen_estimator
from dynident.identifiability.base import BaseParameters, base_parameters
from dynident.information.accumulate import accumulate
from dynident.information.information import Information, MergeError
from dynident.information.observation_model import felt_places
from dynident.information.slabs import accumulate_slabs
from dynident.information.solution import dense_channels
from dynident.logs.source import LogSource
from dynident.records import ReadOnlyDict
from dynident.robot.model import Robot
from dynident.signals.observe import SignalOptions, observe
from dynident.signals.rows import ObservedRows

Samples = tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike]  # q, dq, ddq, tau
StageData = Samples | LogSource | Information


@dataclass(frozen=True, eq=False)
class StageExperiment:
    """The data of one stage.

    Attributes:
        data: q, dq, ddq and tau of the joints that move, (n_samples, n_moving) each; or a log; or the information of
            either, accumulated with the joints locked.
        locked: Position of each joint that is held, by variable (`q2`) or joint name [rad or m].
        outputs: Joints whose torque is used, by name or variable; default all that move.
        label: Name of the stage; default its outputs.
    """

    data: StageData
    locked: Mapping[str, float] = field(default_factory=dict)
    outputs: Sequence[str] | None = None
    label: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "locked", ReadOnlyDict(self.locked))
        if isinstance(self.outputs, str):
            object.__setattr__(self, "outputs", (self.outputs,))


def sequential(
    robot: Robot,
    experiments: Sequence[StageExperiment],
    terms: TermsLike = None,
    *,
    nominal: Nominal | None = None,
    estimator: str | Estimator = "weighted",
    signals: SignalOptions | None = None,
) -> SequentialResult:
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
            prior) cannot be used. Its `rank_tolerance` decides what counts as not seen; default 1e-9.
        signals: How logs are filtered.

    Raises:
        InputError, MergeError: Naming the stage whose data does not fit.
    """
    if robot.locked:
        raise InputError("sequential estimation takes the free robot; lock joints in the experiments")
    if isinstance(experiments, StageExperiment):
        experiments = [experiments]
    if not experiments:
        raise InputError("there is no experiment; give one StageExperiment per stage, the tip's first")
    base = base_parameters(robot, resolve_terms(terms))
    method = _method(estimator)
    start = np.zeros(base.n) if nominal is None else base.base_values(nominal)
    known, stages = Knowledge.nothing(base.n), []
    for number, experiment in enumerate(experiments):
        if not isinstance(experiment, StageExperiment):
            raise InputError(f"experiment {number} is {type(experiment).__name__}; expected a StageExperiment")
        data = _information(experiment, base, signals or SignalOptions())
        known, stage = _stage(experiment, data.around(start), base, known, start, method)
        stages.append(stage)
    correction, covariance = known.base_values()
    return SequentialResult(
        base, tuple(stages), start, start + correction, covariance, known.determined, nominal is not None
    )


def sequential_online(
    robot: Robot,
    data: StageData,
    terms: TermsLike = None,
    *,
    nominal: Nominal | None = None,
    estimator: str | Estimator = "weighted",
    signals: SignalOptions | None = None,
) -> SequentialResult:
    """Identify from motion of all joints, one torque after the other from the last joint to the first.

    Args:
        robot: The robot, without locked joints.
        data: q, dq, ddq, tau; a log; or an information. Several of them: add their informations.
        terms: Terms of the model; default rigid, Ia, Fv, Fc, Fo.
        nominal: See `sequential`.
        estimator: See `sequential`.
        signals: How a log is filtered.
    """
    if not isinstance(data, Information):
        base = base_parameters(robot, resolve_terms(terms))
        data = _gathered(data, robot, base.terms, "data", signals or SignalOptions())
    # Parents come before children: in reverse order every link is known when a joint below it is looked at.
    stages = [StageExperiment(data, outputs=(name,)) for name in reversed(robot.joint_names)]
    return sequential(robot, stages, terms, nominal=nominal, estimator=estimator)


def _method(given: str | Estimator) -> Estimator:
    method = chosen_estimator(given)
    if isinstance(method, PriorLeastSquares | RobustLeastSquares):
        raise InputError(
            f"{type(method).__name__} cannot serve in stages, which have neither rows nor a prior of their own; use "
            "weighted, ordinary, total or ridge, and `nominal` for values to start from"
        )
    return method


def _information(experiment: StageExperiment, base: BaseParameters, signals: SignalOptions) -> Information:
    """The data of a stage over the base parameters of the free robot, its output rows alone."""
    robot = base.robot.lock(**experiment.locked) if experiment.locked else base.robot
    label = experiment.label or "data"
    data = experiment.data
    if not isinstance(data, Information):
        data = _gathered(data, robot, base.terms, label, signals)
    _check_columns(data, base, label)
    if experiment.outputs is not None:
        data = data.outputs([_joint(robot, name) for name in experiment.outputs])
    elif set(data.channels) - set(robot.joint_names):
        raise InputError(f"{label}: has channels {', '.join(data.channels)}; expected {', '.join(robot.joint_names)}")
    return _over_base(data, base, label)


def _gathered(
    data: Samples | LogSource, robot: Robot, terms: tuple[Term, ...], label: str, signals: SignalOptions
) -> Information:
    if isinstance(data, tuple | list):
        if len(data) != 4:
            raise InputError(f"{label}: expected four arrays q, dq, ddq, tau; got {len(data)}")
        return accumulate(robot, *data, terms, label=label)
    if not callable(getattr(data, "blocks", None)):
        raise InputError(f"{label}: is {type(data).__name__}; expected (q, dq, ddq, tau), a log or an Information")
    return accumulate_slabs(ObservedRows((observe(data, robot, signals),), base_parameters(robot, terms)))


def _joint(robot: Robot, name: str) -> str:
    """Name of a moving joint, from its name or variable."""
    by_variable = dict(zip(robot.position_names, robot.joint_names, strict=True))
    if name not in robot.joint_names and name not in by_variable:
        raise UnknownNameError("output", name, robot.joint_names)
    return name if name in robot.joint_names else by_variable[name]


def _check_columns(data: Information, base: BaseParameters, label: str) -> None:
    """Refuse data of another robot or of terms with other options."""
    free = base.robot.fingerprint
    meant = {column.name: f"robot {free}, {term.key}" for term in base.terms for column in term.columns(base.robot)}
    for column, definition in zip(data.coordinates.columns, data.definitions, strict=True):
        own = definition.split(", fixed")[0]
        if column.name not in meant or (own.startswith("robot ") and own != meant[column.name]):
            raise MergeError(
                f"{label}: column {column.name} is not that of the robot and terms given; accumulate all data with the "
                "same robot (joints locked or not) and the same terms"
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


def _stage(
    experiment: StageExperiment,
    data: Information,
    base: BaseParameters,
    known: Knowledge,
    start: Array,
    method: Estimator,
) -> tuple[Knowledge, Stage]:
    """Learn from the data of a stage, which is about corrections to the base values `start`."""
    channels, counts = dense_channels(data)
    W = np.vstack([rows[:, :-1] for rows in channels])
    fresh = known.fresh(W, method.rank_tolerance or TOLERANCE)
    if fresh.pivots:
        after, own, sigma = _fitted(data, known, fresh, method)
    else:
        after, own = known, np.zeros(0)
        beta = known.base_values()[0]
        errors = [float(np.linalg.norm(rows[:, -1] - rows[:, :-1] @ beta)) for rows in channels]
        sigma = np.array(errors) / np.sqrt(np.maximum(counts, 1.0))
    m = len(fresh.pivots)
    where = list(range(len(known.pivots), len(known.pivots) + m))
    new = after.determined & ~known.determined
    feels = _felt_by(base, data.channels)
    left_open = [j for j in feels if not after.determined[j]]
    stage = Stage(
        label=experiment.label or ", ".join(data.channels),
        outputs=data.channels,
        locked=experiment.locked,
        names=combination_texts(fresh.rows, fresh.pivots, base.names),
        values=after.values[where] + fresh.rows @ start,
        std=np.sqrt(np.maximum(np.diag(after.covariance)[where], 0.0)),
        own_std=own,
        rank=m,
        condition=fresh.condition,
        sigma=sigma,
        n_rows=float(counts.sum()),
        determined=tuple(name for name, fresh_one in zip(base.names, new, strict=True) if fresh_one),
        left_open=tuple(base.names[j] for j in left_open),
        note=_words(experiment, data.channels, fresh, bool(W.any()), [base.names[j] for j in left_open], len(feels)),
    )
    return after, stage


def _fitted(data: Information, known: Knowledge, fresh: Fresh, method: Estimator) -> tuple[Knowledge, Array, Array]:
    """What is known with a stage's estimates, their own deviations, and those of the residuals."""
    r, m = len(known.pivots), len(fresh.pivots)
    names = [f"known {i}" for i in range(r)] + [f"new {i}" for i in range(m)]
    both = data.transformed(known.chart(fresh), names)
    fitted = method.clone().set_params(rank_tolerance=None)
    fitted.fit(both.known(dict(zip(names[:r], known.values.tolist(), strict=True))))
    sensitivity = np.zeros((m, r))
    for factor, weight in zip(both.channel_factors(), fitted.channel_weights_, strict=True):
        rows = factor.dense(r + m)
        sensitivity -= fitted.inverse_ @ (weight * rows[:, r : r + m].T @ rows[:, :r])
    after = known.joined(fresh, fitted.values_, fitted.covariance_, sensitivity)
    return after, np.sqrt(np.maximum(np.diag(fitted.covariance_), 0.0)), fitted.sigma_


def _felt_by(base: BaseParameters, outputs: Sequence[str]) -> list[int]:
    """Base parameters that the torques of some joints feel when all joints move."""
    rows = {base.robot.joint_names.index(name) for name in outputs}
    places = felt_places(base.robot, base.terms, base.independent)
    felt = {column for row, column in places if row in rows}
    return [i for i, column in enumerate(base.independent) if column in felt]


def _words(
    experiment: StageExperiment,
    outputs: Sequence[str],
    fresh: Fresh,
    moved: bool,
    left_open: Sequence[str],
    feels: int,
) -> str:
    """What a stage did."""
    torque = f"torque of {', '.join(outputs)}"
    m = len(fresh.pivots)
    if m:
        what = "parameter" if (np.count_nonzero(fresh.rows, axis=1) == 1).all() else "combination"
        text = f"identifies {m} new {what}{'s' if m > 1 else ''} from the {torque}"
    elif moved:
        text = f"adds nothing: the {torque} feels only what is known already"
    else:
        text = f"adds nothing: the {torque} feels no parameter in this motion"
    if not left_open:
        return text
    held = f" with {', '.join(experiment.locked)} locked; let them move" if experiment.locked else ""
    remedy = held or "; move the joints more variedly, or use more stages"
    return f"{text}; of the {feels} that it can feel it leaves open {', '.join(left_open)}{remedy}"
