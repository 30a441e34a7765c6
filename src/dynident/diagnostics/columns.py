"""Whether torque has the size that the robot's own values make likely: currents, motor torque and units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.arrays import Array, on_one_thread
from dynident.diagnostics.hypotheses import Wiring, column_rules
from dynident.diagnostics.hypothesis_search import SURE, Belief, Explained, Mistake, Search
from dynident.diagnostics.trial import Left, Sample
from dynident.dynamics.evaluate import inverse_dynamics
from dynident.estimate.records import Finding, Verdict, percent
from dynident.logs.log import LogSource

_FITS = 0.5  # correlation with the robot's own torque from which a joint's slope counts
_LIKELY = 3.0  # factor by which values of a file may be off
_RIGHT = 2.0  # factor within which an explanation must bring the torque
_FRICTION = 0.02  # [rad/s] speed over which the sign of friction changes


@dataclass(frozen=True, eq=False)
class _Reading:
    """Another meaning of the torque columns: the torques of the rows then, from those as read (n, n), and the fix."""

    words: str
    meant: Array
    fix: dict[str, Any]


def torque_finding(samples: Sequence[Sample], wiring: Wiring) -> tuple[Finding, Array]:
    """Compare the torque of logs with that of the robot's own values.

    Args:
        samples: Moments of the logs.
        wiring: What their channels are.

    Returns:
        The item, and the torques of the rows as they are meant from those as read, (n_joints, n_joints).
    """
    finding, reading = _judged(samples, wiring)
    return finding, np.eye(len(wiring.robot.joint_names)) if reading is None else reading.meant


def opposed(samples: Sequence[Sample], wiring: Wiring) -> float | None:
    """Correlation of the torque with that of the robot's own masses, where that says that all torques are reversed.

    Without friction, nothing else tells a robot from one with negative masses.
    """
    if not any(value for name, value in wiring.robot.value_set().items() if name[0] in "MXYZ"):
        return None
    told = [one for one in _compared(samples, wiring)[1] if abs(one) > _FITS]
    return float(np.median(told)) if told and max(told) < 0.0 else None


def _judged(samples: Sequence[Sample], wiring: Wiring) -> tuple[Finding, _Reading | None]:
    robot = wiring.robot
    if not any(value for name, value in robot.value_set().items() if name[0] in "MXYZ"):
        return Finding("torque", "ok", "the robot file has no masses, so the size of the torque cannot be judged"), None
    slopes = _slopes(samples, wiring)
    told = ~np.isnan(slopes)
    if not told.any():
        return Finding(
            "torque", "ok", "the masses of the robot file explain no joint well enough to judge its torque"
        ), None
    size = float(np.exp(np.median(np.log(slopes[told]))))
    if 1.0 / _LIKELY < size < _LIKELY:
        return Finding("torque", "ok", f"torque is {size:.2g} times that of the robot's own masses"), None
    words = f"torque is {size:.2g} times that of the robot's own masses"
    best = min(_readings(wiring), key=lambda one: _miss(slopes * np.diag(one.meant)))
    if _miss(slopes * np.diag(best.meant)) < np.log(_RIGHT):
        return Finding("torque", "stop", f"{words}; it fits if {best.words}", best.fix), best
    verdict: Verdict = "stop" if not 0.02 < size < 50.0 else "warn"
    what = "drive gains" if wiring.torque == "i" else "unit of the torque columns"
    return Finding("torque", verdict, f"{words}; check the {what}, or the masses of the robot file"), None


def _miss(slopes: Array) -> float:
    """Typical logarithm of the slopes."""
    return float(np.median(np.abs(np.log(np.abs(slopes[~np.isnan(slopes)])))))


def _slopes(samples: Sequence[Sample], wiring: Wiring) -> Array:
    """(n_joints,) torque over that of the robot's own links, friction aside; NaN where that tells nothing."""
    slopes, correlations = _compared(samples, wiring)
    return np.where(correlations > _FITS, slopes, np.nan)


@on_one_thread
def _compared(samples: Sequence[Sample], wiring: Wiring) -> tuple[Array, Array]:
    """Slope and correlation of each joint's torque with that of the robot's own links, friction aside, (n_joints,)."""
    q, dq, ddq, tau = (np.concatenate([getattr(one, name) for one in samples]) for name in ("q", "dq", "ddq", "tau"))
    own = inverse_dynamics(wiring.robot, q, dq, ddq, "rigid,Ia")
    slopes, correlations = np.zeros(tau.shape[1]), np.zeros(tau.shape[1])
    for joint in range(tau.shape[1]):
        speed = dq[:, joint] / wiring.robot.radians[joint]
        beside = np.stack([np.ones_like(speed), speed, np.tanh(speed / _FRICTION)], axis=1)
        left = [x - beside @ np.linalg.lstsq(beside, x, rcond=None)[0] for x in (tau[:, joint], own[:, joint])]
        sizes = [float(np.linalg.norm(x)) for x in left]
        if min(sizes) > 1e-9:
            correlations[joint] = float(left[0] @ left[1]) / (sizes[0] * sizes[1])
            slopes[joint] = float(left[0] @ left[1]) / sizes[1] ** 2
    return slopes, correlations


def _readings(wiring: Wiring) -> Iterator[_Reading]:
    """What else the torque columns may hold."""
    robot, moving = wiring.robot, list(wiring.robot.moving)
    n = len(moving)
    names = wiring.names(wiring.torque)

    def columns(kind: str) -> dict[str, Any]:
        return {"columns": dict(zip(names, wiring.names(kind), strict=True))}

    ratios, gains = robot.drive.gear_ratios[moving], robot.drive.gains
    own = robot.coupling[np.ix_(moving, moving)].T  # of a coupled wrist, rows have the torques of motors
    if wiring.torque == "tau":
        if gains is not None:
            yield _Reading("the columns hold motor currents", gains[moving, None] * own, columns("i"))
        if not np.allclose(np.abs(ratios), 1.0):
            yield _Reading("it is that of the motor shafts", ratios[:, None] * own, columns("taum"))
    if wiring.torque == "i" and gains is not None:
        yield _Reading(
            "the columns hold torques, not currents",
            np.asarray(np.linalg.inv(gains[moving, None] * own)),
            columns("tau"),
        )
        scaled = {name: {"column": name, "unit": "mA"} for name in names}
        yield _Reading("currents are in mA", 1e-3 * np.eye(n), {"columns": scaled})
        if not np.allclose(np.abs(ratios), 1.0):
            turned = [float(f"{x:.5g}") for x in gains * np.abs(robot.drive.gear_ratios)]
            yield _Reading(
                "drive gains are those of the motor shafts", np.diag(np.abs(ratios)), {"drive_gains": turned}
            )
    if wiring.torque == "taum":
        yield _Reading("it is that of the joints", np.asarray(np.linalg.inv(ratios[:, None] * own)), columns("tau"))
    if wiring.torque != "i":
        scaled = {name: {"column": name, "unit": "mNm"} for name in names}
        yield _Reading("it is in N·mm", 1e-3 * np.eye(n), {"columns": scaled})


# ----------------------------------------------------------------------------------------------------------------------
# Logs that one robot cannot have made: a load in some of them, another robot, another day.

_TOLD, _SURE = 3.0, 5.0  # in the sum of logarithms; weak data has up to 2, a load of a few kilograms 7 and more
_LEAST, _MUCH = 0.02, 0.12  # share of a joint's torque that one model of all logs leaves: exact data tells of less


def agreement_finding(search: Search, explained: Explained, logs: Sequence[LogSource]) -> Finding:
    """Whether one model fits each log about as well as a model of its own."""
    if len(logs) < 2:
        return Finding("agreement", "ok", "there is only one log")
    worst = max(explained.apart)
    matters = max(float(search.with_and_without(explained.beliefs, log)[0].shares.max()) for log in range(len(logs)))
    if worst < _TOLD or matters < _LEAST:
        return Finding("agreement", "ok", f"one model fits all {len(logs)} logs about as well as each its own")
    odd = search.odd_one(explained.beliefs)
    together, own = search.with_and_without(explained.beliefs, odd)
    joint = int(np.argmax(together.shares / own.shares))
    name = search.joint_names[joint]
    words = f"{logs[odd].label} disagrees with the other logs"
    if len(logs) == 2:
        words = f"{logs[0].label} and {logs[1].label} disagree"
    seen = f"joint {name} keeps {percent(together.shares[joint])} of its torque instead of {percent(own.shares[joint])}"
    remedy = "a load or a tool in one of them, other gains or another robot do that; use logs of one state"
    sure = worst > _SURE and together.shares[joint] > _MUCH
    return Finding("agreement", "stop" if sure else "warn", f"{words}: with one model {seen}; {remedy}")


# ----------------------------------------------------------------------------------------------------------------------
# How much of the torque the equations of the robot explain at all.

POOR = 0.25  # share of all torque: sound logs of real arms keep a tenth at most
_NOTHING = 0.9  # the same, from which torque and motion do not belong together; outliers alone make 0.8 of it


def share_left(left: Left) -> float:
    """Share of the torque of all joints together that stays unexplained."""
    torque = left.deviations / left.shares
    return float(np.linalg.norm(left.deviations) / max(float(np.linalg.norm(torque)), 1e-300))


def fit_finding(left: Left, joints: tuple[str, ...]) -> Finding:
    """Whether the robot explains its torque."""
    share, worst = share_left(left), int(np.argmax(left.deviations))
    words = f"the robot's equations leave {percent(share)} of the torque unexplained"
    if share < POOR:
        return Finding("fit", "ok", words)
    where = f"{words}, most of it at joint {joints[worst]}"
    remedy = "torque and motion of one run, and the robot file of this robot, are needed"
    return Finding("fit", "stop" if share > _NOTHING else "warn", f"{where}; {remedy}")


# ----------------------------------------------------------------------------------------------------------------------
# What the model says about the columns of logs: units, order, signs, scales, clock and gravity.

ITEMS = {
    "units": "positions are in the units that their columns say",
    "order": "no other order of the joints explains the torque better",
    "sign": "no other sign of a position or a torque explains the torque better",
    "scale": "no other gear ratio or scale of a single column explains the torque better",
    "clock": "no other clock explains the torque better",
    "gravity": "gravity points where the robot file says",
}


def column_findings(explained: Explained, wirings: Sequence[Wiring], logs: Sequence[LogSource]) -> list[Finding]:
    """One item for each kind of mistake that was looked for; several where several were found."""
    found = {name: [one for one in explained.mistakes if one.explanation.item == name] for name in ITEMS}
    items: list[Finding] = []
    for name, clean in ITEMS.items():
        items += [_finding(one, explained, wirings, logs) for one in found[name]] or [Finding(name, "ok", clean)]
    return items


def _finding(one: Mistake, explained: Explained, wirings: Sequence[Wiring], logs: Sequence[LogSource]) -> Finding:
    wiring, belief = wirings[one.logs[0]], explained.beliefs[one.logs[0]]
    gains = np.log(one.before.shares / one.after.shares)
    best = int(np.argmax(gains))
    joint = wiring.robot.joint_names[best]
    seen = f"read so, joint {joint} keeps {percent(one.after.shares[best])} of its torque unexplained"
    words = f"{one.explanation.words}: {seen} instead of {percent(one.before.shares[best])}"
    if one.explanation.free:
        words += f"; the best factor is {one.explanation.size:.3g}"
    if one.rivals:
        words += f"; as good: {'; '.join(one.rivals)}"
    whole = len(one.logs) == len(logs)
    if not whole:
        words += "; the other logs are not like that, so put this one right alone"
    verdict: Verdict = "stop" if one.gain > SURE else "warn"
    label = "" if whole else ", ".join(logs[i].label for i in one.logs)
    if (left := share_left(explained.left)) > POOR:  # the best of many bad explanations is no explanation
        doubt = f"; but {percent(left)} of the torque stays unexplained even so, so this may not be it"
        return Finding(one.explanation.item, "warn", words + doubt, log=label)
    fix = _fix(one, belief, wiring, logs[one.logs[0]])
    return Finding(one.explanation.item, verdict, words, fix, label)


def _fix(one: Mistake, belief: Belief, wiring: Wiring, log: LogSource) -> dict[str, Any]:
    """Keys of an overlay that put a mistake right, beside those found with it."""
    what, robot = one.explanation, wiring.robot
    if what.gravity is not None:
        return {"gravity": list(what.gravity)}
    if what.upside_down:
        return {"gravity": [-float(x) + 0.0 for x in robot.gravity]}
    if what.item == "clock":
        return {"columns": {"t": {"column": "t", "scale": float(f"{belief.clock:.4g}")}}}
    if what.free in ("positions", "both") and wiring.position == "qm":
        return {"gear_ratios": _numbers(robot.drive.gear_ratios / np.diag(belief.positions))}
    if what.free == "torques" and wiring.torque == "i" and robot.drive.gains is not None:
        return {"drive_gains": _numbers(robot.drive.gains * np.diag(belief.torques))}
    first = next(iter(log.blocks()))
    rules: dict[str, Any] = {}
    for kind, total, touched in (
        (wiring.position, belief.positions, what.positions),
        (f"d{wiring.position}", belief.positions, what.positions),
        (wiring.torque, belief.torques, what.torques),
    ):
        if first.has(kind, robot):
            rules |= column_rules(wiring.names(kind), total, touched)
    return {"columns": dict(sorted(rules.items()))}


def _numbers(values: Any) -> list[float]:
    return [float(f"{x:.5g}") for x in values]
