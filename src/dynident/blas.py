"""Small dense problems on one thread: handing a 60 x 60 matrix to several costs fifty times the work itself."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


_TRIES = 10  # OpenBLAS ignores a change now and then when other threads are busy in it


class _Holder:
    """Holds the linear algebra library to one thread while anybody needs it, whichever caller comes or goes first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before: list[int] = []  # threads of each library while nobody holds it

    @functools.cached_property
    def _libraries(self) -> list[Any]:
        import numpy  # noqa: F401 - its linear algebra must be loaded to be found
        from threadpoolctl import ThreadpoolController

        return list(ThreadpoolController().select(user_api="blas").lib_controllers)

    def enter(self) -> None:
        """One more user."""
        with self._lock:
            if self._users == 0:
                self._before = [library.num_threads for library in self._libraries]
                self._set([1] * len(self._before))
            self._users += 1

    def leave(self) -> None:
        """One user less; the last one gives the threads back."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._set(self._before)

    def _set(self, counts: list[int]) -> None:
        for library, count in zip(self._libraries, counts, strict=True):
            for _ in range(_TRIES):
                library.set_num_threads(count)
                if library.num_threads == count:
                    break


_holder = _Holder()


def on_one_thread(function: Callable[P, T]) -> Callable[P, T]:
    """The function, with the linear algebra library held to one thread while it runs."""

    @functools.wraps(function)
    def held(*args: P.args, **kwargs: P.kwargs) -> T:
        _holder.enter()
        try:
            return function(*args, **kwargs)
        finally:
            _holder.leave()

    return held
