"""Logs that one robot cannot have made: a load in some of them, another robot, another day."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.check.explain import Explained, Search
from dynident.check.finding import Finding, percent
from dynident.logs.source import LogSource

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
