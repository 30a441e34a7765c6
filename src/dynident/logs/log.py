"""`Log`: a recording with named channels, and the signals of a robot in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from dynident.checks import Array, frozen
from dynident.errors import DynidentError, InputError
from dynident.records import ReadOnlyDict
from dynident.robot.model import Robot

Role = Literal["train", "validation"]


class LogError(DynidentError):
    """A log that cannot be used.

    Args:
        source: File the log came from.
        problem: The column or line, what was expected and what to do.
    """

    def __init__(self, source: str, problem: str) -> None:
        self.source = source
        super().__init__(f"{source}: {problem}")


@dataclass(frozen=True, eq=False)
class Log:
    """A recording: time and channels in SI units.

    Attributes:
        source: File it came from.
        digest: Hash of the file's content.
        time: (n_samples,) [s].
        channels: Values by name (q1, taum3, ...), (n_samples,) each.
        unused: Columns of the file that mean nothing to dynident.
        role: What it is for.
        label: Name in reports; default the source.
    """

    source: str
    digest: str
    time: Array
    channels: Mapping[str, Array]
    unused: tuple[str, ...] = ()
    role: Role = "train"
    label: str = field(default="")

    def __post_init__(self) -> None:
        object.__setattr__(self, "time", frozen(self.time))
        object.__setattr__(self, "channels", ReadOnlyDict({k: frozen(v) for k, v in self.channels.items()}))
        object.__setattr__(self, "label", self.label or self.source)

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.time)

    @property
    def duration(self) -> float:
        """From first to last sample [s]."""
        return float(self.time[-1] - self.time[0])

    @property
    def rate(self) -> float:
        """Median sampling rate [Hz]."""
        return 1.0 / float(np.median(np.diff(self.time)))

    def has(self, kind: str, robot: Robot) -> bool:
        """Whether every moving joint has a channel of this kind."""
        return all(name in self.channels for name in channel_names(kind, robot))

    def array(self, kind: str, robot: Robot) -> Array:
        """The channels of one kind in the order of the robot's moving joints, (n_samples, n_joints).

        Raises:
            LogError: Naming the columns that are missing.
        """
        names = channel_names(kind, robot)
        missing = [name for name in names if name not in self.channels]
        if missing:
            raise LogError(self.source, f"has no column {', '.join(missing)}; {self._columns_hint()}")
        return np.column_stack([self.channels[name] for name in names])

    def window(self, start: float | None = None, stop: float | None = None) -> Log:
        """The samples with start <= t <= stop."""
        keep = np.ones(len(self), dtype=bool)
        if start is not None:
            keep &= self.time >= start
        if stop is not None:
            keep &= self.time <= stop
        if not keep.any():
            span = f"{self.time[0]:g} to {self.time[-1]:g} s"
            raise InputError(f"{self.source}: no sample lies between {start} and {stop} s; the log has {span}")
        return self.samples(keep)

    def samples(self, keep: Array | slice | Sequence[int]) -> Log:
        """Only some samples, given as a mask, a slice or indices."""
        return replace(
            self, time=self.time[keep], channels={name: values[keep] for name, values in self.channels.items()}
        )

    def _columns_hint(self) -> str:
        known = ", ".join(self.channels) or "none that dynident knows"
        spare = f"; not understood: {', '.join(self.unused[:20])} (map them in a column file)" if self.unused else ""
        return f"columns: {known}{spare}"


def channel_names(kind: str, robot: Robot) -> list[str]:
    """Names of the channels of one kind for a robot's moving joints: q1, q2, ..."""
    return [f"{kind}{name.removeprefix('q')}" for name in robot.position_names]


def joint_positions(log: Log, robot: Robot) -> Array:
    """Joint positions, from q or through the gears from qm, (n_samples, n_joints) [rad or m]."""
    if log.has("q", robot) or not log.has("qm", robot):
        return log.array("q", robot)
    return _from_motors(log.array("qm", robot), robot) + _zero(robot)


def joint_speeds(log: Log, robot: Robot) -> Array | None:
    """Measured joint speeds, from dq or dqm; None if the log has neither."""
    if log.has("dq", robot):
        return log.array("dq", robot)
    return _from_motors(log.array("dqm", robot), robot) if log.has("dqm", robot) else None


def has_torque(log: Log, robot: Robot) -> bool:
    """Whether the log says anything about torque."""
    return any(log.has(kind, robot) for kind in ("tau", "taum", "i"))


def row_torques(log: Log, robot: Robot) -> Array:
    """Torque at the actuated coordinates, from tau, taum or current and drive gains, (n_samples, n_joints)."""
    moving = list(robot.moving)
    if log.has("tau", robot):
        own = robot.coupling[np.ix_(moving, moving)]
        return np.asarray(np.linalg.solve(own.T, log.array("tau", robot).T).T, dtype=np.float64)
    if log.has("taum", robot):
        return log.array("taum", robot) * robot.drive.gear_ratios[moving]
    if log.has("i", robot):
        if robot.drive.gains is None:
            raise LogError(
                log.source,
                f"has motor currents, but robot {robot.name} has no drive_gains; give them in its file or an overlay",
            )
        return log.array("i", robot) * robot.drive.gains[moving]
    return log.array("tau", robot)


def _from_motors(values: Array, robot: Robot) -> Array:
    """Joint quantities from motor-shaft ones: T^-1 (qm / gear ratio)."""
    if robot.locked:
        raise InputError("motor-side logs need a robot without locked joints; log the joint side or unlock them")
    return np.asarray(np.linalg.solve(robot.coupling, (values / robot.drive.gear_ratios).T).T, dtype=np.float64)


def _zero(robot: Robot) -> Array:
    return robot.zero[list(robot.moving)]
