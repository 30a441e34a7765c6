"""Files that are either complete or not there, alone or several at once, whatever happens while they are written.

A file is written under a hidden name (`.fit.yaml.x7k2m_0q.part`) and renamed. Files that belong together are written
into a hidden folder, whose renaming is the moment at which all of them count; then each moves to its place. Who writes
or reads in a folder first moves what a killed process could not (`settle`). Who writes also removes `.part` files that
nobody writes any more: a writer holds a lock, which ends with its process.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO

from dynident.errors import InputError

try:
    import fcntl
except ImportError:  # Windows, which does not remove files that are open anyway
    fcntl = None  # type: ignore[assignment]

MARK = b"dynident"  # stands among the first bytes of every file that is written into a folder of results
_HEAD = 4096  # those bytes
_PART, _COMPLETE = ".part", ".complete"
_TOGETHER = ".dynident-"  # begins the name of a folder of files that belong together
_LEFT = re.compile(r"\..+\.[a-z0-9_]{8}\.part(\.[a-z]+)?|\.dynident-[a-z0-9_]{8}\.part")
_PAGE = b'<meta http-equiv="Content-Security-Policy" content="default-src'  # of pages before they had a mark
_LARGEST_ANSWER = 1 << 24  # bytes of a result.json
_EARLIER = ("text.npy", "schema.npy", "head.npy", "trace0.npy")  # arrays of versions without a mark


def write_whole(path: str | Path, write: Callable[[IO[bytes]], None]) -> None:
    """Write a file; an existing one stays as it is until the new one is complete.

    Args:
        path: Where to.
        write: Writes the content to an open binary file.

    Raises:
        InputError: When the folder does not exist or cannot be written to, or the disk is full.
    """
    target = Path(path)
    check_target(path)
    with name_target(target):
        settle(target.parent)
        remove_leftovers(target.parent)
        with file_aside(target) as (aside, file):
            write(file)
            file.flush()
            os.chmod(aside, 0o666 & ~_umask())  # as any other new file
            if fcntl is None:
                file.close()
            os.replace(aside, target)


def write_together(folder: str | Path, contents: Mapping[str, bytes]) -> None:
    """Write files of a folder that belong together: after a kill all are the old ones, or all the new ones.

    Args:
        folder: Is made when it does not exist.
        contents: What each file is to hold, by its name.

    Raises:
        InputError: When the folder cannot be made or written to, or the disk is full; nothing is changed then.
    """
    place = Path(folder)
    make_folder(place)
    for name in contents:
        check_target(place / name)
    with name_target(place):
        settle(place)
        remove_leftovers(place)
        with _folder_aside(place) as aside:
            for name, content in contents.items():
                with name_target(place / name), (aside / name).open("wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())  # of files that replace others, none may be empty after a power cut
            os.chmod(aside, 0o777 & ~_umask())
            os.rename(aside, aside.with_suffix(_COMPLETE))
        settle(place)


def settle(folder: str | Path) -> None:
    """Move files to their places that a killed process had written completely (see `write_together`).

    Raises:
        OSError: When that cannot be done.
    """
    for complete in _complete(folder):
        for file in complete.iterdir():
            with contextlib.suppress(FileNotFoundError):  # another process does the same
                os.replace(file, complete.parent / file.name)
        with contextlib.suppress(OSError):  # as does this one
            complete.rmdir()


def settled(path: str | Path) -> Path:
    """The file to read for a path: what was written last, also where it cannot be moved there."""
    target = Path(path)
    try:
        settle(target.parent)
    except OSError:
        waiting = [complete / target.name for complete in _complete(target.parent)]
        return next((file for file in reversed(waiting) if file.is_file()), target)
    return target


def _complete(folder: str | Path) -> list[Path]:
    """Folders of files that wait to be moved, the oldest first."""
    try:
        found = [path for path in Path(folder).glob(f"{_TOGETHER}*{_COMPLETE}") if path.is_dir()]
        return sorted(found, key=lambda path: path.stat().st_mtime_ns)
    except OSError:
        return []


@contextlib.contextmanager
def _folder_aside(place: Path) -> Iterator[Path]:
    """A hidden folder; it is gone afterwards, unless it was moved."""
    while True:
        aside = Path(tempfile.mkdtemp(dir=place, prefix=_TOGETHER, suffix=_PART))
        with _locked(aside) as own:
            if own and aside.exists():  # else taken for a leftover by another process
                try:
                    yield aside
                finally:
                    shutil.rmtree(aside, ignore_errors=True)
                return


@contextlib.contextmanager
def file_aside(target: Path, suffix: str = "") -> Iterator[tuple[Path, IO[bytes]]]:
    """An open file under a hidden name beside a target; it is gone afterwards, unless it was moved.

    Args:
        target: Whose name and folder it has.
        suffix: Behind its name, where a reader asks for one.

    Raises:
        InputError: When it cannot be made.
    """
    while True:
        try:
            handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=_PART + suffix)
        except OSError as error:
            raise InputError(f"{target}: cannot be written ({error.strerror})") from None
        if _lock(handle) and Path(name).exists():
            break
        os.close(handle)  # taken for a leftover by another process between the two lines
    aside = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield aside, file
    finally:
        aside.unlink(missing_ok=True)


def remove_leftovers(folder: str | Path) -> None:
    """Remove files of a folder that a killed process left half-written."""
    try:
        left = [entry.path for entry in os.scandir(folder) if _LEFT.fullmatch(entry.name)]
    except OSError:
        return
    for name in left:
        with contextlib.suppress(OSError), _locked(Path(name)) as free:
            if free and Path(name).is_dir():
                shutil.rmtree(name)
            elif free:
                Path(name).unlink()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Hold the lock of a file or folder; whether nobody else does."""
    if fcntl is None:
        yield True
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        yield _lock(handle)
    finally:
        os.close(handle)


def _lock(handle: int) -> bool:
    """Lock a file until it is closed; False when another process has."""
    if fcntl is not None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            return True
    return True


@contextlib.contextmanager
def name_target(target: Path) -> Iterator[None]:
    """Errors of the system as one that names the file."""
    try:
        yield
    except OSError as error:
        words = error.strerror or type(error).__name__
        raise InputError(f"{target}: cannot be written ({words})") from error


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


def make_folder(path: str | Path) -> Path:
    """A folder for files, with those it is in.

    Raises:
        InputError: When it cannot be made.
    """
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        words = "is a file" if folder.is_file() else f"cannot be made ({error.strerror})"
        raise InputError(f"{folder}: {words}; choose another folder") from None
    return folder


def check_results(folder: str | Path, names: tuple[str, ...]) -> None:
    """Refuse a folder for results where one of their names is that of a file which dynident has not written.

    Raises:
        InputError: Naming the file.
    """
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise InputError(f"{place}: is a file; -o needs a folder for {', '.join(names)}")
    for name in names:
        if (place / name).exists() and not is_ours(place / name):
            raise InputError(f"{place / name}: was not written by dynident; move it, or choose another folder")


def is_ours(path: str | Path) -> bool:
    """Whether dynident wrote a file: its mark stands in the first lines, or what earlier versions wrote is in it."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(_HEAD)
            if MARK in head or _PAGE in head:
                return True
            if head.startswith(b"{"):  # answers carry no mark, which programs would read
                answer = json.loads(head + file.read(_LARGEST_ANSWER))
                return isinstance(answer, dict) and isinstance(answer.get("warnings"), list)
        if not head.startswith(b"PK"):
            return False
        with zipfile.ZipFile(path) as stored:
            return any(name in stored.namelist() for name in _EARLIER)
    except (OSError, zipfile.BadZipFile, ValueError, RecursionError):
        return False


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
