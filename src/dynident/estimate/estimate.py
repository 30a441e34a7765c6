"""`Estimate`: parameters as evidence, with deviations, the data they came from and every option that shaped them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynident.arrays import Array, Mask, frozen, on_one_thread, place_of
from dynident.estimate.accuracy import TorqueErrors, Trace
from dynident.estimate.bands import LEVEL, banded_blocks, covariance_root, half_width
from dynident.estimate.friction_view import FrictionView
from dynident.estimate.motion_view import MotionView
from dynident.estimate.prediction import TorqueModel, predicted_blocks
from dynident.estimate.usefulness import Usefulness, usefulness
from dynident.identifiability.base import BaseParameters
from dynident.logs.source import LogSource, PositionsOnly, as_logs
from dynident.robot.model import Robot
from dynident.signals.observe import Observations, SignalOptions, observe


@dataclass(frozen=True)
class LogRecord:
    """A log that was used.

    Attributes:
        label: Name in reports.
        source: File.
        digest: Hash of the file.
        n_samples: Rows.
        start: Time of its first sample [s].
        duration: [s].
        rate: Of the uniform grid [Hz].
        band: Band it was filtered to [Hz].
        repeated: Rows dropped because they repeat the one before.
        gaps: Number of gaps.
        resampled: Whether stamps were irregular.
        band_choice: Why the band is what it is and what was tried, as plain data; empty in fits of earlier versions.
    """

    label: str
    source: str
    digest: str
    n_samples: int
    start: float
    duration: float
    rate: float
    band: float
    repeated: int
    gaps: int
    resampled: bool
    band_choice: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(observations: Observations) -> LogRecord:
        """What to remember of a log."""
        log, found = observations.log, observations.survey
        return LogRecord(
            label=log.label,
            source=log.source,
            digest=log.digest,
            n_samples=found.n_samples,
            start=found.start,
            duration=found.duration,
            rate=found.grid.rate,
            band=observations.band,
            repeated=found.n_repeated,
            gaps=found.n_gaps,
            resampled=found.grid.irregular,
            band_choice=observations.choice.as_dict(),
        )

    def overlaps(self, observations: Observations) -> bool:
        """Whether a log shows the same samples, in part or in whole."""
        found = observations.survey
        shared = found.start < self.start + self.duration and self.start < found.stop
        return shared and observations.log.digest == self.digest


@dataclass(frozen=True, eq=False)
class Estimate:
    """Identified base parameters of a robot.

    Attributes:
        base: What the parameters are; names, expressions and the robot.
        beta: (n,) values.
        covariance: (n, n), with all that is known to make estimates uncertain.
        covariance_kind: What that is, in words.
        white_std: (n,) deviations by the textbook formula for white noise.
        determined: (n,) whether the data determines each parameter.
        rank: Directions the data determines.
        condition: Condition number of the weighted data with scaled columns.
        sigma: (n_joints,) deviation of the residual of each output channel [N·m or N].
        inflation: (n_joints,) rows that weigh as much as one independent row.
        estimator: Name of the method.
        estimator_options: Its options.
        signals: How logs were filtered; its band is None when chosen from each log.
        band: Widest band of the training logs [Hz].
        data: Training logs.
        held_out: Logs that judged the result and shaped nothing.
        train: Errors on the training logs.
        nominal: Errors of the robot's own values on them, None when it has none.
        validation: Errors on logs that were not used, by label.
        cross_validation: Result of cross-validation as plain data.
        traces: Measured and predicted torque of training and validation logs, by label, thinned for plots.
        notes: What was decided on the way, in words.
        warnings: What a reader should know.
        eliminated: Parameters that were taken as zero because they are not essential, as plain data in the order in
            which they left; their deviation is the one they had then.
        reference: (10 n_links,) standard parameters of the links that load-dependent terms are linear around, or None.
        friction: Which friction was chosen and on what evidence, as plain data; None where the user gave the terms.
        friction_view: Friction in the model and in the training data, thinned for plots; None without friction.
        motion_view: Derivatives of a stretch of the first training log, raw and filtered.
        check: What the check of the training logs found, as plain data; None where it was left out.
        open_directions: (n, k) combinations of parameters that the data says nothing about; None if there are none.
        provenance: Command, files, options as given and versions, as plain data; None where nothing was recorded.
        version: Version of dynident.
    """

    base: BaseParameters
    beta: Array
    covariance: Array
    covariance_kind: str
    white_std: Array
    determined: Mask
    rank: int
    condition: float
    sigma: Array
    inflation: Array
    estimator: str
    estimator_options: Mapping[str, Any]
    signals: SignalOptions
    band: float
    data: tuple[LogRecord, ...]
    held_out: tuple[LogRecord, ...]
    train: TorqueErrors
    nominal: TorqueErrors | None = None
    validation: Mapping[str, TorqueErrors] = field(default_factory=dict)
    cross_validation: Mapping[str, Any] | None = None
    traces: Mapping[str, Trace] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    eliminated: tuple[Mapping[str, Any], ...] = ()
    reference: Array | None = None
    friction: Mapping[str, Any] | None = None
    friction_view: FrictionView | None = None
    motion_view: MotionView | None = None
    check: Mapping[str, Any] | None = None
    open_directions: Array | None = None
    provenance: Mapping[str, Any] | None = None
    version: str = ""

    def __post_init__(self) -> None:
        for name in ("beta", "covariance", "white_std", "sigma", "inflation"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.base.robot

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the base parameters."""
        return self.base.names

    @property
    def units(self) -> tuple[str, ...]:
        """Their units."""
        return self.base.units

    @property
    def std(self) -> Array:
        """(n,) standard deviations; infinite where the data says nothing."""
        return np.where(self.determined, np.sqrt(np.maximum(np.diag(self.covariance), 0.0)), np.inf)

    @property
    def relative_std(self) -> Array:
        """(n,) deviations as a share of the values; infinite at zero."""
        with np.errstate(divide="ignore"):
            return np.where(self.beta == 0.0, np.inf, self.std / np.abs(np.where(self.beta == 0.0, 1.0, self.beta)))

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Parameters the data cannot determine."""
        return tuple(name for name, known in zip(self.names, self.determined, strict=True) if not known)

    def __getitem__(self, name: str) -> float:
        """Value of a base parameter by name."""
        return float(self.beta[place_of(name, self.names, "base parameter")])

    def __repr__(self) -> str:
        """A line, not the numbers."""
        error = f"{100.0 * self.train.relative:.2f} % training error"
        return f"Estimate({self.robot.name}: {len(self.names)} base parameters, rank {self.rank}, {error})"

    @functools.cached_property
    def model(self) -> TorqueModel:
        """Standard parameters that predict the torque of the estimate; the dependent ones are zero in it."""
        chi = self.base.standard_values(self.beta, "regrouped zero")
        return TorqueModel(self.robot, self.base.terms, frozen(chi), self.reference)

    @functools.cached_property
    def usefulness(self) -> Usefulness:
        """Whether the model predicts most of the torque that it has not seen, and what was tried if it does not."""
        bands = [{"band": one.band, "reason": one.band_choice.get("reason", "")} for one in self.data]
        return usefulness(self.train, self.validation, self.cross_validation, bands)

    def rows(self) -> list[dict[str, Any]]:
        """The parameters as plain data, one mapping each; what is not known is None."""
        columns, categories = self.base.columns, self.base.categories
        result = []
        for i, (name, expression, index) in enumerate(
            zip(self.names, self.base.expressions, self.base.independent, strict=True)
        ):
            result.append(
                {
                    "name": name,
                    "value": float(self.beta[i]),
                    "std": _finite(self.std[i]),
                    "relative_std": _finite(self.relative_std[i]),
                    "white_std": _finite(self.white_std[i]),
                    "unit": columns[index].unit,
                    "category": categories[columns[index].name],
                    "determined": bool(self.determined[i]),
                    "expression": expression,
                }
            )
        return result

    def table(self) -> str:
        """The parameters as text: name, value, deviation, relative deviation, unit, category, expression."""
        head = ("parameter", "value", "std", "rel. std", "unit", "category", "stands for")
        lines = [head, *(_cells(row) for row in self.rows())]
        widths = [max(len(line[i]) for line in lines) for i in range(len(head) - 1)]
        right = (False, True, True, True, False, False)
        text = []
        for line in lines:
            cells = [
                cell.rjust(width) if flush else cell.ljust(width)
                for cell, width, flush in zip(line[:-1], widths, right, strict=True)
            ]
            text.append("  ".join([*cells, line[-1]]).rstrip())
        return "\n".join(text)

    def observe(self, log: LogSource, band: float | None = None, *, torque: bool = True) -> Observations:
        """A log filtered as for this estimate.

        Args:
            log: The log.
            band: Band [Hz]; default that of its motion, and at least that of the training.
            torque: Whether torque is wanted; without it, nothing but time and positions is looked at.
        """
        (log,) = as_logs(log)
        log = log if torque else PositionsOnly(log)
        found = observe(log, self.robot, replace(self.signals, band=band, speed="position"))
        wanted = max(found.band, self.band) if band is None else band
        return found.with_options(band=wanted)

    def predict(self, log: LogSource) -> Array:
        """Joint torque at the log's own stamps, from position and time only, (n_samples, n_joints)."""
        blocks = [tau for _, tau in predicted_blocks(self.model, self.observe(log, torque=False))]
        return np.ascontiguousarray(np.concatenate(blocks))

    @property
    def levels(self) -> Array:
        """(n_joints,) what predictions of each output deviate beyond their parameters' uncertainty [N·m or N].

        From cross-validation; where nothing could be left out, the residual of the training.
        """
        crossed = (self.cross_validation or {}).get("levels")
        return self.sigma if crossed is None else np.maximum(self.sigma, np.array(crossed, dtype=float))

    @on_one_thread
    def torque_band(self, log: LogSource, level: float = LEVEL) -> tuple[Array, Array]:
        """Lower and upper joint torque at the log's own stamps, (n_samples, n_joints) each, from position and time.

        Measured torque, low-passed at the band of the fit, lies between them for about this share of the time;
        `cross_validation["band_coverage"]` says what share it was on data left out.
        """
        width, observations = half_width(level), self.observe(log, torque=False)
        root = covariance_root(self.covariance)
        given = banded_blocks(self.model, self.base, root, self.levels, observations)
        blocks = [(tau - width * spread, tau + width * spread) for _, tau, spread in given]
        low, high = (np.ascontiguousarray(np.concatenate(parts)) for parts in zip(*blocks, strict=True))
        return low, high

    def save(self, path: str | Path) -> None:
        """Write `fit.yaml` and `fit.npz` into a folder, or to the path of a .yaml file; see `load_estimate`."""
        from dynident.estimate.storage import save

        save(self, path)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    std, relative = row["std"], row["relative_std"]
    return (
        row["name"],
        f"{row['value']:.5g}",
        "not known" if std is None else f"{std:.2g}",
        "" if relative is None else f"{100.0 * relative:.3g} %",
        row["unit"],
        row["category"],
        row["expression"],
    )
