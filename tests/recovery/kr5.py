"""The KUKA KR5 of Abhishek et al. as a machine that dynident did not write: links by Pinocchio, drives by hand."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from dynident.robot.model import Robot
from tests.robots import tree_model

STEP = 0.012  # [s], the paper's controller


def cycloid(t: np.ndarray, n_joints: int = 3, angle: float = np.pi / 3) -> tuple[np.ndarray, ...]:
    """Eq. (12), the same for every joint, until the last of `t`: q, dq, ddq."""
    duration = t[-1]
    w = 2.0 * np.pi / duration
    q = angle / duration * (t - np.sin(w * t) / w)
    dq = angle / duration * (1.0 - np.cos(w * t))
    ddq = angle / duration * w * np.sin(w * t)
    return tuple(np.tile(x[:, None], (1, n_joints)) for x in (q, dq, ddq))


def fourier(robot: Robot, t: np.ndarray, seed: int, base: float = 0.1) -> tuple[np.ndarray, ...]:
    """Random motion of five harmonics within the limits of the moving joints: q, dq, ddq."""
    limits = [robot.joints[robot.active[i]].limits for i in robot.moving]
    low, high, fastest = np.array([(one.lower, one.upper, one.velocity) for one in limits], dtype=float).T
    w = 2.0 * np.pi * base * np.arange(1, 6)
    a, b = np.random.default_rng(seed).normal(size=(2, 5, len(low))) / w[:, None]
    sin, cos = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    q, dq, ddq = sin @ a + cos @ b, (cos * w) @ a - (sin * w) @ b, -(sin * w**2) @ a - (cos * w**2) @ b
    size = np.minimum(0.9 * (high - low) / np.ptp(q, axis=0), 0.6 * fastest / np.abs(dq).max(0))
    return (low + high) / 2 + (q - (q.max(0) + q.min(0)) / 2) * size, dq * size, ddq * size


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
