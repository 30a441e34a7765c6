"""What every reader of files passes through: one error type that names the file, and the list of all readers.

A reader is a function of a path. `@reader` lists it in `READERS`, refuses pipes and devices
before they are opened, and turns whatever a parser raises into one sentence of the library's own error type. What is
read later than that, block by block, stands within `boundary`.
"""

from __future__ import annotations

import functools
import inspect
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from dynident.errors import DynidentError
from dynident.limits import RefusedError

P = ParamSpec("P")
T = TypeVar("T")
_LONGEST = 200  # characters of what a parser says
_LONGEST_MESSAGE = 3000  # characters; the longest that is meant lists forty names


@dataclass(frozen=True)
class Reader:
    """A function that reads files.

    Attributes:
        name: What it reads, in words: "MCAP bag".
        function: It, as others call it.
        failure: Class of its errors.
    """

    name: str
    function: Callable[..., Any]
    failure: type[DynidentError]


READERS: dict[str, Reader] = {}  # by module and name; complete once all modules with readers are imported


def reader(
    name: str, failure: type[DynidentError], *, argument: str = "", key: str = ""
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """List a function that reads files, and let nothing but `DynidentError` out of it.

    Args:
        name: What it reads, in words; messages say "cannot be read as {name}".
        failure: Class of the errors that are not its own.
        argument: Name of its parameter that is the path; default the first.
        key: In `READERS`; default its module and name.
    """

    def register(function: Callable[P, T]) -> Callable[P, T]:
        signature = inspect.signature(function)
        path = argument or next(iter(signature.parameters))

        @functools.wraps(function)
        def read(*args: P.args, **kwargs: P.kwargs) -> T:
            source = signature.bind(*args, **kwargs).arguments[path]  # a call with wrong arguments is a TypeError
            with boundary(source, name, failure):
                refuse_special(source)
                return function(*args, **kwargs)

        READERS[key or f"{function.__module__}.{function.__qualname__}"] = Reader(name, read, failure)
        return read

    return register


@contextmanager
def boundary(source: object, name: str, failure: type[DynidentError]) -> Iterator[None]:
    """Let nothing but `DynidentError` out, in a sentence that names the file.

    Args:
        source: The file.
        name: What it should hold, in words.
        failure: Class of the errors that are not the library's own.
    """
    shown = os.fspath(source) if isinstance(source, str | os.PathLike) else str(source)
    try:
        yield
    except DynidentError as error:
        words = str(error)
        named = words if (Path(shown).name or shown) in words else f"{shown}: {words}"
        error.args = (_on_screen(named), *error.args[1:])
        raise
    except RefusedError as error:
        raise failure.of_file(shown, str(error)) from None
    except Exception as error:  # whatever a parser raises; the cause stays with it, for those who repair the parser
        problem = f"cannot be read as {name} ({reason_of(error)}); it is damaged, or something else"
        raise failure.of_file(shown, problem) from error


def _on_screen(words: str) -> str:
    """A message of which a file cannot make pages, nor commands to the terminal."""
    if len(words) > _LONGEST_MESSAGE:
        words = f"{words[: _LONGEST_MESSAGE // 2]} .. {words[-_LONGEST_MESSAGE // 2 :]}"
    return words if words.isprintable() else "".join(x if x.isprintable() or x == "\n" else "?" for x in words)


def reason_of(error: BaseException) -> str:
    """What went wrong, on one line and short."""
    if isinstance(error, MemoryError):
        return "it needs more memory than there is"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, KeyError):
        return f"it has no {str(error)[:_LONGEST]}"
    words = (error.strerror or "") if isinstance(error, OSError) else ""
    words = words or " ".join(str(error)[: 4 * _LONGEST].split()) or type(error).__name__
    return "".join(x if x.isprintable() else "?" for x in words[:_LONGEST])


_SPECIAL = {
    stat.S_ISFIFO: "a pipe",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
    stat.S_ISSOCK: "a socket",
}


def special_kind(path: Any) -> str:
    """What a path is that is neither file nor folder: a pipe, a device, a socket; empty for all others."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError, TypeError):  # the reader says what is wrong
        return ""
    return next((words for test, words in _SPECIAL.items() if test(mode)), "")


def refuse_special(path: Any) -> None:
    """Refuse what would block for ever or never end.

    Raises:
        RefusedError: For a pipe, a device or a socket.
    """
    if kind := special_kind(path):
        raise RefusedError(f"is {kind}, not a file; copy its content into one")
