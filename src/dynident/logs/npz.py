"""Logs as NumPy archives."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from dynident.checks import Array
from dynident.logs.log import LogError
from dynident.logs.table import file_digest


class NpzTable:
    """One array per column, or (n_samples, n) arrays named q, dq, tau, ... for columns 1 to n.

    Args:
        path: The file.

    Raises:
        LogError: If it is no npz file, or its arrays differ in length.
    """

    def __init__(self, path: Path) -> None:
        self.units: list[str] = []
        self.others: list[str] = []
        self.headers: list[str] = []
        self._columns: list[Array] = []
        arrays = _arrays(path)
        for name, array in arrays.items():
            if array.dtype.kind not in "fiu" or array.ndim not in (1, 2):
                self.others.append(f"{name} ({array.dtype}, {array.ndim} dimensions)")
                continue
            for i in range(1 if array.ndim == 1 else array.shape[1]):
                self.headers.append(name if array.ndim == 1 else f"{name}{i + 1}")
                self._columns.append(array if array.ndim == 1 else array[:, i])
        if len({len(column) for column in self._columns}) != 1:
            shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
            raise LogError(str(path), f"its arrays must have one length (it has {shapes or 'none'})")
        self.digest = file_digest(path)

    def fits(self, n_columns: int) -> bool:
        """True: it is in memory already."""
        return True

    def parts(self, places: Sequence[int]) -> Iterator[Array]:
        """The columns at these places, (n_places, n_samples)."""
        yield np.array([self._columns[place] for place in places], dtype=np.float64)


def _arrays(path: Path) -> dict[str, Array]:
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except FileNotFoundError:
        raise LogError(str(path), "no such file; check the path") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise LogError(str(path), f"cannot be read as npz ({error})") from None
