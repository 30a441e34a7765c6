"""A recorded program and its reverse pass, tied to fixed arrays: thousands of calls cost only the arithmetic."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.adjoint import adjoint
from dynident.dynamics.backend import chosen_backend
from dynident.dynamics.numpy_backend import NumpyKernel
from dynident.dynamics.program import Program


class Tape:
    """Values of a program on a batch, and derivatives of weighted sums of them.

    Args:
        program: The program; its inputs are rows of arrays (n_inputs, n_samples).
        n_samples: Samples in a batch.
    """

    def __init__(self, program: Program, n_samples: int) -> None:
        n_inputs, n_outputs = len(program.inputs), len(program.outputs)
        self._n = n_inputs
        self._given = np.zeros((n_inputs + n_outputs, n_samples))
        self.values = np.zeros((n_outputs, n_samples))
        self.slopes = np.zeros((n_inputs, n_samples))
        self._forward = _bound(program, self._given[:n_inputs], self.values)
        self._program = program
        self._backward: Callable[[], None] | None = None

    def evaluate(self, *inputs: Array) -> Array:
        """Outputs, (n_outputs, n_samples), valid until the next call; inputs are (n_samples, n) each."""
        first = 0
        for block in inputs:
            self._given[first : first + block.shape[1]] = block.T
            first += block.shape[1]
        self._forward()
        return self.values

    @property
    def weights(self) -> Array:
        """(n_outputs, n_samples): write the weights of the outputs here before `pull`."""
        return self._given[self._n :]

    def pull(self) -> Array:
        """Derivatives of the weighted sum of the outputs with respect to each input, (n_inputs, n_samples)."""
        if self._backward is None:  # made when somebody first wants it
            self._backward = _bound(adjoint(self._program), self._given, self.slopes)
        self._backward()
        return self.slopes


def _bound(program: Program, inputs: Array, out: Array) -> Callable[[], None]:
    if chosen_backend() == "numpy":
        kernel = NumpyKernel(program)
        return lambda: kernel(list(inputs), out)
    from dynident.dynamics.llvm_backend import LlvmKernel  # LLVM is loaded only when something is compiled

    return LlvmKernel(program).bound(inputs, out)
