"""Checkpoints of a stream: written beside it, so that no sample has to wait for a disk."""

from __future__ import annotations

import threading
import time
from os import PathLike
from typing import IO

from dynident.errors import DynidentError
from dynident.files import check_target, write_whole
from dynident.online.stream_state import Identifier


class Checkpoints:
    """Saves an estimator every few seconds: packed between two samples, written to disk on a thread of its own.

    Args:
        identifier: The estimator; it goes on changing.
        path: File to write; an older one stays until the new one is complete.
        every: Real time between checkpoints [s].

    Raises:
        InputError: If there can be no such file.
    """

    def __init__(self, identifier: Identifier, path: str | PathLike[str], every: float = 5.0) -> None:
        check_target(str(path))
        self._identifier, self._path, self._every = identifier, path, every
        self._next = time.monotonic() + every
        self._thread: threading.Thread | None = None
        self._fault: DynidentError | OSError | None = None

    def when_due(self) -> None:
        """Begin a checkpoint if it is time and the last one is done.

        Raises:
            DynidentError, OSError: If the last one could not be written.
        """
        if time.monotonic() < self._next or (self._thread is not None and self._thread.is_alive()):
            return
        self._raise()
        self._next = time.monotonic() + self._every
        self._thread = threading.Thread(target=self._save, args=(self._identifier.checkpoint(),), name="checkpoint")
        self._thread.start()

    def finish(self) -> None:
        """Write the last one, and wait for it."""
        if self._thread is not None:
            self._thread.join()
        self._raise()
        self._save(self._identifier.checkpoint())
        self._raise()

    def _save(self, packed: bytes) -> None:
        def write(file: IO[bytes]) -> None:
            file.write(packed)

        try:
            write_whole(str(self._path), write)
        except (DynidentError, OSError) as error:
            self._fault = error

    def _raise(self) -> None:
        if self._fault is not None:
            fault, self._fault = self._fault, None
            raise fault
