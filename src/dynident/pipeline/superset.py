"""All columns that a model may have, compressed once; models among them are fitted and evaluated on held-out blocks.

Terms that depend on the torque of the links are linear around the links of the basic fit, so one pass over the basic
columns and one over all of them suffice. Folds keep the scales and standard deviations of the whole data and only
solve.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, Mask, record
from dynident.dynamics.terms import Term, all_columns
from dynident.estimate.candidates import CandidateGroup, terms_of
from dynident.estimate.evidence import EmpiricalPrior, Posterior, PriorGroup, basic_groups, fit_evidence
from dynident.estimate.linearization import links_of
from dynident.estimate.thresholds import THRESHOLDS as ESTIMATE
from dynident.identifiability.base import BaseParameters, base_parameters
from dynident.information.factor import merge_factors
from dynident.information.information import Information, Segment
from dynident.information.solution import dense_channels
from dynident.pipeline.preprocessing import TrainingData
from dynident.pipeline.thresholds import THRESHOLDS
from dynident.signals.repeats import MotionStates, find_repeats, motion_states
from dynident.signals.rows import PREDICTION
from dynident.signals.thresholds import THRESHOLDS as SIGNALS
from dynident.validation.cross_validation import Fold, rest_of


@dataclass(frozen=True, eq=False)
class BasicFit:
    """The basic parameters under priors.

    Attributes:
        base: Base parameters.
        prior: Scales and standard deviations.
        posterior: Values.
        links: (10 n_links,) standard parameters of its links, around which other terms are linear.
    """

    base: BaseParameters
    prior: EmpiricalPrior
    posterior: Posterior
    links: Array

    @staticmethod
    def of(data: TrainingData, basic: BaseParameters) -> BasicFit:
        """Fit the basic parameters to the rows for predictions."""
        information = data.rows.information(basic, seconds=THRESHOLDS.selection_s, rule=PREDICTION)
        prior, posterior = fit_evidence(*dense_channels(information), basic_groups(basic))
        return BasicFit(basic, prior, posterior, links_of(basic, posterior.values))


@record
class LeftOutErrors:
    """What models miss on folds that they were not fitted to.

    Attributes:
        folds: What was left out.
        products: (n_folds, n_channels, n_models, n_models) inner products of the models' residuals.
        torque: (n_folds, n_channels) squares of the torque.
        values: (n_models, n_folds, n) coefficients of each model without each fold.
    """

    folds: tuple[Fold, ...]
    products: Array
    torque: Array
    values: Array

    def squares(self, mixture: Array) -> Array:
        """(n_folds, n_channels) squared errors of a mixture of the models, (n_models,)."""
        return np.asarray(np.einsum("a,fcab,b->fc", mixture, self.products, mixture))

    def relative(self, mixture: Array) -> float:
        """Relative error over all folds and channels together: no fold without torque has a say."""
        return float(np.sqrt(self.squares(mixture).sum() / max(float(self.torque.sum()), 1e-300)))

    def deviations(self, model: int) -> Array:
        """(n,) standard deviations of a model's coefficients by the jackknife (Efron 1979) over the folds."""
        own = self.values[model]
        return np.asarray(np.sqrt(len(own) - 1.0) * own.std(0))

    def per_fold(self, mixture: Array) -> Array:
        """(n_folds,) relative error on each fold."""
        return np.asarray(np.sqrt(self.squares(mixture).sum(1) / np.maximum(self.torque.sum(1), 1e-300)))


class Superset:
    """Basic and candidate columns of the training data.

    Args:
        data: Training logs.
        basic: The basic fit, whose links are the linearization point.
        groups: Candidate groups.
        only: Labels of the elements that candidates are for; None for all.
        more: Other terms, each a group of its own.
        states: Motion of the part that models are selected on; made here where nobody has it.

    Attributes:
        base: Base parameters of all columns; the basic ones come first.
        information: Factors of the part of the data that models are selected on.
        evaluated: The same with the levels of friction of each log, which a log that is not there would have too.
        states: Motion of that part.
    """

    def __init__(
        self,
        data: TrainingData,
        basic: BasicFit,
        groups: Sequence[CandidateGroup],
        only: Sequence[str] | None,
        more: Sequence[Term] = (),
        states: MotionStates | None = None,
    ) -> None:
        self.data, self.basic = data, basic
        self._candidates, self._only, self._more = groups, only, more
        robot = basic.base.robot
        self.base = self._base(groups, more)
        part = self.base, basic.links, THRESHOLDS.selection_s, PREDICTION
        self.information = data.rows.information(*part)
        self.evaluated = data.rows.with_levels(None).information(*part)
        self.states = motion_states(data.train, THRESHOLDS.selection_s) if states is None else states
        place = {self.base.columns[index].name: i for i, index in enumerate(self.base.independent)}
        named = {group.key: terms_of([group], only) for group in groups} | {term.key: (term,) for term in more}
        self.groups = {
            key: PriorGroup(
                key, tuple(place[column.name] for column in all_columns(robot, terms)), ESTIMATE.extra_scale
            )
            for key, terms in named.items()
        }

    def _base(self, groups: Sequence[CandidateGroup], more: Sequence[Term]) -> BaseParameters:
        basic = self.basic.base
        return base_parameters(basic.robot, (*basic.terms, *terms_of(groups, self._only), *more))

    def reduced(self, prior: EmpiricalPrior) -> tuple[BaseParameters, list[int]]:
        """Base parameters without the groups that a prior has brought to nothing, and their places among all."""
        kept = {group.key for group in prior.supported}
        groups = [group for group in self._candidates if group.key in kept]
        base = self._base(groups, [term for term in self._more if term.key in kept])
        place = {name: i for i, name in enumerate(self.base.names)}
        return base, [place[name] for name in base.names]

    @functools.cached_property
    def channels(self) -> tuple[list[Array], Array]:
        """Triangles of the channels and the rows behind them, see `dense_channels`."""
        return dense_channels(self.information)

    def fit(self, keys: Sequence[str]) -> tuple[EmpiricalPrior, Posterior]:
        """Basic and some other groups under priors."""
        return self.fit_groups([self.groups[key] for key in keys])

    def fit_groups(self, groups: Sequence[PriorGroup]) -> tuple[EmpiricalPrior, Posterior]:
        """Basic and other groups of columns under priors."""
        return fit_evidence(*self.channels, [*basic_groups(self.base, self.basic.base.n), *groups])

    @functools.cached_property
    def folds(self) -> list[Fold]:
        """What is held out in turn."""
        train = self.data.train
        band = float(np.median([one.band for one in train]))
        gap = max(SIGNALS.reversal_periods / band, THRESHOLDS.fold_gap * self.states.period)
        return prediction_folds(self.information, self.states, [one.log.label for one in train], gap)

    def leave_out(self, priors: Sequence[EmpiricalPrior]) -> LeftOutErrors:
        """Errors on the folds of models whose scales and standard deviations are those of the whole data."""
        n, information, folds = self.base.n, self.information, self.folds
        values = np.zeros((len(priors), len(folds), n))
        rests, alike = [set(rest_of(information, fold)) for fold in folds], dict[tuple[bool, ...], list[Segment]]()
        for i, segment in enumerate(information.segments):  # those that stay and go together are compressed together
            alike.setdefault(tuple(i in rest for rest in rests), []).append(segment)
        dense = {
            kept: [merge_factors(factors).dense(n) for factors in zip(*(one.factors for one in own), strict=True)]
            for kept, own in alike.items()
        }
        for model, prior in enumerate(priors):
            triangles = {kept: prior.compress(channels) for kept, channels in dense.items()}
            for number in range(len(folds)):
                rest = [triangle for kept, triangle in triangles.items() if kept[number]]
                values[model, number] = prior.solve(rest, n).values
        shape = len(folds), len(information.channels)
        products, torque = np.zeros((*shape, len(priors), len(priors))), np.zeros(shape)
        for number, fold in enumerate(folds):
            for i in fold.left_out:
                for channel, rows in enumerate(factor.dense(n) for factor in self.evaluated.segments[i].factors):
                    errors = rows[:, n] - values[:, number] @ rows[:, :n].T
                    products[number, channel] += errors @ errors.T
                    torque[number, channel] += rows[:, n] @ rows[:, n]
        return LeftOutErrors(tuple(folds), products, torque, values)


def prediction_folds(information: Information, states: MotionStates, labels: Sequence[str], gap: float) -> list[Fold]:
    """Blocks of the logs in turn, with gaps beside them and without repeats of their motion elsewhere.

    Every log keeps a part of itself, since it may be the only one that moves a joint; blocks hold half a period at
    least. Where there are more blocks than folds, a fold has several.

    Args:
        information: Data in segments with time.
        states: Motion of the logs.
        labels: Of the logs, by their numbers in `states`.
        gap: Time beside a block that is used neither for training nor for evaluation [s].
    """
    repeats = find_repeats(states)
    logs = [[i for i, s in enumerate(information.segments) if s.label == label and s.span] for label in labels]
    spans = [segment.span or (np.nan, np.nan) for segment in information.segments]
    inside = [
        (states.log == labels.index(segment.label)) & (states.time >= first) & (states.time <= last)
        for segment, (first, last) in zip(information.segments, spans, strict=True)
    ]  # states of each segment
    lengths = [spans[own[-1]][1] - spans[own[0]][0] if own else 0.0 for own in logs]
    longest = max(sum(lengths) / THRESHOLDS.max_folds, 0.5 * states.period)
    least = 3 if sum(map(bool, logs)) == 1 else 2
    blocks: list[list[int]] = []
    for own, length in zip(logs, lengths, strict=True):
        count = int(np.clip(round(length / longest), least, THRESHOLDS.max_folds))
        blocks += [part.tolist() for part in np.array_split(np.array(own, dtype=int), count) if len(part)]
    folds = []
    for number in range(min(len(blocks), THRESHOLDS.max_folds)):
        chosen = blocks[number :: THRESHOLDS.max_folds]
        fold = _fold(information, chosen, gap, inside, repeats)
        while not _enough(information, fold) and len(fold.left_out) > len(chosen):
            # A motion that repeats all the time leaves nothing for training, unless less of it is left out.
            chosen = [block[: len(block) // 2] or block for block in chosen]
            fold = _fold(information, chosen, gap, inside, repeats)
        if _enough(information, fold):
            folds.append(fold)
    return folds


def _fold(
    information: Information, blocks: Sequence[list[int]], gap: float, inside: Sequence[Mask], repeats: Mask
) -> Fold:
    """A fold without the segments beside it, and without those that its motion, repeated elsewhere, mostly fills."""
    segments, left_out = information.segments, [i for block in blocks for i in block]
    others = [i for i in range(len(segments)) if i not in left_out]
    unused = {
        i for i in others for block in blocks if _apart(segments[i], segments[block[0]], segments[block[-1]]) < gap
    }
    own, known = (
        np.any([np.zeros(len(repeats), dtype=bool), *(inside[i] for i in parts)], axis=0)
        for parts in (left_out, [i for i in others if i not in unused])
    )
    if own.any() and repeats[np.ix_(own, known)].any(1).mean() > 0.5:
        again = repeats[own].any(0)
        unused |= {i for i in others if inside[i].any() and again[inside[i]].mean() > 0.5}
    names = dict.fromkeys(segments[i].label for i in left_out)
    begin, end = (segments[i].span or (np.nan, np.nan) for i in (left_out[0], left_out[-1]))
    one = f"{next(iter(names))}, {begin[0]:.3g} to {end[1]:.3g} s"
    return Fold(one if len(blocks) == 1 else f"parts of {', '.join(names)}", tuple(left_out), tuple(sorted(unused)))


def _apart(one: Segment, first: Segment, last: Segment) -> float:
    """Time between a segment and a block [s]; infinite in another log."""
    if one.label != first.label or not (one.span and first.span and last.span):
        return np.inf
    return max(one.span[0] - last.span[1], first.span[0] - one.span[1])


def _enough(information: Information, fold: Fold) -> bool:
    """Whether a fold has rows to validate on and leaves rows to train on."""
    rows = np.array([max(factor.n_rows for factor in segment.factors) for segment in information.segments])
    kept = rows[rest_of(information, fold)].sum()
    enough = rows[list(fold.left_out)].sum() >= THRESHOLDS.min_fold_rows
    return bool(enough and kept >= THRESHOLDS.min_kept_share * rows.sum())
