"""JSON lines from a stream of bytes: standard input, and what TCP carries."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Iterator

from dynident.logs.read import Columns
from dynident.online.sources.channels import ChannelMap
from dynident.online.sources.packet import LONGEST, PacketReader
from dynident.online.sources.source import MOST, POLL, Samples
from dynident.online.stream_counters import Tally
from dynident.robot.model import Robot

PIECE = 1 << 16  # bytes read at a time


class LineSplitter:
    """Cuts bytes into lines; one that is too long becomes a line that is too long, whatever it holds."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are complete by now, without empty ones."""
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[: LONGEST + 1]  # what is cut off here is refused by its length when its end comes
        return [line for line in lines if line.strip()]

    def finish(self) -> list[bytes]:
        """A last line without an end."""
        rest, self._rest = self._rest, b""
        return [rest] if rest.strip() else []


def line_blocks(reader: PacketReader, lines: list[bytes]) -> Iterator[Samples]:
    """The samples of lines that came together."""
    arrived = time.perf_counter()
    for first in range(0, len(lines), MOST):
        block = reader.block([(arrived, line) for line in lines[first : first + MOST]])
        if block is not None:
            yield block


class StandardInput:
    """JSON lines from standard input, or from another open file; what is not read waits with the sender.

    Args:
        robot: The robot.
        columns: For senders with other names; see `read_log`.
        descriptor: Open file to read; default standard input.
    """

    def __init__(self, robot: Robot, *, columns: Columns = None, descriptor: int | None = None) -> None:
        self.label, self.tally = "standard input", Tally()
        self._file = sys.stdin.fileno() if descriptor is None else descriptor
        self._reader = PacketReader(ChannelMap(robot, columns, self.label), self.tally)
        self._until: float | None = None

    def blocks(self) -> Iterator[Samples | None]:
        """Samples as they come, to the end of the input."""
        splitter = LineSplitter()
        while True:
            if not select.select([self._file], [], [], POLL)[0]:
                yield None
                continue
            data = os.read(self._file, PIECE)
            lines = splitter.feed(data) if data else splitter.finish()
            for block in line_blocks(self._reader, lines):
                yield block if self._until is None else block.chosen(block.time > self._until)
            if not data:
                return

    def skip(self, until: float) -> None:
        """Leave out samples with stamps up to this [s]."""
        self._until = until

    def close(self) -> None:
        """Nothing to give back."""
