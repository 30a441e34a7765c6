"""The torque of logs beside that which the masses of the robot file ask for: what tells units, signs and files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, Mask, on_one_thread
from dynident.diagnostics.thresholds import THRESHOLDS
from dynident.diagnostics.trial import TrialSamples
from dynident.dynamics.evaluate import inverse_dynamics, regressor
from dynident.dynamics.terms import with_springs
from dynident.robot.model import Robot

_SMOOTHING = 0.02  # [rad/s] velocity over which the sign of friction changes


@dataclass(frozen=True, eq=False)
class LinkTorqueComparison:
    """The torque of logs compared with that of the robot's own links, friction and springs aside.

    Attributes:
        slopes: (n_joints,) torque per torque of the links.
        correlations: (n_joints,) of both.
        sizes: (n_joints,) rms of the torque of the links [N·m or N].
        weights: (n_joints,) rms of their weight alone, as torque of the joints [N·m or N].
        torques: (n_joints,) rms of the torque [N·m or N].
    """

    slopes: Array
    correlations: Array
    sizes: Array
    weights: Array
    torques: Array

    @property
    def clear(self) -> Mask:
        """(n_joints,), whether the links explain a joint well enough to assess its torque."""
        return np.asarray(np.abs(self.correlations) > THRESHOLDS.min_model_correlation)

    @property
    def strong(self) -> Mask:
        """(n_joints,), whether the links ask for much torque of a joint, beside the others."""
        return np.asarray(self.sizes > THRESHOLDS.strong_torque_share * self.sizes.max(initial=0.0))

    @property
    def recognized(self) -> bool:
        """Whether the torque of every strong joint follows the links: else they are hardly those of this robot."""
        return bool(self.clear[self.strong].all())


def has_masses(robot: Robot) -> bool:
    """Whether the robot file gives its links masses."""
    return any(value for name, value in robot.value_set().items() if name[0] in "MXYZ")


@on_one_thread
def compare_with_links(samples: Sequence[TrialSamples], robot: Robot) -> LinkTorqueComparison | None:
    """The torque of logs beside that of the robot's own links; None without masses."""
    if not has_masses(robot):
        return None
    q, dq, ddq, tau = (np.concatenate([getattr(one, name) for one in samples]) for name in ("q", "dq", "ddq", "tau"))
    own = inverse_dynamics(robot, q, dq, ddq, "rigid,Ia")
    still = np.zeros_like(q)
    weight = inverse_dynamics(robot, q, still, still, "rigid")
    springs = with_springs((), robot)
    sprung = regressor(robot, q, still, still, springs) if springs else np.zeros((*tau.shape, 0))
    slopes, correlations, rms = np.zeros(tau.shape[1]), np.zeros(tau.shape[1]), np.zeros(tau.shape[1])
    for joint in range(tau.shape[1]):
        velocity = dq[:, joint] / robot.radians[joint]
        beside = np.stack([np.ones_like(velocity), velocity, np.tanh(velocity / _SMOOTHING)], axis=1)
        beside = np.hstack([beside, sprung[:, joint]])
        left = [x - beside @ np.linalg.lstsq(beside, x, rcond=None)[0] for x in (tau[:, joint], own[:, joint])]
        sizes = [float(np.linalg.norm(x)) for x in left]
        rms[joint] = sizes[1] / np.sqrt(len(tau))
        if min(sizes) > 1e-9:
            correlations[joint] = float(left[0] @ left[1]) / (sizes[0] * sizes[1])
            slopes[joint] = float(left[0] @ left[1]) / sizes[1] ** 2
    return LinkTorqueComparison(slopes, correlations, rms, *(np.sqrt(np.mean(x**2, axis=0)) for x in (weight, tau)))
