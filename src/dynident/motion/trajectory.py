"""What every trajectory is: a motion of all joints over a given time, with exact derivatives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, frozen
from dynident.display import brief
from dynident.errors import InputError
from dynident.logs.log import Log
from dynident.robot.model import Robot

State = tuple[Array, Array, Array]  # q, dq, ddq, (n_samples, n_joints) each


@brief
@dataclass(frozen=True, kw_only=True, eq=False)
class Trajectory(ABC):
    """A motion from time 0 to `duration`; before and after it the joints hold their end positions.

    Attributes:
        joints: Names of the joints, in the order of the columns; empty where nobody said.
    """

    kind: ClassVar[str] = ""
    joints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = tuple(str(name) for name in self.joints)
        if len(set(names)) != len(names):
            raise InputError(f"a joint is named twice among {', '.join(names)}; name each once")
        self._assign(joints=names)
        if names and len(names) != self.n_joints:
            raise InputError(f"{len(names)} joints are named ({', '.join(names)}), but the motion has {self.n_joints}")

    def _assign(self, **values: Any) -> None:
        """Values that were checked, in place of what was given."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    @abstractmethod
    def duration(self) -> float:
        """Length of the motion [s]."""

    @property
    @abstractmethod
    def n_joints(self) -> int:
        """Number of joints that it moves."""

    @abstractmethod
    def _inside(self, t: Array) -> State:
        """Position, velocity and acceleration at times within the motion."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Names for messages: the joints', or q1, q2, ..."""
        return self.joints or tuple(f"q{i + 1}" for i in range(self.n_joints))

    def sample(self, t: ArrayLike) -> State:
        """Position, velocity and acceleration of every joint.

        Args:
            t: Times, (n_samples,) or a number [s]; before the start and after the end the joints stand still.

        Returns:
            q, dq, ddq, (n_samples, n_joints) each.
        """
        times = np.atleast_1d(np.asarray(t, dtype=np.float64))
        if times.ndim != 1 or not np.isfinite(times).all():
            raise InputError(f"t must be finite times in one dimension; got shape {times.shape}")
        q, dq, ddq = self._inside(np.clip(times, 0.0, self.duration))
        outside = (times < 0.0) | (times > self.duration)
        if outside.any():
            dq, ddq = (np.where(outside[:, None], 0.0, x) for x in (dq, ddq))
        return q, dq, ddq

    def times(self, rate: float) -> Array:
        """Stamps from 0 to the end at a rate [Hz]; the end itself is among them when it falls on the raster."""
        positive(rate, "rate", "Hz")
        steps = self.duration * rate
        if steps > 1e9:
            raise InputError(f"{self.duration:g} s at {rate:g} Hz are {steps:.0e} samples; choose a lower rate")
        return np.arange(int(np.floor(steps * (1.0 + 1e-12) + 1e-9)) + 1) / rate

    def as_data(self) -> dict[str, Any]:
        """The trajectory as plain data; see `storage`."""
        from dynident.motion.storage import to_data

        return to_data(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trajectory) and self.as_data() == other.as_data()

    def __hash__(self) -> int:
        return hash(repr(self.as_data()))


def positive(value: float, name: str, unit: str = "s") -> float:
    """A positive finite number."""
    if isinstance(value, str | bool) or not (np.isfinite(value) and value > 0.0):
        raise InputError(f"{name} is {value}; expected a positive number [{unit}]")
    return float(value)


def row(values: ArrayLike, name: str, length: int | None = None) -> Array:
    """Finite numbers in one dimension, read-only."""
    array = _numbers(values, name)
    if array.ndim != 1 or (length is not None and len(array) != length):
        expected = "a list of numbers" if length is None else f"{length} numbers"
        raise InputError(f"{name} must be {expected}; got shape {array.shape}")
    return array


def table(values: ArrayLike, name: str, shape: str, n_columns: int | None = None) -> Array:
    """Finite numbers in two dimensions, read-only; `shape` says in words what is expected."""
    array = _numbers(values, name)
    if array.ndim != 2 or 0 in array.shape or (n_columns is not None and array.shape[1] != n_columns):
        raise InputError(f"{name} must have shape {shape}; got {array.shape}")
    return array


def _numbers(values: ArrayLike, name: str) -> Array:
    try:
        array = frozen(values)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers, equally many in each row") from None
    if not np.isfinite(array).all():
        raise InputError(f"{name} must be finite numbers")
    return array


# ----------------------------------------------------------------------------------------------------------------------
# A motion from a table of positions.

_DEGREE = 5  # of the spline: accelerations are smooth


class SampledMotion:
    """A smooth motion through given positions.

    With velocities and accelerations at the samples they are met too, by a polynomial of degree five between each two;
    without, a spline of degree five goes through the positions.

    Args:
        time: (n_samples,) rising [s]; the motion begins at its first.
        q: (n_samples, n_moving) [rad or m].
        dq: Velocities, or None.
        ddq: Accelerations, or None; used with velocities only.
    """

    def __init__(
        self, time: ArrayLike, q: ArrayLike, dq: ArrayLike | None = None, ddq: ArrayLike | None = None
    ) -> None:
        from scipy.interpolate import BPoly, make_interp_spline

        stamps, positions = np.asarray(time, dtype=np.float64), np.asarray(q, dtype=np.float64)
        if stamps.ndim != 1 or positions.ndim != 2 or len(stamps) != len(positions):
            raise InputError(
                f"motion: expected times (n,) and positions (n, n_joints), got {stamps.shape}, {positions.shape}"
            )
        if len(stamps) <= _DEGREE:
            raise InputError(f"motion: has {len(stamps)} samples; a smooth motion needs more than {_DEGREE}")
        if not np.all(np.diff(stamps) > 0.0):
            raise InputError("motion: its times must rise from row to row")
        self.duration = float(stamps[-1] - stamps[0])
        self._first = float(stamps[0])
        if dq is None or ddq is None:
            curve = make_interp_spline(stamps, positions, k=_DEGREE)
        else:
            known = np.stack([positions, np.asarray(dq, dtype=np.float64), np.asarray(ddq, dtype=np.float64)], axis=1)
            curve = BPoly.from_derivatives(stamps, known)
        self._curves = (curve, curve.derivative(1), curve.derivative(2))

    @staticmethod
    def from_log(log: Log, robot: Robot) -> SampledMotion:
        """The motion of a log: q, and dq, ddq where it has both."""
        exact = log.has("dq", robot) and log.has("ddq", robot)
        more = [log.array(kind, robot) for kind in ("dq", "ddq")] if exact else []
        try:
            return SampledMotion(log.time, log.array("q", robot), *more)
        except InputError as error:
            raise InputError(f"{log.source}: {error}") from None

    def sample(self, t: ArrayLike, /) -> tuple[Array, Array, Array]:
        """Positions, velocities and accelerations at times from 0 to the duration; beyond, it stands at its ends."""
        times = np.atleast_1d(np.asarray(t, dtype=np.float64))
        inside = np.clip(times, 0.0, self.duration) + self._first
        q, dq, ddq = (np.asarray(curve(inside), dtype=np.float64) for curve in self._curves)
        beyond = ((times < 0.0) | (times > self.duration))[:, None]
        return q, np.where(beyond, 0.0, dq), np.where(beyond, 0.0, ddq)
