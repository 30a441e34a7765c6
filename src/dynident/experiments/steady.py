"""Stretches of a recording, for the gravity and the friction test."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.intp]  # numbers of samples


def unbroken_stretches(kind: NDArray[np.generic]) -> list[Samples]:
    """Sample numbers of the stretches over which a kind (m,) stays the same and is not zero, or a mask true."""
    runs = np.split(np.arange(len(kind)), np.flatnonzero(np.diff(kind)) + 1)
    return [run for run in runs if len(run) and kind[run[0]]]
