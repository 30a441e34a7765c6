"""The variables of a MATLAB v7.3 file, which is HDF5."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import numpy as np

from dynident import limits
from dynident.arrays import Array
from dynident.isolation import call_in_child
from dynident.logs.columns import KINDS
from dynident.logs.log import LogError
from dynident.logs.tables import PART, MemoryTable, check_count, file_digest, refuse_bomb
from dynident.npz import read_npz

_NUMBERS = {"double", "single", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}


def hdf_variables(path: Path) -> tuple[dict[str, Array], list[str]]:
    """Arrays of numbers by name, (n, m) each, a struct's as `struct.field`; and what else there is.

    Raises:
        LogError: If it unpacks beyond reason.
        OSError, RuntimeError, KeyError, ValueError: If it is damaged.
    """
    import h5py

    found: dict[str, Any] = {}
    others: list[str] = []
    with h5py.File(path, "r") as file:
        _sort_in_group(h5py, file, "", found, others)
        # Before a number is read: HDF5 may claim any size without storing a byte of it.
        refuse_bomb(path, sum(data.size * data.dtype.itemsize for data in found.values()))
        # HDF5 has the last axis of MATLAB first.
        return {name: data[()].T for name, data in found.items()}, others


def _sort_in_group(h5py: Any, group: Any, prefix: str, found: dict[str, Any], others: list[str]) -> None:
    """Gather the arrays of numbers of a group and of the structs in it; links to elsewhere are not followed."""
    for key in group:
        name = f"{prefix}{key}"
        if len(found) + len(others) >= limits.LIMITS.columns:
            raise limits.LimitError(f"has more than {limits.LIMITS.columns} variables")
        if key.startswith("#") or not isinstance(group.get(key, getlink=True), h5py.HardLink):
            continue  # MATLAB's own storage of cells and objects
        value = group[key]
        kind = value.attrs.get("MATLAB_class", b"double")
        kind = kind.decode() if isinstance(kind, bytes) else str(kind)
        if "MATLAB_object_decode" in value.attrs:
            others.append(f"{name} (MATLAB object {kind})")
        elif isinstance(value, h5py.Group):
            if prefix.count(".") < 8:
                _sort_in_group(h5py, value, f"{name}.", found, others)
        elif kind in _NUMBERS and value.dtype.kind in "fiu" and value.ndim == 2 and not value.attrs.get("MATLAB_empty"):
            found[name] = value
        else:
            others.append(f"{name} ({kind} {'x'.join(map(str, value.shape[::-1]))})")


# ----------------------------------------------------------------------------------------------------------------------
# Logs as MATLAB files: v5 by SciPy, v7.3 (which is HDF5) by h5py.

_HDF = b"\x89HDF\r\n\x1a\n"
_COMPRESSED = 15  # the type of a v5 element that is a zlib stream
_TIME = ("t", "time", "timestamp")
_PLAIN = "in MATLAB, put the numbers into plain arrays and save those: save('log.mat', 't', 'q', 'tau')"


def mat_table(path: Path) -> MemoryTable:
    """The numeric variables of a .mat file, and those in its structs.

    A vector is a column, a matrix `q` is columns q1 to qn; samples may run down or across. A field of a struct goes by
    its own name, or as `struct.field` where that name occurs twice.

    Raises:
        LogError: If it is no .mat file, unpacks beyond reason, or holds nothing but objects.
    """
    variables, others = _variables(path)
    n_samples = _length(variables)
    headers: list[str] = []
    columns: list[Array] = []
    n_columns = (array.size // n_samples for array in variables.values() if n_samples in array.shape)
    check_count(path, sum(n_columns) if n_samples else 0)
    for name, array in _short_names(variables):
        if n_samples < 2 or n_samples not in array.shape:
            if name in KINDS and n_samples >= 2:
                shape = "x".join(map(str, array.shape))
                raise LogError(str(path), f"'{name}' is {shape}, but the log has {n_samples} samples")
            others.append(f"{name} ({'x'.join(map(str, array.shape))})")
            continue
        samples = array if array.shape[0] == n_samples else array.T
        single = samples.shape[1] == 1 and not (name in KINDS and name != "t")
        headers += [name] if single else [f"{name}{i + 1}" for i in range(samples.shape[1])]
        columns += list(samples.T)
    if not columns:
        raise LogError(str(path), f"has no arrays of numbers, only {', '.join(others[:20]) or 'nothing'}; {_PLAIN}")
    if (twice := Counter(headers).most_common(1)[0])[1] > 1:
        raise LogError(str(path), f"column '{twice[0]}' appears twice; remove or rename one")
    return MemoryTable(headers, columns, others, file_digest(path))


def _variables(path: Path) -> tuple[dict[str, Array], list[str]]:
    """Arrays of numbers by name, (n, m) each, a struct's as `struct.field`; and what else there is.

    The parsers are of C and trust what they read, so that they run in a process of their own.
    """
    try:
        with path.open("rb") as file:
            head = file.read(520)
            hdf = _HDF in (head[:8], head[512:])
            if head[:6] == b"MATLAB" and not hdf:
                _refuse_bomb(path, file, head)
    except FileNotFoundError:
        raise LogError(str(path), "no such file; check the path") from None
    except OSError as error:
        raise LogError(str(path), f"cannot be read ({error.strerror or error})") from None
    if hdf and find_spec("h5py") is None:
        raise LogError(str(path), "reading .mat v7.3 needs h5py: pip install h5py")
    with TemporaryDirectory(prefix="dynident-") as folder:
        target = Path(folder) / "arrays.npz"
        try:
            names, others = call_in_child(convert_mat, path, str(target), hdf)
        except limits.LimitError as error:
            raise LogError(str(path), str(error)) from None
        except limits.RefusedError as error:
            kind = ".mat v7.3" if hdf else "a .mat file"
            raise LogError(str(path), f"cannot be read as {kind} ({error})") from None
        stored = read_npz(target)
        return {name: stored[str(i)] for i, name in enumerate(names)}, others


def convert_mat(source: str, target: str, hdf: bool) -> tuple[list[str], list[str]]:
    """What happens in that process: arrays into an archive by number; their names, and what else there is."""
    arrays, others = hdf_variables(Path(source)) if hdf else _load_v5(Path(source))
    np.savez(target, **{str(i): array for i, array in enumerate(arrays.values())})  # type: ignore[arg-type]
    return list(arrays), others


def _load_v5(path: Path) -> tuple[dict[str, Array], list[str]]:
    from scipy.io import loadmat

    stored = loadmat(path, struct_as_record=True, squeeze_me=False)
    arrays: dict[str, Array] = {}
    others: list[str] = []
    for name, value in stored.items():
        if name == "__function_workspace__" or (name.startswith("__") and not isinstance(value, np.ndarray)):
            continue
        _sort_in_variable(name, value, arrays, others)
    return arrays, others


def _sort_in_variable(name: str, value: Any, arrays: dict[str, Array], others: list[str]) -> None:
    """Put a variable among the arrays, one by one if it is a struct, or among the others."""
    from scipy.io.matlab import MatlabFunction, MatlabObject, MatlabOpaque

    if isinstance(value, MatlabOpaque):
        # SciPy cannot name it: name, system and class come with it.
        own, kind = (str(np.ravel(value[field])[0], "utf-8", "replace") for field in ("s0", "s2"))
        others.append(f"{own} (MATLAB object {kind})")
    elif isinstance(value, MatlabObject | MatlabFunction):
        others.append(f"{name} (MATLAB object)")
    elif value.dtype.names and value.size == 1:
        for field in value.dtype.names:
            _sort_in_variable(f"{name}.{field}", value[field].item(), arrays, others)
    elif value.dtype.kind in "fiu" and value.ndim == 2:
        arrays[name] = value
    else:
        kind = "struct array" if value.dtype.names else {"O": "cell", "U": "text"}.get(value.dtype.kind, value.dtype)
        others.append(f"{name} ({kind} {'x'.join(map(str, value.shape))})")


def _length(variables: dict[str, Array]) -> int:
    """Number of samples: that of time, or else the length that most arrays have."""
    for name, array in variables.items():
        if name.rpartition(".")[2].lower() in _TIME and 1 in array.shape:
            return int(array.size)
    lengths = Counter(max(array.shape) for array in variables.values() if array.size > 1)
    return max(lengths, key=lambda n: (lengths[n], n), default=0)


def _short_names(variables: dict[str, Array]) -> Iterator[tuple[str, Array]]:
    """The arrays by their own names, by the whole path where those would clash."""
    times = Counter(path.rpartition(".")[2] for path in variables)
    for path, array in variables.items():
        short = path.rpartition(".")[2]
        yield (short if times[short] == 1 else path), array


def _refuse_bomb(path: Path, file: BinaryIO, head: bytes) -> None:
    """Unpack the compressed elements of a v5 file piece by piece, without keeping them, and refuse too many bytes."""
    order = ">" if head[126:128] == b"MI" else "<"
    size = 0
    file.seek(128)
    while len(tag := file.read(8)) == 8:
        kind, n_bytes = struct.unpack(order + "II", tag)
        if kind != _COMPRESSED:
            file.seek(n_bytes, 1)
            size += n_bytes
            continue
        for piece in _unpacked_sizes(path, file, n_bytes):
            size += piece
            refuse_bomb(path, size)


def _unpacked_sizes(path: Path, file: BinaryIO, n_bytes: int) -> Iterator[int]:
    """Sizes of the pieces that a zlib stream of `n_bytes` unpacks to."""
    unpacker = zlib.decompressobj()
    while n_bytes > 0 and (packed := file.read(min(n_bytes, PART))):
        n_bytes -= len(packed)
        while packed:
            try:
                yield len(unpacker.decompress(packed, PART))
            except zlib.error as error:
                raise LogError(str(path), f"is damaged ({error}); copy it again") from None
            packed = unpacker.unconsumed_tail
    if n_bytes > 0:
        raise LogError(str(path), "is cut off; copy it again")
