"""A disk that is full at the k-th write, for a cluster within the process of a test."""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from dynident import files


@contextmanager
def full_disk(at: tuple[int, ...], matching: str = "") -> Iterator[list[str]]:
    """Writes whose numbers are given fail half-way; others, and files whose path lacks a text, are as they were.

    Every file of the package becomes complete in `files.write_whole`, which other modules have under its own name.
    """
    original, lock, struck, count = files.write_whole, threading.Lock(), [], [0]

    def write_whole(path: str | Path, write: Callable[[IO[bytes]], None]) -> None:
        with lock:
            count[0] += matching in str(path)
            hit = matching in str(path) and count[0] in at
        if not hit:
            original(path, write)
            return
        struck.append(str(path))

        def fail(file: IO[bytes]) -> None:
            file.write(b"half of a file")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

        original(path, fail)

    modules = [module for name, module in sys.modules.items() if name.startswith("dynident")]
    modules = [module for module in modules if vars(module).get("write_whole") is original]
    for module in modules:
        module.write_whole = write_whole
    try:
        yield struck
    finally:
        for module in modules:
            module.write_whole = original
