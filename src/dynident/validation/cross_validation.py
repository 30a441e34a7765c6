"""Cross-validation on factors: whole logs left out in turn, or blocks of one log with a gap beside them.

No data is read again: every fold is a sum of segments, solved again and judged on the segments left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, on_one_thread
from dynident.estimate.covariance import TORQUE_BAND_LEVEL, correlated_covariance, covariance_root, half_width
from dynident.estimate.estimator import Estimator
from dynident.estimate.records import CrossValidation
from dynident.identifiability.base_regressor import RegressorBlock, RowSource
from dynident.information.information import Information
from dynident.validation.thresholds import THRESHOLDS

RowsOf = Callable[[set[str]], RowSource]  # rows of the logs with these labels
LeftOut = list[tuple[Array, Array]]  # of each channel: residuals of a fold left out, variance of their predictions


@dataclass(frozen=True)
class Fold:
    """Some data left out.

    Attributes:
        label: What was left out.
        left_out: Indices of its segments.
        unused: Indices of segments that neither train nor judge, because they touch what was left out.
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


@on_one_thread
def cross_validate(
    information: Information,
    estimator: Estimator,
    inflation: Array,
    rows: RowsOf | None = None,
    folds: Sequence[Fold] | None = None,
    judged: Information | None = None,
) -> CrossValidation | None:
    """Leave out each fold in turn; None when there is too little data to leave anything out.

    Args:
        information: Data in segments.
        estimator: Method, fitted again on a clone for every fold.
        inflation: (n_channels,) rows that weigh as much as one independent row, for the coverage.
        rows: The rows of logs with some labels, for the coverage of torque bands.
        folds: What to leave out; default whole logs, or blocks of a single one.
        judged: Factors of `rows` where these are others than those of `information`, in segments of the same logs.
    """
    judged = information if judged is None else judged
    over = "logs" if len({segment.label for segment in information.segments}) > 1 else "blocks"
    folds = [fold for fold in folds or folds_of(information) if rest_of(information, fold)]
    if not folds:
        return None
    found = [_judge(information, estimator, inflation, fold, rows, judged) for fold in folds]
    residual, torque, count = (np.array([one[i] for one in found]) for i in (0, 1, 2))
    agreeing, compared = (sum(one[3][i] for one in found) for i in (0, 1))
    left_out, sigma = [one[4] for one in found], np.array([one[5] for one in found])
    rms = np.sqrt(residual.sum(0) / np.maximum(count.sum(0), 1.0))
    return CrossValidation(
        over,
        tuple(fold.label for fold in folds),
        np.sqrt(residual / np.where(torque > 0.0, torque, np.nan)),
        np.sqrt(residual.sum(1) / np.maximum(torque.sum(1), 1e-300)),
        rms if rows is None else np.array([_level(left_out, i) for i in range(len(torque[0]))]),
        None if rows is None or len(left_out) < 2 else _band_coverage(left_out),
        agreeing / compared if compared else None,
        interval_coverage=None if rows is None else interval_coverage(left_out, sigma),
    )


def _judge(
    information: Information,
    estimator: Estimator,
    inflation: Array,
    fold: Fold,
    rows: RowsOf | None,
    judged: Information,
) -> tuple[Array, Array, Array, tuple[int, int], LeftOut, Array]:
    """A fold left out.

    Returns:
        (n_channels,) squared norms of residual and torque, and rows; how many parameters agree with the rest of the
        data, of how many; residuals and the variance of their predictions, for each channel, where rows are at hand;
        (n_channels,) standard deviation of the residual of the training.
    """
    kept = rest_of(information, fold)
    rest, own = estimator.clone().fit(information.select(kept)), information.select(fold.left_out)
    places = fold.left_out if judged is information else _same_time(information, fold, judged)
    left_out = judged.select(places)
    residual, torque = _norms(left_out, rest.values_)
    count = np.array([factor.n_rows for factor in left_out.channel_factors()])
    agreement = _agreement(own, estimator, rest, inflation)
    if rows is None:
        return residual, torque, count, agreement, [], rest.sigma_
    root = covariance_root(correlated_covariance(rest, inflation))
    errors: list[list[Array]] = [[] for _ in information.channels]
    variances: list[list[Array]] = [[] for _ in information.channels]
    labels = {information.segments[i].label for i in fold.left_out}
    for segment, block in _number_blocks(rows(labels), judged):
        if segment not in places:
            continue
        for channel, columns in enumerate(block.columns):
            errors[channel].append(block.residual(channel, rest.values_))
            W_first = block.usable_columns_first(channel)[:-1]
            variances[channel].append(((root[list(columns)].T @ W_first) ** 2).sum(0))
    joined = ([np.concatenate([np.zeros(0), *parts]) for parts in one] for one in (errors, variances))
    return residual, torque, count, agreement, list(zip(*joined, strict=True)), rest.sigma_


def _same_time(information: Information, fold: Fold, judged: Information) -> tuple[int, ...]:
    """Segments of other rows of the same logs, at the time of those that a fold leaves out."""
    spans: dict[str, list[float]] = {}
    for i in fold.left_out:
        segment = information.segments[i]
        spans.setdefault(segment.label, []).extend(segment.span or ())
    borders = {label: (min(own), max(own)) for label, own in spans.items() if own}
    found = []
    for i, segment in enumerate(judged.segments):
        if segment.label in borders and segment.span is not None:
            low, high = borders[segment.label]
            if low <= 0.5 * (segment.span[0] + segment.span[1]) <= high:
                found.append(i)
        elif segment.label in spans and segment.label not in borders:
            found.append(i)
    return tuple(found)


def band_levels(
    rows: RowSource, information: Information, folds: Sequence[Fold], values: Array, root: Array
) -> tuple[Array, Array | None]:
    """Levels of the torque bands and the coverage of these, see `CrossValidation`.

    Args:
        rows: All rows.
        information: Their factors, in segments.
        folds: What was left out.
        values: (n_folds, n) parameters that were found without each fold.
        root: (n, n) root of the covariance of the parameters.
    """
    fold_of = {segment: number for number, fold in enumerate(folds) for segment in fold.left_out}
    n = len(information.channels)
    found: list[list[list[tuple[Array, Array]]]] = [[[] for _ in range(n)] for _ in folds]
    for segment, block in _number_blocks(rows, information):
        number = fold_of.get(segment)
        if number is None:
            continue
        for channel, columns in enumerate(block.columns):
            W_first = block.usable_columns_first(channel)[:-1]
            variance = ((root[list(columns)].T @ W_first) ** 2).sum(0)
            found[number][channel].append((block.residual(channel, values[number]), variance))
    nothing = (np.zeros(0), np.zeros(0))
    joined: list[LeftOut] = [
        [tuple(np.concatenate(part) for part in zip(nothing, *own, strict=True)) for own in fold]  # type: ignore[misc]
        for fold in found
    ]
    levels = np.array([_level(joined, channel) for channel in range(n)])
    return levels, _band_coverage(joined) if len(folds) > 1 else None


def _number_blocks(source: RowSource, information: Information) -> Iterator[tuple[int, RegressorBlock]]:
    """Blocks with the number of their segment in the information, which leaves out segments without rows."""
    labels = [segment.label for segment in information.segments]
    first = {label: labels.index(label) for label in labels}
    current: tuple[str, int] | None = None
    number, filled = 0, False
    for block in source.blocks():
        if current is None or block.log != current[0]:
            number, filled = first.get(block.log, len(labels)), False
        elif block.segment != current[1]:
            number, filled = number + filled, False
        current = (block.log, block.segment)
        filled = filled or bool(block.usable.any())
        yield number, block


def _level(folds: Sequence[LeftOut], channel: int) -> float:
    """The level with which 90 % of what was left out lies in the band of a channel."""
    width = half_width(TORQUE_BAND_LEVEL)
    joined = np.concatenate([(own[channel][0] / width) ** 2 - own[channel][1] for own in folds])
    return float(np.sqrt(max(float(np.quantile(joined, TORQUE_BAND_LEVEL)), 0.0))) if len(joined) else 0.0


def _band_coverage(folds: Sequence[LeftOut]) -> Array:
    """Share of left-out residuals within their bands, (n_channels,); the level is that of the other folds."""
    width, shares = half_width(TORQUE_BAND_LEVEL), []
    for channel in range(len(folds[0])):
        inside = total = 0
        for number, own in enumerate(folds):
            errors, variances = own[channel]
            level = _level([other for k, other in enumerate(folds) if k != number], channel)
            inside += int(np.count_nonzero(np.abs(errors) <= width * np.sqrt(variances + level**2)))
            total += len(errors)
        shares.append(inside / total if total else np.nan)
    return np.array(shares)


def interval_coverage(folds: Sequence[LeftOut], sigma: Array) -> Array:
    """Share of left-out residuals within two standard deviations of their predictions, (n_channels,).

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
