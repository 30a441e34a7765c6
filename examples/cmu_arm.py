"""The CMU Direct-Drive Arm II of Khosla & Kanade 1987: stages from tip to base, off-line and on-line.

    python examples/cmu_arm.py

First three joints and exact data: what a locked experiment can tell, and what needs all joints to move. Then six joints
as measured: positions, noisy speeds and torques at 500 Hz, accelerations by the five-point differentiator, two
motions times two sets of initial values as in the paper, and how far the four results lie from the truth.
"""

from __future__ import annotations

import numpy as np

import dynident as di
from dynident.signals import FIVE_POINT, filter_signals

RATE = 500.0  # [Hz]
SPEED_NOISE, TORQUE_NOISE = 1e-3, 2e-3  # [rad/s], share of each joint's largest torque


def three_joints() -> tuple[di.estimate.StagedEstimate, di.estimate.StagedEstimate]:
    """Off-line with joints 1 and 2 locked, and on-line, around the initial values of Table 3."""
    robot = di.load_robot("cmu-dd-arm-3")
    w, t = 2.0 * np.pi, 0.02 * np.arange(25)
    shapes = 1.0 - np.cos(w * t), w * np.sin(w * t), w**2 * np.cos(w * t)
    q, dq, ddq = (np.pi / 4.0 * np.repeat(x[:, None], 3, axis=1) for x in shapes)

    locked = {"q1": 0.0, "q2": 0.0}
    own = q[:, 2:], dq[:, 2:], ddq[:, 2:]
    torque = di.inverse_dynamics(robot.lock(**locked), *own, "rigid", "table3")
    tip = di.estimate.StageExperiment((*own, torque), locked)
    offline = di.estimate.sequential(robot, [tip], "rigid", nominal="table3-initial")
    print(offline.notes[0])

    torque = di.inverse_dynamics(robot, q, dq, ddq, "rigid", "table3")
    online = di.estimate.sequential_online(robot, (q, dq, ddq, torque), "rigid", nominal="table3-initial")
    print(online.table())
    return offline, online


def measured(robot: di.Robot, seed: int, noise: int) -> tuple[np.ndarray, ...]:
    """Ten seconds of sines as a log would show them: q, dq, ddq and tau, (n_samples, 6) each."""
    motion, chance = np.random.default_rng(seed), np.random.default_rng(noise)
    t = np.arange(10.0, step=1.0 / RATE)[:, None, None]
    w = 2.0 * np.pi * 0.2 * np.arange(1, 6)[:, None]
    size, phase = motion.normal(size=(5, 6)) / w, motion.uniform(0.0, 2.0 * np.pi, (5, 6))
    parts = np.sin(w * t + phase), w * np.cos(w * t + phase), -(w**2) * np.sin(w * t + phase)
    q, dq, ddq = ((size * part).sum(1) for part in parts)
    tau = di.inverse_dynamics(robot, q, dq, ddq, "rigid", "table4-6")
    dq = dq + SPEED_NOISE * chance.normal(size=dq.shape)
    tau = tau + TORQUE_NOISE * np.abs(tau).max(0) * chance.normal(size=tau.shape)
    (ddq,) = filter_signals(dq, [FIVE_POINT], RATE)
    q, dq, ddq, tau = (x[2:-2] for x in (q, dq, ddq, tau))  # at its ends the differentiator lacks samples
    return q, dq, ddq, tau


def six_joints() -> dict[tuple[int, str], di.estimate.StagedEstimate]:
    """Two motions times two sets of initial values."""
    robot = di.load_robot("cmu-dd-arm-6")
    cases = [(motion, nominal) for motion in (1, 2) for nominal in ("table4-6-initial", "plant")]
    found = {
        case: di.estimate.sequential_online(robot, measured(robot, case[0], number), "rigid", nominal=case[1])
        for number, case in enumerate(cases)
    }
    truth = di.base_parameters(robot, "rigid").base_values("table4-6")
    apart = np.max([np.abs(one.beta / truth - 1.0) for one in found.values()], axis=0)
    big = np.abs(truth) > 0.02
    print(f"four estimates within {100 * apart[big].max():.2g} % of the {big.sum()} parameters above 0.02 (paper: 5 %)")
    print(f"{np.sum(apart < 0.05)} of {len(truth)} parameters, however small, within 5 %")
    return found


if __name__ == "__main__":
    three_joints()
    six_joints()
