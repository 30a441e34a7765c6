"""The variables of a MATLAB v7.3 file, which is HDF5."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dynident.arrays import Array
from dynident.logs.log import LogError
from dynident.logs.memory import refuse_bomb

_NUMBERS = {"double", "single", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}


def hdf_variables(path: Path) -> tuple[dict[str, Array], list[str]]:
    """Arrays of numbers by name, (n, m) each, a struct's as `struct.field`; and what else there is.

    Raises:
        LogError: If h5py is missing, or the file is damaged or unpacks beyond reason.
    """
    try:
        import h5py
    except ImportError:
        raise LogError(str(path), "reading .mat v7.3 needs h5py: pip install 'dynident[mat]'") from None
    found: dict[str, Any] = {}
    others: list[str] = []
    try:
        with h5py.File(path, "r") as file:
            _sort_in(h5py, file, "", found, others)
            # Before a number is read: HDF5 may claim any size without storing a byte of it.
            refuse_bomb(path, sum(data.size * data.dtype.itemsize for data in found.values()))
            # HDF5 has the last axis of MATLAB first.
            return {name: data[()].T for name, data in found.items()}, others
    except (OSError, RuntimeError, KeyError, ValueError) as error:
        raise LogError(str(path), f"cannot be read as .mat v7.3 ({error})") from None


def _sort_in(h5py: Any, group: Any, prefix: str, found: dict[str, Any], others: list[str]) -> None:
    """Gather the arrays of numbers of a group and of the structs in it; links to elsewhere are not followed."""
    for key in group:
        name = f"{prefix}{key}"
        if key.startswith("#") or not isinstance(group.get(key, getlink=True), h5py.HardLink):
            continue  # MATLAB's own storage of cells and objects
        value = group[key]
        kind = value.attrs.get("MATLAB_class", b"double")
        kind = kind.decode() if isinstance(kind, bytes) else str(kind)
        if "MATLAB_object_decode" in value.attrs:
            others.append(f"{name} (MATLAB object {kind})")
        elif isinstance(value, h5py.Group):
            if prefix.count(".") < 8:
                _sort_in(h5py, value, f"{name}.", found, others)
        elif kind in _NUMBERS and value.dtype.kind in "fiu" and value.ndim == 2 and not value.attrs.get("MATLAB_empty"):
            found[name] = value
        else:
            others.append(f"{name} ({kind} {'x'.join(map(str, value.shape[::-1]))})")
