r"""Lack of fit seen in repeats of a motion: what their residuals have in common is the model's error, not noise.

Noise differs from run to run. A residual that comes back with the motion does not average out over N runs, however many
there are. With :math:`\rho` the correlation of residuals at the same place of the motion in two runs, a row weighs as
one of

.. math:: f\,(1 + m \rho)

instead of f, where m is the mean number of other runs that repeat a row and f the inflation by neighboring residuals.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.arrays import Array, record
from dynident.estimate.thresholds import THRESHOLDS
from dynident.identifiability.base_regressor import RowSource
from dynident.signals.observations import Observations
from dynident.signals.repeats import MotionStates, find_repeats, motion_states

Residuals = dict[str, tuple[Array, Array]]  # of each log: times (n,), residuals (n, n_channels), NaN where not used


@record
class LackOfFit:
    """What residuals of repeated motion have in common.

    Attributes:
        channels: Names of the channels.
        correlation: (n_channels,) of residuals at the same place of the motion in two runs; zero where chance explains
            it.
        repeats: (n_channels,) mean number of other runs that repeat a row.
    """

    channels: tuple[str, ...]
    correlation: Array
    repeats: Array

    @property
    def inflation(self) -> Array:
        """(n_channels,) factor by which it adds to that of neighboring residuals."""
        return np.asarray(1.0 + self.repeats * self.correlation)

    def warnings(self) -> tuple[str, ...]:
        """What a reader should know of it."""
        own = [
            f"{name} ({100.0 * rho:.0f} %)"
            for name, rho, factor in zip(self.channels, self.correlation, self.inflation, strict=True)
            if factor > THRESHOLDS.reported_lack_of_fit
        ]
        if not own:
            return ()
        return (
            f"residuals come back with the motion: their correlation between runs is {', '.join(own)}. The model lacks "
            "something there, and more runs of this motion do not help; standard deviations allow for it",
        )


def find_lack_of_fit(
    observations: Sequence[Observations], rows: RowSource, values: Array, inflation: Array, seconds: float
) -> LackOfFit:
    """Compare the residuals of base values where a motion is repeated.

    Args:
        observations: The logs.
        rows: Their equations.
        values: (n,) base values.
        inflation: (n_channels,) rows that weigh as much as one independent row, by neighboring residuals.
        seconds: Length of the part of each log that is looked at [s].
    """
    n = len(rows.channels)
    runs = _repeated_runs(motion_states(observations, seconds))
    if not runs:
        return LackOfFit(rows.channels, np.zeros(n), np.zeros(n))
    residuals = _residuals(rows, values)
    found = [residuals.get(one.log.label, (np.zeros(0), np.zeros((0, n)))) for one in observations]
    products, counts = np.zeros(n), np.zeros(n)
    for run in runs:
        time, own = found[run.first]
        inside = (np.abs(time[:, None] - run.times) <= 0.5 * run.spacing).any(1)
        other = _interpolate(*found[run.second], time[inside] + run.offset)
        both = np.isfinite(own[inside]) & np.isfinite(other)
        products += np.where(both, own[inside] * other, 0.0).sum(0)
        counts += both.sum(0)
    every = np.concatenate([own for _, own in found])
    total = np.maximum(np.isfinite(every).sum(0), 1)
    variance = np.maximum(np.nansum(every**2, axis=0) / total, 1e-300)
    correlation = products / (np.maximum(counts, 1.0) * variance)
    chance = THRESHOLDS.lack_of_fit_std * np.sqrt(inflation / np.maximum(counts, 1.0))
    correlation = np.where(correlation > chance, np.minimum(correlation, 1.0), 0.0)
    return LackOfFit(rows.channels, correlation, 2.0 * counts / total)


@record
class _RepeatedRun:
    """A motion that is repeated.

    Attributes:
        first, second: Numbers of the two logs, which may be the same.
        times: (n,) states of the first that are repeated [s].
        spacing: Between states [s].
        offset: From the first time to the second [s].
    """

    first: int
    second: int
    times: Array
    spacing: float
    offset: float


def _repeated_runs(found: MotionStates) -> list[_RepeatedRun]:
    """Pairs of runs of one motion, each pair once, with the time between them where their states agree best."""
    i, j = np.nonzero(np.triu(find_repeats(found), 1))
    if not len(i):
        return []
    spacing = float(np.median(np.abs(np.diff(found.time))))
    offsets = found.time[j] - found.time[i]
    # Along a run the offset is the same but for the spacing of the states.
    keys = np.stack([found.log[i], found.log[j], np.round(offsets / (4.0 * spacing))], axis=1)
    spread = np.maximum(found.states.std(0), 1e-12)
    x = found.states / spread
    slope = np.gradient(x, spacing, axis=0)
    runs = []
    for key in np.unique(keys, axis=0):
        own = np.flatnonzero((keys == key).all(1))
        a, b = i[own], j[own]
        # The time by which the states of the second run are behind those of the first, by least squares.
        later = ((x[a] - x[b]) * slope[b]).sum(1) / np.maximum((slope[b] ** 2).sum(1), 1e-300)
        offset = float(np.median(offsets[own] + later))
        runs.append(_RepeatedRun(int(key[0]), int(key[1]), np.unique(found.time[a]), spacing, offset))
    return runs


def _interpolate(time: Array, values: Array, wanted: Array) -> Array:
    """Values (n, n_channels) at other times, linear between neighbors; NaN beside a gap."""
    if len(time) < 2:
        return np.full((len(wanted), values.shape[1]), np.nan)
    step = float(np.median(np.diff(time)))
    right = np.clip(np.searchsorted(time, wanted), 1, len(time) - 1)
    share = (wanted - time[right - 1]) / (time[right] - time[right - 1])
    far = (share < 0.0) | (share > 1.0) | (time[right] - time[right - 1] > 1.5 * step)
    mixed = values[right - 1] * (1.0 - share)[:, None] + values[right] * share[:, None]
    return np.where(far[:, None], np.nan, mixed)


def _residuals(rows: RowSource, values: Array) -> Residuals:
    parts: dict[str, tuple[list[Array], list[Array]]] = {}
    for block in rows.blocks():
        residual = np.full(block.usable.shape, np.nan)
        for output, own in enumerate(block.usable.T):
            residual[own, output] = block.residual(output, values)
        times, residuals = parts.setdefault(block.log, ([], []))
        times.append(block.time)
        residuals.append(residual)
    return {label: (np.concatenate(times), np.concatenate(own)) for label, (times, own) in parts.items()}
