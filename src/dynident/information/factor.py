"""Absorbing rows into a triangular factor, by machine code or by NumPy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, frozen
from dynident.dynamics.jit.numpy_kernel import chosen_backend

_MERGED = 8  # factors that are merged at a time: some hundred rows, which stay in the processor's cache


def absorb(R: Array, block: Array) -> None:
    """Update a factor in place with more rows: [R; rows] is made triangular again.

    Args:
        R: (p, p) upper triangular, C-contiguous, float64.
        block: (p, n_rows): the new rows, one column of the matrix per row of this array. Destroyed.
    """
    if chosen_backend() == "numpy":
        R[:] = np.linalg.qr(np.vstack([R, block.T]), mode="r")
        return
    from dynident.dynamics.jit.vector_ir import lanes
    from dynident.information.householder import absorb_function

    p, n_rows = block.shape
    width = lanes()
    if n_rows % width or not block.flags.c_contiguous:
        padded = np.zeros((p, -(-max(n_rows, 1) // width) * width))
        padded[:, :n_rows] = block
        block = padded
    absorb_function()(R.ctypes.data, p, block.ctypes.data, block.shape[1], block.shape[1], p)


# ----------------------------------------------------------------------------------------------------------------------
# One channel's square-root information: a triangular factor of the rows seen so far.


@dataclass(frozen=True)
class Factor:
    """The rows [W | y] of one output channel, compressed without loss to [R | z] and the residual below.

    Attributes:
        columns: Index of each column in the owner's list of columns; columns it lacks are zero.
        R: (k + 1, k + 1) upper triangular; the last column is z, its last entry the residual norm. While it is not
            decided yet what y is, several right-hand sides may stand behind the columns.
        n_rows: Rows behind it; not whole after forgetting.
    """

    columns: tuple[int, ...]
    R: Array
    n_rows: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "R", frozen(self.R))

    @property
    def residual(self) -> float:
        """Norm of what no choice of parameters explains in this channel alone."""
        return abs(float(self.R[-1, -1]))

    def dense(self, n_columns: int) -> Array:
        """The rows of the factor over all columns of the owner and y, (k + 1, n_columns + 1)."""
        full = np.zeros((len(self.R), n_columns + 1))
        full[:, [*self.columns, n_columns]] = self.R
        return full


def triangular(rows: Array) -> Array:
    """Upper triangular (k, k) with the same inner products as the given rows (n, k)."""
    R = np.zeros((rows.shape[1], rows.shape[1]))
    absorb(R, np.array(rows.T, order="C"))  # a copy: absorbing destroys it
    return R


def factor_of(rows: Array, columns: Iterable[int], n_rows: float) -> Factor:
    """The factor of rows over all columns and y, (n, n_columns + 1), keeping only the columns given."""
    kept = tuple(columns)
    return Factor(kept, triangular(rows[:, [*kept, rows.shape[1] - 1]]), n_rows)


def merge_factors(factors: Iterable[Factor]) -> Factor:
    """One factor for the rows of several, in their order."""
    items = list(factors)
    columns = tuple(sorted({column for factor in items for column in factor.columns}))
    place = {column: i for i, column in enumerate(columns)}
    R = np.zeros((len(columns) + 1, len(columns) + 1))
    for first in range(0, len(items), _MERGED):
        group = items[first : first + _MERGED]
        rows, end = np.zeros((len(columns) + 1, sum(len(factor.R) for factor in group))), 0
        for factor in group:
            begin, end = end, end + len(factor.R)
            rows[[*(place[column] for column in factor.columns), len(columns)], begin:end] = factor.R.T
        absorb(R, rows)
    return Factor(columns, R, sum(factor.n_rows for factor in items))
