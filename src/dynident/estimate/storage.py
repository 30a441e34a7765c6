"""Estimates on disk: a YAML file for people and programs, and an .npz of the large arrays beside it; never pickle."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from dynident.arrays import Array, frozen
from dynident.dynamics.terms import all_columns, stored_terms
from dynident.errors import DynidentError, RobotFileError
from dynident.estimate.accuracy import TorqueErrors, Trace
from dynident.estimate.estimate import Estimate, LogRecord
from dynident.estimate.friction_view import FrictionView
from dynident.estimate.motion_view import MotionView
from dynident.files import write_text, write_whole
from dynident.identifiability.base import BaseParameters
from dynident.robot.model import Robot
from dynident.robot.storage import robot_from_data, robot_to_data, yaml_text
from dynident.signals.observe import SignalOptions

FORMAT = "dynident fit 1"
_FILE = "fit.yaml"
_DAMAGE = (KeyError, ValueError, TypeError, IndexError, AttributeError, OSError, EOFError, zipfile.BadZipFile)


class FitFileError(DynidentError):
    """A file that does not hold an estimate."""


def fit_path(path: str | Path) -> Path:
    """The YAML file of an estimate, given as the file itself or as the folder that holds fit.yaml."""
    given = Path(path)
    return given if given.suffix.lower() in (".yaml", ".yml") else given / _FILE


def save(estimate: Estimate, path: str | Path) -> None:
    """Write an estimate; a folder is created when it does not exist."""
    target, base = fit_path(path), estimate.base
    text = _text(estimate, target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FitFileError(f"{target.parent}: cannot be made a folder ({error.strerror}); choose another") from None
    arrays = {
        "beta": estimate.beta,
        "covariance": estimate.covariance,
        "white_std": estimate.white_std,
        "determined": estimate.determined,
        "K": base.K,
        "independent": np.array(base.independent),
    }
    if estimate.reference is not None:
        arrays["reference"] = estimate.reference
    if estimate.open_directions is not None:
        arrays["open"] = estimate.open_directions
    if estimate.friction_view is not None:
        arrays |= estimate.friction_view.stored()
    if estimate.motion_view is not None:
        arrays |= estimate.motion_view.stored()
    for number, trace in enumerate(estimate.traces.values()):
        arrays[f"trace{number}"] = np.vstack([trace.time, trace.measured.T, trace.predicted.T])
    arrays["text"] = np.frombuffer(hashlib.sha256(text.encode()).digest(), dtype=np.uint8)
    # The arrays first: a YAML file is there only when everything it needs is.
    write_whole(target.with_suffix(".npz"), lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]
    write_text(target, text)


def _text(estimate: Estimate, target: Path) -> str:
    base, file = estimate.base, _robot_file(estimate.robot, target)
    data: dict[str, Any] = {
        "format": FORMAT,
        "dynident": estimate.version,
        "name": estimate.robot.name,
        "terms": [term.key_on(base.robot) for term in base.terms],
        "estimator": {"name": estimate.estimator, **estimate.estimator_options},
        "signals": dataclasses.asdict(estimate.signals),
        "band": estimate.band,
        "rank": estimate.rank,
        "condition": estimate.condition,
        "deviations": estimate.covariance_kind,
        "base": {"weakest": base.weakest, "strongest": base.strongest, "warnings": list(base.warnings)},
        "residual": {
            "sigma": [float(x) for x in estimate.sigma],
            "inflation": [float(x) for x in estimate.inflation],
        },
        "parameters": [_without_expression(row) for row in estimate.rows()],
        "data": [dataclasses.asdict(record) for record in estimate.data],
        "held_out": [dataclasses.asdict(record) for record in estimate.held_out],
        "train": _errors(estimate.train),
        "nominal": None if estimate.nominal is None else _errors(estimate.nominal),
        "validation": {label: _errors(errors) for label, errors in estimate.validation.items()},
        "cross_validation": None if estimate.cross_validation is None else dict(estimate.cross_validation),
        "traces": list(estimate.traces),
        "notes": list(estimate.notes),
        "warnings": list(estimate.warnings),
        **({} if estimate.friction is None else {"friction": dict(estimate.friction)}),
        **({} if estimate.check is None else {"check": dict(estimate.check)}),
        **({} if estimate.provenance is None else {"provenance": dict(estimate.provenance)}),
        **({"eliminated": [dict(one) for one in estimate.eliminated]} if estimate.eliminated else {}),
        **({} if file is None else {"robot_file": file}),
        "robot": robot_to_data(estimate.robot),
    }
    return f"# Identified with dynident. The arrays (covariance, ..) are in the .npz beside it.\n{yaml_text(data)}"


def _robot_file(robot: Robot, target: Path) -> str | None:
    """The file the robot was read from as seen from the fit's folder, so that both can move; None without a file."""
    file = Path(robot.source)
    return os.path.relpath(file.resolve(), target.parent.resolve()) if robot.source and file.is_file() else None


def _found_again(robot: Robot, data: Mapping[str, Any], source: str) -> Robot:
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


def load_estimate(path: str | Path) -> Estimate:
    """Read what `Estimate.save` wrote.

    Raises:
        FitFileError: Naming the file and what is wrong with it.
    """
    file = fit_path(path)
    try:
        text = file.read_text(encoding="utf-8")
        data = yaml.load(text, Loader=yaml.CSafeLoader)
    except FileNotFoundError:
        raise FitFileError(f"{file}: no such file; give the fit.yaml that identify wrote, or its folder") from None
    except NotADirectoryError:
        raise FitFileError(f"{path}: is no fit; give the fit.yaml that identify wrote, or its folder") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise FitFileError(f"{file}: cannot be read ({str(error).splitlines()[0]})") from None
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        found = data.get("format") if isinstance(data, Mapping) else type(data).__name__
        raise FitFileError(f"{file}: format is {found!r}; expected '{FORMAT}', as identify writes it")
    beside = file.with_suffix(".npz")
    try:
        with np.load(beside, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except FileNotFoundError:
        raise FitFileError(f"{file}: {beside.name} is not beside it; keep the two files together") from None
    except Exception as error:  # a damaged header can make NumPy's reader raise anything
        raise FitFileError(f"{beside}: is damaged ({error}); identify again") from None
    try:
        estimate = _rebuilt(data, arrays, str(file))
        if bytes(arrays["text"]) != hashlib.sha256(text.encode()).digest():
            raise ValueError("the text was edited, or the two files are not of one run")
        return estimate
    except RobotFileError:
        raise
    except (*_DAMAGE, DynidentError) as error:
        what = f"has no {error}" if isinstance(error, KeyError) else str(error)
        raise FitFileError(f"{file}: is damaged ({what}); identify again") from None


def _rebuilt(data: Mapping[str, Any], arrays: Mapping[str, Any], source: str) -> Estimate:
    robot = _found_again(robot_from_data(data["robot"], source), data, source)
    if not isinstance(data["terms"], list) or not data["terms"]:
        raise ValueError("terms must be a list of names")
    terms = stored_terms(robot, data["terms"])
    base = BaseParameters(
        robot=robot,
        terms=terms,
        columns=all_columns(robot, terms),
        independent=tuple(int(i) for i in arrays["independent"]),
        K=frozen(arrays["K"]),
        weakest=float(data["base"]["weakest"]),
        strongest=float(data["base"]["strongest"]),
        warnings=tuple(data["base"]["warnings"]),
    )
    n, joints = base.n, robot.joint_names
    shapes = {"K": (n, len(base.columns)), "covariance": (n, n), "white_std": (n,), "determined": (n,), "beta": (n,)}
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise ValueError(f"{name} has shape {arrays[name].shape} instead of {shape}")
    if "open" in arrays and (arrays["open"].ndim != 2 or len(arrays["open"]) != n):
        raise ValueError(f"open has shape {arrays['open'].shape} instead of ({n}, ..)")
    if not all(np.isfinite(arrays[name]).all() for name in ("K", "covariance", "beta")):
        raise ValueError("its numbers are not finite")
    names, values = [row["name"] for row in data["parameters"]], [row["value"] for row in data["parameters"]]
    if tuple(names) != base.names or not np.array_equal(np.array(values, dtype=float), arrays["beta"]):
        raise ValueError("the parameters of the two files differ; were they edited?")
    options = dict(data["estimator"])
    return Estimate(
        base=base,
        beta=arrays["beta"],
        covariance=arrays["covariance"],
        covariance_kind=str(data["deviations"]),
        white_std=arrays["white_std"],
        determined=arrays["determined"].astype(bool),
        rank=int(data["rank"]),
        condition=float(data["condition"]),
        sigma=np.array(data["residual"]["sigma"], dtype=float),
        inflation=np.array(data["residual"]["inflation"], dtype=float),
        estimator=options.pop("name"),
        estimator_options=options,
        signals=SignalOptions(**data["signals"]),
        band=float(data["band"]),
        data=tuple(LogRecord(**record) for record in data["data"]),
        held_out=tuple(LogRecord(**record) for record in data["held_out"]),
        train=TorqueErrors.from_stored(joints, data["train"]["sums"]),
        nominal=None if data["nominal"] is None else TorqueErrors.from_stored(joints, data["nominal"]["sums"]),
        validation={k: TorqueErrors.from_stored(joints, v["sums"]) for k, v in data["validation"].items()},
        cross_validation=data["cross_validation"],
        traces={label: _trace(arrays[f"trace{i}"], len(joints)) for i, label in enumerate(data["traces"])},
        notes=tuple(data["notes"]),
        warnings=tuple(data["warnings"]),
        reference=None if "reference" not in arrays else frozen(arrays["reference"]),
        open_directions=None if "open" not in arrays else frozen(arrays["open"]),
        friction=data.get("friction"),
        check=data.get("check"),
        friction_view=FrictionView.from_stored(arrays, len(joints)),
        motion_view=MotionView.from_stored(arrays, len(joints)),
        eliminated=tuple(dict(one) for one in data.get("eliminated", ())),
        provenance=data.get("provenance"),
        version=str(data["dynident"]),
    )


def _trace(stored: Array, n_joints: int) -> Trace:
    if stored.ndim != 2 or len(stored) != 1 + 2 * n_joints:
        raise ValueError(f"a trace has shape {stored.shape}")
    time, measured, predicted = np.split(stored, [1, 1 + n_joints])
    return Trace(time[0], measured.T, predicted.T)
