"""Laws of motion from 0 to 1 in unit time, with their first and second derivatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, frozen
from dynident.display import brief
from dynident.errors import InputError, UnknownNameError
from dynident.motion.trajectory import State, Trajectory, row, table

Law = Callable[[Array, float], tuple[Array, Array, Array]]
TWO_PI = 2.0 * np.pi


def cubic(s: Array, ramp: float) -> tuple[Array, Array, Array]:
    """3 s² - 2 s³: rest at both ends, acceleration jumps there."""
    return s * s * (3.0 - 2.0 * s), 6.0 * s * (1.0 - s), 6.0 - 12.0 * s


def quintic(s: Array, ramp: float) -> tuple[Array, Array, Array]:
    """10 s³ - 15 s⁴ + 6 s⁵: velocity and acceleration are zero at both ends."""
    rest = 1.0 - s
    return s**3 * (10.0 + s * (6.0 * s - 15.0)), 30.0 * (s * rest) ** 2, 60.0 * s * rest * (1.0 - 2.0 * s)


def cycloid(s: Array, ramp: float) -> tuple[Array, Array, Array]:
    """s - sin(2 pi s) / 2 pi (Abhishek et al., eq. 12): velocity and acceleration are zero at both ends."""
    turn = TWO_PI * s
    return s - np.sin(turn) / TWO_PI, 1.0 - np.cos(turn), TWO_PI * np.sin(turn)


def trapezoid(s: Array, ramp: float) -> tuple[Array, Array, Array]:
    """Constant acceleration for a share `ramp` of the time, constant velocity, constant deceleration."""
    velocity = 1.0 / (1.0 - ramp)
    faster = velocity / ramp
    begin, end = s < ramp, s > 1.0 - ramp
    rest = 1.0 - s
    f = np.where(
        begin, 0.5 * faster * s * s, np.where(end, 1.0 - 0.5 * faster * rest * rest, velocity * (s - ramp / 2))
    )
    df = np.where(begin, faster * s, np.where(end, faster * rest, velocity))
    return f, df, np.where(begin, faster, np.where(end, -faster, 0.0))


LAWS: dict[str, Law] = {"quintic": quintic, "cubic": cubic, "cycloid": cycloid, "trapezoid": trapezoid}


def peaks(law: str, ramp: float) -> tuple[float, float]:
    """Largest velocity and acceleration of a law in unit time."""
    return {
        "quintic": (1.875, 10.0 / np.sqrt(3.0)),
        "cubic": (1.5, 6.0),
        "cycloid": (2.0, TWO_PI),
        "trapezoid": (1.0 / (1.0 - ramp), 1.0 / (ramp * (1.0 - ramp))),
    }[law]


# ----------------------------------------------------------------------------------------------------------------------
# Point to point: from rest to rest through given positions, with a pause at each.


@brief
@dataclass(frozen=True, kw_only=True, eq=False)
class PointToPoint(Trajectory):
    """Legs between points, at rest at every point.

    Attributes:
        points: (n_points, n_joints) [rad or m].
        durations: (n_points - 1,) time of each leg [s].
        rests: (n_points,) time for which each point is held [s]; default none.
        law: "quintic", "cubic", "cycloid" or "trapezoid".
        ramp: Share of a leg in which a trapezoid accelerates, and again in which it decelerates.
    """

    kind: ClassVar[str] = "point to point"
    points: Array
    durations: Array
    rests: Array | None = None
    law: str = "quintic"
    ramp: float = 1.0 / 3.0

    def __post_init__(self) -> None:
        points = table(self.points, "points", "(n_points, n_joints)")
        if len(points) < 2:
            raise InputError("points must be at least two: where the motion starts and where it ends")
        durations = row(self.durations, "durations", len(points) - 1)
        rests = frozen(np.zeros(len(points))) if self.rests is None else row(self.rests, "rests", len(points))
        if (durations <= 0.0).any() or (rests < 0.0).any():
            raise InputError("every duration must be positive and no rest negative [s]")
        if self.law not in LAWS:
            raise UnknownNameError("law of motion", str(self.law), LAWS)
        if not 0.0 < self.ramp <= 0.5:
            raise InputError(f"ramp is {self.ramp}; expected a share of the leg above 0 and up to 0.5")
        self._assign(points=points, durations=durations, rests=rests)
        super().__post_init__()

    @staticmethod
    def within(
        points: ArrayLike,
        *,
        velocity: ArrayLike,
        acceleration: ArrayLike | None = None,
        rests: ArrayLike | None = None,
        law: str = "quintic",
        ramp: float = 1.0 / 3.0,
        joints: tuple[str, ...] = (),
    ) -> PointToPoint:
        """The fastest such motion under limits on velocity and acceleration (a number or one per joint)."""
        if law not in LAWS:
            raise UnknownNameError("law of motion", law, LAWS)
        places = table(points, "points", "(n_points, n_joints)")
        far = np.abs(np.diff(places, axis=0))
        peak_velocity, peak_acceleration = peaks(law, ramp)
        fastest, strongest = (_limit(x, name) for x, name in ((velocity, "velocity"), (acceleration, "acceleration")))
        times = np.maximum(far * peak_velocity / fastest, np.sqrt(far * peak_acceleration / strongest)).max(1)
        # A leg that goes nowhere still needs a time; it is as short as may be.
        durations = np.maximum(times, 1e-3)
        held = None if rests is None else frozen(rests)
        return PointToPoint(points=places, durations=durations, rests=held, law=law, ramp=ramp, joints=joints)

    @property
    def duration(self) -> float:
        """Legs and rests together [s]."""
        assert self.rests is not None
        return float(self.durations.sum() + self.rests.sum())

    @property
    def n_joints(self) -> int:
        """Columns of the points."""
        return int(self.points.shape[1])

    def _inside(self, t: Array) -> State:
        assert self.rests is not None
        ends = np.cumsum(self.rests[:-1] + self.durations)  # where each leg arrives
        starts = ends - self.durations
        leg = np.minimum(np.searchsorted(ends, t, side="left"), len(ends) - 1)
        length = self.durations[leg]
        unit = (t - starts[leg]) / length
        moving = (unit >= 0.0) & (unit <= 1.0)
        f, df, ddf = LAWS[self.law](np.clip(unit, 0.0, 1.0), self.ramp)
        far = self.points[leg + 1] - self.points[leg]
        q = self.points[leg] + far * f[:, None]
        dq = far * np.where(moving, df / length, 0.0)[:, None]
        return q, dq, far * np.where(moving, ddf / length**2, 0.0)[:, None]


def _limit(values: ArrayLike | None, name: str) -> Array:
    limit = np.array(np.inf) if values is None else np.asarray(values, dtype=np.float64)
    if not (limit > 0.0).all():
        raise InputError(f"{name} limits must be positive")
    return limit
