"""Sinusoids and steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynident.arrays import Array
from dynident.errors import InputError
from dynident.motion.trajectory import State, Trajectory, positive, row


@dataclass(frozen=True, kw_only=True, eq=False)
class Sinusoid(Trajectory):
    r"""One sinusoid per joint that begins at rest.

    .. math:: q_j = q_{0,j} + \tfrac{A_j}{2}\,(1 - \cos 2\pi f_j t)

    Khosla & Kanade 1987, section 5. Speed is zero at the start, acceleration is not.

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
        for name, value in (("start", start), ("amplitude", amplitude), ("frequency", frequency)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "length", positive(self.length, "length"))
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Step(Trajectory):
    """A jump of the position at one moment: a set-point for a controller, not a motion that a joint can make.

    Attributes:
        start: (n_joints,) position before [rad or m].
        stop: (n_joints,) position from the moment on.
        at: The moment [s].
        length: Duration [s].
    """

    kind: ClassVar[str] = "step"
    start: Array
    stop: Array
    at: float
    length: float

    def __post_init__(self) -> None:
        start = row(self.start, "start")
        object.__setattr__(self, "stop", row(self.stop, "stop", len(start)))
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "length", positive(self.length, "length"))
        if isinstance(self.at, str | bool) or not 0.0 <= self.at <= self.length:
            raise InputError(f"at is {self.at}; expected a time between 0 and the length, {self.length:g} s")
        object.__setattr__(self, "at", float(self.at))
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
