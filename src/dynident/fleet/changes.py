r"""Change points in histories, at a stated rate of false alarms.

The mean of a day, y_d, is explained by covariates (temperature and its square, payload) and one change, a step or a
ramp that begins on a day and, after some weeks, may end:

.. math:: y = X b + a\,h_{d_0} + e, \quad \operatorname{cov} e = \sigma^2 (e^{-|t - t'| / T} + \nu I)

Days follow each other: what temperature and payload do not explain lasts. A scan that takes them as independent would
call that drift. So time constant T and the share nu of what does not last are estimated, by restricted maximum
likelihood under a slow trend, which keeps a real drift from passing for noise that lasts; days are then whitened.
The statistic is the largest likelihood ratio over all changes. Its distribution without any change has no closed form
with an estimated T; it is simulated, the whole procedure with its estimation of T run on each simulated history. Beyond
the simulations the tail of a maximum of likelihood ratios is exponential, and is extrapolated as such. A history is
called changed where its chance is below the number of false alarms asked for, divided by the number of histories.

References:
    Bittencourt & Axelsson 2014, on wear beside temperature and load; Worsley 1986, on the likelihood ratio of a change.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array, on_one_thread
from dynident.fleet.thresholds import THRESHOLDS

_TIMES = (0.0, 1.0, 2.0, 4.0, 8.0)  # [d] time constants that are tried
_WHITE = (0.0, 0.5)  # shares of noise that does not last, beside noise that does
_KNOT_DAYS = 15.0  # [d] between knots of the slow trend
_RAMP_DAYS = (15.0, 30.0, np.inf)  # [d] after which a ramp ends
_MOST_STARTS = 30  # days that a change may begin on; of longer histories every second, third, ..
_DAY = 86400.0


@dataclass(frozen=True, eq=False)
class Series:
    """A history: one value for each day, and what else changes it.

    Attributes:
        days: (n,) days since the first one [d].
        values: (n,) means of the days.
        covariates: (n, k) that are not constant, each around its mean.
        names: Of the covariates.
        start: The first day.
    """

    days: Array
    values: Array
    covariates: Array
    names: tuple[str, ...]
    start: datetime


@dataclass(frozen=True)
class ChangePoint:
    """What a scan of a history has found: its largest change, whether or not chance explains it.

    Attributes:
        shape: step or ramp.
        date: Day on which it begins, ISO 8601.
        size: From before to the end of the history, or of the ramp, in the unit of the history.
        std: Its standard deviation.
        level: Value before it, at the mean of the covariates.
        chance: Share of histories without a change that show one as large.
        statistic: Twice the logarithm of the likelihood ratio.
        time_constant: For which deviations last [d].
    """

    shape: str
    date: str
    size: float
    std: float
    level: float
    chance: float
    statistic: float
    time_constant: float


def daily_series(
    dates: Sequence[str], values: Array, std: Array, covariates: Array, names: Sequence[str]
) -> Series | None:
    """Means of the days, weighted by what is known of each log; None where they are too few.

    Args:
        dates: ISO 8601, one for each log, sorted.
        values: (n,).
        std: (n,) standard deviations.
        covariates: (n, k); NaN where one is not known.
        names: Of the covariates, k.
    """
    known = np.isfinite(values) & np.isfinite(std) & np.isfinite(covariates).all(1)
    if not known.any():
        return None
    stamps = np.array([datetime.fromisoformat(date).timestamp() for date in dates])[known]
    numbers = np.floor(stamps / _DAY)
    days, place = np.unique(numbers, return_inverse=True)
    if len(days) < THRESHOLDS.min_days:
        return None
    # Logs of a day differ by more than their own std says; no log may count for more than a few others.
    floor = np.median(std[known])
    weights = 1.0 / (std[known] ** 2 + floor**2)
    total = np.bincount(place, weights)

    def mean(of: Array) -> Array:
        return np.asarray(np.bincount(place, weights * of) / total)

    columns = [mean(column) for column in covariates[known].T]
    kept = [k for k, column in enumerate(columns) if np.ptp(column) > 1e-9 * max(float(np.abs(column).max()), 1e-300)]
    matrix = np.column_stack([columns[k] - columns[k].mean() for k in kept]) if kept else np.zeros((len(days), 0))
    start = datetime.fromtimestamp(days[0] * _DAY, UTC)
    return Series(days - days[0], mean(values[known]), matrix, tuple(names[k] for k in kept), start)


@on_one_thread
def find_change(series: Series) -> ChangePoint:
    """The largest change of a history, and how likely one as large is without any."""
    scan = _ChangeScan.of(series)
    found = scan.statistics(series.values[:, None])
    statistic, place, noise = found.statistic[0], found.change[0], int(found.noise[0])
    model = scan.models[noise]
    # Days say little of how long deviations last: every noise that they do not refute has its say.
    likely = np.flatnonzero(found.likelihoods[:, 0] >= found.likelihoods[noise, 0] - THRESHOLDS.likely_noise)
    draws = _normal(series)
    nulls = [scan.statistics(scan.models[k].root @ draws).statistic for k in likely]
    shape, first, column = scan.shapes[place]
    design = np.column_stack([np.ones_like(series.days), column, series.covariates])
    white, target = model.whiten(design), model.whiten(series.values)
    values = np.linalg.lstsq(white, target, rcond=None)[0]
    variance = float(np.sum((target - white @ values) ** 2)) / max(len(series.days) - design.shape[1], 1)
    std = float(np.sqrt(variance * np.linalg.pinv(white.T @ white)[1, 1]))
    return ChangePoint(
        shape=shape,
        date=(series.start + timedelta(days=float(first))).date().isoformat(),
        size=float(values[1]),
        std=std,
        level=float(values[0]),
        chance=max(tail_chance(float(statistic), null) for null in nulls),
        statistic=float(statistic),
        time_constant=model.time_constant,
    )


def tail_chance(statistic: float, null: Array) -> float:
    """Share of simulated statistics that reach one; beyond a tenth of them an exponential tail.

    Args:
        statistic: The one that was found.
        null: (n,) simulated without what is looked for.
    """
    border = float(np.quantile(null, 1.0 - THRESHOLDS.tail_share))
    if statistic <= border:
        return float((1 + np.sum(null >= statistic)) / (1 + len(null)))
    excess = null[null > border] - border
    return float(THRESHOLDS.tail_share * np.exp(-(statistic - border) / max(float(excess.mean()), 1e-300)))


@functools.lru_cache(maxsize=8)
def _draws(n: int, seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal((n, THRESHOLDS.n_simulations))


def _normal(series: Series) -> Array:
    """(n, n_simulations) normal numbers, the same for the same days."""
    seed = int(hashlib.sha256(series.days.tobytes()).hexdigest()[:8], 16)
    return _draws(len(series.days), seed)


@dataclass(frozen=True, eq=False)
class _Noise:
    """Noise of one time constant and one share of what does not last.

    Attributes:
        time_constant: [d].
        root: (n, n) lower root of its covariance.
        trend: (n, r) orthonormal, of whitened covariates and slow trend.
        beyond: (n_shapes, n) unit vectors of whitened changes beyond covariates and slow trend.
        log_determinant: Of the covariance, and of the trend's information.
        null: (n, p) orthonormal, of whitened covariates.
        changes: (n_shapes, n) unit vectors of whitened changes beyond the covariates.
    """

    time_constant: float
    root: Array
    trend: Array
    beyond: Array
    log_determinant: float
    null: Array
    changes: Array

    def whiten(self, values: Array) -> Array:
        """Values whose noise is white."""
        return np.asarray(np.linalg.solve(self.root, values))


@dataclass(frozen=True, eq=False)
class _Found:
    """What a scan finds in m histories.

    Attributes:
        statistic: (m,) the largest.
        change: (m,) place of the change that it belongs to.
        noise: (m,) place of the noise that is most likely.
        likelihoods: (n_models, m) logarithms of the restricted likelihood of each noise.
    """

    statistic: Array
    change: NDArray[np.intp]
    noise: NDArray[np.intp]
    likelihoods: Array


@dataclass(frozen=True, eq=False)
class _ChangeScan:
    """All that depends on the days and the covariates of a history, and not on its values.

    Attributes:
        models: Noise that is tried.
        shapes: Name, first day and column of each change.
    """

    models: list[_Noise]
    shapes: list[tuple[str, float, Array]]

    @staticmethod
    def of(series: Series) -> _ChangeScan:
        days, n = series.days, len(series.days)
        shapes = _shapes(days)
        constant = np.column_stack([np.ones(n), series.covariates])
        knots = np.arange(0.0, days[-1] - 0.5 * _KNOT_DAYS, _KNOT_DAYS)
        slow = np.column_stack([constant, *(np.maximum(days - knot, 0.0)[:, None] for knot in knots)])
        apart = np.abs(days[:, None] - days)
        models = []
        for time in _TIMES:
            for white in _WHITE if time else (0.0,):
                kernel = np.exp(-apart / time) if time else np.eye(n)
                root = np.asarray(np.linalg.cholesky((kernel + white * np.eye(n)) / (1.0 + white)), dtype=np.float64)
                trend, R = np.linalg.qr(np.linalg.solve(root, slow))
                null, _ = np.linalg.qr(np.linalg.solve(root, constant))
                columns = np.linalg.solve(root, np.column_stack([column for _, _, column in shapes]))
                changes = _units(columns, null)
                determinant = float(np.log(np.diag(root)).sum() + np.log(np.abs(np.diag(R)) + 1e-300).sum())
                models.append(
                    _Noise(
                        time,
                        np.asarray(root, dtype=np.float64),
                        trend,
                        _units(columns, trend),
                        determinant,
                        null,
                        changes,
                    )
                )
        return _ChangeScan(models, shapes)

    def statistics(self, values: Array) -> _Found:
        """What the scan finds in each of some histories, (n, m)."""
        likelihoods, best, places = [], [], []
        n = len(values)
        for model in self.models:
            white = model.whiten(values)
            rest = white - model.trend @ (model.trend.T @ white)
            freedom = n - model.trend.shape[1] - 1
            # The kink of a change, which no slow trend follows, must not pass for noise that lasts.
            square = np.maximum((rest**2).sum(0) - ((model.beyond @ rest) ** 2).max(0), 1e-300)
            likelihoods.append(-0.5 * freedom * np.log(square) - model.log_determinant)
            residual = white - model.null @ (model.null.T @ white)
            total = np.maximum((residual**2).sum(0), 1e-300)
            gains = (model.changes @ residual) ** 2
            place = gains.argmax(0)
            share = np.minimum(gains[place, np.arange(values.shape[1])] / total, 1.0 - 1e-12)
            best.append(-n * np.log1p(-share))
            places.append(place)
        noise = np.argmax(likelihoods, axis=0)
        own = np.arange(values.shape[1])
        return _Found(np.array(best)[noise, own], np.array(places)[noise, own], noise, np.array(likelihoods))


def _units(columns: NDArray[Any], known: NDArray[Any]) -> Array:
    """(n_shapes, n) unit vectors of what columns have beyond an orthonormal basis; zero where that is nothing."""
    beyond = columns - known @ (known.T @ columns)
    norm, size = np.linalg.norm(beyond, axis=0), np.linalg.norm(columns, axis=0)
    return np.asarray(np.where(norm > 1e-6 * size, beyond / np.maximum(norm, 1e-300), 0.0).T)


def _shapes(days: Array) -> list[tuple[str, float, Array]]:
    """Changes that are looked for; days on both sides of where they begin."""
    edge = THRESHOLDS.edge_days
    inner = np.arange(edge, len(days) - edge + 1)
    starts = inner[:: -(-len(inner) // _MOST_STARTS)]
    shapes: list[tuple[str, float, Array]] = []
    for first in starts:
        begin = float(days[first])
        shapes.append(("step", begin, (days >= begin).astype(float)))
        for length in _RAMP_DAYS:
            left = float(days[-1]) - begin
            if not np.isinf(length) and length >= left:
                continue
            most = float(min(length, left))
            if most > 0.0:
                shapes.append(("ramp", begin, np.clip((days - begin) / float(most), 0.0, 1.0)))
    return shapes
