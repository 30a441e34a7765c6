"""Mass moments of a planar KUKA KR5 from slow motion of one joint at a time (Abhishek et al., section 2.4).

    python examples/kr5_gravity.py

One joint after the other, from the tip inwards, goes slowly there and back on the MuJoCo plant, with friction and 1 N·m
of torque noise as the paper's robot has it. Half the sum of both ways is free of friction, and its Fourier series over
the angle tells the moments. They are put beside those of a least-squares fit, as in Table 5 of the paper; then beside
the numbers that the paper prints, whose disagreement has a shape that tells its cause.

To adapt it, put your robot file for "kr5-planar" and your own plant for `MujocoPlant`, or use
`di.experiments.gravity_from_logs`.
"""

from __future__ import annotations

import numpy as np

import dynident as di
from dynident.experiments.gravity import compare_moments
from dynident.plant import Sensors

STEP, NOISE = 0.012, 1.0  # [s] between samples of the paper's controller, [N·m]
LEAST_SQUARES = {"MXR1": 38.3942, "MY1": 0.0064, "MXR2": 10.6798, "MY2": 7.2487, "MX3": 1.1736, "MY3": -0.4988}
GRAVITY = {"MXR1": 38.297, "MY1": 0.0, "MXR2": 8.612, "MY2": 9.058, "MX3": 1.169, "MY3": -0.499}  # Table 5


def moved(robot: di.Robot) -> di.Log:
    """Stands in for a log of your machine in full motion, from which `identify` learns."""
    t = np.arange(0.0, 12.0, STEP)
    w, rng = 2.0 * np.pi * 0.1 * np.arange(1, 6)[:, None], np.random.default_rng(1)
    size = rng.normal(size=(2, 5, 3)) * 0.35 / np.arange(1, 6)[:, None]
    waves, q0 = (np.sin(w * t), np.cos(w * t)), np.array([1.0, -0.7, 0.0])
    q = q0 + waves[0].T @ size[0] + waves[1].T @ size[1]
    dq = (w * waves[1]).T @ size[0] - (w * waves[0]).T @ size[1]
    ddq = -(w**2 * waves[0]).T @ size[0] - (w**2 * waves[1]).T @ size[1]
    tau = di.inverse_dynamics(robot, q, dq, ddq, "rigid,Fv,Fc") + NOISE * rng.normal(size=q.shape)
    return di.Log("made", "made", t, {f"{k}{j + 1}": x[:, j] for k, x in (("q", q), ("tau", tau)) for j in range(3)})


def main() -> None:
    """Sweeps, moments, and both comparisons."""
    robot = di.load_robot("kr5-planar")
    plant = di.MujocoPlant(robot, "plant", sample_time=STEP, step=2e-3, sensors=Sensors(torque_noise=NOISE))
    found = di.experiments.gravity_moments(plant, speed=0.4, true="plant")
    print("Torque = a0 + a1 sin q + b1 cos q of each joint, averaged over both ways [N·m]:")
    print(found.joint_table())
    print(f"\n{found.table()}")
    off = max(abs(one.value - one.true) for one in found.estimates)
    print(f"Largest error {off:.3f} kg·m.\n")

    fit = di.identify(robot, moved(robot), terms="rigid,Fv,Fc")
    print(f"Beside a least-squares fit of a fast motion:\n{found.compared_to(fit).comparison.table()}\n")

    printed = [{name: (value, 0.0) for name, value in values.items()} for values in (GRAVITY, LEAST_SQUARES)]
    for link in compare_moments(found.base, *printed).links:
        print(link.reason or f"Table 5, {' and '.join(link.names)}: both methods agree.")


if __name__ == "__main__":
    main()
