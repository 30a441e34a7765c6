"""Combinations of base parameters about which data says nothing."""

from __future__ import annotations

import numpy as np

from dynident.arrays import Array
from dynident.estimate.estimator import Estimator


def open_directions(fit: Estimator) -> Array:
    """(n, n - rank) directions v with W v = 0: along them the values of a fit are a choice, not a measurement.

    A covariance cannot tell them. It is zero along other directions, those that least squares of minimum norm leaves at
    zero, and the two differ by the scale of the columns, which only the data knows.

    Args:
        fit: A fitted estimator.
    """
    information, n = fit.information_, len(fit.values_)
    weights = np.sqrt(fit.channel_weights_)
    factors = zip(information.channel_factors(), weights, strict=True)
    stacked = np.vstack([factor.dense(n)[:, :n] * weight for factor, weight in factors])
    size = np.linalg.norm(stacked, axis=0)
    scale = np.where(size > 0.0, size, 1.0)
    vt = np.linalg.svd(np.linalg.qr(stacked / scale)[1])[2]
    return np.asarray((vt[fit.rank_ :] / scale).T)
