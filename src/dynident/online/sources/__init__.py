"""Where samples come from: packets over UDP and TCP, lines, logs, plants."""

from dynident.online.sources.lines import StandardInput
from dynident.online.sources.opening import open_source
from dynident.online.sources.packet import PacketError
from dynident.online.sources.plant_source import PlantSource, simulated
from dynident.online.sources.replay import Replay
from dynident.online.sources.source import Samples, Source, SourceError
from dynident.online.sources.tcp import TcpSource
from dynident.online.sources.udp import UdpSource

__all__ = [
    "PacketError",
    "PlantSource",
    "Replay",
    "Samples",
    "Source",
    "SourceError",
    "StandardInput",
    "TcpSource",
    "UdpSource",
    "open_source",
    "simulated",
]
