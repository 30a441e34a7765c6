"""The paper's experiments on MuJoCo: chains of one to three rods, counted periods, and the automatic search."""

from __future__ import annotations

import numpy as np

from dynident.arrays import Array
from dynident.dynamics import gravity_torque, mass_matrix
from dynident.experiments import Bench, Oscillation, OscillationOptions, oscillate
from dynident.papers.jamisola import printed
from dynident.papers.jamisola.model import paper_model
from dynident.papers.jamisola.tables import PaperTable, paper_table
from dynident.plant import MujocoPlant
from dynident.robot import Robot, load_robot

SMALL = np.radians(1.0)  # [rad] of starts in the slow mode
_TOO_HEAVY, _FACTOR = 1.25, 1.2  # of the description, and times that of the first weights sent: half as much again
_STEP = 5e-3  # [s] of the search
_FINE_STEPS = 16


def chain_bench(links: int, steps: int = printed.PHYSICS_STEPS) -> Bench:
    """The machine of the paper's tables, with so many steps of MuJoCo in an update."""
    step = printed.SAMPLE_TIME / steps
    return Bench(MujocoPlant(load_robot(f"pendulum-{links}"), "plant", sample_time=printed.SAMPLE_TIME, step=step))


def count_periods(links: int, stage: str, **how: object) -> PaperTable:
    """Tables I to VI: periods counted at the factors of the paper.

    Args:
        links: Of the chain.
        stage: "gravity" or "inertia".
        **how: Keywords of `paper_table`.
    """
    bench = chain_bench(links)
    return paper_table(bench, paper_model(bench.robot), stage, **how)  # type: ignore[arg-type]


def corollary_error(links: int) -> float:
    """w²/kp - 1 at the right inertia, from a tenth of the paper's updates, a small start and fine steps of MuJoCo."""
    bench = chain_bench(links, _FINE_STEPS)
    updates = printed.UPDATES["inertia"] // 10
    table = paper_table(bench, paper_model(bench.robot), "inertia", factors=(1.0,), start=SMALL, updates=updates)
    frequency = 2.0 * np.pi * float(np.mean(table.rows[0].periods)) / (updates * printed.SAMPLE_TIME)
    return frequency**2 / printed.KP - 1.0


def count_candidates() -> PaperTable:
    """Two links, every combination of two factors on the weights, in a fifth of the paper's updates."""
    updates = printed.UPDATES["gravity"] // 5
    return count_periods(2, "gravity", updates=updates, factors=(1.01,), combinations=(1.001, 1.1))


def upright_slope(robot: Robot, values: str = "plant") -> Array:
    """(n, n) by how much the weight pushes over, per displacement from upright [N·m/rad]."""
    n, h = len(robot.moving), 1e-6
    poses = np.concatenate([h * np.eye(n), -h * np.eye(n)])
    torque = gravity_torque(robot, poses, values)
    return np.asarray(-(torque[:n] - torque[n:]).T / (2.0 * h))


def swing_modes(robot: Robot) -> tuple[Array, Array]:
    """Squared frequencies per unit of over-estimate, rising, and the modes as columns: w² = (f - 1) lambda."""
    M = mass_matrix(robot, np.zeros((1, len(robot.moving))), "plant")[0]
    root = np.linalg.inv(np.linalg.cholesky(M))
    squares, modes = np.linalg.eigh(root @ upright_slope(robot) @ root.T)
    return squares, root.T @ modes


def slow_start(robot: Robot) -> Array:
    """(n,) small displacement in the slow mode, in which all links share one frequency [rad]."""
    slow = swing_modes(robot)[1][:, 0]
    return np.asarray(SMALL * slow / np.abs(slow).max())


def theory_periods(robot: Robot, factor: float, amplitude: float = 0.0) -> float:
    """Periods of the slow mode in the gravity test; a large swing of amplitude a [rad] is slower by a²/16."""
    square = max(0.0, factor - 1.0) * float(swing_modes(robot)[0][0])
    time = printed.UPDATES["gravity"] * printed.SAMPLE_TIME
    return float(np.sqrt(square) * (1.0 - amplitude**2 / 16.0) * time / (2.0 * np.pi))


def search_automatically(links: int) -> Oscillation:
    """Both stages from a description that is a quarter too heavy, and weights sent that are half as large again."""
    robot = load_robot(f"pendulum-{links}")
    heavy = {name: _TOO_HEAVY * value for name, value in robot.value_set("plant").items()}
    plant = MujocoPlant(robot, "plant", sample_time=_STEP, step=_STEP)
    options = OscillationOptions(factor=_FACTOR, amplitude=np.radians(0.3), rounds=2)
    return oscillate(plant, nominal=heavy, options=options)
