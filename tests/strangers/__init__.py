"""Robots that are not bundled, for every experiment and estimator."""

from tests.strangers.stranger import (
    ROBOTS,
    STRANGERS,
    Calibration,
    Stranger,
    calibration,
    pinocchio_arm,
    scara,
    skewed_arm,
)

__all__ = ["ROBOTS", "STRANGERS", "Calibration", "Stranger", "calibration", "pinocchio_arm", "scara", "skewed_arm"]
