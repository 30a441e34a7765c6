"""Filter banks along a stream: several kernels on several signals, decimated, in blocks of any size.

A block of results is a banded Toeplitz matrix times a window of samples, which leaves the work to matrix
multiplication: several times faster than a filter loop, since only the results that are kept are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from dynident.arrays import Array, Mask, on_one_thread
from dynident.signals.kernels import FirKernel

Ends = Literal["polynomial", "reflection"]
_LANES = 8  # doubles of the widest vector units
_DEGREE = 3  # of the polynomial that continues a motion beyond its ends


class FilterStream:
    """Applies kernels to a stretch of uniformly sampled signals, block after block.

    Args:
        groups: For each group of signals, how many they are and the kernels they pass.
        rate: Samples per second.
        step: Every step-th result is kept, beginning with the one at the first sample.
        ends: How signals are continued beyond their ends: by point reflection, which keeps the slope, or about a cubic
            through the samples that a kernel spans, which keeps acceleration as well.
    """

    def __init__(
        self,
        groups: Sequence[tuple[int, Sequence[FirKernel]]],
        rate: float,
        step: int = 1,
        ends: Ends = "reflection",
    ) -> None:
        kernels = [kernel for _, own in groups for kernel in own]
        self.half = max(max(kernel.center, len(kernel.taps) - 1 - kernel.center) for kernel in kernels)
        self.step, self.ends = step, ends
        self.counts = [count for count, _ in groups]
        length = 2 * self.half + 1
        # Results per multiplication: the band then fills three quarters of the matrix, which is still large enough.
        # Vector units take them in eights.
        block = max(1, -(-length // (3 * step)))
        self.block = block if block < _LANES // 2 else -(-block // _LANES) * _LANES
        self.window = (self.block - 1) * step + length
        self.matrices = [self._toeplitz(own, rate) for _, own in groups]
        self.n_kernels = [len(own) for _, own in groups]
        self._held = np.zeros((sum(self.counts), 0))  # samples that results still need
        self._inner = np.zeros(0, dtype=bool)
        self._first = 0  # place of the first held sample, counted from the beginning of the stretch
        self._done = 0  # results given so far
        self._began = False

    def _toeplitz(self, kernels: Sequence[FirKernel], rate: float) -> Array:
        """(window, n_kernels * block): window of samples to a block of results of each kernel."""
        T = np.zeros((len(kernels), self.block, self.window))
        for i, kernel in enumerate(kernels):
            shift = self.half - kernel.center
            for b in range(self.block):
                start = b * self.step + shift
                T[i, b, start : start + len(kernel.taps)] = kernel.taps * rate**kernel.order
        return np.ascontiguousarray(T.reshape(-1, self.window).T)

    def push(self, x: Array, last: bool, inner: Mask | None = None) -> tuple[list[Array], Mask, int]:
        """More samples of the stretch.

        Args:
            x: (n_signals, n_samples).
            last: Whether the stretch ends here.
            inner: (n_samples,), whether each sample is measured; default all are.

        Returns:
            For each group its results (n_kernels, n_signals, n_results), C-contiguous; (n_results,) whether measured
            samples alone made each; and the number of the first result.
        """
        fresh = np.ones(x.shape[1], dtype=bool) if inner is None else inner
        self._held = np.concatenate([self._held, x], axis=1)
        self._inner = np.concatenate([self._inner, fresh])
        if not self._began and (self._held.shape[1] > self.half or (last and self._held.shape[1])):
            self._begin()
        if not self._began:
            return self._empty()
        real = self._first + self._held.shape[1]
        if last:
            self._finish()
        end = self._first + self._held.shape[1]
        # Result k spans samples k step - half .. k step + half; after the last sample there are no results.
        count = max(0, (min(end - 1 - self.half, real - 1) - self._done * self.step) // self.step + 1)
        if count <= 0:
            return self._empty()
        offset = self._done * self.step - self.half - self._first
        results = self._results(offset, count)
        sums = np.concatenate([[0], np.cumsum(~self._inner)])
        starts = offset + self.step * np.arange(count)
        clean = sums[starts + 2 * self.half + 1] == sums[starts]
        first = self._done
        self._done += count
        spent = min(self._done * self.step - self.half - self._first, self._held.shape[1])
        self._held, self._inner, self._first = self._held[:, spent:], self._inner[spent:], self._first + spent
        return results, np.asarray(clean), first

    def _empty(self) -> tuple[list[Array], Mask, int]:
        sizes = zip(self.n_kernels, self.counts, strict=True)
        return [np.zeros((k, n, 0)) for k, n in sizes], np.zeros(0, dtype=bool), self._done

    def _begin(self) -> None:
        ahead = _continue_signals(self._held[:, : self.half + 1], self.half, self.ends)
        self._held = np.concatenate([ahead, self._held], axis=1)
        self._inner = np.concatenate([np.zeros(self.half, dtype=bool), self._inner])
        self._first, self._began = -self.half, True

    def _finish(self) -> None:
        own = self._held[:, max(0, -self._first) :]  # without what was put in front of a short stretch
        behind = _continue_signals(own[:, : -self.half - 2 : -1], self.half, self.ends)[:, ::-1]
        self._held = np.concatenate([self._held, behind], axis=1)
        self._inner = np.concatenate([self._inner, np.zeros(self.half, dtype=bool)])

    @on_one_thread
    def _results(self, offset: int, count: int) -> list[Array]:
        """Results whose first window begins at held sample `offset`."""
        blocks = -(-count // self.block)
        need = offset + ((blocks - 1) * self.block) * self.step + self.window
        held = self._held
        if need > held.shape[1]:
            held = np.concatenate([held, np.zeros((len(held), need - held.shape[1]))], axis=1)
        windows = sliding_window_view(held[:, offset:need], self.window, axis=1)[:, :: self.block * self.step]
        given, row = [], 0
        for n, k, matrix in zip(self.counts, self.n_kernels, self.matrices, strict=True):
            own = windows[row : row + n].transpose(1, 0, 2)  # (blocks, n_signals, window)
            product = np.matmul(own, matrix).reshape(blocks, n, k, self.block).transpose(2, 1, 0, 3)
            results, whole = np.empty((k, n, count)), count // self.block
            edge = whole * self.block
            results[:, :, :edge].reshape(k, n, whole, self.block)[:] = product[:, :, :whole]
            results[:, :, edge:] = product[:, :, -1, : count - edge]
            given.append(results)
            row += n
        return given


def _continue_signals(x: Array, half: int, ends: Ends) -> Array:
    """What comes before the first samples x of a stretch, (n_signals, up to half + 1) -> (n_signals, half)."""
    n = x.shape[1]
    if n > half and (ends == "reflection" or half < 2 * _DEGREE):
        return 2.0 * x[:, :1] - x[:, half:0:-1]
    # A stretch shorter than the kernel is continued by the polynomial alone, of a degree that so few samples carry.
    degree = min(_DEGREE, (n - 1) // 2) if n <= half else _DEGREE
    places = np.arange(-half, n) / half
    powers = places[:, None] ** np.arange(degree + 1)
    shape = np.linalg.lstsq(powers[half:], x.T, rcond=None)[0]
    smooth = (powers @ shape).T
    if n <= half:
        return np.asarray(smooth[:, :half])
    rest = x - smooth[:, half:]
    return np.asarray(smooth[:, :half] - rest[:, half:0:-1] + 2.0 * rest[:, :1])


def filter_signals(
    x: Array, kernels: Sequence[FirKernel], rate: float, step: int = 1, ends: Ends = "reflection"
) -> list[Array]:
    """The kernels on whole signals at once, (n_samples, n_signals) -> one (n_results, n_signals) array per kernel."""
    results, _, _ = FilterStream([(x.shape[1], kernels)], rate, step, ends).push(np.ascontiguousarray(x.T), last=True)
    return [np.ascontiguousarray(result.T) for result in results[0]]
