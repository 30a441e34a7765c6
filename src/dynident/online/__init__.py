"""Identification while the robot works: streams in, parameters with their deviations out."""

from dynident.online.changes import Change
from dynident.online.filters import CausalFilter, CausalOptions, Filtered
from dynident.online.history import Forgetting
from dynident.online.identifier import OnlineIdentifier
from dynident.online.monitor import Verdict
from dynident.online.options import OnlineOptions
from dynident.online.rows import ParallelStructure, SeriesStructure, Structure
from dynident.online.state import OnlineState, Sample

__all__ = [
    "CausalFilter",
    "CausalOptions",
    "Change",
    "Filtered",
    "Forgetting",
    "OnlineIdentifier",
    "OnlineOptions",
    "OnlineState",
    "ParallelStructure",
    "Sample",
    "SeriesStructure",
    "Structure",
    "Verdict",
]
