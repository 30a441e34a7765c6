"""A motion from a table of positions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import InputError
from dynident.logs.log import Log
from dynident.robot.model import Robot

_DEGREE = 5  # of the spline: accelerations are smooth


class SampledMotion:
    """A smooth motion through given positions.

    With speeds and accelerations at the samples they are met too, by a polynomial of degree five between each two;
    without, a spline of degree five goes through the positions.

    Args:
        time: (n_samples,) rising [s]; the motion begins at its first.
        q: (n_samples, n_moving) [rad or m].
        dq: Speeds, or None.
        ddq: Accelerations, or None; used with speeds only.
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
        """Positions, speeds and accelerations at times from 0 to the duration; beyond, it stands at its ends."""
        times = np.atleast_1d(np.asarray(t, dtype=np.float64))
        inside = np.clip(times, 0.0, self.duration) + self._first
        q, dq, ddq = (np.asarray(curve(inside), dtype=np.float64) for curve in self._curves)
        beyond = ((times < 0.0) | (times > self.duration))[:, None]
        return q, np.where(beyond, 0.0, dq), np.where(beyond, 0.0, ddq)
