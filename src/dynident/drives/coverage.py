"""Whether ranges are honest: how often held-out logs lie within the band of sampled models."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np

from dynident.arrays import Array, finite_or_none, record
from dynident.drives.replay import ClosedLoopReplay, Commands
from dynident.drives.sampling import SampledModels
from dynident.drives.sampling_thresholds import THRESHOLDS
from dynident.errors import InputError
from dynident.estimate.fit import Fit
from dynident.estimate.prediction import TorqueModel
from dynident.logs.log import LogSource


@record
class Coverage:
    """How often reality lies within the band of sampled models.

    Attributes:
        quantity: "position" of closed-loop replays, or "torque" of predictions.
        level: Share of the samples that the band holds at each stamp.
        inside: Share of measured samples within it.
        joints: (n_joints,) the same of each joint.
        widening: How many times as wide about its median the band of positions would have to be to hold the share
            `level`; infinite where it has no width. None for torque, whose band has the error of cross-validation
            beside the spread of the samples.
        n_models: Samples that were used.
        center: Error of the values that samples are drawn around, RMS [rad or m, N·m or N].
        samples: (n_models,) errors of the samples.
        labels: The logs.
    """

    quantity: str
    level: float
    inside: float
    joints: Array
    widening: float | None
    n_models: int
    center: float
    samples: Array
    labels: tuple[str, ...]

    def __str__(self) -> str:
        """A sentence."""
        logs = ", ".join(self.labels)
        words = (
            f"{100.0 * self.inside:.3g} % of measured {self.quantity} in {logs} lies within the band of "
            f"{100.0 * self.level:.3g} % of {self.n_models} samples"
        )
        if self.widening is None or abs(self.widening - 1.0) < _NO_WIDENING:
            return words
        if not np.isfinite(self.widening):
            return f"{words}; the samples do not differ there"
        return f"{words}; it would have to be {self.widening:.3g} times as wide to hold that share"

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "quantity": self.quantity,
            "level": self.level,
            "inside": self.inside,
            "joints": self.joints.tolist(),
            "widening": None if self.widening is None else finite_or_none(self.widening),
            "n_models": self.n_models,
            "error": self.center,
            "errors": self.samples.tolist(),
            "logs": list(self.labels),
        }


_NO_WIDENING = 0.05


def coverage_of_replays(models: SampledModels, commands: Sequence[Commands], level: float = 0.9) -> Coverage:
    """Replay samples under logged commands and count how often measured positions lie within their band.

    Args:
        models: The samples; the first of them are replayed.
        commands: Stretches of held-out logs.
        level: Share of the samples between the ends of the band.

    Raises:
        InputError: For a level that is no share.
    """
    _check(level)
    count = min(len(models), THRESHOLDS.replayed)
    candidates = [models.drives(), *(models.drives(k) for k in range(count))]
    courses = ClosedLoopReplay(models.robot, commands).positions(candidates)
    middle = np.concatenate([course[0] for course in courses])
    away = np.concatenate([course[1:] for course in courses], axis=1) - middle
    measured = np.concatenate([one.positions for one in commands]) - middle
    low, median, high = np.quantile(away, [0.5 - level / 2, 0.5, 0.5 + level / 2], axis=0)
    within = (measured >= low) & (measured <= high)
    off = measured - median
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        needed = np.where(off > 0.0, off / (high - median), off / (low - median))
        rms = np.sqrt(np.mean((measured - away) ** 2, axis=(1, 2)))
        center = float(np.sqrt(np.mean(measured**2)))
    needed = np.where(off == 0.0, 0.0, needed)
    widening = float(np.quantile(needed, level, method="higher"))
    labels = tuple(dict.fromkeys(one.label for one in commands))
    joints = within.mean(axis=0)
    return Coverage("position", level, float(within.mean()), joints, widening, count, center, rms, labels)


def coverage_of_torque(models: SampledModels, fit: Fit, logs: Sequence[LogSource], level: float = 0.9) -> Coverage:
    """Predict the torque of held-out logs with samples and count how often the measured one lies within their band.

    The band has the standard deviation of the samples and beside it what predictions of the fit deviate in any case,
    from cross-validation: noise, and friction that no model with these terms has.

    Args:
        models: Samples of the fit.
        fit: The fit.
        logs: Held-out logs.
        level: Share of the distribution between the ends of the band.

    Raises:
        InputError: For a level that is no share.
    """
    _check(level)
    count, width = min(len(models), THRESHOLDS.replayed), NormalDist().inv_cdf(0.5 + level / 2)
    chis = [models.center, *models.values[:count]]
    courses = [TorqueModel(fit.robot, fit.base.terms, chi, fit.estimate.linearization) for chi in chis]
    inside, squares, n = np.zeros(len(fit.robot.joint_names)), np.zeros(count + 1), 0
    for log in logs:
        for motion in fit.observe(log).motion():
            torque = np.array([own.torque(motion.q, motion.dq, motion.ddq) for own in courses])
            off = motion.tau[0] - torque
            spread = np.hypot(torque[1:].std(axis=0), fit.levels)
            inside += (np.abs(off[0]) <= width * spread).sum(axis=0)
            squares += np.sum(off**2, axis=(1, 2))
            n += len(motion)
    rms = np.sqrt(squares / (n * len(inside)))
    joints, labels = inside / n, tuple(log.label for log in logs)
    return Coverage("torque", level, float(joints.mean()), joints, None, count, float(rms[0]), rms[1:], labels)


def _check(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise InputError(f"level is {level:g}; expected a share between 0 and 1, such as 0.9")
