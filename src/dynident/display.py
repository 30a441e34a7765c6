"""How records show themselves: a short `repr` and tables as HTML for notebooks. Importable without NumPy."""

from __future__ import annotations

import dataclasses
import html
import importlib
import reprlib
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from dynident.errors import InputError, UnknownNameError

T = TypeVar("T")
MAX_LINES = 10  # of the repr of any public object
_WIDTH = 100  # characters of such a line
_TEXT = 60  # characters of a text
_ITEMS = 4  # of a sequence of plain values that are shown


def brief(cls: type[T]) -> type[T]:
    """Give a dataclass a `repr` of at most ten lines, unless it has one of its own; stands above `@dataclass`."""
    cls.__repr__ = short_repr  # type: ignore[method-assign]
    return cls


@reprlib.recursive_repr()
def short_repr(record: Any) -> str:
    """A record by its fields: plain values as they are, arrays by their shape, others by their class and number.

    >>> import dynident as di
    >>> di.load_robot("pendulum-2").joints[1]
    Joint(name='joint2', number=2, kind='revolute', parent=0, before=Transform(..), after=Transform(..),
        passive=None, limits=Limits(..))
    """
    fields = (field for field in dataclasses.fields(record) if field.repr)
    parts = [f"{field.name}={brief_value(getattr(record, field.name))}" for field in fields]
    text = f"{type(record).__name__}({', '.join(parts)})"
    lines = textwrap.wrap(text, _WIDTH, subsequent_indent="    ", break_on_hyphens=False) or [text]
    return "\n".join(lines if len(lines) <= MAX_LINES else [*lines[: MAX_LINES - 1], "    ..)"])


def brief_value(value: Any) -> str:
    """A value in few words."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if value is None or isinstance(value, bool | int):
        return repr(value)
    if isinstance(value, str):
        return repr(value if len(value) <= _TEXT else f"{value[: _TEXT - 2]}..")
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and hasattr(value, "dtype"):
        return f"array{shape}" if shape else repr(value.item())
    if isinstance(value, Mapping):
        return "{}" if not value else f"{{{len(value)} {'entry' if len(value) == 1 else 'entries'}}}"
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        if len(value) <= _ITEMS and all(x is None or isinstance(x, bool | int | float | str) for x in value):
            return f"({', '.join(map(brief_value, value))}{',' if len(value) == 1 else ''})"
        kinds = {type(item).__name__ for item in value}
        return f"({len(value)} {kinds.pop() if len(kinds) == 1 else 'items'})" if value else "()"
    if dataclasses.is_dataclass(value):
        return f"{type(value).__name__}(..)"
    text = repr(value)
    return text if len(text) <= _TEXT and "\n" not in text else f"<{type(value).__name__}>"


def brief_names(names: Iterable[str]) -> str:
    """Names, the first and the last where there are many."""
    known = list(names)
    return ", ".join(known) if len(known) <= _ITEMS else f"{known[0]} .. {known[-1]} ({len(known)})"


# ----------------------------------------------------------------------------------------------------------------------
# Notebooks and data frames.


def html_table(head: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> str:
    """A plain table with a line above it, as notebooks show it; every cell is text."""
    lines = [f"<tr>{''.join(f'<th>{html.escape(cell)}</th>' for cell in head)}</tr>"]
    lines += [f"<tr>{''.join(f'<td>{html.escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows]
    above = f"<p><b>{html.escape(title)}</b></p>" if title else ""
    return f"{above}<table>{''.join(lines)}</table>"


_LIBRARIES = ("pandas", "polars")


def data_frame(columns: Mapping[str, Sequence[Any] | Any], library: str | None = None, *, index: str = "") -> Any:
    """Columns as a data frame of pandas, or of polars where that is installed instead.

    Args:
        columns: Values by name of the column.
        library: "pandas" or "polars"; default the first that is installed.
        index: Column that names the rows of a pandas frame; polars, which has no index, keeps it as a column.

    Raises:
        InputError: Where neither is installed, or not the one that is asked for.
    """
    if library is not None and library not in _LIBRARIES:
        raise UnknownNameError("library of data frames", library, _LIBRARIES)
    for name in _LIBRARIES if library is None else (library,):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        frame = module.DataFrame(dict(columns))
        return frame.set_index(index) if index and name == "pandas" else frame
    raise InputError(f"to_frame needs {library or 'pandas or polars'}: pip install {library or 'pandas'}")
