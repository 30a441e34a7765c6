r"""The predictive model: all columns under priors that the data chooses, averaged with basic friction.

Nothing is selected. Coefficients of all groups of friction are shrunk as far as the marginal likelihood says, links and
rotors too, and the model is the mean :math:`w\,x_\mathrm{rich} + (1 - w)\,x_\mathrm{basic}` of two such fits, with a
weight from blocks that were held out. Its friction takes energy at every velocity up to twice the trained ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, on_one_thread
from dynident.dynamics.terms import Term, along_terms
from dynident.dynamics.terms.friction import elements_with_friction, motion_of
from dynident.dynamics.terms.temperature import TemperatureFriction
from dynident.estimate.candidates import CandidateGroup, find_ripple
from dynident.estimate.covariance import common_inflation, covariance_root
from dynident.estimate.evidence import EmpiricalPrior, Posterior
from dynident.estimate.leveled_data import FoundLevels
from dynident.estimate.prediction import TorqueModel
from dynident.estimate.records import CrossValidation, GroupEvidence, TermSelection
from dynident.identifiability.base import BaseParameters
from dynident.information.parameter_estimate import ParameterEstimate, SolveRecord
from dynident.information.solution import dense_channels
from dynident.physical.dissipative_friction import steady_power
from dynident.pipeline.fitting import model_of, nominal_model
from dynident.pipeline.friction import measured_side, moving_elements, predictive_groups, ripple_term
from dynident.pipeline.levels import find_levels
from dynident.pipeline.preprocessing import TrainingData
from dynident.pipeline.springs import STIFFNESS, FoundSprings, find_springs
from dynident.pipeline.superset import BasicFit, LeftOutErrors, Superset
from dynident.pipeline.thresholds import THRESHOLDS
from dynident.signals.repeats import motion_states
from dynident.signals.rows import PREDICTION
from dynident.validation.cross_validation import band_levels, interval_coverage, left_out_rows, relative_to_all
from dynident.validation.residuals import LogErrors, compare_all

_WEIGHTS = np.linspace(0.0, 1.0, 101)  # of the rich fit that are tried
_ROUNDING = 1e-9  # standard deviations by which friction may be off


@dataclass(frozen=True, eq=False)
class PredictiveModel:
    """The model that predicts unseen motion best.

    Attributes:
        base: What its parameters are.
        estimate: Their values, shrunk and averaged, and the posterior covariance; for predictions, not for reading.
        model: What predicts torque with them.
        weight: Share of the rich fit; the rest is that with basic friction.
        selection: Its terms, and what the data says of each group.
        cross_validation: Errors of the averaged model on folds that were held out, over the torque of all folds, which
            foretell those on unseen motion of the kind; None where nothing could be left out.
        training: Measured and predicted torque of the training logs, log by log.
        has_nominal: Whether these compare the robot's own values too.
        notes: What was decided, in words.
        warnings: What a reader should know.
        springs: Springs that nobody declared and the data shows clearly.
        levels: What viscous friction differs by between the logs, where the data shows that beyond doubt.
    """

    base: BaseParameters
    estimate: ParameterEstimate
    model: TorqueModel
    weight: float
    selection: TermSelection
    cross_validation: CrossValidation | None
    training: tuple[LogErrors, ...]
    has_nominal: bool
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    springs: FoundSprings
    levels: FoundLevels | None


def fit_predictive(
    data: TrainingData,
    basic: BaseParameters,
    given: Sequence[Term] = (),
    *,
    look_for_levels: bool = True,
    temperature: TemperatureFriction | None = None,
) -> PredictiveModel:
    """Fit the predictive model to the training logs.

    Args:
        data: Training logs.
        basic: Base parameters of the basic terms.
        given: Terms beside them that are in the model in any case.
        look_for_levels: Whether viscous friction may differ between logs.
        temperature: Friction that changes with temperature; None where no log has any that varies.
    """
    data.progress("fitting the predictive model", 0, 1)
    plain = BasicFit.of(data, basic)
    more = [term for term in along_terms(given) if term.name == "ripple"]
    if not more and (ripple := find_ripple(model_of(basic, plain.posterior.values, None), data.train)):
        more = [ripple_term(ripple)]
    more += [] if temperature is None else [temperature]
    states = motion_states(data.train, THRESHOLDS.selection_s)
    groups = predictive_groups(basic, states.fastest)
    known = {(group.name, scale) for group in groups for scale in group.scales or (None,)}
    for term in along_terms(given):
        if term.name == TemperatureFriction.name:
            continue
        scales = [scale for scale in term.scales or (None,) if (term.name, scale) not in known]
        groups += [CandidateGroup(term.name, () if x is None else (x,)) for x in scales if term.name != "ripple"]
    superset = Superset(data, plain, groups, moving_elements(basic.robot, data.train), more, states)
    # A spring is nearly what gravity does on a narrow range: only where it is beyond doubt, or asked for.
    asked = {term.name for term in along_terms(given)}
    rich, _ = superset.fit([key for key in superset.groups if key != STIFFNESS or key in asked])
    left_out = superset.leave_out((rich, plain.prior)) if superset.folds else None
    springs = FoundSprings() if left_out is None else find_springs(superset, left_out)
    if springs.linear and STIFFNESS not in asked:
        rich, _ = superset.fit(list(superset.groups))
        left_out = superset.leave_out((rich, plain.prior))
    weight = 0.5 if left_out is None else averaging_weight(left_out)
    found = _Average.of(superset, rich, weight)
    doubt = None if left_out is None else left_out.deviations(1)[found.places]
    values, notes, warnings = _dissipating(found, superset.states.fastest, doubt)
    model = model_of(found.base, values, plain.links)
    nominal = nominal_model(data.robot, found.base)
    training = compare_all([model, *nominal], data.train, data.progress, "comparing")
    inflation = common_inflation([one.correlation for one in training])
    covariance = found.covariance(inflation)
    if data.levels is not None:
        covariance = covariance + data.levels.levels.of_new_log(found.base.names)
    selection = _selection(superset, found, left_out, measured_side(basic.robot, data.train))
    data.progress("fitting the predictive model", 1, 1)
    return PredictiveModel(
        base=found.base,
        estimate=ParameterEstimate.of(
            found.base,
            values,
            covariance,
            np.ones(found.base.n, dtype=bool),
            linearization=plain.links,
            solve=found.record(superset.information.channels, inflation),
        ),
        model=model,
        weight=weight,
        selection=selection,
        cross_validation=None if left_out is None else _cross_validation(superset, left_out, found, covariance),
        training=tuple(training),
        has_nominal=bool(nominal),
        notes=(selection.reason, *notes),
        warnings=warnings,
        springs=springs,
        levels=data.levels or (find_levels(superset, rich, inflation) if look_for_levels else None),
    )


def averaging_weight(errors: LeftOutErrors) -> float:
    """Share of the first of two models in their mean.

    Minimizes the mean over folds of the logarithm of the squared error (of seconds of data, single folds explode), with
    a pull towards equal weights: folds are few, and a mean of two is hardly ever worse than either. Folds that could
    not be made have no say.
    """
    squares = np.array([errors.squares(np.array([w, 1.0 - w])).sum(1) for w in _WEIGHTS])
    cost = np.log(np.maximum(squares, 1e-300)).sum(1) / max(len(errors.folds), THRESHOLDS.max_folds)
    cost += THRESHOLDS.equal_weights_pull * (_WEIGHTS - 0.5) ** 2
    return float(_WEIGHTS[np.argmin(cost)])


@dataclass(frozen=True, eq=False)
class _Average:
    """Rich and basic fit on all rows, over the columns that the rich one supports.

    Attributes:
        base: Base parameters.
        places: Their places among those of the superset.
        channels, n_rows: Triangles of all rows, see `dense_channels`.
        prior: Of the rich fit.
        rich, basic: Both fits.
        weight: Of the rich one.
    """

    base: BaseParameters
    places: list[int]
    channels: list[Array]
    n_rows: Array
    prior: EmpiricalPrior
    rich: Posterior
    basic: Posterior
    weight: float

    @staticmethod
    def of(superset: Superset, rich: EmpiricalPrior, weight: float) -> _Average:
        """Minutes have chosen scales and weight; all rows give the values."""
        data, plain = superset.data, superset.basic
        base, places = superset.reduced(rich)
        if max(one.survey.duration for one in data.train) > THRESHOLDS.selection_s:
            channels, n_rows = dense_channels(data.rows.information(base, plain.links, rule=PREDICTION))
        else:
            channels, n_rows = superset.channels
            channels = [rows[:, [*places, -1]] for rows in channels]
        prior = rich.moved({place: i for i, place in enumerate(places)})
        fits = [own.solve([own.compress(channels)], base.n) for own in (prior, plain.prior)]
        return _Average(base, places, channels, n_rows, prior, fits[0], fits[1], weight)

    @property
    def mixture(self) -> Array:
        """(2,) weights of the rich and the basic fit."""
        return np.array([self.weight, 1.0 - self.weight])

    @property
    def values(self) -> Array:
        """(n,) their mean."""
        return np.asarray(self.mixture @ np.array([self.rich.values, self.basic.values]))

    def covariance(self, inflation: Array) -> Array:
        """Posterior covariance of the rich fit, wider where residuals are more alike than its prior has them, (n, n).

        Args:
            inflation: (n_channels,) rows that weigh as much as one independent row.
        """
        assumed = self.prior.deviations**2
        more = np.maximum(inflation * self.prior.sigma**2 / assumed - 1.0, 0.0) / assumed
        half = self.rich.half
        spread = [np.sqrt(share) * (rows[:, :-1] @ half) for rows, share in zip(self.channels, more, strict=True)]
        middle = np.eye(half.shape[1]) + sum(part.T @ part for part in spread)
        return np.asarray(half @ middle @ half.T)

    def record(self, channels: tuple[str, ...], inflation: Array) -> SolveRecord:
        """How it was solved; singular values are those of data and prior together, in units of the prior."""
        prior, determined = self.prior, np.zeros(self.base.n, dtype=bool)
        determined[prior.columns] = self.rich.reduction > 0.5
        root = self.rich.half[prior.columns] / np.where(prior.spread > 0.0, prior.spread, 1.0)[:, None]
        singular = 1.0 / np.maximum(np.linalg.svd(root, compute_uv=False)[::-1], 1e-300)
        return SolveRecord(
            rank=round(float(self.rich.reduction.sum())),
            singular_values=singular,
            condition=float(singular[0] / singular[-1]),
            gap=(float(singular[-1] / singular[0]), 0.0),
            channels=channels,
            residual_std=prior.sigma,
            channel_weights=prior.deviations**-2.0,
            determined=determined,
            n_rows=float(self.n_rows.sum()),
            iterations=prior.rounds,
            covariance_kind="posterior under empirical priors; allow for correlation between neighboring residuals",
            variance_inflation=inflation,
        )


# ----------------------------------------------------------------------------------------------------------------------
# Friction takes energy.


def _dissipating(
    found: _Average, velocities: Array, doubt: Array | None
) -> tuple[Array, tuple[str, ...], tuple[str, ...]]:
    """The nearest values whose friction takes energy up to twice the trained velocities; notes and warnings.

    A drive that compensates friction does feed energy. Where the basic fit shows that beyond doubt it may, but no more
    than in that fit.

    Args:
        found: The average.
        velocities: (n_joints,) largest ones of the joints in the training.
        doubt: (n,) standard deviations of the basic fit by leaving out parts of the data, which see what the model
            lacks; None where nothing could be left out, so that nothing is beyond doubt.
    """
    base, robot, basic = found.base, found.base.robot, found.basic
    place = {base.columns[index].name: i for i, index in enumerate(base.independent)}
    fastest: dict[str, float] = {}
    feeding, warnings = dict[str, float](), []
    for element in elements_with_friction(robot):
        viscous = place.get(element.names.get("Fv", ""))
        excess = 0.0
        if viscous is not None and doubt is not None:
            excess = -basic.values[viscous] / max(float(np.linalg.norm(basic.half[viscous])), float(doubt[viscous]))
        limits = fastest
        if excess > THRESHOLDS.fed_energy_std:
            limits = feeding
            warnings.append(
                f"element {element.label}: viscous friction is negative by {excess:.0f} standard deviations, as if the "
                "drive compensated friction; the predictive model may feed energy there"
            )
        limits[element.label] = THRESHOLDS.velocity_margin * float(np.abs(motion_of(robot, element)) @ velocities)
    fixed = base.standard_values(np.zeros(base.n), "regrouped zero")
    G, level = np.zeros((0, base.n)), np.zeros(0)
    for limits in (fastest, feeding):
        for condition in steady_power(robot, base.columns, base.terms, limits):
            rows = np.zeros((len(condition.rows), len(base.columns)))
            rows[:, condition.columns] = condition.rows
            own, taken = rows[:, list(base.independent)], rows @ fixed
            if limits is feeding:
                taken = taken + np.maximum(-(own @ basic.values + taken), 0.0)
            G, level = np.vstack([G, own]), np.append(level, taken)
    values = nearest_feasible(found.values, found.rich.half, G, level)
    moved = np.abs(values - found.values) > np.linalg.norm(found.rich.half, axis=1)
    note = (
        "friction was changed so that it takes energy at every velocity up to twice those of the training, "
        "and in every cycle where it winds up"
    )
    return values, (note,) if moved.any() else (), tuple(warnings)


@on_one_thread
def nearest_feasible(values: Array, half: Array, G: Array, level: Array) -> Array:
    r"""The x with :math:`G x + g \ge 0` that is nearest to given values in the metric of their covariance S = H H'.

    It is x = x_0 + S G' lambda with nonnegative multipliers; the conditions that hold with equality are found as in
    nonnegative least squares (Lawson & Hanson 1974, chapter 23): the one missed most is added, those that pull are let
    go.

    Args:
        values: (n,) x_0.
        half: (n, k) H.
        G: (m, n).
        level: (m,) g.
    """
    A = G @ half
    size = np.linalg.norm(A, axis=1)
    A, slack = (A / np.maximum(size, 1e-300)[:, None])[size > 0.0], ((G @ values + level) / size)[size > 0.0]
    multipliers, active = np.zeros(len(A)), np.zeros(len(A), dtype=bool)
    for _ in range(3 * len(A)):
        missed = slack + A @ (A.T @ multipliers)
        missed[active] = 0.0
        if missed.min(initial=0.0) > -_ROUNDING:
            break
        active[np.argmin(missed)] = True
        while active.any():
            own = A[active]
            wanted = np.linalg.lstsq(own @ own.T, -slack[active], rcond=_ROUNDING)[0]
            before = multipliers[active]
            if (wanted > 0.0).all():
                multipliers[active] = wanted
                break
            falling = wanted <= 0.0
            step = float((before[falling] / np.maximum(before[falling] - wanted[falling], 1e-300)).min())
            multipliers[active] = before + step * (wanted - before)
            active &= multipliers > _ROUNDING * multipliers.max(initial=0.0)
            multipliers[~active] = 0.0
    return values if not multipliers.any() else np.asarray(values + half @ (A.T @ multipliers))


# ----------------------------------------------------------------------------------------------------------------------
# What is reported of it.


def _cross_validation(
    superset: Superset, left_out: LeftOutErrors, found: _Average, covariance: Array
) -> CrossValidation:
    """Errors of the averaged model on the folds; each is over the torque of all folds, so that none without counts."""
    segments, mixture = superset.information.segments, found.mixture
    rows = np.array(
        [np.sum([[f.n_rows for f in segments[i].factors] for i in fold.left_out], axis=0) for fold in left_out.folds]
    )
    squares = left_out.squares(mixture)
    errors, totals = relative_to_all(squares, left_out.torque, rows)
    intervals = bands = None
    levels = np.sqrt(np.where(rows > 0.0, squares, 0.0).sum(0) / np.maximum(rows.sum(0), 1.0))
    if sum(one.survey.duration for one in superset.data.train) <= THRESHOLDS.fold_s:
        values = np.einsum("a,afn->fn", mixture, left_out.values)
        root = np.zeros((superset.base.n, found.base.n))
        root[found.places] = covariance_root(covariance)
        every = superset.data.rows.with_levels(None)
        source = every.rows(superset.base, superset.basic.links, THRESHOLDS.selection_s, PREDICTION)
        evaluated = left_out_rows(source, superset.information, left_out.folds, values, root)
        levels, bands = band_levels(evaluated)
        intervals = interval_coverage(evaluated, np.tile(found.prior.sigma, (len(evaluated), 1)))
    return CrossValidation(
        over="blocks",
        labels=tuple(fold.label for fold in left_out.folds),
        errors=errors,
        totals=totals,
        levels=levels,
        band_coverage=bands,
        coverage=None,
        interval_coverage=intervals,
        pooled=left_out.relative(mixture),
    )


def _selection(superset: Superset, found: _Average, left_out: LeftOutErrors | None, side: str | None) -> TermSelection:
    """What the data says of each group, and how the two fits were weighed."""
    prior, mixture, basic = found.prior, found.mixture, superset.basic.base.terms
    groups = tuple(
        GroupEvidence(group.key, float(scale), float(determined), len(group.columns))
        for group, scale, determined in zip(prior.groups, prior.scales, prior.determined, strict=True)
    )
    terms = tuple(term.key for term in found.base.terms if term not in basic)
    words = f"all friction under priors, weighed {mixture[0]:.2f} to {mixture[1]:.2f} against basic friction"
    if left_out is None:
        return TermSelection(
            terms, side or "unknown", f"{words}: nothing could be left out", groups, weight=found.weight
        )
    models = {"basic": np.array([0.0, 1.0]), "rich": np.array([1.0, 0.0]), "averaged": mixture}
    errors = {name: left_out.relative(own) for name, own in models.items()}
    shown = ", ".join(f"{name} {100.0 * error:.2f} %" for name, error in errors.items())
    reason = f"{words} by leaving out {len(left_out.folds)} parts of the data in turn ({shown})"
    folds = tuple(fold.label for fold in left_out.folds)
    return TermSelection(terms, side or "unknown", reason, groups, folds, errors, found.weight)
