"""`write_log`: a log as a file that `read_log` reads."""

from __future__ import annotations

import gzip
import io
from os import PathLike
from pathlib import Path
from typing import IO

import numpy as np

from dynident.errors import InputError
from dynident.files import write_whole
from dynident.logs.log import Log

_ENDINGS = (".csv", ".csv.gz", ".parquet", ".npz")


def write_log(log: Log, path: str | PathLike[str]) -> None:
    """Write a log as CSV, CSV.gz, Parquet or npz, by the ending of `path`.

    Text has nine significant digits, and stamps to the nanosecond; Parquet and npz keep every bit.

    Raises:
        InputError: For another ending, or a folder that is not there.
    """
    ending = log_ending(path)
    columns = {"t": log.time, **log.channels}
    if ending == ".parquet":
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise InputError(f"{path}: writing Parquet needs pyarrow: pip install pyarrow") from None
        table = pyarrow.table(columns)
        write_whole(Path(path), lambda file: pyarrow.parquet.write_table(table, file))
    elif ending == ".npz":
        write_whole(Path(path), lambda file: np.savez(file, **columns))  # type: ignore[arg-type]
    else:
        text = _text(log)
        write_whole(Path(path), lambda file: _write_text(file, text, ending == ".csv.gz"))


def log_ending(path: str | PathLike[str]) -> str:
    """The ending that says how a log is written.

    Raises:
        InputError: When there is none.
    """
    for ending in _ENDINGS:
        if str(path).lower().endswith(ending):
            return ending
    raise InputError(f"{path}: a log must end in {', '.join(_ENDINGS)}")


def _text(log: Log) -> bytes:
    rows = np.column_stack(list(log.channels.values())) if log.channels else np.empty((len(log), 0))
    out = io.StringIO()
    out.write(",".join(["t", *log.channels]) + "\n")
    pattern = "%.9f" + ",%.9g" * rows.shape[1] + "\n"
    out.writelines(pattern % (t, *row) for t, row in zip(log.time.tolist(), rows.tolist(), strict=True))
    return out.getvalue().encode()


def _write_text(file: IO[bytes], text: bytes, packed: bool) -> None:
    if not packed:
        file.write(text)
        return
    with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as zipped:  # no name or date: the same bytes
        zipped.write(text)
