"""Whether a model is of any use: whether it predicts most of the torque that it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dynident.estimate.records import FitErrors

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


def usefulness(errors: FitErrors, bands: Sequence[tuple[float, str]]) -> Usefulness:
    """Judge a model by its errors.

    Args:
        errors: On training, held-out and left-out data.
        bands: What was tried for each training log: band [Hz] and reason.
    """
    judge = errors.unseen or errors.train
    error, constant = judge.relative, judge.constant
    if not errors.held_out and errors.cross_validation is not None:
        error = errors.cross_validation.mean
    reasons = []
    if error >= MOST:
        reasons.append(f"misses {100.0 * error:.0f} % of the torque")
    if error > constant:
        reasons.append(f"a constant for each joint misses {100.0 * constant:.0f} %")
    if not reasons:
        return Usefulness(True, error, constant, "")
    tried = dict.fromkeys(_tried(one) for one in bands)
    return Usefulness(False, error, constant, f"{', '.join(reasons)}; tried: {', '.join(tried) or 'one band'}")


def _tried(band: tuple[float, str]) -> str:
    width, reason = band
    return f"band {width:.3g} Hz ({reason})" if reason else f"band {width:.3g} Hz"
