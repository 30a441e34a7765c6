"""Files that are either complete or not there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from dynident.errors import InputError


def write_whole(path: str | Path, write: Callable[[IO[bytes]], None]) -> None:
    """Write a file; an existing one stays as it is until the new one is complete.

    Args:
        path: Where to.
        write: Writes the content to an open binary file.

    Raises:
        InputError: When the folder does not exist or cannot be written to.
    """
    target = Path(path)
    check_target(path)
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    except OSError as error:
        raise InputError(f"{target}: cannot be written ({error.strerror})") from None
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
        os.chmod(temporary, 0o666 & ~_umask())  # as any other new file
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def check_target(path: str | Path) -> None:
    """Refuse a path that cannot become a file, before the work whose result it is to hold.

    Raises:
        InputError: When the folder does not exist or cannot be written to, or the path is a folder.
    """
    target = Path(path)
    if not str(path):
        raise InputError("the name of the file to write is empty")
    if not target.parent.is_dir():
        raise InputError(f"{target}: the folder {target.parent} does not exist; create it first")
    if target.is_dir():
        raise InputError(f"{target}: is a folder; give the name of a file")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise InputError(f"{target}: the folder {target.parent} cannot be written to; choose another one")


def write_bytes(path: str | Path, content: bytes) -> None:
    """`write_whole` for bytes that are at hand."""

    def write(file: IO[bytes]) -> None:
        file.write(content)

    write_whole(path, write)


def write_text(path: str | Path, text: str) -> None:
    """`write_whole` for text."""
    write_bytes(path, text.encode())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
