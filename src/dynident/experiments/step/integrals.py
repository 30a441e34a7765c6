"""A recorded step as integrals: what drives a joint and what that drives, in positions instead of accelerations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.dynamics.evaluate import gravity_torque, mass_matrix, regressor
from dynident.dynamics.terms import all_columns, resolve_terms
from dynident.experiments.protocol import ExperimentError
from dynident.experiments.step.poses import directions, feels_gravity, motor_inertia
from dynident.experiments.step.records import StepRecord, driven_positions
from dynident.experiments.step.response import FEWEST, first_moving, position_noise
from dynident.plant.drives import Motors
from dynident.robot.model import Robot

_ROUNDED = 1.0 / np.sqrt(12.0)  # standard deviation of rounding, in counts
_TURN_SHARE = 0.02  # share of the travel by which a joint that turns round comes back
_LAST = 10  # part of the time before the step that counts as rest


@dataclass(frozen=True)
class StepIntegrals:
    """One record, integrated twice in time since the step; torque times time squared, (n_samples,) each.

    Attributes:
        begin: Index of the sample at which the step came.
        fitted: Indices of the samples in motion, one way.
        time: [s].
        s: Time since the step [s].
        drive: Torque of the motor, less what weight and the motion of held joints take as described.
        inertia: Column of Me: distance, weighted by how the inertia changes as held joints give way.
        distance: Column of B: the distance integrated once.
        sign: Of the motion.
        weight: (n_samples, n_parameters), change of the drive per standard deviation of each described parameter.
        held: (n_samples, n_motors), the same for the motion of held joints.
        noise: Standard deviation of the positions [rad or m].
        rest: Standard deviation of the position from which it started.
        tilt: Standard deviation of a constant torque that rounded positions of held joints leave in the weight.
        hidden: Standard deviation of what the motion of held joints takes within the counts of their encoders.
        start: Position from which it started [rad or m].
    """

    begin: int
    fitted: NDArray[np.intp]
    time: Array
    s: Array
    drive: Array
    inertia: Array
    distance: Array
    sign: float
    weight: Array
    held: Array
    noise: float
    rest: float
    tilt: float
    hidden: Array
    start: float


@dataclass(frozen=True)
class Description:
    """What is known of a robot and of one of its motors before the test.

    Attributes:
        robot: The robot.
        motors: Its motors.
        motor: The driven one, as a place in `robot.joint_names`.
        pose: (n_moving,) at which its inertia is wanted [rad or m].
        values: A value set; None for the robot's own.
        std: Relative standard deviation of its masses, centers and inertias.
        resolution: (n_moving,) counts of the encoders [rad or m].
    """

    robot: Robot
    motors: Motors
    motor: int
    pose: Array
    values: str | None
    std: float
    resolution: Array

    @property
    def gain(self) -> float:
        """K, torque per voltage [N·m/V]."""
        return float(self.motors.for_joints(self.robot.joint_names).gain[self.motor])

    @property
    def lag(self) -> float:
        """L/R, by which the current is late [s]."""
        return float(self.motors.for_joints(self.robot.joint_names).lag[self.motor])

    def pose_variance(self) -> float:
        """Of the inertia, by rounded positions of the held joints."""
        shifted = self.pose + np.diag(self.resolution)
        change = motor_inertia(self.robot, shifted, self.motor, self.values) - self.inertia(self.pose)
        return float(_ROUNDED**2 * change @ change)

    def inertia(self, q: Array) -> Array:
        """Inertia that the motor feels, (n_samples,)."""
        return motor_inertia(self.robot, q, self.motor, self.values)

    def weight(self, q: Array) -> Array:
        """Torque that carries the weight, (n_samples,)."""
        return gravity_torque(self.robot, q, self.values)[:, self.motor]

    def couplings(self, q: Array) -> Array:
        """Inertia by which the motion of each other motor drives this one, (n_samples, n_motors)."""
        T = directions(self.robot)
        rows = np.einsum("i,kij,mj->km", T[self.motor], mass_matrix(self.robot, q, self.values), T)
        rows[:, self.motor] = 0.0
        return np.asarray(rows)

    def weight_columns(self, q: Array) -> Array:
        """Change of the weight per standard deviation of each parameter that makes it, (n_samples, n_parameters)."""
        if not feels_gravity(self.robot, self.motor):
            return np.zeros((len(q), 0))
        spread = self._spread()
        still = np.zeros_like(q)
        W = regressor(self.robot, q, still, still, "rigid")[:, self.motor]
        return np.asarray(W[:, spread > 0.0] * spread[spread > 0.0])

    def _spread(self) -> Array:
        """Standard deviation of rigid parameters: of a link's mass, and of its three first moments alike."""
        known = self.robot.value_set(self.values)
        found = []
        for column in all_columns(self.robot, resolve_terms("rigid")):
            number = column.name.removeprefix(column.symbol)
            moments = [known.get(f"{symbol}{number}", 0.0) for symbol in ("MX", "MY", "MZ")]
            sizes = {"M": abs(known.get(column.name, 0.0))}
            sizes |= dict.fromkeys(("MX", "MY", "MZ"), float(np.linalg.norm(moments)))
            found.append(self.std * sizes.get(column.symbol, 0.0) if column.fixed is None else 0.0)
        return np.array(found)

    def tilt(self, record: StepRecord) -> float:
        """Standard deviation of the weight, by rounded positions of the held joints."""
        steps = self.resolution.copy()
        steps[self.motor] = 0.0  # it moves: what its encoder rounds averages out
        change = self.weight(record.pose + np.diag(steps)) - self.weight(record.pose[None])
        return float(_ROUNDED * np.linalg.norm(change))

    def hidden(self, q: Array) -> Array:
        """Standard deviation of what held joints that move within their encoders' counts take, (n_samples,)."""
        steps = np.abs(self.robot.moving_coupling) @ self.resolution
        return np.asarray(_ROUNDED * np.linalg.norm(self.couplings(q) * steps, axis=1))


def step_integrals(known: Description, record: StepRecord, what: str) -> StepIntegrals:
    """Integrate a record.

    Args:
        known: What is known of the machine.
        record: The record.
        what: Its name in messages.

    Raises:
        ExperimentError: When it did not move, or not long enough in one direction.
    """
    time = record.time
    q = _joints(known, record)
    first = first_moving(record.position, time, record.step, what)
    last, sign = _one_way(record.position, first)
    if last - first < FEWEST:
        raise ExperimentError(
            f"{what}: only {last - first} samples in motion one way, {FEWEST} are needed; record longer or faster, or "
            "apply another voltage"
        )
    begin = max(int(np.searchsorted(time, record.step + 1e-9)) - 1, 0)
    resting = record.position[max(begin + 1 - max((begin + 1) // _LAST, 5), 0) : begin + 1]
    start = float(np.mean(resting))
    theta = record.position - start
    drive = known.gain * _held_twice(time, record.held(known.robot, known.gain, known.values), begin, known.lag)
    held = _held_joints(known, time, q)
    count = float(known.resolution[record.motor])
    noise = max(position_noise(theta[first:last]), _ROUNDED * count, 1e-9)
    # Readings that are rounded repeat one another; noisy ones average out.
    averaged = noise / float(np.sqrt(len(resting))) if noise > count else noise
    return StepIntegrals(
        begin=begin,
        fitted=np.arange(first, last, dtype=np.intp),
        time=time,
        s=np.maximum(time - time[begin], 0.0),
        drive=drive - _integral(time, known.weight(q), begin, 2) - held.sum(axis=1),
        inertia=_weighted_distance(known, q, theta),
        distance=_integral(time, theta, begin, 1),
        sign=sign,
        weight=_integral(time, known.weight_columns(q), begin, 2),
        held=known.std * held,
        noise=noise,
        rest=averaged,
        tilt=known.tilt(record),
        hidden=known.hidden(q),
        start=start,
    )


def _joints(known: Description, record: StepRecord) -> Array:
    """Positions of all joints, (n_samples, n_moving); held ones as they should be, or move, within what was rounded."""
    q, half = record.joints(known.robot), 0.5 * known.resolution
    driven = np.abs(directions(known.robot)[record.motor]) > 0.0
    moved = np.zeros_like(q)
    if record.dq is not None:
        moved[1:] = 0.5 * np.diff(record.time)[:, None] * (record.dq[1:] + record.dq[:-1])
    held, place = np.empty_like(q), record.pose
    for k, (low, high) in enumerate(zip(q - half, q + half, strict=True)):
        place = np.clip(place + moved[k], low, high)
        held[k] = place
    return np.where(driven, q, held)


def _one_way(position: Array, first: int) -> tuple[int, float]:
    """Where a motion that began at `first` turns round or ends, and its sign."""
    moved = position - position[max(first - 1, 0)]
    sign = float(np.sign(moved[-1]))
    ahead = np.maximum.accumulate(sign * moved)
    back = np.flatnonzero(ahead - sign * moved > _TURN_SHARE * ahead[-1])
    back = back[back >= first]
    if not len(back):
        return len(position), sign
    return int(np.argmax((sign * moved)[: back[0] + 1])) + 1, sign


def _integral(time: Array, signal: Array, begin: int, times: int) -> Array:
    """Integral of a smooth signal (n_samples, ..) since the step, once or twice, by a cubic spline; 0 before."""
    from scipy.interpolate import CubicSpline

    whole = CubicSpline(time[begin:], signal[begin:]).antiderivative(times)(time[begin:])
    return np.concatenate([np.zeros((begin, *signal.shape[1:])), whole])


def _held_twice(time: Array, voltage: Array, begin: int, lag: float) -> Array:
    """Double integral of a voltage that is held in each sample, as a current with a time constant follows it."""
    h, u = np.diff(time[begin:]), voltage[begin:-1]
    once = np.concatenate([[0.0], np.cumsum(u * h)])
    twice = np.concatenate([[0.0], np.cumsum(once[:-1] * h + 0.5 * u * h**2)])
    if lag > 0.0:
        current = np.empty(len(u) + 1)
        current[0] = voltage[begin - 1] if begin else 0.0
        for k, (level, part) in enumerate(zip(u, np.exp(-h / lag), strict=True)):
            current[k + 1] = level + (current[k] - level) * part
        twice -= lag * (once - lag * (current - current[0]) - current[0] * (time[begin:] - time[begin]))
    return np.concatenate([np.zeros(begin), twice])


def _weighted_distance(known: Description, q: Array, theta: Array) -> Array:
    """Distance of the driven coordinate, each part weighted by the inertia there over that at the pose."""
    nominal = float(known.inertia(known.pose[None])[0])
    if not nominal > 0.0:
        return theta  # nothing is known of how it changes
    ratio = known.inertia(q) / nominal
    path = np.cumsum(0.5 * (ratio[1:] + ratio[:-1]) * np.diff(theta))
    return np.concatenate([theta[:1], theta[0] + path])


def _held_joints(known: Description, time: Array, q: Array) -> Array:
    r"""What the motion of each held motor takes from the drive, integrated twice, (n_samples, n_motors).

    By parts, so that only positions are needed: :math:`\iint M_{ij} \ddot q_j = \int M_{ij}\,dq_j
    - \iint \dot M_{ij}\,dq_j`.
    """
    rows, h = known.couplings(q), np.diff(time)[:, None]
    moved = np.diff(driven_positions(known.robot, q), axis=0)
    turned = np.cumsum(np.diff(rows, axis=0) * moved / h, axis=0)  # of the coupling, while the joint moves on
    parts = 0.5 * (rows[1:] + rows[:-1]) * moved - turned * h
    return np.concatenate([np.zeros((1, parts.shape[1])), np.cumsum(parts, axis=0)])
