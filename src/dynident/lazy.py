"""Names of a room that are looked up on first use, so that its options can be read without loading all of it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    room: str, modules: Mapping[str, str], renamed: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a room.

    Args:
        room: Name of the package.
        modules: Public names, separated by spaces, by the module that holds them.
        renamed: Names of before -> names of now, until 0.6; in full for those that moved to another room.
    """
    module_of = {name: module for module, names in modules.items() for name in names.split()}
    old = dict(renamed or {})

    def look_up(name: str) -> Any:
        if name in old:
            module, _, new = old[name].rpartition(".")
            warnings.warn(
                f"{room}.{name} is now {module or room}.{new} and will be gone in 0.6", DeprecationWarning, stacklevel=2
            )
            return getattr(import_module(module) if module else sys.modules[room], new)
        if f"{room}.{name}" in modules:
            return import_module(f"{room}.{name}")
        if name not in module_of:
            raise AttributeError(f"module '{room}' has no attribute '{name}'")
        return getattr(import_module(module_of[name]), name)

    names = sorted(module_of)
    return look_up, lambda: names, names
