"""Checks of array arguments whose messages name the array, what was expected and what came."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import InputError, UnknownNameError

Array = NDArray[np.float64]


def frozen(values: ArrayLike) -> Array:
    """A read-only float64 copy, for records."""
    array = np.array(values, dtype=np.float64)
    array.setflags(write=False)
    return array


def place_of(name: object, names: Sequence[str], kind: str) -> int:
    """Place of a name among others.

    Args:
        name: What the caller passed; a number or a mask is no name.
        names: The valid ones.
        kind: What they are, for the message.

    Raises:
        UnknownNameError: Listing the valid names.
    """
    if not isinstance(name, str) or name not in names:
        raise UnknownNameError(kind, name, names)
    return names.index(name)


def as_matrix(values: ArrayLike, name: str, labels: Sequence[str], n_samples: int | None = None) -> Array:
    """`values` as (n_samples, len(labels)) float64; one sample may be given without its axis.

    Args:
        values: What the caller passed.
        name: Name of the argument, for the message.
        labels: What each column is, such as the joint names.
        n_samples: Required number of samples, None for any.
    """
    if np.ma.isMaskedArray(values):
        raise InputError(f"{name} is a masked array; leave the masked samples out")
    if np.iscomplexobj(values):
        raise InputError(f"{name} must be real numbers, not complex ones")
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be an array of numbers") from None
    if array.ndim == 1 and array.shape[0] == len(labels) and n_samples in (None, 1):
        array = array[None, :]
    if array.ndim != 2 or array.shape[1] != len(labels):
        raise InputError(
            f"{name} must have shape (n_samples, {len(labels)}), columns {', '.join(labels)}; got {array.shape}"
        )
    if n_samples is not None and array.shape[0] != n_samples:
        raise InputError(f"{name} must have {n_samples} samples as q has; got {array.shape[0]}")
    return array


def as_samples(values: ArrayLike, name: str, labels: Sequence[str], n_samples: int | None = None) -> Array:
    """`as_matrix`, and every number finite."""
    array = as_matrix(values, name, labels, n_samples)
    bad = ~np.isfinite(array)
    if bad.any():
        sample, column = np.argwhere(bad)[0]
        raise InputError(
            f"{name} is {array[sample, column]} at sample {sample}, column {labels[column]}; "
            "remove or repair such samples first"
        )
    return array


def whole_strides(x: Array) -> Array:
    """The array, copied if its samples are not a whole number of doubles apart (a column of packed records)."""
    return x if all(stride % 8 == 0 for stride in x.strides) else np.ascontiguousarray(x)
