"""`NodeReader`: a YAML file whose every mistake is told with its line.

Values are taken as they are written, not as YAML guesses them: `off` is a word, `1e-3` a number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import yaml

from dynident.errors import DynidentError, suggestion

_NULL = "tag:yaml.org,2002:null"
_YES_NO = {"true": True, "yes": True, "false": False, "no": False}


class RunFileError(DynidentError):
    """A run file that cannot be followed, with its line."""


class NodeReader:
    """Checked access to the nodes of a YAML file."""

    def __init__(self, source: str) -> None:
        self.source = source

    def error(self, node: yaml.Node | None, problem: str) -> RunFileError:
        """The error for a place in the file."""
        line = "" if node is None else f"line {node.start_mark.line + 1}: "
        return RunFileError(f"{self.source}: {line}{problem}")

    def top(self) -> yaml.Node:
        """The whole file.

        Raises:
            RunFileError: If it cannot be read, or is not YAML.
        """
        try:
            node: yaml.Node | None = yaml.compose(Path(self.source).read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
        except FileNotFoundError:
            raise RunFileError(f"{self.source}: no such file; dynident init ROBOT FOLDER writes one") from None
        except (OSError, UnicodeDecodeError) as error:
            raise RunFileError(f"{self.source}: cannot be read ({str(error).splitlines()[0]})") from None
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            where = "" if mark is None else f"line {mark.line + 1}: "
            problem = getattr(error, "problem", None) or str(error).splitlines()[0]
            raise RunFileError(f"{self.source}: {where}is not valid YAML ({problem})") from None
        if node is None:
            raise RunFileError(f"{self.source}: is empty; dynident init ROBOT FOLDER writes a run file")
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
