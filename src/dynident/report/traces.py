"""Torque over time as data for the page's script: whole numbers of 16 bits, so that a page stays small."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.estimate.accuracy import Trace
from dynident.estimate.fit import Fit
from dynident.report.figures import band_halves
from dynident.report.markup import Html
from dynident.report.plots import shown_time

MOST_BYTES = 2_000_000  # of all traces of a page
_LEVELS = 32000  # on each side of the middle


def traces_data(estimate: Fit, traces: Mapping[str, Trace]) -> Html:
    """What the plots of some logs show, from which the script draws a part of it larger."""
    joints = estimate.robot.joint_names
    halves = band_halves(estimate)
    points = int(MOST_BYTES / (len(traces) * (4 + 4 * len(joints)) * 4 / 3))
    logs = []
    for trace in traces.values():
        kept = slice(None, None, max(1, -(-len(trace.time) // points)))
        time = shown_time(trace.time)[kept]
        rows = zip(trace.measured[kept].T, trace.predicted[kept].T, halves.tolist(), strict=True)
        start = float(time[0]) if len(time) else 0.0
        logs.append({"start": start, "t": _text(time - start, "<f4"), "joints": [_joint(*row) for row in rows]})
    text = json.dumps({"joints": list(joints), "logs": logs}, allow_nan=False).replace("<", "\\u003c")
    return Html(f'<script type="application/json" id="traces">{text}</script>\n')


def _joint(measured: Array, predicted: Array, half: float) -> dict[str, Any]:
    """Measured and predicted torque of a joint on a common scale."""
    both = np.nan_to_num(np.stack([measured, predicted]))
    low, high = (float(both.min()), float(both.max())) if both.size else (0.0, 0.0)
    middle, step = 0.5 * (low + high), max(0.5 * (high - low), 1e-12) / _LEVELS
    m, p = (_text(np.rint((row - middle) / step), "<i2") for row in both)
    return {"middle": middle, "step": step, "half": half, "m": m, "p": p}


def _text(values: Array, kind: str) -> str:
    return base64.b64encode(values.astype(kind).tobytes()).decode()
