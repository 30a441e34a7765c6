"""Names of a room that are looked up on first use, so that its options can be read without loading all of it."""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def names_for_type_checkers(package: str) -> dict[str, str]:
    """Name -> module of what a package imports under `if TYPE_CHECKING`, from its source: the table of its names."""
    spec = sys.modules[package].__spec__
    source = spec.loader.get_source(package)  # type: ignore[union-attr]
    blocks = [node for node in ast.parse(source).body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def lazy_names(
    room: str, renamed: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a room; its names are those it imports under `if TYPE_CHECKING`.

    Args:
        room: Name of the package.
        renamed: Names of before -> names of now, until 0.6; in full for those that moved to another room.
    """
    module_of = names_for_type_checkers(room)
    old = dict(renamed or {})

    def look_up(name: str) -> Any:
        if name in old:
            module, _, new = old[name].rpartition(".")
            warnings.warn(
                f"{room}.{name} is now {module or room}.{new} and will be gone in 0.6", DeprecationWarning, stacklevel=2
            )
            return getattr(import_module(module) if module else sys.modules[room], new)
        if name in module_of:
            return getattr(import_module(module_of[name]), name)
        if not name.startswith("_") and find_spec(f"{room}.{name}"):
            return import_module(f"{room}.{name}")
        raise AttributeError(f"module '{room}' has no attribute '{name}'")

    names = sorted(module_of)
    return look_up, lambda: names, names
