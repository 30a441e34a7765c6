"""Logs as Parquet, read in memory that does not grow with the file."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.limits import Expansion, LimitError
from dynident.logs.log import LogError
from dynident.logs.parquet_scan import scan_parquet
from dynident.logs.tables import file_digest
from dynident.readers import reason_of

SMALL_PARQUET = 1 << 25  # bytes of numbers that may be kept in memory
_BATCH = 4096  # rows decoded at a time
_TOGETHER = 1 << 16  # rows of short row groups read in one go, as opening each takes time
_NEEDS_PYARROW = "reading Parquet needs pyarrow: pip install pyarrow"
_BUFFER = 1 << 14  # bytes of a column read from the file at a time


class ParquetTable:
    """The numeric columns of a Parquet file.

    Args:
        path: The file.

    Raises:
        LogError: If it is no Parquet file, or names a column twice.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.units: list[str] = []
        self.warnings: tuple[str, ...] = ()
        check_parquet(path)
        with _parquet_file(path) as (arrow, file):
            schema = file.schema_arrow
            is_number = [arrow.types.is_floating(kind) or arrow.types.is_integer(kind) for kind in schema.types]
            self.headers = [name for name, numeric in zip(schema.names, is_number, strict=True) if numeric]
            described = zip(schema.names, schema.types, is_number, strict=True)
            self.others = [f"{name} ({kind})" for name, kind, numeric in described if not numeric]
            self.n_rows = int(file.metadata.num_rows)
            counts = Counter(schema.names)
            for name in self.headers:
                if counts[name] > 1:
                    raise LogError(str(path), f"column '{name}' appears twice; remove or rename one")
        if not self.headers:
            raise LogError(str(path), f"has no numeric column, only {', '.join(self.others) or 'none at all'}")

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of the file."""
        return file_digest(self.path)

    def fits(self, n_columns: int) -> bool:
        """Whether so many columns, as doubles, are small enough to be kept in memory."""
        return self.n_rows * n_columns * 8 <= SMALL_PARQUET

    def parts(self, places: Sequence[int]) -> Iterator[Array]:
        """The columns at these places, (n_places, n) each; a null is NaN."""
        names = [self.headers[place] for place in places]
        meter = Expansion.of(self.path)
        with _parquet_file(self.path) as (arrow, file):
            for groups in _row_groups(file.metadata):
                for batch in file.iter_batches(_BATCH, row_groups=groups, columns=names, use_threads=False):
                    part = np.empty((len(names), batch.num_rows))
                    meter.add(part.nbytes)
                    for i, name in enumerate(names):
                        part[i] = batch.column(name).to_numpy(zero_copy_only=False)
                    yield part
                # Else the allocator keeps the pages of these row groups beside those of the next.
                arrow.default_memory_pool().release_unused()


def check_parquet(path: Path) -> None:
    """Look at the structure of a Parquet file before Arrow does.

    Raises:
        LogError: If it is damaged, or beyond a limit, or Arrow is not installed.
    """
    with suppress(ImportError):  # a finder may refuse
        if find_spec("pyarrow") is not None:
            return _check(path)
    raise LogError(str(path), _NEEDS_PYARROW)


def _check(path: Path) -> None:
    try:
        with path.open("rb") as file:
            scan_parquet(file)
    except FileNotFoundError:
        raise LogError(str(path), "no such file; check the path") from None
    except LimitError as error:
        raise LogError(str(path), str(error)) from None
    except (OSError, ValueError, IndexError, OverflowError) as error:
        raise LogError(str(path), f"cannot be read as Parquet ({reason_of(error)})") from None


def _row_groups(metadata: Any) -> Iterator[list[int]]:
    """Which row groups to read in one go: a long one alone, as pyarrow opens the next before it lets go of it."""
    together: list[int] = []
    n_rows = 0
    for group in range(metadata.num_row_groups):
        n = metadata.row_group(group).num_rows
        if together and n_rows + n > _TOGETHER:
            yield together
            together, n_rows = [], 0
        together.append(group)
        n_rows += n
    if together:
        yield together


@contextmanager
def _parquet_file(path: Path) -> Iterator[tuple[Any, Any]]:
    """pyarrow and the opened file; what goes wrong in reading it becomes a `LogError`."""
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise LogError(str(path), _NEEDS_PYARROW) from None
    try:
        # Neither mapped nor read ahead: memory stays that of a page per column, however long the file.
        with parquet.ParquetFile(path, memory_map=False, pre_buffer=False, buffer_size=_BUFFER) as file:
            yield arrow, file
    except FileNotFoundError:
        raise LogError(str(path), "no such file; check the path") from None
    except LimitError as error:
        raise LogError(str(path), str(error)) from None
    except (OSError, arrow.ArrowException) as error:
        raise LogError(str(path), f"cannot be read as Parquet ({str(error).splitlines()[0]})") from None
