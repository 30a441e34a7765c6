"""`export_yaml`: identified values as an overlay of the robot file, with standard deviations and provenance."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from dynident._version import __version__
from dynident.arrays import Array
from dynident.dynamics.terms import TermsLike, all_columns, resolve_terms
from dynident.dynamics.terms.term import MotionSamples
from dynident.errors import InputError, UnknownNameError
from dynident.estimate.fit import Fit
from dynident.export.source_files import check_export_target, origin_files
from dynident.export.values import standard_values, with_all_joints_free
from dynident.export.verification import (
    Exported,
    ExportError,
    own_torque,
    write_proved,
)
from dynident.identifiability.base import BaseParameters, base_parameters
from dynident.robot.load import bundled_names, load_robot
from dynident.robot.model import Robot

SET = "identified"  # name of the value set in the file
_LONGEST_BASE = 100  # characters that a robot file takes as a name
_WIDTH = 34  # column at which the remark on a number starts


def export_yaml(
    robot: Robot,
    values: Mapping[str, float] | None,
    path: str | Path,
    *,
    estimate: Fit | None = None,
    deviations: Mapping[str, float] | None = None,
    base: str | None = None,
    terms: TermsLike = None,
    note: str = "",
) -> Exported:
    """Write standard and base parameters as a robot file and prove it by reading it back.

    The file is an overlay: ``base: ROBOT`` with a value set "identified" that counts as the robot's own, and base
    parameters as sets "identified" and "identified-std" (standard deviations). Units and what each stands for are
    remarks.

    Args:
        robot: The robot.
        values: Values by parameter name: standard ones, and those of `terms`; None takes those of the estimate.
        path: Where to, ending in .yaml.
        estimate: Where the base parameters, their standard deviations and their data come from.
        deviations: Standard deviations by parameter name, of `values`.
        base: What the file stands on, a bundled robot or a file relative to its folder; default the robot's own file.
        terms: Terms of the fit; default those of the estimate, or rigid, Ia, Fv, Fc, Fo.
        note: For the top of the file, such as the prior that settled what the data does not determine.

    Raises:
        ExportError: When the file cannot be read back as the robot, or its torque differs; nothing is written then.
        InputError: When the target cannot be written, is a file the robot came from, or there is nothing to stand on.
    """
    target = check_export_target(path, (".yaml", ".yml"), robot)
    found = _base_parameters(robot, estimate, terms)
    if values is None:
        if estimate is None:
            raise InputError("give values by parameter name, an estimate, or both; there is nothing to export")
        chi = estimate.parameter_model.chi.tolist()
        values = dict(zip((column.name for column in estimate.base.columns), chi, strict=True))
        regrouped = "Regrouped parameters are zero: the standard values give the torque, but they are no bodies."
        note = f"{note} {regrouped}".strip()
    standard, beyond = standard_values(robot, values, found.terms)
    lost, spreads = tuple(beyond), _finite_deviations(deviations or {}, values)
    beta = found.base_values(values) if estimate is None else estimate.beta
    lines = [
        *_head(robot, estimate, found, lost, note),
        f"base: {_quote(_base(robot, target, base))}",
        f"default_parameters: {SET}",
        *_locked_lines(robot),
        *_standard(robot, standard, spreads),
        *_base_sets(found, beta, None if estimate is None else estimate.std),
        *(["  standard-std:", *_numbers(spreads)] if spreads else []),
    ]

    def torque(trial: Path, free: Robot, states: MotionSamples) -> Array:
        _check_robot(trial, robot)
        return own_torque(trial, free, states)

    content = ("\n".join(lines) + "\n").encode()
    proved = write_proved(target, content, with_all_joints_free(robot), (standard, standard), torque)
    return Exported(target, "YAML", proved, lost)


def export_drive_gains(robot: Robot, path: str | Path, *, note: str = "", base: str | None = None) -> Exported:
    """Write the drive gains of a robot as a robot file that stands on its own, and prove it by reading it back.

    Args:
        robot: The robot, with its gains and their standard deviations as tolerances.
        path: Where to, ending in .yaml.
        note: For the top of the file, such as how the gains were found.
        base: What the file stands on; default the robot's own file.

    Raises:
        ExportError: When the file cannot be read back as the robot with these gains; nothing is written then.
        InputError: When the target cannot be written or the robot has no gains.
    """
    target = check_export_target(path, (".yaml", ".yml"), robot)
    gains, tolerances = robot.drive.gains, robot.drive.gain_tolerances
    if gains is None:
        raise InputError(f"robot {robot.name} has no drive gains to write")
    tolerances = np.zeros(len(gains)) if tolerances is None else tolerances
    lines = [f"# dynident {__version__}: drive gains of {robot.name}, torque at the joint side over logged signal."]
    lines += [f"# {' '.join(note.split())}"] if note else []
    lines += [f"base: {_quote(_base(robot, target, base))}", "drive_gains:"]
    for index, gain, tolerance in zip(robot.active, gains.tolist(), tolerances.tolist(), strict=True):
        joint = robot.joints[index]
        value = f"{{value: {_number(gain)}, tolerance: {_number(tolerance)}}}"
        lines.append(f"  {joint.variable}: {value}  # {joint.name}")
    free = with_all_joints_free(robot)

    def torque(trial: Path, other: Robot, states: MotionSamples) -> Array:
        _check_robot(trial, free)
        read = load_robot(trial).drive
        for own, found in ((gains, read.gains), (tolerances, read.gain_tolerances)):
            if found is None or not np.array_equal(own, found):
                raise ExportError(f"{target}: the gains read back are not those that were written; nothing was written")
        return own_torque(trial, other, states)

    values = dict(robot.value_set())
    content = ("\n".join(lines) + "\n").encode()
    return Exported(target, "YAML", write_proved(target, content, free, (values, values), torque))


def _base_parameters(robot: Robot, estimate: Fit | None, terms: TermsLike) -> BaseParameters:
    if estimate is None:
        return base_parameters(robot, terms)
    if estimate.robot.fingerprint != robot.fingerprint:
        raise InputError(f"the estimate is of another robot than {robot.name}; give the robot it belongs to")
    if terms is not None and [t.key for t in resolve_terms(terms)] != [t.key for t in estimate.base.terms]:
        raise InputError("the estimate has terms of its own; leave out terms")
    return estimate.base


def _finite_deviations(deviations: Mapping[str, float], values: Mapping[str, float]) -> dict[str, float]:
    """The standard deviations that are known; those of what the data does not determine are infinite."""
    for name in deviations:
        if name not in values:
            raise UnknownNameError("parameter with a standard deviation", str(name), values)
    return {name: float(x) for name, x in deviations.items() if np.isfinite(x)}


def _check_robot(trial: Path, robot: Robot) -> None:
    """Refuse a file whose equations are not the robot's: its base was changed, or the robot was, in memory."""
    if load_robot(trial).fingerprint != robot.fingerprint:
        raise ExportError(
            f"robot {robot.name} is not what {robot.source} describes: the file was changed since, or the robot was; "
            "load it again, or give the file it stands on as base. Nothing was written"
        )


def _base(robot: Robot, target: Path, given: str | None) -> str:
    """What the file stands on, as it names it."""
    if given is not None:
        return given
    if robot.source in bundled_names():
        return robot.source
    files = origin_files(robot)
    if not files or not files[0].is_file():
        raise InputError(
            f"robot {robot.name} was read from '{robot.source}', which is no file; store its description in a file and "
            "give that as base"
        )
    here = files[0].resolve()
    # Relative, so that the two can move together; absolute only where that is too long.
    name = min(os.path.relpath(here, target.parent.resolve()), str(here), key=lambda x: len(x) > _LONGEST_BASE)
    if len(name) > _LONGEST_BASE:
        raise InputError(f"{target}: the way to {here} has more than {_LONGEST_BASE} characters; write it beside it")
    return name


def _head(robot: Robot, estimate: Fit | None, base: BaseParameters, lost: tuple[str, ...], note: str) -> list[str]:
    """Remarks on top: where the numbers come from."""
    lines = [f"dynident {__version__}: identified values of {robot.name}, SI units."]
    lines += [f"Terms: {', '.join(term.key for term in base.terms)}."]
    if estimate is not None:
        logs = "; ".join(f"{log.label} ({log.digest[:12]}, {log.duration:.4g} s)" for log in estimate.data)
        lines += [f"Method: {estimate.estimator.name}; standard deviations: {estimate.covariance_kind}."]
        lines += [f"Data: {logs}." if logs else "Data: none."]
        whose = "" if estimate.one_answer else " of the predictive model, which is not in this file"
        lines += [f"Torque error on it{whose}: {100.0 * estimate.train.relative:.3g} %."]
        if estimate.undetermined:
            lines += [f"Not determined by the data: {', '.join(estimate.undetermined)}."]
    lines += [note] if note else []
    lines += [f"Not in the value set: {words}." for words in lost]
    lines += ["Values of all terms stand under base_parameters."] if lost else []
    return [f"# {' '.join(line.split())}" for line in lines]


def _locked_lines(robot: Robot) -> list[str]:
    """Joints that are held, at which the base parameters were found."""
    held = {robot.joints[robot.active[i]].variable: x for i, x in sorted(robot.locked.items())}
    return ["locked:", *(f"  {name}: {_number(x)}" for name, x in held.items())] if held else []


def _standard(robot: Robot, values: Mapping[str, float], deviations: Mapping[str, float]) -> list[str]:
    """The value set, one parameter in a line."""
    described = {column.name: column for column in all_columns(robot, resolve_terms(None, robot))}
    lines = ["parameters:", f"  {SET}:"]
    for name, value in values.items():
        column = described[name]
        spread = f", ± {deviations[name]:.2g}" if name in deviations else ""
        lines.append(_line(name, value, f"{column.unit}{spread}, {column.meaning}"))
    return lines if values else [*lines[:1], f"  {SET}: {{}}"]


def _base_sets(base: BaseParameters, beta: Array, std: Array | None) -> list[str]:
    """Base parameters, and their standard deviations where the data gives some."""
    lines = ["base_parameters:", f"  {SET}:"] if base.n else ["base_parameters:", f"  {SET}: {{}}"]
    known = np.full(base.n, np.inf) if std is None else std
    for name, unit, expression, value, deviation in zip(
        base.names, base.units, base.expressions, beta, known, strict=True
    ):
        spread = f", ± {deviation:.2g}" if np.isfinite(deviation) else "" if std is None else ", not determined"
        lines.append(_line(name, float(value), f"{unit}{spread}, {expression}"))
    if std is not None:
        finite = {name: float(x) for name, x in zip(base.names, std, strict=True) if np.isfinite(x)}
        lines += [f"  {SET}-std:", *_numbers(finite)] if finite else []
    return lines


def _numbers(values: Mapping[str, float]) -> list[str]:
    return [_line(name, value, "") for name, value in values.items()]


def _line(name: str, value: float, remark: str) -> str:
    text = f"    {_quote(name)}: {_number(value)}"
    return f"{text:<{_WIDTH}}  # {' '.join(remark.split())}" if remark else text


def _number(value: float) -> str:
    """A number that YAML reads back to the last bit; 1e-05 without a point would be a text."""
    text = repr(float(value) + 0.0)
    return text.replace("e", ".0e") if "e" in text and "." not in text else text


def _quote(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][\w./-]*", name) else "'" + name.replace("'", "''") + "'"
