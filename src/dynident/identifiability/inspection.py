"""Whether base values can belong to a real machine, evaluated by the mass matrix."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from dynident.dynamics.evaluate import joint_torque
from dynident.identifiability.base import BaseParameters
from dynident.identifiability.states import random_states
from dynident.robot.physicality import Violation


def base_violations(base: BaseParameters, beta: Mapping[str, float] | ArrayLike, n_poses: int = 200) -> list[Violation]:
    """Joints about which base values give a negative inertia.

    The mass matrix depends on base parameters alone and must be positive definite in every pose, whatever the standard
    parameters behind them are. Tested at random poses: an empty answer is no proof, a violation is.
    """
    robot = base.robot
    vector = base.K @ base.standard_values(beta, "regrouped zero")
    n = len(robot.moving)
    q = random_states(robot, n_poses)[0]
    still = np.zeros_like(q)
    rest = base.regressor(q, still, still) @ vector
    M = np.empty((n_poses, n, n))
    for i in range(n):
        unit = still.copy()
        unit[:, i] = 1.0
        M[:, :, i] = joint_torque(robot, base.regressor(q, still, unit) @ vector - rest)
    result = []
    lowest = np.diagonal(M, axis1=1, axis2=2).min(0)
    size = float(np.abs(M).max()) or 1.0
    for name, index, value in zip(robot.joint_names, robot.moving, lowest, strict=True):
        if value < -1e-9 * size:
            slides = robot.joints[robot.active[index]].kind == "prismatic"
            text = "its effective inertia must be positive"
            result.append(Violation(f"joint {name}", text, float(value), "kg" if slides else "kg·m²"))
    if not result:
        smallest = float(np.linalg.eigvalsh((M + np.swapaxes(M, 1, 2)) / 2).min())
        if smallest < -1e-9 * size:
            result.append(Violation("all joints", "the mass matrix must be positive definite", smallest, "mixed"))
    return result
