"""What a fit is worth: its verdict, and how far each parameter can be trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from dynident.estimate.fit import Fit
from dynident.estimate.records import CrossValidation
from dynident.estimate.torque_errors import TorqueErrors, together
from dynident.report.html import Cell, Mark, mark
from dynident.report.text import number, per_joint, percent, plural, relative, span
from dynident.report.thresholds import THRESHOLDS
from dynident.validation.verdict import Grade, Verdict, fit_verdict

Trust = Literal["good", "fair", "weak", "not determined"]
TRUST: tuple[Trust, ...] = get_args(Trust)
KINDS: dict[Trust, Mark] = {"good": "good", "fair": "fair", "weak": "weak", "not determined": "none"}
GRADES: dict[Grade, Mark] = {"good": "good", "usable": "fair", "poor": "weak"}
GRADE_STYLES: dict[Grade, str] = {"good": "bold green", "usable": "bold yellow", "poor": "bold red"}


@dataclass(frozen=True)
class FitAssessment:
    """The verdict on a fit in sentences.

    Attributes:
        verdict: The verdict itself.
        headline: The one line to remember.
        sentences: What was found.
        caveats: What limits the verdict; empty when nothing does.
    """

    verdict: Verdict
    headline: str
    sentences: tuple[str, ...]
    caveats: tuple[str, ...]


def trust_of(row: Mapping[str, Any]) -> Trust:
    """How far a parameter can be trusted, from its row of `Fit.rows`."""
    if not row["determined"]:
        return "not determined"
    share = row["relative_std"]
    if share is None or share >= THRESHOLDS.fair_relative_std:
        return "weak"
    return "good" if share < THRESHOLDS.good_relative_std else "fair"


def trust_mark(trust: Trust) -> Cell:
    """Trust as dots and a word."""
    return mark(trust, KINDS[trust])


def trust_counts(estimate: Fit) -> dict[Trust, int]:
    """How many parameters can be trusted how far, best first."""
    found = Counter(trust_of(row) for row in estimate.rows())
    return {trust: found[trust] for trust in TRUST}


def assess_fit(estimate: Fit) -> FitAssessment:
    """The verdict on a fit and what it rests on, in sentences."""
    verdict = fit_verdict(estimate)
    if estimate.validation:
        found, caveats = _held_out(estimate)
    elif estimate.cross_validation is not None:
        found, caveats = _cross_validation(estimate.cross_validation)
    else:
        found, caveats = _training(estimate.train)
    caveats += _comparison(estimate, verdict.error)
    sentences = [*found, *_progress(estimate, verdict.basis), *_parameters(estimate)]
    headline = f"{verdict.grade}: {percent(verdict.error)} torque error on {_HEADLINES[verdict.basis]}"
    return FitAssessment(verdict, headline, tuple(sentences), tuple(caveats))


_HEADLINES = {
    "held-out data": "held-out logs",
    "cross-validation": "held-out folds",
    "training data": "the training data",
}
_Part = tuple[list[str], list[str]]


def _held_out(estimate: Fit) -> _Part:
    errors = together(estimate.validation.values())
    text = f"On {plural(len(estimate.validation), 'held-out log')}, the relative torque error of the model is "
    text += percent(relative(errors))
    shares = [share for share in map(relative, estimate.validation.values()) if np.isfinite(share)]
    text += f" ({span(shares)} from log to log). " if len(shares) > 1 else ". "
    return [text + _measure(errors), *_worst(errors)], []


def _cross_validation(crossed: CrossValidation) -> _Part:
    shares, over = crossed.totals.tolist(), crossed.over
    what = f"{len(shares)} {over}" + (" of the log" if over == "blocks" else "")
    text = (
        f"In cross-validation over {what}, the relative torque error on the held-out fold is {percent(crossed.mean)} "
        f"on average ({span(shares)})."
    )
    caveats = ["No log was held out for validation; give one to see how the model predicts another motion."]
    if over == "blocks":
        caveats = [
            "All data come from one log: a motion of another kind may be predicted less well. Record one and validate "
            "with it."
        ]
    return [text], caveats


def _training(errors: TorqueErrors) -> _Part:
    text = f"On the training logs, the relative torque error of the model is {percent(relative(errors))}. "
    return [text + _measure(errors), *_worst(errors)], []


def _measure(errors: TorqueErrors) -> str:
    return (
        "(Norm of the residual over norm of the torque, all joints together, each while it moves, up to "
        f"{number(errors.band, 3)} Hz.)"
    )


def _worst(errors: TorqueErrors) -> list[str]:
    shares = per_joint(errors)
    if len(shares) < 2 or not np.isfinite(shares).any():
        return []
    worst, best = int(np.nanargmax(shares)), int(np.nanargmin(shares))
    return [
        f"Joint by joint the error ranges from {percent(shares[best])} ({errors.joints[best]}) to "
        f"{percent(shares[worst])} ({errors.joints[worst]})."
    ]


def _progress(estimate: Fit, basis: str) -> list[str]:
    """Training error, before and after."""
    after = percent(relative(estimate.train))
    if estimate.nominal is not None:
        before = percent(relative(estimate.nominal))
        return [f"On the training data the error is {after}, with those of the robot file {before}."]
    return [] if basis == "training data" else [f"On the training data the error is {after}."]


def _comparison(estimate: Fit, error: float) -> list[str]:
    """A caveat where the error is much larger than on the training data."""
    train = relative(estimate.train)
    if not error > THRESHOLDS.error_ratio * train > 0.0:
        return []
    return [
        f"{percent(error)} is {number(error / train, 2)} times the training error: the model does not generalize well "
        "to other motion. Record longer or more varied motion."
    ]


def _parameters(estimate: Fit) -> list[str]:
    counts, rows = trust_counts(estimate), estimate.rows()
    known = counts["good"] + counts["fair"]
    text = f"{known} of {plural(len(rows), 'parameter')} {'has' if known == 1 else 'have'} a relative standard "
    text += f"deviation below {100.0 * THRESHOLDS.fair_relative_std:.0f} %"
    if counts["weak"]:
        near_zero = sum(
            trust_of(row) == "weak" and row["std"] is not None and abs(row["value"]) < 2.0 * row["std"] for row in rows
        )
        text += f", {counts['weak']} a larger one"
        if near_zero:
            text += f" ({near_zero} of them do not differ significantly from zero)"
    lost = counts["not determined"]
    text += f"; {lost} cannot be determined from this data." if lost else "; all are determined by the data."
    return [text]
