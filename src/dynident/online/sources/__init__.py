"""`open_source`: a source from what a user writes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any

from dynident.errors import suggestion
from dynident.logs.read import Columns
from dynident.online.sources.network import StandardInput, TcpSource, UdpSource, parse_address
from dynident.online.sources.packets import PacketError
from dynident.online.sources.plant_source import PlantSource, simulated_source
from dynident.online.sources.replay import AnyLog, Replay
from dynident.online.sources.source import Samples, Source, SourceError
from dynident.robot.model import Robot

SCHEMES = ("udp", "tcp")


def open_source(
    source: Source | AnyLog | Sequence[AnyLog],
    robot: Robot,
    *,
    pace: float = math.inf,
    columns: Columns = None,
    start: float | None = None,
    stop: float | None = None,
    listen_all: bool = False,
) -> Source:
    """Where samples come from.

    Args:
        source: `udp://127.0.0.1:9870`, `tcp://127.0.0.1:9870`, `-` for JSON lines on standard input, a log or several
            (files, or already opened), or a source.
        robot: The robot.
        pace: Of a log: 1 as recorded, 10 ten times as fast, infinity as fast as possible.
        columns: Column file or mapping for senders and files with other names.
        start: Leave out samples of a log before this time [s].
        stop: Leave out samples of a log after this time [s].
        listen_all: Listen on every interface, not only where this machine alone can send.

    Raises:
        SourceError: If there is no such source.
    """
    if isinstance(source, Source):
        return source
    text = fspath(source) if isinstance(source, str | PathLike) else ""
    if text == "-":
        return StandardInput(robot, columns=columns)
    if "://" in text:
        return _listener(text, robot, columns, listen_all)
    if listen_all:
        raise SourceError(text, "--listen-all belongs to udp:// and tcp://; a log does not listen")
    how: dict[str, Any] = {"pace": pace, "columns": columns, "start": start, "stop": stop}
    return Replay(robot, source, **how)


def _listener(text: str, robot: Robot, columns: Columns, listen_all: bool) -> Source:
    scheme = text.split("://")[0].lower()
    if scheme not in SCHEMES:
        raise SourceError(text, f"unknown scheme '{scheme}'{suggestion(scheme, SCHEMES)}")
    _, host, port = parse_address(text, listen_all=listen_all)
    made: Source = (UdpSource if scheme == "udp" else TcpSource)(robot, host, port, columns=columns)
    return made


# ----------------------------------------------------------------------------------------------------------------------
# Where samples come from: packets over UDP and TCP, lines, logs, plants.

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
    "simulated_source",
]
