"""Samples as UDP packets, one JSON object each."""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from collections.abc import Iterator

from dynident.logs.read import Columns
from dynident.online.sources.addresses import LOOPBACK, bound_socket
from dynident.online.sources.channels import ChannelMap
from dynident.online.sources.packet import LONGEST, PacketReader
from dynident.online.sources.source import MOST, POLL, Samples
from dynident.online.stream_counters import Tally
from dynident.robot.model import Robot

KERNEL_BUFFER = 1 << 22  # bytes asked of the system; it gives what it allows
ROOM = 4096  # packets that wait for the estimator: four seconds at 1 kHz


class UdpSource:
    """Listens for UDP packets.

    A thread of its own takes packets from the socket as they come, so that none is lost while the estimator is busy. If
    that falls far behind, the oldest packets make room for new ones and are counted as overrun.

    Args:
        robot: The robot.
        host: Address to listen at; the default can only be reached from this machine.
        port: Port; 0 for any that is free.
        columns: For senders with other names; see `read_log`.
        room: Packets that may wait.

    Attributes:
        host: The address it listens at.
        port: The port.

    Raises:
        SourceError: If the address cannot be listened at.
    """

    def __init__(
        self, robot: Robot, host: str = LOOPBACK, port: int = 0, *, columns: Columns = None, room: int = ROOM
    ) -> None:
        self._socket = bound_socket(socket.SOCK_DGRAM, host, port, f"udp://{host}:{port}")
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, KERNEL_BUFFER)
        self._socket.settimeout(POLL)
        self.host = host
        self.port: int = self._socket.getsockname()[1]
        self.label, self.tally = f"udp://{host}:{self.port}", Tally()
        self._reader = PacketReader(ChannelMap(robot, columns, self.label), self.tally)
        self._waiting: deque[tuple[float, bytes]] = deque()
        self._room, self._overrun, self._closed = room, 0, False
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._receive, name=self.label, daemon=True)
        self._thread.start()

    def blocks(self) -> Iterator[Samples | None]:
        """Samples as they come, several at a time when they have piled up."""
        while not self._closed:
            with self._news:
                if not self._waiting:
                    self._news.wait(POLL)
                taken = [self._waiting.popleft() for _ in range(min(len(self._waiting), MOST))]
                # Those that gave way came as well.
                self.tally.received += self._overrun - self.tally.overrun
                self.tally.overrun = self._overrun
            yield self._reader.block(taken) if taken else None

    def skip(self, until: float) -> None:
        """A live source has nothing to skip."""

    def close(self) -> None:
        """Stop listening."""
        self._closed = True
        if self._thread is not threading.current_thread():
            self._thread.join()
        self._socket.close()

    def _receive(self) -> None:
        """Take packets from the socket until it is closed."""
        buffer = bytearray(LONGEST + 1)  # one byte more than allowed shows that a packet is too long
        view = memoryview(buffer)
        while not self._closed:
            try:
                size = self._socket.recv_into(buffer)
            except TimeoutError:
                continue
            except OSError:  # such as a packet of ours that came back; the next one may be fine
                time.sleep(1e-3)
                continue
            packet = (time.perf_counter(), bytes(view[:size]))
            with self._news:
                if len(self._waiting) >= self._room:
                    self._waiting.popleft()
                    self._overrun += 1
                self._waiting.append(packet)
                self._news.notify()
