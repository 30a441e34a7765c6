"""Positions that a logger keeps within a turn: the jumps by whole turns are taken back, sample by sample."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from dynident.arrays import Array, Mask
from dynident.logs.columns import kind_of
from dynident.logs.log import Log
from dynident.signals.thresholds import THRESHOLDS

_TURN = 2.0 * math.pi


class Unwrapper:
    """Takes back the jumps of positions by whole turns, along a stream of samples.

    A jump is one of a logger where it is a turn, to a quarter, and the step before was far shorter: positions in
    undeclared degrees take such steps too, one after the other.

    Args:
        n: Signals.

    Attributes:
        counts: (n,) jumps taken back so far.
    """

    def __init__(self, n: int) -> None:
        self.counts = np.zeros(n, dtype=np.int64)
        self._turns = np.zeros((n, 1))
        self._last = np.full((n, 1), math.nan)
        self._step = np.zeros((n, 1))  # before the next sample
        self._whole = self._wrapped = np.zeros((n, 1), dtype=bool)

    def add(self, x: Array) -> Array:
        """The next samples (n, n_samples), without jumps; the same array where there are none so far."""
        if not x.shape[1]:
            return x
        steps = np.diff(x, axis=1, prepend=self._last)
        share = THRESHOLDS.wrap_jump_turns
        with np.errstate(invalid="ignore"):
            turns = np.round(steps / _TURN)
            whole = (np.abs(steps) > share * _TURN) & (np.abs(steps - _TURN * turns) < (1.0 - share) * _TURN)
        quiet = self._after_short_steps(steps, whole) if whole.any() else whole
        self._last, self._step = x[:, -1:].copy(), np.nan_to_num(steps[:, -1:])
        self._whole, self._wrapped = whole[:, -1:].copy(), quiet[:, -1:].copy()
        if not quiet.any() and not self._turns.any():
            return x
        self.counts += np.count_nonzero(quiet, axis=1)
        total = self._turns + np.cumsum(np.where(quiet, turns, 0.0), axis=1)
        self._turns = total[:, -1:].copy()
        return np.asarray(x - _TURN * total)

    def _after_short_steps(self, steps: Array, whole: Mask) -> Mask:
        """Which whole turns follow a short step, or another one that does: readings may jump there and back."""
        before = np.hstack([self._step, steps[:, :-1]])
        with np.errstate(invalid="ignore"):
            short = ~(np.abs(before) >= (1.0 - THRESHOLDS.wrap_jump_turns) * _TURN)
        begins = whole & ~np.hstack([self._whole, whole[:, :-1]])
        place = np.maximum.accumulate(np.where(begins, np.arange(steps.shape[1]), -1), axis=1)
        first = np.take_along_axis(short, np.maximum(place, 0), axis=1)
        return np.asarray(whole & np.where(place >= 0, first, self._wrapped))


def wrapping_rows(names: Sequence[str]) -> list[int]:
    """The channels that may wrap: joint positions."""
    return [row for row, name in enumerate(names) if kind_of(name) == "q"]


def unwrap_blocks(blocks: Iterable[Log], wraps: dict[str, int]) -> Iterator[Log]:
    """The blocks with positions that do not jump by turns.

    Args:
        blocks: A log.
        wraps: Counts the jumps taken back, by channel.
    """
    unwrapper: Unwrapper | None = None
    names: list[str] = []
    for block in blocks:
        if unwrapper is None:
            names = [name for name in block.channels if kind_of(name) == "q"]
            unwrapper = Unwrapper(len(names))
        if not names or not len(block):
            yield block
            continue
        own = np.vstack([block.channels[name] for name in names])
        flat = unwrapper.add(own)
        wraps.update({name: int(n) for name, n in zip(names, unwrapper.counts, strict=True) if n})
        yield (
            block if flat is own else replace(block, channels={**block.channels, **dict(zip(names, flat, strict=True))})
        )
