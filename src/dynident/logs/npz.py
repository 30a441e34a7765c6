"""Logs as NumPy archives."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from dynident.arrays import Array
from dynident.logs.log import LogError
from dynident.logs.memory import MemoryTable, refuse_bomb
from dynident.logs.table import file_digest


def npz_table(path: Path) -> MemoryTable:
    """One array per column, or (n_samples, n) arrays named q, dq, tau, ... for columns 1 to n.

    Raises:
        LogError: If it is no npz file, unpacks beyond reason, or its arrays differ in length.
    """
    others: list[str] = []
    headers: list[str] = []
    columns: list[Array] = []
    arrays = _arrays(path)
    for name, array in arrays.items():
        if array.dtype.kind not in "fiu" or array.ndim not in (1, 2):
            others.append(f"{name} ({array.dtype}, {array.ndim} dimensions)")
            continue
        for i in range(1 if array.ndim == 1 else array.shape[1]):
            headers.append(name if array.ndim == 1 else f"{name}{i + 1}")
            columns.append(array if array.ndim == 1 else array[:, i])
    if len({len(column) for column in columns}) != 1:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise LogError(str(path), f"its arrays must have one length (it has {shapes or 'none'})")
    return MemoryTable(headers, columns, others, file_digest(path))


def _arrays(path: Path) -> dict[str, Array]:
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                refuse_bomb(path, sum(member.file_size for member in archive.infolist()))
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except FileNotFoundError:
        raise LogError(str(path), "no such file; check the path") from None
    except (OSError, ValueError, EOFError, MemoryError, zipfile.BadZipFile) as error:
        raise LogError(str(path), f"cannot be read as npz ({error})") from None
