"""The accumulator without compiled code: the oracle of `streaming`, and its replacement where LLVM is missing."""

from __future__ import annotations

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.numpy_backend import NumpyKernel
from dynident.dynamics.program import Program
from dynident.information.layout import Layout

_BLOCK = 2048  # samples


class NumpyStream:
    """The accumulator of a program on NumPy (see `Stream`)."""

    def __init__(self, program: Program, layout: Layout) -> None:
        self.layout = layout
        self._kernel = NumpyKernel(program)

    def absorb(self, inputs: list[Array], taus: list[Array], weights: list[Array] | None, factors: Array) -> bool:
        """Absorb samples into the factors; False if a number was not finite."""
        if not all(np.isfinite(x).all() for x in (*inputs, *taus)):
            return False
        triangles = self.layout.split(factors)
        for start in range(0, len(taus[0]), _BLOCK):
            part = slice(start, start + _BLOCK)
            slabs = np.zeros((sum(self.layout.widths), len(taus[0][part])))
            self._kernel([x[part] for x in inputs], slabs, self.layout.slots)
            first = 0
            for channel, (R, width) in enumerate(zip(triangles, self.layout.widths, strict=True)):
                slab = slabs[first : first + width]
                slab[-1] = taus[channel][part]
                if weights is not None:
                    slab *= weights[channel][part]
                R[:] = np.linalg.qr(np.vstack([R, slab.T]), mode="r")
                first += width
        return True
