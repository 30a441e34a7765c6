"""Whether torque has the size that the robot's own values make likely: currents, motor torque and units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.arrays import Array, on_one_thread
from dynident.check.explanations import Wiring
from dynident.check.finding import Finding, Verdict
from dynident.check.sample import Sample
from dynident.dynamics.evaluate import inverse_dynamics

_FITS = 0.5  # correlation with the robot's own torque from which a joint's slope counts
_LIKELY = 3.0  # factor by which values of a file may be off
_RIGHT = 2.0  # factor within which an explanation must bring the torque
_FRICTION = 0.02  # [rad/s] speed over which the sign of friction changes


@dataclass(frozen=True, eq=False)
class _Reading:
    """Another meaning of the torque columns: the torques of the rows then, from those as read (n, n), and the fix."""

    words: str
    meant: Array
    fix: dict[str, Any]


def torque_finding(samples: Sequence[Sample], wiring: Wiring) -> tuple[Finding, Array]:
    """Compare the torque of logs with that of the robot's own values.

    Args:
        samples: Moments of the logs.
        wiring: What their channels are.

    Returns:
        The item, and the torques of the rows as they are meant from those as read, (n_joints, n_joints).
    """
    finding, reading = _judged(samples, wiring)
    return finding, np.eye(len(wiring.robot.joint_names)) if reading is None else reading.meant


def opposed(samples: Sequence[Sample], wiring: Wiring) -> float | None:
    """Correlation of the torque with that of the robot's own masses, where that says that all torques are reversed.

    Without friction, nothing else tells a robot from one with negative masses.
    """
    if not any(value for name, value in wiring.robot.value_set().items() if name[0] in "MXYZ"):
        return None
    told = [one for one in _compared(samples, wiring)[1] if abs(one) > _FITS]
    return float(np.median(told)) if told and max(told) < 0.0 else None


def _judged(samples: Sequence[Sample], wiring: Wiring) -> tuple[Finding, _Reading | None]:
    robot = wiring.robot
    if not any(value for name, value in robot.value_set().items() if name[0] in "MXYZ"):
        return Finding("torque", "ok", "the robot file has no masses, so the size of the torque cannot be judged"), None
    slopes = _slopes(samples, wiring)
    told = ~np.isnan(slopes)
    if not told.any():
        return Finding(
            "torque", "ok", "the masses of the robot file explain no joint well enough to judge its torque"
        ), None
    size = float(np.exp(np.median(np.log(slopes[told]))))
    if 1.0 / _LIKELY < size < _LIKELY:
        return Finding("torque", "ok", f"torque is {size:.2g} times that of the robot's own masses"), None
    words = f"torque is {size:.2g} times that of the robot's own masses"
    best = min(_readings(wiring), key=lambda one: _miss(slopes * np.diag(one.meant)))
    if _miss(slopes * np.diag(best.meant)) < np.log(_RIGHT):
        return Finding("torque", "stop", f"{words}; it fits if {best.words}", best.fix), best
    verdict: Verdict = "stop" if not 0.02 < size < 50.0 else "warn"
    what = "drive gains" if wiring.torque == "i" else "unit of the torque columns"
    return Finding("torque", verdict, f"{words}; check the {what}, or the masses of the robot file"), None


def _miss(slopes: Array) -> float:
    """Typical logarithm of the slopes."""
    return float(np.median(np.abs(np.log(np.abs(slopes[~np.isnan(slopes)])))))


def _slopes(samples: Sequence[Sample], wiring: Wiring) -> Array:
    """(n_joints,) torque over that of the robot's own links, friction aside; NaN where that tells nothing."""
    slopes, correlations = _compared(samples, wiring)
    return np.where(correlations > _FITS, slopes, np.nan)


@on_one_thread
def _compared(samples: Sequence[Sample], wiring: Wiring) -> tuple[Array, Array]:
    """Slope and correlation of each joint's torque with that of the robot's own links, friction aside, (n_joints,)."""
    q, dq, ddq, tau = (np.concatenate([getattr(one, name) for one in samples]) for name in ("q", "dq", "ddq", "tau"))
    own = inverse_dynamics(wiring.robot, q, dq, ddq, "rigid,Ia")
    slopes, correlations = np.zeros(tau.shape[1]), np.zeros(tau.shape[1])
    for joint in range(tau.shape[1]):
        speed = dq[:, joint] / wiring.robot.radians[joint]
        beside = np.stack([np.ones_like(speed), speed, np.tanh(speed / _FRICTION)], axis=1)
        left = [x - beside @ np.linalg.lstsq(beside, x, rcond=None)[0] for x in (tau[:, joint], own[:, joint])]
        sizes = [float(np.linalg.norm(x)) for x in left]
        if min(sizes) > 1e-9:
            correlations[joint] = float(left[0] @ left[1]) / (sizes[0] * sizes[1])
            slopes[joint] = float(left[0] @ left[1]) / sizes[1] ** 2
    return slopes, correlations


def _readings(wiring: Wiring) -> Iterator[_Reading]:
    """What else the torque columns may hold."""
    robot, moving = wiring.robot, list(wiring.robot.moving)
    n = len(moving)
    names = wiring.names(wiring.torque)

    def columns(kind: str) -> dict[str, Any]:
        return {"columns": dict(zip(names, wiring.names(kind), strict=True))}

    ratios, gains = robot.drive.gear_ratios[moving], robot.drive.gains
    own = robot.coupling[np.ix_(moving, moving)].T  # of a coupled wrist, rows have the torques of motors
    if wiring.torque == "tau":
        if gains is not None:
            yield _Reading("the columns hold motor currents", gains[moving, None] * own, columns("i"))
        if not np.allclose(np.abs(ratios), 1.0):
            yield _Reading("it is that of the motor shafts", ratios[:, None] * own, columns("taum"))
    if wiring.torque == "i" and gains is not None:
        yield _Reading(
            "the columns hold torques, not currents",
            np.asarray(np.linalg.inv(gains[moving, None] * own)),
            columns("tau"),
        )
        scaled = {name: {"column": name, "unit": "mA"} for name in names}
        yield _Reading("currents are in mA", 1e-3 * np.eye(n), {"columns": scaled})
        if not np.allclose(np.abs(ratios), 1.0):
            turned = [float(f"{x:.5g}") for x in gains * np.abs(robot.drive.gear_ratios)]
            yield _Reading(
                "drive gains are those of the motor shafts", np.diag(np.abs(ratios)), {"drive_gains": turned}
            )
    if wiring.torque == "taum":
        yield _Reading("it is that of the joints", np.asarray(np.linalg.inv(ratios[:, None] * own)), columns("tau"))
    if wiring.torque != "i":
        scaled = {name: {"column": name, "unit": "mNm"} for name in names}
        yield _Reading("it is in N·mm", 1e-3 * np.eye(n), {"columns": scaled})
