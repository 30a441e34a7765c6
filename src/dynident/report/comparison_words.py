"""What a comparison of runs says, in plain words; the page and the terminal say the same sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.estimate.accuracy import together
from dynident.estimate.fit import Fit
from dynident.logs.labels import short_names
from dynident.report.figures import left_out_per_joint, per_joint, relative
from dynident.report.verdict import trust_counts
from dynident.report.words import UNKNOWN, counted, number, option, percent, sentence, whole
from dynident.validation.changes import ParameterChange
from dynident.validation.fits import FitComparison

NOTHING = "–"  # a run that does not have what a row is about
_ALIKE = 1.05  # ratio of errors below which neither run is called better
_DOUBT = 2.0  # deviations from which a difference deserves a look, though chance may explain it


@dataclass(frozen=True)
class Judgement:
    """Errors of the runs on the best basis that all of them have.

    Attributes:
        basis: What the errors are on, in words.
        unseen: Whether no run has seen that data.
        joints: {joint: share} of each run.
        totals: Over all joints, of each run; NaN where not known.
    """

    basis: str
    unseen: bool
    joints: tuple[Mapping[str, float], ...]
    totals: tuple[float, ...]


def judgement(found: FitComparison) -> Judgement:
    """Logs that judge all runs; without any, data that each left out in turn; without that, its training data."""
    names = [fit.robot.joint_names for fit in found.fits]
    if found.judged:
        shares = [per_joint(errors) for errors in found.errors]
        totals = [relative(errors) for errors in found.errors]
        basis, unseen = counted(len(found.judged), "common log"), not any(log.seen for log in found.judged)
    elif len(crossed := [fit.cross_validation for fit in found.fits if fit.cross_validation]) == len(found.fits):
        shares = [left_out_per_joint(one) for one in crossed]
        totals = [one.mean for one in crossed]
        basis, unseen = "data that each run left out in turn", False
    else:
        shares = [per_joint(fit.train) for fit in found.fits]
        totals = [relative(fit.train) for fit in found.fits]
        basis, unseen = "the training data of each run", False
    joints = tuple(dict(zip(own, map(float, share), strict=True)) for own, share in zip(names, shares, strict=True))
    return Judgement(basis, unseen, joints, tuple(totals))


def headline(found: FitComparison) -> str:
    """The one line to remember."""
    judged = judgement(found)
    if not found.judged:
        return _parameter_words(found)
    if not found.one_band:
        bands = [f" up to {number(errors.band, 3)} Hz" for errors in found.errors]
        parts = zip(found.names, judged.totals, bands, strict=True)
        return f"Torque error in different bands: {', '.join(f'{name} {percent(x)}{b}' for name, x, b in parts)}"
    listed = ", ".join(f"{name} {percent(x)}" for name, x in zip(found.names, judged.totals, strict=True))
    known = [(x, name) for x, name in zip(judged.totals, found.names, strict=True) if np.isfinite(x)]
    if len(known) < len(found.names):
        return f"Torque error: {listed}"
    best, worst = min(known), max(known)
    if worst[0] <= _ALIKE * best[0]:
        return f"All predict the torque about equally well: {listed}"
    return f"{best[1]} predicts the torque best: {listed}"


def sentences(found: FitComparison) -> list[str]:
    """What was found, below the headline."""
    judged = judgement(found)
    seen = " that no run has seen" if judged.unseen else ""
    if found.judged:
        logs = ", ".join(log_names(found)[log.label] for log in found.judged)
        told = [f"Relative torque error on {judged.basis}{seen} ({logs}), each joint while it moves."]
        told.append(sentence(_parameter_words(found)))
    else:
        text = f"No log was held out by all runs, so errors are on {judged.basis} and are not strictly comparable; "
        told = [f"{text}give logs to judge all of them with: --validation LOG.."]
    told.append(_chance_words(found))
    only = [
        f"{counted(n, 'parameter')} only {name} has"
        for place, name in enumerate(found.names)
        if (n := sum(one.values[place] is not None and not one.shared for one in found.parameters))
    ]
    return [*told, *([sentence("; ".join(only))] if only else [])]


def _parameter_words(found: FitComparison) -> str:
    common, changed = len(found.common), len(found.changed)
    if not common:
        return "The runs have no parameter in common"
    if all(x in (None, 0.0) for one in found.common for x in one.differences):
        return f"All {common} common parameters are equal"
    if len({fit.robot.name for fit in found.fits}) > 1:
        return f"Different robots: {changed} of {counted(common, 'parameter')} with the same name differ"
    if not changed:
        return f"None of {counted(common, 'common parameter')} changed by more than chance explains"
    return f"{changed} of {counted(common, 'common parameter')} changed by more than chance explains"


def _chance_words(found: FitComparison) -> str:
    return (
        f"Changed means more than {number(found.threshold, 3)} standard deviations of the difference, which chance "
        f"alone brings about for any of the parameters once in 20 comparisons; {found.names[0]} is what the others "
        "are compared with."
    )


def change_words(found: FitComparison, one: ParameterChange) -> str:
    """Verdict on a parameter."""
    if not one.shared:
        return f"only {found.names[one.reference]}"
    if not one.alike:
        return "another sum"
    if one.compared == 0:
        return "not determined"
    if one.largest > found.threshold:
        return "changed"
    return "perhaps" if one.largest > _DOUBT else "agrees"


def facts(found: FitComparison) -> list[tuple[str, list[str]]]:
    """Runs at a glance: what, and its value in each run."""
    return [
        ("robot", [fit.robot.name for fit in found.fits]),
        ("parameters", [str(len(fit.names)) for fit in found.fits]),
        ("known to 15 %", [str(_known(fit)) for fit in found.fits]),
        ("not determined", [str(len(fit.undetermined)) for fit in found.fits]),
        ("condition", [number(fit.condition, 3) for fit in found.fits]),
        ("training error", [percent(relative(fit.train)) for fit in found.fits]),
        ("left out in turn", [_left_out(fit) for fit in found.fits]),
        ("held out", [_held_out(fit) for fit in found.fits]),
        ("training logs", [str(len(fit.data)) for fit in found.fits]),
        ("training samples", [whole(sum(record.n_samples for record in fit.data)) for fit in found.fits]),
        ("band", [f"{number(fit.band, 3)} Hz" for fit in found.fits]),
    ]


def _known(fit: Fit) -> int:
    counts = trust_counts(fit)
    return counts["good"] + counts["fair"]


def _left_out(fit: Fit) -> str:
    return NOTHING if fit.cross_validation is None else percent(fit.cross_validation.mean)


def _held_out(fit: Fit) -> str:
    return percent(relative(together(fit.validation.values()))) if fit.validation else NOTHING


def differing_options(found: FitComparison) -> list[tuple[str, list[str]]]:
    """Options that are not the same in all runs."""
    return [
        (name.replace("_", " "), [option(value) if value not in (None, {}, []) else "none" for value in values])
        for name, values in found.differing.items()
    ]


def log_names(found: FitComparison) -> dict[str, str]:
    """Short names of all logs, by label."""
    return short_names([*found.logs, *found.judged])


def z_words(value: float | None) -> str:
    """A distance in deviations, with its sign."""
    return UNKNOWN if value is None else f"{value:+.1f}"


def cells(values: Sequence[Any], shown: Any) -> list[str]:
    """Values of the runs; a dash where a run has none."""
    return [NOTHING if value is None else shown(value) for value in values]
