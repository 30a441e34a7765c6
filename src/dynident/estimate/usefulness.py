"""Whether a model is of any use: whether it predicts most of the torque that it has not seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dynident.estimate.accuracy import TorqueErrors, together

MOST = 0.5  # of the torque: a model that misses more than this says less than it leaves unsaid


@dataclass(frozen=True)
class Usefulness:
    """A judgement on data that a model was not made from, where there is any.

    Attributes:
        useful: Whether the model predicts most of the torque, and more of it than a constant for each joint.
        error: Relative error it was judged by; left out or held out, of the training only where there is no other.
        constant: What constants leave of that torque.
        reason: Why it is of no use, and the bands that were tried; empty for a useful one.
    """

    useful: bool
    error: float
    constant: float
    reason: str


def usefulness(
    train: TorqueErrors,
    validation: Mapping[str, TorqueErrors],
    cross_validation: Mapping[str, Any] | None,
    bands: Sequence[Mapping[str, Any]],
) -> Usefulness:
    """Judge a model by its errors.

    Args:
        train: On the training logs.
        validation: On logs that were held out, by label.
        cross_validation: On parts left out in turn, as plain data.
        bands: What was tried for each training log: band, reason, and perhaps the errors of others.
    """
    judge = together(validation.values()) if validation else train
    error, constant = judge.relative, judge.constant
    if not validation and cross_validation is not None:
        error = float(cross_validation["mean"])
    reasons = []
    if error >= MOST:
        reasons.append(f"misses {100.0 * error:.0f} % of the torque")
    if error > constant:
        reasons.append(f"a constant for each joint misses {100.0 * constant:.0f} %")
    if not reasons:
        return Usefulness(True, error, constant, "")
    tried = dict.fromkeys(_tried(one) for one in bands)
    return Usefulness(False, error, constant, f"{', '.join(reasons)}; tried: {', '.join(tried) or 'one band'}")


def _tried(band: Mapping[str, Any]) -> str:
    return f"band {band['band']:.3g} Hz ({band['reason']})" if band["reason"] else f"band {band['band']:.3g} Hz"
