"""From logs as they come to signals that equations can use: uniform time, derivatives, filters."""

from dynident.signals.grid import Stretch, Timing, uniform_stretches
from dynident.signals.kernels import (
    CENTRAL,
    FIVE_POINT,
    FIVE_POINT_CAUSAL,
    Kernel,
    differentiator_table,
    low_pass_kernel,
    polynomial_kernel,
)

__all__ = [
    "CENTRAL",
    "FIVE_POINT",
    "FIVE_POINT_CAUSAL",
    "Kernel",
    "Stretch",
    "Timing",
    "differentiator_table",
    "low_pass_kernel",
    "polynomial_kernel",
    "uniform_stretches",
]
