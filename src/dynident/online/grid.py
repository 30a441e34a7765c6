"""Samples with irregular stamps onto a uniform grid, as they come.

A sample that is stamped a millisecond off moves a joint by a milliradian at 1 rad/s, which two derivatives make into a
violent acceleration. The cubic through the two samples on either side puts the motion where the grid is.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np

from dynident.arrays import Array

JITTER = 0.01  # of the sample time: stamps that scatter by more are irregular


def irregular(stamps: Array, sample_time: float) -> bool:
    """Whether stamps scatter around a grid; missing samples are no scatter."""
    steps = np.diff(stamps) / sample_time
    steps = steps[steps > 0.5]
    return bool(len(steps) and np.std(steps - np.round(steps)) > JITTER)


class Regridder:
    """Interpolates signals at multiples of the sample time.

    Args:
        sample_time: Step of the grid [s].
        most_missing: Samples that may be missing in a row; more, and the grid starts anew.
    """

    def __init__(self, sample_time: float, most_missing: int) -> None:
        self.step, self.longest = sample_time, (most_missing + 1.5) * sample_time
        self._times: deque[float] = deque(maxlen=4)
        self._values: deque[Array] = deque(maxlen=4)
        self._next = math.nan
        self.late = self.filled = 0

    def push(self, time: float, values: Array) -> list[tuple[float, Array]]:
        """One sample (width,); the grid's samples that it completes, about two sample times late."""
        if self._times:
            gap = time - self._times[-1]
            if -1.0 < gap <= 0.0:
                self.late += 1
                return []
            if not 0.0 < gap <= self.longest:
                self.restart()
            elif gap > 1.5 * self.step:
                self.filled += round(gap / self.step) - 1
        self._times.append(time)
        self._values.append(values)
        if len(self._times) < 4:
            self._next = self._times[1] if len(self._times) > 1 else math.nan
            return []
        return self._between()

    def restart(self) -> None:
        """Start anew, as after a gap."""
        self._times.clear()
        self._values.clear()

    def _between(self) -> list[tuple[float, Array]]:
        """Grid points up to the last but one sample."""
        t, found = list(self._times), []
        held = np.array(self._values)
        while self._next <= t[2] + 1e-9 * self.step:
            x = self._next
            weights = [math.prod((x - t[j]) / (t[i] - t[j]) for j in range(4) if j != i) for i in range(4)]
            found.append((x, np.asarray(np.array(weights) @ held)))
            self._next = x + self.step
        return found

    def push_many(self, time: Array, values: Array) -> tuple[Array, Array]:
        """Many samples (n, width); the grid's samples that they complete."""
        found = [one for i in range(len(time)) for one in self.push(float(time[i]), values[i])]
        if not found:
            return np.zeros(0), np.zeros((0, values.shape[1]))
        stamps, parts = zip(*found, strict=True)
        return np.array(stamps), np.array(parts)

    def as_arrays(self) -> dict[str, Any]:
        """The memory as plain arrays, for checkpoints."""
        return {
            "times": np.array(self._times),
            "values": np.array(self._values),
            "counts": np.array([self._next, self.late, self.filled]),
        }

    def restore(self, arrays: dict[str, Any]) -> None:
        """Continue from what `as_arrays` gave."""
        self._times.extend(float(x) for x in arrays["times"])
        self._values.extend(np.array(row) for row in arrays["values"])
        self._next = float(arrays["counts"][0])
        self.late, self.filled = int(arrays["counts"][1]), int(arrays["counts"][2])
