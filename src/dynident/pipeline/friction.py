"""Which friction an identification has: as the user says, or as the training data supports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.terms import Term, along_terms
from dynident.dynamics.terms.friction import FrictionTerm, elements_with_friction, motion_of
from dynident.errors import InputError
from dynident.estimate.candidates import (
    GROUPS,
    CandidateGroup,
    Side,
    find_ripple,
    looks_for_ripple,
    on_elements,
    parse_friction,
    terms_of,
)
from dynident.estimate.estimators import ESTIMATORS
from dynident.estimate.linearization import fit_linearized, without_linearized
from dynident.estimate.prediction import TorqueModel
from dynident.estimate.records import TermVerdict
from dynident.identifiability.base import base_parameters
from dynident.information.thresholds import THRESHOLDS as ENOUGH
from dynident.logs.log import torque_kind
from dynident.pipeline.preprocessing import TrainingData
from dynident.pipeline.term_selection import FrictionChoice, Selection, choose_friction
from dynident.pipeline.thresholds import THRESHOLDS
from dynident.pipeline.training_rows import FirstMinutes
from dynident.robot.model import Robot
from dynident.signals.observations import Observations
from dynident.signals.thresholds import THRESHOLDS as SIGNALS

_SAME = 1e-6  # share of a log's length and range by which two views of one experiment may differ


def select_friction(
    friction: str | Sequence[str | Term], data: TrainingData, progress: Callable[[int, int], None]
) -> FrictionChoice:
    """The friction terms beside the basic ones.

    Args:
        friction: auto, basic, generic, full, or terms.
        data: Training logs.
        progress: Called with steps done and steps in all.

    Raises:
        InputError: For terms that this robot or these logs cannot have.
    """
    wanted = parse_friction(friction)
    choice = _select(wanted, data, progress)
    if looks_for_ripple(friction):
        return _with_ripple(choice, data, judged=False)
    enough = wanted == "auto" and choice.verdicts
    return _with_ripple(choice, data, judged=True) if enough else choice


def _select(wanted: str | tuple[Term, ...], data: TrainingData, progress: Callable[[int, int], None]) -> FrictionChoice:
    train, basic = data.train, data.basic
    side, only = measured_side(basic.robot, train), moving_elements(basic.robot, train)
    taken = {term.name for term in basic.terms}
    groups = [group for group in GROUPS if group.name not in taken and _possible(group, basic.robot)]
    if wanted == "basic":
        return FrictionChoice((), side or "sensor", "friction as in the basic model, as asked for")
    if not isinstance(wanted, str):
        terms = _beside(wanted, basic.terms)
        check_terms(terms, train, only)
        return FrictionChoice(_restrict_terms(terms, only), side or "sensor", "friction terms as given")
    if wanted == "full":
        return FrictionChoice(terms_of(groups, only), side or "sensor", "all friction terms, as asked for")
    if wanted == "generic" and side is not None:
        own = terms_of([group for group in groups if side in group.sides], only)
        return FrictionChoice(own, side, f"generic friction ({side} side), as asked for")
    progress(0, 1)
    generic = [group for group in groups if group.sides]
    # One pass over all candidates that need no linearization point; everything else is restricted from it.
    candidates = (*basic.terms, *terms_of(groups, only))
    first = base_parameters(basic.robot, without_linearized(candidates))
    rows = data.rows.information(first, seconds=THRESHOLDS.selection_s).n_rows
    seconds = sum(one.survey.duration for one in _experiments(train))
    most = basic.n + sum(len(term.columns(basic.robot)) for term in terms_of(generic, only))
    if rows < ENOUGH.min_equations_to_add_terms * most and wanted == "auto":
        few = f"{rows:g} equations in motion are too few for more than the basic friction"
        return FrictionChoice((), side or "sensor", few)
    return choose_friction(
        basic,
        data.rows,
        views(train),
        seconds=seconds,
        side=side,
        only=only,
        candidates=groups,
        generic=wanted == "generic",
    )


def _with_ripple(choice: FrictionChoice, data: TrainingData, judged: bool) -> FrictionChoice:
    """The choice with gear ripple where residuals show it; `judged` asks data left out whether it is worth it."""
    train, basic = data.train, data.basic
    base = base_parameters(basic.robot, (*basic.terms, *choice.terms))
    method = ESTIMATORS["weighted"]().set_params(rank_tolerance=ENOUGH.noisy_rank)
    fitted, reference = fit_linearized(FirstMinutes(data.rows), base, method)
    chi = base.standard_values(fitted.values_, "regrouped zero")
    found = find_ripple(TorqueModel(base.robot, base.terms, chi, reference), train)
    if not found:
        return choice if judged else replace(choice, reason=f"{choice.reason}; no gear ripple stands out")
    labels = tuple(one.label for one in found)
    waves = tuple(sorted({round(one.waves, 2) for one in found}))
    shown = ", ".join(f"{one.waves:.1f} waves per turn on {one.label}" for one in found)
    term = FrictionTerm("ripple", *waves, only=labels)
    if judged:
        group = CandidateGroup("ripple", waves)
        selection = Selection(base, data.rows, views(train), [group], labels)
        worth = "added" if selection.able and selection.worth_it([], [group]) else "not added"
        verdict = TermVerdict(term.key, *selection.gain([], [group]), worth)
        choice = replace(choice, verdicts=(*choice.verdicts, verdict))
        if verdict.verdict == "not added":
            return choice
    return replace(choice, terms=(*choice.terms, term), reason=f"{choice.reason}; gear ripple: {shown}")


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


def views(train: Sequence[Observations]) -> dict[str, str]:
    """Label of each log -> that of its experiment; two views of one show the same motion at the same time."""
    return {one.log.label: _first_view(one, train).log.label for one in train}


def _experiments(train: Sequence[Observations]) -> list[Observations]:
    return [one for one in train if _first_view(one, train) is one]


def _first_view(one: Observations, train: Sequence[Observations]) -> Observations:
    return next(other for other in train if other is one or _same_experiment(one, other))


def _same_experiment(one: Observations, other: Observations) -> bool:
    a, b = one.survey, other.survey
    length = max(a.duration, 1e-12)
    if max(abs(a.start - b.start), abs(a.stop - b.stop)) > max(_SAME * length, 1e-9):
        return False
    scale = np.maximum(a.highest - a.lowest, 1e-3)
    apart = np.maximum(np.abs(a.highest - b.highest), np.abs(a.lowest - b.lowest)) / scale
    return bool((apart < 1e-3).all())


def _possible(group: CandidateGroup, robot: Robot) -> bool:
    return group.name != "tilt" or bool(robot.gravity.any())


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
    """Refuse terms that the logs cannot tell anything about.

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
        # Speed of a typical moment over the band, in the log that shows the waves best.
        pace = min(_typical_velocity(one, motion_of(robot, element)) / one.band for one in train)
        for waves in term.scales:
            passing = waves * pace / (2.0 * np.pi)
            if passing > 1.0:
                raise InputError(
                    f"term {term.key}: at the speeds of element {element.label}, {waves:g} waves per turn pass "
                    f"{passing:.2g} times as fast as the band of the fit; raise --band or leave it out"
                )


def _typical_velocity(one: Observations, direction: Array) -> float:
    """Median speed of an element while it moves."""
    speeds = np.concatenate([np.abs(motion.dq @ direction) for motion in one.motion()])
    moving = speeds[speeds > one.options.rest_speed]
    return float(np.median(moving)) if len(moving) else 0.0
