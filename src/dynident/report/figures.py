"""Errors as they are shown; NaN where there are no samples or no torque to compare with, which words call not known."""

from __future__ import annotations

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.evaluate import joint_torque
from dynident.estimate.accuracy import TorqueErrors
from dynident.estimate.bands import LEVEL, half_width
from dynident.estimate.fit import Fit
from dynident.estimate.records import CrossValidation
from dynident.robot.model import Robot

_FLAT = 1e-12  # share of a joint's torque below which its variation is rounding


def relative(errors: TorqueErrors) -> float:
    """||tau - tau_hat|| / ||tau|| over all joints."""
    return errors.relative if float(errors.torque_square.sum()) > 0.0 else float("nan")


def per_joint(errors: TorqueErrors) -> Array:
    """The same for each joint, (n_joints,)."""
    return np.where((errors.count > 0.0) & (errors.torque_square > 0.0), errors.per_joint, np.nan)


def fit(errors: TorqueErrors) -> Array:
    """Share of each joint's torque variation that is explained, (n_joints,)."""
    variation = errors.torque_square - errors.torque**2 / np.maximum(errors.count, 1.0)
    return np.where((errors.count > 0.0) & (variation > _FLAT * errors.torque_square), errors.fit, np.nan)


def rmse(errors: TorqueErrors) -> Array:
    """Root mean square error of each joint, (n_joints,) [N·m or N]."""
    return np.where(errors.count > 0.0, errors.rmse, np.nan)


def left_out_per_joint(crossed: CrossValidation) -> Array:
    """Mean error of each joint over the folds of a cross-validation, (n_joints,)."""
    shares = crossed.errors
    told = shares > 0.0  # a fold in which a joint has no rows leaves exactly nothing
    return np.where(told.any(0), np.where(told, shares, 0.0).sum(0) / np.maximum(told.sum(0), 1), np.nan)


def band_halves(estimate: Fit) -> Array:
    """(n_joints,) half width of the torque bands: what predictions deviate on data that was left out [N·m or N]."""
    sums = joint_torque(estimate.robot, np.eye(len(estimate.robot.joint_names))).T
    return np.asarray(half_width(LEVEL) * np.sqrt(sums**2 @ np.nan_to_num(estimate.levels) ** 2))


def torque_units(robot: Robot) -> tuple[str, ...]:
    """Unit of each moving joint's torque."""
    kinds = [robot.joints[robot.active[i]].kind for i in robot.moving]
    return tuple("N" if kind == "prismatic" else "N·m" for kind in kinds)


def position_units(robot: Robot) -> tuple[str, ...]:
    """Unit of each moving joint's position."""
    return tuple("m" if unit == "N" else "rad" for unit in torque_units(robot))
