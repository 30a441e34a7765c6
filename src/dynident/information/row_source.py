"""Rows to an `Information`: blocks of rows that a source can go through again, and rows that somebody else made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, frozen
from dynident.display import brief
from dynident.dynamics.terms import Column
from dynident.errors import InputError
from dynident.identifiability.base_regressor import RegressorBlock, RowSource
from dynident.identifiability.regrouping import Regrouping
from dynident.information.accumulation import GIVEN_BLOCK
from dynident.information.factor import Factor, absorb
from dynident.information.information import Information, Segment

_LARGEST = 1e140  # squares of larger numbers overflow
Weigh = Callable[[int, Array], Array]  # (output, residuals of a block) -> weight of each row


def accumulate_source(source: RowSource, values: Array | None = None, weigh: Weigh | None = None) -> Information:
    """The information of all usable rows of a source.

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
            growing = _Growing(block)
        growing.span = (growing.span[0], float(block.time[-1]))
        for output, columns in enumerate(block.columns):
            rows = block.usable_columns_first(output)
            if not rows.shape[1]:
                continue
            if weigh is not None and values is not None:
                rows = rows * np.sqrt(weigh(output, block.residual(output, values)))
            growing.absorb(output, columns, rows)
    if growing is not None:
        segments.append(growing.segment())
    if not any(factor.n_rows for segment in segments for factor in segment.factors):
        raise InputError("there is no row for training")
    kept = tuple(segment for segment in segments if any(factor.n_rows for factor in segment.factors))
    return Information(source.coordinates, source.definitions, source.channels, kept)


class _Growing:
    """A segment while its blocks come in."""

    def __init__(self, block: RegressorBlock) -> None:
        n = len(block.columns)
        self.log, self.number = block.log, block.segment
        self.columns: list[tuple[int, ...]] = [()] * n
        self.factors: list[Array] = [np.zeros((1, 1))] * n
        self.counts = [0] * n
        self.span = (float(block.time[0]), float(block.time[-1]))

    def continues(self, block: RegressorBlock) -> bool:
        return (block.log, block.segment) == (self.log, self.number)

    def absorb(self, output: int, columns: tuple[int, ...], columns_first: Array) -> None:
        """More rows of an output, which are destroyed."""
        if not self.counts[output]:
            self.columns[output] = columns
            self.factors[output] = np.zeros((len(columns) + 1, len(columns) + 1))
        absorb(self.factors[output], columns_first)
        self.counts[output] += columns_first.shape[1]

    def segment(self) -> Segment:
        parts = zip(self.columns, self.factors, self.counts, strict=True)
        return Segment(self.log, tuple(Factor(columns, np.triu(R), count) for columns, R, count in parts), self.span)


@brief
@dataclass(frozen=True, eq=False)
class MappedRows:
    """The rows of a source over x, where its base parameters are beta = origin + S x and S selects some of them.

    What `Information.restrict` and `Information.around` are for factors.

    Attributes:
        source: The rows.
        names: Base parameters to keep, the others staying at the origin; default all.
        origin: (n,) base values that the right-hand side is taken around, y - W origin; default zero.
    """

    source: RowSource
    names: tuple[str, ...] | None = None
    origin: Array | None = None

    @property
    def _selected(self) -> list[int]:
        every = self.source.coordinates.names
        return [i for i, name in enumerate(every) if self.names is None or name in set(self.names)]

    @property
    def coordinates(self) -> Regrouping:
        """The base parameters that are kept."""
        old, own = self.source.coordinates, self._selected
        if self.names is None:
            return old
        return Regrouping(old.columns, tuple(old.independent[i] for i in own), frozen(old.K[own]))

    @property
    def definitions(self) -> tuple[str, ...]:
        """What each standard column means."""
        return self.source.definitions

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return self.source.channels

    def blocks(self) -> Iterator[RegressorBlock]:
        """All rows, in order."""
        place = {old: new for new, old in enumerate(self._selected)}
        for block in self.source.blocks():
            columns = tuple(tuple(place[i] for i in own if i in place) for own in block.columns)
            mapped = (self._lines(*pair, place) for pair in zip(block.columns, block.columns_first, strict=True))
            yield replace(block, columns=columns, columns_first=tuple(mapped))

    def _lines(self, columns: tuple[int, ...], columns_first: Array, place: dict[int, int]) -> Array:
        """The lines of an output, (k + n_right, n_rows), that stay, around the origin."""
        W, right = np.split(columns_first, [len(columns)])
        if self.origin is not None:
            right = right - self.origin[list(columns)] @ W
        return np.concatenate([W[[i for i, column in enumerate(columns) if column in place]], right])


@brief
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

    Rows that are zero throughout (masked out) are not usable.
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

    def blocks(self) -> Iterator[RegressorBlock]:
        """All rows, in order."""
        n = len(self.W)
        columns = tuple(tuple(np.flatnonzero(self.W[:, c].any(0)).tolist()) for c in range(self.W.shape[1]))
        length = n if self.segment is None else self.segment
        for number, start in enumerate(range(0, n, max(length, 1))):
            end = min(start + length, n)
            for first in range(start, end, self.block):
                part = slice(first, min(first + self.block, end))
                yield self._block(part, number, columns)

    def _block(self, part: slice, segment: int, columns: tuple[tuple[int, ...], ...]) -> RegressorBlock:
        lines = tuple(
            np.vstack([self.W[part, output][:, list(own)].T, self.tau[part, output]])
            for output, own in enumerate(columns)
        )
        usable = np.stack([rows.any(0) for rows in lines], axis=1)
        time = np.arange(part.start, part.stop, dtype=np.float64)
        return RegressorBlock(self.label, segment, time, columns, lines, usable)


def accumulate_rows(
    W: ArrayLike,
    tau: ArrayLike,
    coordinates: Regrouping | Sequence[str],
    *,
    channels: Sequence[str] | None = None,
    definitions: Sequence[str] | None = None,
    label: str = "data",
) -> Information:
    """The information of rows that somebody else made: filtered, decimated, energy, or any linear model.

    Args:
        W: (n_samples, n_channels, n): the rows over the base columns of `coordinates`.
        tau: (n_samples, n_channels): the right-hand side.
        coordinates: What the columns are: a robot's regrouping, or plain names.
        channels: Names of the output channels; default 1, 2, ...
        definitions: What each standard column means beyond its name; default "given".
        label: Where the data came from.

    Rows that are zero throughout (masked out) do not count as data.

    Raises:
        InputError: Naming sample and channel when a number is not finite.
    """
    if not isinstance(coordinates, Regrouping):
        coordinates = _unique(coordinates, "column")
        plain = tuple(Column(name, "", name, "", "given", "given column") for name in coordinates)
        coordinates = Regrouping(plain, tuple(range(len(plain))), frozen(np.eye(len(plain))))
    rows, right = np.asarray(W, dtype=np.float64), np.asarray(tau, dtype=np.float64)
    if rows.ndim != 3 or rows.shape[2] != coordinates.n or right.shape != rows.shape[:2]:
        raise InputError(
            f"W must have shape (n_samples, n_channels, {coordinates.n}) and tau (n_samples, n_channels); "
            f"got {rows.shape} and {right.shape}"
        )
    names = _unique(channels if channels is not None else [str(i + 1) for i in range(rows.shape[1])], "channel")
    if len(names) != rows.shape[1] or len(rows) == 0:
        raise InputError(f"{len(names)} channel names do not fit {rows.shape[1]} channels with {len(rows)} samples")
    for array, what in ((rows, "W"), (right, "tau")):
        if not np.isfinite(array).all():
            sample, channel = np.argwhere(~np.isfinite(array))[0][:2]
            raise InputError(f"{what} is not finite at sample {sample}, channel {names[channel]}")
        size = np.abs(array)
        if size.max() > _LARGEST or size[size > 0.0].min(initial=1.0) < 1.0 / _LARGEST:
            raise InputError(
                f"{what} has numbers beyond {_LARGEST:g} or below its inverse, whose squares are lost; rescale"
            )
    factors = []
    for channel in range(rows.shape[1]):
        own = tuple(int(j) for j in np.flatnonzero(rows[:, channel].any(0)))
        R = np.zeros((len(own) + 1, len(own) + 1))
        for start in range(0, len(rows), GIVEN_BLOCK):
            part = slice(start, start + GIVEN_BLOCK)
            absorb(R, np.vstack([rows[part, channel][:, own].T, right[part, channel]]))
        silent = ~rows[:, channel].any(1) & (right[:, channel] == 0.0)
        factors.append(Factor(own, np.triu(R), len(rows) - int(silent.sum())))
    meaning = tuple(definitions) if definitions is not None else ("given",) * len(coordinates.columns)
    if len(meaning) != len(coordinates.columns):
        raise InputError(f"{len(meaning)} definitions do not fit {len(coordinates.columns)} standard columns")
    return Information(coordinates, meaning, names, (Segment(label, tuple(factors)),))


def _unique(names: Iterable[str], what: str) -> tuple[str, ...]:
    """The names, each once."""
    listed = tuple(names)
    for name in listed:
        if listed.count(name) > 1:
            raise InputError(f"{what} '{name}' is named twice")
    return listed
