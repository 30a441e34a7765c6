"""Absorbing rows into a triangular factor, by machine code or by NumPy."""

from __future__ import annotations

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.backend import chosen_backend


def absorb(R: Array, block: Array) -> None:
    """Update a factor in place with more rows: [R; rows] is made triangular again.

    Args:
        R: (p, p) upper triangular, C-contiguous, float64.
        block: (p, n_rows): the new rows, one column of the matrix per row of this array. Destroyed.
    """
    if chosen_backend() == "numpy":
        R[:] = np.linalg.qr(np.vstack([R, block.T]), mode="r")
        return
    from dynident.dynamics.vector_ir import lanes
    from dynident.information.householder import absorb_function

    p, n_rows = block.shape
    width = lanes()
    if n_rows % width or not block.flags.c_contiguous:
        padded = np.zeros((p, -(-max(n_rows, 1) // width) * width))
        padded[:, :n_rows] = block
        block = padded
    absorb_function()(R.ctypes.data, p, block.ctypes.data, block.shape[1], block.shape[1], p)
