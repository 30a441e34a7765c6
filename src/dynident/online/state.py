"""`OnlineState`: what is known at an instant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dynident.arrays import Array, Mask, finite_or_none
from dynident.display import brief
from dynident.online.changes import Change
from dynident.online.monitor import MotionVerdict
from dynident.online.payload import PayloadState
from dynident.physical.result import PhysicalParameters


@brief
@dataclass(frozen=True, eq=False)
class OnlineState:
    """Parameters, standard deviations and a verdict at an instant.

    Attributes:
        time: Stamp of the last sample [s].
        delay: By how much the rows lag behind it, the filters' delay [s].
        names: Of the parameters.
        units: Of the parameters.
        values: (k,) as estimated by data and prior.
        std: (k,) standard deviations; infinite where nothing is known.
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
    verdict: MotionVerdict
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
            "time": finite_or_none(self.time),
            "delay": self.delay,
            "samples": self.samples,
            "rows": self.rows,
            "verdict": {"enough": self.verdict.enough, "reason": self.verdict.reason},
            "parameters": [
                {"name": name, "value": float(x), "std": finite_or_none(s), "unit": unit, "determined": bool(known)}
                for name, x, s, unit, known in zip(
                    self.names, self.values, self.std, self.units, self.determined, strict=True
                )
            ],
            "torque_error": [
                {"joint": joint, "rms": finite_or_none(rms), "relative": finite_or_none(share)}
                for joint, rms, share in zip(self.joints, self.torque_error, self.relative_error, strict=True)
            ],
            "payload": None if self.payload is None else self.payload.as_dict(),
            "changes": [change.as_dict() for change in self.changes],
            "counters": dict(self.counters),
            "notes": list(self.notes),
        }


# ----------------------------------------------------------------------------------------------------------------------
# `Sample`: what a robot reports at one instant.


@brief
@dataclass(frozen=True, eq=False)
class Sample:
    """One reading of a robot's joints.

    Attributes:
        time: Stamp [s].
        q: (n_joints,) positions of the moving joints [rad or m].
        tau: (n_joints,) torque at the actuated coordinates, referred to the joint side [N·m or N].
        dq: (n_joints,) measured velocities [rad/s or m/s], or None: they are then derived from the positions.
    """

    time: float
    q: Array
    tau: Array
    dq: Array | None = None


# ----------------------------------------------------------------------------------------------------------------------
# `Counters`: what became of everything that a stream has received.


@dataclass
class Counters:
    """Packets or rows of a stream, by what became of them; a source and the stream that reads it count in one.

    Attributes:
        received: All that came.
        used: Samples that reached the estimator.
        malformed: Not JSON, wrong lengths, numbers that are not finite or beyond reason.
        late: Older than a sample that came before, or with a stamp that is far off.
        repeated: With the stamp of a sample that came before.
        dropped: Never came, as gaps in the sequence numbers or in the stamps show.
        overrun: Came, but had to give way to newer ones because the estimator could not keep up.
        restarts: Times the sender's clock started again.
        problem: What was wrong with the last malformed one; empty without any.
    """

    received: int = 0
    used: int = 0
    malformed: int = 0
    late: int = 0
    repeated: int = 0
    dropped: int = 0
    overrun: int = 0
    restarts: int = 0
    problem: str = ""

    def refuse(self, problem: object, count: int = 1) -> None:
        """Count malformed ones."""
        self.malformed += count
        self.problem = str(problem)[:200]  # a packet may have put anything into it

    @property
    def lost(self) -> int:
        """Samples that were sent and did not reach the estimator in time: dropped on the way or overrun here."""
        return self.dropped + self.overrun

    def as_dict(self) -> dict[str, int | str]:
        """For JSON."""
        return asdict(self)


# ----------------------------------------------------------------------------------------------------------------------
# `StreamState`: what is known while a stream goes on.


@brief
@dataclass(frozen=True)
class StreamState:
    """The state of an estimator in the middle of a stream, or at its end.

    Attributes:
        estimate: State of the estimator: parameters, standard deviations, verdict, torque error, payload.
        counters: What became of all that was received.
        source: Where the samples come from.
        time: Stamp of the last sample used [s]; None before the first.
        elapsed: Real time since the stream was opened [s].
        latency: Time from the arrival of a sample to the updated estimate [s]: median, most (99.9 %) and longest; None
            for a source whose samples were at hand.
        final: Whether this is the last state of the stream.
    """

    estimate: Any
    counters: Counters
    source: str
    time: float | None
    elapsed: float
    latency: Mapping[str, float] | None = None
    final: bool = False

    def as_dict(self) -> dict[str, Any]:
        """For JSON: what the estimator says, and about the stream."""
        own = dict(self.estimate.as_dict())
        own.pop("time", None)
        if "counters" in own:  # of the filters, behind those of the stream
            own["filters"] = own.pop("counters")
        return {
            "source": self.source,
            "time": self.time,
            "elapsed": round(self.elapsed, 3),
            "final": self.final,
            **own,
            "counters": self.counters.as_dict(),
            "latency": None if self.latency is None else dict(self.latency),
        }
