r"""Coefficients under priors whose scales the data chooses (empirical Bayes: MacKay 1992, Neural Computation 4:415).

A column is known up to a group: its coefficient is N(0, (s_g u_i)^2). The unit u_i makes the column's torque as large
(RMS) as that of the channel in which it weighs most; the scale s_g is shared by a group and maximizes the marginal
likelihood. What the data does not support goes to zero by itself, so nothing needs to be selected.

Everything is solved for c = x / (s_g u_i), whose prior is N(0, I): rows [X diag(s u) | y] above [I | 0] made
triangular. A scale may be zero, and no singular value is below one, whatever the columns are like.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynident.arrays import Array, on_one_thread, record
from dynident.estimate.thresholds import THRESHOLDS
from dynident.identifiability.base import BaseParameters
from dynident.information.factor import absorb, triangular
from dynident.information.solution import residual_square, rounding_floors, trust_as_driven

_ROUNDS = 100
_LEAST_DETERMINED = 1e-6  # coefficients of a group, so that a scale stays a number
_SCALES = (1e-4, 1e3)  # between which scales are looked for: nothing of the torque, and as good as free
_MOMENTS = ("M", "MX", "MY", "MZ")
_LEAST_FREEDOM = 0.1  # share of a channel's rows that no fit uses up


@dataclass(frozen=True)
class PriorGroup:
    """Columns that share a scale.

    Attributes:
        key: Name of the group.
        columns: Numbers of its columns.
        scale: To begin with: what its coefficients typically make of the torque of their channel.
    """

    key: str
    columns: tuple[int, ...]
    scale: float


def basic_groups(base: BaseParameters, n: int | None = None) -> list[PriorGroup]:
    """Groups of the first n base parameters: weight, other inertia of links, and each other term."""
    groups: dict[str, list[int]] = {}
    for i, index in enumerate(base.independent[:n]):
        column = base.columns[index]
        name = ("moments" if column.symbol in _MOMENTS else "inertias") if column.term == "rigid" else column.term
        groups.setdefault(name, []).append(i)
    return [PriorGroup(name, tuple(own), THRESHOLDS.basic_scale) for name, own in groups.items()]


@record
class Posterior:
    """Coefficients that data and prior determine together.

    Attributes:
        values: (n,) coefficients; zero outside the groups.
        half: (n, k) root of their covariance, C = H H'.
        reduction: (k,) share of each coefficient's prior variance that the data takes away, 0 to 1; of those in groups.
    """

    values: Array
    half: Array
    reduction: Array

    @property
    def covariance(self) -> Array:
        """(n, n)."""
        return np.asarray(self.half @ self.half.T)


@record
class EmpiricalPrior:
    """A prior that data has chosen, with the standard deviations that channels are weighted by: all that a solve needs.

    Attributes:
        groups: The groups.
        units: (k,) unit of each coefficient, group after group.
        scales: (n_groups,) of the groups.
        sigma: (n_channels,) standard deviation of each channel's residual [N·m or N].
        determined: (n_groups,) how many coefficients of each group the data determines.
        rounds: Until scales and standard deviations had settled.
    """

    groups: tuple[PriorGroup, ...]
    units: Array
    scales: Array
    sigma: Array
    determined: Array
    rounds: int

    @functools.cached_property
    def columns(self) -> list[int]:
        """(k,) columns of the groups, group after group."""
        return [column for group in self.groups for column in group.columns]

    @functools.cached_property
    def spread(self) -> Array:
        """(k,) prior standard deviation of each coefficient."""
        return np.asarray(self.units * np.repeat(self.scales, [len(group.columns) for group in self.groups]))

    @property
    def supported(self) -> tuple[PriorGroup, ...]:
        """The groups whose scale has not gone to nothing."""
        return tuple(group for group, scale in zip(self.groups, self.scales, strict=True) if scale > _SCALES[0])

    def moved(self, place: Mapping[int, int]) -> EmpiricalPrior:
        """The same where columns stand in other places; groups whose columns have none are left out."""
        kept = [g for g, group in enumerate(self.groups) if all(column in place for column in group.columns)]
        groups = tuple(
            replace(self.groups[g], columns=tuple(place[column] for column in self.groups[g].columns)) for g in kept
        )
        units = np.array([unit for column, unit in zip(self.columns, self.units, strict=True) if column in place])
        return EmpiricalPrior(groups, units, self.scales[kept], self.sigma, self.determined[kept], self.rounds)

    @property
    def deviations(self) -> Array:
        """(n_channels,) what the rows of each channel are divided by, see `soft_deviations`."""
        return soft_deviations(self.sigma)

    @on_one_thread
    def compress(self, channels: Sequence[Array]) -> Array:
        """Rows [X diag(s u) | y] of all channels, divided by their standard deviations, as one triangle (k + 1, k + 1).

        Args:
            channels: Triangles (or rows) of each channel, (k_j, n + 1), y last.
        """
        scale = np.append(self.spread, 1.0)
        weights = zip(channels, self.deviations, strict=True)
        return triangular(np.vstack([rows[:, [*self.columns, -1]] * (scale / own) for rows, own in weights]))

    @on_one_thread
    def solve(self, triangles: Sequence[Array], n: int) -> Posterior:
        """Solve with the scales as they are.

        Args:
            triangles: Parts of the data, from `compress`.
            n: Number of all columns.
        """
        k = len(self.columns)
        c, half = _solve_scaled(triangles, k)
        values, root = np.zeros(n), np.zeros((n, k))
        values[self.columns], root[self.columns] = self.spread * c, self.spread[:, None] * half
        return Posterior(values, root, 1.0 - (half**2).sum(1))


def soft_deviations(sigma: Array) -> Array:
    """What rows are divided by, sqrt(f (sigma_j^2 + (a max sigma)^2)), (n_channels,) like sigma.

    Neighboring rows are alike, so that f of them weigh as one. And models are wrong: a wrist that fits to a hundredth
    of what the shoulder does must not decide the first moments of the arm.
    """
    softened = sigma**2 + (THRESHOLDS.softening * sigma.max(initial=0.0)) ** 2
    return np.asarray(np.sqrt(THRESHOLDS.correlated_rows * softened))


@on_one_thread
def fit_evidence(
    channels: Sequence[Array], n_rows: Array, groups: Sequence[PriorGroup]
) -> tuple[EmpiricalPrior, Posterior]:
    """Choose the scales of a prior by marginal likelihood, and solve under it.

    Args:
        channels: Triangles (or rows) of each channel, (k_j, n + 1), y last.
        n_rows: (n_channels,) rows behind each.
        groups: Columns that share a scale; columns in none have a coefficient of zero.
    """
    used = [group for group in groups if group.columns]
    own = [column for group in used for column in group.columns]
    owners = np.repeat(np.arange(len(used)), [len(group.columns) for group in used])
    count = np.maximum(n_rows, 1.0)
    torque = np.sqrt(np.array([rows[:, -1] @ rows[:, -1] for rows in channels]) / count)
    floors = np.maximum(rounding_floors(list(channels)), THRESHOLDS.least_residual * torque)
    # Terms of a joint that is hardly driven cancel: its torque says nothing of how large they are.
    typical = np.maximum(torque, THRESHOLDS.least_drive * torque.max(initial=0.0))
    units = _units(channels, count, typical, [group.columns for group in used])[own]
    present = [np.flatnonzero(rows[:, own].any(0)) for rows in channels]
    parts = [np.ascontiguousarray(rows[:, own][:, at] * units[at]) for rows, at in zip(channels, present, strict=True)]
    scales = np.array([group.scale for group in used])
    sigma = np.maximum(THRESHOLDS.first_residual * torque, floors)
    determined, rounds, settled = np.zeros(len(used)), 0, False
    while not settled and rounds < _ROUNDS:
        rounds += 1
        deviations, spread = soft_deviations(sigma), scales[owners]
        stacked = np.zeros((sum(map(len, parts)), len(own) + 1))
        first = 0
        for part, rows, at, deviation in zip(parts, channels, present, deviations, strict=True):
            stacked[first : first + len(part), at] = part * (spread[at] / deviation)
            stacked[first : first + len(part), -1] = rows[:, -1] / deviation
            first += len(part)
        c, half = _solve_scaled([stacked], len(own))
        reduction = 1.0 - (half**2).sum(1)
        determined = np.maximum(np.bincount(owners, reduction, len(used)), _LEAST_DETERMINED)
        wanted = scales * np.sqrt(np.bincount(owners, c**2, len(used)) / determined)
        wanted = np.clip(wanted, *_SCALES)
        found = [
            _deviation(part, rows[:, -1], spread[at] * c[at], spread[at, None] * half[at], k, s)
            for part, rows, at, k, s in zip(parts, channels, present, n_rows, deviations, strict=True)
        ]
        fresh = trust_as_driven(np.maximum(np.array(found), floors), torque > 0.0)
        change = determined * np.abs(np.log(wanted / scales)), np.abs(np.log(fresh / np.maximum(sigma, 1e-300)))
        scales, sigma = wanted, fresh
        settled = change[0].max() < THRESHOLDS.settled_scale and change[1].max() < THRESHOLDS.settled_residual
    prior = EmpiricalPrior(tuple(used), units, scales, sigma, determined, rounds)
    return prior, prior.solve([prior.compress(channels)], channels[0].shape[1] - 1)


def _units(channels: Sequence[Array], count: Array, torque: Array, groups: Sequence[tuple[int, ...]]) -> Array:
    """(n,) unit of each column: 1 / u is the largest ratio over the channels of its RMS to that of the torque.

    A column that the motion hardly excites is no reason to expect a large coefficient, which other motion would show:
    its RMS counts as a share of that of the largest column of its group at least, in channels where it is not zero.
    """
    size = np.sqrt(np.array([(rows[:, :-1] ** 2).sum(0) for rows in channels]) / count[:, None])
    for group in groups:
        own = size[:, list(group)]
        least = THRESHOLDS.least_excitation * own.max(1, keepdims=True)
        size[:, list(group)] = np.where(own > 0.0, np.maximum(own, least), 0.0)
    share = np.max(size / np.where(torque > 0.0, torque, np.inf)[:, None], axis=0)
    return np.asarray(np.where(share > 0.0, 1.0 / np.where(share > 0.0, share, 1.0), 0.0))


def _solve_scaled(parts: Sequence[Array], k: int) -> tuple[Array, Array]:
    """Coefficients (k,) under N(0, I) on rows [X | y] of unit variance, and the root of their covariance, (k, k)."""
    R = np.zeros((k + 1, k + 1))
    R[:k, :k] = np.eye(k)
    for rows in parts:
        absorb(R, np.array(rows.T, order="C"))  # a copy: absorbing destroys it
    half = np.asarray(np.linalg.inv(np.triu(R[:k, :k])), dtype=np.float64)
    return half @ R[:k, k], half


def _deviation(X: Array, y: Array, z: Array, half: Array, n_rows: float, deviation: float) -> float:
    """Residual standard deviation of a channel, with the freedom that the fit uses up in it."""
    if not n_rows:
        return 0.0
    used = float(((X @ half) ** 2).sum()) / deviation**2
    square = residual_square(np.column_stack([X, y]), z)
    return float(np.sqrt(square / max(n_rows - used, _LEAST_FREEDOM * n_rows, 1.0)))
