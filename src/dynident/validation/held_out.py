"""`validate`: an estimate on logs it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.arrays import Array, frozen
from dynident.display import html_table
from dynident.errors import InputError
from dynident.estimate.covariance import covariance_root
from dynident.estimate.fit import Fit
from dynident.estimate.records import FitErrors, Usefulness, usefulness
from dynident.estimate.torque_errors import TorqueErrors, together
from dynident.logs.log import LogSource, as_logs, log_warnings
from dynident.options import keywords
from dynident.signals.observations import Observations
from dynident.signals.rows import ObservedRows
from dynident.validation.options import ValidateOptions
from dynident.validation.residuals import LogErrors, compare_all
from dynident.validation.thresholds import THRESHOLDS
from dynident.validation.verdict import Verdict, errors_verdict


@dataclass(frozen=True, repr=False)
class Validation:
    """How an estimate predicts some logs.

    Attributes:
        joints: Names of the joints.
        comparisons: One per log.
        coverage: (n_joints,) share of the residuals within two stated standard deviations of the prediction (parameters
            and `Fit.levels` together), at the outputs of the model; 95 % if these are right, NaN without rows.
        white: (n_joints,) whether the residual of each output is like filtered white noise in every log.
        seen: Labels of logs that the estimate was trained on, for which errors prove nothing.
        warnings: What a reader should know about the logs.
    """

    joints: tuple[str, ...]
    comparisons: tuple[LogErrors, ...]
    coverage: Array
    white: tuple[bool, ...]
    seen: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """A line, not the samples."""
        logs = ", ".join(one.label for one in self.comparisons[:3]) + (" .." if len(self.comparisons) > 3 else "")
        return f"Validation({self.verdict.grade}: {100.0 * self.relative_error:.3g} % torque error on {logs})"

    def _repr_html_(self) -> str:
        shares = zip(self.per_joint, self.fit, self.rmse, self.coverage, strict=True)
        rows = [
            (joint, f"{error:.3%}", f"{fit:.3%}", f"{rmse:.3g}", f"{within:.1%}")
            for joint, (error, fit, rmse, within) in zip(self.joints, shares, strict=True)
        ]
        return html_table(("joint", "error", "fit", "RMS error", "within"), rows, repr(self))

    @property
    def errors(self) -> TorqueErrors:
        """Errors of each joint while it moves, over all logs."""
        return together(one.errors[0] for one in self.comparisons)

    @property
    def whole(self) -> TorqueErrors:
        """Errors at all times, rest included."""
        return together(one.whole[0] for one in self.comparisons)

    @property
    def relative_error(self) -> float:
        """||tau - tau_hat|| / ||tau||, a fraction."""
        return self.errors.relative

    @property
    def usefulness(self) -> Usefulness:
        """Whether the model predicts most of the torque of these logs."""
        return usefulness(FitErrors(self.errors), [(self.errors.band, "")])

    @property
    def verdict(self) -> Verdict:
        """Good, usable or poor, by the errors on these logs."""
        return errors_verdict(self.errors, self.usefulness, self.coverage)

    @property
    def per_joint(self) -> Array:
        """The same for each joint, (n_joints,)."""
        return self.errors.per_joint

    @property
    def fit(self) -> Array:
        """Share of each joint's torque variation that is explained, (n_joints,)."""
        return self.errors.fit

    @property
    def rmse(self) -> Array:
        """Root mean square error of each joint, (n_joints,) [N·m or N]."""
        return self.errors.rmse

    def as_dict(self) -> dict[str, Any]:
        """Plain data; relative errors and fit are fractions."""
        return {
            **self.errors.as_dict(),
            **self.verdict.as_dict(),
            "useful": self.usefulness.useful,
            "joints": list(self.joints),
            "rest_included": self.whole.as_dict(),
            "coverage": [float(x) if np.isfinite(x) else None for x in self.coverage],
            "white_residual": list(self.white),
            "logs": [{"label": one.label, "source": one.source, **one.errors[0].as_dict()} for one in self.comparisons],
            "seen_in_training": list(self.seen),
            "warnings": list(self.warnings),
        }


@keywords(ValidateOptions)
def validate(fit: Fit, logs: LogSource | Sequence[LogSource], options: ValidateOptions) -> Validation:
    """Predict the torque of logs from position and time and compare it with what was measured.

    Args:
        fit: The estimate.
        logs: One log or several.
        options: Band in which both are compared.

    Raises:
        InputError: When there is no log, or one has no torque.
    """
    given = as_logs(logs)
    if not given:
        raise InputError("there is no log to validate with")
    observed = [fit.observe(log, options.band) for log in given]
    comparisons = compare_all([fit.model], observed, options.progress or (lambda what, done, total: None), "comparing")
    covered = coverage(fit, observed)
    return Validation(
        joints=fit.robot.joint_names,
        comparisons=tuple(comparisons),
        coverage=covered,
        white=tuple(bool(x) for x in np.all([one.white for one in comparisons], axis=0)),
        seen=tuple(one.log.label for one in observed if any(record.overlaps(one) for record in fit.data)),
        warnings=(
            *log_warnings(given),
            *(words for one in observed for words in fit.missing_temperatures(one)),
            *_narrow_intervals(fit, covered),
        ),
    )


def _narrow_intervals(fit: Fit, covered: Array) -> list[str]:
    """A warning where the stated intervals hold too little of these logs."""
    narrow = np.flatnonzero(covered < THRESHOLDS.min_interval_coverage)
    shares = ", ".join(f"{fit.robot.joint_names[i]} {100.0 * covered[i]:.0f} %" for i in narrow)
    if not shares:
        return []
    return [
        f"intervals of the prediction hold less of this torque than the 95 % that they state ({shares}): "
        "cross-validation of the training saw no such motion; identify with logs of it too"
    ]


def coverage(fit: Fit, observations: Sequence[Observations]) -> Array:
    """Share of residuals within two standard deviations of the prediction, (n_joints,).

    A prediction deviates by what its parameters are uncertain, w C w', and by the level s^2 of the channel, which
    cross-validation gives: the same intervals as those of `Fit.torque_band`.
    """
    model, levels = fit.predictive, fit.levels
    rows = ObservedRows(tuple(observations), fit.predictive_base, model.linearization)
    root = covariance_root(model.covariance)
    inside, count = np.zeros(len(rows.channels)), np.zeros(len(rows.channels))
    for block in rows.blocks():
        for channel, columns in enumerate(block.columns):
            residual = block.residual(channel, model.values)
            spread = root[list(columns)].T @ block.usable_columns_first(channel)[:-1]
            std = np.sqrt((spread**2).sum(0) + levels[channel] ** 2)
            inside[channel] += np.count_nonzero(np.abs(residual) <= 2.0 * std)
            count[channel] += len(residual)
    return frozen(np.where(count > 0.0, inside / np.maximum(count, 1.0), np.nan))
