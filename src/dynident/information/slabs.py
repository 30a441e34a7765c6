"""Rows in slabs: filtered, masked and decimated rows on their way into factors, and out again for a second look.

A slab holds the rows of one output channel with the samples contiguous and the torque as its last line, over just the
columns that the channel feels. Whoever can go through its slabs again is a `RowSource`; that is what methods need which
weigh every row by its own residual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dynident.arrays import Array, frozen
from dynident.errors import InputError
from dynident.identifiability.regrouping import Regrouping
from dynident.information.absorb import absorb
from dynident.information.factor import Factor
from dynident.information.information import Information, Segment


@dataclass(frozen=True)
class Slab:
    """Rows of one channel.

    Attributes:
        columns: The k base columns that the channel feels.
        rows: (k + 1, n_rows): a line per column, then the torque.
    """

    columns: tuple[int, ...]
    rows: Array

    def residual(self, values: Array) -> Array:
        """Torque minus what the parameter values explain, (n_rows,)."""
        return np.asarray(self.rows[-1] - values[list(self.columns)] @ self.rows[:-1])


@dataclass(frozen=True)
class SlabBlock:
    """Slabs of one stretch of time, one per channel.

    Attributes:
        label: Log it came from.
        segment: Blocks with the same label and number belong to one segment.
        slabs: In the order of the channels; rows that are not to be used have been left out.
    """

    label: str
    segment: int
    slabs: tuple[Slab, ...]


class RowSource(Protocol):
    """Data that can be gone through again, row by row."""

    @property
    def coordinates(self) -> Regrouping:
        """What the columns are."""
        ...

    @property
    def definitions(self) -> tuple[str, ...]:
        """What each standard column means beyond its name."""
        ...

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the output channels."""
        ...

    def blocks(self) -> Iterator[SlabBlock]:
        """All rows, in order, in bounded memory."""
        ...


Weigh = Callable[[int, Array], Array]  # (channel, slab's residual) -> weight of each row


def accumulate_slabs(source: RowSource, values: Array | None = None, weigh: Weigh | None = None) -> Information:
    """The information of all rows of a source.

    Args:
        source: The rows.
        values: Base parameter values that residuals are taken with, for `weigh`.
        weigh: Gives each row a weight from its residual; without it all count alike.

    Raises:
        InputError: When the source has no row at all.
    """
    segments: list[Segment] = []
    growing: _Growing | None = None
    for block in source.blocks():
        if growing is None or not growing.continues(block):
            if growing is not None:
                segments.append(growing.segment())
            growing = _Growing(block, len(source.channels))
        for channel, slab in enumerate(block.slabs):
            if not slab.rows.shape[1]:
                continue
            rows = slab.rows
            if weigh is not None and values is not None:
                rows = rows * np.sqrt(weigh(channel, slab.residual(values)))
            growing.absorb(channel, slab.columns, rows)
    if growing is not None:
        segments.append(growing.segment())
    if not any(factor.n_rows for segment in segments for factor in segment.factors):
        raise InputError("there is no row to learn from")
    kept = tuple(segment for segment in segments if any(factor.n_rows for factor in segment.factors))
    return Information(source.coordinates, source.definitions, source.channels, kept)


class _Growing:
    """A segment while its blocks come in."""

    def __init__(self, block: SlabBlock, n_channels: int) -> None:
        self.label, self.number = block.label, block.segment
        self.columns: list[tuple[int, ...]] = [()] * n_channels
        self.factors: list[Array] = [np.zeros((1, 1))] * n_channels
        self.counts = [0] * n_channels

    def continues(self, block: SlabBlock) -> bool:
        return (block.label, block.segment) == (self.label, self.number)

    def absorb(self, channel: int, columns: tuple[int, ...], rows: Array) -> None:
        if not self.counts[channel]:
            self.columns[channel] = columns
            self.factors[channel] = np.zeros((len(columns) + 1, len(columns) + 1))
        absorb(self.factors[channel], np.array(rows, order="C"))  # a copy: absorbing destroys it
        self.counts[channel] += rows.shape[1]

    def segment(self) -> Segment:
        parts = zip(self.columns, self.factors, self.counts, strict=True)
        return Segment(self.label, tuple(Factor(columns, np.triu(R), count) for columns, R, count in parts))


@dataclass(frozen=True)
class GivenRows:
    """Rows that somebody else made, as a source that can be gone through again.

    Attributes:
        W: (n_samples, n_channels, n): the rows over the base columns of `coordinates`.
        tau: (n_samples, n_channels): the right-hand side.
        coordinates: What the columns are.
        channels: Names of the output channels; default 1, 2, ...
        definitions: What each standard column means beyond its name; default "given".
        label: Where the data came from.
        block: Samples at a time.
        segment: Samples of a segment; default all.

    Rows that are zero throughout (masked out) are left out.
    """

    W: Array
    tau: Array
    coordinates: Regrouping
    channels: tuple[str, ...] = ()
    definitions: tuple[str, ...] = ()
    label: str = "data"
    block: int = 1024
    segment: int | None = None

    def __post_init__(self) -> None:
        W, tau = frozen(self.W), frozen(self.tau)
        if W.ndim != 3 or W.shape[2] != self.coordinates.n or tau.shape != W.shape[:2]:
            raise InputError(
                f"W must have shape (n_samples, n_channels, {self.coordinates.n}) and tau (n_samples, n_channels); "
                f"got {W.shape} and {tau.shape}"
            )
        channels = tuple(self.channels) or tuple(str(i + 1) for i in range(W.shape[1]))
        definitions = tuple(self.definitions) or ("given",) * len(self.coordinates.columns)
        if len(channels) != W.shape[1] or len(set(channels)) != len(channels):
            raise InputError(f"give {W.shape[1]} different channel names; got {', '.join(channels)}")
        if len(definitions) != len(self.coordinates.columns):
            raise InputError(f"{len(definitions)} definitions do not fit {len(self.coordinates.columns)} columns")
        if self.block < 1 or (self.segment is not None and self.segment < 1):
            raise InputError(f"block is {self.block} and segment {self.segment}; expected at least one sample")
        for array, what in ((W, "W"), (tau, "tau")):
            if not np.isfinite(array).all():
                sample, channel = np.argwhere(~np.isfinite(array))[0][:2]
                raise InputError(f"{what} is not finite at sample {sample}, channel {channels[channel]}")
        for name, value in (("W", W), ("tau", tau), ("channels", channels), ("definitions", definitions)):
            object.__setattr__(self, name, value)

    def blocks(self) -> Iterator[SlabBlock]:
        """All rows, in order."""
        n = len(self.W)
        felt = [tuple(int(j) for j in np.flatnonzero(self.W[:, c].any(0))) for c in range(self.W.shape[1])]
        length = n if self.segment is None else self.segment
        for number, start in enumerate(range(0, n, max(length, 1))):
            end = min(start + length, n)
            for first in range(start, end, self.block):
                part = slice(first, min(first + self.block, end))
                slabs = tuple(self._slab(part, channel, columns) for channel, columns in enumerate(felt))
                yield SlabBlock(self.label, number, slabs)

    def _slab(self, part: slice, channel: int, columns: tuple[int, ...]) -> Slab:
        rows = np.vstack([self.W[part, channel][:, list(columns)].T, self.tau[part, channel]])
        return Slab(columns, rows[:, rows.any(0)])
