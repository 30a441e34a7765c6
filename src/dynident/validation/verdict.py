"""The verdict on a model: good, usable or poor, with its reasons and what to do next.

One rule for fit and validation, page, terminal and JSON. It asks in this order: is there a reason not to trust the
numbers at all (poor); is something missing or larger than careful identifications leave it (usable); else good.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from dynident.arrays import Array
from dynident.display import brief
from dynident.estimate.fit import Fit
from dynident.estimate.records import Usefulness
from dynident.estimate.torque_errors import TorqueErrors, together
from dynident.validation.thresholds import THRESHOLDS

Grade = Literal["good", "usable", "poor"]
Basis = Literal["held-out data", "cross-validation", "training data"]

_PLACES: dict[Basis, str] = {
    "held-out data": "held-out logs",
    "cross-validation": "held-out folds",
    "training data": "the training data",
}
_CHECK = "Run `dynident check ROBOT LOG..`: columns, signs, units, gravity and the robot file are the usual causes"
_RECORD = "Record a log of another motion and validate with it: `dynident validate FIT LOG`"
_COMPARE = "Check the payload, and identify these logs for comparison: `dynident compare FIT OTHER`"
_EXCITE = "Record longer or more varied motion: `dynident excite ROBOT -o motion.yaml`"
_EXTEND = "Record motion that determines the rest: `dynident excite ROBOT --extend FIT -o motion.yaml`"
_USE = "Export it with `dynident export FIT --urdf arm.urdf`, or go on with `dynident predict` or `dynident payload`"


@brief
@dataclass(frozen=True)
class Verdict:
    """What a model is worth for predicting torque.

    Attributes:
        grade: In a word.
        error: Relative torque error that it rests on, a fraction; NaN where it is not known.
        basis: Data of that error; the best there is.
        reasons: Why the grade is not a better one; empty for a good one.
        next_steps: What to do now, the first thing first.
    """

    grade: Grade
    error: float
    basis: Basis
    reasons: tuple[str, ...]
    next_steps: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain data, without the error, which stands with the errors."""
        return {"grade": self.grade, "reasons": list(self.reasons), "next_steps": list(self.next_steps)}

    def lowered(self, grade: Grade, reason: str, *steps: str) -> Verdict:
        """The verdict with one more reason, and no better grade than this one."""
        worst = max(self.grade, grade, key=("good", "usable", "poor").index)
        return replace(
            self,
            grade=worst,
            reasons=(*self.reasons, reason),
            next_steps=tuple(dict.fromkeys((*self.next_steps, *steps))),
        )


def fit_verdict(fit: Fit) -> Verdict:
    """The verdict on a fit, by held-out logs; without any by cross-validation; without that by its training error."""
    error, basis, joints = _best_error(fit)
    found = Verdict("good", error, basis, (), ())
    diagnosis, nominal, train = fit.diagnosis, fit.nominal, fit.train.relative
    if diagnosis is not None and diagnosis.severity == "stop":
        reason = "the log diagnostics found a reason to stop, which was overridden"
        found = found.lowered("poor", reason, "Fix what `dynident check ROBOT LOG..` names, then identify again")
    if nominal is not None and THRESHOLDS.clearly_better * train > nominal.relative > 0.0:
        reason = (
            "the values of the robot file fit the training data better than the identified ones "
            f"({_error(nominal.relative)} against {_error(train)})"
        )
        found = found.lowered("poor", reason, _CHECK)
    found = _assess_errors(found, joints, fit.usefulness)
    if nominal is not None and error > nominal.relative >= train:
        reason = (
            f"the values of the robot file have an error of {_error(nominal.relative)} on the training data, less than "
            f"this model on {_PLACES[basis]}; on other motion they may be the better choice"
        )
        found = found.lowered("usable", reason, _EXCITE)
    if basis == "training data":
        reason = (
            "this is a training error only: no log was held out and there was no cross-validation, so "
            "nothing shows how the model predicts other motion"
        )
        found = found.lowered("usable", reason, _RECORD)
    lost = fit.undetermined
    if lost:
        reason = f"the data does not determine {_parameters(len(lost))}; motion that needs more is not predicted"
        found = found.lowered("usable", reason, _EXTEND)
    return _with_next_step(found)


def errors_verdict(errors: TorqueErrors, useful: Usefulness, coverage: Array | None = None) -> Verdict:
    """The verdict on a model by its errors on some logs alone.

    Args:
        errors: Of these logs.
        useful: Whether the model predicts most of their torque.
        coverage: (n_joints,) share of the torque within intervals that state 95 %; NaN where not known.
    """
    found = _assess_errors(Verdict("good", _relative(errors), "held-out data", (), ()), _by_joint(errors), useful)
    known = np.zeros(0) if coverage is None else coverage[np.isfinite(coverage)]
    if len(known) and (share := float(np.median(known))) < THRESHOLDS.lost_coverage:
        reason = (
            f"95 % intervals contain only {100.0 * share:.2g} % of the torque: these logs are of another robot, "
            "load, friction or motion than those it was identified with"
        )
        found = found.lowered("usable", reason, _COMPARE)
    return _with_next_step(found)


def _error(share: float) -> str:
    return f"{100.0 * share:.3g} %"


def _parameters(count: int) -> str:
    return "1 parameter" if count == 1 else f"{count} parameters"


def _best_error(fit: Fit) -> tuple[float, Basis, Mapping[str, float]]:
    """The error that a verdict rests on, and that of each joint on the same data."""
    if fit.validation:
        errors = together(fit.validation.values())
        return _relative(errors), "held-out data", _by_joint(errors)
    crossed = fit.cross_validation
    if crossed is not None:
        folds = np.where(crossed.errors > 0.0, crossed.errors, np.nan)  # exactly zero where a joint has no rows
        names = fit.robot.joint_names
        own = {names[j]: float(np.nanmean(folds[:, j])) for j in np.flatnonzero(np.isfinite(folds).any(axis=0))}
        return crossed.mean, "cross-validation", own
    return _relative(fit.train), "training data", _by_joint(fit.train)


def _relative(errors: TorqueErrors) -> float:
    return errors.relative if float(errors.torque_square.sum()) > 0.0 else float("nan")


def _by_joint(errors: TorqueErrors) -> dict[str, float]:
    rows = zip(errors.joints, errors.per_joint.tolist(), errors.count, errors.torque_square, strict=True)
    return {name: share for name, share, count, square in rows if count > 0.0 and square > 0.0}


def _assess_errors(found: Verdict, joints: Mapping[str, float], useful: Usefulness) -> Verdict:
    """The verdict by what a model misses of the torque, all joints together and one by one."""
    if not useful.useful:
        return found.lowered("poor", useful.reason, _CHECK)
    if not np.isfinite(found.error):
        return found.lowered("usable", "there is no torque to compare with", _RECORD)
    if found.error > THRESHOLDS.usable_error:
        return found.lowered("poor", f"the model misses more than {_percent(THRESHOLDS.usable_error)}", _CHECK)
    if found.error > THRESHOLDS.good_error:
        step = "See in the report which joint misses most, and compare with two repeats of one motion"
        found = found.lowered("usable", f"the model misses more than {_percent(THRESHOLDS.good_error)}", step)
    weak = [name for name, error in joints.items() if error > THRESHOLDS.usable_error]
    if weak:
        names = ", ".join(weak)
        step = f"Look at the torque of {names} in the report: little torque, friction or a wrong gain is usual there"
        found = found.lowered("usable", f"of {names}, it misses more than {_percent(THRESHOLDS.usable_error)}", step)
    return found


def _percent(share: float) -> str:
    return f"{100.0 * share:.0f} % of the torque"


def _with_next_step(found: Verdict) -> Verdict:
    return found if found.next_steps else replace(found, next_steps=(_USE,))
