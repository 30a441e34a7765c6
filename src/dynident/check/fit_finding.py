"""How much of the torque the equations of the robot explain at all."""

from __future__ import annotations

import numpy as np

from dynident.check.finding import Finding, percent
from dynident.check.trial import Left

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
