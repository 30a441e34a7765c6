"""Typed records that a fit is made of: logs, estimator, errors, selection of friction, provenance.

Each has `as_dict`, which is its place in a stored fit and in JSON answers, and `from_dict`, which reads that again.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from dynident.arrays import Array, record
from dynident.display import brief, html_table
from dynident.errors import DynidentError
from dynident.estimate.thresholds import THRESHOLDS
from dynident.estimate.torque_errors import TorqueErrors, together
from dynident.information.parameter_estimate import Plain
from dynident.signals.bandwidth import BandChoice
from dynident.signals.observations import Observations


@brief
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
        band_choice: The band that motion and noise ask for, why, and what was tried; None in fits of early versions.
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
    band_choice: BandChoice | None = None

    @staticmethod
    def of(observations: Observations) -> LogRecord:
        """What to remember of a log."""
        log, found, choice = observations.log, observations.survey, observations.choice
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
            band_choice=BandChoice(choice.band, choice.reason, choice.candidates[: len(choice.errors)], choice.errors),
        )

    @property
    def band_reason(self) -> str:
        """Why the band is what it is; empty where that is not known."""
        return "" if self.band_choice is None else self.band_choice.reason

    def overlaps(self, observations: Observations) -> bool:
        """Whether a log shows the same samples, in part or in whole."""
        found = observations.survey
        shared = found.start < self.start + self.duration and self.start < found.stop
        return shared and observations.log.digest == self.digest

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**plain, "band_choice": {} if self.band_choice is None else self.band_choice.as_dict()}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> LogRecord:
        """The record of `as_dict`."""
        choice = data.get("band_choice")
        return LogRecord(**{**data, "band_choice": _band_choice(choice) if choice else None})


def _band_choice(data: Mapping[str, Any]) -> BandChoice:
    tried = data["tried"]
    bands, errors = (tuple(float(one[key]) for one in tried) for key in ("band", "relative_error"))
    return BandChoice(float(data["band"]), str(data["reason"]), bands, errors)


@record
class EstimatorRecord:
    """The method.

    Attributes:
        name: Among the options of `identify`, or that of its class.
        options: Its options, as plain data.
    """

    name: str
    options: Mapping[str, Plain]

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"name": self.name, **self.options}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> EstimatorRecord:
        """The record of `as_dict`."""
        return EstimatorRecord(data["name"], {name: value for name, value in data.items() if name != "name"})


@record
class CrossValidation:
    """Result of leaving data out.

    Attributes:
        over: "logs" or "blocks".
        labels: What was held out in each fold.
        errors: (n_folds, n_channels) relative error on what was held out; NaN for a channel without torque there. Where
            errors are pooled, they are over the torque of all folds: one without torque then has no say.
        totals: (n_folds,) over all channels.
        levels: (n_channels,) what predictions deviate beyond their parameters' uncertainty: with this level, 90 % of
            what was held out lies in its band; where rows are not at hand, RMS of what was held out [N·m or N]. None in
            fits of early versions.
        band_coverage: (n_channels,) share of what was held out within 90 % bands whose level the other folds gave; None
            where rows are not at hand or there is but one fold.
        coverage: Share of parameters whose values from a fold's data and from the rest agree within two standard
            deviations of their difference; 95 % if these are right. None where a fold alone determines no parameter.
        pooled: Relative error of all folds together; None where folds count alike.
        interval_coverage: (n_channels,) share of what was held out within two standard deviations of its prediction, if
            noise were the residual of the training; 95 % if it were. None where rows are not at hand.
    """

    over: str
    labels: tuple[str, ...]
    errors: Array
    totals: Array
    levels: Array | None
    band_coverage: Array | None
    coverage: float | None
    pooled: float | None = None
    interval_coverage: Array | None = None

    @property
    def mean(self) -> float:
        """Relative error over the folds: of all together, or the mean."""
        return float(self.totals.mean()) if self.pooled is None else self.pooled

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        covered = self.interval_coverage
        return {
            "over": self.over,
            "mean": self.mean,
            "folds": [
                {"left_out": label, "relative_error": float(total), "per_channel": _finite_or_none(own)}
                for label, total, own in zip(self.labels, self.totals, self.errors, strict=True)
            ],
            "levels": None if self.levels is None else [float(x) for x in self.levels],
            "band_coverage": None if self.band_coverage is None else _finite_or_none(self.band_coverage),
            "coverage": self.coverage,
            **({} if self.pooled is None else {"pooled": self.pooled}),
            **({} if covered is None else {"interval_coverage": _finite_or_none(covered)}),
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> CrossValidation:
        """The record of `as_dict`; early versions wrote no levels and no coverage."""
        folds = data["folds"]
        numbers = {name: data.get(name) for name in ("levels", "band_coverage", "interval_coverage")}
        return CrossValidation(
            over=str(data["over"]),
            labels=tuple(str(fold["left_out"]) for fold in folds),
            errors=np.array([fold["per_channel"] for fold in folds], dtype=float),
            totals=np.array([fold["relative_error"] for fold in folds], dtype=float),
            coverage=data.get("coverage"),
            pooled=data.get("pooled"),
            **{name: None if own is None else np.array(own, dtype=float) for name, own in numbers.items()},
        )


def _finite_or_none(shares: Array) -> list[float | None]:
    return [float(share) if np.isfinite(share) else None for share in shares]


@record
class FitErrors:
    """How well a fit predicts torque.

    Attributes:
        train: Errors on the training logs.
        nominal: Errors of the robot's own values on them; None when it has none.
        held_out: Errors on logs that shaped nothing, by label.
        cross_validation: Parts of the training data held out in turn; None when there was too little.
    """

    train: TorqueErrors
    nominal: TorqueErrors | None = None
    held_out: Mapping[str, TorqueErrors] = field(default_factory=dict)
    cross_validation: CrossValidation | None = None

    @property
    def unseen(self) -> TorqueErrors | None:
        """Errors on all held-out logs together; None without any."""
        return together(self.held_out.values()) if self.held_out else None


@dataclass(frozen=True)
class Elimination:
    """A parameter that left.

    Attributes:
        name: Base parameter.
        unit: Its unit.
        value: Its value just before.
        std: Its standard deviation just before; infinite when the data did not determine it.
        residual: Share by which the weighted residual of all rows grew because of it; NaN where rows are not known.
        total: The same, for everything that has left so far.
    """

    name: str
    unit: str
    value: float
    std: float
    residual: float
    total: float

    @property
    def relative_std(self) -> float:
        """Deviation as a share of the value, infinite at zero."""
        return self.std / abs(self.value) if self.value else float("inf")

    @property
    def reason(self) -> str:
        """Why it left, in words."""
        if not np.isfinite(self.std):
            return "not determined by the data"
        return f"deviation of {100.0 * self.relative_std:.3g} %"

    def as_dict(self) -> dict[str, Any]:
        """Plain data; what is not known is None."""
        numbers = {name: getattr(self, name) for name in ("value", "std", "relative_std", "residual", "total")}
        known = {name: float(x) if np.isfinite(x) else None for name, x in numbers.items()}
        return {"name": self.name, "unit": self.unit, **known, "reason": self.reason}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Elimination:
        """The record of `as_dict`."""
        missing = {"std": math.inf, "residual": math.nan, "total": math.nan, "value": math.nan}
        numbers = {name: lost if data[name] is None else float(data[name]) for name, lost in missing.items()}
        return Elimination(name=str(data["name"]), unit=str(data["unit"]), **numbers)


@dataclass(frozen=True)
class GroupEvidence:
    """What the data says about a group of columns under a common prior.

    Attributes:
        group: A term with its numbers, or a kind of basic parameters.
        scale: What its coefficients typically make of the torque of their joint, as a share.
        determined: How many of its coefficients the data determines.
        n_columns: How many there are.
    """

    group: str
    scale: float
    determined: float
    n_columns: int

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return dict(vars(self))


@record
class TermSelection:
    """Which friction a model has, and on what evidence.

    Attributes:
        terms: Keys of the terms beside the basic ones.
        side: Where torque is taken to be measured: "motor", "sensor" or "unknown".
        reason: Why these terms, in words.
        groups: One per group that was under a prior; empty where terms were given.
        folds: What was held out in turn.
        errors: Relative error on the folds of models by name, such as basic, rich and averaged; None without folds.
        weight: Share of the fit with all these terms in its average with the basic one; None without an average.
    """

    terms: tuple[str, ...]
    side: str
    reason: str
    groups: tuple[GroupEvidence, ...] = ()
    folds: tuple[str, ...] = ()
    errors: Mapping[str, float] | None = None
    weight: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "terms": list(self.terms),
            "side": self.side,
            "reason": self.reason,
            "groups": [group.as_dict() for group in self.groups],
            "folds": list(self.folds),
            "errors": None if self.errors is None else dict(self.errors),
            **({} if self.weight is None else {"weight": self.weight}),
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> TermSelection:
        """The record of `as_dict`; what early versions said of groups was about a search that is no more."""
        weight = data.get("weight")
        return TermSelection(
            terms=tuple(map(str, data["terms"])),
            side=str(data["side"]),
            reason=str(data["reason"]),
            groups=tuple(GroupEvidence(**one) for one in data["groups"] if "scale" in one),
            folds=tuple(map(str, data["folds"])),
            errors=None if data["errors"] is None else {name: float(x) for name, x in data["errors"].items()},
            weight=None if weight is None else float(weight),
        )


@dataclass(frozen=True)
class FileRecord:
    """A file besides the logs that a fit was made from.

    Attributes:
        what: Such as "robot" or "columns".
        path: As given.
        sha256: Hash of its content; empty where there is no file, as for a bundled robot.
    """

    what: str
    path: str
    sha256: str

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return dict(vars(self))


@record
class Provenance:
    """What a fit remembers of its making, besides the hashes of its logs.

    Attributes:
        versions: Of the software that numbers depend on.
        options: Options of `identify` that differ from their defaults, as plain data.
        command: As it can be typed again; empty where no command made the fit.
        files: Files besides the logs; empty where no command made the fit.
    """

    versions: Mapping[str, str]
    options: Mapping[str, Plain]
    command: str = ""
    files: tuple[FileRecord, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        made = {"command": self.command, "files": [file.as_dict() for file in self.files]}
        made = made if self.command or self.files else {}
        return {**made, "versions": dict(self.versions), "options": dict(self.options)}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Provenance:
        """The record of `as_dict`."""
        return Provenance(
            versions=dict(data.get("versions", {})),
            options=dict(data.get("options", {})),
            command=str(data.get("command", "")),
            files=tuple(FileRecord(**file) for file in data.get("files", ())),
        )


# ----------------------------------------------------------------------------------------------------------------------
# `Diagnosis`: the diagnostics of logs, one by one; a fit keeps that of its training logs.

Severity = Literal["ok", "warn", "stop"]
_SEVERITIES: tuple[Severity, ...] = ("ok", "warn", "stop")


@brief
@dataclass(frozen=True)
class Diagnostic:
    """One statement about logs.

    Attributes:
        name: What was examined, such as "sampling" or "units".
        severity: "ok"; "warn" if the result may suffer; "stop" if it would be wrong.
        message: What was observed, why it matters and what to do, in one line.
        fix: Keys of an overlay YAML that correct it, such as {"columns": {"q1": {"column": "q1", "unit": "deg"}}}.
        log: Label of the log it is about; empty for all logs together.
    """

    name: str
    severity: Severity
    message: str
    fix: Mapping[str, Any] = field(default_factory=dict)
    log: str = ""

    @property
    def verdict(self) -> Severity:
        """The severity, by its name of before."""
        warnings.warn("Diagnostic.verdict is now severity and will be gone in 0.6", DeprecationWarning, stacklevel=2)
        return self.severity

    def as_dict(self) -> dict[str, Any]:
        """Plain data; its key for the severity is `verdict`."""
        found: dict[str, Any] = {"name": self.name, "verdict": self.severity, "message": self.message}
        if self.log:
            found["log"] = self.log
        if self.fix:
            found["fix"] = dict(self.fix)
        return found

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Diagnostic:
        """The record of `as_dict`."""
        severity, rest = data["verdict"], {key: value for key, value in data.items() if key != "verdict"}
        if severity not in _SEVERITIES:
            raise ValueError("a verdict of the check is none of ok, warn, stop")
        return Diagnostic(severity=severity, **rest)


class DiagnosisError(DynidentError):
    """Logs that are not fit to identify a robot from.

    Attributes:
        diagnosis: All diagnostics.
    """

    def __init__(self, message: str, diagnosis: Diagnosis) -> None:
        super().__init__(message)
        self.diagnosis = diagnosis


@brief
@dataclass(frozen=True)
class Diagnosis:
    """The diagnostics of logs.

    Attributes:
        diagnostics: In the order in which a reader wants them.
        logs: Labels of the logs.
    """

    diagnostics: tuple[Diagnostic, ...]
    logs: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        rows = [(one.severity, one.name, one.log, one.message) for one in self.diagnostics]
        return html_table(("severity", "diagnostic", "log", "message"), rows, f"Log diagnostics: {self.severity}")

    @property
    def severity(self) -> Severity:
        """The worst of all diagnostics."""
        return max((one.severity for one in self.diagnostics), key=_SEVERITIES.index, default="ok")

    @property
    def verdict(self) -> Severity:
        """The severity, by its name of before."""
        warnings.warn("Diagnosis.verdict is now severity and will be gone in 0.6", DeprecationWarning, stacklevel=2)
        return self.severity

    @property
    def findings(self) -> tuple[Diagnostic, ...]:
        """The diagnostics, by their name of before."""
        warnings.warn("Diagnosis.findings is now diagnostics and will be gone in 0.6", DeprecationWarning, stacklevel=2)
        return self.diagnostics

    def of(self, severity: Severity) -> tuple[Diagnostic, ...]:
        """The diagnostics of this severity."""
        return tuple(one for one in self.diagnostics if one.severity == severity)

    @property
    def fix(self) -> Mapping[str, Any]:
        """All fixes as the keys of one overlay; what is wrong in some of the logs only is no part of it."""
        merged: dict[str, Any] = {}
        for one in self.diagnostics:
            if one.log and any(self._lacks(one, log) for log in self.logs):
                continue
            for key, value in one.fix.items():
                merged[key] = {**merged.get(key, {}), **value} if isinstance(value, Mapping) else value
        return merged

    def _lacks(self, one: Diagnostic, log: str) -> bool:
        """Whether a log does without the fix of a diagnostic."""
        return not any(other.log == log and other.fix == one.fix for other in self.diagnostics)

    def error(self) -> DiagnosisError:
        """The error for logs of which a diagnostic stops."""
        worst, *others = self.of("stop")
        more = f" (and {len(others)} more)" if others else ""
        where = f"{worst.log}: " if worst.log else ""
        remedy = (
            "dynident check shows all and writes an overlay that corrects what can be; --check=warn goes on regardless"
        )
        return DiagnosisError(f"the logs are not fit for identification: {where}{worst.message}{more}; {remedy}", self)

    def as_dict(self) -> dict[str, Any]:
        """Plain data: verdict, items, and the overlay that corrects what can be."""
        found: dict[str, Any] = {"verdict": self.severity, "items": [one.as_dict() for one in self.diagnostics]}
        return {**found, "fix": dict(self.fix)} if self.fix else found

    @staticmethod
    def from_dict(data: Mapping[str, Any], logs: Sequence[str]) -> Diagnosis:
        """The record of `as_dict`, which stands beside the labels of the logs."""
        return Diagnosis(tuple(map(Diagnostic.from_dict, data["items"])), tuple(logs))


def percent(share: float) -> str:
    """A share in percent, as messages show it: 0.0534 is 5.3 %."""
    return f"{100.0 * share:.2g} %" if share < 0.995 else f"{100.0 * share:.0f} %"


# ----------------------------------------------------------------------------------------------------------------------
# Whether a model is of any use: whether it predicts most of the held-out torque.


@dataclass(frozen=True)
class Usefulness:
    """An assessment on data that a model was not made from, where there is any.

    Attributes:
        useful: Whether the model predicts most of the torque, and more of it than a constant for each joint.
        error: Relative error it was evaluated by; left out or held out, of the training only where there is no other.
        constant: What constants leave of that torque.
        reason: Why it is of no use, and the bands that were tried; empty for a useful one.
    """

    useful: bool
    error: float
    constant: float
    reason: str


def usefulness(errors: FitErrors, bands: Sequence[tuple[float, str]]) -> Usefulness:
    """Assess a model by its errors.

    Args:
        errors: On training, held-out and held-out data.
        bands: What was tried for each training log: band [Hz] and reason.
    """
    chosen = errors.unseen or errors.train
    error, constant = chosen.relative, chosen.constant
    if not errors.held_out and errors.cross_validation is not None:
        error = errors.cross_validation.mean
    reasons = []
    if error >= THRESHOLDS.max_useful_error:
        reasons.append(f"misses {100.0 * error:.0f} % of the torque")
    if error > constant:
        reasons.append(f"a constant for each joint misses {100.0 * constant:.0f} %")
    if not reasons:
        return Usefulness(True, error, constant, "")
    tried = dict.fromkeys(_band_words(one) for one in bands)
    return Usefulness(False, error, constant, f"{', '.join(reasons)}; tried: {', '.join(tried) or 'one band'}")


def _band_words(band: tuple[float, str]) -> str:
    width, reason = band
    return f"band {width:.3g} Hz ({reason})" if reason else f"band {width:.3g} Hz"
