"""Which friction an identification has: as the user says, or as the training data supports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.terms import Term, along_terms
from dynident.dynamics.terms.friction import FrictionTerm, elements_with_friction, motion_of
from dynident.errors import InputError
from dynident.estimate.candidates import (
    GROUPS,
    CandidateGroup,
    RippleFound,
    Side,
    find_ripple,
    looks_for_ripple,
    on_elements,
    parse_friction,
    terms_of,
)
from dynident.estimate.estimators import ESTIMATORS
from dynident.estimate.linearization import fit_linearized
from dynident.estimate.prediction import TorqueModel
from dynident.estimate.records import TermSelection
from dynident.identifiability.base import BaseParameters, base_parameters
from dynident.information.thresholds import THRESHOLDS as ENOUGH
from dynident.logs.log import torque_kind
from dynident.pipeline.preprocessing import TrainingData
from dynident.pipeline.superset import BasicFit, Superset
from dynident.pipeline.thresholds import THRESHOLDS
from dynident.pipeline.training_rows import FirstMinutes
from dynident.robot.model import Robot
from dynident.signals.observations import Observations
from dynident.signals.thresholds import THRESHOLDS as SIGNALS
from dynident.validation.thresholds import THRESHOLDS as VALIDATION

_SAME_BEND = 0.3  # logarithm of the ratio of two velocities at which smoothed signs are alike


@dataclass(frozen=True)
class FrictionChoice:
    """Friction terms of a model, and why.

    Attributes:
        terms: Terms beside the basic ones.
        side: Where torque is taken to be measured; None where nobody knows and nothing depends on it.
        reason: Why these terms, in words.
        folds: What was held out in turn, where the data decided.
        errors: Relative error on the folds of each recipe.
    """

    terms: tuple[Term, ...]
    side: Side | None
    reason: str
    folds: tuple[str, ...] = ()
    errors: Mapping[str, float] | None = None

    def to_record(self) -> TermSelection:
        """What a fit remembers of it."""
        keys = tuple(term.key for term in self.terms)
        return TermSelection(keys, self.side or "unknown", self.reason, (), self.folds, self.errors)


def select_friction(friction: str | Sequence[str | Term], data: TrainingData) -> FrictionChoice:
    """The friction terms that parameters are estimated with, beside the basic ones.

    Args:
        friction: auto, basic, generic, full, or terms. With auto, parameters are those of basic friction: what else
            there is shapes predictions, see `fit_predictive`.
        data: Training logs.

    Raises:
        InputError: For terms that this robot or these logs cannot have.
    """
    choice = _select(parse_friction(friction), data)
    return _with_ripple(choice, data) if looks_for_ripple(friction) else choice


def _select(wanted: str | tuple[Term, ...], data: TrainingData) -> FrictionChoice:
    train, basic = data.train, data.basic
    side, only = measured_side(basic.robot, train), moving_elements(basic.robot, train)
    if wanted == "auto":
        return FrictionChoice((), side, "parameters are those of basic friction; predictions have more")
    if wanted == "basic":
        return FrictionChoice((), side, "friction as in the basic model, as asked for")
    if not isinstance(wanted, str):
        terms = _beside(wanted, basic.terms)
        check_terms(terms, train, only)
        return FrictionChoice(_restrict_terms(terms, only), side, "friction terms as given")
    if wanted == "full":
        groups = [*candidate_groups(basic), CandidateGroup("jerk", ())]
        return FrictionChoice(terms_of(groups, only), side, "all friction terms, as asked for")
    recipes = {one: [group for group in candidate_groups(basic) if one in group.sides] for one in get_args(Side)}
    if side is not None:
        reason = f"generic friction ({side} side), as asked for"
        return FrictionChoice(terms_of(recipes[side], only), side, reason)
    return _decide_side(data, recipes, only)


def _decide_side(
    data: TrainingData, recipes: Mapping[Side, Sequence[CandidateGroup]], only: Sequence[str] | None
) -> FrictionChoice:
    """Generic friction where nobody said what was measured: the motor's recipe must win clearly on held-out folds."""
    both = [group for group in candidate_groups(data.basic) if group.sides]
    superset = Superset(data, BasicFit.of(data, data.basic), both, only)
    if len(superset.folds) < VALIDATION.min_folds:
        reason = "generic friction, as asked for; torque is taken to be measured on the link side"
        return FrictionChoice(terms_of(recipes["sensor"], only), "sensor", reason)
    priors = [superset.fit([group.key for group in recipes[side]])[0] for side in ("motor", "sensor")]
    left_out = superset.leave_out(priors)
    motor, sensor = (left_out.per_fold(own) for own in np.eye(2))
    gains = (sensor - motor) / max(float(sensor.mean()), 1e-300)
    doubt = float(gains.std(ddof=1) / np.sqrt(len(gains)))
    side: Side = "motor" if gains.mean() > max(doubt, THRESHOLDS.min_side_gain) else "sensor"
    what = "the motor" if side == "motor" else "a sensor on the link side"
    share = f"the motor's recipe changes the error by {-100.0 * gains.mean():+.1f} %"
    reason = (
        f"generic friction ({side} side), as asked for; torque looks like that of {what} ({share}); say torque_source "
        "in the robot file to decide it"
    )
    errors = {name: left_out.relative(own) for name, own in zip(("motor", "sensor"), np.eye(2), strict=True)}
    folds = tuple(fold.label for fold in superset.folds)
    return FrictionChoice(terms_of(recipes[side], only), side, reason, folds, errors)


def candidate_groups(basic: BaseParameters) -> list[CandidateGroup]:
    """The groups that a model may have beside the basic terms.

    Jerk is none of them: it stands for delay and compliance, and what it fits in the band it amplifies beyond it.
    """
    taken = {term.name for term in basic.terms}
    possible = [group for group in GROUPS if group.name != "tilt" or basic.robot.gravity.any()]
    return [group for group in possible if group.name not in taken and group.name != "jerk"]


def predictive_groups(basic: BaseParameters, fastest: Array) -> list[CandidateGroup]:
    """The groups of the model that predicts, which has to hold in faster motion than that of the training too.

    A curve of friction over the velocity has the scale of the motion: a smoothed sign that bends half way to the
    largest velocity. It goes on as a line beyond, where powers of the velocity explode.

    Args:
        basic: Base parameters of the basic terms.
        fastest: (n_joints,) largest velocities of the joints in the training.
    """
    robot, groups = basic.robot, [group for group in candidate_groups(basic) if not group.steep]
    velocities = [float(np.abs(motion_of(robot, e)) @ fastest) / e.radian for e in elements_with_friction(robot)]
    bend = float(f"{0.5 * max(velocities, default=0.0):.2g}")
    there = [scale for group in groups if group.name == "sign" for scale in group.scales]
    alike = any(abs(np.log(bend / scale)) < _SAME_BEND for scale in there) if bend else True
    return groups if alike else [*groups, CandidateGroup("sign", (bend,))]


def _with_ripple(choice: FrictionChoice, data: TrainingData) -> FrictionChoice:
    """The choice with gear ripple where residuals show it."""
    base = base_parameters(data.robot, (*data.basic.terms, *choice.terms))
    method = ESTIMATORS["weighted"]().set_params(rank_tolerance=ENOUGH.noisy_rank)
    fitted, reference = fit_linearized(FirstMinutes(data.rows), base, method)
    chi = base.standard_values(fitted.values_, "regrouped zero")
    found = find_ripple(TorqueModel(base.robot, base.terms, chi, reference), data.train)
    if not found:
        return replace(choice, reason=f"{choice.reason}; no gear ripple stands out")
    shown = ", ".join(f"{one.waves:.1f} waves per turn on {one.label}" for one in found)
    terms = (*choice.terms, ripple_term(found))
    return replace(choice, terms=terms, reason=f"{choice.reason}; gear ripple: {shown}")


def ripple_term(found: Sequence[RippleFound]) -> FrictionTerm:
    """The term for waves that were found."""
    waves = sorted({round(one.waves, 2) for one in found})
    return FrictionTerm("ripple", *waves, only=tuple(one.label for one in found))


def measured_side(robot: Robot, train: Sequence[Observations]) -> Side | None:
    """Where torque was measured: as the robot file says, else at the motor if that is what logs hold; else unknown."""
    if robot.drive.source is not None:
        return robot.drive.source
    kinds = {torque_kind(next(iter(one.log.blocks())), robot) for one in train}
    return "motor" if kinds <= {"i", "taum"} else None


def moving_elements(robot: Robot, train: Sequence[Observations]) -> tuple[str, ...] | None:
    """Labels of the elements that move in some log; None if all do."""
    ranges = np.max([one.survey.highest - one.survey.lowest for one in train], axis=0)
    moves = ranges > SIGNALS.standstill_rad * robot.radians
    elements = elements_with_friction(robot)
    own = [e for e in elements if moves[np.flatnonzero(motion_of(robot, e))].any()]
    return None if len(own) == len(elements) else tuple(element.label for element in own)


def _beside(wanted: Sequence[Term], basic: Sequence[Term]) -> tuple[Term, ...]:
    """The terms that are not basic ones; a basic one with another number would be lost without a word."""
    there = {term.name: term.key for term in basic}
    for term in wanted:
        if there.get(term.name, term.key) != term.key:
            raise InputError(
                f"friction: {term.key} is a basic term and there as {there[term.name]}; change it in terms"
            )
    return tuple(term for term in wanted if term.name not in there)


def _restrict_terms(terms: Sequence[Term], only: tuple[str, ...] | None) -> tuple[Term, ...]:
    return tuple(terms) if only is None else tuple(on_elements(term, only) for term in terms)


def check_terms(terms: Sequence[Term], train: Sequence[Observations], only: Sequence[str] | None) -> None:
    """Refuse terms that the logs have no information about.

    Raises:
        InputError: Naming the term and the joint.
    """
    robot = train[0].robot
    for term in along_terms(terms):
        term.columns(robot)  # names of elements, gravity
        still = [] if only is None or term.only is None else [label for label in term.only if label not in only]
        if still:
            raise InputError(f"term {term.key}: element {still[0]} never moves in these logs; leave it out")
        if isinstance(term, FrictionTerm) and term.name == "ripple":
            _check_ripple(term, train)


def _check_ripple(term: FrictionTerm, train: Sequence[Observations]) -> None:
    """Waves that pass faster than the band can follow are not there in the rows."""
    robot = train[0].robot
    for element in term.elements(robot):
        # Velocity of a typical moment over the band, in the log that shows the waves best.
        pace = min(_typical_velocity(one, motion_of(robot, element)) / one.band for one in train)
        for waves in term.scales:
            passing = waves * pace / (2.0 * np.pi)
            if passing > 1.0:
                raise InputError(
                    f"term {term.key}: at the velocities of element {element.label}, {waves:g} waves per turn pass "
                    f"{passing:.2g} times as fast as the band of the fit; raise --band or leave it out"
                )


def _typical_velocity(one: Observations, direction: Array) -> float:
    """Median velocity of an element while it moves."""
    velocities = np.concatenate([np.abs(motion.dq @ direction) for motion in one.motion()])
    moving = velocities[velocities > one.options.rest_velocity]
    return float(np.median(moving)) if len(moving) else 0.0
