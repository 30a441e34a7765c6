"""What a fit knows about standard parameters, as rows: ||A chi - y|| is the distance to the fit in deviations."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dynident.arrays import Array
from dynident.errors import InputError
from dynident.estimate.estimator import Estimator
from dynident.estimate.fit import Fit
from dynident.estimate.least_squares import WeightedLeastSquares
from dynident.identifiability.base import BaseParameters
from dynident.information.information import Information
from dynident.information.solution import RANK_SHARE

_UNSEEN = 1e-11  # eigenvalue of a correlation, as a share of the largest, that rounding makes of zero
_ROUNDING = 1e-10
Evidence = Fit | Estimator | Information


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a fit.

    Attributes:
        base: What the base parameters are, over which terms of which robot.
        beta: (n,) unconstrained values.
        covariance: (n, n) of them.
        R: (m, n): ||R (beta' - beta)|| is how far beta' is from the fit, in deviations.
        rank: Directions that the data determines.
        channels: Names of the output channels; empty where nothing is known about them.
        factors: Dense rows of each channel over base parameters and torque, (k + 1, n + 1) each.
        reference: What load-dependent terms are linear around, or None.
        notes: What a reader should know.
    """

    base: BaseParameters
    beta: Array
    covariance: Array
    R: Array
    rank: int
    channels: tuple[str, ...] = ()
    factors: tuple[Array, ...] = ()
    reference: Array | None = None
    notes: tuple[str, ...] = ()

    def relative_errors(self, beta: Array) -> Array:
        """||tau - W beta|| / ||tau|| of each channel, (n_channels,)."""
        errors = np.array([np.linalg.norm(rows[:, -1] - rows[:, :-1] @ beta) for rows in self.factors])
        sizes = np.array([np.linalg.norm(rows[:, -1]) for rows in self.factors])
        return np.asarray(errors / np.maximum(sizes, 1e-300))


def rows_of(
    fit: Evidence,
    base: BaseParameters | None = None,
    inflation: Array | None = None,
    reference: Array | None = None,
) -> Rows:
    """The rows of a fit.

    Args:
        fit: An estimate, a fitted estimator, or data, which is then fitted by weighted least squares.
        base: The base parameters with their robot; needed only where the data has lost them (a file of factors).
        inflation: (n_channels,) rows that weigh as much as one independent row, for a fitted estimator; an estimate
            knows its own.
        reference: (10 n_links,) what load-dependent terms of a fitted estimator are linear around.
    """
    if isinstance(fit, Fit):
        if base is not None or inflation is not None or reference is not None:
            raise InputError("base, inflation and reference go with a fitted estimator; an estimate has its own")
        return _of_estimate(fit)
    if isinstance(fit, Information):
        fit = WeightedLeastSquares().fit(fit)
    if not isinstance(fit, Estimator):
        raise InputError(f"a {type(fit).__name__} is no fit; expected a Fit, a fitted estimator or an Information")
    return replace(_of_estimator(fit, base, inflation), reference=reference)


def _of_estimator(fit: Estimator, base: BaseParameters | None, inflation: Array | None) -> Rows:
    information = fit.information_
    owner = information.coordinates if base is None else base
    if not isinstance(owner, BaseParameters):
        raise InputError("the data does not know its robot; give base=base_parameters(robot, terms)")
    if owner.names != information.names or not np.allclose(owner.K, information.coordinates.K):
        raise InputError("the base parameters given are not those of the data; use the terms of the fit")
    n = owner.n
    more = np.ones(len(fit.channels_)) if inflation is None else np.maximum(np.asarray(inflation, dtype=float), 1.0)
    if more.shape != (len(fit.channels_),):
        raise InputError(f"inflation must be {len(fit.channels_)} numbers, one per channel; got shape {more.shape}")
    factors = tuple(factor.dense(n) for factor in information.channel_factors())
    weights = np.sqrt(fit.channel_weights_ / more)
    # Ordinary least squares weighs all channels by one; its deviations are those of the residuals.
    if np.ptp(fit.channel_weights_) == 0.0:
        weights = 1.0 / (np.maximum(fit.sigma_, 1e-150) * np.sqrt(more))
    stacked = np.vstack([rows[:, :n] * weight for rows, weight in zip(factors, weights, strict=True)])
    R, rank = _triangular(stacked)
    covariance = fit.covariance_ if inflation is None else _inverse(R)
    return Rows(owner, fit.values_, covariance, R, rank, fit.channels_, factors)


def _triangular(stacked: Array) -> tuple[Array, int]:
    """Square-root information of determined directions, (rank, n), columns scaled while that is decided."""
    n = stacked.shape[1]
    size = np.linalg.norm(stacked, axis=0)
    scale = np.where(size > 0.0, size, 1.0)
    _, singular, vt = np.linalg.svd(np.linalg.qr(stacked / scale)[1])
    rank = int(np.sum(singular > max(RANK_SHARE * n, 1e-10) * singular[0]))
    return np.asarray(singular[:rank, None] * vt[:rank] * scale), rank


def _inverse(R: Array) -> Array:
    half = np.linalg.pinv(R)
    return np.asarray(half @ half.T)


def _of_estimate(fit: Fit) -> Rows:
    """From values and covariance.

    Parameters without a deviation (eliminated, or zero by declaration) tell nothing. Of those that are not determined
    an estimate of old files knows values and deviations within what the data sees, but not along which directions it
    sees nothing; so they stay within these deviations, lest the torque changes.
    """
    if fit.open_directions is not None:
        R = _beside(fit.open_directions, fit.covariance)
        settled = f"the data leaves open {', '.join(fit.undetermined)}; where it does, the prior settled them"
        return Rows(fit.base, fit.beta, fit.covariance, R, len(R), reference=fit.reference, notes=(settled,))
    std = np.sqrt(np.maximum(np.diag(fit.covariance), 0.0))
    own = np.flatnonzero(std > 0.0)
    if not len(own):
        raise InputError("the estimate determines no parameter; there is nothing to make physical")
    scale = std[own]
    values, vectors = np.linalg.eigh(fit.covariance[np.ix_(own, own)] / np.outer(scale, scale))
    values = np.where(values < _UNSEEN * values[-1], 1.0, values)
    R = np.zeros((len(own), fit.base.n))
    R[:, own] = (vectors / np.sqrt(values)).T / scale
    notes: tuple[str, ...] = ()
    if fit.undetermined:
        notes = (
            f"the data leaves open {', '.join(fit.undetermined)}; they were kept near the values of the fit, for its "
            "file does not tell along which combinations they are free: identify again to let them go",
        )
    return Rows(fit.base, fit.beta, fit.covariance, R, min(fit.rank, len(own)), reference=fit.reference, notes=notes)


def _beside(directions: Array, covariance: Array) -> Array:
    """Square-root information of what lies beside open directions, (n - k, n), from a covariance (n, n)."""
    std = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale = np.where(std > 0.0, std, 1.0)
    n, k = directions.shape
    # In units of deviations; what is orthogonal to the open directions there is what rows can be made of.
    seen = np.linalg.qr(directions / scale[:, None], mode="complete")[0][:, k:]
    seen[np.linalg.norm(seen, axis=1) < _ROUNDING] = 0.0  # a parameter that is open by itself, not almost so
    values, vectors = np.linalg.eigh(seen.T @ (covariance / np.outer(scale, scale)) @ seen)
    values = np.maximum(values, _UNSEEN * values[-1]) if n > k else values
    return np.asarray((seen @ vectors / np.sqrt(values)).T / scale)
