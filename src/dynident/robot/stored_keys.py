"""Keys of stored records, each declared once: how it is written as plain data, and how it is read back."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.robot.model import BASE, Robot, Transform
from dynident.schema import LocatedReader

Around = Mapping[str, Any]  # fields of the record that were read before, and what stands around it


@dataclass(frozen=True)
class StoredKey:
    """One key of a record.

    Attributes:
        write: Its plain value from the object and the robot; None where that is as usual, and left out.
        read: Its value from reader, plain value, place for messages, and what stands around.
        usual: Its value where it is absent; None for a key that must be there.
    """

    write: Callable[[Any, Robot], Any]
    read: Callable[[LocatedReader, Any, str, Around], Any]
    usual: Callable[[Around], Any] | None = None


Keys = Mapping[str, StoredKey]


def write_record(keys: Keys, part: Any, robot: Robot) -> dict[str, Any]:
    """A part of a robot as a record, what is as usual left out."""
    return without_none({name: key.write(part, robot) for name, key in keys.items()})


def read_record(
    reader: LocatedReader, keys: Keys, value: object, where: str, around: Around, *more: str
) -> dict[str, Any]:
    """The fields of a record; `more` are keys that must be there and mean nothing here."""
    required = (*more[:1], *(name for name, key in keys.items() if key.usual is None), *more[1:])
    record = reader.record(value, where, required, [name for name, key in keys.items() if key.usual is not None])
    found: dict[str, Any] = {}
    for name, key in keys.items():
        beside = {**around, **found}
        if name in record or key.usual is None:
            found[name] = key.read(reader, record[name], f"{where} {name}".strip(), beside)
        else:
            found[name] = key.usual(beside)
    return found


def without_none(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record without the keys that have no value."""
    return {key: value for key, value in record.items() if value is not None}


def plain(value: Any) -> Any:
    """Numbers of any type as Python floats, also within mappings; anything else stays, for the check to name it."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return float(value) if isinstance(value, numbers.Real) and not isinstance(value, bool) else value


def unusual(array: Array, usual: Array) -> list[Any] | None:
    """The array as nested lists, None when it is `usual` to the last bit; 0.0 and -0.0 differ."""
    same = array.shape == usual.shape and array.tobytes() == usual.tobytes()
    return None if same else list(array.tolist())


# ----------------------------------------------------------------------------------------------------------------------
# Kinds of keys that several records have.


Read = Callable[[LocatedReader, Any, str, Around], Any]


def read_by(method: Callable[[LocatedReader, Any, str], Any]) -> Read:
    """Read by a method of the reader that needs nothing around."""
    return lambda reader, value, where, _: method(reader, value, where)


def write_own(name: str) -> Callable[[Any, Robot], Any]:
    """The attribute as it is."""
    return lambda part, _: getattr(part, name)


def text_key(name: str) -> StoredKey:
    """A name."""
    return StoredKey(write_own(name), read_by(LocatedReader.text))


def choice_key(name: str, valid: Sequence[Any], usual: Any) -> StoredKey:
    """One of some values, the first that is usual left out."""
    return StoredKey(
        lambda part, _: None if getattr(part, name) == usual else getattr(part, name),
        lambda reader, value, where, _: reader.choice(value, where, valid),
        lambda _: usual,
    )


def frame_data(frame: Transform) -> list[list[float]] | None:
    """Rows of [axes | origin], None for the identity."""
    return unusual(np.column_stack([frame.rotation, frame.translation]), np.eye(3, 4))


def read_frame(reader: LocatedReader, value: object, where: str, _: Around) -> Transform:
    """A frame from rows of [axes | origin]."""
    matrix = reader.array(value, where, 3, 4)
    return Transform(matrix[:, :3], matrix[:, 3])


def frame_key(name: str) -> StoredKey:
    """A frame; the identity is left out."""
    return StoredKey(lambda part, _: frame_data(getattr(part, name)), read_frame, lambda _: Transform.identity())


def link_number(robot: Robot, place: int) -> int:
    """Number of a link, 0 for the base."""
    return 0 if place == BASE else int(robot.joints[place].number)
