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
from dynident.signals.observe import Observations, Rows, SignalOptions, observe, typical_band

__all__ = [
    "CENTRAL",
    "FIVE_POINT",
    "FIVE_POINT_CAUSAL",
    "Kernel",
    "Observations",
    "Rows",
    "SignalOptions",
    "Stretch",
    "Timing",
    "differentiator_table",
    "low_pass_kernel",
    "observe",
    "polynomial_kernel",
    "typical_band",
    "uniform_stretches",
]
