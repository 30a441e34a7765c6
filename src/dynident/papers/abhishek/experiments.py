"""The paper's experiments on a simulated arm: trajectory (12), better motions, recordings, slow sweeps."""

from __future__ import annotations

import numpy as np

from dynident.arrays import Array
from dynident.dynamics import inverse_dynamics
from dynident.experiments import GravityMoments, gravity_moments
from dynident.identifiability import base_parameters, excitation
from dynident.logs import Log
from dynident.papers.abhishek import printed
from dynident.plant import MujocoPlant, Sensors
from dynident.robot import Robot

TERMS = "rigid,Fv,Fc"
STEP, NOISE = printed.PERIOD, 1.0  # [s], [N·m]
TIMES = np.arange(0.0, 20.0, STEP)  # [s] of the better motions
HARMONICS, LOWEST = 5, 0.1  # of the better motions, [Hz]
TRIED = 20  # random motions
_SWEEP_VELOCITY = 0.4  # [rad/s]
Moving = tuple[Array, Array, Array]  # q, dq, ddq, (n_samples, n_joints) each


def transforms_1(angles: Array) -> Array:
    """Equation (1) with the printed Table 2: the product of T_b, T_theta, T_a and T_alpha over six joints.

    Args:
        angles: (n_samples, 6) joint angles [rad].

    Returns:
        (n_samples, 4, 4) homogeneous transforms [m].
    """
    whole = np.broadcast_to(np.eye(4), (len(angles), 4, 4))
    for number, (angle, twist) in enumerate(zip(angles.T, np.radians(printed.TWISTS), strict=True), start=1):
        turn, tilt = np.tile(np.eye(4), (len(angles), 1, 1)), np.eye(4)
        turn[:, 0, 0] = turn[:, 1, 1] = np.cos(angle)
        turn[:, 1, 0] = np.sin(angle)
        turn[:, 0, 1] = -turn[:, 1, 0]
        turn[:, 2, 3] = printed.TABLE_2.get(f"b{number}", 0.0) / 1e3
        tilt[1:3, 1:3] = [[np.cos(twist), -np.sin(twist)], [np.sin(twist), np.cos(twist)]]
        tilt[0, 3] = printed.TABLE_2.get(f"a{number}", 0.0) / 1e3
        whole = whole @ turn @ tilt
    return whole


def cycloid(n_joints: int, t: Array, angle: float = np.radians(printed.ANGLE)) -> Moving:
    """Trajectory (12): all joints go the same way to the same angle.

    Args:
        n_joints: Number of joints.
        t: (n_samples,) times, the last one that of the arrival [s].
        angle: Where they arrive [rad].
    """
    w = 2.0 * np.pi / t[-1]
    q, dq, ddq = t - np.sin(w * t) / w, 1.0 - np.cos(w * t), w * np.sin(w * t)
    q, dq, ddq = (np.tile((angle / t[-1] * x)[:, None], n_joints) for x in (q, dq, ddq))
    return q, dq, ddq


def trajectory_12() -> Moving:
    """Trajectory (12) of the planar arm as the paper samples it."""
    return cycloid(3, np.linspace(0.0, printed.DURATION, printed.SAMPLES))


def fourier(robot: Robot, t: Array, seed: int) -> Moving:
    """Random motion of five harmonics within the limits of the moving joints."""
    limits = [joint.limits for joint in robot.moving_joints]
    low, high, fastest = np.array([(one.lower, one.upper, one.velocity) for one in limits], dtype=float).T
    w = 2.0 * np.pi * LOWEST * np.arange(1, HARMONICS + 1)
    a, b = np.random.default_rng(seed).normal(size=(2, HARMONICS, len(low))) / w[:, None]
    sin, cos = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    q, dq, ddq = sin @ a + cos @ b, (cos * w) @ a - (sin * w) @ b, -(sin * w**2) @ a - (cos * w**2) @ b
    size = np.minimum(0.9 * (high - low) / np.ptp(q, axis=0), 0.6 * fastest / np.abs(dq).max(0))
    return (low + high) / 2 + (q - (q.max(0) + q.min(0)) / 2) * size, dq * size, ddq * size


def fourier_conditions(robot: Robot) -> list[float]:
    """Condition of the regressor along each of twenty random motions, by their seeds 0 to 19."""
    base = base_parameters(robot, "rigid")
    return [float(excitation(base, *fourier(robot, TIMES, seed)).raw_condition) for seed in range(TRIED)]


def record_motion(robot: Robot, t: Array, motion: Moving, seed: int = 0) -> Log:
    """What the Robot Sensor Interface would tell: positions, and noisy torque with friction."""
    q, dq, ddq = motion
    noise = NOISE * np.random.default_rng(seed).normal(size=q.shape)
    tau = inverse_dynamics(robot, q, dq, ddq, TERMS) + noise
    numbers = [name.removeprefix("q") for name in robot.position_names]
    channels = {f"q{n}": x for n, x in zip(numbers, q.T, strict=True)}
    channels |= {f"tau{n}": x for n, x in zip(numbers, tau.T, strict=True)}
    return Log("simulated", f"motion {seed}", t, channels)


def slow_sweeps(robot: Robot) -> GravityMoments:
    """Section 2.4 on the MuJoCo plant: one joint after the other goes slowly there and back."""
    plant = MujocoPlant(robot, "plant", sample_time=STEP, step=2e-3, sensors=Sensors(torque_noise=NOISE))
    return gravity_moments(plant, sweep_velocity=_SWEEP_VELOCITY, true="plant")
