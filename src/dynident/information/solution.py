"""Solving on factors: rank decided in the open, standard deviations, channel variances, no second look at the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from dynident.arrays import Array, Mask, on_one_thread
from dynident.errors import InputError
from dynident.identifiability.regrouping import select_columns
from dynident.information.factor import triangular
from dynident.information.information import Information
from dynident.information.parameter_estimate import ParameterEstimate, SolveRecord
from dynident.information.thresholds import THRESHOLDS

RANK_SHARE = THRESHOLDS.rounding_rank  # times the number of parameters
_SURELY_FULL = 1e-6  # smallest diagonal entry of a scaled factor beyond doubt
_ITERATIONS = 30
_LEAST_STD = 1e-150  # its inverse square is still a number
_ROWS_PER_COLUMN = 2.0  # a channel with fewer keeps the standard deviation that it has when all channels weigh alike
Method = Literal["minimum norm", "base"]
Prior = Callable[[Array], Array]  # (norms of the weighted columns) -> rows over parameters and right-hand side
_WEIGHTINGS, _METHODS, _COVARIANCES = ("iterated", "equal"), ("minimum norm", "base"), ("white", "segments")


@on_one_thread
def solve(
    information: Information,
    *,
    weighting: Literal["iterated", "equal"] = "iterated",
    method: Method = "minimum norm",
    covariance: Literal["white", "segments"] = "white",
    rank_tolerance: float | None = None,
) -> ParameterEstimate:
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
    tolerance = tolerance_for(information, rank_tolerance)
    channels, rows = dense_channels(information)
    if weighting == "iterated":
        found, sigma, iterations = solve_iterated(channels, rows, tolerance, method=method)
    else:
        sigma, iterations = np.ones(len(channels)), 1
        found = solve_weighted(channels, sigma, tolerance, method=method)
    cov = found.inverse
    if covariance == "segments":
        cov = _segment_covariance(information, found, sigma)
    elif weighting == "equal":
        freedom = max(float(rows.sum()) - found.rank, 1.0)
        cov = cov * (sum(residual_square(part, found.x) for part in channels) / freedom)
    return ParameterEstimate.of(
        information.coordinates,
        found.x,
        cov,
        found.determined,
        solve=found.record(
            information.channels,
            residual_std=residual_deviations(channels, rows, found, sigma),
            used_std=sigma,
            n_rows=rows,
            iterations=iterations,
            covariance_kind=covariance,
            warnings=dead_channels(information.channels, channels, rows),
        ),
    )


def tolerance_for(information: Information, rank_tolerance: float | None) -> float:
    """Share of the largest singular value below which one counts as zero: the one wished for, or the default."""
    tolerance = RANK_SHARE * max(information.coordinates.n, 1) if rank_tolerance is None else rank_tolerance
    if isinstance(tolerance, str) or not 0.0 < tolerance < 1.0:
        raise InputError(f"rank_tolerance is {rank_tolerance}; expected a share between 0 and 1")
    return tolerance


def dense_channels(information: Information) -> tuple[list[Array], Array]:
    """For each channel its factor's rows over all parameters and y, (k + 1, n + 1), and the rows behind it."""
    n = information.coordinates.n
    if n == 0 or information.n_rows == 0:
        raise InputError("there is nothing to solve: no columns or no rows")
    factors = information.channel_factors()
    channels = [factor.dense(n) for factor in factors]
    for name, part in zip(information.channels, channels, strict=True):
        if not np.isfinite(part).all():
            raise InputError(f"the rows of channel {name} are not all finite; remove or repair such samples first")
    return channels, np.array([factor.n_rows for factor in factors])


def dead_channels(names: Sequence[str], channels: list[Array], rows: Array) -> tuple[str, ...]:
    """A warning for each channel whose torque is zero throughout."""
    return tuple(
        f"channel {name} has no torque at all; leave it out with `outputs` if its sensor is dead"
        for name, part, count in zip(names, channels, rows, strict=True)
        if count and not part[:, -1].any()
    )


def rounding_floors(channels: list[Array]) -> Array:
    """Deviation below which a channel is never trusted: the rounding of its own torque, (n_channels,).

    That of the columns has no part in it: times the values it is a rounding of torque, whatever the torque's unit. A
    channel without any torque has nothing but them.
    """
    sizes = [float(np.linalg.norm(part[:, -1])) or float(np.linalg.norm(part)) for part in channels]
    return np.array([max(1e-15 * size, 1e-300) for size in sizes])


def trust_as_driven(deviations: Array, driven: Mask) -> Array:
    """Deviations of channels in which those without any torque are at least as large as the smallest of the others.

    Zero parameters meet equations without torque exactly: weighted by their own residual, these would take over.

    Args:
        deviations: (n_channels,) of their residuals.
        driven: (n_channels,) whether they have any torque.
    """
    least = deviations[driven].min(initial=np.inf)
    return np.where(driven | np.isinf(least), deviations, np.maximum(deviations, least))


@dataclass
class Weighted:
    """A weighted least-squares solution on factors.

    Attributes:
        x: (n,) values.
        half: (n, r) root of the inverse, see there.
        determined: (n,) whether the data alone determines each parameter.
        settled: (n,) the same for data and prior together.
        rank: Directions the data determines.
        singular: Singular values of the data with scaled columns; empty in a draft.
    """

    x: Array
    half: Array
    determined: Mask
    settled: Mask
    rank: int
    singular: Array

    @property
    def inverse(self) -> Array:
        """(n, n) inverse of the information matrix solved, W' S^-1 W plus that of a prior, over its directions."""
        return np.asarray(self.half @ self.half.T)

    def record(
        self, channels: tuple[str, ...], *, residual_std: Array, used_std: Array, n_rows: Array, **more: Any
    ) -> SolveRecord:
        """What to remember of the solution.

        Args:
            channels: Output channels.
            residual_std: (n_channels,) standard deviations of the residuals.
            used_std: (n_channels,) what the channels were divided by.
            n_rows: (n_channels,) equations of each.
            **more: Other fields of the record.
        """
        return SolveRecord(
            rank=self.rank,
            singular_values=self.singular,
            condition=self.condition,
            gap=self.gap,
            channels=channels,
            residual_std=residual_std,
            channel_weights=np.maximum(used_std, _LEAST_STD) ** -2.0,
            determined=self.determined,
            n_rows=float(n_rows.sum()),
            **more,
        )

    @property
    def condition(self) -> float:
        """Ratio of the first to the last of the singular values that count."""
        return float(self.singular[0] / self.singular[self.rank - 1]) if self.rank else float("inf")

    @property
    def gap(self) -> tuple[float, float]:
        """The last singular value kept and the first dropped, as shares of the largest."""
        largest = float(self.singular[0]) or 1.0
        kept = float(self.singular[self.rank - 1]) / largest if self.rank else 0.0
        dropped = float(self.singular[self.rank]) / largest if self.rank < len(self.singular) else 0.0
        return kept, dropped


@on_one_thread
def solve_iterated(
    channels: list[Array],
    rows: Array,
    tolerance: float,
    *,
    method: Method = "minimum norm",
    prior: Prior | None = None,
) -> tuple[Weighted, Array, int]:
    """Weigh each channel by its own residual std until that settles: the solution, these std, the rounds.

    Args:
        channels: Dense rows of each channel, see `dense_channels`.
        rows: (n_channels,) rows behind each.
        tolerance: Share of the largest singular value below which one counts as zero.
        method: What to do in directions that nothing determines, see `solve`.
        prior: Rows to add that are weighted already.
    """
    sigma = np.ones(len(channels))
    # A channel is never trusted beyond the rounding of its own numbers.
    floors = rounding_floors(channels)
    found = solve_weighted(channels, sigma, tolerance, method=method, prior=prior, draft=True)
    rounds = 1
    driven = np.array([bool(part[:, -1].any()) for part in channels])
    # A channel with hardly more rows than columns can be met exactly; weighing it by that would make it law.
    present = np.array([np.count_nonzero(part[:, :-1].any(0)) for part in channels])
    few = rows < _ROWS_PER_COLUMN * present
    floors = np.where(few, np.maximum(residual_deviations(channels, rows, found, sigma), floors), floors)
    while rounds < _ITERATIONS:
        rounds += 1
        updated = trust_as_driven(np.maximum(residual_deviations(channels, rows, found, sigma), floors), driven)
        settled = np.max(np.abs(updated / sigma - 1.0)) < 1e-9
        sigma = updated
        if settled:
            break
        found = solve_weighted(channels, sigma, tolerance, method=method, prior=prior, draft=True)
    return solve_weighted(channels, sigma, tolerance, method=method, prior=prior), sigma, rounds


@on_one_thread
def solve_weighted(
    channels: list[Array],
    sigma: Array,
    tolerance: float,
    *,
    method: Method = "minimum norm",
    prior: Prior | None = None,
    draft: bool = False,
) -> Weighted:
    """Solve with the channels weighted by their standard deviations; a draft may skip the singular values.

    With a prior, rank, singular values and `determined` are still those of the data alone.
    """
    stacked = np.vstack([rows / s for rows, s in zip(channels, sigma, strict=True)])
    if prior is None:
        return _solve_rows(stacked, tolerance, method, draft)
    n = stacked.shape[1] - 1
    more = np.vstack([stacked, prior(np.linalg.norm(stacked[:, :n], axis=0))])
    # What the user wants to count as zero in the data is what the prior is there for: only rounding is dropped.
    both = _solve_rows(more, RANK_SHARE * n, method, draft)
    if draft:
        return both
    data = _solve_rows(stacked, tolerance, method, draft)
    return replace(both, determined=data.determined, rank=data.rank, singular=data.singular)


def _solve_rows(stacked: Array, tolerance: float, method: Method, draft: bool) -> Weighted:
    """Least squares on rows that are weighted already, (m, n + 1), with columns scaled to unit norm."""
    n = stacked.shape[1] - 1
    size = np.linalg.norm(stacked[:, :n], axis=0)
    silent = size == 0.0
    scale = np.where(silent, 1.0, size)
    R = triangular(np.column_stack([stacked[:, :n] / scale, stacked[:, n]]))
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
        half = np.zeros((n, len(kept)))
        half[kept] = inverse
        determined = np.zeros(n, dtype=bool)
        determined[kept] = True
    else:
        half = vt[:rank].T / singular[:rank]
        x = half @ (u[:, :rank].T @ z)
        determined = np.sqrt(np.sum(vt[rank:] ** 2, axis=0)) < THRESHOLDS.undetermined_part
    return Weighted(x / scale, half / scale[:, None], determined, determined, rank, singular)


def _full_rank(upper: Array, z: Array, scale: Array, singular: Array) -> Weighted:
    """The unique solution. Solving with a triangular matrix is back substitution, whoever does it."""
    n = len(z)
    half = np.linalg.inv(upper)
    x = np.linalg.solve(upper, z)
    known = np.ones(n, dtype=bool)
    return Weighted(x / scale, half / scale[:, None], known, known, n, singular)


def residual_square(rows: Array, x: Array) -> float:
    """||y - W x||^2 of a channel, from its factor, as a sum of squares and never as a difference."""
    return float(np.sum((rows[:, -1] - rows[:, :-1] @ x) ** 2))


def residual_deviations(channels: list[Array], n_rows: Array, found: Weighted, sigma: Array) -> Array:
    """Residual standard deviation of each channel, with the degrees of freedom that the fit leaves in it.

    The fit was weighted by `sigma`; what it uses up in channel i is the trace of that channel's part of the hat matrix,
    W_i C W_i' / sigma_i^2, and these add up to the rank.
    """
    result = []
    used = freedom_used(channels, found.half, sigma)
    for rows, n, spent in zip(channels, n_rows, used, strict=True):
        result.append(np.sqrt(residual_square(rows, found.x) / max(float(n - spent), 1.0)) if n else 1.0)
    return np.array(result)


def freedom_used(channels: list[Array], half: Array, sigma: Array) -> Array:
    """Trace of each channel's part of the hat matrix, (n_channels,), for a fit weighted by `sigma`.

    Taken with the root of the inverse: where only a faint prior holds a direction, the inverse itself is so large that
    W C W' is all rounding.
    """
    weighted = (rows[:, :-1] / deviation for rows, deviation in zip(channels, sigma, strict=True))
    return np.array([float(np.sum((W @ half) ** 2)) for W in weighted])


def _segment_covariance(information: Information, found: Weighted, sigma: Array) -> Array:
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
    return np.asarray(found.inverse @ middle @ found.inverse)
