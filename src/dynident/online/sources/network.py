"""Samples over UDP, TCP and standard input, and addresses where it is safe to listen."""

from __future__ import annotations

import errno
import ipaddress
import os
import select
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from urllib.parse import urlsplit

from dynident.logs.read import Columns
from dynident.online.options import MOST_TOGETHER
from dynident.online.sources.packets import LONGEST, PacketReader
from dynident.online.sources.source import POLL, Samples, Source, SourceError
from dynident.online.state import Counters
from dynident.robot.model import Robot

LOOPBACK = "127.0.0.1"


def parse_address(text: str, *, listen_all: bool = False) -> tuple[str, str, int]:
    """Scheme, host and port of an address; without a host it is the loopback.

    Args:
        text: Such as `udp://127.0.0.1:9870` or `tcp://:9870`.
        listen_all: Listen on every interface.

    Raises:
        SourceError: If it is not an address, or asks for every interface without `listen_all`.
    """
    form = "expected such as udp://127.0.0.1:9870"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or LOOPBACK, parts.port
    except ValueError as error:
        raise SourceError(text, f"is not an address ({error}); {form}") from None
    if port is None or parts.path not in ("", "/") or parts.query or parts.username:
        raise SourceError(text, f"is not an address; {form}")
    if host == "localhost":
        host = LOOPBACK
    if listen_all:
        if parts.hostname is not None and not _is_everywhere(host):
            raise SourceError(text, f"--listen-all contradicts the address {host}; leave one of them out")
        host = "0.0.0.0"
    elif _is_everywhere(host):
        raise SourceError(text, "would let anybody on the network send; say --listen-all if that is meant")
    return parts.scheme, host, port


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_everywhere(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def bound_socket(kind: socket.SocketKind, host: str, port: int) -> tuple[socket.socket, int, str]:
    """A socket that listens at an address and waits a moment at a time, its port, and what messages call it.

    Raises:
        SourceError: If the address is in use, not this machine's, or not allowed.
    """
    scheme = "udp" if kind == socket.SOCK_DGRAM else "tcp"
    label = f"{scheme}://{host}:{port}"
    try:
        family, _, _, _, where = socket.getaddrinfo(host, port, type=kind)[0]
    except OSError:
        raise SourceError(label, f"there is no host '{host}'; give an address of this machine") from None
    made = socket.socket(family, kind)
    try:
        if kind == socket.SOCK_STREAM:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a restart need not wait for the last run's end
        made.bind(where)
    except OSError as error:
        made.close()
        raise SourceError(label, _reason(error, host, port)) from None
    made.settimeout(POLL)
    own: int = made.getsockname()[1]
    return made, own, f"{scheme}://{host}:{own}"


def _reason(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} is in use by another program; stop that one or choose another port"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine; listen on {LOOPBACK} or on one of its own"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"port {port} may not be opened by you; choose one above 1023"
    return f"cannot listen there ({error.strerror or error})"


# ----------------------------------------------------------------------------------------------------------------------
# Samples as UDP packets, one JSON object each.

KERNEL_BUFFER = 1 << 22  # bytes asked of the system; it gives what it allows
ROOM = 4096  # packets that wait for the estimator: four seconds at 1 kHz


class UdpSource(Source):
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
        self._socket, self.port, self.label = bound_socket(socket.SOCK_DGRAM, host, port)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, KERNEL_BUFFER)
        self.host, self.tally = host, Counters()
        self._reader = PacketReader(robot, columns, self.label, self.tally)
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
                taken = [self._waiting.popleft() for _ in range(min(len(self._waiting), MOST_TOGETHER))]
                # Those that gave way came as well.
                self.tally.received += self._overrun - self.tally.overrun
                self.tally.overrun = self._overrun
            yield self._reader.block(taken) if taken else None

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


# ----------------------------------------------------------------------------------------------------------------------
# JSON lines from a stream of bytes: standard input, and what TCP carries.

PIECE = 1 << 16  # bytes read at a time


def split_lines(rest: bytes, data: bytes) -> tuple[list[bytes], bytes]:
    """The lines that are complete by now, without empty ones, and what is left; no more data ends the last line.

    A line that is too long becomes a line that is too long, whatever it holds.
    """
    *lines, rest = (rest + data).split(b"\n") if data else (rest, b"")
    # What is cut off here is refused by its length when its end comes.
    return [line for line in lines if line.strip()], rest[: LONGEST + 1]


def line_blocks(reader: PacketReader, lines: list[bytes]) -> Iterator[Samples]:
    """The samples of lines that came together."""
    arrived = time.perf_counter()
    for first in range(0, len(lines), MOST_TOGETHER):
        block = reader.block([(arrived, line) for line in lines[first : first + MOST_TOGETHER]])
        if block is not None:
            yield block


class StandardInput(Source):
    """JSON lines from standard input, or from another open file; what is not read waits with the sender.

    Args:
        robot: The robot.
        columns: For senders with other names; see `read_log`.
        descriptor: Open file to read; default standard input.
    """

    def __init__(self, robot: Robot, *, columns: Columns = None, descriptor: int | None = None) -> None:
        self.label, self.tally = "standard input", Counters()
        self._file = sys.stdin.fileno() if descriptor is None else descriptor
        self._reader = PacketReader(robot, columns, self.label, self.tally)
        self._until: float | None = None

    def blocks(self) -> Iterator[Samples | None]:
        """Samples as they come, to the end of the input."""
        rest = b""
        while True:
            if not select.select([self._file], [], [], POLL)[0]:
                yield None
                continue
            data = os.read(self._file, PIECE)
            lines, rest = split_lines(rest, data)
            for block in line_blocks(self._reader, lines):
                yield block if self._until is None else block.chosen(block.time > self._until)
            if not data:
                return

    def skip(self, until: float) -> None:
        """Leave out samples with stamps up to this [s]."""
        self._until = until


# ----------------------------------------------------------------------------------------------------------------------
# Samples as JSON lines over TCP; a sender that is too fast has to wait, as TCP has it.


class TcpSource(Source):
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
        self._socket, self.port, self.label = bound_socket(socket.SOCK_STREAM, host, port)
        self._socket.listen(1)
        self.host, self.tally = host, Counters()
        self._reader = PacketReader(robot, columns, self.label, self.tally)
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

    def close(self) -> None:
        """Stop listening."""
        self._closed = True
        self._socket.close()

    def _lines(self, sender: socket.socket) -> Iterator[Samples | None]:
        rest = b""
        while not self._closed:
            try:
                data = sender.recv(PIECE)
            except TimeoutError:
                yield None
                continue
            except OSError:  # it was reset; what it had sent in full is in use
                data = b""
            lines, rest = split_lines(rest, data)
            yield from line_blocks(self._reader, lines)
            if not data:
                return
