"""`StreamState`: what is known while a stream goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import ArrayLike

from dynident.online.sample import Sample
from dynident.online.stream_counters import Counters


class Identifier(Protocol):
    """What a stream needs of an on-line estimator; `OnlineIdentifier` is one."""

    def update(self, sample: Sample) -> None:
        """Take in one sample."""
        ...

    def update_many(self, time: ArrayLike, q: ArrayLike, tau: ArrayLike, dq: ArrayLike | None = None) -> None:
        """Take in successive samples."""
        ...

    def state(self) -> Any:
        """What is known by now: an object with `as_dict`."""
        ...

    def checkpoint(self) -> bytes:
        """All that it remembers, as `load` reads it from a file."""
        ...


@dataclass(frozen=True)
class StreamState:
    """The state of an estimator in the middle of a stream, or at its end.

    Attributes:
        estimate: State of the estimator: parameters, deviations, verdict, torque error, payload.
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
