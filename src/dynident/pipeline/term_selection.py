"""Which friction the data supports: groups of columns added or dropped on the evidence of data left out.

All candidates are compressed once, around one point; then any set of groups is a choice of columns from a small
triangle. A group stays only where leaving it out costs more than one standard error of that
cost over the folds: of models that predict alike, the simplest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, on_one_thread
from dynident.dynamics.terms import Column, Term
from dynident.estimate.candidates import GROUPS, CandidateGroup, Side, replace_only, terms_of
from dynident.estimate.estimator import Estimator
from dynident.estimate.estimators import ESTIMATORS
from dynident.estimate.linearization import (
    fit_linearized,
    links_of,
    needs_linearization,
    without_linearized,
)
from dynident.estimate.records import TermSelection, TermVerdict
from dynident.identifiability.base import BaseParameters, base_parameters
from dynident.information.factor import triangular
from dynident.information.information import Information
from dynident.information.solution import dense_channels, residual_square
from dynident.information.thresholds import THRESHOLDS as INFORMATION
from dynident.pipeline.thresholds import THRESHOLDS
from dynident.pipeline.training_rows import FirstMinutes, TrainingRows
from dynident.validation.cross_validation import rest_of, selection_folds
from dynident.validation.thresholds import THRESHOLDS as VALIDATION


@dataclass(frozen=True)
class FrictionChoice:
    """Friction terms and the evidence for them.

    Attributes:
        terms: Terms beside the basic ones.
        side: Where torque is taken to be measured: "motor" or "sensor".
        reason: Why these terms, in words.
        verdicts: One per group; empty where there was too little data to choose.
        folds: What was left out in turn.
        errors: Mean relative error over the folds of the basic, the generic and the chosen model.
    """

    terms: tuple[Term, ...]
    side: Side
    reason: str
    verdicts: tuple[TermVerdict, ...] = ()
    folds: tuple[str, ...] = ()
    errors: Mapping[str, float] | None = None

    def to_record(self) -> TermSelection:
        """What a fit remembers of it."""
        keys = tuple(term.key for term in self.terms)
        return TermSelection(keys, self.side, self.reason, self.verdicts, self.folds, self.errors)


class Selection:
    """A selection under way.

    Args:
        basic: Base parameters of the terms that stay in any case.
        data: Training data.
        views: Label of each log -> that of its experiment.
        candidates: Groups to choose from.
        only: Labels of the elements that move.
        side: Where torque was measured; terms are linearized around a fit with the recipe of that side.

    Attributes:
        folds: What is left out in turn.
        able: Candidates that say something which the basic columns cannot say.
        told: Name of a term -> labels of the elements on which the data tells it from the basic columns.
    """

    def __init__(
        self,
        basic: BaseParameters,
        data: TrainingRows,
        views: Mapping[str, str],
        candidates: Sequence[CandidateGroup] = GROUPS,
        only: Sequence[str] | None = None,
        side: Side = "sensor",
    ) -> None:
        self.only = only
        self.terms = (*basic.terms, *terms_of(candidates, only))
        self.base = base_parameters(basic.robot, self.terms)
        first = base_parameters(basic.robot, without_linearized(self.terms))
        plain = data.information(first, seconds=THRESHOLDS.selection_s)
        self.folds = selection_folds(plain, views)
        kept = [rest_of(plain, fold) for fold in self.folds]
        sigmas = [np.ones(len(plain.channels)) for _ in self.folds]
        whole = plain
        if needs_linearization(self.terms):
            start = [name for name in first.names if name in basic.names]
            sigmas = [_weighted_estimator().fit(plain.select(own).restrict(start)).sigma_ for own in kept]
            recipe = (*basic.terms, *terms_of([group for group in candidates if side in group.sides], only))
            draft = base_parameters(basic.robot, without_linearized(recipe))
            fitted = _weighted_estimator().fit(plain.restrict(draft.names))
            values = dict(zip(fitted.names_, fitted.values_.tolist(), strict=True))
            del plain, whole  # the pass that follows answers for all that they do
            whole = data.linearize_candidates(self.base, links_of(first, values))
        self._parts = [
            _FoldData.of(whole, own, fold.left_out, sigma)
            for own, fold, sigma in zip(kept, self.folds, sigmas, strict=True)
        ]
        self._always = [i for i in range(self.base.n) if self._column(i).term in {term.name for term in basic.terms}]
        self._known: dict[frozenset[CandidateGroup], Array] = {}
        self.told: dict[str, tuple[str, ...]] = {}
        self.told = self._told_elements(candidates)
        self._own = {group: self._columns(group) for group in candidates}
        self.able = [group for group in candidates if self._own[group] and self._is_new(self._own[group])]

    def terms_of(self, groups: Iterable[CandidateGroup]) -> tuple[Term, ...]:
        """Terms for some groups, each on the elements on which the data tells it."""
        return tuple(replace_only(term, self.told.get(term.name)) for term in terms_of(groups, self.only))

    def errors(self, groups: Iterable[CandidateGroup]) -> Array:
        """(n_folds,) relative error on what was left out, for a model with these groups."""
        chosen = frozenset(groups)
        if chosen not in self._known:
            columns = sorted(self._always + [i for group in chosen for i in self._own[group]])
            self._known[chosen] = np.array([part.error(columns) for part in self._parts])
        return self._known[chosen]

    def choose(self, start: Sequence[CandidateGroup]) -> tuple[list[CandidateGroup], list[TermVerdict]]:
        """Drop what is not worth its columns, then add what is; the groups and a verdict on each."""
        groups = self._prune(self._grow(self._prune(list(start))))
        verdicts = []
        for group in self.able:
            inside = group in groups
            with_it = groups if inside else [*groups, group]
            gain, deviation = self.gain([g for g in with_it if g is not group], with_it)
            words = {(1, 1): "kept", (1, 0): "dropped", (0, 1): "added", (0, 0): "not added"}
            verdicts.append(TermVerdict(group.key, gain, deviation, words[int(group in start), int(inside)]))
        return groups, verdicts

    def _prune(self, groups: list[CandidateGroup]) -> list[CandidateGroup]:
        while groups:
            without = {g: [other for other in groups if other is not g] for g in groups}
            worth = {g: self.gain(without[g], groups) for g in groups}
            least = min(groups, key=lambda g: worth[g][0] - worth[g][1])
            if self.worth_it(without[least], groups):
                break
            groups = [g for g in groups if g is not least]
        return groups

    def _grow(self, groups: list[CandidateGroup]) -> list[CandidateGroup]:
        while True:
            free = [g for g in self.able if g not in groups]
            worth = {g: self.gain(groups, [*groups, g]) for g in free}
            able = [g for g in free if self.worth_it(groups, [*groups, g])]
            if not able:
                return groups
            groups = [*groups, max(able, key=lambda g: worth[g][0])]

    def worth_it(self, without: Sequence[CandidateGroup], with_it: Sequence[CandidateGroup]) -> bool:
        """Whether a gain is more than its standard error, than a share of the error and than a share of the torque."""
        gain, deviation = self.gain(without, with_it)
        least = THRESHOLDS.min_torque_gain / max(float(self.errors(without).mean()), 1e-300)
        return gain > max(deviation, THRESHOLDS.min_term_gain, least)

    def gain(self, without: Sequence[CandidateGroup], with_it: Sequence[CandidateGroup]) -> tuple[float, float]:
        """Share of the error that goes away, and its standard error over the folds."""
        before, after = self.errors(without), self.errors(with_it)
        share = (before - after) / max(float(before.mean()), 1e-300)
        return float(share.mean()), float(share.std(ddof=1) / np.sqrt(len(share))) if len(share) > 1 else np.inf

    def _told_elements(self, candidates: Sequence[CandidateGroup]) -> dict[str, tuple[str, ...]]:
        """For terms that some elements cannot tell: weight is a wave of the joint that carries it, and the last link
        takes up whatever the zero of the last joint does. What they cannot tell, the others still can."""
        told: dict[str, tuple[str, ...]] = {}
        for name in dict.fromkeys(group.name for group in candidates if group.name != "tilt"):
            own = [i for group in candidates if group.name == name for i in self._columns(group)]
            places = list(dict.fromkeys(self._column(i).place for i in own))
            kept: list[int] = []
            for place in places:
                more = [i for i in own if self._column(i).place == place]
                kept += more if self._is_new(kept + more) else []
            if len(kept) < len(own):
                told[name] = tuple(dict.fromkeys(self._column(i).place for i in kept))
        return told

    def _is_new(self, columns: list[int]) -> bool:
        """Whether the data tells columns from the basic ones: a planar arm cannot tell a tilt from first moments."""
        if not self._parts:
            return True
        train = self._parts[0].train
        sizes = np.linalg.norm(train[:, columns], axis=0)
        if not (sizes > 0.0).all():
            return False
        basic, _ = np.linalg.qr(train[:, self._always])
        own = train[:, columns] / sizes
        rest = own - basic @ (basic.T @ own)
        return bool(np.linalg.svd(rest, compute_uv=False)[-1] > THRESHOLDS.min_new_share)

    def _column(self, base_column: int) -> Column:
        return self.base.columns[self.base.independent[base_column]]

    def _columns(self, group: CandidateGroup) -> list[int]:
        """Base columns of a group, on the elements that tell it."""
        if self.told.get(group.name) == ():
            return []
        names = {column.name for term in self.terms_of([group]) for column in term.columns(self.base.robot)}
        return [i for i in range(self.base.n) if self._column(i).name in names]


@dataclass(frozen=True)
class _FoldData:
    """A fold as triangles.

    Attributes:
        train: (n + 1, n + 1) of all channels, weighted.
        test: (k, n + 1) of what was left out, unweighted.
    """

    train: Array
    test: Array

    @staticmethod
    def of(data: Information, kept: Sequence[int], left_out: Sequence[int], sigma: Array) -> _FoldData:
        n = data.coordinates.n
        rows = [f.dense(n) / s for f, s in zip(data.select(kept).channel_factors(), sigma, strict=True)]
        test = [f.dense(n) for f in data.select(left_out).channel_factors()]
        return _FoldData(triangular(np.vstack(rows)), triangular(np.vstack(test)))

    @on_one_thread
    def error(self, columns: Sequence[int]) -> float:
        """Relative error on what was left out, of the fit with some columns."""
        own = list(columns)
        size = np.linalg.norm(self.train[:, own], axis=0)
        scale = np.where(size > 0.0, size, 1.0)
        found = np.linalg.lstsq(self.train[:, own] / scale, self.train[:, -1], rcond=INFORMATION.noisy_rank)[0] / scale
        residual = self.test[:, -1] - self.test[:, own] @ found
        return float(np.linalg.norm(residual) / max(float(np.linalg.norm(self.test[:, -1])), 1e-300))


def choose_friction(
    basic: BaseParameters,
    data: TrainingRows,
    views: Mapping[str, str],
    *,
    seconds: float,
    side: Side | None,
    only: Sequence[str] | None = None,
    candidates: Sequence[CandidateGroup] = GROUPS,
    generic: bool = False,
) -> FrictionChoice:
    """The friction that training data supports.

    Args:
        basic: Base parameters of the terms that stay in any case.
        data: Training data.
        views: Label of each log -> that of its experiment.
        seconds: Length of the data.
        side: Where torque was measured, None to let the data decide.
        only: Labels of the elements that move; None for all.
        candidates: Groups to choose from.
        generic: Whether the generic recipe is wanted in any case; the data then decides the side alone.
    """

    def as_a_whole(side: Side, said: str) -> FrictionChoice:
        groups = [group for group in candidates if side in group.sides]
        if generic:
            reason = f"generic friction ({side} side), as asked for{said}"
            return FrictionChoice(terms_of(groups, only), side, reason)
        why = f"{seconds:.0f} s of data are too little to choose friction term by term"
        return _all_or_none(basic, data, groups, only, side, why, said)

    if side is not None and (generic or seconds < THRESHOLDS.min_selection_s):
        return as_a_whole(side, "")
    if seconds < THRESHOLDS.min_selection_s:
        return as_a_whole("sensor", "; nothing says where torque was measured (torque_source in the robot file)")
    selection = Selection(basic, data, views, candidates, only, side or "sensor")
    said = ""
    if side is None:
        side, said = _decide_side(selection)
    if generic or len(selection.folds) < VALIDATION.min_folds:
        return as_a_whole(side, said)
    start = [group for group in selection.able if side in group.sides]
    groups, verdicts = selection.choose(start)
    models: dict[str, Sequence[CandidateGroup]] = {"basic": [], "generic": start, "chosen": groups}
    errors = {name: float(selection.errors(own).mean()) for name, own in models.items()}
    shown = ", ".join(f"{name} {100.0 * error:.2f} %" for name, error in errors.items())
    reason = f"friction chosen by leaving out {len(selection.folds)} parts of the data in turn ({shown}){said}"
    folds = tuple(fold.label for fold in selection.folds)
    return FrictionChoice(selection.terms_of(groups), side, reason, tuple(verdicts), folds, errors)


def _all_or_none(
    basic: BaseParameters,
    data: TrainingRows,
    groups: Sequence[CandidateGroup],
    only: Sequence[str] | None,
    side: Side,
    why: str,
    said: str,
) -> FrictionChoice:
    """The generic recipe, unless it explains no more of the residual than as many columns would of noise.

    Parts left out of a short log are another motion than the rest, so they are no judge.
    """
    recipe, chosen = f"the generic recipe ({side} side)", terms_of(groups, only)
    base = base_parameters(basic.robot, (*basic.terms, *chosen))
    fitted, _ = fit_linearized(FirstMinutes(data), base, _weighted_estimator())
    found = fitted.information_
    plain = _weighted_estimator().fit(found.restrict([name for name in base.names if name in basic.names]))
    before, after = _residual(plain, plain.channel_weights_), _residual(fitted, plain.channel_weights_)
    gain, chance = 1.0 - after / max(before, 1e-300), (base.n - basic.n) / (found.n_rows / THRESHOLDS.correlated_rows)
    shown = f"it explains {100.0 * gain:.0f} % of the basic model's residual, noise would give {100.0 * chance:.0f} %"
    if fitted.rank_ == base.n and gain > max(THRESHOLDS.chance_factor * chance, THRESHOLDS.min_recipe_gain):
        return FrictionChoice(chosen, side, f"{why}; {recipe} is used ({shown}){said}")
    if fitted.rank_ < base.n:
        shown = "the data does not determine all of it"
    return FrictionChoice((), side, f"{why}; basic friction and not {recipe}: {shown}{said}")


def _weighted_estimator() -> Estimator:
    """The method that models are compared by."""
    return ESTIMATORS["weighted"]().set_params(rank_tolerance=INFORMATION.noisy_rank)


def _residual(fitted: Estimator, weights: Array) -> float:
    """Square of the weighted residual of a fit."""
    channels, _ = dense_channels(fitted.information_)
    squares = [residual_square(rows, fitted.values_) for rows in channels]
    return float(weights @ np.array(squares))


def _decide_side(selection: Selection) -> tuple[Side, str]:
    """Where torque was measured, as the data has it: the motor's recipe must win clearly."""
    motor, sensor = ([g for g in selection.able if side in g.sides] for side in ("motor", "sensor"))
    if len(selection.folds) < VALIDATION.min_folds:
        return "sensor", "; torque is taken to be measured on the link side"
    gain, deviation = selection.gain(sensor, motor)
    side: Side = "motor" if gain > max(deviation, THRESHOLDS.min_side_gain) else "sensor"
    what = "the motor" if side == "motor" else "a sensor on the link side"
    share = f"the motor's recipe changes the error by {-100.0 * gain:+.1f} %"
    return side, f"; torque looks like that of {what} ({share}); say torque_source in the robot file to decide it"
