"""Streaming a Parquet file into an `Information`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from dynident.dynamics.terms import TermsLike
from dynident.errors import DynidentError, InputError
from dynident.information.accumulate import Block, Progress, accumulate_own_blocks
from dynident.information.information import Information
from dynident.logs.log import LogError
from dynident.logs.parquet import ParquetTable
from dynident.logs.table import regroup
from dynident.robot.model import Robot

_BATCH = 8192  # rows in memory at a time, per thread


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
        LogError: When the file cannot be read.
        InputError: Naming the file, and the column when one is missing or not numeric.
    """
    table = ParquetTable(Path(path))
    n = len(robot.position_names)
    numbers = [name.removeprefix("q") for name in robot.position_names]
    wanted = [f"{kind}{number}" for kind in ("q", "dq", "ddq", "tau") for number in numbers]
    for name in wanted:
        if name not in table.headers:
            raise InputError(
                f"{path}: has no numeric column '{name}' (numeric columns: {', '.join(table.headers[:40])})"
            )
    places = [table.headers.index(name) for name in wanted]

    def blocks() -> Iterator[Block]:
        for data in regroup(table.parts(places), len(wanted), _BATCH):
            q, dq, ddq, tau = (data[k * n : (k + 1) * n].T for k in range(4))
            yield q, dq, ddq, tau

    try:
        return accumulate_own_blocks(robot, blocks(), terms, columns, threads, str(path), progress, table.n_rows)
    except LogError:
        raise
    except DynidentError as error:
        raise InputError(f"{path}: {error}") from None
