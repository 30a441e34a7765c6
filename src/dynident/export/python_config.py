"""Configuration files in Python of simulators that are not installed: written as text, read back, checked by schema.

Files hold imports and assignments of literals and calls such as `ImplicitActuatorCfg(stiffness=20.0)`. They are read
back as a syntax tree, without running them.
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynident.errors import InputError
from dynident.export.verification import ExportError, ReadBack
from dynident.files import write_text

REQUIRED, OPTIONAL = True, False


class Name(str):
    """A name that the file imports, such as `dr.joint_armature`."""


@dataclass(frozen=True)
class Call:
    """A call with keywords.

    Attributes:
        name: Of what is called.
        arguments: By keyword: literals, names and further calls.
    """

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Keyword:
    """A keyword of a schema.

    Attributes:
        kind: What it takes: "names", "number", "numbers" (one, or by joint), "count", "text", "any".
        required: Whether it has no default.
    """

    kind: str
    required: bool = OPTIONAL


Schema = Mapping[str, Mapping[str, Keyword]]  # fields by the class or function that takes them


def python_text(value: Any, indent: str = "") -> str:
    """A value as Python, one entry of calls, tuples and mappings a line."""
    inner = indent + "    "
    if isinstance(value, Name):
        return str(value)
    if isinstance(value, Call):
        lines = [f"{inner}{key}={python_text(own, inner)}," for key, own in value.arguments.items()]
        return "\n".join([f"{value.name}(", *lines, f"{indent})"])
    if isinstance(value, Mapping):
        lines = [f"{inner}{_literal(key)}: {python_text(own, inner)}," for key, own in value.items()]
        return "\n".join(["{", *lines, f"{indent}}}"]) if value else "{}"
    if isinstance(value, tuple) and any(isinstance(own, Call) for own in value):
        return "\n".join(["(", *(f"{inner}{python_text(own, inner)}," for own in value), f"{indent})"])
    return _literal(value)


def _literal(value: Any) -> str:
    if isinstance(value, tuple):
        words = ", ".join(_literal(own) for own in value)
        return f"({words},)" if len(value) == 1 else f"({words})"
    if isinstance(value, list):
        return f"[{', '.join(_literal(own) for own in value)}]"
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(f"{value} is no number that a simulator takes")
        return repr(float(value) + 0.0)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def read_python(text: str) -> dict[str, Any]:
    """The assignments of a file by name, calls as `Call`, without running it."""
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign):
            (target,) = node.targets
            assert isinstance(target, ast.Name)
            found[target.id] = _value(node.value)
    return found


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Call):
        return Call(ast.unparse(node.func), {str(own.arg): _value(own.value) for own in node.keywords})
    if isinstance(node, (ast.Name, ast.Attribute)):
        return Name(ast.unparse(node))
    if isinstance(node, ast.Dict):
        return {_value(k): _value(v) for k, v in zip(node.keys, node.values, strict=True) if k is not None}
    if isinstance(node, ast.Tuple):
        return tuple(_value(own) for own in node.elts)
    return ast.literal_eval(node)


def schema_problems(value: Any, schema: Schema) -> list[str]:
    """What a schema does not allow in a value and all within it: unknown calls and keywords, missing ones, kinds."""
    if isinstance(value, Mapping):
        return [words for own in value.values() for words in schema_problems(own, schema)]
    if isinstance(value, tuple):
        return [words for own in value for words in schema_problems(own, schema)]
    if isinstance(value, Name):
        return [] if str(value) in schema else [f"{value} is not known"]
    if not isinstance(value, Call):
        return []
    if value.name not in schema:
        return [f"{value.name} is not known"]
    fields = schema[value.name]
    found = [f"{value.name} has no {key}" for key in value.arguments if key not in fields]
    found += [f"{value.name} lacks {key}" for key, own in fields.items() if own.required and key not in value.arguments]
    function, params = value.arguments.get("func"), value.arguments.get("params")
    if isinstance(function, Name) and isinstance(params, Mapping):  # the keywords of a function that a term calls
        found += schema_problems(Call(str(function), params), schema)
    for key, own in value.arguments.items():
        if key in fields and not _KINDS[fields[key].kind](own):
            found.append(f"{key} of {value.name} is {own!r}, expected {fields[key].kind}")
        found += schema_problems(own, schema)
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value)


_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "names": lambda x: isinstance(x, (list, tuple)) and bool(x) and all(isinstance(own, str) for own in x),
    "number": _is_number,
    "numbers": lambda x: _is_number(x) or (isinstance(x, dict) and all(_is_number(own) for own in x.values())),
    "count": lambda x: isinstance(x, int) and x >= 0,
    "text": lambda x: isinstance(x, str),
    "any": lambda x: True,
}


def write_python(path: Path, head: str, imports: tuple[str, ...], assigned: Mapping[str, Any], schema: Schema) -> str:
    """A configuration file that was read back and agrees with its schema before it is written.

    Args:
        path: Where to.
        head: Docstring of the file.
        imports: Lines.
        assigned: What it assigns, by name.
        schema: Of its calls.

    Returns:
        The text.

    Raises:
        ExportError: When it cannot be read back as what was to be written; nothing is written then.
    """
    words = head.replace("\\", "\\\\").replace('"""', "'''")
    body = [f"{name} = {python_text(value)}" for name, value in assigned.items()]
    text = "\n\n".join([f'"""{words}\n"""', "\n".join(imports), *body]) + "\n"
    again = read_python(text)
    problems = schema_problems(tuple(again.values()), schema)
    if again != dict(assigned):
        problems.append("it is not read back as what was to be written")
    if problems:
        raise ExportError(f"{path}: was not written: {'; '.join(dict.fromkeys(problems))}")
    write_text(path, text)
    return text


def count_numbers(value: Any) -> int:
    """Numbers in a value and all within it."""
    if isinstance(value, Call):
        return count_numbers(value.arguments)
    if isinstance(value, Mapping):
        return sum(count_numbers(own) for own in value.values())
    if isinstance(value, (tuple, list)):
        return sum(count_numbers(own) for own in value)
    return int(isinstance(value, (int, float)) and not isinstance(value, bool))


def checked_by_schema(assigned: Mapping[str, Any], project: str) -> ReadBack:
    """What a file that only its schema could be compared with says of itself."""
    return ReadBack(f"dynident, by the schema of {project}", count_numbers(assigned), 0.0)
