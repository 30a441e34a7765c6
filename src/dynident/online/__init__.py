"""Identification while the robot works: streams in, parameters with their standard deviations out."""

from typing import TYPE_CHECKING

from dynident.lazy import lazy_names

if TYPE_CHECKING:
    from dynident.online.changes import Change as Change
    from dynident.online.filters import CausalFilter as CausalFilter, FilteredMotion as FilteredMotion
    from dynident.online.identifier import OnlineIdentifier as OnlineIdentifier
    from dynident.online.link_by_link import arithmetic as arithmetic
    from dynident.online.monitor import MotionVerdict as MotionVerdict
    from dynident.online.options import LiveOptions as LiveOptions, OnlineOptions as OnlineOptions
    from dynident.online.rows import ParallelStructure as ParallelStructure, SeriesStructure as SeriesStructure
    from dynident.online.sources import (
        PlantSource as PlantSource,
        Replay as Replay,
        Samples as Samples,
        Source as Source,
        SourceError as SourceError,
        StandardInput as StandardInput,
        TcpSource as TcpSource,
        UdpSource as UdpSource,
        open_source as open_source,
    )
    from dynident.online.state import (
        Counters as Counters,
        OnlineState as OnlineState,
        Sample as Sample,
        StreamState as StreamState,
    )
    from dynident.online.streaming import stream as stream
else:
    __getattr__, __dir__, __all__ = lazy_names(
        __name__, {"Filtered": "FilteredMotion", "Structure": "SeriesStructure", "Verdict": "MotionVerdict"}
    )
