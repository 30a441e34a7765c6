"""A collection of hostile files, made by this script: each must be refused by name or read with finite results.

    python tools/hostile.py [--kind NAME] ..

Three families: what may stand in a file of any kind (nothing, noise, other formats, cut and doubled content, text without
end), paths that are no files (pipes, devices, links in a circle), and what was made against one format.
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import random
import sqlite3
import struct
import sys
import tempfile
import time
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]
from tools.fuzz_targets import TARGETS, Target, write_seeds

LONG = 50_000


@dataclass(frozen=True)
class Hostile:
    """One of the collection.

    Attributes:
        target: The kind of file that it pretends to be.
        name: What is wrong with it.
        make: Puts it at a path, in a folder where the other files of the target are.
        refused: Whether it must be refused; else it may be read.
    """

    target: Target
    name: str
    make: Callable[[Path], object]
    refused: bool = False


# ----------------------------------------------------------------------------------------------------------------------
# Of any kind.


def _contents() -> Iterator[tuple[str, bytes]]:
    noise = random.Random(1).randbytes(3000)
    yield from {
        "nothing": b"",
        "a byte": b"\0",
        "zeros": bytes(4096),
        "ones": b"\xff" * 4096,
        "noise": noise,
        "not UTF-8": b"a: \xff\xfe\xfd\nq1,\x80\n",
        "UTF-16": "robot: a\nt,q1\n0,1\n".encode("utf-16"),
        "line ends": b"\r\n" * 5000,
        "no line end": b"a" * 300_000,
        "brackets": b"[" * LONG,
        "braces": b"{" * LONG,
        "closed brackets": b"[" * LONG + b"]" * LONG,
        "parentheses": b"(" * LONG,
        "dashes": b"- " * LONG,
        "keys in keys": b"? " * LONG,
        "indented": b"".join(b" " * k + b"a:\n" for k in range(600)),
        "elements": b"<a>" * LONG,
        "closed elements": b"<robot>" + b"<a>" * LONG + b"</a>" * LONG + b"</robot>",
        "attributes": b"<robot " + b" ".join(b"a%d='1'" % k for k in range(LONG)) + b"/>",
        "entities": b'<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa">'
        + b"".join(b'<!ENTITY %c "%s">' % (98 + k, b"&%c;" % (97 + k) * 10) for k in range(12))
        + b"]><robot>&m;</robot>",
        "external entity": b'<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]><robot name="&a;"/>',
        "aliases": b"a: &a [x, x, x, x, x, x, x, x, x]\n"
        + b"".join(b"%c: &%c [%s]\n" % (98 + k, 98 + k, b", ".join([b"*%c" % (97 + k)] * 9)) for k in range(9)),
        "alias of itself": b"&a [*a]\n",
        "merge keys": b"a: &a {x: 1}\nb: {<<: *a}\n",
        "code in YAML": b"!!python/object/apply:os.system ['touch /tmp/hostile']\n",
        "a number of 400 digits": b"a: " + b"9" * 400 + b"\n",
        "a number of 5,000 digits": b"a: " + b"9" * 5000 + b"\nt,q1\n0," + b"9" * 5000 + b"\n",
        "infinite numbers": b"t,q1,q2,tau1,tau2\n0,inf,nan,1e400,-1e400\n0.1,1,1,1,1\n",
        "dates": b"a: 2020-01-01\nt: 10:30:00\n",
        "JSON in JSON": b'{"a":' * LONG + b"1" + b"}" * LONG,
        "JSON numbers": b'{"t": 1e999, "q": [NaN, Infinity], "tau": [-Infinity, 1]}',
        "NULs between": b"t\0,q1\0\n0,1\n\0",
        "backspaces": b"t,q1\x08\x08\x1b[2J,tau1\n0,1,2\n",
        "a pickle": b"\x80\x04\x95\x10\0\0\0\0\0\0\0\x8c\x05posix\x94.",
        "a shell script": b"#!/bin/sh\nrm -rf /\n",
        "a C file": b"int main(void) { return 0; }\n" * 100,
    }.items()
    for name, magic in {
        "HDF5": b"\x89HDF\r\n\x1a\n",
        "MATLAB": b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM",
        "MATLAB 7.3": (b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM").ljust(512, b"\0") + b"\x89HDF\r\n\x1a\n",
        "zip": b"PK\x03\x04",
        "gzip": b"\x1f\x8b\x08\0\0\0\0\0\0\xff",
        "zstd": b"\x28\xb5\x2f\xfd",
        "Parquet": b"PAR1",
        "SQLite": b"SQLite format 3\0",
        "MCAP": b"\x89MCAP0\r\n",
        "ROS bag": b"#ROSBAG V2.0\n",
        "PNG": b"\x89PNG\r\n\x1a\n",
        "PDF": b"%PDF-1.7\n",
        "ELF": b"\x7fELF\x02\x01\x01",
    }.items():
        yield f"begins as {name}, then zeros", magic + bytes(2000)
        yield f"begins as {name}, then noise", magic + noise


def _changed(seed: bytes) -> Iterator[tuple[str, bytes]]:
    """What becomes of sound content."""
    for share in (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98):
        yield f"cut off after {share:.0%}", seed[: int(len(seed) * share)]
    yield "without its last byte", seed[:-1]
    yield "without its first byte", seed[1:]
    yield "twice", seed + seed
    yield "with noise behind", seed + random.Random(2).randbytes(500)
    yield "with noise before", random.Random(3).randbytes(500) + seed
    yield "with zeros behind", seed + bytes(5000)
    yield "lines turned round", b"\n".join(reversed(seed.split(b"\n")))
    yield "gzip", gzip.compress(seed, mtime=0)
    yield "as UTF-16", seed.decode("latin-1").encode("utf-16")
    yield "every byte one more", bytes((x + 1) % 256 for x in seed)
    yield "without zeros", seed.replace(b"\0", b"")
    yield "digits are nines", bytes(57 if 48 <= x <= 57 else x for x in seed)
    yield "without digits", bytes(x for x in seed if not 48 <= x <= 57)
    yield "a hole", seed[: len(seed) // 3] + bytes(len(seed) // 3) + seed[2 * len(seed) // 3 :]


def _no_files() -> Iterator[tuple[str, Callable[[Path], object]]]:
    yield "a pipe", os.mkfifo
    yield "a device without end", lambda path: path.symlink_to("/dev/zero")
    yield "a device of noise", lambda path: path.symlink_to("/dev/urandom")
    yield "the terminal", lambda path: path.symlink_to("/dev/tty")
    yield "a link to itself", lambda path: path.symlink_to(path)
    yield "a link to nothing", lambda path: path.symlink_to(path.with_name("nothing"))
    yield "memory of the process", lambda path: path.symlink_to("/proc/self/mem")
    yield "kernel messages", lambda path: path.symlink_to("/dev/kmsg")


def _write(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


# ----------------------------------------------------------------------------------------------------------------------
# Against one format.


def _yaml_depth(levels: int) -> bytes:
    return b"format: dynident fit 2\na: " + b"[" * levels + b"]" * levels + b"\n"


def _element(kind: int, body: bytes) -> bytes:
    return struct.pack("<II", kind, len(body)) + body + b"\0" * (-len(body) % 8)


def nested_cells(levels: int, packed: bool = False) -> bytes:
    """A MATLAB v5 file of cells in cells."""
    inner = b""
    head = _element(6, struct.pack("<II", 1, 0)) + _element(5, struct.pack("<ii", 1, 1)) + _element(1, b"")
    sizes = len(_element(14, head))
    body = _element(14, _element(6, struct.pack("<II", 6, 0)) + _element(5, struct.pack("<ii", 1, 1)) + _element(1, b"")
                    + _element(9, struct.pack("<d", 1.0)))  # fmt: skip
    parts = [body]
    total = len(body)
    for _ in range(levels):
        parts.append(struct.pack("<II", 14, len(head) + total) + head)
        total += len(head) + 8
    inner = b"".join(reversed(parts))
    assert sizes
    whole = struct.pack("<II", 15, len(zlib.compress(inner))) + zlib.compress(inner) if packed else inner
    return b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + whole


def wide_cells(count: int) -> bytes:
    """A MATLAB v5 file of a cell array that claims so many cells."""
    body = _element(6, struct.pack("<II", 1, 0)) + _element(5, struct.pack("<ii", count, 1)) + _element(1, b"c")
    return b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + _element(14, body)


def zip_of(arrays: dict[str, bytes], packed: bool = True, level: int = 9) -> bytes:
    """An archive of members."""
    out = io.BytesIO()
    how = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(out, "w", how, compresslevel=level) as archive:
        for name, content in arrays.items():
            archive.writestr(name, content)
    return out.getvalue()


def npy(header: str, content: bytes = b"") -> bytes:
    """An array with any header."""
    text = header.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text + content


def array_bomb(name: str, n_bytes: int) -> bytes:
    """An archive that unpacks to zeros."""
    shape = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({n_bytes // 8},), }}"
    return zip_of({f"{name}.npy": npy(shape, bytes(n_bytes))})


def _archives() -> Iterator[tuple[str, bytes]]:
    plain = "{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}"
    for descr in (
        "<f8",
        "|O",
        "<U1000000000",
        "|S0",
        "<c16",
        "<M8[ns]",
        "|V10",
        "[('a', '<f8')]",
        "<f16",
        "<i3",
        "<U-1",
    ):
        for shape in (
            "(3,)",
            "(0, 1000000000000)",
            "(4611686018427387904,)",
            "(-1,)",
            "()",
            f"({'1,' * 60})",
            "(1e3,)",
        ):
            yield f"array {descr} {shape[:24]}", zip_of({"t.npy": npy(plain.format(descr, shape), bytes(24))}, False)
    yield "header of brackets", zip_of({"t.npy": npy("(" * 9000)})
    yield "header of signs", zip_of({"t.npy": npy("-" * 9000 + "1")})
    yield "header of 60 kB", zip_of({"t.npy": b"\x93NUMPY\x01\0" + struct.pack("<H", 60000) + b" " * 60000})
    yield "header of 4 GB", zip_of({"t.npy": b"\x93NUMPY\x02\0" + struct.pack("<I", 0xFFFFFFF0) + b"{}"})
    yield "30,000 arrays", zip_of({f"{k}.npy": b"" for k in range(30_000)}, False)
    yield "a name of 60 kB", zip_of({"a" * 60_000 + ".npy": b""})
    yield "names that climb", zip_of({"../../t.npy": npy(plain.format("<f8", "(3,)"), bytes(24))})
    yield "bzip2", _packed_otherwise(zipfile.ZIP_BZIP2)
    yield "lzma", _packed_otherwise(zipfile.ZIP_LZMA)
    yield "twice the same", _twice()
    yield "300 MB of zeros", array_bomb("t", 300_000_000)
    for field, name in ((24, "size"), (20, "packed size"), (16, "CRC"), (10, "method"), (8, "flags"), (42, "place")):
        for value in (0, 1, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF):
            yield f"directory: {name} {value}", _directory(field, value)


def _packed_otherwise(how: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", how) as archive:
        archive.writestr("t.npy", bytes(1000))
    return out.getvalue()


def _twice() -> bytes:
    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w") as archive:
        warnings.simplefilter("ignore")
        for _ in range(2):
            archive.writestr("t.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }", bytes(24)))
    return out.getvalue()


def _directory(field: int, value: int) -> bytes:
    data = bytearray(zip_of({"t.npy": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }", bytes(24))}))
    at = data.index(b"PK\x01\x02") + field
    size = 2 if field in (8, 10) else 4
    data[at : at + size] = (value % (1 << 8 * size)).to_bytes(size, "little")
    return bytes(data)


def mcap_of_chunk(size: int, packed: bytes, how: bytes = b"zstd") -> bytes:
    """An MCAP file of one chunk that claims to unpack to `size` bytes."""
    body = (
        struct.pack("<QQQI", 0, 0, size, 0)
        + struct.pack("<I", len(how))
        + how
        + struct.pack("<Q", len(packed))
        + packed
    )
    head = struct.pack("<BQ", 1, 8) + bytes(8)
    return b"\x89MCAP0\r\n" + head + struct.pack("<BQ", 6, len(body)) + body


def _mcaps() -> Iterator[tuple[str, bytes]]:
    import zstandard
    from lz4 import frame

    zeros = bytes(400_000_000)
    packed = zstandard.ZstdCompressor().compress(zeros)
    yield "a chunk that understates its size", mcap_of_chunk(1000, packed)
    yield "a chunk that tells its size", mcap_of_chunk(len(zeros), packed)
    yield "lz4 that understates", mcap_of_chunk(1000, frame.compress(zeros), b"lz4")
    yield (
        "chunks within a ratio that add up",
        b"\x89MCAP0\r\n" + 400 * mcap_of_chunk(1 << 24, zstandard.ZstdCompressor().compress(zeros[: 1 << 24]))[8:],
    )
    for size in (0, 1 << 31, 1 << 62, (1 << 64) - 1):
        yield f"a chunk of {size}", mcap_of_chunk(size, packed[:500])
        yield f"a record of {size}", b"\x89MCAP0\r\n" + struct.pack("<BQ", 5, size) + bytes(100)
    many = b"".join(
        struct.pack("<BQ", 4, 26 + len(str(k))) + struct.pack("<HH", k, 0) + struct.pack("<I", len(str(k)))
        + str(k).encode() + struct.pack("<I", 3) + b"cdr" + struct.pack("<I", 0) + b"\0" * 7
        for k in range(60_000)
    )  # fmt: skip
    yield "60,000 channels", b"\x89MCAP0\r\n" + many
    yield "a window of 2 GB", mcap_of_chunk(1000, b"\x28\xb5\x2f\xfd\x00\xa8" + bytes(100))


def sqlite_of(script: str) -> Callable[[Path], object]:
    """A database of any statements."""

    def make(path: Path) -> None:
        path.unlink(missing_ok=True)
        base = sqlite3.connect(path)
        base.executescript(script)
        base.commit()
        base.close()

    return make


_TOPICS = "CREATE TABLE topics(id INTEGER PRIMARY KEY, name, type, serialization_format, offered_qos_profiles);"
_MESSAGES = "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id, timestamp, data);"
_STATES = "INSERT INTO topics VALUES(1, '/joint_states', 'sensor_msgs/msg/JointState', 'cdr', '');"
_COUNT = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
DATABASES = {
    "a cell that is a number": f"{_TOPICS}{_MESSAGES}{_STATES} INSERT INTO messages VALUES(1, 1, 1, 4000000000);",
    "a cell that is a text": f"{_TOPICS}{_MESSAGES}{_STATES} INSERT INTO messages VALUES(1, 1, 1, 'text');",
    "a cell that is NULL": f"{_TOPICS}{_MESSAGES}{_STATES} INSERT INTO messages VALUES(1, 1, 1, NULL);",
    "a time that is a text": f"{_TOPICS}{_MESSAGES}{_STATES} INSERT INTO messages VALUES(1, 1, 'x', x'00');",
    "a time that is NULL": f"{_TOPICS}{_MESSAGES}{_STATES} INSERT INTO messages VALUES(1, 1, NULL, x'00');",
    "messages are a view without end": f"{_TOPICS}{_STATES} CREATE VIEW messages AS {_COUNT} SELECT x AS id, 1 AS "
    "topic_id, x AS timestamp, x'00' AS data FROM c;",
    "topics are a view without end": f"{_MESSAGES} CREATE VIEW topics AS {_COUNT} SELECT x AS id, 'a' || x AS name, "
    "'sensor_msgs/msg/JointState' AS type, 'cdr' AS serialization_format FROM c;",
    "definitions are a view without end": f"{_TOPICS}{_MESSAGES}{_STATES} CREATE VIEW message_definitions AS {_COUNT} "
    "SELECT x AS topic_type, x AS encoded_message_definition, x AS encoding FROM c;",
    "a view of large cells": f"{_TOPICS}{_STATES} CREATE VIEW messages AS SELECT 1 AS id, 1 AS topic_id, 1 AS timestamp, "
    "zeroblob(900000000) AS data;",
    "a computed column": f"{_TOPICS}{_STATES} CREATE TABLE messages(id, topic_id, timestamp, data AS (zeroblob(9e8))); "
    "INSERT INTO messages VALUES(1, 1, 1);",
    "a topic without name": f"{_TOPICS}{_MESSAGES} INSERT INTO topics VALUES(1, NULL, 'sensor_msgs/msg/JointState', 'cdr', "
    "''); INSERT INTO messages VALUES(1, 1, 1, x'00');",
    "a topic without type": f"{_TOPICS}{_MESSAGES} INSERT INTO topics VALUES(1, '/a', NULL, 'cdr', '');",
    "a topic that is a blob": f"{_TOPICS}{_MESSAGES} INSERT INTO topics VALUES(1, x'ff00', x'ff', x'fe', '');",
    "a name that is not UTF-8": f"{_TOPICS}{_MESSAGES} INSERT INTO topics VALUES(1, CAST(x'fffe' AS TEXT), "
    "'sensor_msgs/msg/JointState', 'cdr', ''); INSERT INTO messages VALUES(1, 1, 1, x'00');",
    "a key that is a text": _TOPICS.replace("INTEGER PRIMARY KEY", "")
    + _MESSAGES
    + "INSERT INTO topics VALUES('1) OR (1', '/a', 'sensor_msgs/msg/JointState', 'cdr', '');",
    "20,000 topics": f"{_TOPICS}{_MESSAGES} {_COUNT.replace('FROM c', 'FROM c LIMIT 20000')} INSERT INTO topics SELECT x, "
    "'/t' || x, 'sensor_msgs/msg/JointState', 'cdr', '' FROM c;",
    "a name of 1 MB": f"{_TOPICS}{_MESSAGES} INSERT INTO topics VALUES(1, hex(zeroblob(500000)), "
    "'sensor_msgs/msg/JointState', 'cdr', '');",
    "a definition of 1 MB": f"{_TOPICS}{_MESSAGES}{_STATES} CREATE TABLE message_definitions(topic_type, "
    "encoded_message_definition, encoding); INSERT INTO message_definitions VALUES('sensor_msgs/msg/JointState', "
    "hex(zeroblob(500000)), 'ros2msg');",
    "no tables": "CREATE TABLE a(b);",
    "a virtual table": "CREATE VIRTUAL TABLE messages USING fts5(data);" + _TOPICS,
    "a trigger": f"{_TOPICS}{_MESSAGES}{_STATES} CREATE TRIGGER a AFTER INSERT ON messages BEGIN DELETE FROM topics; END;",
    "stamps at the ends": f"{_TOPICS}{_MESSAGES}{_STATES} INSERT INTO messages VALUES(1, 1, -9223372036854775808, x'00'), "
    "(2, 1, 9223372036854775807, x'00');",
}  # fmt: skip


def _texts() -> Iterator[tuple[str, bytes]]:
    head = b"t,q1,q2,tau1,tau2"
    rows = b"\n0,1,2,3,4\n0.01,1,2,3,4\n0.02,1,2,3,5\n"
    for mark in (b"[", b"(", b"]", b")", b" ", b"[(", b"[ ", b"[1", b"\t", b"_cmd", b"a.", b"\xc2\xa0", b"[]"):
        yield f"a header of {mark!r}", mark * (100_000 // len(mark)) + b"]," + head + rows.replace(b"\n0", b"\n9,0")
        yield f"headers of {mark!r}", b",".join([mark * (900 // len(mark))] * 1000) + b"]," + head + rows
    yield "20,000 columns", b",".join(b"c%d" % k for k in range(20_000)) + b"\n" + b",".join([b"0"] * 20_000) + b"\n"
    yield (
        "9,000 channels",
        b"t," + b",".join(b"q%d" % k for k in range(1, 9000)) + b"\n" + b",".join([b"0"] * 9000) + b"\n",
    )
    yield "9,000 times q1", b"t," + b",".join([b"q1"] * 9000) + rows
    yield "9,000 names of joints", b"t," + b",".join(b"joint%d.position" % k for k in range(9000)) + rows
    yield "9,000 arrays", b"t," + b",".join(b"/a/b/position[%d]" % k for k in range(9000)) + rows
    yield "9,000 fields", b"t," + b",".join(b"field.name%d" % k for k in range(9000)) + rows
    yield "a joint of 4,000 digits", head.replace(b"q2", b"q" + b"9" * 900) + rows
    yield (
        "numbers of 300,000 digits",
        head + b"\n" + b"\n".join(b"%d,1,2,3,%s" % (k, b"9" * 300_000) for k in range(3)) + b"\n",
    )
    yield "numbers of Arabic digits", head + "\n٠,١,٢,٣,٤\n١,١,٢,٣,٤\n".encode()
    yield "hexadecimal", head + b"\n0x0,0x1,1,1,1\n0x1,1,1,1,1\n"
    yield "underscores", head + b"\n0,1_000,1,1,1\n1,1,1,1,1\n"
    yield "time runs back", head + b"\n1,1,1,1,1\n0,1,1,1,1\n"
    yield "time stands still", head + b"\n1,1,1,1,1\n1,1,1,1,1\n"
    yield "a unit of brackets", head.replace(b"q1", b"q1 [" + b"(" * 900 + b"]") + rows
    yield "comments alone", b"# t,q1\n" * 50_000


def _robots() -> Iterator[tuple[str, str, bytes]]:
    link = '<link name="{}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    joint = '<joint name="j{}" type="revolute"><parent link="{}"/><child link="{}"/></joint>'
    chain = "".join(link.format(k) for k in range(20_000)) + "".join(joint.format(k, k, k + 1) for k in range(19_999))
    yield "urdf", "a chain of 20,000 links", f'<robot name="a">{chain}</robot>'.encode()
    ring = "".join(link.format(k) for k in range(3)) + "".join(joint.format(k, k, (k + 1) % 3) for k in range(3))
    yield "urdf", "a ring", f'<robot name="a">{ring}</robot>'.encode()
    for number in ("nan", "inf", "-inf", "1e999", "9" * 400, "1e-999", "0x10", "1_0", "", "1,5", "١"):
        for place in ('mass value="2"', 'xyz="0 0 0.3"', 'ixx="0.1"', 'lower="-1"', 'damping="0.1"', 'xyz="0 1 0"'):
            key, _, old = place.partition('="')
            new = " ".join([number] * len(old.rstrip('"').split()))
            yield (
                "urdf",
                f"{key} {number[:12]}",
                TARGETS["urdf"].seeds(Path())[0].replace(place.encode(), f'{key}="{new}"'.encode()),
            )
    seed = TARGETS["mjcf"].seeds(Path())[0]
    for count in ("1000000000", "9" * 30, "1e9", "50000"):
        for tag in ("replicate", "composite", "flexcomp"):
            counts = count if tag == "replicate" else f"{count} {count} {count}"
            more = f'<{tag} count="{counts}" type="grid"><geom size="0.1"/></{tag}>'
            yield "mjcf", f"{tag} {count[:12]}", seed.replace(b"</worldbody>", more.encode() + b"</worldbody>")
    nested = '<replicate count="99">' * 9 + '<geom size="1"/>' + "</replicate>" * 9
    yield "mjcf", "replicate in replicate", seed.replace(b"</worldbody>", nested.encode() + b"</worldbody>")
    for more in (
        '<size memory="900G"/>', '<size njmax="2000000000"/>', '<size nuser_body="2000000000"/>', '<size nkey="2000000000"/>',
        '<custom><numeric name="a" size="2000000000"/></custom>', '<include file="robot.xml"/>',
        '<asset><texture name="a" type="2d" builtin="flat" width="100000" height="100000"/></asset>',
        '<asset><hfield name="a" nrow="100000" ncol="100000" size="1 1 1 1"/></asset>',
        '<asset><mesh name="a" builtin="sphere" params="2000000000"/></asset>', '<asset><mesh file="/dev/zero"/></asset>',
        '<asset><model name="a" file="robot.xml"/></asset>', '<include file="/dev/zero"/>',
        '<sensor><user name="a" dim="2000000000"/></sensor>', '<extension><plugin plugin="a"/></extension>',
        '<option timestep="nan"/>', '<option gravity="nan nan nan"/>', '<compiler meshdir="/dev"/>',
    ):  # fmt: skip
        yield "mjcf", more[:60], seed.replace(b"<option", more.encode() + b"<option", 1)
    for number in ("nan", "inf", "-inf", "1e999", "9" * 400):
        for place in ('mass="2"', 'pos="0 0 0.4"', 'armature="0.002"', 'range="-1 1"', 'coef="1"', 'quat="1 0.2 0 0"'):
            key, _, old = place.partition('="')
            new = " ".join([number] * len(old.rstrip('"').split()))
            yield "mjcf", f"{key} {number[:12]}", seed.replace(place.encode(), f'{key}="{new}"'.encode())
    deep = "<body>" * 3000 + "</body>" * 3000
    yield "mjcf", "3,000 bodies within bodies", seed.replace(b"</worldbody>", deep.encode() + b"</worldbody>")
    head = '<robot name="a" xmlns:xacro="http://www.ros.org/wiki/xacro">'
    for name, inside in {
        "a text of 10 GB": "<link name='${\"a\" * 10**10}'/>",
        "a power": "<link name='${9**9**9}'/>",
        "a list without end": "<link name='${[x for x in range(10**12)]}'/>",
        "a macro of itself": "<xacro:macro name='a'><xacro:a/></xacro:macro><xacro:a/>",
        "macros that double": "<xacro:macro name='m0'><link name='l'/></xacro:macro>"
        + "".join(f"<xacro:macro name='m{k}'><xacro:m{k - 1}/><xacro:m{k - 1}/></xacro:macro>" for k in range(1, 40))
        + "<xacro:m39/>",
        "includes itself": "<xacro:include filename='robot.xacro'/>",
        "includes a device": "<xacro:include filename='/dev/zero'/>",
        "code": '<link name=\'${__import__("os").system("touch /tmp/hostile")}\'/>',
        "classes": "<link name='${().__class__.__base__.__subclasses__()}'/>",
        "a property of itself": "<xacro:property name='a' value='${a}'/><link name='${a}'/>",
        "loads a device": "<link name=\"${xacro.load_yaml('/dev/zero')}\"/>",
        "a loop": "<xacro:property name='s' value='${\"%0999999999d\" % 1}'/><link name='${s}'/>",
    }.items():
        yield "xacro", name, f"{head}{inside}</robot>".encode()
    for name, text in {
        "a base that is itself": "base: robot.yaml\n",
        "a base that is a device": "base: /dev/zero\n",
        "an expression of powers": "base: pendulum-2\nlengths: {a: 8^8^8^8^8^8}\n",
        "a deep expression": f"name: a\nlengths: {{a: '{'-' * 190}1'}}\n",
        "a deep parenthesis": f"name: a\nlengths: {{a: '{'(' * 99}1{')' * 99}'}}\n",
        "names that print backwards": 'base: pendulum-2\nname: "\\u202eabc"\n',
    }.items():
        yield "overlay", name, text.encode()
    links = "\n".join(f"  - {{joint: q{k}, a: 0, alpha: 0, d: 0, theta: q{k}}}" for k in range(3000))
    yield "table", "3,000 joints", f"name: a\nconvention: modified\njoints:\n{links}\n".encode()


def _stored(wanted: Callable[[str], bool]) -> Iterator[tuple[str, str, bytes]]:
    kinds = [kind for kind in ("fit-arrays", "information", "checkpoint", "report", "npz") if wanted(kind)]
    if kinds:
        archives = [*_archives(), ("1.5 GB of zeros", _huge_zeros(1_500_000_000))]
        yield from ((kind, name, content) for kind in kinds for name, content in archives)


def _records() -> Iterator[tuple[str, str, bytes]]:
    for levels in (61, 1000, 50_000):
        yield "fit", f"{levels} brackets", _yaml_depth(levels)
        yield "fit", f"{levels} braces", b"a: " + b"{a: " * levels + b"1" + b"}" * levels
        yield "fit", f"{levels} open brackets", b"format: dynident fit 2\na: " + b"[" * levels
        yield "fit", f"{levels} dashes", b"- " * levels + b"1\n"
        for kind in ("drives", "motion", "run-file", "stages", "motors", "effects", "columns", "table", "overlay"):
            yield kind, f"{levels} brackets", b"a: " + b"[" * levels + b"]" * levels
            yield kind, f"{levels} open braces", b"a: " + b"{b: " * levels
            yield kind, f"{levels} dashes", b"a:\n" + b"- " * levels + b"1\n"
        yield "unloaded", f"{levels} brackets", b"[" * levels + b"]" * levels
        yield "lerobot-info", f"{levels} brackets", b"[" * levels + b"]" * levels
        yield "packets", f"{levels} brackets", b"[" * levels + b"]" * levels
    yield "fit", "2,000,000 numbers", b"a: [" + b"1," * 2_000_000 + b"1]\n"
    yield "fit", "10 MB", b"# " + b"a" * 10_000_000
    many = 20_000
    for value in (
        "nan",
        ".nan",
        ".inf",
        "-.inf",
        "1e400",
        "9" * 400,
        "null",
        "[]",
        "{}",
        "2020-01-01",
        "'text'",
        "true",
        "0x7f",
        "1:30",
        "010",
    ):
        yield "effects", f"a value {value[:12]}", f"load_2: {value}\n".encode()
        yield "motors", f"a value {value[:12]}", f"torque_constant: {value}\nresistance: [{value}, 1]\n".encode()
        yield "columns", f"a scale {value[:12]}", f"a: {{column: q1, scale: {value}}}\n".encode()
        yield (
            "motion",
            f"a value {value[:12]}",
            f"format: dynident motion 1\nduration: {value}\nmotion: {{kind: sinusoid, start: [{value}], amplitude: [1], frequency: [{value}], length: {value}}}\n".encode(),
        )
        yield (
            "unloaded",
            f"a value {value[:12]}",
            TARGETS["unloaded"].seeds(Path())[0].replace(b"0.3", value.strip("'.").encode()),
        )
        yield (
            "packets",
            f"a value {value[:12]}",
            f'{{"t": {value.strip(".")}, "q": [{value.strip(".")}, 1], "tau": [1, 2]}}\n'.encode(),
        )
    yield (
        "lerobot-info",
        "a shape without end",
        b'{"features": {"observation.state": {"shape": [1e999], "names": null}}}',
    )
    yield (
        "lerobot-info",
        "many names",
        b'{"features": {"observation.state": {"names": ['
        + b", ".join(b'"%d"' % k for k in range(many))
        + b'], "shape": [20000]}}}',
    )


def _huge_zeros(n_bytes: int) -> bytes:
    """An archive of one array of zeros, packed without having them in memory at once."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("t.npy", "w", force_zip64=True) as file,
    ):
        file.write(npy(f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({n_bytes // 8},), }}"))
        for _ in range(n_bytes // 1_000_000):
            file.write(bytes(1_000_000))
    return out.getvalue()


def _parquets() -> Iterator[tuple[str, bytes]]:
    import pyarrow as arrow
    from pyarrow import parquet

    def made(table: Any, **how: Any) -> bytes:
        out = io.BytesIO()
        parquet.write_table(table, out, **how)
        return out.getvalue()

    yield "20,000 columns", made(arrow.table({f"c{k}": [0.0, 1.0] for k in range(20_000)}))
    yield "9,999 columns", made(arrow.table({"t": [0.0, 1.0]} | {f"c{k}": [0.0, 1.0] for k in range(9998)}))
    for how in ("gzip", "zstd", "snappy"):
        zeros = arrow.table({"t": np.zeros(30_000_000), "q1": np.zeros(30_000_000)})
        yield (
            f"a page of zeros, {how}",
            made(zeros, compression=how, use_dictionary=False, data_page_size=1 << 30, row_group_size=30_000_000),
        )
    rows = arrow.table({name: arrow.array(np.zeros(20_000_000)) for name in ("t", "q1", "q2", "tau1", "tau2")})
    yield "20,000,000 equal rows", made(rows)
    nested: Any = arrow.array([1.0, 2.0])
    for _ in range(60):
        nested = arrow.StructArray.from_arrays([nested], ["a"])
    yield "structures in structures", made(arrow.table({"t": [0.0, 1.0], "a": nested}))
    yield "a name of 100 kB", made(arrow.table({"t": [0.0, 1.0], "[" * 100_000: [1.0, 2.0]}))
    yield "a name with a line end", made(arrow.table({"t": [0.0, 1.0], "q1\n": [1.0, 2.0]}))
    seed = made(arrow.table({"t": [0.0, 1.0], "q1": [1.0, 2.0]}))
    for length in (0, 1, 0x7FFFFFFF, 0xFFFFFFFF, len(seed)):
        yield f"metadata of {length} bytes", seed[:-8] + struct.pack("<I", length) + b"PAR1"
    for k in range(40):
        at = len(seed) - 9 - 7 * k
        yield f"metadata changed {k}", seed[:at] + bytes([seed[at] ^ 0xFF]) + seed[at + 1 :]
    deep = b"\x1c" * 30_000
    yield "Thrift within Thrift", b"PAR1" + deep + struct.pack("<I", len(deep)) + b"PAR1"


def _mats() -> Iterator[tuple[str, str, bytes]]:
    for levels in (100, 2000, 20_000):
        yield "mat", f"{levels} cells in cells", nested_cells(levels)
        yield "mat", f"{levels} packed cells in cells", nested_cells(levels, packed=True)
    for count in (-1, 1 << 20, 0x7FFFFFFF):
        yield "mat", f"{count} cells", wide_cells(count)
    for rows, columns in ((-1, 1), (0x7FFFFFFF, 1), (0x7FFFFFFF, 0x7FFFFFFF), (1, 0)):
        yield "mat", f"v4 of {rows} x {columns}", struct.pack("<5i", 0, rows, columns, 0, 2) + b"t\0"
        body = (
            _element(6, struct.pack("<II", 6, 0)) + _element(5, struct.pack("<ii", rows, columns)) + _element(1, b"t")
        )
        head = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM"
        yield "mat", f"v5 of {rows} x {columns}", head + _element(14, body + _element(9, bytes(8)))
    bomb = zlib.compress(_element(14, bytes(300_000_000)), 9)
    yield (
        "mat",
        "300 MB of zeros",
        b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + struct.pack("<II", 15, len(bomb)) + bomb,
    )
    with tempfile.TemporaryDirectory() as folder:
        seed = TARGETS["mat73"].seeds(Path(folder))[0]
    for place in range(0, 4000, 200):
        yield "mat73", f"changed at {place}", seed[: 512 + place] + b"\xff" * 16 + seed[528 + place :]


def collection(kinds: tuple[str, ...] = ()) -> Iterator[Hostile]:
    """All hostile files, of all kinds or of some."""
    general = list(_contents())
    for target in TARGETS.values():
        if kinds and target.name not in kinds:
            continue
        for name, content in general:
            yield Hostile(target, name, _write(content))
        with tempfile.TemporaryDirectory() as folder:
            seed = write_seeds(target, Path(folder))[0]
        for name, content in _changed(seed):
            yield Hostile(target, name, _write(content))
        for name, make in _no_files():
            yield Hostile(target, name, make, refused=True)

    def wanted(kind: str) -> bool:
        return not kinds or kind in kinds

    for kind, family in (("text", _texts), ("mcap", _mcaps), ("parquet", _parquets)):
        if wanted(kind):
            yield from (Hostile(TARGETS[kind], name, _write(content)) for name, content in family())
    if wanted("sqlite"):
        yield from (Hostile(TARGETS["sqlite"], name, sqlite_of(script)) for name, script in DATABASES.items())
    for several in (_robots(), _records(), _stored(wanted), _mats() if wanted("mat") or wanted("mat73") else ()):
        yield from (Hostile(TARGETS[kind], name, _write(content)) for kind, name, content in several if wanted(kind))


# ----------------------------------------------------------------------------------------------------------------------
# Reading them.


def outcome(one: Hostile, folder: Path) -> str:
    """Read one; "read", "refused", or what must not happen.

    Args:
        one: The file.
        folder: Where the sound files of its kind are, or an empty one.
    """
    from dynident.errors import DynidentError

    path = folder / one.target.file
    path.unlink(missing_ok=True)
    one.make(path)
    try:
        one.target.read(path)
    except DynidentError as error:
        words = str(error)
        if path.name not in words and str(folder) not in words:
            return f"names no file: {words[:300]}"
        return "refused" if "\n" not in words else f"is no sentence: {words[:300]}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:300]}"
    finally:
        path.unlink(missing_ok=True)
    return "was read" if one.refused else "read"


def outcomes(kinds: tuple[str, ...] = ()) -> Iterator[tuple[Hostile, str, float]]:
    """Every file with what came of it and the processor time it took [s], its process's children included."""
    folders: dict[str, Path] = {}
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one in collection(kinds):
            name = one.target.name
            if name not in folders:
                folders[name] = Path(place) / name
                write_seeds(one.target, folders[name])
            begin = sum(os.times()[:4])
            found = outcome(one, folders[name])
            yield one, found, sum(os.times()[:4]) - begin


def main() -> int:
    """Run the command and return its exit code: 1 where one was neither refused nor read with finite results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--kind", action="append", default=[], choices=list(TARGETS), help="default all; may be repeated"
    )
    options = parser.parse_args()
    counts: dict[str, int] = {}
    worst = 0.0
    begin = time.monotonic()
    for one, found, seconds in outcomes(tuple(options.kind)):
        counts[found] = counts.get(found, 0) + 1
        worst = max(worst, seconds)
        if found not in ("read", "refused") or seconds > 5.0:
            print(f"{one.target.name}: {one.name}: {found} ({seconds:.1f} s)", flush=True)
    total = sum(counts.values())
    refused, read = counts.pop("refused", 0), counts.pop("read", 0)
    print(f"{total} files: {refused} refused, {read} read, {sum(counts.values())} wrong; slowest {worst:.1f} s, "
          f"{time.monotonic() - begin:.0f} s in all")  # fmt: skip
    return int(bool(counts))


if __name__ == "__main__":
    sys.exit(main())
