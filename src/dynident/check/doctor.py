"""`check`: everything that can be wrong with logs, looked for before anything is solved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from dynident.check.agreement_finding import agreement_finding
from dynident.check.bias_finding import bias_finding
from dynident.check.column_findings import column_findings
from dynident.check.delay_findings import delay_findings
from dynident.check.excitation_findings import excitation_findings
from dynident.check.explain import Search
from dynident.check.explanations import Wiring
from dynident.check.finding import Checkup, Finding
from dynident.check.gravity_finding import gravity_finding
from dynident.check.sample import Sample, samples
from dynident.check.signals import signal_findings
from dynident.check.torque_findings import torque_finding
from dynident.check.trial import Trial
from dynident.checks import Array
from dynident.errors import DynidentError
from dynident.estimate.recipes import BASIC_TERMS
from dynident.identifiability.base import base_parameters
from dynident.logs.log import check_locked
from dynident.logs.source import LogSource, as_logs
from dynident.robot.model import Robot
from dynident.signals.observe import Observations, SignalOptions, observe

Progress = Callable[[str, int, int], None]  # what is being done, steps done, steps in all
_READABLE = ("time", "numbers", "channels", "rest")  # what must not be at a stop before the model can say anything


def check(
    robot: Robot,
    logs: LogSource | Sequence[LogSource],
    *,
    signals: SignalOptions | None = None,
    progress: Progress | None = None,
) -> Checkup:
    """Look for mistakes in logs: their signals one by one, and what the robot's equations make of them together.

    Args:
        robot: The robot.
        logs: Logs to learn from; streamed ones (`stream_log`) may hold what `read_log` refuses.
        signals: Band, delay and rest speed; default what identification uses.
        progress: Called with what is being done, and how much of it is done.
    """
    given = as_logs(logs)
    tell = progress or (lambda what, done, total: None)
    found: list[Finding] = []
    for number, log in enumerate(given):
        tell("looking at signals", number, len(given))
        found += _signals(log, robot)
    tell("looking at signals", len(given), len(given))
    labels = tuple(log.label for log in given)
    if any(one.verdict == "stop" and one.name in _READABLE for one in found):
        return Checkup((*found, Finding("model", "warn", _NOT_LOOKED_AT)), labels)
    try:
        tell("asking the model", 0, 1)
        found += _model(robot, given, signals)
        tell("asking the model", 1, 1)
    except DynidentError as error:  # what identification would refuse as well
        found.append(Finding("model", "stop", str(error)))
    return Checkup(tuple(found), labels)


_NOT_LOOKED_AT = "units, order, signs, delay, rank and agreement are looked at once what stops here is put right"


def _signals(log: LogSource, robot: Robot) -> list[Finding]:
    """The items of one log that need no model; one that cannot be read at all is an item of its own."""
    try:
        return signal_findings(log, robot)
    except DynidentError as error:
        return [Finding("numbers", "stop", str(error), log=log.label)]


def _model(robot: Robot, logs: Sequence[LogSource], signals: SignalOptions | None) -> list[Finding]:
    """The items that need the equations of the robot."""
    observations: list[Observations] = []
    wirings: list[Wiring] = []
    for log in logs:
        first = next(iter(log.blocks()))
        wirings.append(Wiring.of(first, robot))
        check_locked(first, robot)
        observations.append(observe(log, robot, signals))
    trial = Trial(base_parameters(robot, BASIC_TERMS))
    moments = samples(observations)
    torque, meant = _torque(trial, moments, wirings)
    moments = [replace(one, tau=meant @ one.tau, late=meant @ one.late) for one in moments]
    search = Search(trial, moments, wirings)
    explained = search.explained()
    if np.any(robot.gravity) and (turned := gravity_finding(trial, moments, wirings, explained)):
        explained = replace(explained, mistakes=())
        found = [one for one in column_findings(explained, wirings, logs) if one.name != "gravity"]
        return [torque, *found, turned, Finding("model", "warn", _NOT_LOOKED_AT_YET)]
    found = [torque, *column_findings(explained, wirings, logs)]
    if explained.mistakes:
        return [*found, Finding("model", "warn", _NOT_LOOKED_AT_YET)]
    slower = samples([one.with_options(band=0.5 * one.band) for one in observations])
    slower = [replace(one, tau=meant @ one.tau, late=meant @ one.late) for one in slower]
    return [
        *found,
        *delay_findings(trial, moments),
        *excitation_findings(trial, observations, moments, explained.left),
        agreement_finding(search, explained, logs),
        bias_finding(trial, moments, slower, explained.left),
    ]


def _torque(trial: Trial, moments: Sequence[Sample], wirings: Sequence[Wiring]) -> tuple[Finding, Array]:
    """The item about the size of the torque, and the map of torques that puts it right, (n_joints, n_joints).

    Positions in degrees or a wrong clock make torque look small or large; if putting columns right puts its size right
    as well, nothing is wrong with it.
    """
    torque, meant = torque_finding(moments, wirings[0])
    if torque.verdict == "ok":
        return torque, meant
    explained = Search(trial, moments, wirings).explained()
    read = [one.read(x, wiring) for one, x, wiring in zip(explained.beliefs, moments, wirings, strict=True)]
    again, one = torque_finding(read, wirings[0])
    return (again, one) if again.verdict == "ok" else (torque, meant)


_NOT_LOOKED_AT_YET = "delay, rank, condition, agreement and bias are looked at once the columns are right"
