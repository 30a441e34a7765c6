"""`LatencyRecord`: how long samples took from their arrival to the updated estimate, in constant memory."""

from __future__ import annotations

import math

_LEAST = 1e-6  # [s] lower edge of the first bin
_BINS_PER_DECADE = 50  # a bin is 4.7 % wide
_DECADES = 8  # up to 100 s


class LatencyRecord:
    """Counts of times in bins of equal ratio.

    Attributes:
        count: Times so far.
        longest: The longest of them [s].
    """

    def __init__(self) -> None:
        self.count = 0
        self.longest = 0.0
        self._bins = [0] * (_BINS_PER_DECADE * _DECADES + 1)

    def add(self, seconds: float) -> None:
        """One more time [s]."""
        place = 0 if seconds <= _LEAST else math.ceil(_BINS_PER_DECADE * math.log10(seconds / _LEAST))
        self._bins[min(place, len(self._bins) - 1)] += 1
        self.count += 1
        self.longest = max(self.longest, seconds)

    def quantile(self, share: float) -> float:
        """Time that a share of all did not exceed [s]: the upper edge of its bin, at most 4.7 % too long."""
        wanted, below = share * self.count, 0
        for place, count in enumerate(self._bins):
            below += count
            if below >= wanted and below:
                return min(_LEAST * math.pow(10.0, place / _BINS_PER_DECADE), self.longest)
        return math.nan

    def as_dict(self) -> dict[str, float] | None:
        """Median, 99.9 % and longest [s]; None without any."""
        if not self.count:
            return None
        return {"median": self.quantile(0.5), "most": self.quantile(0.999), "longest": self.longest}
