"""The paper's experiments, simulated: motions, exact torque, and what a log would show of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.dynamics import inverse_dynamics
from dynident.estimate import StagedEstimate, StageExperiment, sequential, sequential_online
from dynident.robot import Robot, load_robot
from dynident.signals import FIVE_POINT, filter_signals

Samples = tuple[Array, Array, Array, Array]  # q, dq, ddq, tau, (n_samples, n_joints) each
SAMPLES, STEP = 25, 0.02  # of section 4, [s]
AMPLITUDE = (np.pi / 2, 0.5, 0.5)  # [rad, m, m] of the cylindrical robot; the paper says ninety degrees
LOCKED = {"q1": 0.0, "q2": 0.0}  # [rad] of the off-line procedure
RATE = 500.0  # [Hz] of section 5
SINES, LOWEST = 5, 0.2  # of a joint's motion, [Hz]
FASTEST = SINES * LOWEST  # [Hz]
VELOCITY_NOISE, TORQUE_NOISE = 1e-3, 2e-3  # [rad/s], share of each joint's largest torque


def half_swing(amplitude: ArrayLike, samples: int = SAMPLES) -> tuple[Array, Array, Array]:
    """First half of a cosine of one second there and back: q, dq, ddq, (n_samples, n_joints) each.

    Args:
        amplitude: (n_joints,) how far each joint goes [rad or m].
        samples: Number of samples, 20 ms apart.
    """
    w, t = 2.0 * np.pi, STEP * np.arange(samples)
    shapes = 1.0 - np.cos(w * t), w * np.sin(w * t), w**2 * np.cos(w * t)
    q, dq, ddq = (np.outer(shape, 0.5 * np.asarray(amplitude)) for shape in shapes)
    return q, dq, ddq


def cylindrical_samples(robot: Robot) -> Samples:
    """The recording of section 4.1, with exact torque."""
    motion = half_swing(AMPLITUDE)
    return *motion, inverse_dynamics(robot, *motion, "rigid", "plant")


def arm_samples(robot: Robot) -> Samples:
    """The recording of section 4.2: three joints go ninety degrees, torque by Table 3."""
    motion = half_swing([np.pi / 2] * 3)
    return *motion, inverse_dynamics(robot, *motion, "rigid", "table3")


def offline_estimate(robot: Robot) -> StagedEstimate:
    """Section 3.1 for the last joint of the arm: joints 1 and 2 are locked."""
    own = half_swing([np.pi / 2])
    torque = inverse_dynamics(robot.lock(**LOCKED), *own, "rigid", "table3")
    return sequential(robot, [StageExperiment((*own, torque), LOCKED)], "rigid", nominal="table3-initial")


def random_motion(seed: int, duration: float = 10.0) -> tuple[Array, Array, Array]:
    """Five sines a joint, multiples of 0.2 Hz, for six joints at 500 Hz: q, dq, ddq, (n_samples, 6) each."""
    rng = np.random.default_rng(seed)
    t = np.arange(duration, step=1.0 / RATE)[:, None, None]
    w = 2.0 * np.pi * LOWEST * np.arange(1, SINES + 1)[:, None]
    size, phase = rng.normal(size=(SINES, 6)) / w, rng.uniform(0.0, 2.0 * np.pi, (SINES, 6))
    waves = np.sin(w * t + phase), w * np.cos(w * t + phase), -(w**2) * np.sin(w * t + phase)
    q, dq, ddq = ((size * wave).sum(1) for wave in waves)
    return q, dq, ddq


def measured_samples(robot: Robot, seed: int, noise: int | None = None) -> Samples:
    """What section 5 measures: velocity and torque at 500 Hz; acceleration by the five-point differentiator.

    Args:
        robot: The arm of six joints.
        seed: Of the motion.
        noise: Seed of the noise of velocity and torque; None for none.
    """
    q, dq, ddq = random_motion(seed)
    tau = inverse_dynamics(robot, q, dq, ddq, "rigid", "table4-6")
    if noise is not None:
        rng = np.random.default_rng(noise)
        dq = dq + VELOCITY_NOISE * rng.normal(size=dq.shape)
        tau = tau + TORQUE_NOISE * np.abs(tau).max(0) * rng.normal(size=tau.shape)
    (ddq,) = filter_signals(dq, [FIVE_POINT], RATE)
    inner = slice(2, -2)  # at its ends the differentiator lacks samples
    return q[inner], dq[inner], ddq[inner], tau[inner]


def four_experiments() -> dict[tuple[int, str], StagedEstimate]:
    """Section 5.3: two motions times two sets of initial values, each with noise of its own."""
    robot = load_robot("cmu-dd-arm-6")
    cases = [(motion, nominal) for motion in (1, 2) for nominal in ("table4-6-initial", "plant")]
    return {
        case: sequential_online(robot, measured_samples(robot, case[0], number), "rigid", nominal=case[1])
        for number, case in enumerate(cases)
    }
