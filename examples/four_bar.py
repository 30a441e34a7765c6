"""A four-bar that is not a parallelogram: describe its loop, simulate a log, identify it.

    python examples/four_bar.py

Prints how far the rocker swings while the crank turns round, and the parameters found beside the true ones. The file
describes the tree that is left when the pin between coupler and rocker is cut, the two frames that the pin holds
together, the passive joints to solve for, and one pose of its way of assembly (the other way is the mirror image).
To adapt it, put your links into FILE and your log, `di.read_log("run.csv", robot)`, for `log`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import dynident as di

FILE = """
name: four-bar
convention: modified-dh
lengths: {crank: 0.2, coupler: 0.5, rocker: 0.4, ground: 0.45}
gravity: [0, -9.81, 0]
joints:
  - {name: crank}
  - {name: coupler, d: crank, mu: 0}
  - {name: rocker, antecedent: 0, d: ground, mu: 0}
loops:
  - first: {link: 2, position: [coupler, 0, 0]}
    second: {link: 3, position: [rocker, 0, 0]}
    solve: [q2, q3]
    branch: {q1: 1.0, q2: -0.55, q3: 1.3}
parameters:
  plant:
    links:
      1: {mass: 1.0, com: [0.09, 0.01, 0], inertia: [0.001, 0, 0, 0.004, 0, 0.0047]}
      2: {mass: 1.5, com: [0.22, -0.02, 0], inertia: [0.002, 0, 0, 0.03, 0, 0.031]}
      3: {mass: 1.2, com: [0.19, 0.015, 0], inertia: [0.002, 0, 0, 0.016, 0, 0.0175]}
    Ia: {1: 0.02}
    Fv: {1: 0.1}
    Fc: {1: 0.3}
"""
RATE = 200.0  # [Hz]
NOISE = 0.05  # [N·m]


def motion(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Round and round, and to and fro: q, dq, ddq of the crank, (n_samples, 1) each."""
    w, a = 2.0 * np.pi * np.array([0.3, 0.7, 1.1]), np.array([0.9, 0.5, 0.3])
    t = t[:, None]
    q = 2.5 * t[:, 0] + np.sin(w * t) @ a
    return q[:, None], (2.5 + np.cos(w * t) @ (a * w))[:, None], -(np.sin(w * t) @ (a * w**2))[:, None]


def main() -> di.Fit:
    """Print what the loop does and what a noisy log tells about its parameters."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "four_bar.yaml"
        path.write_text(FILE)
        robot = di.load_robot(path)
    q, dq, ddq = motion(np.arange(20.0 * RATE) / RATE)
    tree = di.dynamics.tree_motion(robot, q, dq, ddq)
    print(
        f"rocker between {tree.q[:, 2].min():.3f} and {tree.q[:, 2].max():.3f} rad, "
        f"at most {np.abs(tree.G[:, 2, 0]).max():.3f} rad per rad of the crank"
    )
    tau = di.inverse_dynamics(robot, q, dq, ddq) + NOISE * np.random.default_rng(1).normal(size=q.shape)
    log = di.Log("simulated", "", np.arange(len(q)) / RATE, {"q1": q[:, 0], "tau1": tau[:, 0]})
    estimate = di.identify(robot, log)
    print(estimate.table())
    for name, found, true in zip(estimate.names, estimate.beta, estimate.base.base_values(), strict=True):
        print(f"{name:>6}: {found:9.4f}, true {true:9.4f}")
    return estimate


if __name__ == "__main__":
    main()
