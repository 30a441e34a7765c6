"""`OnlineState`: what is known at an instant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.arrays import Array, Mask
from dynident.estimate.physical_result import PhysicalParameters
from dynident.online.changes import Change
from dynident.online.payload import PayloadState
from dynident.online.verdict import Verdict


@dataclass(frozen=True, eq=False)
class OnlineState:
    """Parameters, deviations and a verdict at an instant.

    Attributes:
        time: Stamp of the last sample [s].
        delay: By how much the rows lag behind it, the filters' delay [s].
        names: Of the parameters.
        units: Of the parameters.
        values: (k,) as estimated by data and prior.
        std: (k,) deviations; infinite where nothing is known.
        determined: (k,) whether the data alone determines each.
        verdict: Whether the motion supports the result, or the reason why not.
        joints: Names of the joints.
        torque_error: (n_joints,) root mean square error over the last seconds of motion [N·m or N].
        relative_error: (n_joints,) the same as a share of the torque; NaN before any motion.
        payload: What the tool carries; None where that was not asked for.
        changes: Payloads picked and released so far.
        samples: Samples seen.
        rows: Equations behind the values; old ones count less.
        counters: Samples that were late, repeated, filled in or dropped as glitches; jumps, and restarts of filters.
        physical: Physical parameters nearest to an estimate of a while ago; None where not asked for or not ready.
        physical_time: Stamp of that estimate [s].
        notes: What a reader should know about the model.
    """

    time: float
    delay: float
    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Array
    std: Array
    determined: Mask
    verdict: Verdict
    joints: tuple[str, ...]
    torque_error: Array
    relative_error: Array
    payload: PayloadState | None
    changes: tuple[Change, ...]
    samples: int
    rows: float
    counters: Mapping[str, int]
    physical: PhysicalParameters | None = None
    physical_time: float | None = None
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON; what is not known is None."""
        return {
            "time": _plain(self.time),
            "delay": self.delay,
            "samples": self.samples,
            "rows": self.rows,
            "verdict": {"enough": self.verdict.enough, "reason": self.verdict.reason},
            "parameters": [
                {"name": name, "value": float(x), "std": _plain(s), "unit": unit, "determined": bool(known)}
                for name, x, s, unit, known in zip(
                    self.names, self.values, self.std, self.units, self.determined, strict=True
                )
            ],
            "torque_error": [
                {"joint": joint, "rms": _plain(rms), "relative": _plain(share)}
                for joint, rms, share in zip(self.joints, self.torque_error, self.relative_error, strict=True)
            ],
            "payload": None if self.payload is None else self.payload.as_dict(),
            "changes": [change.as_dict() for change in self.changes],
            "counters": dict(self.counters),
            "notes": list(self.notes),
        }


def _plain(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
