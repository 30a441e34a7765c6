"""Streaming a Parquet file into an `Information`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np

from dynident.dynamics.terms import TermsLike
from dynident.errors import DynidentError, InputError
from dynident.information.accumulate import Block, Progress, accumulate_own_blocks
from dynident.information.information import Information
from dynident.robot.model import Robot

_BATCH = 8192  # rows in memory at a time, per thread
_BUFFER = 1 << 16  # bytes of a column read from the file at a time


def accumulate_parquet(
    robot: Robot,
    path: str | Path,
    terms: TermsLike = None,
    *,
    columns: Literal["base", "standard"] = "base",
    threads: int | None = None,
    progress: Progress | None = None,
) -> Information:
    """`accumulate` for a Parquet file with columns q1.., dq1.., ddq1.., tau1.., read batch by batch.

    Raises:
        InputError: Naming the file, and the column when one is missing or not numeric.
    """
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise InputError("reading Parquet needs pyarrow: pip install 'dynident[parquet]'") from None
    try:
        # Neither mapped nor read ahead: memory stays that of a few batches, however long the file.
        file = parquet.ParquetFile(path, memory_map=False, pre_buffer=False, buffer_size=_BUFFER)
    except (OSError, arrow.ArrowException) as error:
        raise InputError(f"{path}: cannot be read as Parquet ({str(error).splitlines()[0]})") from None
    with file:
        numbers = [name.removeprefix("q") for name in robot.position_names]
        wanted = [f"{kind}{number}" for kind in ("q", "dq", "ddq", "tau") for number in numbers]
        schema = file.schema_arrow
        for name in wanted:
            if schema.names.count(name) > 1:
                raise InputError(f"{path}: has two columns '{name}'; remove or rename one")
            if name not in schema.names:
                raise InputError(f"{path}: has no column '{name}' (columns: {', '.join(schema.names[:40])})")
            if not arrow.types.is_floating(schema.field(name).type):
                raise InputError(f"{path}: column '{name}' is {schema.field(name).type}; expected floating point")

        def blocks() -> Iterator[Block]:
            n = len(numbers)
            for batch in file.iter_batches(batch_size=_BATCH, columns=wanted, use_threads=False):
                data = np.empty((len(wanted), batch.num_rows))
                for i, name in enumerate(wanted):
                    data[i] = batch.column(name).to_numpy(zero_copy_only=False)
                q, dq, ddq, tau = (data[k * n : (k + 1) * n].T for k in range(4))
                yield q, dq, ddq, tau

        try:
            return accumulate_own_blocks(
                robot, blocks(), terms, columns, threads, str(path), progress, file.metadata.num_rows
            )
        except DynidentError as error:
            raise InputError(f"{path}: {error}") from None
        except (OSError, arrow.ArrowException) as error:
            raise InputError(f"{path}: is damaged ({str(error).splitlines()[0]})") from None
