"""Logs of slow sweeps that no simulation made: exact weight, friction by hand."""

from __future__ import annotations

import numpy as np

import dynident as di

STEP = 0.012  # [s]


def there_and_back(lower: float, upper: float, velocity: float, step: float = STEP) -> np.ndarray:
    """Positions of a joint at constant velocity, up and down again."""
    t = np.arange(0.0, (upper - lower) / velocity, step)
    return np.concatenate([lower + velocity * t, upper - velocity * t])


def sweep_log(robot, joint, pose, lower=-1.0, upper=1.1, velocity=0.3, *, friction=0.0, torque=None, label="made"):
    """A log of one joint's sweep: torque that holds the robot still, and `friction` [N·m] against the motion.

    Args:
        torque: More torque at the swept joint, a function of its angles and directions.
    """
    own = there_and_back(lower, upper, velocity)
    q = np.tile(np.asarray(pose, dtype=float), (len(own), 1))
    q[:, joint] = own
    way = np.sign(np.gradient(own))
    tau = di.joint_torque(robot, di.gravity_torque(robot, q))
    tau[:, joint] += friction * way + (0.0 if torque is None else torque(own, way))
    channels = {}
    for kind, values in (("q", q), ("tau", tau)):
        channels |= {f"{kind}{name[1:]}": x for name, x in zip(robot.position_names, values.T, strict=True)}
    return di.Log(label, label, STEP * np.arange(len(own)), channels)


def sweep_logs(robot, pose, **how):
    """One log for each joint."""
    return [sweep_log(robot, j, pose, label=f"joint {j}", **how) for j in range(len(robot.moving))]
