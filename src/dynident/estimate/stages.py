"""What is known of base parameters while experiments come in: some combinations, their values and covariance.

The combinations are the rows of G in G beta = c, the identity on their pivot columns. New data is first freed of what
is known; what remains is felt by other columns alone, and adds rows to G.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.arrays import Array, Mask, frozen, on_one_thread, record
from dynident.dynamics.terms import TermsLike, state_terms
from dynident.errors import InputError
from dynident.estimate.covariance import correlated_covariance, residual_correlation
from dynident.estimate.delay import choose_delay
from dynident.estimate.essential import EssentialParameters, check_share, essential_parameters
from dynident.estimate.estimator import Estimator
from dynident.estimate.prediction import TorqueModel
from dynident.estimate.torque_error import chosen_estimator
from dynident.identifiability.base import BaseParameters, base_parameters, readable_base
from dynident.identifiability.regrouping import without_rounding
from dynident.information.information import Information, MergeError
from dynident.information.parameter_estimate import ParameterEstimate
from dynident.information.row_source import accumulate_source
from dynident.logs.log import Log, LogSource
from dynident.robot.model import Robot
from dynident.signals.kernels import low_pass_kernel
from dynident.signals.observations import Observations, SignalOptions, observe
from dynident.signals.rows import ROWS_PER_BAND, ObservedRows

TOLERANCE = 1e-9  # relations between experiments are known to about 1e-11; what is smaller than this is rounding


@dataclass(frozen=True)
class Fresh:
    """What data adds to what is known.

    Attributes:
        pivots: Column of beta on which each new combination stands.
        rows: (m, n) the new combinations over beta; the identity on `pivots`, zero on what was known before.
        condition: Condition number of the new part of the data, with scaled columns; 1 when there is none.
        felt: Columns of beta with an effect that is not known yet.
    """

    pivots: tuple[int, ...]
    rows: Array
    condition: float
    felt: tuple[int, ...]


@dataclass(frozen=True)
class Knowledge:
    """Known combinations of base parameters.

    Attributes:
        pivots: Column of beta on which each combination stands.
        G: (r, n), the identity on `pivots`.
        values: (r,) c in G beta = c.
        covariance: (r, r) of the values.
    """

    pivots: tuple[int, ...]
    G: Array
    values: Array
    covariance: Array

    def __post_init__(self) -> None:
        for name in ("G", "values", "covariance"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @staticmethod
    def nothing(n: int) -> Knowledge:
        """Of n base parameters nothing is known."""
        return Knowledge((), np.zeros((0, n)), np.zeros(0), np.zeros((0, 0)))

    @property
    def determined(self) -> Mask:
        """(n,) whether each base parameter is known by itself."""
        result = np.zeros(self.G.shape[1], dtype=bool)
        result[[p for p, row in zip(self.pivots, self.G, strict=True) if np.count_nonzero(row) == 1]] = True
        return result

    def base_values(self) -> tuple[Array, Array]:
        """Values (n,) and covariance (n, n) of all base parameters: a combination stands on its pivot, others are 0."""
        n, own = self.G.shape[1], list(self.pivots)
        beta, covariance = np.zeros(n), np.zeros((n, n))
        beta[own] = self.values
        covariance[np.ix_(own, own)] = self.covariance
        return beta, covariance

    @on_one_thread
    def fresh(self, W: Array, tolerance: float = TOLERANCE) -> Fresh:
        """What rows over beta, (m, n), add.

        Args:
            W: The rows.
            tolerance: Share of the largest singular value below which a direction counts as not seen.
        """
        known = W[:, list(self.pivots)]
        left = W - known @ self.G
        # A column that vanishes once the known part is taken out leaves rounding of the size of what was taken out.
        gross = np.linalg.norm(W, axis=0) + np.linalg.norm(np.abs(known) @ np.abs(self.G), axis=0)
        size = np.linalg.norm(left, axis=0)
        size[list(self.pivots)] = 0.0
        felt = [int(j) for j in np.flatnonzero(size > TOLERANCE * np.maximum(gross, 1e-300))]
        rows = np.zeros((0, W.shape[1]))
        if not felt:
            return Fresh((), rows, 1.0, ())
        _, singular, vt = np.linalg.svd(left[:, felt] / size[felt], full_matrices=False)
        rank = int(np.sum(singular > tolerance * singular[0]))
        independent, K = readable_base(vt[:rank], size[felt])
        rows = np.zeros((rank, W.shape[1]))
        rows[:, felt] = K
        return Fresh(tuple(felt[i] for i in independent), rows, float(singular[0] / singular[rank - 1]), tuple(felt))

    def chart(self, fresh: Fresh) -> Array:
        """M with beta = M (c, theta) a representative of known and new values, (n, r + m)."""
        n, r, m = self.G.shape[1], len(self.pivots), len(fresh.pivots)
        M = np.zeros((n, r + m))
        M[list(self.pivots), range(r)] = 1.0
        M[list(fresh.pivots), range(r, r + m)] = 1.0
        M[np.ix_(list(self.pivots), range(r, r + m))] = -self.G[:, list(fresh.pivots)]
        return M

    def joined(self, fresh: Fresh, values: Array, own: Array, sensitivity: Array) -> Knowledge:
        """With new combinations, whose estimates depend on the known values.

        Args:
            fresh: The new combinations.
            values: (m,) theta, their values.
            own: (m, m) covariance of theta if what was known were exact.
            sensitivity: (m, r) J, how theta moves with the known values.
        """
        crossed = sensitivity @ self.covariance
        both = np.block([[self.covariance, crossed.T], [crossed, own + crossed @ sensitivity.T]])
        B = self.G[:, list(fresh.pivots)]  # part that known combinations have in the new ones: taken out
        r, m = B.shape
        L = np.block([[np.eye(r), -B], [np.zeros((m, r)), np.eye(m)]])
        return Knowledge(
            pivots=(*self.pivots, *fresh.pivots),
            G=np.vstack([without_rounding(self.G - B @ fresh.rows), fresh.rows]),
            values=L @ np.concatenate([self.values, values]),
            covariance=L @ both @ L.T,
        )


def combination_texts(rows: Array, pivots: Sequence[int], names: Sequence[str]) -> tuple[str, ...]:
    """Combinations (m, n) of named parameters in words, such as `YYR2 + 0.8 MXR2`, the pivot of each first."""
    result = []
    for row, pivot in zip(rows, pivots, strict=True):
        others = (int(j) for j in np.flatnonzero(row) if j != pivot)
        parts = (f" {'-' if row[j] < 0 else '+'} {_coefficient(abs(row[j]))}{names[j]}" for j in others)
        result.append(names[pivot] + "".join(parts))
    return tuple(result)


def _coefficient(size: float) -> str:
    return "" if size == 1.0 else f"{size:.6g} "


# ----------------------------------------------------------------------------------------------------------------------
# Several experiments combined: each with its own locked joints and output rows, solved in steps or all at once.
#
# In steps, what one experiment finds is known in the next, and its deviations are carried along. With u the parameters
# of
# a step, k those known before and R the weighted factor of the step's rows,
#
#     u = C R_u' (z - R_k k),   cov u = C + J cov(k) J',   cov(u, k) = J cov(k),   J = -C R_u' R_k.
#
# That is the two-step procedure of Gautier, Khalil, Restrepo 1995 (section 4.3, point 7): the wrist from the rows of
# its
# own motors with all joints moving, then the arm with the wrist locked.


@dataclass(frozen=True, eq=False)
class Experiment:
    """Runs of one kind.

    Attributes:
        name: Name in reports.
        information: Their data; `Information.outputs` picks rows.
        inflation: (n_channels,) rows that weigh as much as one independent row; None for white noise.
        rows: The rows of the logs it was made of; None where it was made of information alone.
    """

    name: str
    information: Information
    inflation: Array | None = None
    rows: ObservedRows | None = None

    def __post_init__(self) -> None:
        if self.inflation is not None:
            given, n = np.asarray(self.inflation, dtype=np.float64), len(self.information.channels)
            if given.shape != (n,) or not (np.isfinite(given) & (given >= 1.0)).all():
                raise InputError(
                    f"experiment {self.name}: inflation must be {n} numbers of at least one, one per output"
                )

    @property
    def felt(self) -> tuple[str, ...]:
        """Base parameters that its rows feel."""
        return _felt(self.information)


def experiment(
    name: str,
    robot: Robot,
    logs: LogSource | Sequence[LogSource],
    terms: TermsLike = None,
    *,
    outputs: Iterable[str] | None = None,
    signals: SignalOptions | None = None,
) -> Experiment:
    """An experiment from logs; its standard deviations allow for residuals that follow each other.

    Args:
        name: Name in reports.
        robot: The robot, with the joints locked that stood still.
        logs: Its logs.
        terms: Terms of the model; default rigid, Ia, Fv, Fc, Fo.
        outputs: Joints whose rows are used; default all that move.
        signals: Band, delay, rest speed, differentiator; None chooses band and delay from the data, as `identify` does.
    """
    given = [logs] if isinstance(logs, Log) or not isinstance(logs, Iterable) else list(logs)
    if not given:
        raise InputError(f"experiment {name} has no log")
    observed, base = [observe(log, robot, signals) for log in given], base_parameters(robot, terms)
    if signals is None:
        plain = base_parameters(robot, state_terms(base.terms))
        delay = choose_delay(observed, plain).delay
        observed = [one.with_options(delay=delay) for one in observed]
    rows = ObservedRows(tuple(observed), base)
    information = accumulate_source(rows)
    if outputs is not None:
        information = information.outputs(outputs)
    return Experiment(name, information, frozen(_residual_inflation(rows, information)), rows)


def _residual_inflation(rows: ObservedRows, information: Information) -> Array:
    """(n_channels,) rows that weigh as much as one independent row.

    White noise after the low-pass of the rows is the least there is; what the model leaves, friction at reversals above
    all, follows itself for longer.
    """
    least = max(_filter_inflation(one) for one in rows.observations)
    left = residual_correlation(rows, information.solve().values)
    own = [left.channels.index(name) for name in information.channels]
    return np.maximum(least, left.inflation[own])


def _filter_inflation(one: Observations) -> float:
    """Rows that weigh as much as one independent row after white noise has passed the low-pass of the rows."""
    rate = one.survey.grid.rate / one.step
    step = max(1, int(rate / (ROWS_PER_BAND * one.band)))
    return max(1.0, 1.0 / (step * low_pass_kernel(one.band, rate).noise_gain ** 2))


@dataclass(frozen=True, eq=False)
class Step:
    """What one experiment gave.

    Attributes:
        name: Name of the experiment.
        outputs: Its output rows.
        n_rows: Equations.
        parameters: Base parameters that were unknown in it.
        known: Base parameters that its rows feel and that came from the steps before.
        rank: Directions of the unknown ones that it determines.
        condition: Condition of the weighted rows with columns scaled to unit norm, before anything was eliminated.
        fitted: The estimator fitted to all unknown ones; None for an experiment of a joint solution.
        essential: What was eliminated, where that was wanted.
    """

    name: str
    outputs: tuple[str, ...]
    n_rows: float
    parameters: tuple[str, ...]
    known: tuple[str, ...]
    rank: int
    condition: float
    fitted: Estimator | None = None
    essential: EssentialParameters | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        gone = () if self.essential is None else self.essential.eliminated
        return {
            "name": self.name,
            "outputs": list(self.outputs),
            "equations": self.n_rows,
            "parameters": list(self.parameters),
            "known": list(self.known),
            "rank": self.rank,
            "condition": self.condition if np.isfinite(self.condition) else None,
            "eliminated": [one.as_dict() for one in gone],
        }


@record
class CombinedParameters(ParameterEstimate):
    """Base parameters from several experiments.

    Attributes:
        steps: One per experiment; a joint solution has one more, for all together.
        essential: Names of the parameters that are determined and not zero by elimination.
        warnings: What a reader should know.
    """

    steps: tuple[Step, ...] = ()
    essential: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """A line, not the numbers."""
        known = int(np.count_nonzero(self.determined))
        return f"CombinedParameters({known} of {len(self.names)} parameters from {len(self.steps)} steps)"

    def model(self, base: BaseParameters | None = None) -> TorqueModel:
        """What predicts torque with these values, see `TorqueModel.of`."""
        return TorqueModel.of(self, base)

    def table(self) -> str:
        """The steps as text: outputs, equations, unknown and known parameters, rank, condition, eliminated."""
        head = ("experiment", "outputs", "equations", "parameters", "known", "rank", "condition", "eliminated")
        lines = [head]
        for step in self.steps:
            gone = 0 if step.essential is None else len(step.essential.eliminated)
            counts = (f"{step.n_rows:g}", str(len(step.parameters)), str(len(step.known)), str(step.rank))
            lines.append((step.name, ",".join(step.outputs), *counts, f"{step.condition:.3g}", str(gone)))
        widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
        return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


@on_one_thread
def solve_in_steps(
    experiments: Experiment | Sequence[Experiment],
    estimator: str | Estimator = "weighted",
    *,
    essential: float | None = None,
) -> CombinedParameters:
    """Solve experiments one after the other; what one determines is known in the next, with its deviations.

    Single parameters are carried from step to step. What a step tells about a combination alone is not, so an
    experiment with locked joints comes after the one that determines the parts; a warning says when the order loses
    something.
    `sequential` carries combinations as well.

    Args:
        experiments: In the order of solving.
        estimator: Method of every step, by name or as an object.
        essential: Share of the relative deviation from which parameters are eliminated in each step; None keeps all.
    """
    experiments = _checked(experiments)
    method = chosen_estimator(estimator)
    parts = _in_common(experiments, essential)
    whole = parts[0].coordinates
    n, place = whole.n, {name: i for i, name in enumerate(whole.names)}
    values, covariance, known = np.zeros(n), np.zeros((n, n)), np.zeros(n, dtype=bool)
    steps = []
    for one, part in zip(experiments, parts, strict=True):
        felt = [place[name] for name in _felt(part)]
        old = [i for i in felt if known[i]]
        rest = part.restrict([whole.names[i] for i in felt])
        rest = rest.settled({whole.names[i]: float(values[i]) for i in old})
        if not rest.names:
            raise InputError(f"experiment {one.name} has no unknown parameter left; leave it out or put it first")
        step, found = _solve(one, rest, tuple(whole.names[i] for i in old), method, essential)
        steps.append(step)
        new = [place[name] for name in rest.names]
        J = _carried(part, step, [place[name] for name in _solved(step)], old, new)
        values[new] = found.values
        spread = J @ covariance[old]  # (n_new, n): covariance with everything known before
        covariance[new], covariance[:, new] = spread, spread.T
        covariance[np.ix_(new, new)] = found.covariance + J @ covariance[np.ix_(old, old)] @ J.T
        known[new] = found.determined
    gone = {one.name for step in steps if step.essential is not None for one in step.essential.eliminated}
    kept = tuple(name for name, told in zip(whole.names, known, strict=True) if told and name not in gone)
    lost = _lost(parts, known)
    return CombinedParameters.of(whole, values, covariance, known, steps=tuple(steps), essential=kept, warnings=lost)


def _lost(parts: Sequence[Information], known: Mask) -> tuple[str, ...]:
    """A warning when the steps leave open what all experiments together determine."""
    if known.all():
        return ()
    together = sum(parts[1:], start=parts[0]).solve()
    open_ones = [
        name for name, told, could in zip(together.names, known, together.determined, strict=True) if could > told
    ]
    if not open_ones:
        return ()
    return (
        f"in this order the steps leave open {', '.join(open_ones)}, which the experiments determine together; put "
        "experiments with locked joints last, or use solve_together or sequential",
    )


def _checked(experiments: Experiment | Sequence[Experiment]) -> list[Experiment]:
    """One experiment or several as a list."""
    given = [experiments] if isinstance(experiments, Experiment) else list(experiments)
    for one in given:
        if not isinstance(one, Experiment):
            raise InputError(f"a {type(one).__name__} is not an experiment; make one: Experiment(name, information)")
    return given


def solve_together(
    experiments: Experiment | Sequence[Experiment],
    estimator: str | Estimator = "weighted",
    *,
    essential: float | None = None,
) -> CombinedParameters:
    """Solve all experiments as one data set; channels of one name share their noise.

    Args:
        experiments: In any order.
        estimator: Method, by name or as an object.
        essential: Share of the relative deviation from which parameters are eliminated; None keeps all.
    """
    experiments = _checked(experiments)
    parts = _in_common(experiments, essential)
    steps = []
    for one, part in zip(experiments, parts, strict=True):
        own = part.restrict(_felt(part)).solve()
        steps.append(Step(one.name, part.channels, part.n_rows, own.names, (), own.rank, own.condition))
    total = sum(parts[1:], start=parts[0])
    every = Experiment("all together", total, _shared_inflation(experiments, total.channels))
    step, found = _solve(every, total, (), chosen_estimator(estimator), essential)
    kept = found.essential if isinstance(found, EssentialParameters) else found.names
    taken = (*steps, step)
    return CombinedParameters.of(
        total.coordinates, found.values, found.covariance, found.determined, steps=taken, essential=kept
    )


def _in_common(experiments: Sequence[Experiment], essential: float | None) -> list[Information]:
    """Every experiment over one set of base parameters: those of the experiment that sees all, or of all together."""
    if not experiments:
        raise InputError("there is no experiment")
    if essential is not None:
        check_share(essential)
    data = [one.information for one in experiments]
    richest = max(data, key=lambda part: part.coordinates.n)
    try:
        return [part.over(richest) for part in data]
    except MergeError:
        total = sum(data[1:], start=data[0])
        return [part.over(total) for part in data]


def _felt(information: Information) -> tuple[str, ...]:
    """Base parameters that some row feels, in order."""
    columns = {column for factor in information.channel_factors() for column in factor.columns}
    return tuple(name for i, name in enumerate(information.names) if i in columns)


def _solve(
    one: Experiment, rest: Information, known: tuple[str, ...], estimator: Estimator, share: float | None
) -> tuple[Step, ParameterEstimate]:
    """Solve for what is unknown in an experiment."""
    fitted = estimator.clone().fit(rest)
    essential = None
    if share is not None:
        essential = essential_parameters(fitted, share=share, inflation=one.inflation)
    step = Step(
        *(one.name, rest.channels, rest.n_rows, rest.names, known, fitted.rank_, fitted.condition_, fitted, essential)
    )
    if essential is not None:
        return step, essential
    covariance = fitted.covariance_ if one.inflation is None else correlated_covariance(fitted, one.inflation)
    return step, fitted.estimate_.replace(covariance=covariance)


def _solved(step: Step) -> tuple[str, ...]:
    """The parameters that were solved for in the end."""
    return step.parameters if step.essential is None else step.essential.essential


def _carried(part: Information, step: Step, solved: list[int], old: list[int], new: list[int]) -> Array:
    """J: how the step's parameters move with those known before, (n_new, n_old); nothing moves what was eliminated."""
    last = step.fitted if step.essential is None else step.essential.fitted
    assert last is not None
    n = part.coordinates.n
    middle = np.zeros((len(solved), len(old)))
    for factor, weight in zip(part.channel_factors(), last.channel_weights_, strict=True):
        rows = factor.dense(n)
        middle += weight * rows[:, solved].T @ rows[:, old]
    J = np.zeros((len(new), len(old)))
    J[[new.index(i) for i in solved]] = -last.inverse_ @ middle
    return J


def _shared_inflation(experiments: Sequence[Experiment], channels: tuple[str, ...]) -> Array | None:
    """The inflation of each channel over all experiments, by their rows."""
    if all(one.inflation is None for one in experiments):
        return None
    weighted, rows = np.zeros(len(channels)), np.zeros(len(channels))
    for one in experiments:
        own = one.information
        inflation = np.ones(len(own.channels)) if one.inflation is None else one.inflation
        for name, factor, share in zip(own.channels, own.channel_factors(), inflation, strict=True):
            place = channels.index(name)
            weighted[place] += factor.n_rows * share
            rows[place] += factor.n_rows
    return np.where(rows > 0.0, weighted / np.maximum(rows, 1.0), 1.0)
