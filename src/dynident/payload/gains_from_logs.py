"""Drive gains from logs: runs without and with a payload of known mass (`drive_gains.py` has the equations).

Logged currents are torque up to a gain per motor. Where the robot has gains, they are what is corrected; where it has
none, the currents are taken as they are and the gains are found whole.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynident.arrays import Array, record
from dynident.dynamics.terms import along_terms, resolve_terms, split_terms, state_terms, with_springs
from dynident.errors import InputError
from dynident.estimate.delay import choose_delay
from dynident.estimate.records import LogRecord
from dynident.estimate.stage_data import observed_experiment
from dynident.identifiability.base import base_parameters
from dynident.information.parameter_estimate import text_table
from dynident.logs.log import LogSource, TorqueKind, as_logs, log_warnings, torque_kind
from dynident.options import keywords
from dynident.payload.body import Payload, known_numbers, tool_link
from dynident.payload.drive_gains import DriveGains, identify_drive_gains
from dynident.payload.options import GainOptions
from dynident.robot.model import Robot
from dynident.robot.parameters import from_classical, in_frame
from dynident.signals.observations import Observations, SignalOptions, observe

_TERMS = "rigid,Ia,Fv,Fc,Fo"
_UNITS = {"i": "A", "taum": "N·m at the motor", "tau": "N·m logged"}


@record
class LoggedGains:
    """Drive gains of logs.

    Attributes:
        robot: The robot, with the gains that were found; its own where torque was logged.
        found: The gains, and what had to be found with them.
        kind: What was logged: current i, torque at the motor shafts taum, or at the joints tau.
        known: What was known of the payload, in words.
        known_std: Relative standard deviation of that.
        notes: What was decided on the way, in words.
        warnings: What a reader should know.
    """

    robot: Robot
    found: DriveGains
    kind: TorqueKind
    known: str
    known_std: float = 0.0
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def std(self) -> Array:
        """(n_joints,) standard deviations of the gains."""
        return np.sqrt(np.diag(self.found.covariance))

    @property
    def units(self) -> tuple[str, ...]:
        """Unit of each gain."""
        own = (joint.torque_unit for joint in self.robot.moving_joints)
        return tuple(f"{unit}/({_UNITS[self.kind]})" if " " in _UNITS[self.kind] else f"{unit}/A" for unit in own)

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        found = self.found
        each = zip(found.joints, found.gains, self.std, found.nominal, found.factors, self.units, strict=True)
        return {
            "robot": self.robot.name,
            "logged": self.kind,
            "known": self.known,
            "known_std": self.known_std,
            "gains": [
                {"joint": joint, "gain": gain, "std": std, "unit": unit, "nominal": nominal, "factor": factor}
                for joint, gain, std, nominal, factor, unit in _floats(each)
            ],
            "correlation": _correlation(found.covariance).tolist(),
            "payload": dict(found.payload),
            "condition": found.condition,
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }

    def table(self) -> str:
        """Joint, gain, standard deviation, the nominal gain and the factor on it."""
        lines = [
            (one["joint"], f"{one['gain']:.5g}", f"{one['std']:.2g}", one["unit"], f"{one['nominal']:.5g}",
             f"{one['factor']:.4f}")
            for one in self.as_dict()["gains"]
        ]  # fmt: skip
        return text_table(("joint", "gain", "std", "unit", "nominal", "factor"), lines, ("gain", "std"))


def _floats(rows: Any) -> list[tuple[Any, ...]]:
    return [tuple(x if isinstance(x, str) else float(x) for x in row) for row in rows]


def _correlation(covariance: Array) -> Array:
    std = np.sqrt(np.diag(covariance))
    return np.asarray(covariance / np.outer(std, std))


@keywords(GainOptions)
def drive_gains_from_logs(robot: Robot, loaded: LogSource | Sequence[LogSource], options: GainOptions) -> LoggedGains:
    """Drive gains from logs without and with a payload of which the mass, at least, is known.

    Args:
        robot: The robot; its gains, where it has some, are nominal ones.
        loaded: Runs with the payload.
        options: What is known of it, runs without it, terms, bandwidth.

    Raises:
        InputError: For logs that do not belong together, or words of the options that mean nothing.
        SingularError: When the runs do not determine the gains.
        LogError: For a log that cannot be used.
    """
    robot = robot if options.tool is None else robot.with_tool(options.tool)
    known, words = known_part(robot, options.known)
    runs = {"unloaded": as_logs(options.unloaded), "loaded": as_logs(loaded)}
    for name, logs in runs.items():
        if not logs:
            raise InputError(f"there is no {name} log; give at least one run without and one with the payload")
    both = [*runs["unloaded"], *runs["loaded"]]
    own = _with_gains(robot)
    kind = _one_kind(both, own)
    terms = with_springs(split_terms(_TERMS), robot) if options.terms is None else resolve_terms(options.terms)
    if along_terms(resolve_terms(terms)):
        raise InputError("drive gains take terms that are functions of the state: rigid, Ia, Fv, Fc, Fo")
    base = base_parameters(own, terms)
    signals = SignalOptions(band=options.band)
    bare, laden = ([observe(log, own, signals) for log in logs] for logs in runs.values())
    _check_distinct(bare, laden)
    delay = choose_delay([*bare, *laden], base_parameters(own, state_terms(base.terms)))
    without, with_payload = (
        observed_experiment(name, [one.with_options(delay=delay.delay) for one in logs], base, correct_delay=True)
        for name, logs in zip(runs, (bare, laden), strict=True)
    )
    given = kind == "i" and robot.drive.gains is not None
    assert own.drive.gains is not None
    nominal = own.drive.gains[list(own.moving)] if kind == "i" else np.ones(len(own.moving))
    found = identify_drive_gains(
        own,
        without,
        with_payload,
        known,
        nominal=nominal if given or kind != "i" else None,
        known_std=options.known_std,
    )
    notes = [f"payload: {words} known, in {robot.tool_words}", delay.reason]
    if not given and kind == "i":
        notes.append("the robot has no drive gains, so those of the logs are found whole")
    return LoggedGains(
        robot=_with_found(robot, own, found) if kind == "i" else robot,
        found=found,
        kind=kind,
        known=words,
        known_std=options.known_std,
        notes=tuple(notes),
        warnings=tuple(dict.fromkeys((*robot.warnings, *log_warnings(both), *found.warnings))),
    )


def known_part(
    robot: Robot, given: str | float | Payload | Sequence[float]
) -> tuple[Payload | Mapping[str, float], str]:
    """What is known of a payload, in the frame of the tool link as `identify_drive_gains` wants it, and in words.

    Args:
        robot: The robot; its tool frame is what the numbers are in.
        given: A payload; a mass; or 1, 4 or 10 numbers: mass, center, inertia about it, also as a text with commas.
    """
    if isinstance(given, Payload):
        return given, f"all of {given.mass:g} kg"
    numbers = known_numbers(given)
    if len(numbers) == 10:
        return Payload(numbers[0], numbers[1:4], numbers[4:]), f"all of {numbers[0]:g} kg"
    if len(numbers) == 1:
        return {"M": numbers[0]}, f"mass of {numbers[0]:g} kg"
    _, frame = tool_link(robot)
    standard = in_frame(
        from_classical(numbers[0], np.array(numbers[1:4]), np.zeros((3, 3))), frame.rotation, frame.translation
    )
    first = dict(zip(("MX", "MY", "MZ"), standard[6:9].tolist(), strict=True))
    return {**first, "M": numbers[0]}, f"mass of {numbers[0]:g} kg and its center"


def _with_gains(robot: Robot) -> Robot:
    """The robot with gains of one where it has none."""
    if robot.drive.gains is not None:
        return robot
    drive = dataclasses.replace(robot.drive, gains=np.ones(len(robot.active)))
    return dataclasses.replace(robot, drive=drive)


def _one_kind(logs: Sequence[LogSource], robot: Robot) -> TorqueKind:
    """What all logs have: gains of currents are no factors on torque."""
    kinds = {log.label: torque_kind(next(iter(log.blocks())), robot) for log in logs}
    found = sorted(set(kinds.values()))
    if len(found) > 1:
        one, other = (next(label for label, kind in kinds.items() if kind == own) for own in found[:2])
        raise InputError(
            f"{one} has {found[0]}, {other} has {found[1]}; give logs with the same channels, currents best"
        )
    if found[0] == "target":
        raise InputError("the logs have commanded positions in place of torque; drive gains need currents or torque")
    if found[0] == "tau" and not np.array_equal(robot.moving_coupling, np.eye(len(robot.moving))):
        raise InputError(
            f"the logs have torque at the joints, but motors of {robot.name} are coupled, and a gain belongs to a "
            "motor; give logs with currents (i) or torque at the motor shafts (taum)"
        )
    return found[0]


def _check_distinct(bare: Sequence[Observations], laden: Sequence[Observations]) -> None:
    """Refuse a log that is given twice: data that counts twice looks too certain, and no log is with and without."""
    every = [*bare, *laden]
    for number, one in enumerate(every):
        for place, other in enumerate(every[:number]):
            if LogRecord.of(other).overlaps(one):
                alike = (place < len(bare)) == (number < len(bare))
                how = "twice" if alike else "as loaded and as unloaded"
                raise InputError(f"{one.log.label}: is given {how}; a run is one of them, and counts once")


def _with_found(robot: Robot, own: Robot, found: DriveGains) -> Robot:
    """The robot with the gains that were found, and their standard deviations as tolerances."""
    assert own.drive.gains is not None
    gains, moving = np.array(own.drive.gains), list(own.moving)
    tolerances = np.zeros(len(gains)) if own.drive.gain_tolerances is None else np.array(own.drive.gain_tolerances)
    gains[moving], tolerances[moving] = found.gains, np.sqrt(np.diag(found.covariance))
    return dataclasses.replace(robot, drive=dataclasses.replace(own.drive, gains=gains, gain_tolerances=tolerances))
