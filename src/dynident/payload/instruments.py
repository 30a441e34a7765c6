r"""Rows seen through instruments: what noise of the positions does to columns, it does not do to their neighbors.

Columns W made of measured positions have noise, as the torque y has, and least squares draws what multiplies them to
zero. The mean Z of the columns a period of the band before and after has the same motion in it and another noise. With
an orthonormal basis Q of the columns of Z,

.. math:: Q'W x = Q'y

holds but for noise that does not grow with the rows (instrumental variables in the form of two-stage least squares; for
robots Janot, Vandanjon, Gautier 2014).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dynident.arrays import Array, on_one_thread
from dynident.identifiability.base_regressor import RegressorBlock
from dynident.information.factor import absorb
from dynident.information.solution import RANK_SHARE
from dynident.payload.thresholds import THRESHOLDS
from dynident.signals.dry_friction import DryFriction
from dynident.signals.observations import Observations
from dynident.signals.rows import ROWS_PER_BAND, ObservedRows, row_blocks

# Rows of one channel: (k, n + 1) triangle of [W, y] over all n base parameters and what stands beside them; (p, n + 1)
# the same rows through the instruments, Q'[W, y]; how many rows there are.
InstrumentedChannel = tuple[Array, Array, int]


@on_one_thread
def instrument_channels(data: ObservedRows) -> dict[str, InstrumentedChannel]:
    """The rows of each channel through instruments, by joint; a rule may ask for the delay beside the columns."""
    n = data.coordinates.n
    columns = [(*own, *range(data.regressor.coordinates.n, n)) for own in data.regressor.columns]
    triangles = [np.zeros((2 * len(own) + 1,) * 2) for own in columns]  # of [Z, W, y]
    counts = np.zeros(len(columns), dtype=int)
    for one in data.observations:
        lag = max(1, round(THRESHOLDS.instrument_lag * ROWS_PER_BAND))
        for block in _overlapping(one, data, 2 * lag):
            middle = np.arange(lag, len(block.time) - lag)
            step = np.median(np.diff(block.time))
            whole = block.time[middle + lag] - block.time[middle - lag] < (2 * lag + 0.5) * step  # no gap between
            for output, lines in enumerate(block.columns_first):
                used = block.usable[:, output]
                own = middle[whole & used[middle] & used[middle - lag] & used[middle + lag]]
                beside = 0.5 * (lines[:-1, own - lag] + lines[:-1, own + lag])
                absorb(triangles[output], np.concatenate([beside, lines[:, own]]))
                counts[output] += len(own)
    made = (_channel(R, own, n, int(k)) for R, own, k in zip(triangles, columns, counts, strict=True))
    return dict(zip(data.channels, made, strict=True))


def _channel(R: Array, own: tuple[int, ...], n: int, count: int) -> InstrumentedChannel:
    p = len(own)
    size = np.linalg.norm(R[:p, :p], axis=0)
    basis, singular, _ = np.linalg.svd(R[:p, :p] / np.where(size > 0.0, size, 1.0))
    basis = basis[:, singular > RANK_SHARE * p * singular[0]]  # columns that depend on others point anywhere
    wide, short = np.zeros((len(R), n + 1)), np.zeros((basis.shape[1], n + 1))
    wide[:, [*own, n]], short[:, [*own, n]] = R[:, p:], basis.T @ R[:p, p:]
    return wide, short, count


def _overlapping(one: Observations, data: ObservedRows, overlap: int) -> Iterator[RegressorBlock]:
    """The rows of a log in blocks that begin with the last rows of the one before."""
    before: RegressorBlock | None = None
    friction = DryFriction(data.regressor, data.base.terms)
    for block in row_blocks(one, data.regressor, data.reference, rule=data.rule, friction=friction):
        if before is not None:
            pairs = zip(before.columns_first, block.columns_first, strict=True)
            block = replace(
                block,
                time=np.concatenate([before.time, block.time]),
                columns_first=tuple(np.hstack(pair) for pair in pairs),
                usable=np.concatenate([before.usable, block.usable]),
            )
        before = block.part(slice(max(0, len(block.time) - overlap), None), block.segment)
        if len(block.time) > overlap:
            yield block
