"""One tree of exceptions: the thing, what was expected, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any


class DynidentError(Exception):
    """Base of every error dynident raises on purpose; the command line prints it and exits with code 2.

    Attributes:
        answer: What was done before it, for `--json`.
    """

    answer: Mapping[str, Any] = MappingProxyType({})

    @classmethod
    def of_file(cls, source: str, problem: str) -> DynidentError:
        """The error of this class for a file as a whole."""
        return cls(f"{source}: {problem}")


class FileWarning(UserWarning):
    """A file that is read, with a reservation; the message names it."""


class RobotFileError(DynidentError):
    """A robot description that cannot be used.

    Args:
        source: File (or bundled name) the description came from.
        where: Element of the file, such as ``joint 'elbow'``; empty when it is the whole file.
        problem: What is wrong, what was expected and what to do.
    """

    def __init__(self, source: str, where: str, problem: str) -> None:
        self.source = source
        self.where = where
        self.problem = problem
        super().__init__(": ".join(part for part in (source, where, problem) if part))

    @classmethod
    def of_file(cls, source: str, problem: str) -> DynidentError:
        """The error of this class for a file as a whole."""
        return cls(source, "", problem)


class UnknownNameError(DynidentError):
    """A name that is not among the valid ones; the message lists them."""

    def __init__(self, kind: str, name: object, valid: Iterable[str]) -> None:
        super().__init__(f"unknown {kind} '{name}'{suggestion(str(name), valid)}")


class InputError(DynidentError):
    """An argument with a wrong shape, type or value."""


class SingularError(DynidentError):
    """A problem without a unique solution, such as a mass matrix that cannot be inverted."""


class InfeasibleError(DynidentError):
    """Constraints that nothing fulfils together; the message names the one that is broken, where that is known."""


def suggestion(name: str, valid: Iterable[str]) -> str:
    """The closing words of an unknown-name message: the nearest valid name, and the valid ones."""
    choices = list(valid)
    near = difflib.get_close_matches(name, choices, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    more = f" and {len(choices) - 40} more" if len(choices) > 40 else ""
    return f"{hint} (valid: {', '.join(choices[:40]) or 'none'}{more})"
