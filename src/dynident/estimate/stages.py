r"""Multistage estimation: experiments solved one after the other, what one determines being known in the next.

Known are combinations of base parameters, G beta = c with the covariance of c; G is the identity on its pivot columns.
A stage adds rows. Freed of what is known they determine new combinations theta,

.. math:: \hat\theta = \arg\min \|y - W_c c - W_\theta \theta\|, \quad \operatorname{cov} \hat\theta = \Sigma +
    J \operatorname{cov}(c)\, J^T, \quad \operatorname{cov}(\hat\theta, c) = J \operatorname{cov}(c), \quad
    J = \partial\hat\theta / \partial c = -C W_\theta^T W_c

with Sigma the covariance of theta if c were exact and C the inverse of the information matrix of the stage. Sequential
estimation (Khosla, Kanade 1987, `sequential_estimation.py`) takes as new whatever combinations the rows determine;
two-step estimation (Gautier, Khalil, Restrepo 1995, `two_step_estimation.py`) takes single parameters, and may
eliminate those that are not essential.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from dynident.arrays import Array, Mask, on_one_thread, place_of, record
from dynident.errors import InputError
from dynident.estimate.covariance import correlated_covariance
from dynident.estimate.essential import EssentialParameters, essential_parameters
from dynident.estimate.estimator import Estimator
from dynident.estimate.least_squares import TotalLeastSquares
from dynident.estimate.prediction import TorqueModel
from dynident.estimate.records import Elimination
from dynident.estimate.stage_data import StageData
from dynident.estimate.thresholds import THRESHOLDS
from dynident.identifiability.base import BaseParameters, readable_base
from dynident.identifiability.regrouping import Regrouping, without_rounding
from dynident.information.information import Information
from dynident.information.parameter_estimate import ParameterEstimate, SolveRecord, std_text, text_table
from dynident.information.solution import dense_channels

# ----------------------------------------------------------------------------------------------------------------------
# The engine.


@dataclass(frozen=True)
class NewCombinations:
    """Combinations of base parameters that a stage estimates.

    Attributes:
        pivots: Column of beta on which each stands.
        rows: (m, n) the combinations over beta; the identity on `pivots`, zero on what was known before.
        condition: Condition number of the freed rows with scaled columns, where these determine every combination; None
            where solving decides that.
    """

    pivots: tuple[int, ...]
    rows: Array
    condition: float | None = None

    @staticmethod
    def single(places: Iterable[int], n: int) -> NewCombinations:
        """Single parameters of n."""
        pivots = tuple(places)
        return NewCombinations(pivots, np.eye(n)[list(pivots)])


@record
class KnownCombinations:
    """Combinations of base parameters that were estimated, G beta = c.

    Attributes:
        pivots: Column of beta on which each combination stands.
        G: (r, n), the identity on `pivots`.
        values: (r,) c.
        covariance: (r, r) of the values.
        held: (r,) whether later stages hold it at its value; the others are not determined, and are estimated again.
    """

    pivots: tuple[int, ...]
    G: Array
    values: Array
    covariance: Array
    held: Mask

    @staticmethod
    def nothing(n: int) -> KnownCombinations:
        """Of n base parameters nothing is known."""
        return KnownCombinations((), np.zeros((0, n)), np.zeros(0), np.zeros((0, 0)), np.zeros(0, dtype=bool))

    @property
    def determined(self) -> Mask:
        """(n,) whether each base parameter is known by itself."""
        result = np.zeros(self.G.shape[1], dtype=bool)
        parts = zip(self.pivots, self.G, self.held, strict=True)
        result[[pivot for pivot, row, held in parts if held and np.count_nonzero(row) == 1]] = True
        return result

    def base_values(self) -> tuple[Array, Array]:
        """Values (n,) and covariance (n, n) of all base parameters: a combination stands on its pivot, others are 0."""
        n, own = self.G.shape[1], list(self.pivots)
        beta, covariance = np.zeros(n), np.zeros((n, n))
        beta[own] = self.values
        covariance[np.ix_(own, own)] = self.covariance
        return beta, covariance

    @on_one_thread
    def new_combinations(self, W: Array, rank_tolerance: float) -> NewCombinations:
        """The combinations that rows over beta, (m, n), determine beyond what is known.

        Args:
            W: The rows.
            rank_tolerance: Share of the largest singular value below which a direction counts as not determined.
        """
        known = W[:, list(self.pivots)]
        freed = W - known @ self.G
        # A column that vanishes once the known part is taken out leaves rounding of the size of what was taken out.
        gross = np.linalg.norm(W, axis=0) + np.linalg.norm(np.abs(known) @ np.abs(self.G), axis=0)
        size = np.linalg.norm(freed, axis=0)
        size[list(self.pivots)] = 0.0
        own = np.flatnonzero(size > THRESHOLDS.exact_rank * np.maximum(gross, 1e-300)).tolist()
        if not own:
            return NewCombinations((), np.zeros((0, W.shape[1])), 1.0)
        _, singular, vt = np.linalg.svd(freed[:, own] / size[own], full_matrices=False)
        rank = int(np.sum(singular > rank_tolerance * singular[0]))
        independent, K = readable_base(vt[:rank], size[own])
        rows = np.zeros((rank, W.shape[1]))
        rows[:, own] = K
        return NewCombinations(tuple(own[i] for i in independent), rows, float(singular[0] / singular[rank - 1]))

    def chart(self, new: NewCombinations) -> tuple[Array, Array]:
        """Matrices M_c (n, n_held) and M_theta (n, m) with beta = M_c c + M_theta theta a representative of both."""
        own, fresh = [pivot for pivot, held in zip(self.pivots, self.held, strict=True) if held], list(new.pivots)
        n = self.G.shape[1]
        M_held, M_new = np.eye(n)[:, own], np.eye(n)[:, fresh]
        M_new[own] = -self.G[self.held][:, fresh]
        return M_held, M_new

    def joined(
        self, new: NewCombinations, values: Array, own: Array, sensitivity: Array, determined: Mask
    ) -> KnownCombinations:
        """With new combinations, whose estimates depend on the values that were held.

        Args:
            new: The new combinations; what they estimate again is replaced.
            values: (m,) theta, their values.
            own: (m, m) covariance of theta if what was held were exact.
            sensitivity: (m, n_held) J, how theta moves with the held values.
            determined: (m,) whether each is to be held from now on.
        """
        stay = [i for i, pivot in enumerate(self.pivots) if pivot not in new.pivots]
        crossed = sensitivity @ self.covariance[self.held]
        whole = own + crossed[:, self.held] @ sensitivity.T
        crossed = crossed[:, stay]
        both = np.block([[self.covariance[np.ix_(stay, stay)], crossed.T], [crossed, whole]])
        B = self.G[np.ix_(stay, list(new.pivots))]  # part that known combinations have in the new ones: taken out
        r, m = B.shape
        L = np.block([[np.eye(r), -B], [np.zeros((m, r)), np.eye(m)]])
        return KnownCombinations(
            pivots=(*(self.pivots[i] for i in stay), *new.pivots),
            G=np.vstack([without_rounding(self.G[stay] - B @ new.rows), new.rows]),
            values=L @ np.concatenate([self.values[stay], values]),
            covariance=L @ both @ L.T,
            held=np.concatenate([self.held[stay], determined]),
        )


@record
class StageEstimate(ParameterEstimate):
    """What one stage estimated: base parameters, or combinations of them written out.

    The covariance has that of everything known before carried along; rank, condition, residual standard deviations and
    equations are those of the stage's own rows.

    Attributes:
        label: Name of its data.
        outputs: Joints whose torque was used.
        own_std: (m,) standard deviations if what was known before were exact.
        known: Base parameters that its rows depend on and that were known by themselves before.
        newly_determined: Base parameters that are determined by themselves since this stage.
        fitted: The estimator fitted to all that was unknown; None where nothing was.
        essential: Result of the elimination, where that was wanted.
        locked: Position of each joint that was held, by variable [rad or m].
        left_open: Base parameters that the outputs depend on when all joints move and that are not determined yet.
        note: The same in words.
    """

    label: str = ""
    outputs: tuple[str, ...] = ()
    own_std: Array = field(default_factory=lambda: np.zeros(0))
    known: tuple[str, ...] = ()
    newly_determined: tuple[str, ...] = ()
    fitted: Estimator | None = None
    essential: EssentialParameters | None = None
    locked: Mapping[str, float] = field(default_factory=dict)
    left_open: tuple[str, ...] = ()
    note: str = ""

    @property
    def eliminated(self) -> tuple[Elimination, ...]:
        """Parameters that were taken as zero, in the order in which they left."""
        return () if self.essential is None else self.essential.eliminated

    def __getitem__(self, name: str) -> float:
        """Value of what the stage estimated, by name."""
        return float(self.values[place_of(name, self.names, f"parameter of stage {self.label}")])

    def as_dict(self) -> dict[str, Any]:
        """The stage as plain data."""
        return {
            "name": self.label,
            "outputs": list(self.outputs),
            "equations": self.n_rows,
            "parameters": list(self.names),
            "known": list(self.known),
            "rank": self.rank,
            "condition": self.condition if np.isfinite(self.condition) else None,
            "eliminated": [one.as_dict() for one in self.eliminated],
        }


@on_one_thread
def solve_stage(
    data: StageData,
    known: KnownCombinations,
    new: NewCombinations,
    method: Estimator,
    *,
    essential: float | None = None,
    noise: Literal["residual", "unexplained"] = "residual",
) -> tuple[KnownCombinations, StageEstimate]:
    """Estimate new combinations from the rows of a stage; returns all that is known afterwards, and the stage.

    Args:
        data: The stage's data.
        known: What is known.
        new: What to estimate.
        method: The estimator; it is fitted on a clone.
        essential: Relative standard deviation from which parameters are eliminated; None keeps all.
        noise: Standard deviation that the covariance is made of: of the residual with what is known held; or of what
            the rows leave unexplained whatever is known, so that errors of the known values count only once.
    """
    information, names = data.information, data.information.names
    held, free = known.chart(new)
    texts, units = combination_texts(new, names), [information.coordinates.units[i] for i in new.pivots]
    freed = information.around(held @ known.values[known.held])
    if not new.pivots:
        return known, _stage_without_news(data.name, freed)
    rest = freed.transformed(free, texts, units)
    fitted = last = method.clone().fit(rest)
    found: ParameterEstimate = fitted.estimate_
    reduced = None
    if essential is not None:
        found = reduced = essential_parameters(fitted, share=essential, inflation=data.inflation)
        assert reduced.fitted is not None
        last, own = reduced.fitted, reduced.covariance
    elif noise == "residual":
        own = fitted.covariance_ if data.inflation is None else correlated_covariance(fitted, data.inflation)
    elif isinstance(method, TotalLeastSquares):  # its covariance is not that of the torque's noise alone
        own = fitted.covariance_
    else:
        noise_std = _unexplained_std(data, held, free, fitted.sigma_)
        own = correlated_covariance(fitted, data.white_inflation, noise_std)
    sensitivity = _sensitivity(information, held, free, last, [texts.index(name) for name in last.names_])
    determined = found.determined if new.condition is None else np.ones(len(texts), dtype=bool)
    after = known.joined(new, found.values, own, sensitivity, determined)
    solved = fitted.estimate_.solve
    assert solved is not None
    if new.condition is not None:
        solved = solved.replace(rank=len(texts), condition=new.condition)
    depends = {column for factor in information.channel_factors() for column in factor.columns}
    stage = StageEstimate.of(
        rest.coordinates,
        found.values,
        after.covariance[-len(texts) :, -len(texts) :],
        determined,
        solve=solved,
        label=data.name,
        outputs=information.channels,
        own_std=np.sqrt(np.maximum(np.diag(own), 0.0)),
        known=tuple(name for i, name in enumerate(names) if i in depends and known.determined[i]),
        newly_determined=names_where(names, after.determined & ~known.determined),
        fitted=fitted,
        essential=reduced,
    )
    return after, stage


def _sensitivity(information: Information, held: Array, free: Array, fitted: Estimator, own: Sequence[int]) -> Array:
    """J: how the estimates move with the values that are held, (m, n_held); zero for what was eliminated.

    Args:
        information: The rows over beta.
        held: (n, n_held) what is held, over beta.
        free: (n, m) what is estimated.
        fitted: The solution.
        own: Places among the m of those that were solved for in the end.
    """
    n = information.coordinates.n
    middle = np.zeros((len(own), held.shape[1]))
    for factor, weight in zip(information.channel_factors(), fitted.channel_weights_, strict=True):
        rows = factor.dense(n)[:, :n]
        middle += weight * (rows @ free[:, own]).T @ (rows @ held)
    J = np.zeros((free.shape[1], held.shape[1]))
    J[own] = -fitted.inverse_ @ middle
    return J


def _unexplained_std(data: StageData, held: Array, free: Array, otherwise: Array) -> Array:
    """(n_channels,) standard deviation of each channel's torque about the best fit of all it depends on, known or not.

    A column takes from correlated residuals what it takes from as many rows as weigh one independent one.

    Args:
        data: The rows over beta.
        held: (n, n_held) what is known, over beta.
        free: (n, m) what is not.
        otherwise: (n_channels,) the answer for a channel with too few rows.
    """
    n = data.information.coordinates.n
    result = otherwise.copy()
    parts = zip(data.information.channel_factors(), data.white_inflation, strict=True)
    for channel, (factor, inflation) in enumerate(parts):
        rows = factor.dense(n)
        W, y = rows[:, :n] @ np.hstack([held, free]), rows[:, n]
        size = np.linalg.norm(W, axis=0)
        u, singular, _ = np.linalg.svd(W / np.where(size > 0.0, size, 1.0), full_matrices=False)
        u = u[:, singular > THRESHOLDS.exact_rank * singular[0]]
        freedom = factor.n_rows - inflation * u.shape[1]
        if freedom > u.shape[1]:
            result[channel] = np.linalg.norm(y - u @ (u.T @ y)) / np.sqrt(freedom)
    return result


def _stage_without_news(label: str, freed: Information) -> StageEstimate:
    """A stage whose rows, freed of what is known, determine nothing; their torque is the residual."""
    channels, counts = dense_channels(freed)
    residual = np.array([np.linalg.norm(rows[:, -1]) for rows in channels]) / np.sqrt(np.maximum(counts, 1.0))
    none, no_names = np.zeros(0), ()
    solved = SolveRecord(
        rank=0,
        singular_values=none,
        condition=1.0,
        gap=(np.nan, np.nan),
        channels=freed.channels,
        residual_std=residual,
        channel_weights=np.ones(len(counts)),
        determined=none.astype(bool),
        n_rows=float(counts.sum()),
        iterations=0,
    )
    found = StageEstimate(no_names, no_names, none, np.zeros((0, 0)), none.astype(bool), solve=solved)
    return found.replace(label=label, outputs=freed.channels)


def combination_texts(new: NewCombinations, names: Sequence[str]) -> tuple[str, ...]:
    """Combinations of named parameters in words, such as `YYR2 + 0.8 MXR2`, the pivot of each first."""
    result = []
    for row, pivot in zip(new.rows, new.pivots, strict=True):
        others = (int(j) for j in np.flatnonzero(row) if j != pivot)
        parts = (f" {'-' if row[j] < 0 else '+'} {_coefficient(abs(row[j]))}{names[j]}" for j in others)
        result.append(names[pivot] + "".join(parts))
    return tuple(result)


def _coefficient(size: float) -> str:
    return "" if size == 1.0 else f"{size:.6g} "


def names_where(names: Sequence[str], wanted: Mask) -> tuple[str, ...]:
    """The names whose place in a mask is true."""
    return tuple(name for name, own in zip(names, wanted, strict=True) if own)


@record
class StagedEstimate(ParameterEstimate):
    """Base parameters from several stages, which count as independent.

    A combination that could not be taken apart stands on its first parameter; the others, and those that no stage
    depends on, have their nominal values, or are zero.

    Attributes:
        stages: In the order of solving; a joint solution has one for each experiment, and one for all together.
        nominal: (n,) base values that corrections were estimated around; None where none were given.
        n_combinations: Combinations of base parameters that all stages together determine.
        warnings: What a reader should know.
    """

    stages: tuple[StageEstimate, ...] = ()
    nominal: Array | None = None
    n_combinations: int = 0
    warnings: tuple[str, ...] = ()

    @staticmethod
    def after(
        known: KnownCombinations,
        coordinates: Regrouping,
        stages: Sequence[StageEstimate],
        *,
        nominal: Array | None = None,
        warnings: tuple[str, ...] = (),
    ) -> StagedEstimate:
        """What is known in the end."""
        values, covariance = known.base_values()
        return StagedEstimate.of(
            coordinates,
            values if nominal is None else nominal + values,
            covariance,
            known.determined,
            stages=tuple(stages),
            nominal=nominal,
            n_combinations=int(known.held.sum()),
            warnings=warnings,
        )

    @property
    def beta(self) -> Array:
        """(n,) values."""
        return self.values

    @property
    def base(self) -> BaseParameters:
        """What the parameters are.

        Raises:
            InputError: For data that has lost its robot (a file of factors).
        """
        if not isinstance(self.coordinates, BaseParameters):
            raise InputError("the data does not know its robot; `coordinates` says what the parameters are")
        return self.coordinates

    @property
    def correction(self) -> Array:
        """(n,) what the data added to the nominal values."""
        return self.values if self.nominal is None else self.values - self.nominal

    @property
    def rank(self) -> int:
        """Combinations of base parameters that all stages together determine."""
        return self.n_combinations

    @property
    def essential(self) -> tuple[str, ...]:
        """Parameters that are determined and not zero by elimination."""
        gone = {one.name for stage in self.stages for one in stage.eliminated}
        return tuple(name for name in names_where(self.names, self.determined) if name not in gone)

    @property
    def notes(self) -> tuple[str, ...]:
        """What each stage did, in words."""
        return tuple(f"{stage.label}: {stage.note}" for stage in self.stages if stage.note)

    @property
    def model(self) -> TorqueModel:
        """What predicts torque with these values; see `TorqueModel.of` for data that has lost its robot."""
        return TorqueModel.of(self)

    def __repr__(self) -> str:
        """A line, not the numbers."""
        found = f"{int(self.determined.sum())} of {len(self.names)} base parameters"
        return f"StagedEstimate({found} in {len(self.stages)} stages)"

    def table(self) -> str:
        """The parameters as text: name, stage, nominal and correction (where given), value, std, unit, meaning."""
        stage_of = {name.split()[0]: f"{stage.label} (combined)" for stage in self.stages for name in stage.names}
        stage_of |= {name: stage.label for stage in self.stages for name in stage.newly_determined}
        expressions = self.names if self.coordinates is None else self.coordinates.expressions
        around = () if self.nominal is None else ("nominal", "correction")
        head = ("parameter", "stage", *around, "value", "std", "unit", "stands for")
        lines = []
        for i, name in enumerate(self.names):
            numbers = (
                [self.values[i]] if self.nominal is None else [self.nominal[i], self.correction[i], self.values[i]]
            )
            shown = (*(f"{x:.5g}" for x in numbers), std_text(self.std[i]))
            lines.append((name, stage_of.get(name, "none"), *shown, self.units[i], expressions[i]))
        return text_table(head, lines, ("nominal", "correction", "value", "std"))

    def stage_table(self) -> str:
        """The stages as text: outputs, equations, unknown and known parameters, rank, condition, eliminated."""
        head = ("experiment", "outputs", "equations", "parameters", "known", "rank", "condition", "eliminated")
        lines = []
        for stage in self.stages:
            counts = (f"{stage.n_rows:g}", str(len(stage.names)), str(len(stage.known)), str(stage.rank))
            gone = str(len(stage.eliminated))
            lines.append((stage.label, ",".join(stage.outputs), *counts, f"{stage.condition:.3g}", gone))
        return text_table(head, lines, ())
