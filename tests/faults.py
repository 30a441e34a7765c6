"""A file system that fails on purpose, for a command of dynident in a process of its own.

Steps are the creation of a file or folder, each write, flush, rename and removal below the current folder. The k-th of
them ends with a full disk (`enospc`: half of the bytes are written, the call fails, and all that need room after it) or
with SIGKILL (`kill`: half of the bytes are written, the process is gone).

    python -m tests.faults kill:7 identify arm.yaml log.csv -o fit
    python -m tests.faults count:0 export fit --urdf arm.urdf     # prints how many steps there are, as the last line
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import signal
import sys
from pathlib import Path
from typing import Any

_NEED_ROOM = ("open", "os.mkdir", "write", "os.rename")  # steps that a full disk refuses; a rename may need a block
_CREATE = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Faults:
    """Counts the steps of this process, and lets one of them fail.

    Args:
        kind: "count", "enospc" or "kill".
        number: Of the step that fails, from 1.
        folder: Where steps count.
    """

    def __init__(self, kind: str, number: int, folder: Path) -> None:
        self.kind, self.number, self.folder, self.steps = kind, number, str(folder.resolve()), 0

    def install(self) -> None:
        """Watch this process from now on."""
        sys.addaudithook(self._hear)
        opened, given = io.open, os.fdopen

        def watch(file: Any, mode: str, name: object) -> Any:
            writes = set(mode) & set("wax+")
            return _File(file, self) if writes and self._counts(name) else file

        def open_file(path: Any, mode: str = "r", *rest: Any, **more: Any) -> Any:
            return watch(opened(path, mode, *rest, **more), mode, path)

        def open_handle(handle: int, mode: str = "r", *rest: Any, **more: Any) -> Any:
            name = os.readlink(f"/proc/self/fd/{handle}")
            return watch(given(handle, mode, *rest, **more), mode, name)

        builtins.open = io.open = open_file  # type: ignore[assignment]
        os.fdopen = open_handle  # type: ignore[assignment]

    def step(self, what: str, file: Any = None, content: Any = b"") -> None:
        """A step, which may be the last one."""
        self.steps += 1
        due = self.steps == self.number
        full = self.kind == "enospc" and self.steps >= self.number > 0 and what in _NEED_ROOM
        if (self.kind == "kill" and due) or full:
            if file is not None and len(content) > 1 and due:
                file.write(content[: len(content) // 2])
                file.flush()
            if self.kind == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if flags & _CREATE and self._counts(path):
                self.step("open")
        elif event in ("os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.link") and self._counts(arguments[0]):
            self.step(event)

    def _counts(self, path: object) -> bool:
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        return os.path.abspath(os.fsdecode(path)).startswith(self.folder)


class _File:
    """A file whose writes are steps."""

    def __init__(self, file: Any, faults: Faults) -> None:
        self._file, self._faults = file, faults

    def write(self, content: Any) -> int:
        self._faults.step("write", self._file, content)
        return self._file.write(content)

    def flush(self) -> None:
        self._faults.step("flush")
        self._file.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __iter__(self) -> Any:
        return iter(self._file)


def main() -> int:
    """Run a command with a fault."""
    kind, _, number = sys.argv[1].partition(":")
    from dynident.cli.command_line import main as run

    faults = Faults(kind, int(number), Path.cwd())
    faults.install()
    code = run(sys.argv[2:])
    if kind == "count":
        print(faults.steps)
    return code


if __name__ == "__main__":
    sys.exit(main())
