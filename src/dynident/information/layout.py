"""Which columns each output channel feels, and where they stand in its slab."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array


@dataclass(frozen=True)
class Layout:
    """Where the program's outputs go.

    Attributes:
        columns: For each channel, the columns it feels.
        slots: For each program output, its place among all slab columns.
    """

    columns: tuple[tuple[int, ...], ...]
    slots: tuple[int, ...]

    @property
    def widths(self) -> list[int]:
        """Slab columns of each channel, torque included."""
        return [len(own) + 1 for own in self.columns]

    @staticmethod
    def of(places: tuple[tuple[int, ...], ...], n_channels: int) -> Layout:
        """The layout of a regressor program whose outputs are at places (channel, column)."""
        columns = tuple(
            tuple(sorted(place[1] for place in places if place[0] == channel)) for channel in range(n_channels)
        )
        first = np.concatenate([[0], np.cumsum([len(own) + 1 for own in columns])])
        slots = tuple(int(first[channel]) + columns[channel].index(column) for channel, column in places)
        return Layout(columns, slots)

    def split(self, factors: Array) -> list[Array]:
        """The channels' triangles, (width, width) each, of factors that stand one after the other."""
        squares = np.square(self.widths)
        ends = np.cumsum(squares)
        parts = zip(ends - squares, ends, self.widths, strict=True)
        return [factors[start:end].reshape(width, width) for start, end, width in parts]

    def empty(self) -> Array:
        """Factors of no data: one upper triangle per channel, one after the other."""
        return np.zeros(int(np.sum(np.square(self.widths))))
