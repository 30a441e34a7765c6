"""Cross-validation on factors: whole logs held out in turn, or blocks of one log with a gap beside them.

No data is read again: every fold is a sum of segments, solved again and evaluated on the segments held out.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, on_one_thread
from dynident.estimate.covariance import TORQUE_BAND_LEVEL, correlated_covariance, covariance_root, half_width
from dynident.estimate.estimator import Estimator
from dynident.estimate.records import CrossValidation
from dynident.identifiability.base_regressor import RowSource
from dynident.information.information import Information
from dynident.validation.thresholds import THRESHOLDS

RowsOf = Callable[[set[str]], RowSource]  # rows of the logs with these labels
LeftOut = list[tuple[Array, Array, Array]]  # of each channel: residuals, variance of their predictions, torque


@dataclass(frozen=True)
class Fold:
    """Some held-out data.

    Attributes:
        label: What was left out.
        left_out: Indices of its segments.
        unused: Indices of segments that are used neither for training nor for evaluation, because they touch what was
            left out.
    """

    label: str
    left_out: tuple[int, ...]
    unused: tuple[int, ...] = ()


def folds_of(information: Information) -> list[Fold]:
    """One fold per log; of a single log blocks of neighboring segments, with the segments next to them unused."""
    labels = [segment.label for segment in information.segments]
    if len(set(labels)) > 1:
        return [Fold(name, tuple(i for i, own in enumerate(labels) if own == name)) for name in dict.fromkeys(labels)]
    n = len(labels)
    if n < 4:
        return []
    edges = np.linspace(0, n, min(THRESHOLDS.max_blocks, n // 2) + 1).astype(int)
    return [
        Fold(
            f"block {number}",
            tuple(range(first, end)),
            tuple(i for i in (first - 1, end) if 0 <= i < n),
        )
        for number, (first, end) in enumerate(itertools.pairwise([int(e) for e in edges]), 1)
    ]


def selection_folds(information: Information, views: Mapping[str, str]) -> list[Fold]:
    """Whole experiments in turn; where there are fewer than three, blocks of each with a gap beside them.

    Args:
        information: Data in segments.
        views: Label of each log -> that of its experiment; two views of one experiment are left out together.
    """
    names = [views[segment.label] for segment in information.segments]
    experiments = list(dict.fromkeys(names))
    if len(experiments) >= THRESHOLDS.min_folds:
        return [Fold(one, tuple(i for i, own in enumerate(names) if own == one)) for one in experiments]
    folds = []
    for one in experiments:
        logs = [log for log in dict.fromkeys(s.label for s in information.segments) if views[log] == one]
        own = [[i for i, s in enumerate(information.segments) if s.label == log] for log in logs]
        for number in range(THRESHOLDS.selection_blocks):
            left_out, unused = [], []
            for places in own:  # the same part of every view
                edges = np.linspace(0, len(places), THRESHOLDS.selection_blocks + 1).astype(int)
                left_out += places[edges[number] : edges[number + 1]]
                beside = (edges[number] - 1, edges[number + 1])
                unused += [places[i] for i in beside if 0 <= i < len(places)]
            folds.append(Fold(f"{one}, block {number + 1}", tuple(left_out), tuple(unused)))
    return [fold for fold in folds if fold.left_out]


def relative_to_all(residual: Array, torque: Array, rows: Array) -> tuple[Array, Array]:
    """Relative errors of folds by channel, and of each in total: over the torque of all, so that none without counts.

    Args:
        residual: (n_folds, n_channels) squared norms.
        torque: (n_folds, n_channels) the same of the measured torque.
        rows: (n_folds, n_channels) equations.
    """
    typical = torque.sum(0) / np.maximum(rows.sum(0), 1.0)
    squares = residual / np.where(rows > 0.0, rows, np.nan)
    totals = np.sqrt(np.nansum(squares, axis=1) / max(float(typical.sum()), 1e-300))
    return np.sqrt(squares / np.where(typical > 0.0, typical, np.nan)), totals


@on_one_thread
def cross_validate(
    information: Information,
    estimator: Estimator,
    inflation: Array,
    rows: RowsOf | None = None,
    folds: Sequence[Fold] | None = None,
) -> CrossValidation | None:
    """Leave out each fold in turn; None when there is too little data to leave anything out.

    Args:
        information: Data in segments.
        estimator: Method, fitted again on a clone for every fold.
        inflation: (n_channels,) rows that weigh as much as one independent row, for the coverage.
        rows: The rows of logs with some labels, for the coverage of torque bands.
        folds: What to leave out; default whole logs, or blocks of a single one.
    """
    over = "logs" if len({segment.label for segment in information.segments}) > 1 else "blocks"
    folds = [fold for fold in folds or folds_of(information) if rest_of(information, fold)]
    if not folds:
        return None
    evaluated = [_assess(information, estimator, inflation, fold, rows) for fold in folds]
    residual, torque, count = (np.array([one[i] for one in evaluated]) for i in (0, 1, 2))
    agreeing, compared = (sum(one[3][i] for one in evaluated) for i in (0, 1))
    left_out, sigma = [one[4] for one in evaluated], np.array([one[5] for one in evaluated])
    levels, bands = np.sqrt(residual.sum(0) / np.maximum(count.sum(0), 1.0)), None
    if rows is not None:
        levels, bands = band_levels(left_out)
    return CrossValidation(
        over,
        tuple(fold.label for fold in folds),
        *relative_to_all(residual, torque, count),
        levels,
        bands,
        agreeing / compared if compared else None,
        interval_coverage=None if rows is None else interval_coverage(left_out, sigma),
    )


def _assess(
    information: Information,
    estimator: Estimator,
    inflation: Array,
    fold: Fold,
    rows: RowsOf | None,
) -> tuple[Array, Array, Array, tuple[int, int], LeftOut, Array]:
    """A fold held out.

    Returns:
        (n_channels,) squared norms of residual and torque, and rows; how many parameters agree with the rest of the
        data, of how many; what was held out, for each channel, where rows are at hand;
        (n_channels,) standard deviation of the residual of the training.
    """
    kept = rest_of(information, fold)
    rest, own = estimator.clone().fit(information.select(kept)), information.select(fold.left_out)
    agreement = _agreement(own, estimator, rest, inflation)
    if rows is None:
        residual, torque = _norms(own, rest.values_)
        count = np.array([factor.n_rows for factor in own.channel_factors()])
        return residual, torque, count, agreement, [], rest.sigma_
    root = covariance_root(correlated_covariance(rest, inflation))
    source = rows({information.segments[i].label for i in fold.left_out})
    (left_out,) = left_out_rows(source, information, [fold], rest.values_[None], root)
    residual, count = (np.array([operation(errors) for errors, _, _ in left_out]) for operation in (_square, len))
    torque = np.array([_square(measured) for _, _, measured in left_out])
    return residual, torque, count, agreement, left_out, rest.sigma_


def left_out_rows(
    rows: RowSource, information: Information, folds: Sequence[Fold], values: Array, root: Array
) -> list[LeftOut]:
    """What was left out of each fold, of rows that need not be those of the fit.

    A fit may use some rows only, those away from reversals; its predictions are for all of them.

    Args:
        rows: The rows.
        information: Factors of the fit, in segments, whose time tells which rows a fold has.
        folds: What was left out.
        values: (n_folds, n) parameters that were found without each fold.
        root: (n, n) root of the covariance of the parameters.
    """
    n = len(information.channels)
    found: list[list[list[tuple[Array, Array, Array]]]] = [[[] for _ in range(n)] for _ in folds]
    own = [[information.segments[i] for i in fold.left_out] for fold in folds]
    for block in rows.blocks():
        middle = 0.5 * (block.time[0] + block.time[-1])
        for number, segments in enumerate(own):
            spans = [segment.span for segment in segments if segment.label == block.log and segment.span is not None]
            if not any(first <= middle <= last for first, last in spans):
                continue
            for channel, columns in enumerate(block.columns):
                lines = block.usable_columns_first(channel)
                variance = ((root[list(columns)].T @ lines[:-1]) ** 2).sum(0)
                found[number][channel].append((block.residual(channel, values[number]), variance, lines[-1]))
    nothing = (np.zeros(0),) * 3
    return [
        [tuple(np.concatenate(part) for part in zip(nothing, *parts, strict=True)) for parts in fold]  # type: ignore[misc]
        for fold in found
    ]


def _square(signal: Array) -> float:
    return float(signal @ signal)


def band_levels(folds: Sequence[LeftOut]) -> tuple[Array, Array | None]:
    """Levels of the torque bands and the coverage of these, see `CrossValidation`."""
    levels = np.array([_level(folds, channel) for channel in range(len(folds[0]))])
    return levels, _band_coverage(folds) if len(folds) > 1 else None


def _level(folds: Sequence[LeftOut], channel: int) -> float:
    """The level with which 90 % of what was held out lies in the band of a channel."""
    width = half_width(TORQUE_BAND_LEVEL)
    joined = np.concatenate([(own[channel][0] / width) ** 2 - own[channel][1] for own in folds])
    return float(np.sqrt(max(float(np.quantile(joined, TORQUE_BAND_LEVEL)), 0.0))) if len(joined) else 0.0


def _band_coverage(folds: Sequence[LeftOut]) -> Array:
    """Share of held-out residuals within their bands, (n_channels,); the level is that of the other folds."""
    width, shares = half_width(TORQUE_BAND_LEVEL), []
    for channel in range(len(folds[0])):
        inside = total = 0
        for number, own in enumerate(folds):
            errors, variances, _ = own[channel]
            level = _level([other for k, other in enumerate(folds) if k != number], channel)
            inside += int(np.count_nonzero(np.abs(errors) <= width * np.sqrt(variances + level**2)))
            total += len(errors)
        shares.append(inside / total if total else np.nan)
    return np.array(shares)


def interval_coverage(folds: Sequence[LeftOut], sigma: Array) -> Array:
    """Share of held-out residuals within two standard deviations of their predictions, (n_channels,).

    Args:
        folds: What was left out.
        sigma: (n_folds, n_channels) standard deviation of the residual of the training, taken for noise.
    """
    shares = []
    for channel in range(sigma.shape[1]):
        own = zip(folds, sigma[:, channel], strict=True)
        inside = [np.abs(fold[channel][0]) <= 2.0 * np.sqrt(fold[channel][1] + noise**2) for fold, noise in own]
        joined = np.concatenate(inside)
        shares.append(float(joined.mean()) if len(joined) else np.nan)
    return np.array(shares)


def rest_of(information: Information, fold: Fold) -> list[int]:
    """Segments that are learned from when a fold is left out."""
    return [i for i in range(len(information.segments)) if i not in fold.left_out and i not in fold.unused]


def _norms(information: Information, values: Array) -> tuple[Array, Array]:
    """Squared norms of residual and torque of each channel."""
    n = information.coordinates.n
    rows = [factor.dense(n) for factor in information.channel_factors()]
    residual = np.array([np.sum((part[:, n] - part[:, :n] @ values) ** 2) for part in rows])
    return residual, np.array([np.sum(part[:, n] ** 2) for part in rows])


def _agreement(own: Information, estimator: Estimator, rest: Estimator, inflation: Array) -> tuple[int, int]:
    """How many parameters, of how many, agree between a fold's own data and the rest."""
    alone = estimator.clone().fit(own)
    known = alone.determined_ & rest.determined_
    if not known.any():
        return 0, 0
    variance = np.diag(correlated_covariance(alone, inflation) + correlated_covariance(rest, inflation))
    share = np.abs(alone.values_ - rest.values_)[known] / np.sqrt(np.maximum(variance[known], 1e-300))
    return int((share <= 2.0).sum()), int(known.sum())
