"""From logs as they come to signals that equations can use: uniform time, derivatives, filters."""

from typing import TYPE_CHECKING

from dynident.lazy import lazy_names
from dynident.signals.bandwidth import BandChoice, BandEvidence
from dynident.signals.columns import column_bandwidth
from dynident.signals.fir import FilterStream, filter_signals
from dynident.signals.grid import Grid, fresh_blocks, uniform_chunks
from dynident.signals.kernels import (
    CENTRAL,
    FIVE_POINT,
    FIVE_POINT_CAUSAL,
    NINE_POINT,
    FirKernel,
    differentiator_table,
    low_pass_kernel,
    polynomial_kernel,
)
from dynident.signals.log_survey import Survey, survey_log
from dynident.signals.observations import MotionBlock, Observations, SignalOptions, observe
from dynident.signals.rows import ObservedRows, row_blocks
from dynident.signals.spectrum import MotionSpectrum

__all__ = [
    "CENTRAL",
    "FIVE_POINT",
    "FIVE_POINT_CAUSAL",
    "NINE_POINT",
    "BandChoice",
    "BandEvidence",
    "FilterStream",
    "FirKernel",
    "Grid",
    "MotionBlock",
    "MotionSpectrum",
    "Observations",
    "ObservedRows",
    "SignalOptions",
    "Survey",
    "column_bandwidth",
    "differentiator_table",
    "filter_signals",
    "fresh_blocks",
    "low_pass_kernel",
    "observe",
    "polynomial_kernel",
    "row_blocks",
    "survey_log",
    "uniform_chunks",
]
if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__, {}, renamed={"Kernel": "FirKernel", "filtered": "filter_signals"})[0]
