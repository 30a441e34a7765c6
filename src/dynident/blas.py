"""Small dense problems on one thread: handing a 60 x 60 matrix to several costs fifty times the work itself."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


@functools.cache
def _controller() -> object:
    import numpy  # noqa: F401 - its linear algebra must be loaded to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def on_one_thread(function: Callable[P, T]) -> Callable[P, T]:
    """The function, with the linear algebra library held to one thread while it runs."""

    @functools.wraps(function)
    def held(*args: P.args, **kwargs: P.kwargs) -> T:
        with _controller().limit(limits=1, user_api="blas"):  # type: ignore[attr-defined]
            return function(*args, **kwargs)

    return held
