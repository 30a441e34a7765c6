"""From logs as they come to signals that equations can use: uniform time, derivatives, filters."""

from typing import TYPE_CHECKING

from dynident.lazy import lazy_names

if TYPE_CHECKING:
    from dynident.signals.bandwidth import BandChoice as BandChoice, BandEvidence as BandEvidence
    from dynident.signals.columns import column_bandwidth as column_bandwidth
    from dynident.signals.fir import FilterStream as FilterStream, filter_signals as filter_signals
    from dynident.signals.grid import Grid as Grid, fresh_blocks as fresh_blocks, uniform_chunks as uniform_chunks
    from dynident.signals.kernels import (
        CENTRAL as CENTRAL,
        FIVE_POINT as FIVE_POINT,
        FIVE_POINT_CAUSAL as FIVE_POINT_CAUSAL,
        NINE_POINT as NINE_POINT,
        FirKernel as FirKernel,
        differentiator_table as differentiator_table,
        low_pass_kernel as low_pass_kernel,
        polynomial_kernel as polynomial_kernel,
    )
    from dynident.signals.log_survey import Survey as Survey, survey_log as survey_log
    from dynident.signals.observations import (
        MotionBlock as MotionBlock,
        Observations as Observations,
        SignalOptions as SignalOptions,
        observe as observe,
    )
    from dynident.signals.rows import ObservedRows as ObservedRows, row_blocks as row_blocks
    from dynident.signals.spectrum import MotionSpectrum as MotionSpectrum
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__, {"Kernel": "FirKernel", "filtered": "filter_signals"})
