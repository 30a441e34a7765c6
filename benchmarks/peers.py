"""The pipelines people write today: a Pinocchio loop for the regressor, dense least squares on all of it."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import scipy.linalg
from tests.robots import tree_model

from dynident.robot.model import Robot

COLUMNS = 14  # per joint: ten inertial, then Ia, Fv, Fc, Fo


class PinocchioPipeline:
    """A serial robot in Pinocchio with rotor and friction columns added by hand."""

    def __init__(self, robot: Robot) -> None:
        self.model = tree_model(robot)
        self.data = self.model.createData()
        self.n = self.model.nv

    def regressor_loop(self, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> None:
        """The bare loop, nothing kept."""
        for k in range(len(q)):
            pin.computeJointTorqueRegressor(self.model, self.data, q[k], dq[k], ddq[k])

    def regressor(self, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
        """(n_samples * n, 14 n)."""
        n = self.n
        W = np.zeros((len(q), n, COLUMNS * n))
        for k in range(len(q)):
            W[k, :, : 10 * n] = pin.computeJointTorqueRegressor(self.model, self.data, q[k], dq[k], ddq[k])
        joint = np.arange(n)
        for i, values in enumerate((ddq, dq, np.sign(dq), np.ones_like(dq))):
            W[:, joint, (10 + i) * n + joint] = values
        return W.reshape(-1, COLUMNS * n)

    def lstsq(self, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Loop and numpy's lstsq on the full matrix."""
        return np.linalg.lstsq(self.regressor(q, dq, ddq), tau.ravel(), rcond=None)[0]

    def base_and_deviations(self, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Loop, pivoted QR for the base columns, lstsq on them, covariance."""
        W = self.regressor(q, dq, ddq)
        R, pivots = scipy.linalg.qr(W, mode="r", pivoting=True)
        rank = int(np.sum(np.abs(np.diag(R)) > 1e-9 * abs(R[0, 0])))
        base = W[:, pivots[:rank]]
        x = np.linalg.lstsq(base, tau.ravel(), rcond=None)[0]
        residual = tau.ravel() - base @ x
        covariance = np.linalg.inv(base.T @ base) * (residual @ residual) / (len(base) - rank)
        return np.column_stack([x, np.sqrt(np.diag(covariance))])
