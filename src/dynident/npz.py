"""Archives of arrays (.npz) as NumPy writes them, read within limits: what their headers claim is bounded first."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dynident import limits
from dynident.limits import Expansion, LimitError
from dynident.readers import refuse_special

_KINDS = "biufcSUMm"  # numbers, texts and times; no objects, which would be pickles
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DEFLATE = 1032  # the most that DEFLATE can make of a byte
_PART = 1 << 20  # bytes read at a time
_ENTRY = 46  # bytes of an entry of the directory, without its name
_LONGEST_HEADER = 10_000  # characters, NumPy's own limit
_MAGIC = b"\x93NUMPY"
_HEADER = re.compile(
    r"\{\s*'descr':\s*'(?P<descr>[<>|=]?[a-zA-Z]\d*(\[\w+\])?)',\s*'fortran_order':\s*(?P<fortran>True|False),"
    r"\s*'shape':\s*\((?P<shape>[\d,\s]{0,200})\),?\s*\}\s*",
    re.ASCII,
)


def read_npz(path: str | Path, others: list[str] | None = None) -> dict[str, NDArray[Any]]:
    """The arrays of an archive by name.

    Nothing is believed: the directory is measured before it is parsed, no more is allocated than the packed bytes can
    unpack to, and what comes out must be what the header of the array says. CRCs are checked.

    Args:
        path: The file.
        others: Gets the names of members that are no plain arrays, with their type; None to refuse those.

    Raises:
        ValueError, OSError, zipfile.BadZipFile, zlib.error, ..: What is wrong; callers name the file and say what it
            should be.
        LimitError: If it is beyond a limit.
    """
    refuse_special(path)
    with Path(path).open("rb") as file:
        _check_directory(file)
        with zipfile.ZipFile(file) as archive:
            size = file.seek(0, 2)
            meter = Expansion(size, limits.LIMITS.memory_bytes, limits.STREAM)
            found: dict[str, NDArray[Any]] = {}
            for member in _members(archive, size):
                # A member never gives more than it claims, so that refusing the claims is enough.
                meter.add(member.file_size)
            for member in archive.infolist():
                name = member.filename.removesuffix(".npy")
                if name in found:
                    raise ValueError(f"has '{name}' twice")
                array, kind = _array(archive, member)
                if array is not None:
                    found[name] = array
                elif others is None:
                    raise ValueError(f"'{name}' is {kind}, not an array of numbers or texts")
                else:
                    others.append(f"{name} ({kind})")
            return found


def _check_directory(file: IO[bytes]) -> None:
    """Refuse a directory of more members than an archive may have before each of them takes memory."""
    try:
        end: Any = zipfile._EndRecData(file)  # type: ignore[attr-defined]
    except OSError:
        end = None
    if not end:
        raise zipfile.BadZipFile("is no archive of arrays (.npz)")
    if end[5] > limits.LIMITS.columns * (_ENTRY + limits.LIMITS.name_characters):  # bytes of the directory
        raise LimitError(f"has a directory of {end[5]} bytes, more than {limits.LIMITS.columns} arrays need")


def _members(archive: zipfile.ZipFile, size: int) -> Iterator[zipfile.ZipInfo]:
    """The members, refused where their claims cannot be true or are not to be read."""
    members = archive.infolist()
    if len(members) > limits.LIMITS.columns:
        raise LimitError(f"has {len(members)} arrays, more than {limits.LIMITS.columns}")
    if sum(member.compress_size for member in members) > size:
        raise ValueError("its arrays overlap, or are cut off")
    for member in members:
        if len(member.filename) > limits.LIMITS.name_characters:
            raise LimitError(f"has an array with a name of {len(member.filename)} characters")
        if member.flag_bits & 0x1:
            raise ValueError(f"'{member.filename}' is encrypted")
        if member.compress_type not in _PACKINGS:
            raise ValueError(f"'{member.filename}' is packed in a way that NumPy does not write")
        if member.file_size > _DEFLATE * member.compress_size + _DEFLATE:
            raise ValueError(f"'{member.filename}' cannot unpack to the {member.file_size} bytes that it claims")
        yield member


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[NDArray[Any] | None, str]:
    """The array of a member; or None, and what it is."""
    with archive.open(member) as stream:
        magic = stream.read(len(_MAGIC) + 2)
        if not member.filename.endswith(".npy") or not magic.startswith(_MAGIC) or len(magic) < 8:
            return None, "no array"
        n = 2 if magic[6] == 1 else 4
        length = int.from_bytes(stream.read(n), "little")
        if magic[6] not in (1, 2, 3) or length > _LONGEST_HEADER:
            raise ValueError(f"'{member.filename}' has a header that NumPy does not write")
        header = stream.read(length).decode("latin-1")
        known = _HEADER.fullmatch(header)
        if known is None or known["descr"].lstrip("<>|=")[0] not in _KINDS:
            return None, "objects or records"
        dtype = np.dtype(known["descr"])
        shape = tuple(int(part) for part in known["shape"].split(",") if part.strip())
        claimed = member.file_size - len(_MAGIC) - 2 - n - length
        return _read_content(stream, dtype, shape, known["fortran"] == "True", claimed), ""


def _read_content(
    stream: IO[bytes], dtype: np.dtype[Any], shape: tuple[int, ...], fortran: bool, claimed: int
) -> NDArray[Any]:
    """The array from a stream of which `claimed` bytes are left."""
    if len(shape) > limits.LIMITS.array_dimensions:
        raise LimitError(f"has an array of {len(shape)} dimensions")
    size, extent = dtype.itemsize, 1
    for length in shape:  # in Python's numbers, which do not overflow
        size *= length
        extent *= max(length, 1)
    if size != claimed or extent * max(dtype.itemsize, 1) > limits.LIMITS.memory_bytes:
        raise ValueError(f"has an array of shape {shape} in {claimed} bytes")
    content = bytearray(0) if size == 0 else np.empty(size, dtype=np.uint8).data
    at = 0
    while at < size:
        part = stream.read(min(_PART, size - at))
        if not part:
            raise ValueError("is cut off")
        content[at : at + len(part)] = part
        at += len(part)
    if stream.read(1):  # which also compares the CRC
        raise ValueError("has an array with more bytes than it says")
    array: NDArray[Any] = np.frombuffer(content, dtype=dtype) if size else np.empty(shape, dtype=dtype)
    return array.reshape(shape, order="F" if fortran else "C")
