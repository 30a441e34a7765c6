"""`Source`: where samples come from; `Samples`: some that came together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array, Mask
from dynident.display import brief
from dynident.errors import DynidentError
from dynident.logs.log import Log, joint_positions, joint_velocities, row_torques
from dynident.online.state import Counters
from dynident.robot.model import Robot

POLL = 0.1  # [s] after which a source that has nothing says so


class SourceError(DynidentError):
    """A source of samples that cannot be used.

    Args:
        source: The source as it was given.
        problem: What is wrong, what was expected and what to do.
    """

    def __init__(self, source: str, problem: str) -> None:
        self.source = source
        super().__init__(f"{source}: {problem}")


@brief
@dataclass(frozen=True, eq=False)
class Samples:
    """Successive samples.

    Attributes:
        time: (n_samples,) stamps [s], in the order of arrival.
        q: (n_samples, n_joints) positions of the moving joints [rad or m].
        tau: (n_samples, n_joints) torque at the actuated coordinates, referred to the joint side [N·m or N].
        dq: (n_samples, n_joints) measured velocities, None if any of the samples has none.
        sequence: (n_samples,) numbers by the sender, -1 where it gives none; None if there is no such thing.
        arrived: (n_samples,) when each was received, on the clock of `time.perf_counter` [s]; None if it was at hand.
    """

    time: Array
    q: Array
    tau: Array
    dq: Array | None = None
    sequence: NDArray[np.int64] | None = None
    arrived: Array | None = None

    @staticmethod
    def of_signals(time: Array, values: Array, n_joints: int, *others: Any) -> Samples:
        """Samples from (n_samples, width) positions, torques and perhaps velocities side by side."""
        n = n_joints
        dq = values[:, 2 * n :] if values.shape[1] > 2 * n else None
        return Samples(time, values[:, :n], values[:, n : 2 * n], dq, *others)

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.time)

    def chosen(self, places: slice | Sequence[int] | Mask) -> Samples:
        """Only some of the samples."""
        own = (self.time, self.q, self.tau, self.dq, self.sequence, self.arrived)
        return Samples(*(None if values is None else values[places] for values in own))  # type: ignore[arg-type]


def signals_of(log: Log, robot: Robot) -> Array:
    """(n_samples, width) positions, torques and, where a log has them, velocities side by side."""
    parts = [joint_positions(log, robot), row_torques(log, robot)]
    velocities = joint_velocities(log, robot)
    return np.hstack(parts if velocities is None else [*parts, velocities])


@runtime_checkable
class Source(Protocol):
    """Somewhere that samples come from; one that inherits from it has nothing to skip and nothing to give back.

    Attributes:
        label: What messages call it.
        tally: Counts what it receives and what of that is malformed.
    """

    label: str
    tally: Counters

    def blocks(self) -> Iterator[Samples | None]:
        """Samples as they come; None at least every 0.1 s while there are none, so that the caller can see to others.

        A source that is waited for in vain goes on for ever; one that is read ends.
        """
        ...

    def skip(self, until: float) -> None:
        """Leave out samples with stamps up to this [s], which an earlier run has seen; a live source has none."""
        return

    def close(self) -> None:
        """Give back sockets, threads and files; may be called at any time and more than once."""
        return
