"""The stop operator: a spring that slips once it is wound up by a radius (Prandtl; elements of Prandtl-Ishlinskii).

Its partner, the play, is where the slipping end of the spring stands: p_k = clip(p_{k-1}, q_k - r, q_k + r), and the
stop is s_k = q_k - p_k. One clip after the other is again a clip, so a whole block is found by doubling, in
comparisons alone: the result is the same to the last bit however a motion is cut into blocks.
"""

from __future__ import annotations

import numpy as np

from dynident.arrays import Array


def play(position: Array, radius: Array, start: Array) -> Array:
    """The play operator along the last axis, (n, n_samples).

    Args:
        position: (n, n_samples).
        radius: (n,), positive.
        start: (n,) where the slipping ends stand before the first sample.
    """
    low, high = position - radius[:, None], position + radius[:, None]
    n, reach = position.shape[1], 1
    while reach < n:  # each sample's clip now stands for the last `reach` clips
        before_low, before_high = low[:, :-reach], high[:, :-reach]
        own_low, own_high = low[:, reach:], high[:, reach:]
        joined_low = np.clip(before_low, own_low, own_high)
        joined_high = np.clip(before_high, own_low, own_high)
        low = np.concatenate([low[:, :reach], joined_low], axis=1)
        high = np.concatenate([high[:, :reach], joined_high], axis=1)
        reach *= 2
    return np.clip(start[:, None], low, high)


class Stops:
    """Stop operators that go through a motion block after block.

    Args:
        radius: (n,), in the unit of the positions.
    """

    def __init__(self, radius: Array) -> None:
        self.radius = radius
        self._end: Array | None = None

    def remembered(self) -> Array:
        """(n,) where the slipping ends stand, or (0,) before the first sample."""
        return np.zeros(0) if self._end is None else self._end.copy()

    def recall(self, kept: Array) -> None:
        """Continue from what `remembered` gave."""
        self._end = np.array(kept) if len(kept) else None

    def push(self, position: Array, restart: bool) -> Array:
        """Wound-up share of the next samples, s / r between -1 and 1, (n, n_samples); zero where a stretch begins."""
        if not position.shape[1]:
            return np.zeros_like(position)
        start = position[:, 0] if restart or self._end is None else self._end
        slipping = play(position, self.radius, start)
        self._end = slipping[:, -1]
        return (position - slipping) / self.radius[:, None]
