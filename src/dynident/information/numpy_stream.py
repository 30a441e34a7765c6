"""The accumulator without compiled code: the oracle of `streaming`, and its replacement where LLVM is missing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.jit.numpy_kernel import NumpyKernel
from dynident.dynamics.jit.program import Program

_BLOCK = 2048  # samples


def split_triangles(factors: Array, widths: Sequence[int]) -> list[Array]:
    """The outputs' triangles, (width, width) each, of factors that stand one after the other."""
    squares = np.square(widths)
    ends = np.cumsum(squares)
    parts = zip(ends - squares, ends, widths, strict=True)
    return [factors[start:end].reshape(width, width) for start, end, width in parts]


class NumpyStream:
    """The accumulator of a program on NumPy (see `Stream`)."""

    def __init__(self, program: Program, columns: Sequence[tuple[int, ...]], slots: Sequence[int]) -> None:
        self.widths, self.slots = [len(own) + 1 for own in columns], slots
        self._kernel = NumpyKernel(program)

    def absorb(self, inputs: list[Array], taus: list[Array], weights: list[Array] | None, factors: Array) -> bool:
        """Absorb samples into the factors; False if a number was not finite."""
        if not all(np.isfinite(x).all() for x in (*inputs, *taus)):
            return False
        triangles = split_triangles(factors, self.widths)
        for start in range(0, len(taus[0]), _BLOCK):
            part = slice(start, start + _BLOCK)
            lines = np.zeros((sum(self.widths), len(taus[0][part])))
            self._kernel([x[part] for x in inputs], lines, self.slots)
            first = 0
            for channel, (R, width) in enumerate(zip(triangles, self.widths, strict=True)):
                own = lines[first : first + width]
                own[-1] = taus[channel][part]
                if weights is not None:
                    own *= weights[channel][part]
                R[:] = np.linalg.qr(np.vstack([R, own.T]), mode="r")
                first += width
        return True
