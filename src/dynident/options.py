"""Options declared once: a frozen dataclass per verb from which all that needs them is derived.

Keywords of the Python function, arguments of the command line, keys of the run file, provenance, the printed command
and the table in the docs come from the fields of one record:

>>> @dataclasses.dataclass(frozen=True, kw_only=True)
... class Options:
...     band: float | None = option(None, "bandwidth of the rows", unit="Hz", minimum=0.0)

Annotations are read as text and never evaluated, so that `--help` loads no NumPy.
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import functools
import inspect
import math
import numbers
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

from dynident.errors import InputError

P = ParamSpec("P")
A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")
R = TypeVar("R")
_PLAIN = {"bool": bool, "int": int, "float": float, "str": str}  # types that a command line can give


def option(default: Any, help: str, **facts: Any) -> Any:
    """An option as a field of an options record.

    Args:
        default: Its value where it is not given.
        help: What it is, in one sentence.
        **facts: `unit`; `choices`; `minimum` (excluded) or `least` (included); `metavar`; `const`, the value of a bare
            flag; `shown`, the default in words; `aliases`, more flags; `cli=False`, an option of Python alone;
            `recorded=False`, one that shapes no number and is left out of the provenance.
    """
    return dataclasses.field(default=default, metadata={"help": help, **facts})


def _fields(cls: Any) -> dict[str, dataclasses.Field[Any]]:
    return {field.name: field for field in dataclasses.fields(cls)}


def _kind(field: dataclasses.Field[Any]) -> type:
    """The plain type of an option: the first of its annotation that a command line can give."""
    return next((_PLAIN[word] for word in str(field.type).split(" | ") if word in _PLAIN), str)


def flag(name: str) -> str:
    """`rest_speed` -> `--rest-speed`."""
    return f"--{name.replace('_', '-')}"


def check_options(record: Any) -> None:
    """Refuse values outside their declared type, choices or bounds; called from `__post_init__`.

    Raises:
        InputError: Naming the option, its value and what was expected.
    """
    for name, field in _fields(type(record)).items():
        value, facts = getattr(record, name), field.metadata
        if value is None:
            continue
        unit = f" {facts['unit']}" if "unit" in facts else ""
        # A type of the library's own (an estimator, terms) passes as it is: whoever takes it knows it.
        number = _kind(field) in (int, float) and set(str(field.type).split(" | ")) <= {*_PLAIN, "None"}
        if number and (isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value)):
            raise InputError(f"{name} is {value!r}; expected a finite number{f' in{unit}' if unit else ''}")
        if "choices" in facts and isinstance(value, str) and value not in facts["choices"]:
            raise InputError(f"{name} is {value!r}; {_hint(value, facts['choices'])}")
        if "minimum" in facts and value <= facts["minimum"]:
            raise InputError(f"{name} is {value:g}{unit}; expected more than {facts['minimum']:g}{unit}")
        if "least" in facts and value < facts["least"]:
            raise InputError(f"{name} is {value:g}{unit}; expected {facts['least']:g}{unit} or more")


def _hint(word: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, known, 1)
    expected = f"expected {', '.join(known[:-1])} or {known[-1]}"
    return f"did you mean {near[0]}? ({expected})" if near else expected


def from_mapping(cls: Callable[..., T], given: Mapping[str, Any], where: str = "") -> T:
    """Options from keywords, a parsed command line or a section of a run file.

    Args:
        cls: The record.
        given: Names and values; a list of words counts as one with commas.
        where: File and line, for messages.

    Raises:
        InputError: For a name that is no option (with the nearest one) or a value that the record refuses.
    """
    fields, values, place = _fields(cls), {}, where and f"{where}: "
    for key, value in given.items():
        if key not in fields:
            raise InputError(f"{place}unknown option '{key}'; {_hint(key, list(fields))}")
        if where and isinstance(value, list) and all(isinstance(word, str) for word in value):
            value = ",".join(value)
        values[key] = float(value) if _kind(fields[key]) is float and type(value) is int else value
    try:
        return cls(**values)
    except InputError as error:
        raise InputError(f"{place}{error}") from None


def add_arguments(parser: argparse.ArgumentParser, cls: Any) -> None:
    """Every option as an argument; one that is not given leaves no trace: defaults stand in the record alone."""
    for name, field in _fields(cls).items():
        facts, kind = field.metadata, _kind(field)
        if not facts.get("cli", True):
            continue
        unit = f" [{facts['unit']}]" if "unit" in facts else ""
        text = f"{facts['help']}{unit} (default: {facts.get('shown', field.default)})".replace("%", "%%")
        how: dict[str, Any] = {"dest": name, "default": argparse.SUPPRESS, "help": text}
        how |= {"action": "store_true"} if kind is bool else {"type": kind, "metavar": facts.get("metavar", "X")}
        how |= {"nargs": "?", "const": facts["const"]} if "const" in facts else {}
        parser.add_argument(flag(name), *facts.get("aliases", ()), **how)


def given_options(record: Any) -> dict[str, Any]:
    """Options that differ from their defaults and shape the result: for provenance and the printed command."""
    fields = _fields(type(record))
    values = ((name, getattr(record, name), field) for name, field in fields.items())
    return {
        name: value
        for name, value, field in values
        if field.metadata.get("recorded", True) and (value is not field.default and value != field.default)
    }


def command(verb: str, positional: Sequence[str], record: Any) -> str:
    """The command line that gives the same result again."""
    words = [flag(k) if v is True else f"{flag(k)}={v}" for k, v in given_options(record).items()]
    return shlex.join(["dynident", verb, *positional, *words])


def option_table(cls: Any) -> str:
    """The options as a Markdown table: flag, default, unit, meaning."""
    lines = ["| option | default | unit | meaning |", "|---|---|---|---|"]
    for name, field in _fields(cls).items():
        facts = field.metadata
        shown = flag(name) if facts.get("cli", True) else name
        cells = (f"`{shown}`", facts.get("shown", field.default), facts.get("unit", ""), facts["help"])
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def keywords(cls: Callable[P, T]) -> Callable[[Callable[[A, B, T], R]], Callable[Concatenate[A, B, P], R]]:
    """Give a function `f(first, second, options)` the fields of an options record as keywords.

    They are typed for mypy and editors, and shown by `help()`, Sphinx and Jupyter; an unknown one names the nearest.
    The first two arguments may be passed by name at run time.
    """

    def decorate(function: Callable[[A, B, T], R]) -> Callable[Concatenate[A, B, P], R]:
        own = inspect.signature(function)
        positional = list(own.parameters.values())[:2]
        names = [parameter.name for parameter in positional]

        @functools.wraps(function)
        def call(*args: Any, **given: Any) -> R:
            if len(args) > 2:
                raise InputError(f"{function.__name__} takes {' and '.join(names)}; give options by name")
            bound = dict(zip(names, args, strict=False))
            for name in names:
                if name in given:
                    if name in bound:
                        raise InputError(f"{function.__name__}: {name} is given twice")
                    bound[name] = given.pop(name)
                elif name not in bound:
                    raise InputError(f"{function.__name__}: {name} is missing")
            return function(bound[names[0]], bound[names[1]], from_mapping(cls, given))

        options = inspect.signature(cls).parameters.values()
        signature = own.replace(parameters=[*positional, *options])
        call.__signature__ = signature  # type: ignore[attr-defined]
        return call

    return decorate
