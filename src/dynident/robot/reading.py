"""What every reader needs: files of sane size, strict YAML, checked numbers and keys."""

from __future__ import annotations

import math
import re
import stat
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from dynident.errors import RobotFileError, suggestion
from dynident.robot.expressions import LARGEST_NUMBER, ExpressionError, evaluate, plain_number, quoted

LARGEST_FILE = 8_000_000  # bytes: a URDF without meshes is thousands of times smaller
LARGEST_YAML = 200_000  # characters: a table of a hundred joints with all its values is smaller
MOST_JOINTS = 100
_DEEPEST = 20  # levels of YAML
_LONGEST_NAME = 100


def read_text(path: Path) -> str:
    """The text of a robot file, refused with a clear message when it is missing, huge or not text."""
    source = str(path)
    try:
        found = path.stat()
        size = found.st_size
        if path.is_dir():
            raise RobotFileError(source, "", "is a folder; give the robot file inside it")
        if not stat.S_ISREG(found.st_mode):
            raise RobotFileError(source, "", "is not a regular file; copy its content into one")
        if size > LARGEST_FILE:
            raise RobotFileError(
                source, "", f"has {size} bytes, more than the {LARGEST_FILE} a robot description may have"
            )
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise RobotFileError(source, "", "no such file; check the path") from None
    except UnicodeDecodeError:
        raise RobotFileError(source, "", "is not UTF-8 text; give a URDF or YAML file") from None
    except (OSError, ValueError) as error:  # a ValueError for a path with a null character
        raise RobotFileError(source, "", f"cannot be read ({getattr(error, 'strerror', error)})") from None


class _RefusedError(yaml.MarkedYAMLError):
    """YAML that is well-formed, but has no place in a robot file."""

    def __init__(self, problem: str, mark: Any) -> None:
        super().__init__(problem=problem, problem_mark=mark)


class _StrictLoader(yaml.SafeLoader):
    """Safe YAML of plain values: no aliases (they can unpack without bound), tags, merge keys or repeated keys."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            raise _RefusedError("aliases (*name) are not allowed; write the value out", event.start_mark)
        if getattr(event, "tag", None) is not None:
            raise _RefusedError(f"tags such as {quoted(event.tag)} are not allowed; remove it", event.start_mark)
        if self.depth > _DEEPEST:
            raise _RefusedError(f"is nested more than {_DEEPEST} levels deep; flatten it", event.start_mark)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            mark = key_node.start_mark
            if key_node.tag == "tag:yaml.org,2002:merge":
                raise _RefusedError("merge keys (<<) are not allowed; write the keys out", mark)
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, bool) or not isinstance(key, str | int) or not is_name(str(key)):
                raise _RefusedError(f"the key {quoted(key)} is not a name; put quotes around a text", mark)
            if str(key) in seen:
                raise _RefusedError(f"key '{key}' appears twice; remove one", mark)
            seen.add(str(key))
        return super().construct_mapping(node, deep)

    def construct_plain_number(self, node: yaml.ScalarNode) -> float:
        """Decimal numbers; YAML 1.1 would read 1:30 as 90 and 010 as 8."""
        text = node.value
        if text.strip("+-").lower() in (".inf", ".nan"):
            return float(text.replace(".", ""))
        if plain_number(text) is None or re.match("[-+]?0[0-9]", text):
            problem = f"{quoted(text)} is not in plain decimal notation; write it so, or put quotes around a text"
            raise _RefusedError(problem, node.start_mark)
        whole = text.lstrip("+-").isdecimal() and len(text) < 20
        return int(text) if whole else float(text)

    def construct_date(self, node: yaml.ScalarNode) -> str:
        """Robot files have no dates, and `2020-1-1` must not become an arithmetic expression either."""
        raise _RefusedError(f"{quoted(node.value)} is a date; put quotes around a text", node.start_mark)


for _tag, _constructor in (
    ("int", _StrictLoader.construct_plain_number),
    ("float", _StrictLoader.construct_plain_number),
    ("timestamp", _StrictLoader.construct_date),
):
    _StrictLoader.add_constructor(f"tag:yaml.org,2002:{_tag}", _constructor)


def parse_yaml(text: str, source: str) -> dict[str, Any]:
    """The mapping a YAML text holds; errors name the line."""
    if len(text) > LARGEST_YAML:
        raise RobotFileError(source, "", f"has {len(text)} characters, more than the {LARGEST_YAML} a table may have")
    try:
        loaded = yaml.load(text, Loader=_StrictLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}" if mark is not None else ""
        words = ", ".join(filter(None, (error.context, error.problem)))
        problem = words if isinstance(error, _RefusedError) else f"is not valid YAML: {words}"
        raise RobotFileError(source, where, problem) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise RobotFileError(source, "", f"is not valid YAML: {error}".splitlines()[0]) from None
    if not isinstance(loaded, dict):
        raise RobotFileError(source, "", "must be a mapping with keys such as 'name' and 'joints'")
    return {str(key): value for key, value in loaded.items()}


def is_name(text: str) -> bool:
    """Whether a text can name a part of the robot: one line, not empty, not absurdly long."""
    return bool(text.strip()) and text.isprintable() and len(text) <= _LONGEST_NAME


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
            raise self.error(where, f"is {quoted(value)}; expected a finite number")
        if abs(result) > LARGEST_NUMBER:
            raise self.error(where, f"is {quoted(value)}, beyond {LARGEST_NUMBER:g} in SI units; check the unit")
        if result < low:
            raise self.error(where, f"is {quoted(value)}; expected {low:g} or more")
        return result

    def numbers(self, value: object, where: str, length: int) -> list[float]:
        """A list of `length` numbers."""
        if not isinstance(value, list | tuple) or len(value) != length:
            raise self.error(where, f"is {quoted(value)}; expected a list of {length} numbers")
        return [self.number(item, f"{where}[{i + 1}]") for i, item in enumerate(value)]

    def mapping(self, value: object, where: str, keys: Iterable[str] | None = None) -> dict[str, Any]:
        """A mapping with text keys, all of them among `keys` when those are given."""
        if not isinstance(value, dict):
            raise self.error(where, f"is {quoted(value)}; expected a mapping (key: value)")
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
            raise self.error(where, f"is {quoted(value)}; expected a whole number")
        return value

    def text(self, value: object, where: str) -> str:
        """A name (a bare whole number counts)."""
        if isinstance(value, bool) or not isinstance(value, str | int) or not is_name(str(value)):
            raise self.error(where, f"is {quoted(value)}; expected a name of 1 to {_LONGEST_NAME} printable characters")
        return str(value)

    def joint_count(self, n: int) -> None:
        """Refuse robots without moving joints and with more than anybody builds."""
        if not n:
            raise self.error("joints", "none of them moves; at least one must be revolute or prismatic")
        if n > MOST_JOINTS:
            raise self.error("joints", f"{n} of them move, more than the {MOST_JOINTS} a robot may have")
