r"""The parameter answer: base parameters without bias from dry friction, and everything that makes them uncertain.

Rows that a reversal of dry friction reaches are left out, the Coulomb columns have the width that the data prefers, and
what remains open of width and delay is a column of its own in the last fit. At its optimum :math:`\hat\eta` these
nuisance parameters are moved to the right-hand side; their covariance comes back as

.. math:: \operatorname{cov}\hat\beta = C + D \operatorname{cov}(\hat\eta) D^T, \quad
    D = -C \sum_j w_j W_j^T N_j

with N_j their columns in channel j, which is the covariance of the joint fit.

Friction beyond basic friction (`further_friction`), with coefficients x as far as the data asks for them, moves the
parameters by D x. Values stay where basic friction fits best, for what payloads and predictions are compared with needs
something that stands in for the rest; but that they may be off by as much is part of their covariance,
:math:`D (\hat x \hat x^T + \operatorname{cov}\hat x) D^T`.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynident.arrays import Array, on_one_thread
from dynident.dynamics.terms import Coulomb, Term
from dynident.dynamics.terms.friction import FrictionTerm
from dynident.errors import InputError
from dynident.estimate.covariance import ResidualCorrelation, correlated_covariance, residual_correlation
from dynident.estimate.delay import largest_delay
from dynident.estimate.estimator import Estimator
from dynident.estimate.friction_width import (
    determined_widths,
    make_estimator,
    search_widths,
    settle_widths,
    with_widths,
)
from dynident.estimate.further_friction import FurtherFriction, find_further_friction, further_terms
from dynident.estimate.linearization import links_of
from dynident.estimate.parameter_rows import too_few_rows
from dynident.estimate.thresholds import THRESHOLDS as ESTIMATE
from dynident.identifiability.base import BaseParameters, base_parameters
from dynident.identifiability.base_regressor import BaseRegressor, RowSource
from dynident.information.information import Information
from dynident.information.row_source import MappedRows
from dynident.information.solution import residual_square
from dynident.information.thresholds import THRESHOLDS as ENOUGH
from dynident.pipeline.preprocessing import TrainingData
from dynident.pipeline.springs import STIFFNESS
from dynident.pipeline.thresholds import THRESHOLDS
from dynident.signals.dry_friction import DryFriction
from dynident.signals.rows import DELAY, MOVING, PARAMETERS, RowRule, effective_velocity

_NEARER = (1.0, 0.5, 0.0)  # [periods of the band] borders of the rows nearer to a reversal, where they are needed
_WEIGHT_ROUNDS = 3
_DELAY_CORRECTIONS = 2  # times at most that logs are filtered again with a better delay
_SMALL_PHASE = 0.02  # [rad] at the edge of the band, half the square of which a delay that is off costs an inertia


@dataclass(frozen=True, eq=False)
class ParameterData:
    """What base parameters are estimated from.

    Attributes:
        base: The base parameters, whose Coulomb term has the widths that the data determines.
        rows_base: The same with all widths that were found, which the rows have.
        point: What some terms are linearized around; None without such terms.
        information: Factors over the base parameters, nuisance parameters moved to the right-hand side.
        extended: Factors over base and nuisance parameters.
        nuisance: Names and values of the nuisance parameters.
        rule: Which rows these are.
        softened: Whether rows near reversals are among them, with less weight.
        data: The logs.
        notes: What was decided, in words.
        further: Friction beyond basic friction; None where the data asks for none.
    """

    base: BaseParameters
    rows_base: BaseParameters
    point: Array | None
    information: Information
    extended: Information
    nuisance: Mapping[str, float]
    rule: RowRule
    softened: bool
    data: TrainingData
    notes: tuple[str, ...]
    further: FoundFriction | None = None

    def rows(self) -> RowSource:
        """The equations themselves; those near reversals are not among them."""
        source = self.data.rows.rows(self.rows_base, self.point, rule=self.rule)
        origin = np.array([self.nuisance.get(name, 0.0) for name in source.coordinates.names])
        return MappedRows(source, self.base.names, origin) if self.nuisance else source

    def correlation(self, values: Array) -> ResidualCorrelation:
        """How the residuals of base values follow each other, as far as their rows do."""
        return residual_correlation(self.rows(), values)

    @property
    def delay_is_off(self) -> bool:
        """Whether the delay lacks more than chance and than what its column is exact for."""
        joint = make_estimator().fit(self.extended)
        phase = 2.0 * np.pi * max(one.band for one in self.data.train) * abs(joint.estimate_[DELAY])
        std = joint.std_[joint.names_.index(DELAY)]
        return bool(phase > _SMALL_PHASE and abs(joint.estimate_[DELAY]) > 2.0 * std)

    @on_one_thread
    def nuisance_covariance(self, fitted: Estimator, inflation: Array) -> Array:
        """What the uncertain nuisance parameters add to the covariance of the parameters that were fitted, (n, n)."""
        found = nuisance_covariance(self.extended, self.base.n, fitted, inflation)
        if not self.nuisance or self.further is None:
            return found
        kept = [self.base.names.index(name) for name in fitted.names_]
        return found + self.further.displacement(self.extended)[np.ix_(kept, kept)]


@on_one_thread
def nuisance_covariance(extended: Information, n: int, fitted: Estimator, inflation: Array) -> Array:
    """What uncertain nuisance parameters add to the covariance of the parameters that were fitted, (n, n).

    Args:
        extended: Factors over the base parameters and, behind them, the nuisance parameters.
        n: How many of the first ones are base parameters.
        fitted: The estimator of base parameters, all of them or some.
        inflation: (n_channels,) rows that weigh as much as one independent row.
    """
    kept = [extended.names.index(name) for name in fitted.names_]
    n_nuisance = extended.coordinates.n - n
    if not n_nuisance:
        return np.zeros((len(kept), len(kept)))
    own = correlated_covariance(make_estimator().fit(extended), inflation)[n:, n:]
    crossed = _products(extended, kept, range(n, n + n_nuisance), fitted.channel_weights_)
    D = -fitted.inverse_ @ crossed
    return np.asarray(D @ own @ D.T)


def settle_nuisance(extended: Information, base: BaseParameters) -> tuple[Information, dict[str, float]]:
    """Factors over the base parameters alone, nuisance parameters being known at their optimum, and their values."""
    if extended.coordinates.n == base.n:
        return extended, {}
    joint = make_estimator().fit(extended)
    nuisance = dict(zip(joint.names_[base.n :], joint.values_[base.n :].tolist(), strict=True))
    plain = extended.settled(nuisance).reordered(range(base.n), base, extended.definitions[: len(base.columns)])
    return plain, nuisance


def parameter_rule(base: BaseParameters) -> RowRule:
    """The rows that base parameters are estimated from when widths of dry friction are as the terms have them.

    Laws of friction differ near reversals alone, so that is where their coefficients come from.
    """
    laws = any(isinstance(term, FrictionTerm) and term.name != STIFFNESS for term in base.terms)
    return MOVING if laws else replace(PARAMETERS, delay=True)


@dataclass(frozen=True, eq=False)
class FoundFriction:
    """Friction beyond basic friction that the data asks for.

    Attributes:
        friction: Values of all parameters with it.
        information: Factors over base parameters, that friction and the nuisance parameters.
        rows: The equations; those near reversals are not among them.
    """

    friction: FurtherFriction
    information: Information
    rows: RowSource

    def displacement(self, extended: Information) -> Array:
        """Second moments of what it moves base parameters by where it is left out, (n, n) and more.

        Args:
            extended: Factors over base and nuisance parameters alone.
        """
        names = list(self.information.names)
        own = [i for i, name in enumerate(names) if name not in set(extended.names)]
        others = [names.index(name) for name in extended.names]
        joint = make_estimator().fit(extended)
        D = joint.inverse_ @ _products(self.information, others, own, joint.channel_weights_)
        x, covariance = self.friction.values[own], self.friction.covariance[np.ix_(own, own)]
        return np.asarray(D @ (np.outer(x, x) + covariance) @ D.T)


def _products(information: Information, left: Sequence[int], right: Sequence[int], weights: Array) -> Array:
    """Weighted inner products of columns with others, (n_left, n_right)."""
    n, found = information.coordinates.n, np.zeros((len(left), len(right)))
    for factor, weight in zip(information.channel_factors(), weights, strict=True):
        rows = factor.dense(n)
        found += weight * (rows[:, list(left)].T @ rows[:, list(right)])
    return found


def gather_parameter_data(
    data: TrainingData,
    base: BaseParameters,
    point: Array | None,
    *,
    search: bool,
    delay: bool = True,
) -> ParameterData:
    """Find the widths of dry friction and gather the equations that parameters are estimated from.

    Args:
        data: The training logs.
        base: Base parameters of the model.
        point: What some of its terms are linearized around; None without such terms.
        search: Whether the widths of dry friction are searched for; else they are as the terms have them.
        delay: Whether a delay that the data showed may be corrected. Where it showed none, what friction lacks passes
            for one; its column takes that up, but it is none to filter with.
    """
    if parameter_rule(base) == MOVING:
        plain = data.rows.information(base, point)
        return ParameterData(base, base, point, plain, plain, {}, MOVING, False, data, ())
    found = _gather(data, base, point, search)
    for _ in range(_DELAY_CORRECTIONS if delay and data.train[0].options.delay else 0):
        if not found.delay_is_off:
            break
        # The column of the delay is exact for small ones alone.
        late = data.train[0].options.delay + found.nuisance[DELAY]
        largest = largest_delay(data.train)
        data = data.refilter(delay=float(np.clip(late, -largest, largest)))
        found = _gather(data, base, point, search)
        note = f"torque is stamped {1e3 * data.train[0].options.delay:.2g} ms after its motion, by rows in motion"
        found = replace(found, notes=(*found.notes, note))
    return found


def _gather(data: TrainingData, base: BaseParameters, point: Array | None, search: bool) -> ParameterData:
    notes: list[str] = []
    seen: list[Information] = []

    def first_minutes(own: BaseParameters, rule: RowRule) -> Information:
        seen.append(data.rows.information(own, point, THRESHOLDS.selection_s, rule))
        return seen[-1]

    widths: Mapping[str, float] = search_widths(data.train, base, first_minutes) if search else {}
    wide = _WideRows.of(data, base, point, seen[-1]) if seen else _WideRows(data, base, (), point)
    settled = settle_widths(base, widths, wide.narrow)
    own, widths, rule, extended = settled.base, settled.widths, settled.rule, settled.information
    softened = too_few_rows(extended, extended.coordinates.n)
    beside = wide(own, rule)
    if softened:
        extended, beside = _with_nearer_rows(wide, own, rule)
        notes.append("few rows lie away from reversals; those nearer to one are used with less weight")
    joint = make_estimator().fit(extended)
    if known := determined_widths(widths, joint, own):
        notes.append(f"dry friction turns over within {_width_words(own, known)}")
    plain, nuisance = settle_nuisance(extended, own)
    further, model = wide.find(own, beside, rule), with_widths(base, known)
    return ParameterData(model, own, point, plain, extended, nuisance, rule, softened, data, tuple(notes), further)


@dataclass(frozen=True, eq=False)
class _WideRows:
    """Equations with the columns of further friction beside those of the model, from the same passes.

    Attributes:
        data: The logs.
        base: Base parameters of model and further friction, or of the model alone.
        terms: Of further friction.
        point: What terms are linearized around.
    """

    data: TrainingData
    base: BaseParameters
    terms: tuple[Term, ...]
    point: Array | None

    @staticmethod
    def of(data: TrainingData, base: BaseParameters, point: Array | None, seen: Information) -> _WideRows:
        """For the elements that move, around the links that the search for widths has seen."""
        friction = DryFriction(BaseRegressor.of(base.robot, base.terms), base.terms)
        velocities = np.max([effective_velocity(one, friction.directions) for one in data.train], axis=0)
        moving = {e.label: float(v) / e.radian for e, v in zip(friction.elements, velocities, strict=True) if v > 0.0}
        terms = further_terms(moving)
        if point is None:
            if seen.n_rows < ENOUGH.min_equations_away * base.n:
                seen = data.rows.information(base, seconds=THRESHOLDS.selection_s)
            point = links_of(base, make_estimator().fit(seen.restrict(base.names)).values_)
        return _WideRows(data, base_parameters(base.robot, (*base.terms, *terms)), terms, point)

    def base_of(self, own: BaseParameters) -> BaseParameters:
        """The base parameters with the widths of others, on which their relations do not depend."""
        return replace(self.base, terms=(*own.terms, *self.terms))

    def __call__(self, own: BaseParameters, rule: RowRule) -> Information:
        """Factors of all columns."""
        return self.data.rows.information(self.base_of(own), self.point, rule=rule)

    def narrow(self, own: BaseParameters, rule: RowRule) -> Information:
        """Factors without those of further friction."""
        wide = self(own, rule)
        return wide if not self.terms else self.data.rows.information(own, self.point, rule=rule)

    def find(self, own: BaseParameters, information: Information, rule: RowRule) -> FoundFriction | None:
        """Friction beyond basic friction; residuals that follow each other make the data say less."""
        if not self.terms:
            return None
        assumed = np.full(len(information.channels), ESTIMATE.correlated_rows)
        found = find_further_friction(information, own, self.terms, assumed)
        if found is None:
            return None
        rows = self.data.rows.rows(self.base_of(own), self.point, rule=rule)
        inflation = residual_correlation(rows, found.values).inflation
        if (inflation > assumed).any():
            found = find_further_friction(information, own, self.terms, np.maximum(inflation, assumed))
        return None if found is None else FoundFriction(found, information, rows)


def _with_nearer_rows(wide: _WideRows, base: BaseParameters, rule: RowRule) -> tuple[Information, Information]:
    """The rows away from reversals and nearer ones, each kind with its own standard deviation in every channel.

    Nearer rows are no better than those away from reversals, whatever their residual.

    Returns:
        Factors over base and nuisance parameters, and the same with further friction.
    """
    borders = (rule.nearest, *_NEARER)
    rules = [rule, *(replace(rule, nearest=low, farthest=high) for high, low in itertools.pairwise(borders))]
    pairs = [(wide(base, own), wide.narrow(base, own)) for own in rules]
    pairs = [(both, part) for both, part in pairs if part.n_rows]
    if not pairs:
        raise InputError("no joint moves long enough to be identified; record more motion")
    parts = [part for _, part in pairs]
    weights = np.ones((len(parts), len(parts[0].channels)))
    for _ in range(_WEIGHT_ROUNDS):
        merged = functools.reduce(operator.add, map(Information.weighted, parts, weights.tolist()))
        values = make_estimator().fit(merged).values_
        variances = np.array([_variances(part, values) for part in parts])  # NaN where a channel has no rows
        least = np.nanmin(variances, axis=0, where=~np.isnan(variances), initial=np.inf)
        reference = np.where(np.isnan(variances[0]), least, variances[0])
        weights = np.where(np.isnan(variances), 1.0, np.minimum(reference / np.maximum(variances, 1e-300), 1.0))
    return tuple(  # type: ignore[return-value]
        functools.reduce(operator.add, map(Information.weighted, own, weights.tolist()))
        for own in (parts, [both for both, _ in pairs])
    )


def _variances(part: Information, values: Array) -> Array:
    """Mean squared residual of each channel, (n_channels,); NaN without rows."""
    n = part.coordinates.n
    factors = part.channel_factors()
    return np.array([residual_square(f.dense(n), values) / f.n_rows if f.n_rows else np.nan for f in factors])


def _width_words(base: BaseParameters, widths: Mapping[str, float]) -> str:
    """Smallest and largest width, in words."""
    slides = {element.label: element.prismatic for element in Coulomb().elements(base.robot)}
    shown = []
    for sliding, unit in ((False, "rad/s"), (True, "m/s")):
        own = [width for label, width in widths.items() if slides[label] == sliding]
        if own:
            ends = dict.fromkeys(f"{float(f'{1e3 * width:.2g}'):g}" for width in (min(own), max(own)))
            shown.append(f"{' to '.join(ends)} m{unit}")
    return " and ".join(shown)
