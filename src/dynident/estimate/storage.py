"""Fits on disk: a YAML file for people and programs, and an .npz of the large arrays beside it; never pickle."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from dynident import limits
from dynident.arrays import Array, frozen
from dynident.deprecated import current_names
from dynident.dynamics.terms import all_columns, stored_terms
from dynident.errors import DynidentError, RobotFileError
from dynident.estimate.fit import Fit
from dynident.estimate.friction_levels import FrictionLevels
from dynident.estimate.friction_view import FrictionView
from dynident.estimate.records import (
    CrossValidation,
    Diagnosis,
    Elimination,
    EstimatorRecord,
    FitErrors,
    LogRecord,
    Provenance,
    TermSelection,
)
from dynident.estimate.torque_errors import TorqueErrors
from dynident.files import settled, write_together
from dynident.identifiability.base import BaseParameters
from dynident.information.parameter_estimate import ParameterEstimate, SolveRecord
from dynident.readers import reader, reason_of
from dynident.robot.model import Robot
from dynident.robot.storage import robot_from_data, robot_to_data, yaml_text
from dynident.schema import parse_record, quote, read_text
from dynident.sealed import read_sealed, sealed_archive
from dynident.signals.observations import SignalOptions

FORMAT = "dynident fit 2"
_READABLE = ("dynident fit 1", FORMAT)
_FILE = "fit.yaml"
_ARRAYS = "dynident fit arrays"  # what the seal of the .npz calls them
_PREDICTIVE = "predictive_"  # begins the names of the arrays of the estimate that predicts
_SOLVE_ARRAYS = ("singular_values", "weights", "determined", "channels", "warnings", "numbers")


class FitFileError(DynidentError):
    """A file that does not hold a fit."""


def fit_path(path: str | Path) -> Path:
    """The YAML file of a fit, given as the file itself or as the folder that holds fit.yaml."""
    given = Path(path)
    return given if given.suffix.lower() in (".yaml", ".yml") else given / _FILE


def save(fit: Fit, path: str | Path) -> None:
    """Write a fit; a folder is created when it does not exist."""
    write_together(fit_path(path).parent, fit_files(fit, path))


def fit_files(fit: Fit, path: str | Path) -> dict[str, bytes]:
    """The files of a fit by their names, the YAML file first.

    Args:
        fit: The fit.
        path: Where they are to be: the YAML file or its folder.
    """
    target = fit_path(path)
    text = _text(fit, target)
    arrays = _estimate_arrays(fit.estimate, fit.base)
    if not fit.one_answer:
        arrays |= _estimate_arrays(fit.predictive, fit.predictive_base, _PREDICTIVE)
    if fit.friction_view is not None:
        arrays |= fit.friction_view.stored()
    arrays["text"] = np.frombuffer(hashlib.sha256(text.encode()).digest(), dtype=np.uint8)
    return {target.name: text.encode(), target.with_suffix(".npz").name: sealed_archive(_ARRAYS, arrays)}


def _text(fit: Fit, target: Path) -> str:
    own, file = _estimate_data(fit.estimate, fit.base), robot_file(fit.robot, target)
    data: dict[str, Any] = {
        "format": FORMAT,
        "dynident": fit.version,
        "name": fit.robot.name,
        "terms": own.pop("terms"),
        "estimator": fit.estimator.as_dict(),
        "signals": _signals(fit.signals),
        "band": fit.band,
        **own,
        "data": [record.as_dict() for record in fit.data],
        "held_out": [record.as_dict() for record in fit.held_out],
        "train": _errors(fit.train),
        "nominal": None if fit.nominal is None else _errors(fit.nominal),
        "validation": {label: _errors(errors) for label, errors in fit.validation.items()},
        "cross_validation": None if fit.cross_validation is None else fit.cross_validation.as_dict(),
        "traces": [record.label for record in (*fit.data, *fit.held_out)],
        "notes": list(fit.notes),
        "warnings": list(fit.warnings),
        **({} if fit.one_answer else {"prediction": _estimate_data(fit.predictive, fit.predictive_base)}),
        **({} if fit.selection is None else {"friction": fit.selection.as_dict()}),
        **({} if fit.friction_levels is None else {"friction_levels": fit.friction_levels.as_dict()}),
        **({} if fit.diagnosis is None else {"check": fit.diagnosis.as_dict()}),
        **({} if fit.provenance is None else {"provenance": fit.provenance.as_dict()}),
        **({"eliminated": [one.as_dict() for one in fit.eliminated]} if fit.eliminated else {}),
        **({} if file is None else {"robot_file": file}),
        "robot": robot_to_data(fit.robot),
    }
    return f"# Identified with dynident. The arrays (covariance, ..) are in the .npz beside it.\n{yaml_text(data)}"


def _signals(signals: SignalOptions) -> dict[str, Any]:
    """How logs were filtered; what few fits have is there where it was asked for."""
    plain = SignalOptions()
    return {
        name: value
        for name, value in dataclasses.asdict(signals).items()
        if name not in ("filter", "decimation") or value != getattr(plain, name)
    }


def robot_file(robot: Robot, target: Path) -> str | None:
    """The file the robot was read from as seen from the fit's folder, so that both can move; None without a file."""
    file = Path(robot.source)
    return os.path.relpath(file.resolve(), target.parent.resolve()) if robot.source and file.is_file() else None


def found_again(robot: Robot, data: Mapping[str, Any], source: str) -> Robot:
    """The robot with a source that holds in whatever folder the fit is read, where its file is still there."""
    stored = data.get("robot_file")  # fits of older versions have none
    file = (Path(source).parent / str(stored)).resolve()
    if stored is None or not file.is_file() or Path(robot.source).resolve() == file:
        return robot
    return dataclasses.replace(robot, source=str(file))


def _without_expression(row: Mapping[str, Any]) -> dict[str, Any]:
    """A parameter; its expression last, where a long one does not hide the numbers."""
    short = {key: value for key, value in row.items() if key != "expression"}
    return {**short, "stands_for": row["expression"]}


def _errors(errors: TorqueErrors) -> dict[str, Any]:
    return {**errors.as_dict(), "sums": errors.stored()}


@reader("fit", FitFileError)
def load_fit(path: str | Path) -> Fit:
    """Read what `Fit.save` wrote.

    Raises:
        FitFileError: Naming the file and what is wrong with it.
    """
    file = settled(fit_path(path))
    try:
        if Path(path).is_file() and file != Path(path):
            raise FitFileError(f"{path}: is no fit; give the fit.yaml that identify wrote, or its folder")
        if not file.exists():
            raise FitFileError(f"{file}: no such file; give the fit.yaml that identify wrote, or its folder")
        text = read_text(file, limits.LIMITS.record_bytes, "a fit")
        data = parse_record(text)
    except RobotFileError as error:
        raise FitFileError(f"{file}: {error.problem}") from None
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise FitFileError(f"{file}: cannot be read ({str(error).splitlines()[0]})") from None
    if not isinstance(data, Mapping) or data.get("format") not in _READABLE:
        found = data.get("format") if isinstance(data, Mapping) else type(data).__name__
        raise FitFileError(f"{file}: format is {quote(found)}; expected '{FORMAT}', as identify writes it")
    beside = settled(file.with_suffix(".npz"))
    try:
        arrays = read_sealed(beside, _ARRAYS)
    except FileNotFoundError:
        raise FitFileError(f"{file}: {beside.name} is not beside it; keep the two files together") from None
    except Exception as error:  # a damaged file can make any part of it fail
        raise FitFileError(f"{beside}: is damaged ({reason_of(error)}); identify again") from error
    try:
        fit = _rebuilt(data, arrays, str(file))
        if bytes(arrays["text"]) != hashlib.sha256(text.encode()).digest():
            raise ValueError("the text was edited, or the two files are not of one run")
        return fit
    except RobotFileError:
        raise
    except Exception as error:  # a damaged text can make any part of it fail
        raise FitFileError(f"{file}: is damaged ({reason_of(error)}); identify again") from error


def _rebuilt(data: Mapping[str, Any], arrays: Mapping[str, Any], source: str) -> Fit:
    robot = found_again(robot_from_data(data["robot"], source), data, source)
    joints = robot.joint_names
    estimate = _stored_estimate(data, arrays, robot)
    base = estimate.coordinates
    assert isinstance(base, BaseParameters)
    predicts = _stored_estimate(data["prediction"], arrays, robot, _PREDICTIVE) if "prediction" in data else estimate
    _ = float(data["band"]), list(data["traces"])  # the widest band, and the logs that reports have plots of
    crossed, check, provenance = data["cross_validation"], data.get("check"), data.get("provenance")
    logs = tuple(LogRecord.from_dict(record) for record in data["data"])
    return Fit(
        base=base,
        estimate=estimate,
        estimator=EstimatorRecord.from_dict(data["estimator"]),
        signals=SignalOptions(**current_names(data["signals"])),
        data=logs,
        held_out=tuple(LogRecord.from_dict(record) for record in data["held_out"]),
        errors=FitErrors(
            train=TorqueErrors.from_stored(joints, data["train"]["sums"]),
            nominal=None if data["nominal"] is None else TorqueErrors.from_stored(joints, data["nominal"]["sums"]),
            held_out={k: TorqueErrors.from_stored(joints, v["sums"]) for k, v in data["validation"].items()},
            cross_validation=None if crossed is None else CrossValidation.from_dict(crossed),
        ),
        diagnosis=None if check is None else Diagnosis.from_dict(check, [one.label for one in logs]),
        selection=TermSelection.from_dict(data["friction"]) if "friction" in data else None,
        friction_view=FrictionView.from_stored(arrays, len(joints)),
        eliminated=tuple(Elimination.from_dict(one) for one in data.get("eliminated", ())),
        provenance=None if provenance is None else Provenance.from_dict(provenance),
        notes=tuple(data["notes"]),
        warnings=tuple(data["warnings"]),
        version=str(data["dynident"]),
        predictive=predicts,
        friction_levels=FrictionLevels.from_dict(data["friction_levels"]) if "friction_levels" in data else None,
    )


# ----------------------------------------------------------------------------------------------------------------------
# An estimate on disk: keys of the YAML file, and arrays; those of the predictive estimate begin with `predictive_`.


def _estimate_data(estimate: ParameterEstimate, base: BaseParameters) -> dict[str, Any]:
    """What people read of an estimate."""
    solved = _solve_of(estimate)
    return {
        "terms": [term.key_on(base.robot) for term in base.terms],
        "rank": solved.rank,
        "condition": solved.condition,
        "deviations": solved.covariance_kind,
        "base": {"weakest": base.weakest, "strongest": base.strongest, "warnings": list(base.warnings)},
        "residual": {"sigma": solved.residual_std.tolist(), "inflation": _inflation(solved).tolist()},
        "parameters": [_without_expression(row) for row in estimate.rows()],
    }


def _estimate_arrays(estimate: ParameterEstimate, base: BaseParameters, prefix: str = "") -> dict[str, Any]:
    """What the YAML file does not say of an estimate."""
    solved = _solve_of(estimate)
    arrays = {
        "beta": estimate.values,
        "covariance": estimate.covariance,
        "white_std": estimate.std if solved.std_white_noise is None else solved.std_white_noise,
        "determined": estimate.determined,
        "K": base.K,
        "independent": np.array(base.independent),
        "reference": estimate.linearization,
        "open": solved.null_space,
        "solve_singular_values": solved.singular_values,
        "solve_weights": solved.channel_weights,
        "solve_determined": solved.determined,
        "solve_channels": np.array(solved.channels, dtype=str),
        "solve_warnings": np.array(solved.warnings, dtype=str),
        "solve_numbers": np.array([*solved.gap, solved.n_rows, solved.iterations]),
    }
    return {f"{prefix}{name}": array for name, array in arrays.items() if array is not None}


def _solve_of(estimate: ParameterEstimate) -> SolveRecord:
    assert estimate.solve is not None
    return estimate.solve


def _inflation(solved: SolveRecord) -> Array:
    own = solved.variance_inflation
    return np.ones_like(solved.residual_std) if own is None else own


def _stored_estimate(
    data: Mapping[str, Any], arrays: Mapping[str, Any], robot: Robot, prefix: str = ""
) -> ParameterEstimate:
    """The estimate of `_estimate_data` and `_estimate_arrays`.

    Raises:
        ValueError, KeyError: Naming what is wrong or missing.
    """
    if not isinstance(data["terms"], list) or not data["terms"]:
        raise ValueError("terms must be a list of names")
    terms = stored_terms(robot, data["terms"])
    base = BaseParameters(
        robot=robot,
        terms=terms,
        columns=all_columns(robot, terms),
        independent=tuple(int(i) for i in arrays[f"{prefix}independent"]),
        K=frozen(arrays[f"{prefix}K"]),
        weakest=float(data["base"]["weakest"]),
        strongest=float(data["base"]["strongest"]),
        warnings=tuple(data["base"]["warnings"]),
    )
    n = base.n
    shapes = {"K": (n, len(base.columns)), "covariance": (n, n), "white_std": (n,), "determined": (n,), "beta": (n,)}
    for name, shape in shapes.items():
        found = arrays[f"{prefix}{name}"]
        if found.shape != shape:
            raise ValueError(f"{prefix}{name} has shape {found.shape} instead of {shape}")
        if name in ("K", "covariance", "beta") and not np.isfinite(found).all():
            raise ValueError("its numbers are not finite")
    if (np.diag(arrays[f"{prefix}covariance"]) < 0.0).any() or (arrays[f"{prefix}white_std"] < 0.0).any():
        raise ValueError(f"{prefix}covariance has negative variances")
    free = arrays.get(f"{prefix}open")
    if free is not None and (free.ndim != 2 or len(free) != n):
        raise ValueError(f"{prefix}open has shape {free.shape} instead of ({n}, ..)")
    beta = arrays[f"{prefix}beta"]
    names, values = [row["name"] for row in data["parameters"]], [row["value"] for row in data["parameters"]]
    if tuple(names) != base.names or not np.array_equal(np.array(values, dtype=float), beta):
        raise ValueError("the parameters of the two files differ; were they edited?")
    return ParameterEstimate.of(
        base,
        beta,
        arrays[f"{prefix}covariance"],
        arrays[f"{prefix}determined"].astype(bool),
        linearization=arrays.get(f"{prefix}reference"),
        solve=_stored_solve(data, arrays, robot.joint_names, prefix),
    )


def _stored_solve(
    data: Mapping[str, Any], arrays: Mapping[str, Any], joints: tuple[str, ...], prefix: str
) -> SolveRecord:
    """How the parameters were solved for; format 1 kept less of it."""
    sigma = np.array(data["residual"]["sigma"], dtype=float)
    known = data.get("format") != _READABLE[0]
    own = {name: arrays[f"{prefix}solve_{name}"] for name in _SOLVE_ARRAYS} if known else {}
    low, high, n_rows, iterations = own.get("numbers", (np.nan, np.nan, np.nan, 0))
    return SolveRecord(
        rank=int(data["rank"]),
        singular_values=own.get("singular_values", np.zeros(0)),
        condition=float(data["condition"]),
        gap=(float(low), float(high)),
        channels=tuple(map(str, own.get("channels", joints))),
        residual_std=sigma,
        channel_weights=own.get("weights", np.where(sigma > 0.0, sigma, np.inf) ** -2.0),
        determined=own.get("determined", arrays[f"{prefix}determined"]).astype(bool),
        n_rows=float(n_rows),
        iterations=int(iterations),
        covariance_kind=str(data["deviations"]),
        variance_inflation=np.array(data["residual"]["inflation"], dtype=float),
        std_white_noise=arrays[f"{prefix}white_std"],
        null_space=arrays.get(f"{prefix}open"),
        warnings=tuple(map(str, own.get("warnings", ()))),
    )


load_estimate = load_fit  # its name until 0.6
