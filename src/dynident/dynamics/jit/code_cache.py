"""Machine code kept on disk for the next process, and believed only where nobody else can have written it.

The folder and its files must belong to the user and be writable by nobody else, and each entry carries an HMAC by a
key that the user alone can read. An entry that does not match, damaged or from elsewhere, is made again. Where the
folder cannot be trusted nothing is read from it or written to it, which a warning says once.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import hmac
import os
import secrets
import stat
import warnings
from pathlib import Path

from dynident.errors import DynidentError, FileWarning
from dynident.files import file_aside, remove_leftovers

_MAGIC = b"dynident object 3\n"
_KEY, _KEY_BYTES = "key", 32
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS_READ = stat.S_IRWXG | stat.S_IRWXO


def cache_folder() -> Path | None:
    """Where compiled kernels are kept; None when caching is switched off by an empty DYNIDENT_CACHE."""
    chosen = os.environ.get("DYNIDENT_CACHE")
    if chosen is not None:
        return Path(chosen) if chosen else None
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "dynident"
    except RuntimeError:  # a user without a home
        return None


class CodeCache:
    """A folder of entries.

    Args:
        folder: Is made, for this user alone, when it is not there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with contextlib.suppress(OSError):  # a cache that cannot be written is no reason to stop
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._key = self._own_key() if self.usable else None

    @property
    def usable(self) -> bool:
        """Whether entries may be read and written; the folder is there, and no one else can write to it."""
        return self.folder.is_dir() and not distrust(self.folder)

    def read(self, digest: str) -> bytes | None:
        """The code of an entry, or None if it is missing, damaged, or not by this user."""
        content = _own_content(self._path(digest), _OTHERS_WRITE) if self._key else None
        if content is None:
            return None
        head = len(_MAGIC) + hashlib.sha256().digest_size
        code = content[head:]
        return code if hmac.compare_digest(content[:head], self._seal(digest, code)) else None

    def write(self, digest: str, code: bytes) -> None:
        """Put an entry in place in one step; where it cannot be, the code is compiled again the next time."""
        if self._key is None:
            return
        with contextlib.suppress(OSError, DynidentError):
            remove_leftovers(self.folder)
            self._put(self._path(digest), self._seal(digest, code) + code)

    def _path(self, digest: str) -> Path:
        return self.folder / f"{digest[:40]}.o"

    def _seal(self, digest: str, code: bytes) -> bytes:
        """What an entry begins with: of this format, made from this, complete, and by who knows the key."""
        assert self._key is not None
        return _MAGIC + hmac.digest(self._key, digest.encode() + code, "sha256")

    def _own_key(self) -> bytes | None:
        """The key of the folder, made when it has none that only the user can read; None where that is impossible."""
        path = self.folder / _KEY
        found = _own_content(path, _OTHERS_READ)
        if found is None or len(found) != _KEY_BYTES:
            with contextlib.suppress(OSError, DynidentError):
                self._put(path, secrets.token_bytes(_KEY_BYTES))
            found = _own_content(path, _OTHERS_READ)  # of two processes that made one, that of the last stays
        return found if found is not None and len(found) == _KEY_BYTES else None

    @staticmethod
    def _put(path: Path, content: bytes) -> None:
        with file_aside(path) as (aside, file):  # for this user alone, as temporary files are
            file.write(content)
            file.flush()
            if os.name == "nt":
                file.close()
            os.replace(aside, path)


def _own_content(path: Path, forbidden: int) -> bytes | None:
    """The content of a file that belongs to this user and gives others none of the forbidden permissions."""
    try:
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)), "rb") as file:
            return None if _foreign(os.fstat(file.fileno()), forbidden) else file.read()
    except OSError:
        return None


def _foreign(found: os.stat_result, forbidden: int) -> bool:
    """Whether a file or folder is another user's, or gives others permissions; on Windows the profile's rights hold."""
    return os.name != "nt" and (found.st_uid != os.geteuid() or bool(found.st_mode & forbidden))


def distrust(folder: Path) -> str:
    """Why code in a folder is not believed; empty when it is.

    Parents need no look: who moves the folder away cannot put one in its place that is this user's and has the key.
    """
    try:
        found = folder.stat()
    except OSError:
        return ""
    if not _foreign(found, _OTHERS_WRITE):
        return ""
    own = found.st_uid == os.geteuid()
    return "others can write to it; chmod go-w makes it usable" if own else "it belongs to another user"


@functools.cache
def open_cache(folder: Path) -> CodeCache | None:
    """The cache in a folder; None, said once, where it is not to be trusted."""
    if why := distrust(folder):
        words = f"compiled code is neither read from it nor kept in it ({why})"
        warnings.warn(f"{folder}: {words}", FileWarning, stacklevel=2)
        return None
    made = CodeCache(folder)
    return made if made.usable else None
