"""Levels of viscous friction in the training logs.

They are looked for under the rich friction of the predictive model, which leaves them what no curve of friction
explains. Where the data shows them, their torque goes to the right-hand side of every log's equations, so that all
that follows (parameters, predictions, widths) is about the mean over the logs.
"""

from __future__ import annotations

import numpy as np

from dynident.arrays import Array, on_one_thread
from dynident.estimate.evidence import EmpiricalPrior
from dynident.estimate.friction_levels import FrictionLevels, level_posterior
from dynident.estimate.leveled_data import FoundLevels
from dynident.information.factor import merge_factors, triangular
from dynident.pipeline.superset import Superset
from dynident.pipeline.thresholds import THRESHOLDS

_VISCOUS = "Fv"


def find_levels(superset: Superset, prior: EmpiricalPrior, inflation: Array) -> FoundLevels | None:
    """The levels that the training logs show beyond doubt; None for fewer than two logs.

    Args:
        superset: All columns.
        prior: Scales and standard deviations of the rich fit.
        inflation: (n_channels,) rows that weigh as much as one independent row.
    """
    information, base = superset.information, superset.base
    logs = tuple(dict.fromkeys(segment.label for segment in information.segments))
    basic = superset.basic
    means = {
        name: float(basic.posterior.values[i])
        for i, (name, index) in enumerate(zip(basic.base.names, basic.base.independent, strict=True))
        if basic.base.columns[index].term == _VISCOUS and basic.posterior.values[i] > 0.0
    }
    if len(logs) < 2 or not means:
        return None
    names, sizes = tuple(means), np.array(list(means.values()))
    rows = _level_rows(superset, prior, inflation, logs, [base.names.index(name) for name in names], sizes)
    found = level_posterior(rows, len(logs))
    if found.log_odds < -np.log(THRESHOLDS.false_change_chance):
        return None
    # Relative to the mean over the logs: what all logs share is friction, and known far better than their spread.
    centered = np.kron(np.eye(len(logs)) - 1.0 / len(logs), np.diag(sizes))
    values, covariance = centered @ found.values, centered @ found.covariance @ centered.T
    shape = len(logs), len(names)
    levels = FrictionLevels(
        logs=logs,
        names=names,
        means=sizes,
        values=values.reshape(shape),
        std=np.sqrt(np.maximum(np.diag(covariance), 0.0)).reshape(shape),
        spread=found.spread,
        log_odds=found.log_odds,
    )
    return FoundLevels(levels, covariance)


@on_one_thread
def _level_rows(
    superset: Superset,
    prior: EmpiricalPrior,
    inflation: Array,
    logs: tuple[str, ...],
    viscous: list[int],
    sizes: Array,
) -> Array:
    """Rows [G | z] about relative levels of the logs, of unit variance, all columns eliminated under their prior."""
    information, n, m = superset.information, superset.base.n, len(viscous)
    deviations = np.sqrt(np.maximum(prior.deviations**2, inflation * prior.sigma**2))
    k, width = len(prior.columns), len(prior.columns) + len(logs) * m + 1
    parts = [np.eye(k, width)]
    for number, label in enumerate(logs):
        first = k + number * m
        for channel, deviation in enumerate(deviations):
            own = merge_factors(s.factors[channel] for s in information.segments if s.label == label)
            rows = own.dense(n) / deviation
            wide = np.zeros((len(rows), width))
            wide[:, :k] = rows[:, prior.columns] * prior.spread
            wide[:, first : first + m] = rows[:, viscous] * sizes
            wide[:, -1] = rows[:, n]
            parts.append(wide)
    return triangular(np.vstack(parts))[k:, k:]
