"""The KUKA KR5 of Abhishek et al. as a machine that dynident did not write: links by Pinocchio, drives by hand."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from dynident.papers.abhishek.experiments import STEP, cycloid as planar_cycloid, fourier
from dynident.robot.model import Robot
from tests.robots import tree_model

__all__ = ["STEP", "cycloid", "fourier", "machine_torque"]


def cycloid(t: np.ndarray) -> tuple[np.ndarray, ...]:
    """Eq. (12), the same for every joint, until the last of `t`: q, dq, ddq."""
    return planar_cycloid(3, t)


def machine_torque(robot: Robot, motion: tuple[np.ndarray, ...], *, friction: bool = True) -> np.ndarray:
    """Torque at the moving joints of a serial robot, (n_samples, n_joints); locked joints are held by brakes."""
    moving = list(robot.moving)
    q, dq, ddq = (np.zeros((len(own), len(robot.joints))) for own in motion)
    for whole, own in zip((q, dq, ddq), motion, strict=True):
        whole[:, moving] = own
    q[:, list(robot.locked)] = list(robot.locked.values())
    model = tree_model(robot)
    data = model.createData()
    tau = np.array([pin.rnea(model, data, *state) for state in zip(q, dq, ddq, strict=True)])
    if friction:
        value = robot.value_set()
        Ia, Fv, Fc = (
            np.array([value.get(f"{symbol}{joint.number}", 0.0) for joint in robot.joints])
            for symbol in ("Ia", "Fv", "Fc")
        )
        tau = tau + Ia * ddq + Fv * dq + Fc * np.sign(dq)
    return tau[:, moving]
