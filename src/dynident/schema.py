"""Strict YAML and checked access to it: every mistake is named with its file and its key or line.

`LocatedReader` reads the plain values of a robot file or of a stored record, `NodeReader` the nodes of a file whose
every mistake is named with its line. How numbers are evaluated (`pi/2`, `-d3`) is passed in.
"""

from __future__ import annotations

import json
import math
import os
import re
import reprlib
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np
import yaml

from dynident import limits
from dynident.arrays import Array
from dynident.deprecated import renamed_options, warn_deprecated
from dynident.errors import DynidentError, RobotFileError, suggestion
from dynident.options import OptionError, from_mapping, option_fields, option_type
from dynident.readers import special_kind

LARGEST_NUMBER = 1e6  # meters, kilograms, kg·m²: no robot has a part beyond this
LONGEST_NUMBER = 200  # characters of a number or an expression: a length in a robot table is never longer
_LONGEST_NAME = 100  # characters
_PLAIN = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_NULL = "tag:yaml.org,2002:null"
_YES_NO = {"true": True, "yes": True, "false": False, "no": False}
T = TypeVar("T")
Evaluate = Callable[[object, Mapping[str, Any]], Any]  # value and named numbers -> number; a ValueError says why not


def quote(value: object) -> str:
    """A value from a file as messages show it: on one line and short."""
    short = reprlib.Repr()
    short.maxstring = short.maxother = 60
    text = "empty" if value is None else short.repr(value)
    return text if len(text) <= LONGEST_NUMBER else f"{text[:LONGEST_NUMBER]}..."


def plain_number(text: str) -> float | None:
    """The number a text is in plain decimal notation (`-1.5e-3`), None when it is anything else."""
    return float(text) if len(text) <= LONGEST_NUMBER and _PLAIN.fullmatch(text.strip()) else None


def is_name(text: str) -> bool:
    """Whether a text can name a part of the robot: one line, not empty, not absurdly long."""
    return bool(text.strip()) and text.isprintable() and len(text) <= _LONGEST_NAME


def read_text(path: Path, largest: int | None = None, what: str = "a robot description") -> str:
    """The text of a file, refused with a clear message when it is missing, huge or not text.

    Args:
        path: The file.
        largest: Bytes that it may have; default those of a robot file.
        what: What it should be, for messages.
    """
    source, largest = str(path), largest or limits.LIMITS.robot_bytes
    try:
        if path.is_dir():
            raise RobotFileError(source, "", "is a folder; give the robot file inside it")
        if kind := special_kind(path):
            raise RobotFileError(source, "", f"is {kind}, not a file; copy its content into one")
        with path.open("rb") as file:  # read as far as it may go: some files have no size, or grow
            content = file.read(largest + 1)
        if len(content) > largest:
            size = max(path.stat().st_size, len(content))
            raise RobotFileError(source, "", f"has {size} bytes, more than the {largest} {what} may have")
        return content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        raise RobotFileError(source, "", "no such file; check the path") from None
    except UnicodeDecodeError:
        raise RobotFileError(source, "", "is not UTF-8 text; give a URDF or YAML file") from None
    except (OSError, ValueError) as error:  # a ValueError for a path with a null character
        raise RobotFileError(source, "", f"cannot be read ({getattr(error, 'strerror', error)})") from None


def parse_record(text: str) -> Any:
    """The plain values of a YAML text that a program wrote, once its structure has been looked at.

    Raises:
        ValueError, yaml.YAMLError: If it is no YAML, or beyond a limit.
    """
    check_structure(text, limits.LIMITS.record_levels)
    return yaml.load(text, Loader=yaml.CSafeLoader)


def parse_json(text: str | bytes) -> Any:
    """The plain values of a JSON text; its numbers are numbers.

    Raises:
        ValueError, RecursionError: If it is no JSON.
    """
    return json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")


_OPENING = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_CLOSING = (yaml.MappingEndEvent, yaml.SequenceEndEvent)


def check_structure(text: str, levels: int) -> None:
    """Refuse a YAML text that is too deep or too large to be built, before anything of it is.

    The events of libyaml come one by one and need no stack; what builds values from them does. An alias counts as
    much as what it stands for.

    Raises:
        LimitError: If it is.
        yaml.YAMLError: If it is no YAML.
    """
    most = limits.LIMITS.yaml_nodes
    count = 0
    opened: list[tuple[str | None, int]] = []  # anchor of what is open, and the count where it began
    sizes: dict[str, int] = {}
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        count += 1
        if isinstance(event, _OPENING):
            opened.append((event.anchor, count))
            if len(opened) > levels:
                raise limits.LimitError(f"is nested more than {levels} levels deep; flatten it")
        elif isinstance(event, _CLOSING):
            anchor, begin = opened.pop()
            if anchor is not None:
                sizes[anchor] = count - begin
        elif isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in opened):
                raise limits.LimitError(f"holds itself (*{quote(event.anchor)}); write it out")
            count += sizes.get(str(event.anchor), 1)
        if count > most:
            raise limits.LimitError(f"has more than {most} keys and values; split it")


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
            raise _RefusedError(f"tags such as {quote(event.tag)} are not allowed; remove it", event.start_mark)
        if self.depth > limits.LIMITS.yaml_levels:
            words = f"is nested more than {limits.LIMITS.yaml_levels} levels deep; flatten it"
            raise _RefusedError(words, event.start_mark)
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
                raise _RefusedError(f"the key {quote(key)} is not a name; put quotes around a text", mark)
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
            problem = f"{quote(text)} is not in plain decimal notation; write it so, or put quotes around a text"
            raise _RefusedError(problem, node.start_mark)
        whole = text.lstrip("+-").isdecimal() and len(text) < 20
        return int(text) if whole else float(text)

    def construct_date(self, node: yaml.ScalarNode) -> str:
        """Robot files have no dates, and `2020-1-1` must not become an arithmetic expression either."""
        raise _RefusedError(f"{quote(node.value)} is a date; put quotes around a text", node.start_mark)


for _tag, _constructor in (
    ("int", _StrictLoader.construct_plain_number),
    ("float", _StrictLoader.construct_plain_number),
    ("timestamp", _StrictLoader.construct_date),
):
    _StrictLoader.add_constructor(f"tag:yaml.org,2002:{_tag}", _constructor)


def parse_yaml(text: str, source: str) -> dict[str, Any]:
    """The mapping a YAML text holds; errors name the line."""
    if len(text) > limits.LIMITS.table_characters:
        most = limits.LIMITS.table_characters
        raise RobotFileError(source, "", f"has {len(text)} characters, more than the {most} a table may have")
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


class LocatedReader:
    """Checked access to plain values; an error names the file and the key.

    Args:
        source: File, for messages.
        evaluate: How numbers are written in the file. None for a record that a program wrote: there numbers are
            numbers, names are texts, and neither is anything else.
        names: Numbers with a name, which expressions may use.
        remedy: Closing words of every message.
    """

    def __init__(
        self, source: str, evaluate: Evaluate | None = None, names: Mapping[str, Any] | None = None, remedy: str = ""
    ) -> None:
        self.source = source
        self.names: dict[str, Any] = dict(names or {})
        self._evaluate, self._remedy = evaluate, remedy

    def error(self, where: str, problem: str) -> RobotFileError:
        """The error for a place of this file."""
        return RobotFileError(self.source, where, f"{problem}; {self._remedy}" if self._remedy else problem)

    def number(self, value: object, where: str, *, low: float = -math.inf, evaluate: Evaluate | None = None) -> float:
        """A finite number, or an expression over the named numbers, not below `low`.

        Args:
            value: As it is in the file.
            where: Its place, for messages.
            low: Smallest value that makes sense.
            evaluate: How this number may be written; default as all others.
        """
        evaluate = evaluate or self._evaluate
        if evaluate is None:
            if isinstance(value, int | float) and not isinstance(value, bool):
                largest = sys.float_info.max  # compared, not converted: a whole number may be too large for a float
                if max(low, -largest) <= value <= largest:
                    return float(value)
            raise self.error(where, f"is {quote(value)}; expected a finite number")
        try:
            result = evaluate(value, self.names)
        except ValueError as error:
            raise self.error(where, f"{error}; expected a number or an expression such as pi/2") from None
        if not isinstance(result, float) or not math.isfinite(result):
            raise self.error(where, f"is {quote(value)}; expected a finite number")
        if abs(result) > LARGEST_NUMBER:
            raise self.error(where, f"is {quote(value)}, beyond {LARGEST_NUMBER:g} in SI units; check the unit")
        if result < low:
            raise self.error(where, f"is {quote(value)}; expected {low:g} or more")
        return result

    def numbers(self, value: object, where: str, length: int) -> list[float]:
        """A list of `length` numbers."""
        if not isinstance(value, list | tuple) or len(value) != length:
            raise self.error(where, f"is {quote(value)}; expected a list of {length} numbers")
        return [self.number(item, f"{where}[{i + 1}]") for i, item in enumerate(value)]

    def array(self, value: object, where: str, *shape: int) -> Array:
        """An array of numbers, (n,) or (rows, columns)."""
        if len(shape) == 1:
            return np.array(self.numbers(value, where, shape[0]))
        rows = self.items(value, where, shape[0])
        return np.array([self.numbers(row, f"{where} row {i + 1}", shape[1]) for i, row in enumerate(rows)])

    def integer(self, value: object, where: str) -> int:
        """A whole number."""
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(where, f"is {quote(value)}; expected a whole number")
        return value

    def text(self, value: object, where: str) -> str:
        """A name; in a file that a person wrote, a bare whole number counts."""
        if self._evaluate is None:
            kinds: tuple[type, ...] = (str,)
            size = ""
        else:
            kinds, size = (str, int), f" of 1 to {_LONGEST_NAME} printable characters"
        if isinstance(value, bool) or not isinstance(value, kinds) or not is_name(str(value)):
            raise self.error(where, f"is {quote(value)}; expected a name{size}")
        return str(value)

    def words(self, value: object, where: str) -> str:
        """Any text."""
        if not isinstance(value, str):
            raise self.error(where, f"is {quote(value)}; expected a text")
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
        raise self.error(where, f"is {quote(value)}; expected {expected}")

    def items(self, value: object, where: str, length: int | None = None) -> list[Any]:
        """A list, of `length` entries when that is given."""
        if not isinstance(value, list | tuple) or length not in (None, len(value)):
            size = "" if length is None else f" of {length} entries"
            raise self.error(where, f"is {quote(value)}; expected a list{size}")
        return list(value)

    def mapping(self, value: object, where: str, keys: Iterable[str] | None = None) -> dict[str, Any]:
        """A mapping with text keys, all of them among `keys` when those are given."""
        if not isinstance(value, dict):
            raise self.error(where, f"is {quote(value)}; expected a mapping (key: value)")
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


class NodeReader:
    """Checked access to the nodes of a YAML file; an error names the file and the line.

    Values are taken as they are written, not as YAML guesses them: `off` is a word, `1e-3` a number.
    """

    failure: type[DynidentError] = DynidentError  # class of the errors

    def __init__(self, source: str) -> None:
        self.source = source

    def error(self, node: yaml.Node | None, problem: str) -> DynidentError:
        """The error for a place in the file; None is the whole file."""
        line = "" if node is None else f"line {node.start_mark.line + 1}: "
        return self.failure(f"{self.source}: {line}{problem}")

    def top(self, *, missing: str, empty: str) -> yaml.Node:
        """The whole file.

        Args:
            missing, empty: What to do where there is no file, and where it is empty.

        Raises:
            DynidentError: Of the class `failure`, if it cannot be read, or is not YAML.
        """
        try:
            if not Path(self.source).exists():
                raise self.error(None, f"no such file; {missing}")
            text = read_text(Path(self.source), what="such a file")
            check_structure(text, limits.LIMITS.yaml_levels)
            node: yaml.Node | None = yaml.compose(text, Loader=yaml.CSafeLoader)
        except RobotFileError as error:
            raise self.error(None, error.problem) from None
        except limits.LimitError as error:
            raise self.error(None, str(error)) from None
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            where = "" if mark is None else f"line {mark.line + 1}: "
            problem = getattr(error, "problem", None) or str(error).splitlines()[0]
            raise self.error(None, f"{where}is not valid YAML ({problem})") from None
        if node is None:
            raise self.error(None, f"is empty; {empty}")
        return node

    def mapping(self, node: yaml.Node, what: str, keys: Iterable[str] | None = None) -> dict[str, yaml.Node]:
        """{key: node} without those that are null; every key once, and among `keys` where those are given."""
        if not isinstance(node, yaml.MappingNode):
            raise self.error(node, f"{what} must be a mapping (key: value)")
        valid, found, seen = None if keys is None else list(keys), {}, set()
        for key, value in node.value:
            name = self.text(key, "a key")
            if name in seen:
                raise self.error(key, f"key '{name}' is there twice; keep one of them")
            if valid is not None and name not in valid:
                raise self.error(key, f"unknown key '{name}'{suggestion(name, valid)}")
            seen.add(name)
            if value.tag != _NULL:
                found[name] = value
        return found

    def text(self, node: yaml.Node, what: str, valid: Sequence[str] | None = None) -> str:
        """A word, among `valid` where those are given."""
        if not isinstance(node, yaml.ScalarNode) or not node.value.strip() or node.tag == _NULL:
            raise self.error(node, f"{what} must be a text")
        if valid is not None and node.value not in valid:
            raise self.error(node, f"{what}: unknown choice '{node.value}'{suggestion(node.value, valid)}")
        return str(node.value)

    def texts(self, node: yaml.Node, what: str) -> list[str]:
        """A list of words; one word counts as a list of it."""
        if isinstance(node, yaml.SequenceNode):
            return [self.text(item, f"an entry of {what}") for item in node.value]
        return [self.text(node, what)]

    def number(self, node: yaml.Node, what: str) -> str:
        """A finite number, as it is written."""
        text = node.value if isinstance(node, yaml.ScalarNode) else ""
        try:
            known = math.isfinite(float(text))
        except ValueError:
            known = False
        if not known:
            raise self.error(node, f"{what} must be a number" + (f", got '{text}'" if text else ""))
        return str(text)

    def interval(self, node: yaml.Node, what: str) -> str:
        """`least:most` from [least, most], either of which may be null."""
        if not isinstance(node, yaml.SequenceNode) or len(node.value) != 2:
            raise self.error(node, f"{what} must be a list of two numbers, such as [2, 8.5] or [2, null]")
        return ":".join("" if item.tag == _NULL else self.number(item, what) for item in node.value)

    def flag(self, node: yaml.Node, what: str) -> bool:
        """true or false."""
        word = self.text(node, what).lower()
        if word not in _YES_NO:
            raise self.error(node, f"{what} must be true or false, got '{word}'")
        return _YES_NO[word]


class OptionReader(NodeReader):
    """A YAML file with keys that are the fields of options records; its relative paths start at the file."""

    warn: Callable[[str], None] = staticmethod(warn_deprecated)  # takes a sentence for each name of before

    def options(self, cls: type[T], nodes: Mapping[str, yaml.Node], given: Mapping[str, Any]) -> T:
        """An options record from the keys of a section and what is known besides."""
        fields, renamed = option_fields(cls), renamed_options(cls)
        values = {key: self.value(node, key, fields[renamed.get(key, key)]) for key, node in nodes.items()}
        try:
            return from_mapping(cls, {**given, **values}, lambda words: self.warn(f"{self.source}: {words}"))
        except OptionError as error:
            raise self.error(nodes.get(error.name), f"{error.name}{error.problem}") from None

    def value(self, node: yaml.Node, key: str, field: Any) -> Any:
        """The value of an option, as the command line would have it."""
        written, kind = field.metadata.get("written"), option_type(field)
        if written == "path":
            return self.path(node, key)
        if written == "list":
            return ",".join(self.texts(node, key))
        if written == "interval":
            return self.interval(node, key)
        if written == "intervals":
            return tuple(f"{name}={self.interval(own, name)}" for name, own in self.mapping(node, key).items())
        if written == "positions":
            return ",".join(f"{name}={self.text(own, name)}" for name, own in self.mapping(node, key).items())
        if kind is bool:
            return self.flag(node, key)
        if kind is int:
            return self.whole_number(node, key)
        return float(self.number(node, key)) if kind is float else self.text(node, key)

    def whole_number(self, node: yaml.Node, what: str) -> int:
        """A whole number."""
        text = self.number(node, what)
        if not float(text).is_integer():
            raise self.error(node, f"{what} must be a whole number, got '{text}'")
        return int(float(text))

    def beside(self, path: str) -> str:
        """A path of the file, as it is from the current folder."""
        return os.path.normpath(Path(self.source).parent / os.path.expanduser(path))

    def path(self, node: yaml.Node, what: str) -> str:
        """The same of a text."""
        return self.beside(self.text(node, what))
