"""Solving on factors: rank decided in the open, deviations, channel variances, no second look at the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynident.blas import on_one_thread
from dynident.checks import Array, frozen
from dynident.errors import InputError, UnknownNameError
from dynident.identifiability.regrouping import select_columns
from dynident.information.factor import triangular
from dynident.information.information import Information

RANK_SHARE = 1e-13  # times the number of parameters: singular values below this share of the largest are zero
_DETERMINED = 1e-8  # a parameter with a larger part in an undetermined direction is not determined
_SURELY_FULL = 1e-6  # smallest diagonal entry of a scaled factor beyond doubt
_ITERATIONS = 30
_WEIGHTINGS, _METHODS, _COVARIANCES = ("iterated", "equal"), ("minimum norm", "base"), ("white", "segments")


@dataclass(frozen=True)
class Solution:
    """Values of the parameters and what is known about their accuracy.

    Attributes:
        names: Base parameter names.
        units: Their units.
        values: (n,).
        std: (n,) standard deviations; infinite where the data says nothing.
        covariance: (n, n) over the determined directions.
        determined: (n,) whether the data determines each parameter.
        rank: Number of directions the data determines.
        singular_values: Of the weighted factor with columns scaled to unit norm, largest first.
        condition: Ratio of the first to the last of the `rank` singular values.
        gap: The last singular value kept and the first dropped, as shares of the largest.
        channels: Output channels.
        sigma: Standard deviation of each channel's residual, in the channel's unit.
        n_rows: Rows behind the solution.
        iterations: Rounds of weighting.
        covariance_kind: "white" or "segments".
        warnings: What a reader should know.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Array
    std: Array
    covariance: Array
    determined: Array
    rank: int
    singular_values: Array
    condition: float
    gap: tuple[float, float]
    channels: tuple[str, ...]
    sigma: Array
    n_rows: float
    iterations: int
    covariance_kind: str
    warnings: tuple[str, ...] = ()

    @property
    def relative_std(self) -> Array:
        """Deviations as a share of the values, infinite at zero."""
        with np.errstate(divide="ignore"):
            return np.where(self.values == 0.0, np.inf, self.std / np.abs(np.where(self.values, self.values, 1.0)))

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Parameters the data cannot determine."""
        return tuple(name for name, known in zip(self.names, self.determined, strict=True) if not known)

    def __getitem__(self, name: str) -> float:
        """Value of a parameter by name."""
        if name not in self.names:
            raise UnknownNameError("base parameter", name, self.names)
        return float(self.values[self.names.index(name)])


@on_one_thread
def solve(
    information: Information,
    *,
    weighting: Literal["iterated", "equal"] = "iterated",
    method: Literal["minimum norm", "base"] = "minimum norm",
    covariance: Literal["white", "segments"] = "white",
    rank_tolerance: float | None = None,
) -> Solution:
    """Least squares over all channels.

    Args:
        information: The data.
        weighting: "iterated" weights each channel by its own residual variance until that settles; "equal" trusts all
            channels alike.
        method: What to do in directions the data does not determine: "minimum norm" (in scaled columns), or "base":
            keep the columns that are independent from the left, set the others to zero.
        covariance: "white" assumes independent residuals; "segments" allows any correlation within a segment.
        rank_tolerance: Share of the largest singular value below which one counts as zero.
    """
    for value, valid in ((weighting, _WEIGHTINGS), (method, _METHODS), (covariance, _COVARIANCES)):
        if value not in valid:
            raise InputError(f"'{value}' is not a choice here; expected {' or '.join(valid)}")
    n = information.coordinates.n
    if n == 0 or information.n_rows == 0:
        raise InputError("there is nothing to solve: no columns or no rows")
    tolerance = RANK_SHARE * n if rank_tolerance is None else rank_tolerance
    if not 0.0 < tolerance < 1.0:
        raise InputError(f"rank_tolerance is {rank_tolerance}; expected a share between 0 and 1")
    factors = information.channel_factors()
    channels = [factor.dense(n) for factor in factors]
    rows = np.array([factor.n_rows for factor in factors])
    if weighting == "iterated":
        found, sigma, iterations = _iterated(channels, rows, method, tolerance)
    else:
        sigma, iterations = np.ones(len(channels)), 1
        found = _weighted(channels, sigma, method, tolerance)
    cov = found.unit_covariance
    if covariance == "segments":
        cov = _segment_covariance(information, found, sigma)
    elif weighting == "equal":
        freedom = max(float(rows.sum()) - found.rank, 1.0)
        cov = cov * (sum(_residual_square(part, found.x) for part in channels) / freedom)
    std = np.sqrt(np.maximum(np.diag(cov), 0.0))
    return Solution(
        names=information.names,
        units=information.coordinates.units,
        values=frozen(found.x),
        std=frozen(np.where(found.determined, std, np.inf)),
        covariance=frozen(cov),
        determined=_frozen_mask(found.determined),
        rank=found.rank,
        singular_values=frozen(found.singular),
        condition=float(found.singular[0] / found.singular[found.rank - 1]) if found.rank else float("inf"),
        gap=_gap(found.singular, found.rank),
        channels=information.channels,
        sigma=frozen(_sigmas(channels, rows, found, sigma)),
        n_rows=float(rows.sum()),
        iterations=iterations,
        covariance_kind=covariance,
        warnings=tuple(
            f"channel {name} has no torque at all; leave it out with `outputs` if its sensor is dead"
            for name, part, count in zip(information.channels, channels, rows, strict=True)
            if count and not part[:, -1].any()
        ),
    )


def _iterated(channels: list[Array], rows: Array, method: str, tolerance: float) -> tuple[_Weighted, Array, int]:
    """Weigh each channel by its own residual deviation until that settles: the solution, the deviations, the rounds."""
    sigma = np.ones(len(channels))
    # A channel is never trusted beyond the rounding of its own numbers.
    floors = np.array([max(1e-15 * float(np.linalg.norm(part)), 1e-300) for part in channels])
    found = _weighted(channels, sigma, method, tolerance, draft=True)
    rounds = 1
    while rounds < _ITERATIONS:
        rounds += 1
        updated = np.maximum(_sigmas(channels, rows, found, sigma), floors)
        settled = np.max(np.abs(updated / sigma - 1.0)) < 1e-9
        sigma = updated
        if settled:
            break
        found = _weighted(channels, sigma, method, tolerance, draft=True)
    return _weighted(channels, sigma, method, tolerance), sigma, rounds


@dataclass
class _Weighted:
    """A weighted least-squares solution on factors."""

    x: Array
    unit_covariance: Array  # (W' S^-1 W)^-1 over the determined directions
    determined: Array
    rank: int
    singular: Array


def _weighted(channels: list[Array], sigma: Array, method: str, tolerance: float, draft: bool = False) -> _Weighted:
    """Solve with the channels weighted by their deviations; a draft may skip the singular values."""
    stacked = np.vstack([rows / s for rows, s in zip(channels, sigma, strict=True)])
    n = stacked.shape[1] - 1
    size = np.linalg.norm(stacked[:, :n], axis=0)
    silent = size == 0.0
    scale = np.where(silent, 1.0, size)
    stacked[:, :n] /= scale
    R = triangular(stacked)
    upper, z = R[:n, :n], R[:n, n]
    if draft and not silent.any() and np.abs(np.diag(upper)).min() > _SURELY_FULL:
        return _full_rank(upper, z, scale, np.zeros(0))
    u, singular, vt = np.linalg.svd(upper)
    rank = int(np.sum(singular > tolerance * singular[0])) if singular[0] > 0.0 else 0
    if rank == n:
        return _full_rank(upper, z, scale, singular)
    if method == "base":
        kept, _, _ = select_columns(upper, [int(j) for j in np.flatnonzero(~silent)], max(tolerance, 1e-12))
        kept = kept[:rank]
        part = triangular(np.column_stack([upper[:, kept], z]))
        inverse = np.linalg.inv(part[: len(kept), : len(kept)])
        x = np.zeros(n)
        x[kept] = inverse @ part[: len(kept), len(kept)]
        covariance = np.zeros((n, n))
        covariance[np.ix_(kept, kept)] = inverse @ inverse.T
        determined = np.zeros(n, dtype=bool)
        determined[kept] = True
    else:
        v = vt[:rank].T / singular[:rank]
        x = v @ (u[:, :rank].T @ z)
        covariance = v @ v.T
        determined = np.sqrt(np.sum(vt[rank:] ** 2, axis=0)) < _DETERMINED
    return _Weighted(x / scale, covariance / np.outer(scale, scale), determined, rank, singular)


def _full_rank(upper: Array, z: Array, scale: Array, singular: Array) -> _Weighted:
    """The unique solution. Solving with a triangular matrix is back substitution, whoever does it."""
    n = len(z)
    inverse = np.linalg.inv(upper)
    x = np.linalg.solve(upper, z)
    covariance = inverse @ inverse.T
    return _Weighted(x / scale, covariance / np.outer(scale, scale), np.ones(n, dtype=bool), n, singular)


def _residual_square(rows: Array, x: Array) -> float:
    """||y - W x||^2 of a channel, from its factor, as a sum of squares and never as a difference."""
    return float(np.sum((rows[:, -1] - rows[:, :-1] @ x) ** 2))


def _sigmas(channels: list[Array], n_rows: Array, found: _Weighted, sigma: Array) -> Array:
    """Residual deviation of each channel, with the degrees of freedom that the fit leaves in it.

    The fit was weighted by `sigma`; what it uses up in channel i is the trace of that channel's part of the hat matrix,
    W_i C W_i' / sigma_i^2, and these add up to the rank.
    """
    result = []
    for rows, n, deviation in zip(channels, n_rows, sigma, strict=True):
        W = rows[:, :-1] / deviation
        used = float(np.sum((W @ found.unit_covariance) * W))
        result.append(np.sqrt(_residual_square(rows, found.x) / max(float(n) - used, 1.0)) if n else 1.0)
    return np.array(result)


def _segment_covariance(information: Information, found: _Weighted, sigma: Array) -> Array:
    """Sandwich covariance with one score per segment: right for any correlation within segments."""
    segments = information.segments
    if len(segments) < 2:
        raise InputError("a covariance over segments needs at least two segments; accumulate with shorter ones")
    n = information.coordinates.n
    scores = np.zeros((len(segments), n))
    for s, segment in enumerate(segments):
        for factor, deviation in zip(segment.factors, sigma, strict=True):
            rows = factor.dense(n) / deviation
            scores[s] += rows[:, :n].T @ (rows[:, n] - rows[:, :n] @ found.x)
    small_sample = len(segments) / (len(segments) - 1.0)
    middle = small_sample * scores.T @ scores
    return np.asarray(found.unit_covariance @ middle @ found.unit_covariance)


def _frozen_mask(mask: Array) -> Array:
    copy = mask.copy()
    copy.setflags(write=False)
    return copy


def _gap(singular: Array, rank: int) -> tuple[float, float]:
    largest = float(singular[0]) or 1.0
    kept = float(singular[rank - 1]) / largest if rank else 0.0
    dropped = float(singular[rank]) / largest if rank < len(singular) else 0.0
    return kept, dropped
