"""Whether torque has the size that the robot's own values make likely: currents, motor torque and units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.diagnostics.hypotheses import Hypothesis, Wiring, column_rules
from dynident.diagnostics.hypothesis_search import HypothesisSearch, Mistake
from dynident.diagnostics.links import compare_with_links
from dynident.diagnostics.thresholds import THRESHOLDS
from dynident.diagnostics.trial import TrialFit, TrialSamples
from dynident.estimate.records import Diagnostic, Severity, percent
from dynident.logs.log import LogSource
from dynident.robot.model import Robot

Reading = tuple[str, Array, dict[str, Any]]  # another meaning of the torque columns: words, torques then (n, n), fix


def diagnose_torque(samples: Sequence[TrialSamples], wiring: Wiring) -> tuple[Diagnostic, Array]:
    """Compare the torque of logs with that of the robot's own values.

    Args:
        samples: Samples of the logs.
        wiring: What their channels are.

    Returns:
        The diagnostic, and the torques of the rows as they are meant from those as read, (n_joints, n_joints).
    """
    as_read = np.eye(len(wiring.robot.joint_names))
    links = compare_with_links(samples, wiring.robot)
    if links is None:
        words = "the robot file has no masses, so the size of the torque cannot be assessed"
        return Diagnostic("torque", "ok", words), as_read
    clear = links.correlations > THRESHOLDS.min_model_correlation
    if not clear.any():
        words = "the masses of the robot file explain no joint well enough to assess its torque"
        return Diagnostic("torque", "ok", words), as_read
    slopes = links.slopes[clear]
    size = float(np.exp(np.median(np.log(slopes))))
    words = f"torque is {size:.2g} times that of the robot's own masses"
    if 1.0 / THRESHOLDS.max_torque_factor < size < THRESHOLDS.max_torque_factor:
        return Diagnostic("torque", "ok", words), as_read

    def miss(reading: Reading) -> float:
        """Typical logarithm of the slopes; infinite for a reading that turns torques against the links."""
        sizes = slopes * np.diag(reading[1])[clear]
        return float(np.median(np.abs(np.log(sizes)))) if (sizes > 0.0).all() else np.inf

    best = min(_readings(wiring), key=miss)
    if miss(best) < np.log(THRESHOLDS.explained_torque_factor):
        return Diagnostic("torque", "stop", f"{words}; it fits if {best[0]}", best[2]), best[1]
    # Masses that are rough are off by another factor at every joint; another unit is one factor, or a gain like it.
    apart = max(slopes) / min(slopes)
    far = max(size, 1.0 / size) > THRESHOLDS.sure_torque_factor
    if not links.recognized or apart > THRESHOLDS.max_torque_factor**2:
        remedy = "the robot file may not be the one of this robot, or its masses are rough: check both, and the unit"
        possible = 1.0 / THRESHOLDS.impossible_torque_factor < size < THRESHOLDS.impossible_torque_factor
        return Diagnostic("torque", "warn" if possible else "stop", f"{words}; {remedy}"), as_read
    return Diagnostic("torque", "stop" if far else "warn", f"{words}; {_other_torque(size, wiring)}"), as_read


def _other_torque(size: float, wiring: Wiring) -> str:
    """What columns may hold whose torque is off by one factor that no reading of theirs explains."""
    if wiring.torque == "i":
        return "check drive_gains, or the masses of the robot file"
    if size > 1.0:
        return "check the unit of the torque columns, and that the robot file is the one of this robot"
    per = float(f"{1.0 / size:.2g}")
    units = " or ".join(f"{unit}/A" for unit in _torque_units(wiring))
    currents = f"the columns may hold motor currents (name them i1, i2, .. and give drive_gains, about {per:g} {units})"
    motors = f"torque at the motor side (name them taum1, taum2, .. and give gear_ratios, about {per:g})"
    return f"{currents}, {motors} or another unit; else check that the robot file is the one of this robot"


def _torque_units(wiring: Wiring) -> list[str]:
    """Units of the torque of the robot's joints: N·m, and N on slides."""
    units = {"revolute": "N·m", "prismatic": "N"}
    return list(dict.fromkeys(units[joint.kind] for joint in wiring.robot.moving_joints))


def opposing_correlation(samples: Sequence[TrialSamples], robot: Robot) -> float | None:
    """Correlation of the torque with that of the robot's own masses, where that says that all torques are reversed.

    Without friction, nothing else tells a robot from one with negative masses.
    """
    links = compare_with_links(samples, robot)
    if links is None or not links.recognized or not links.clear.any():
        return None
    clear = links.correlations[links.clear]
    return float(np.median(clear)) if clear.max() < 0.0 else None


def _readings(wiring: Wiring) -> Iterator[Reading]:
    """What else the torque columns may hold."""
    robot, moving = wiring.robot, list(wiring.robot.moving)
    n = len(moving)
    names = wiring.names(wiring.torque)

    def columns(kind: str) -> dict[str, Any]:
        return {"columns": dict(zip(names, wiring.names(kind), strict=True))}

    ratios, gains = robot.drive.gear_ratios[moving], robot.drive.gains
    own = robot.moving_coupling.T  # of a coupled wrist, rows have the torques of motors
    if wiring.torque == "tau":
        if gains is not None:
            yield "the columns hold motor currents", gains[moving, None] * own, columns("i")
        if not np.allclose(np.abs(ratios), 1.0):
            yield "it is that of the motor shafts", ratios[:, None] * own, columns("taum")
    if wiring.torque == "i" and gains is not None:
        to_currents = np.asarray(np.linalg.inv(gains[moving, None] * own))
        yield "the columns hold torques, not currents", to_currents, columns("tau")
        scaled = {name: {"column": name, "unit": "mA"} for name in names}
        yield "currents are in mA", 1e-3 * np.eye(n), {"columns": scaled}
        if not np.allclose(np.abs(ratios), 1.0):
            turned = [float(f"{x:.5g}") for x in gains * np.abs(robot.drive.gear_ratios)]
            yield "drive gains are those of the motor shafts", np.diag(np.abs(ratios)), {"drive_gains": turned}
    if wiring.torque == "taum":
        yield "it is that of the joints", np.asarray(np.linalg.inv(ratios[:, None] * own)), columns("tau")
    if wiring.torque != "i":
        rules: dict[str, dict[str, Any]] = {"revolute": {"unit": "mNm"}, "prismatic": {"scale": 1e-3}}
        scaled = {
            name: {"column": name, **rules[joint.kind]} for name, joint in zip(names, robot.moving_joints, strict=True)
        }
        words = " and ".join("N·mm" if unit == "N·m" else "mN" for unit in _torque_units(wiring))
        yield f"it is in {words}", 1e-3 * np.eye(n), {"columns": scaled}


# ----------------------------------------------------------------------------------------------------------------------
# Logs that one robot cannot have made: a payload in some of them, another robot, another day.


def diagnose_agreement(search: HypothesisSearch, logs: Sequence[LogSource]) -> Diagnostic:
    """Whether one model fits each log about as well as a model of its own."""
    if len(logs) < 2:
        return Diagnostic("agreement", "ok", "there is only one log")
    worst = max(search.disagreement)
    largest = max(float(search.shared_and_own_fit(log)[0].residual_share.max()) for log in range(len(logs)))
    if worst < THRESHOLDS.disagreement_warn or largest < THRESHOLDS.min_residual_share:
        return Diagnostic("agreement", "ok", f"one model fits all {len(logs)} logs about as well as each its own")
    odd = search.odd_log()
    shared, own = (fit.residual_share for fit in search.held_out_shared_and_own(odd))
    loss = np.where(
        own < THRESHOLDS.named_residual_share, np.log(shared / own), 0.0
    )  # what no model explains is no loss
    if loss.sum() < THRESHOLDS.disagreement_warn:
        words = "a model of each log alone explains what was held out of it no better than one model of all"
        return Diagnostic("agreement", "ok", words)
    joint = int(np.argmax(loss))
    words = f"{logs[odd].label} disagrees with the other logs"
    if len(logs) == 2:
        words = f"{logs[0].label} and {logs[1].label} disagree"
    change = f"joint {search.joint_names[joint]} keeps {percent(shared[joint])} of its torque"
    remedy = "a load or a tool in one of them, other gains or another robot do that; use logs of one state"
    sure = worst > THRESHOLDS.disagreement_stop and shared[joint] > THRESHOLDS.disagreement_stop_share
    message = f"{words}: with one model {change} instead of {percent(own[joint])}; {remedy}"
    return Diagnostic("agreement", "stop" if sure else "warn", message)


# ----------------------------------------------------------------------------------------------------------------------
# How much of the torque the equations of the robot explain at all.


def diagnose_fit(search: HypothesisSearch, samples: Sequence[TrialSamples]) -> Diagnostic:
    """Whether the robot explains its torque, and what to check where something is wrong that has no name."""
    fit, robot = search.fit, search.robot
    share, worst = fit.total_share, int(np.argmax(fit.residual_rms))
    words = f"the robot's equations leave {percent(share)} of the torque unexplained"
    name = robot.joint_names[worst]
    if search.doubt:
        what = f"something is wrong that these logs cannot name: {words}, and what would explain more is no answer"
        return Diagnostic("fit", _severity_of(fit), f"{what} ({search.doubt}); {_CHECK}")
    if share < THRESHOLDS.poor_residual_share:
        return Diagnostic("fit", "ok", words)
    links = compare_with_links(samples, robot)
    if links is not None and np.all(links.torques < THRESHOLDS.free_torque_share * links.weights):
        small = "the torque is a small part of what gravity takes and gives, as in free swinging"
        return Diagnostic("fit", "warn", f"{words}: {small}; drive the joints, or see dynident oscillation")
    return Diagnostic("fit", _severity_of(fit), f"{words}, most of it at joint {name}; {_CHECK}")


def _severity_of(fit: TrialFit) -> Severity:
    """A stop where no joint has torque that follows from the motion; a joint that sticks does so alone."""
    evaluated = fit.residual_share[fit.residual_share != 1.0]
    hopeless = len(evaluated) > 0 and evaluated.min() > THRESHOLDS.hopeless_residual_share
    return "stop" if hopeless else "warn"


_CHECK = (
    "check that torque and motion are of one run, that the robot file is the one of this robot, that torque columns "
    "hold joint torque (not currents, not torque at the motor side), and the direction of gravity"
)


# ----------------------------------------------------------------------------------------------------------------------
# What the model says about the columns of logs: units, order, signs, scales, clock and gravity.

_CLEAN = {
    "units": "positions are in the units that their columns say",
    "order": "no other order of the joints explains the torque better",
    "sign": "no other sign of a position or a torque explains the torque better",
    "scale": "no other gear ratio or scale of a single column explains the torque better",
    "clock": "no other clock explains the torque better",
    "gravity": "gravity points where the robot file says",
}


def diagnose_columns(
    search: HypothesisSearch, wirings: Sequence[Wiring], logs: Sequence[LogSource]
) -> list[Diagnostic]:
    """One diagnostic for each kind of mistake that was looked for; several where several were found."""
    items: list[Diagnostic] = []
    for name, clean in _CLEAN.items():
        own = [mistake for mistake in search.mistakes if mistake.hypothesis.item == name]
        if name == "sign" and (search.driving or search.either):
            items.append(_driving_diagnostic(search))
            continue
        items += [_mistake_diagnostic(mistake, search, wirings, logs) for mistake in own] or [
            Diagnostic(name, "ok", clean)
        ]
    return items


def _mistake_diagnostic(
    mistake: Mistake, search: HypothesisSearch, wirings: Sequence[Wiring], logs: Sequence[LogSource]
) -> Diagnostic:
    what, wiring = mistake.hypothesis, wirings[mistake.logs[0]]
    before, after = mistake.before.residual_share, mistake.after.residual_share
    best = int(np.argmax(np.log(before / after)))
    change = f"read so, joint {wiring.robot.joint_names[best]} keeps {percent(after[best])} of its torque unexplained"
    words = f"{what.words}: {change} instead of {percent(before[best])}"
    if what.free:
        words += f"; the best factor is {what.size:.3g}"
    if mistake.rivals:
        words += f"; as good: {'; '.join(mistake.rivals)}"
    whole = len(mistake.logs) == len(logs)
    if not whole:
        words += "; the other logs are not like that, so put this one right alone"
    label = "" if whole else ", ".join(logs[i].label for i in mistake.logs)
    severity: Severity = "stop" if mistake.gain > THRESHOLDS.sure_score_gain else "warn"
    fix = _fix(what, search.meanings[mistake.logs[0]], wiring, logs[mistake.logs[0]])
    return Diagnostic(what.item, severity, words, fix, label)


def _driving_diagnostic(search: HypothesisSearch) -> Diagnostic:
    """Friction that drives: a drive that compensates too much of it, or a sign."""
    joints = ", ".join(search.robot.joint_names[j] for j in search.driving)
    what = f"joints {joints}" if joints else "the motion"
    words = f"friction drives {what} instead of braking: drives that compensate too much friction do that"
    if search.either is None:
        return Diagnostic("sign", "warn", f"{words}; the masses of the robot file say that no sign is wrong")
    rivals = f", or {search.either}; these logs cannot tell which"
    return Diagnostic("sign", "warn", f"{words}{rivals}: check the sign by hand, with a push or a known weight")


def _fix(what: Hypothesis, meaning: Hypothesis, wiring: Wiring, log: LogSource) -> dict[str, Any]:
    """Keys of an overlay that correct a mistake, beside those found with it."""
    robot = wiring.robot
    if what.gravity is not None:
        return {"gravity": list(what.gravity)}
    if what.upside_down:
        return {"gravity": [-float(x) + 0.0 for x in robot.gravity]}
    if what.item == "clock":
        return {"columns": {"t": {"column": "t", "scale": float(f"{meaning.clock:.4g}")}}}
    if what.free in ("positions", "both") and wiring.position == "qm":
        return {"gear_ratios": _numbers(robot.drive.gear_ratios / np.diag(meaning.positions))}
    if what.free == "torques" and wiring.torque == "i" and robot.drive.gains is not None:
        return {"drive_gains": _numbers(robot.drive.gains * np.diag(meaning.torques))}
    first = next(iter(log.blocks()))
    rules: dict[str, Any] = {}
    for kind, total, wanted in (
        (wiring.position, meaning.positions, what.positions),
        (f"d{wiring.position}", meaning.positions, what.positions),
        (wiring.torque, meaning.torques, what.torques),
    ):
        if first.has(kind, robot):
            rules |= column_rules(wiring.names(kind), total, wanted)
    return {"columns": dict(sorted(rules.items()))}


def _numbers(values: Any) -> list[float]:
    return [float(f"{x:.5g}") for x in values]
