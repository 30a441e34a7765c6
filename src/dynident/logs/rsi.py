"""Logs of KUKA's Robot Sensor Interface: one XML record `<Rob>` per cycle of 4 or 12 ms."""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError

import numpy as np
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from dynident import limits
from dynident.arrays import Array
from dynident.logs.log import LogError
from dynident.logs.tables import PART, MemoryTable, refuse_bomb

_END = b"</Rob>"
_START = re.compile(rb"<Rob[\s>]")
_UNITS = {"AIPos": " [deg]", "ASPos": " [deg]"}


def rsi_table(path: Path) -> MemoryTable:
    """The records of an RSI log: `t` since the first [s] by IPOC, `AIPos.A1 [deg]`, `MACur.A1` and so on.

    Whatever stands between the records, such as the answers `<Sen>` of the other side, is skipped. A record that is cut
    off at the end is left out; the table's warnings say so.

    Raises:
        LogError: If it has no records, or one of them lacks what the first has.
    """
    content = _content(path)
    found = _records(content)
    if not found:
        raise LogError(str(path), "has no record <Rob ..>..</Rob>; expected a log of KUKA's Robot Sensor Interface")
    rows = [_row(path, number, record) for number, record in enumerate(found, 1)]
    headers = list(rows[0])
    for number, row in enumerate(rows, 1):
        if row.keys() != rows[0].keys():
            odd = sorted(row.keys() ^ rows[0].keys())[0]
            raise LogError(str(path), f"record {number} differs from the first in '{odd}'; give one recording per file")
    said: list[str] = []
    if len(_START.findall(content)) > len(found):
        said.append(f"{path}: a record is cut off; the {len(found)} complete ones are used")
    numbers = np.array([[row[name] for name in headers] for row in rows])  # (n_samples, n_columns)
    columns: list[Array] = [(numbers[:, 0] - numbers[0, 0]) / 1e3, *numbers.T[1:]]
    named = [f"{name}{_UNITS.get(name.partition('.')[0], '')}" for name in headers[1:]]
    return MemoryTable(["t", *named], columns, [], hashlib.sha256(content).hexdigest(), said)


def _records(content: bytes) -> list[bytes]:
    """The complete records; each begins at the last `<Rob` before its end."""
    found: list[bytes] = []
    for piece in content.split(_END)[:-1]:
        start = max(piece.rfind(b"<Rob" + follows) for follows in (b" ", b">", b"\n", b"\r", b"\t"))
        if start >= 0:
            found.append(piece[start:] + _END)
    return found


def _row(path: Path, number: int, record: bytes) -> dict[str, float]:
    """The numbers of a record by `Element.Attribute`, IPOC [ms] first."""
    try:
        if len(record) > limits.LIMITS.line_bytes:
            raise LogError(str(path), f"record {number} has {len(record)} bytes; that is no log")
        root: Element = fromstring(record, forbid_dtd=True)
        row = {"IPOC": float(root.findtext("IPOC") or "")}
        for element in root:
            for name, value in element.attrib.items():
                row[f"{element.tag}.{name}"] = float(value)
    except (ParseError, DefusedXmlException) as error:
        raise LogError(str(path), f"record {number} is not valid XML ({error})") from None
    except ValueError:
        raise LogError(str(path), f"record {number} has no time stamp <IPOC> [ms], or a value is no number") from None
    return row


def _content(path: Path) -> bytes:
    """The bytes of the file, unpacked."""
    parts: list[bytes] = []
    size = 0
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            while part := file.read(PART):
                size += len(part)
                refuse_bomb(path, size)
                parts.append(part)
    except FileNotFoundError:
        raise LogError(str(path), "no such file; check the path") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise LogError(str(path), "is not a complete gzip file; copy it again") from None
    except OSError as error:
        raise LogError(str(path), f"cannot be read ({error.strerror})") from None
    return b"".join(parts)
