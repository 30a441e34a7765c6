"""Identification while the robot works: streams in, parameters with their deviations out."""

from dynident.online.changes import Change
from dynident.online.filters import CausalFilter, CausalOptions, Filtered
from dynident.online.history import Forgetting
from dynident.online.identifier import OnlineIdentifier
from dynident.online.monitor import Verdict
from dynident.online.options import OnlineOptions
from dynident.online.rows import ParallelStructure, SeriesStructure, Structure
from dynident.online.sources import (
    PlantSource,
    Replay,
    Samples,
    Source,
    SourceError,
    StandardInput,
    TcpSource,
    UdpSource,
    open_source,
)
from dynident.online.state import Counters, OnlineState, Sample, StreamState
from dynident.online.streaming import stream

__all__ = [
    "CausalFilter",
    "CausalOptions",
    "Change",
    "Counters",
    "Filtered",
    "Forgetting",
    "OnlineIdentifier",
    "OnlineOptions",
    "OnlineState",
    "ParallelStructure",
    "PlantSource",
    "Replay",
    "Sample",
    "Samples",
    "SeriesStructure",
    "Source",
    "SourceError",
    "StandardInput",
    "StreamState",
    "Structure",
    "TcpSource",
    "UdpSource",
    "Verdict",
    "open_source",
    "stream",
]
