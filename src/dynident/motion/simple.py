"""Sinusoids and steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence as Items
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, ReadOnlyDict
from dynident.display import brief
from dynident.errors import InputError, UnknownNameError
from dynident.motion.point_to_point import PointToPoint
from dynident.motion.trajectory import State, Trajectory, positive, row


@brief
@dataclass(frozen=True, kw_only=True, eq=False)
class Sinusoid(Trajectory):
    r"""One sinusoid per joint that begins at rest.

    .. math:: q_j = q_{0,j} + \tfrac{A_j}{2}\,(1 - \cos 2\pi f_j t)

    Khosla & Kanade 1987, section 5. Velocity is zero at the start, acceleration is not.

    Attributes:
        start: (n_joints,) position at the start [rad or m].
        amplitude: (n_joints,) how far each joint goes, A [rad or m].
        frequency: (n_joints,) f [Hz].
        length: Duration [s].
    """

    kind: ClassVar[str] = "sinusoid"
    start: Array
    amplitude: Array
    frequency: Array
    length: float

    def __post_init__(self) -> None:
        start = row(self.start, "start")
        amplitude = row(self.amplitude, "amplitude", len(start))
        frequency = row(self.frequency, "frequency", len(start))
        if (frequency <= 0.0).any():
            raise InputError("every frequency must be positive [Hz]")
        length = positive(self.length, "length")
        self._assign(start=start, amplitude=amplitude, frequency=frequency, length=length)
        super().__post_init__()

    @property
    def duration(self) -> float:
        """Length [s]."""
        return self.length

    @property
    def n_joints(self) -> int:
        """One per amplitude."""
        return len(self.amplitude)

    def _inside(self, t: Array) -> State:
        w = 2.0 * np.pi * self.frequency
        half = 0.5 * self.amplitude
        phase = t[:, None] * w
        sine, cosine = np.sin(phase), np.cos(phase)
        return self.start + half * (1.0 - cosine), half * w * sine, half * w**2 * cosine


@brief
@dataclass(frozen=True, kw_only=True, eq=False)
class Step(Trajectory):
    """A jump of the position at one instant: a set-point for a controller, not a motion that a joint can make.

    Attributes:
        start: (n_joints,) position before [rad or m].
        stop: (n_joints,) position from that instant on.
        at: The instant [s].
        length: Duration [s].
    """

    kind: ClassVar[str] = "step"
    start: Array
    stop: Array
    at: float
    length: float

    def __post_init__(self) -> None:
        start = row(self.start, "start")
        self._assign(start=start, stop=row(self.stop, "stop", len(start)), length=positive(self.length, "length"))
        if isinstance(self.at, str | bool) or not 0.0 <= self.at <= self.length:
            raise InputError(f"at is {self.at}; expected a time between 0 and the length, {self.length:g} s")
        self._assign(at=float(self.at))
        super().__post_init__()

    @property
    def duration(self) -> float:
        """Length [s]."""
        return self.length

    @property
    def n_joints(self) -> int:
        """One per position."""
        return len(self.start)

    def _inside(self, t: Array) -> State:
        q = np.where((t >= self.at)[:, None], self.stop, self.start)
        return q, np.zeros_like(q), np.zeros_like(q)


# ----------------------------------------------------------------------------------------------------------------------
# Motions one after another, and motions of some joints while the others are held.

_GAP = 1e-9  # [rad or m] a join may have, from rounding


@brief
@dataclass(frozen=True, kw_only=True, eq=False)
class Sequence(Trajectory):
    """Motions one after another; each begins where the one before ends.

    Attributes:
        parts: The motions.
    """

    kind: ClassVar[str] = "sequence"
    parts: tuple[Trajectory, ...]

    def __post_init__(self) -> None:
        parts = tuple(self.parts)
        if not parts or not all(isinstance(part, Trajectory) for part in parts):
            raise InputError("a sequence needs trajectories, at least one")
        names = [part.joints for part in parts if part.joints]
        self._assign(parts=parts, joints=self.joints or (names[0] if names else ()))
        super().__post_init__()
        for i, part in enumerate(parts):
            if part.n_joints != parts[0].n_joints or (part.joints and part.joints != self.joints):
                raise InputError(f"part {i + 1} moves {part.labels}, part 1 {parts[0].labels}; hold joints with Locked")
        for i, (first, second) in enumerate(pairwise(parts)):
            gap = np.abs(second.sample(0.0)[0] - first.sample(first.duration)[0])[0]
            worst = int(np.argmax(gap))
            if gap[worst] > _GAP:
                raise InputError(
                    f"part {i + 2} begins {gap[worst]:.3g} away from where part {i + 1} ends, in {self.labels[worst]}; "
                    "put a motion between them (Sequence.connected does)"
                )

    @staticmethod
    def connected(parts: Items[Trajectory], *, velocity: ArrayLike, acceleration: ArrayLike | None = None) -> Sequence:
        """A sequence with quintic legs between parts that do not meet, as fast as the limits allow."""
        joined: list[Trajectory] = []
        for part in parts:
            if joined:
                here, there = joined[-1].sample(joined[-1].duration)[0][0], part.sample(0.0)[0][0]
                if here.shape == there.shape and np.abs(there - here).max() > _GAP:
                    leg = PointToPoint.within(np.stack([here, there]), velocity=velocity, acceleration=acceleration)
                    joined.append(leg)
            joined.append(part)
        return Sequence(parts=tuple(joined))

    @property
    def duration(self) -> float:
        """Of all parts together [s]."""
        return float(sum(part.duration for part in self.parts))

    @property
    def n_joints(self) -> int:
        """That of every part."""
        return self.parts[0].n_joints

    def _inside(self, t: Array) -> State:
        ends = np.cumsum([part.duration for part in self.parts])
        which = np.minimum(np.searchsorted(ends, t, side="left"), len(ends) - 1)
        result = tuple(np.empty((len(t), self.n_joints)) for _ in range(3))
        for i, part in enumerate(self.parts):
            own = which == i
            begin = ends[i] - part.duration
            # Rounding at a join must not count as outside of the part.
            for into, values in zip(result, part.sample(np.clip(t[own] - begin, 0.0, part.duration)), strict=True):
                into[own] = values
        q, dq, ddq = result
        return q, dq, ddq


@brief
@dataclass(frozen=True, kw_only=True, eq=False)
class Locked(Trajectory):
    """A motion of some joints while the others are held at given positions.

    Attributes:
        joints: Names of all joints, in the order of the columns.
        positions: Position of each held joint [rad or m], by name.
        motion: Motion of the others, in the order in which they stand among `joints`.
    """

    kind: ClassVar[str] = "locked"
    positions: Mapping[str, float]
    motion: Trajectory

    def __post_init__(self) -> None:
        for name, position in self.positions.items():
            if name not in self.joints:
                raise UnknownNameError("joint to lock", str(name), self.joints)
            if isinstance(position, str | bool) or not np.isfinite(position):
                raise InputError(f"the position of locked joint {name} must be a finite number, got {position!r}")
        self._assign(positions=ReadOnlyDict({k: float(v) for k, v in self.positions.items()}))
        free = tuple(name for name in self.joints if name not in self.positions)
        if len(free) != self.motion.n_joints or (self.motion.joints and self.motion.joints != free):
            raise InputError(
                f"{', '.join(free) or 'no joints'} are left to move, but the motion is for "
                f"{', '.join(self.motion.labels)}; lock the others by name"
            )
        super().__post_init__()

    @property
    def duration(self) -> float:
        """That of the motion [s]."""
        return self.motion.duration

    @property
    def n_joints(self) -> int:
        """All joints, held ones included."""
        return len(self.joints)

    def _inside(self, t: Array) -> State:
        moving = [i for i, name in enumerate(self.joints) if name not in self.positions]
        q, dq, ddq = (np.zeros((len(t), self.n_joints)) for _ in range(3))
        q[:] = [self.positions.get(name, 0.0) for name in self.joints]
        q[:, moving], dq[:, moving], ddq[:, moving] = self.motion.sample(t)
        return q, dq, ddq
