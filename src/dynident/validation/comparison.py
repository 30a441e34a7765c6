"""`parameter_changes`: the parameters of several runs, aligned by name, and how far they are apart."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dynident.display import brief
from dynident.dynamics.terms import Coulomb
from dynident.errors import InputError
from dynident.estimate.covariance import half_width
from dynident.estimate.equivalent_friction import FrictionTorque, friction_torques
from dynident.estimate.fit import Fit
from dynident.estimate.records import LogRecord
from dynident.estimate.torque_errors import TorqueErrors, together
from dynident.identifiability.base import BaseParameters, column_scales
from dynident.logs.log import LogSource, as_logs
from dynident.validation.held_out import validate
from dynident.validation.thresholds import THRESHOLDS


@dataclass(frozen=True)
class ParameterChange:
    """A parameter in several runs; what a run does not have or know is None.

    Attributes:
        name: Of the parameter.
        unit: Of its values.
        values: Of each run.
        stds: Their standard deviations; None also where the data of a run says nothing.
        reference: Place of the first run that has it, which the others are compared with.
        differences: Value of each run minus that of the reference.
        deviations: The same over the standard deviation of the difference, sqrt(s_1^2 + s_2^2).
        alike: Whether it stands for the same sum of standard parameters in every run that has it.
    """

    name: str
    unit: str
    values: tuple[float | None, ...]
    stds: tuple[float | None, ...]
    reference: int
    differences: tuple[float | None, ...]
    deviations: tuple[float | None, ...]
    alike: bool

    @property
    def shared(self) -> bool:
        """Whether at least two runs have it."""
        return sum(value is not None for value in self.values) > 1

    @property
    def compared(self) -> int:
        """Runs whose difference from the reference can be assessed."""
        return sum(z is not None for z in self.deviations)

    @property
    def largest(self) -> float:
        """Largest distance from the reference in std of the difference; 0 where none is known."""
        return max((abs(z) for z in self.deviations if z is not None), default=0.0)

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        lists = ("values", "stds", "differences", "deviations")
        return asdict(self) | {name: list(getattr(self, name)) for name in lists}


def parameter_changes(fits: Sequence[Fit]) -> tuple[ParameterChange, ...]:
    """Every parameter of any run: those of the first in their order, then what others have besides."""
    rows = [{row["name"]: row for row in fit.rows()} for fit in fits]
    names = dict.fromkeys(name for own in rows for name in own)
    sums = [_sums(fit.base) for fit in fits]
    return tuple(
        _change(name, [own.get(name) for own in rows], _alike([own[name] for own in sums if name in own]))
        for name in names
    )


def _sums(base: BaseParameters) -> dict[str, dict[str, float]]:
    """What each parameter stands for: by name of the standard parameter, the share of its torque that it takes over."""
    scales = column_scales(base.robot, base.columns)
    shares = base.K * scales[list(base.independent), None] / scales
    names = [column.name for column in base.columns]
    return {name: dict(zip(names, row.tolist(), strict=True)) for name, row in zip(base.names, shares, strict=True)}


def _alike(sums: Sequence[dict[str, float]]) -> bool:
    """Whether all sums are the first but for rounding; how a coefficient is written does not count."""
    first, *others = sums
    return all(
        abs(first.get(name, 0.0) - other.get(name, 0.0)) <= THRESHOLDS.same_column_share
        for other in others
        for name in first | other
    )


def _change(name: str, rows: Sequence[dict[str, Any] | None], alike: bool) -> ParameterChange:
    place = next(i for i, row in enumerate(rows) if row is not None)
    first = rows[place]
    assert first is not None
    differences: list[float | None] = []
    deviations: list[float | None] = []
    for i, row in enumerate(rows):
        known = row is not None and i != place
        differences.append(row["value"] - first["value"] if row is not None and known else None)
        deviations.append(_deviations(first, row) if row is not None and known else None)
    return ParameterChange(
        name=name,
        unit=first["unit"],
        values=tuple(None if row is None else row["value"] for row in rows),
        stds=tuple(None if row is None or not row["determined"] else row["std"] for row in rows),
        reference=place,
        differences=tuple(differences),
        deviations=tuple(deviations),
        alike=alike,
    )


def _deviations(first: dict[str, Any], other: dict[str, Any]) -> float | None:
    """Distance in standard deviations of the difference; None where a run does not determine the parameter."""
    if not (first["determined"] and other["determined"]) or first["std"] is None or other["std"] is None:
        return None
    spread = math.hypot(first["std"], other["std"])
    # Without any standard deviation, as for parameters that were eliminated in both, there is nothing to measure with.
    return float((other["value"] - first["value"]) / spread) if spread > 0.0 else None


# ----------------------------------------------------------------------------------------------------------------------
# The two answers of one fit beside each other: parameters, and the model that predicts.

_LINKS = ("rigid", "Ia")


def answer_differences(fit: Fit) -> tuple[ParameterChange, ...]:
    """Where parameters and prediction of a fit differ by more than chance explains, the most certain first.

    Single coefficients of friction are not compared, for those that overlap trade against each other: what both answers
    have is friction as torque at velocities, and the base parameters of links and rotors that mean the same in both.
    Standard deviations of the difference are those of independent estimates, sqrt(s_1^2 + s_2^2); both come from the
    same logs, so that what is called different is.

    Returns:
        Values and standard deviations of the parameters first, of the prediction second.
    """
    if fit.one_answer:
        return ()
    bases, estimates = (fit.base, fit.predictive_base), (fit.estimate, fit.predictive)
    rows = [{row["name"]: row for row in estimate.rows()} for estimate in estimates]
    sums = [_sums(base) for base in bases]
    links = {base.names[i] for base in bases for i, j in enumerate(base.independent) if base.columns[j].term in _LINKS}
    shared = [name for name in rows[0] if name in rows[1] and name in links]
    found = [_change(name, [own[name] for own in rows], _alike([own[name] for own in sums])) for name in shared]
    found += [_friction_change(one) for one in (friction_torques(fit) if fit.friction_view is not None else ())]
    compared = [one for one in found if one.alike and one.compared]
    threshold = chance_threshold(len(compared))
    return tuple(sorted((one for one in compared if one.largest > threshold), key=lambda one: -one.largest))


def _friction_change(one: FrictionTorque) -> ParameterChange:
    answers = ((one.parameters, one.parameters_std), (one.predictive, one.predictive_std))
    rows = [{"value": x, "std": s, "unit": one.unit, "determined": math.isfinite(s)} for x, s in answers]
    return _change(one.name, rows, True)


def difference_note(fit: Fit) -> str:
    """The same in a sentence; empty where the two agree, or are one."""
    found = answer_differences(fit)
    if not found:
        return ""
    named = [f"{one.name} ({one.values[0]:.3g} against {one.values[1]:.3g} {one.unit})" for one in found[:_MOST_NAMED]]
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    return f"{DIFFERENCE} by more than their standard deviations: {', '.join(named)}{more}"


_MOST_NAMED = 3  # differences that a sentence names
DIFFERENCE = "parameters and prediction differ"  # what the note of a fit begins with


def chance_threshold(pairs: int) -> float:
    """Standard deviations of a difference that chance alone exceeds, in any of so many pairs, once in twenty times."""
    return half_width(1.0 - THRESHOLDS.max_chance / max(pairs, 1))


# ----------------------------------------------------------------------------------------------------------------------
# `compare_fits`: runs side by side; what differs in their errors, parameters, data and options.
#
# Nothing that can be compared is refused: parameters and joints go by their names, also between different robots.

_Key = tuple[str, float, float]  # of the part of a file that a log is: hash, start, duration


@dataclass(frozen=True)
class ComparedLog:
    """A log of several runs: what each did with it, and its error where every run was evaluated with it.

    Attributes:
        label: Name of the log.
        source: Its file.
        samples: Rows; zero for a log that no run knows.
        roles: Of each run: "training", "held out", or "" where it was not used.
        errors: Of each run; empty unless every run was evaluated with it.
        seen: Runs, by place, that were trained with it, for which its error proves nothing.
    """

    label: str
    source: str
    samples: int = 0
    roles: tuple[str, ...] = ()
    errors: tuple[TorqueErrors, ...] = ()
    seen: tuple[int, ...] = ()


@brief
@dataclass(frozen=True)
class FitComparison:
    """Runs side by side; the first is what the others are compared with.

    Attributes:
        names: Of the runs.
        fits: The runs.
        parameters: Every parameter of any run, with the differences.
        threshold: Standard deviations of the difference beyond which a parameter changed; chance alone carries one of
            all that are compared so far in one comparison of twenty.
        evaluated: Logs that every run was evaluated with.
        logs: Every log of any run.
        options: What shaped each run, by name; one value per run.
        remarks: What a reader should know, in words.
    """

    names: tuple[str, ...]
    fits: tuple[Fit, ...]
    parameters: tuple[ParameterChange, ...]
    threshold: float
    evaluated: tuple[ComparedLog, ...]
    logs: tuple[ComparedLog, ...]
    options: Mapping[str, tuple[Any, ...]]
    remarks: tuple[str, ...]

    @property
    def common(self) -> tuple[ParameterChange, ...]:
        """Parameters that at least two runs have."""
        return tuple(one for one in self.parameters if one.shared)

    @property
    def changed(self) -> tuple[ParameterChange, ...]:
        """Parameters that changed by more than chance explains, the most certain first; other sums are no change."""
        found = [one for one in self.parameters if one.alike and one.largest > self.threshold]
        return tuple(sorted(found, key=lambda one: -one.largest))

    @property
    def differing(self) -> dict[str, tuple[Any, ...]]:
        """Options that are not the same in all runs."""
        return {name: values for name, values in self.options.items() if any(one != values[0] for one in values)}

    @property
    def joints(self) -> tuple[str, ...]:
        """Moving joints of any run, each once."""
        return tuple(dict.fromkeys(name for fit in self.fits for name in fit.robot.joint_names))

    @property
    def errors(self) -> tuple[TorqueErrors, ...]:
        """Errors of each run on all logs that every run was evaluated with; empty without such logs."""
        return tuple(map(together, zip(*(log.errors for log in self.evaluated), strict=True)))

    @property
    def one_band(self) -> bool:
        """Whether errors on the common logs are in the same band, without which they say little beside each other."""
        bands = [one.band for log in self.evaluated for one in log.errors]
        return not bands or max(bands) <= THRESHOLDS.same_band_ratio * min(bands)

    def as_dict(self) -> dict[str, Any]:
        """Plain data; relative errors are fractions."""
        return {
            "fits": [_fit_dict(name, fit) for name, fit in zip(self.names, self.fits, strict=True)],
            "evaluated": [
                {
                    "label": log.label,
                    "source": log.source,
                    "errors": [{"joints": list(one.joints), **one.as_dict()} for one in log.errors],
                    "seen_in_training": [self.names[place] for place in log.seen],
                }
                for log in self.evaluated
            ],
            "errors": [one.as_dict() for one in self.errors],
            "threshold": self.threshold,
            "changed": [one.name for one in self.changed],
            "parameters": [one.as_dict() for one in self.parameters],
            "logs": [
                {"label": log.label, "source": log.source, "samples": log.samples, "roles": list(log.roles)}
                for log in self.logs
            ],
            "differing_options": {name: list(values) for name, values in self.differing.items()},
            "remarks": list(self.remarks),
        }


def compare_fits(
    fits: Sequence[Fit],
    *,
    names: Sequence[str] = (),
    logs: LogSource | Sequence[LogSource] = (),
) -> FitComparison:
    """Two runs or more side by side.

    Standard deviations of a difference are those of independent runs, sqrt(s_1^2 + s_2^2). Where runs share training
    data they are larger than the true ones: what is called changed then did change, what is not may have.

    Args:
        fits: The runs; the first is what the others are compared with.
        names: Of the runs; default A, B, ..
        logs: Logs to evaluate all runs with, in the widest of their bands; default the logs that all of them held out.

    Raises:
        InputError: For fewer than two runs, names that are not one for each, or a log that a run cannot predict.
    """
    given = tuple(fits)
    if len(given) < 2 or not all(isinstance(fit, Fit) for fit in given):
        raise InputError("compare_fits needs two estimates or more; read them with di.load_fit")
    called = tuple(names) or tuple(letters(len(given)))
    if len(called) != len(given) or len(set(called)) != len(called):
        raise InputError(f"names are {', '.join(called)}; expected {len(given)} different ones, one for each run")
    parameters = parameter_changes(given)
    pairs = sum(one.compared for one in parameters)
    assessing = as_logs(logs) if logs else []
    evaluated = _evaluate_logs(given, assessing) if assessing else _held_out_by_all(given)
    options = _options(given)
    return FitComparison(
        names=called,
        fits=given,
        parameters=parameters,
        threshold=chance_threshold(pairs),
        evaluated=evaluated,
        logs=_logs_used(given),
        options=options,
        remarks=tuple(_remarks(given, called, parameters, evaluated)),
    )


def letters(n: int) -> list[str]:
    """A, B, .. Z, then A2, B2, .."""
    return [chr(ord("A") + i % 26) + ("" if i < 26 else str(1 + i // 26)) for i in range(n)]


def _key(record: LogRecord) -> _Key:
    return record.digest, round(record.start, 6), round(record.duration, 6)


def _held_out_by_all(fits: Sequence[Fit]) -> tuple[ComparedLog, ...]:
    """The logs that every run held out: the same part of the same file."""
    known = [{_key(record): fit.validation[record.label] for record in fit.held_out} for fit in fits]
    return tuple(
        ComparedLog(record.label, record.source, errors=tuple(one[_key(record)] for one in known))
        for record in fits[0].held_out
        if all(_key(record) in one for one in known)
    )


def _evaluate_logs(fits: Sequence[Fit], logs: Sequence[LogSource]) -> tuple[ComparedLog, ...]:
    """Every run on the same logs, in the same band."""
    band = max(fit.band for fit in fits)
    found = [validate(fit, logs, band=band) for fit in fits]
    return tuple(
        ComparedLog(
            log.label,
            log.source,
            errors=tuple(one.comparisons[place].errors[0] for one in found),
            seen=tuple(run for run, one in enumerate(found) if log.label in one.seen),
        )
        for place, log in enumerate(logs)
    )


def _logs_used(fits: Sequence[Fit]) -> tuple[ComparedLog, ...]:
    """Every log, with its role in each run."""
    records: dict[_Key, LogRecord] = {}
    roles: dict[_Key, list[str]] = {}
    for place, fit in enumerate(fits):
        for role, own in (("training", fit.data), ("held out", fit.held_out)):
            for record in own:
                records.setdefault(_key(record), record)
                roles.setdefault(_key(record), [""] * len(fits))[place] = role
    return tuple(
        ComparedLog(record.label, record.source, record.n_samples, tuple(roles[key])) for key, record in records.items()
    )


def _options(fits: Sequence[Fit]) -> dict[str, tuple[Any, ...]]:
    """What shaped each run; None where a run does not know an option."""
    every = [_options_of(fit) for fit in fits]
    return {name: tuple(one.get(name) for one in every) for name in dict.fromkeys(n for one in every for n in one)}


def _term_keys(base: BaseParameters) -> list[str]:
    """The terms of a model; widths of dry friction that the data found make no other model."""
    return ["Fc" if isinstance(term, Coulomb) and term.widths else term.key for term in base.terms]


def _options_of(fit: Fit) -> dict[str, Any]:
    known = fit.provenance
    given = {} if known is None else known.options
    signals = dataclasses.asdict(fit.signals)
    return {
        "robot": fit.robot.name,
        "robot file": fit.robot.source,
        "locked": dict(fit.robot.locked),
        "terms": _term_keys(fit.base),
        **({} if fit.one_answer else {"terms of the prediction": _term_keys(fit.predictive_base)}),
        "friction": given.get("friction", "as in terms" if fit.selection is None else "auto"),
        "estimator": fit.estimator.name,
        **fit.estimator.options,
        **signals,
        "band": f"{fit.band:.3g} Hz" + (", from the motion" if signals["band"] is None else ""),
        "delay": f"{1e3 * fit.signals.delay:.4g} ms",
        "essential": given.get("essential"),
        **({} if fit.diagnosis is None else {"verdict of the check": fit.diagnosis.severity}),
        **({"dynident": fit.version} if known is None or not known.versions else known.versions),
    }


def _remarks(
    fits: Sequence[Fit],
    names: Sequence[str],
    parameters: Sequence[ParameterChange],
    evaluated: Sequence[ComparedLog],
) -> list[str]:
    """What a reader should know before trusting a difference."""
    found = []
    if len({fit.robot.fingerprint for fit in fits}) > 1:
        robots = ", ".join(f"{name} {fit.robot.name}" for name, fit in zip(names, fits, strict=True))
        found.append(f"the robots differ ({robots}); joints and parameters are compared by name")
    if len({tuple(_term_keys(fit.base)) for fit in fits}) > 1:
        found.append("the terms of the models differ; what one model leaves out, its other parameters take over")
    others = [one.name for one in parameters if one.shared and not one.alike]
    if others:
        shown = ", ".join(others[:8]) + (f" and {len(others) - 8} more" if len(others) > 8 else "")
        found.append(
            f"the same name stands for different sums: {shown}; their differences are not changes of the robot"
        )
    keys = [{record.digest for record in fit.data} for fit in fits]
    if any(keys[0] & other for other in keys[1:]):
        found.append(
            "the runs share training data; standard deviations of the difference are taken as of independent runs and "
            "are then too large: what changed did change, what agrees may still differ"
        )
    bands = [max(one.band for one in own) for own in zip(*(log.errors for log in evaluated), strict=True)]
    if bands and max(bands) > THRESHOLDS.same_band_ratio * min(bands):
        listed = ", ".join(f"{name} {band:.3g} Hz" for name, band in zip(names, bands, strict=True))
        found.append(
            f"errors on the common logs are in different bands ({listed}), and a narrower band has smaller errors: "
            "give the logs themselves (--validation LOG.., logs=) to evaluate all runs in one band"
        )
    for log in evaluated:
        if log.seen:
            runs = ", ".join(names[place] for place in log.seen)
            found.append(f"{log.label} also served for training {runs}; its error there proves nothing")
    return found


def _fit_dict(name: str, fit: Fit) -> dict[str, Any]:
    crossed = fit.cross_validation
    held_out = fit.errors.unseen
    return {
        "name": name,
        "robot": fit.robot.name,
        "parameters": len(fit.names),
        "rank": fit.rank,
        "condition": fit.condition if math.isfinite(fit.condition) else None,
        "undetermined": list(fit.undetermined),
        "train": fit.train.as_dict(),
        "left_out": None if crossed is None else crossed.mean,
        "held_out": None if held_out is None else held_out.as_dict(),
        "samples": int(sum(record.n_samples for record in fit.data)),
        "duration": float(np.sum([record.duration for record in fit.data])),
        "command": fit.command,
        "version": fit.version,
    }
