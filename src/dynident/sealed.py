"""Seals: what dynident writes carries a hash of all its content, and is refused where it does not match.

An archive of arrays has one more array, `dynident`, first in the file: what it holds in words, and the SHA-256 of
names, types, shapes and bytes of all others. A text has a last line, a comment, with that of all lines before it. A
seal finds damage, edits and files that were mixed up; it is no signature, for it has no key.
"""

from __future__ import annotations

import hashlib
import io
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dynident.errors import FileWarning
from dynident.npz import read_npz
from dynident.schema import quote

SEAL = "dynident"  # name of the array, and the mark of our files
_LINE = re.compile(r"# dynident seal: ([0-9a-f]{64})\n?\Z")


class SealError(ValueError):
    """Content that is not what was written; the message says so, and callers name the file."""


def digest_of(kind: str, arrays: Mapping[str, Any]) -> str:
    """SHA-256 of arrays: their names, types, shapes and bytes, whatever their order."""
    digest = hashlib.sha256(f"{kind}\0".encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        # Shape before: NumPy makes a scalar an array of one.
        digest.update(f"{name}\0{array.dtype.str}\0{np.shape(arrays[name])}\0".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def sealed_archive(kind: str, arrays: Mapping[str, Any]) -> bytes:
    """An archive of arrays (.npz) with its seal.

    Args:
        kind: What it holds, such as `dynident factors`; a file of another kind does not match.
        arrays: By name.
    """
    buffer = io.BytesIO()
    every: dict[str, Any] = {SEAL: np.array([kind, digest_of(kind, arrays)]), **arrays}
    np.savez(buffer, **every)
    return buffer.getvalue()


def read_sealed(path: str | Path, kind: str) -> dict[str, Any]:
    """The arrays of an archive, whose seal must match.

    Archives of earlier versions have none: a warning says that their content cannot be checked.

    Raises:
        SealError: When it does not, and all that `read_npz` raises.
    """
    content: dict[str, Any] = read_npz(path)
    seal = content.pop(SEAL, None)
    if seal is None:
        _warn_unsealed(path)
        return content
    if seal.shape != (2,) or seal.dtype.kind != "U":
        raise SealError("its seal is damaged")
    if str(seal[0]) != kind:
        raise SealError(f"it holds {quote(str(seal[0]))}, not {quote(kind)}")
    if str(seal[1]) != digest_of(kind, content):
        raise SealError("its seal does not match: the content is not what was written")
    return content


def sealed_text(text: str) -> str:
    """A text with its seal as the last line, a comment of YAML."""
    text = text if text.endswith("\n") else f"{text}\n"
    return f"{text}# dynident seal: {hashlib.sha256(text.encode()).hexdigest()}\n"


def check_text(path: str | Path, text: str) -> None:
    """Refuse a text whose seal does not match; one without a seal, of an earlier version, gives a warning.

    Raises:
        SealError: When it does not.
    """
    found = _LINE.search(text)
    if found is None:
        if "# dynident seal:" in text:
            raise SealError("its seal is damaged, or not its last line")
        _warn_unsealed(path)
    elif found[1] != hashlib.sha256(text[: found.start()].encode()).hexdigest():
        raise SealError("its seal does not match: the text was edited or damaged")


def _warn_unsealed(path: str | Path) -> None:
    words = "is of an earlier version and has no seal: its content cannot be checked; write it again to seal it"
    warnings.warn(f"{path}: {words}", FileWarning, stacklevel=5)
