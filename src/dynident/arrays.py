"""Arrays and immutable records: shape checks whose messages name the array, read-only copies, one BLAS thread."""

from __future__ import annotations

import dataclasses
import functools
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, ParamSpec, TypeVar, dataclass_transform

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.display import short_repr
from dynident.errors import InputError, UnknownNameError

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
K = TypeVar("K")
V = TypeVar("V")
P = ParamSpec("P")
T = TypeVar("T")


def frozen(values: ArrayLike) -> Array:
    """A read-only float64 copy, for records."""
    array = np.array(values, dtype=np.float64)
    array.setflags(write=False)
    return array


def frozen_mask(mask: ArrayLike) -> Mask:
    """A read-only boolean copy, for records."""
    copy = np.array(mask, dtype=bool)
    copy.setflags(write=False)
    return copy


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
    if "numpy.ma" in sys.modules and np.ma.isMaskedArray(values):  # else there are none, and it takes long to load
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


def finite_or_none(value: float) -> float | None:
    """A number for JSON, which knows neither infinity nor NaN."""
    return float(value) if np.isfinite(value) else None


def gather_arrays(parts: Mapping[str, Any]) -> dict[str, Any]:
    """What `as_arrays` of some parts gives, each name behind that of its part; a part may be None."""
    present = {name: part for name, part in parts.items() if part is not None}
    return {f"{name}.{key}": x for name, part in present.items() for key, x in part.as_arrays().items()}


def restore_parts(parts: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Give each part back what `gather_arrays` took from it."""
    for name, part in parts.items():
        if part is not None:
            prefix = f"{name}."
            part.restore({key.removeprefix(prefix): x for key, x in arrays.items() if key.startswith(prefix)})


class ReadOnlyDict(dict[K, V]):
    """A mapping that cannot be changed, but copied and pickled like any other."""

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("this mapping belongs to an immutable record; make a changed copy instead")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[ReadOnlyDict[K, V]], tuple[dict[K, V]]]:
        return type(self), (dict(self),)


_FROZEN: dict[str, Callable[[Any], Any]] = {"Array": frozen, "Mask": frozen_mask, "Mapping": ReadOnlyDict}


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(dataclasses.field, dataclasses.Field))
def record(cls: type[T]) -> type[T]:
    """A frozen dataclass compared by identity, with a short `repr`, that stores arrays, masks and mappings read-only.

    A field is an array, a mask or a mapping if its annotation begins with `Array`, `Mask` or `Mapping`; None stays
    None, and what is read-only already is not copied. The annotations must not be evaluated
    (`from __future__ import annotations`).
    """
    check = cls.__dict__.get("__post_init__")
    kinds = {name: kind for name, kind in _annotations(cls) if kind in _FROZEN}

    def __post_init__(self: Any) -> None:  # noqa: N807 - what dataclasses call it
        for name, kind in kinds.items():
            value = getattr(self, name)
            if value is not None and not _is_read_only(value, kind):
                object.__setattr__(self, name, _FROZEN[kind](value))
        if check is not None:
            check(self)

    cls.__post_init__ = __post_init__  # type: ignore[attr-defined]
    if cls.__repr__ is object.__repr__:
        cls.__repr__ = short_repr  # type: ignore[method-assign]
    return dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls)


def _annotations(cls: type) -> list[tuple[str, str]]:
    """Names of the fields, and the first word of their annotations."""
    own = [pair for kind in reversed(cls.__mro__) for pair in vars(kind).get("__annotations__", {}).items()]
    return [(name, str(text).split("[")[0].split(" ")[0]) for name, text in own]


def _is_read_only(value: Any, kind: str) -> bool:
    if kind == "Mapping":
        return isinstance(value, ReadOnlyDict)
    wanted = np.float64 if kind == "Array" else np.bool_
    return isinstance(value, np.ndarray) and value.dtype == wanted and not value.flags.writeable


_TRIES = 10  # OpenBLAS ignores a change now and then when other threads are busy in it


class _Holder:
    """Holds the linear algebra library to one thread while anybody needs it, whichever caller comes or goes first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before: list[int] = []  # threads of each library while nobody holds it

    @functools.cached_property
    def _libraries(self) -> list[Any]:
        import numpy  # noqa: F401 - its linear algebra must be loaded to be found
        from threadpoolctl import ThreadpoolController

        return list(ThreadpoolController().select(user_api="blas").lib_controllers)

    def enter(self) -> None:
        """One more user."""
        with self._lock:
            if self._users == 0:
                self._before = [library.num_threads for library in self._libraries]
                self._set([1] * len(self._before))
            self._users += 1

    def leave(self) -> None:
        """One user less; the last one gives the threads back."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._set(self._before)

    def _set(self, counts: list[int]) -> None:
        for library, count in zip(self._libraries, counts, strict=True):
            for _ in range(_TRIES):
                library.set_num_threads(count)
                if library.num_threads == count:
                    break


_holder = _Holder()


def on_one_thread(function: Callable[P, T]) -> Callable[P, T]:
    """The function, with the linear algebra library held to one thread while it runs."""

    @functools.wraps(function)
    def held(*args: P.args, **kwargs: P.kwargs) -> T:
        _holder.enter()
        try:
            return function(*args, **kwargs)
        finally:
            _holder.leave()

    return held
