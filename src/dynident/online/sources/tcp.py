"""Samples as JSON lines over TCP; a sender that is too fast has to wait, as TCP has it."""

from __future__ import annotations

import socket
from collections.abc import Iterator

from dynident.logs.read import Columns
from dynident.online.sources.addresses import LOOPBACK, bound_socket
from dynident.online.sources.channels import ChannelMap
from dynident.online.sources.lines import PIECE, LineSplitter, line_blocks
from dynident.online.sources.packet import PacketReader
from dynident.online.sources.source import POLL, Samples
from dynident.online.stream_counters import Tally
from dynident.robot.model import Robot


class TcpSource:
    """Listens for a sender and reads its lines; when it leaves, the next one may come.

    Args:
        robot: The robot.
        host: Address to listen at; the default can only be reached from this machine.
        port: Port; 0 for any that is free.
        columns: For senders with other names; see `read_log`.

    Attributes:
        host: The address it listens at.
        port: The port.

    Raises:
        SourceError: If the address cannot be listened at.
    """

    def __init__(self, robot: Robot, host: str = LOOPBACK, port: int = 0, *, columns: Columns = None) -> None:
        self._socket = bound_socket(socket.SOCK_STREAM, host, port, f"tcp://{host}:{port}")
        self._socket.settimeout(POLL)
        self._socket.listen(1)
        self.host = host
        self.port: int = self._socket.getsockname()[1]
        self.label, self.tally = f"tcp://{host}:{self.port}", Tally()
        self._reader = PacketReader(ChannelMap(robot, columns, self.label), self.tally)
        self._closed = False

    def blocks(self) -> Iterator[Samples | None]:
        """Samples of one sender after the other."""
        while not self._closed:
            try:
                sender, _ = self._socket.accept()
            except TimeoutError:
                yield None
                continue
            with sender:
                sender.settimeout(POLL)
                yield from self._lines(sender)

    def skip(self, until: float) -> None:
        """A live source has nothing to skip."""

    def close(self) -> None:
        """Stop listening."""
        self._closed = True
        self._socket.close()

    def _lines(self, sender: socket.socket) -> Iterator[Samples | None]:
        splitter = LineSplitter()
        while not self._closed:
            try:
                data = sender.recv(PIECE)
            except TimeoutError:
                yield None
                continue
            except OSError:  # it was reset; what it had sent in full is in use
                data = b""
            yield from line_blocks(self._reader, splitter.feed(data) if data else splitter.finish())
            if not data:
                return
