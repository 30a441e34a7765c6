"""What every reader needs: files of sane size, strict YAML, checked numbers and keys."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from dynident.errors import RobotFileError, suggestion
from dynident.robot.expressions import ExpressionError, evaluate

LARGEST_FILE = 8_000_000  # bytes: a URDF without meshes is thousands of times smaller
LARGEST_NUMBER = 1e6  # metres, kilograms, kg·m²: no robot has a part beyond this
MOST_JOINTS = 100


def read_text(path: Path) -> str:
    """The text of a robot file, refused with a clear message when it is missing, huge or not text."""
    source = str(path)
    try:
        size = path.stat().st_size
        if path.is_dir():
            raise RobotFileError(source, "", "is a folder; give the robot file inside it")
        if size > LARGEST_FILE:
            raise RobotFileError(
                source, "", f"has {size} bytes, more than the {LARGEST_FILE} a robot description may have"
            )
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise RobotFileError(source, "", "no such file") from None
    except UnicodeDecodeError:
        raise RobotFileError(source, "", "is not UTF-8 text; give a URDF or YAML file") from None
    except OSError as error:
        raise RobotFileError(source, "", f"cannot be read ({error.strerror})") from None


class _StrictLoader(yaml.SafeLoader):
    """Safe YAML without aliases (they can unpack without bound) and without repeated keys."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.get_mark()
            raise yaml.MarkedYAMLError(problem="aliases are not allowed", problem_mark=mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.MarkedYAMLError(problem="keys must be plain", problem_mark=key_node.start_mark)
            if key in seen:
                problem = f"key '{key}' appears twice"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def parse_yaml(text: str, source: str) -> dict[str, Any]:
    """The mapping a YAML text holds; errors name the line."""
    try:
        loaded = yaml.load(text, Loader=_StrictLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}" if mark is not None else ""
        raise RobotFileError(source, where, f"is not valid YAML: {error.problem}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise RobotFileError(source, "", f"is not valid YAML: {error}".splitlines()[0]) from None
    if not isinstance(loaded, dict):
        raise RobotFileError(source, "", "must be a mapping with keys such as 'name' and 'joints'")
    return {str(key): value for key, value in loaded.items()}


class Reader:
    """Checked access to the values of one file: numbers, vectors and mappings that name their place on error."""

    def __init__(self, source: str, names: Mapping[str, Any] | None = None) -> None:
        self.source = source
        self.names: dict[str, Any] = dict(names or {})

    def error(self, where: str, problem: str) -> RobotFileError:
        """The error for a place of this file."""
        return RobotFileError(self.source, where, problem)

    def number(self, value: object, where: str, *, low: float = -math.inf) -> float:
        """A finite number, or an expression over the named lengths, not below `low`."""
        try:
            result = evaluate(value, self.names)
        except ExpressionError as error:
            raise self.error(where, f"{error}; expected a number or an expression such as pi/2") from None
        if not isinstance(result, float) or not math.isfinite(result):
            raise self.error(where, f"is {value}; expected a finite number")
        if abs(result) > LARGEST_NUMBER:
            raise self.error(where, f"is {value}, beyond {LARGEST_NUMBER:g} in SI units; check the unit")
        if result < low:
            raise self.error(where, f"is {value}; expected {low:g} or more")
        return result

    def numbers(self, value: object, where: str, length: int) -> list[float]:
        """A list of `length` numbers."""
        if not isinstance(value, list | tuple) or len(value) != length:
            raise self.error(where, f"must be a list of {length} numbers")
        return [self.number(item, f"{where}[{i + 1}]") for i, item in enumerate(value)]

    def mapping(self, value: object, where: str, keys: Iterable[str] | None = None) -> dict[str, Any]:
        """A mapping with text keys, all of them among `keys` when those are given."""
        if not isinstance(value, dict):
            raise self.error(where, "must be a mapping (key: value)")
        result = {str(key): item for key, item in value.items()}
        if keys is not None:
            self.known_keys(result, where, keys)
        return result

    def known_keys(self, mapping: Mapping[str, Any], where: str, keys: Iterable[str]) -> None:
        """Refuse keys that nobody reads."""
        valid = list(keys)
        for key in mapping:
            if key not in valid:
                raise self.error(where, f"unknown key '{key}'{suggestion(key, valid)}")

    def integer(self, value: object, where: str) -> int:
        """A whole number."""
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(where, f"is {value!r}; expected a whole number")
        return value

    def text(self, value: object, where: str) -> str:
        """A text (a bare number counts)."""
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise self.error(where, f"is {value!r}; expected a name")
        return str(value)
