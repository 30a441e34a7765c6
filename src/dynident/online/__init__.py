"""Identification while the robot works: streams in, parameters with their standard deviations out."""

from dynident.namespaces import lazy_names

__all__, __getattr__ = lazy_names(
    __name__,
    {
        "changes": "Change",
        "filters": "CausalFilter Filtered",
        "identifier": "OnlineIdentifier",
        "monitor": "Verdict",
        "options": "LiveOptions OnlineOptions",
        "rows": "ParallelStructure SeriesStructure",
        "sources": "PlantSource Replay Samples Source SourceError StandardInput TcpSource UdpSource open_source",
        "state": "Counters OnlineState Sample StreamState",
        "streaming": "stream",
    },
    renamed={"Structure": "SeriesStructure"},
)
