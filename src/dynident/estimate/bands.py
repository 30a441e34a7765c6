"""How far predicted torque may be off: what the parameters are uncertain, and what the model never explains.

A prediction w beta deviates by sqrt(w C w' + s^2), C the covariance of the parameters and s the level of residuals on
data that was not used. Both are of torque low-passed at the band of the fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import NormalDist

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.evaluate import joint_torque
from dynident.errors import InputError
from dynident.estimate.prediction import TorqueModel, motion_at_stamps
from dynident.identifiability.base import BaseParameters
from dynident.identifiability.base_regressor import BaseRegressor
from dynident.signals.observe import Observations

LEVEL = 0.9  # of the bands


def half_width(level: float) -> float:
    """Deviations on each side of a band that covers this share of a normal distribution.

    Raises:
        InputError: For a level that is no share.
    """
    if isinstance(level, str) or not 0.0 < level < 1.0:
        raise InputError(f"level is {level!r}; expected a share between 0 and 1, such as 0.9")
    return NormalDist().inv_cdf(0.5 + 0.5 * level)


def covariance_root(covariance: Array) -> Array:
    """(n, n) root S with S S' = C; what rounding made negative is zero."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def banded_blocks(
    model: TorqueModel, base: BaseParameters, root: Array, levels: Array, observations: Observations
) -> Iterator[tuple[Array, Array, Array]]:
    """Predicted joint torque and its deviation at a log's own stamps, in blocks: (n,), (n, n_joints), (n, n_joints).

    Args:
        model: The robot with its values.
        base: Base parameters whose covariance is given.
        root: (n, n) root of that covariance.
        levels: (n_joints,) residual level of each output.
        observations: The log.
    """
    regressor = BaseRegressor.of(base.robot, base.terms)
    torque, course = model.start(), regressor.course(model.reference)
    outputs = [(list(columns), lines) for columns, lines in zip(regressor.columns, regressor.lines(), strict=True)]
    # Joint torques are sums of those at the outputs; without couplings the sums have one part.
    sums = joint_torque(base.robot, np.eye(len(base.robot.joint_names))).T  # (n_joints, n_outputs)
    for stamps, pieces in motion_at_stamps(observations, base.terms):
        torques, deviations = [], []
        for samples in pieces:
            torques.append(torque.torque(samples) @ sums.T)
            rows = regressor.columns_first_along(samples, course)
            spreads = np.stack([root[columns].T @ rows[lines] for columns, lines in outputs])
            joint = np.einsum("jr,rkn->jkn", sums, spreads)
            deviations.append(np.sqrt((joint**2).sum(1).T + sums**2 @ levels**2))
        yield stamps, np.concatenate(torques), np.concatenate(deviations)
