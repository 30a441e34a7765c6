"""`RecordReader`: checked access to the plain record of a robot (see `storage`)."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.errors import RobotFileError
from dynident.robot.expressions import quoted
from dynident.robot.model import Transform
from dynident.robot.reading import Reader, is_name


class RecordReader(Reader):
    """Checked access to a record: unlike in a robot file, numbers are numbers, and texts are texts."""

    def __init__(self, source: str, remedy: str) -> None:
        super().__init__(source)
        self.remedy = remedy

    def error(self, where: str, problem: str) -> RobotFileError:
        """The error for a key of the record, with what to do."""
        return super().error(where, f"{problem}; {self.remedy}")

    def number(self, value: object, where: str, *, low: float = -math.inf) -> float:
        """A finite number, not below `low`."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            largest = sys.float_info.max  # compared, not converted: a whole number may be too large for a float
            if max(low, -largest) <= value <= largest:
                return float(value)
        raise self.error(where, f"is {quoted(value)}; expected a finite number")

    def text(self, value: object, where: str) -> str:
        """A name: one line, not empty, not absurdly long."""
        if not isinstance(value, str) or not is_name(value):
            raise self.error(where, f"is {quoted(value)}; expected a name")
        return value

    def words(self, value: object, where: str) -> str:
        """Any text."""
        if not isinstance(value, str):
            raise self.error(where, f"is {quoted(value)}; expected a text")
        return value

    def sentences(self, value: object, where: str) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(self.words(item, f"{where}[{i + 1}]") for i, item in enumerate(self.items(value, where)))

    def choice(self, value: object, where: str, valid: Sequence[Any]) -> Any:
        """One of the valid values, of the same type."""
        for item in valid:
            if type(value) is type(item) and value == item:
                return item
        expected = ", ".join(map(str, valid[:20])) + (" ..." if len(valid) > 20 else "")
        raise self.error(where, f"is {quoted(value)}; expected {expected}")

    def items(self, value: object, where: str, length: int | None = None) -> list[Any]:
        """A list, of `length` entries when that is given."""
        if not isinstance(value, list | tuple) or length not in (None, len(value)):
            size = "" if length is None else f" of {length} entries"
            raise self.error(where, f"is {quoted(value)}; expected a list{size}")
        return list(value)

    def array(self, value: object, where: str, *shape: int) -> Array:
        """An array of numbers, (n,) or (rows, columns)."""
        if len(shape) == 1:
            return np.array(self.numbers(value, where, shape[0]))
        rows = self.items(value, where, shape[0])
        return np.array([self.numbers(row, f"{where} row {i + 1}", shape[1]) for i, row in enumerate(rows)])

    def record(self, value: object, where: str, required: Sequence[str], optional: Sequence[str]) -> dict[str, Any]:
        """A mapping with all the required keys and no other than these and the optional ones."""
        record = self.mapping(dict(value) if isinstance(value, Mapping) else value, where, (*required, *optional))
        for key in required:
            if key not in record:
                raise self.error(f"{where} {key}".strip(), f"is missing; expected {', '.join(required)}")
        return record

    def named_numbers(self, value: object, where: str, keys: Sequence[str] | None = None) -> dict[str, float]:
        """{name: number}, the names among `keys` when those are given."""
        given = self.mapping(value, where, keys)
        return {self.text(key, where): self.number(item, f"{where} {key}") for key, item in given.items()}

    def named_sets(self, value: object, where: str, keys: Sequence[str] | None = None) -> dict[str, dict[str, float]]:
        """{name: {name: number}}."""
        sets = self.mapping(value, where)
        return {self.text(key, where): self.named_numbers(item, f"{where} {key}", keys) for key, item in sets.items()}

    def direction(self, value: object, where: str, motors: Sequence[str]) -> Array:
        """{motor: number} as an array over all motors, (n_active,)."""
        given = self.named_numbers(value, where, motors)
        return np.array([given.get(motor, 0.0) for motor in motors])

    def frame(self, record: Mapping[str, Any], key: str, where: str) -> Transform:
        """Rows of [axes | origin]; the identity when the key is absent."""
        if key not in record:
            return Transform.identity()
        matrix = self.array(record[key], f"{where} {key}", 3, 4)
        return Transform(matrix[:, :3], matrix[:, 3])
