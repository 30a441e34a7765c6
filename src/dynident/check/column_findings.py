"""What the model says about the columns of logs: units, order, signs, scales, clock and gravity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dynident.check.explain import SURE, Belief, Explained, Mistake
from dynident.check.explanations import Wiring, column_rules
from dynident.check.finding import Finding, Verdict, percent
from dynident.check.fit_finding import POOR, share_left
from dynident.logs.source import LogSource

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
