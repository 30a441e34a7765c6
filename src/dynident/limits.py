"""Limits of everything that is read: the one record of them, and the meter of what a file unpacks to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from dynident.options import threshold


@dataclass(frozen=True)
class ReadingLimits:
    """The largest, longest and deepest that a file may be.

    Each stands well above what robots and their logs need, and low enough that a file which reaches it is read or
    refused within seconds.
    """

    # Files that are read whole
    table_characters: int = threshold(
        200_000,
        "text of a table, overlay or column file in YAML",
        unit="characters",
        calibrated="the largest of the bundled robots, with three sets of values, has 3,200",
    )
    robot_bytes: int = threshold(
        8_000_000,
        "robot file, and what a xacro file expands to",
        unit="B",
        calibrated="the largest of the known robot files has 97 kB",
    )
    record_bytes: int = threshold(
        8_000_000,
        "text that dynident wrote: fit.yaml, result.json and their like",
        unit="B",
        calibrated="a fit of three joints has 20 kB; of a thousand, the most a robot may have, it would have 7 MB",
    )
    # Structure
    yaml_levels: int = threshold(20, "levels of YAML that people write", calibrated="tables of robots have six")
    record_levels: int = threshold(
        60,
        "levels of YAML and JSON that dynident wrote",
        calibrated="a fit has six; parsers in C lose their stack at thousands",
    )
    yaml_nodes: int = threshold(
        1_000_000,
        "keys, values and brackets of a YAML file, those of aliases each time",
        calibrated="a fit of three joints has 2,000; of a thousand it would have 640,000",
    )
    xml_levels: int = threshold(
        1_200, "elements within elements", calibrated="MJCF nests bodies, of which a robot may have a thousand in a row"
    )
    xml_elements: int = threshold(
        100_000,
        "elements of an XML file, copies of <replicate> and its relatives counted",
        calibrated="the largest of the known robot files has 1,200",
    )
    columns: int = threshold(
        10_000,
        "columns of a log, channels of its messages, arrays of an archive",
        calibrated="a humanoid of fifty joints logs a thousand; some rules compare every column with every joint",
    )
    name_characters: int = threshold(
        1_000,
        "name of a column, topic or array",
        calibrated="topic, path and unit together have less than 200",
    )
    line_bytes: int = threshold(
        1 << 20, "line of a text", unit="B", calibrated="ten thousand columns with all digits take 250 kB"
    )
    array_dimensions: int = threshold(8, "axes of an array", calibrated="what dynident writes has up to three")
    parquet_footer_bytes: int = threshold(
        1 << 24,
        "metadata of a Parquet file",
        unit="B",
        calibrated="a hundred columns in a thousand row groups take 12 MB",
    )
    # What unpacks
    expansion: float = threshold(
        200.0,
        "unpacked over packed, once more than harmless_bytes have come out",
        calibrated="logs of seven real arms shrink by 2.3 to 4.6",
    )
    harmless_bytes: int = threshold(
        1 << 26,
        "bytes that may unpack at any ratio",
        unit="B",
        calibrated="an hour of one joint at rest takes 60 MB",
    )
    harmless_chunk_bytes: int = threshold(
        1 << 24,
        "bytes of a chunk of a bag that may unpack at any ratio",
        unit="B",
        calibrated="recorders cut chunks at 1 to 4 MB",
    )
    chunk_bytes: int = threshold(
        1 << 26,
        "chunk of a bag after unpacking",
        unit="B",
        calibrated="recorders cut at 4 MB, a frame takes 25 MB",
    )
    message_bytes: int = threshold(
        1 << 24, "message of a topic that is read", unit="B", calibrated="the states of a humanoid take 4 kB"
    )
    definition_characters: int = threshold(
        100_000,
        "definition of the type of a message",
        unit="characters",
        calibrated="the longest among the types of ROS Noetic and Humble has 3,700",
    )
    sqlite_steps: int = threshold(
        50,
        "steps of SQLite's machine for a byte of the file",
        calibrated="a message takes 20 steps and 57 bytes or more; views and damaged trees take any number",
    )
    memory_bytes: int = threshold(
        2_000_000_000,
        "numbers that are read at once; longer logs are streamed",
        unit="B",
        calibrated="five hours of six joints at 1 kHz with position and torque",
    )
    text_bytes: int = threshold(
        4_000_000_000,
        "text after unpacking",
        unit="B",
        calibrated="a day of a 7-joint arm at 250 Hz with position and torque takes 3.2 GB",
    )
    # Time and memory of parsers in C, which run in a process of their own
    child_seconds: float = threshold(
        4.0,
        "processor time of a reader in a process of its own",
        unit="s",
        calibrated="the imports take 0.6 s",
    )
    child_seconds_per_megabyte: float = threshold(
        0.5,
        "what a megabyte of the file adds to it",
        unit="s/MB",
        calibrated="unpacking deflated numbers takes 0.01 s",
    )
    child_bytes: int = threshold(
        300_000_000,
        "memory of such a process besides what its answer needs",
        unit="B",
        calibrated="NumPy, SciPy and h5py take 75 MB",
    )


LIMITS = ReadingLimits()
STREAM = " are read at once; write a long log as Parquet or CSV, which are streamed"  # behind "at most 2 GB"


class RefusedError(ValueError):
    """What is refused before it is parsed; the message is that of the file, complete."""


class LimitError(RefusedError):
    """What is read is beyond a limit."""


def in_bytes(size: float) -> str:
    """A size as messages say it: 1.5 MB."""
    for unit, power in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= power:
            return f"{size / power:.3g} {unit}"
    return f"{size:g} bytes"


class Expansion:
    """Meter of what a file unpacks to: counts what has come out, whatever headers say.

    Args:
        packed: Bytes of the file.
        largest: Bytes that may come out; infinite for what is streamed.
        remedy: What to do where more would.
    """

    def __init__(self, packed: int, largest: float, remedy: str = "") -> None:
        self.packed, self.unpacked, self._largest, self._remedy = packed, 0, largest, remedy

    @classmethod
    def of(cls, path: Path, largest: float = math.inf, remedy: str = "") -> Expansion:
        """That of a file."""
        return cls(path.stat().st_size, largest, remedy)

    def add(self, size: int) -> None:
        """So many more bytes have come out, or are about to.

        Raises:
            LimitError: If that is too many, at all or for the size of the file.
        """
        self.unpacked += size
        if self.unpacked > self._largest:
            at_most = f"at most {in_bytes(self._largest)}"
            raise LimitError(f"unpacks to {in_bytes(self.unpacked)} or more; {at_most}{self._remedy}")
        if self.unpacked > LIMITS.harmless_bytes and self.unpacked > LIMITS.expansion * self.packed:
            words = f"more than {self.unpacked} bytes from {self.packed}"
            raise LimitError(f"unpacks to {words}; that is no log and no record")
