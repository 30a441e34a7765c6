"""`Soundness`: whether the numbers of a log can be used, found out block by block."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.arrays import Array
from dynident.logs.log import LogError


class Soundness:
    """Numbers must be finite and time must advance, never back.

    The answer is the same however the rows are cut into blocks: a fault is told only by `finish`, when all of its kind
    have been counted.

    Args:
        source: File, for messages.
        names: Name of each row of a block, "t" first.
    """

    def __init__(self, source: str, names: Sequence[str]) -> None:
        self.source = source
        self.names = names
        self.n_samples = 0
        self.first = self.last = np.nan  # time [s]
        self._faults: dict[str, tuple[int, float, int]] = {}  # by column: first row, its value, how many
        self._backwards: tuple[int, float, float] | None = None  # row, time before and at it [s]
        self._advances = False

    @property
    def faulty(self) -> bool:
        """Whether something was found that `finish` will refuse."""
        return bool(self._faults) or self._backwards is not None

    def feed(self, block: Array) -> None:
        """Look at the next samples, (n_names, n)."""
        if not np.isfinite(block).all():
            self._note_faults(block)
        time = block[0]
        if self.n_samples == 0:
            self.first = self.last = float(time[0])
        steps = np.diff(time, prepend=self.last)
        if self._backwards is None and (steps < 0.0).any():
            i = int(np.argmax(steps < 0.0))
            self._backwards = self.n_samples + i + 1, float(time[i - 1] if i else self.last), float(time[i])
        self._advances = self._advances or bool((steps > 0.0).any())
        self.n_samples += len(time)
        self.last = float(time[-1])

    def finish(self) -> None:
        """Refuse the log if something was wrong with it.

        Raises:
            LogError: Naming column and row.
        """
        for name in self.names:
            if name in self._faults:
                row, value, count = self._faults[name]
                raise LogError(self.source, f"column '{name}' is {value} at row {row} ({count} in all); repair the log")
        if self.n_samples < 2:
            raise LogError(self.source, f"has {self.n_samples} samples; a log needs many")
        if self._backwards is not None:
            row, before, after = self._backwards
            words = f"time runs backwards from {before:g} to {after:g} s at row {row}; sort or split the log"
            raise LogError(self.source, words)
        if not self._advances:
            raise LogError(self.source, "time never advances; check the time column and its unit")

    def _note_faults(self, block: Array) -> None:
        for name, values in zip(self.names, block, strict=True):
            bad = ~np.isfinite(values)
            if bad.any():
                i = int(np.argmax(bad))
                row, value, count = self._faults.get(name, (self.n_samples + i + 1, float(values[i]), 0))
                self._faults[name] = row, value, count + int(bad.sum())
