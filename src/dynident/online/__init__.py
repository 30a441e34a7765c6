"""Identification while the robot works: streams in, parameters with their deviations out."""

from dynident.online.causal import CausalFilter, CausalOptions, Filtered
from dynident.online.changes import Change
from dynident.online.identifier import OnlineIdentifier
from dynident.online.memory import Forgetting
from dynident.online.options import OnlineOptions
from dynident.online.sample import Sample
from dynident.online.state import OnlineState
from dynident.online.structures import ParallelStructure, SeriesStructure, Structure
from dynident.online.verdict import Verdict

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
