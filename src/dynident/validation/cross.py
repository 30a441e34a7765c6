"""Cross-validation on factors: whole logs left out in turn, or blocks of one log with a gap beside them.

No data is read again: every fold is a sum of segments, solved anew and judged on the segments left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.checks import Array
from dynident.estimate.deviations import correlated_covariance
from dynident.estimate.estimator import Estimator
from dynident.information.information import Information

MOST_BLOCKS = 5  # folds made of one log


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


@dataclass(frozen=True)
class CrossValidation:
    """Result of leaving data out.

    Attributes:
        over: "logs" or "blocks".
        labels: What was left out in each fold.
        errors: (n_folds, n_channels) relative error on what was left out; NaN for a channel without torque there.
        totals: (n_folds,) over all channels.
        coverage: Share of parameters whose values from a fold's data and from the rest agree within two deviations of
            their difference; 95 % if the deviations are right. None where a fold alone determines no parameter.
    """

    over: str
    labels: tuple[str, ...]
    errors: Array
    totals: Array
    coverage: float | None

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "over": self.over,
            "mean": float(self.totals.mean()),
            "folds": [
                {"left_out": label, "relative_error": float(total), "per_channel": _known(own)}
                for label, total, own in zip(self.labels, self.totals, self.errors, strict=True)
            ],
            "coverage": self.coverage,
        }


def _known(shares: Array) -> list[float | None]:
    return [float(share) if np.isfinite(share) else None for share in shares]


def folds_of(information: Information) -> list[Fold]:
    """One fold per log; of a single log blocks of neighbouring segments, with the segments next to them unused."""
    labels = [segment.label for segment in information.segments]
    if len(set(labels)) > 1:
        return [Fold(name, tuple(i for i, own in enumerate(labels) if own == name)) for name in dict.fromkeys(labels)]
    n = len(labels)
    if n < 4:
        return []
    edges = np.linspace(0, n, min(MOST_BLOCKS, n // 2) + 1).astype(int)
    return [
        Fold(
            f"block {number}",
            tuple(range(first, end)),
            tuple(i for i in (first - 1, end) if 0 <= i < n),
        )
        for number, (first, end) in enumerate(itertools.pairwise([int(e) for e in edges]), 1)
    ]


def cross_validate(
    information: Information,
    estimator: Estimator,
    inflation: Array,
    around: Callable[[list[int]], Information] | None = None,
) -> CrossValidation | None:
    """Leave out each fold in turn; None when there is too little data to leave anything out.

    Args:
        information: Data in segments.
        estimator: Method, fitted anew on a clone for every fold.
        inflation: (n_channels,) rows that weigh as much as one independent row, for the coverage.
        around: The same data with the terms that need a reference around one that some segments alone gave.
    """
    over = "logs" if len({segment.label for segment in information.segments}) > 1 else "blocks"
    folds = [fold for fold in folds_of(information) if rest_of(information, fold)]
    if not folds:
        return None
    errors, totals, inside, judged = [], [], 0, 0
    for fold in folds:
        kept = rest_of(information, fold)
        data = information if around is None else around(kept)
        rest, own = estimator.clone().fit(data.select(kept)), data.select(fold.left_out)
        residual, torque = _norms(own, rest.values_)
        errors.append(np.sqrt(residual / np.where(torque > 0.0, torque, np.nan)))
        totals.append(float(np.sqrt(residual.sum() / max(float(torque.sum()), 1e-300))))
        hits, count = _agreement(own, estimator, rest, inflation)
        inside, judged = inside + hits, judged + count
    coverage = inside / judged if judged else None
    return CrossValidation(over, tuple(fold.label for fold in folds), np.array(errors), np.array(totals), coverage)


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
