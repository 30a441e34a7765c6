"""What sequential estimation found: stage by stage, and all together in the robot's base parameters."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, Mask, ReadOnlyDict, frozen, place_of
from dynident.dynamics.terms import TermsLike, resolve_terms
from dynident.errors import InputError, UnknownNameError
from dynident.estimate.estimators import Estimator, PriorLeastSquares, RobustLeastSquares, TotalLeastSquares
from dynident.estimate.prediction import TorqueModel
from dynident.estimate.stages import (
    TOLERANCE,
    Experiment,
    Fresh,
    Knowledge,
    combination_texts,
    experiment as logs_experiment,
)
from dynident.estimate.torque_error import Nominal, chosen_estimator
from dynident.identifiability.base import BaseParameters, base_parameters
from dynident.identifiability.base_regressor import nonzero_entries
from dynident.information.accumulation import accumulate
from dynident.information.information import Information, MergeError
from dynident.information.parameter_estimate import std_text, text_table
from dynident.information.solution import dense_channels
from dynident.logs.log import LogSource
from dynident.robot.model import Robot
from dynident.signals.observations import SignalOptions


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


# ----------------------------------------------------------------------------------------------------------------------
# Sequential estimation from tip to base (Khosla & Kanade 1987, section 3).
#
# The torque of a joint is felt by the links beyond it alone. Off-line, experiments are done with the joints below
# locked,
# the last joint first; on-line, all joints move and their torques are used one after the other, the last joint's first.
# What a stage identifies is known in the next, with its deviations carried along:
#
#     theta = argmin |y - W_known c - W_new theta|,    cov(theta) = own + J cov(c) J',    J = d theta / d c
#
# A stage sees combinations of base parameters, those of its locked robot; later stages may take them apart.

Samples = tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike]  # q, dq, ddq, tau
StageData = Samples | LogSource | Information | Experiment


@dataclass(frozen=True, eq=False)
class StageExperiment:
    """The data of one stage.

    Attributes:
        data: q, dq, ddq and tau of the joints that move, (n_samples, n_moving) each; or a log; or the information of
            either, accumulated with the joints locked; or an `Experiment`, which also has the correlation of its
            residuals.
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
    experiments: StageExperiment | Sequence[StageExperiment],
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
    return _Procedure(_base(robot, terms), nominal, estimator, signals).run(experiments)


def sequential_online(
    robot: Robot,
    data: StageData,
    terms: TermsLike = None,
    *,
    nominal: Nominal | None = None,
    estimator: str | Estimator = "weighted",
    signals: SignalOptions | None = None,
) -> SequentialResult:
    """Identify from motion of all joints, one torque after the other: from the last joint to the first.

    Where a loop lets a motor feel links beyond others, the torques go from the one that feels least to the one that
    feels most.

    Args:
        robot: The robot, without locked joints.
        data: q, dq, ddq, tau; a log; an information; or an experiment, which may have several logs.
        terms: Terms of the model; default rigid, Ia, Fv, Fc, Fo.
        nominal: See `sequential`.
        estimator: See `sequential`.
        signals: How a log is filtered.
    """
    procedure = _Procedure(_base(robot, terms), nominal, estimator, signals)
    data = procedure.gathered(data, robot, "data")
    # Parents come before children: in reverse order every link is known when a joint below it is looked at.
    order = list(reversed(robot.joint_names))
    if len(robot.active) < len(robot.joints):  # through a loop a motor feels links that do not stand on its joint
        rows = data.information
        felt = dict(zip(rows.channels, (len(factor.columns) for factor in rows.channel_factors()), strict=True))
        order.sort(key=lambda name: felt.get(name, 0))
    return procedure.run([StageExperiment(data, outputs=(name,)) for name in order])


class _Procedure:
    """What all stages share."""

    def __init__(
        self, base: BaseParameters, nominal: Nominal | None, estimator: str | Estimator, signals: SignalOptions | None
    ) -> None:
        self.base, self.method = base, _method(estimator)
        self.signals = signals or SignalOptions()
        self.around_nominal = nominal is not None
        self.start = np.zeros(base.n) if nominal is None else base.base_values(nominal)
        self.places = nonzero_entries(base.robot, base.terms, base.independent)

    def run(self, experiments: StageExperiment | Sequence[StageExperiment]) -> SequentialResult:
        """All stages."""
        known, stages = Knowledge.nothing(self.base.n), []
        for experiment in _checked(experiments):
            known, stage = self.stage(experiment, self.rows(experiment), known)
            stages.append(stage)
        correction, covariance = known.base_values()
        beta, determined = self.start + correction, known.determined
        return SequentialResult(self.base, tuple(stages), self.start, beta, covariance, determined, self.around_nominal)

    def rows(self, experiment: StageExperiment) -> Experiment:
        """The rows of a stage's outputs, about corrections to the base values at the start."""
        free = self.base.robot
        robot = free.lock(**experiment.locked) if experiment.locked else free
        label = experiment.label or "data"
        data = self.gathered(experiment.data, robot, label)
        _check_columns(data.information, self.base, label)
        wanted = robot.joint_names if experiment.outputs is None else experiment.outputs
        rows = data.information.outputs([_joint(robot, name) for name in wanted])
        inflation = data.inflation
        if inflation is not None:
            inflation = inflation[[data.information.channels.index(name) for name in rows.channels]]
        return Experiment(label, _over_base(rows, self.base, label).around(self.start), inflation)

    def gathered(self, data: StageData, robot: Robot, label: str) -> Experiment:
        """Samples, a log or an information of a robot, locked or free, as an experiment."""
        terms = self.base.terms
        if isinstance(data, Experiment):
            return data
        if isinstance(data, Information):
            return Experiment(label, data)
        if isinstance(data, tuple | list):
            if len(data) != 4:
                raise InputError(f"{label}: expected four arrays q, dq, ddq, tau; got {len(data)}")
            return Experiment(label, accumulate(robot, *data, terms, label=label))
        if not callable(getattr(data, "blocks", None)):
            raise InputError(f"{label}: is {type(data).__name__}; expected (q, dq, ddq, tau), a log or an Information")
        return logs_experiment(label, robot, data, terms, signals=self.signals)

    def stage(self, experiment: StageExperiment, rows: Experiment, known: Knowledge) -> tuple[Knowledge, Stage]:
        """Learn from the rows of a stage."""
        data = rows.information
        channels, counts = dense_channels(data)
        W = np.vstack([rows[:, :-1] for rows in channels])
        fresh = known.fresh(W, self.method.rank_tolerance or TOLERANCE)
        fitted = _fitted(rows, known, fresh, self.method) if fresh.pivots else _nothing_new(channels, counts, known)
        after, own_std, sigma = fitted
        names, start = self.base.names, len(known.pivots)
        new = after.determined & ~known.determined
        feels = self._felt_by(data.channels)
        left_open = tuple(names[j] for j in feels if not after.determined[j])
        stage = Stage(
            label=experiment.label or ", ".join(data.channels),
            outputs=data.channels,
            locked=experiment.locked,
            names=combination_texts(fresh.rows, fresh.pivots, names),
            values=after.values[start:] + fresh.rows @ self.start,
            std=np.sqrt(np.maximum(np.diag(after.covariance)[start:], 0.0)),
            own_std=own_std,
            rank=len(fresh.pivots),
            condition=fresh.condition,
            sigma=sigma,
            n_rows=float(counts.sum()),
            determined=tuple(name for name, now in zip(names, new, strict=True) if now),
            left_open=left_open,
            note=_words(experiment, data.channels, fresh, bool(W.any()), left_open, len(feels)),
        )
        return after, stage

    def _felt_by(self, outputs: Sequence[str]) -> list[int]:
        """Base parameters that the torques of some joints feel when all joints move."""
        rows = {self.base.robot.joint_names.index(name) for name in outputs}
        felt = {column for row, column in self.places if row in rows}
        return [i for i, column in enumerate(self.base.independent) if column in felt]


def _base(robot: Robot, terms: TermsLike) -> BaseParameters:
    if robot.locked:
        raise InputError("sequential estimation takes the free robot; lock joints in the experiments")
    return base_parameters(robot, resolve_terms(terms))


def _checked(experiments: StageExperiment | Sequence[StageExperiment]) -> list[StageExperiment]:
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


def _method(given: str | Estimator) -> Estimator:
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


def _fitted(stage: Experiment, known: Knowledge, fresh: Fresh, method: Estimator) -> tuple[Knowledge, Array, Array]:
    """What is known with a stage's estimates, their own standard deviations, and those of the residuals."""
    data = stage.information
    inflation = np.ones(len(data.channels)) if stage.inflation is None else stage.inflation
    r, m = len(known.pivots), len(fresh.pivots)
    names = [f"known {i}" for i in range(r)] + [f"new {i}" for i in range(m)]
    both = data.transformed(known.chart(fresh), names)
    fitted = method.clone().set_params(rank_tolerance=None)
    fitted.fit(both.known(dict(zip(names[:r], known.values.tolist(), strict=True))))
    sensitivity, own = np.zeros((m, r)), np.array(fitted.covariance_)
    channels = zip(both.channel_factors(), fitted.channel_weights_, fitted.sigma_, inflation, strict=True)
    for factor, weight, sigma, rows_per_fact in channels:
        rows = factor.dense(r + m)
        fixed, free = rows[:, :r], rows[:, r : r + m]
        sensitivity -= fitted.inverse_ @ (weight * free.T @ fixed)
        if not isinstance(method, TotalLeastSquares):  # its covariance is not that of the torque's noise alone
            moved = weight * free @ fitted.inverse_
            # Residuals hold errors of what is known, too; these come in through the sensitivity, and only once.
            variance = rows_per_fact * _noise(rows, factor.n_rows, sigma) ** 2
            own += (variance - sigma**2) * moved.T @ moved
    after = known.joined(fresh, fitted.values_, own, sensitivity)
    return after, np.sqrt(np.maximum(np.diag(own), 0.0)), fitted.sigma_


def _noise(rows: Array, n_rows: float, otherwise: float) -> float:
    """Deviation of a channel's torque about the best fit of all it feels, known or not.

    Args:
        rows: Its factor's rows over parameters and torque, (k + 1, n + 1).
        n_rows: Rows behind them.
        otherwise: The answer when these are too few to tell.
    """
    W, y = rows[:, :-1], rows[:, -1]
    size = np.linalg.norm(W, axis=0)
    u, singular, _ = np.linalg.svd(W / np.where(size > 0.0, size, 1.0), full_matrices=False)
    u = u[:, singular > TOLERANCE * singular[0]]
    freedom = n_rows - u.shape[1]
    return float(np.linalg.norm(y - u @ (u.T @ y)) / np.sqrt(freedom)) if freedom > u.shape[1] else otherwise


def _nothing_new(channels: list[Array], counts: Array, known: Knowledge) -> tuple[Knowledge, Array, Array]:
    """The same for a stage that adds nothing."""
    beta, _ = known.base_values()
    errors = np.array([np.linalg.norm(rows[:, -1] - rows[:, :-1] @ beta) for rows in channels])
    return known, np.zeros(0), errors / np.sqrt(np.maximum(counts, 1.0))


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
