"""Names of a room that are imported when they are asked for, so that its option records load no NumPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    room: str, modules: Mapping[str, str], renamed: Mapping[str, str] | None = None
) -> tuple[list[str], Callable[[str], Any]]:
    """`__all__` and `__getattr__` of a room.

    Args:
        room: The package.
        modules: Names, separated by spaces, by the module of the room that defines them.
        renamed: Names of before -> names of now; until 0.6.
    """
    module_of = {name: f"{room}.{module}" for module, names in modules.items() for name in names.split()}

    def find(name: str) -> Any:
        new = (renamed or {}).get(name)
        if new is not None:
            warnings.warn(f"{room}.{name} is now {new} and will be gone in 0.6", DeprecationWarning, stacklevel=2)
            name = new
        if name not in module_of:
            raise AttributeError(f"module '{room}' has no attribute '{name}'")
        return getattr(import_module(module_of[name]), name)

    return sorted(module_of), find
