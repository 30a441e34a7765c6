"""Options declared once: a frozen dataclass per verb from which all that needs them is derived.

Keywords of the Python function (`keywords`), arguments of the command line (`cli.arguments`), keys of the run file,
provenance (`given_options`), the printed command and the table in the docs (`option_table`) come from the fields of one
record. The options of a function stand in its room; what only the command line has (files, what to print) is added by a
record of `cli` that inherits from it and from the groups that several verbs share:

>>> @dataclasses.dataclass(frozen=True, kw_only=True)
... class SweepOptions(Options):  # in its room
...     band: float | None = option(None, "bandwidth of the rows", unit="Hz", minimum=0.0, shown="from the motion")
...     way: str = option("both", "ways of a sweep", choices=("both", "up", "down"))
...     progress: Callable[[int], None] | None = option(None, "called on the way", cli=False, recorded=False)
>>> @keywords(SweepOptions)
... def sweep(robot: str, options: SweepOptions) -> float | None:  # called as sweep("arm", band=3.0)
...     return options.band
>>> @dataclasses.dataclass(frozen=True, kw_only=True)
... class SweepArguments(SweepOptions, LogReading, Quiet, Answer):  # in cli
...     robot: str = option(REQUIRED, "robot file", positional=True)
...     logs: tuple[str, ...] = option((), "logs", flags=("--from",), many=True, metavar="LOG")
...     pose: tuple[str, ...] = option((), "where joints are held; may be repeated", repeated=True)
>>> sweep("arm", **plain_options(SweepArguments(robot="arm", band=3.0), SweepOptions))
3.0

Help lists the fields of a record before those that it inherits. A record refuses values outside type, choices and
bounds, so that keyword, flag and run-file key have one message. Annotations are read as text and never evaluated, so
that `--help` loads no NumPy: types that need it are imported under TYPE_CHECKING only.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import numbers
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from dynident.deprecated import current_options, warn_deprecated
from dynident.display import brief_value
from dynident.errors import InputError, UnknownNameError, suggestion

P = ParamSpec("P")
A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")
R = TypeVar("R")
REQUIRED: Any = dataclasses.MISSING  # default of an option that must be given
Progress = Callable[[str, int, int], None]  # called with what is being done, steps done, steps in all
TERMS_HELP = "comma-separated: rigid, Ia, Fv, Fc (or Fc(0.02), smoothed below 0.02 rad/s, a tenth in m/s on slides), Fo"
_PLAIN: dict[str, type] = {"str": str, "bool": bool, "int": int, "float": float}  # what a command line can give


class OptionError(InputError):
    """A value that an options record refuses.

    Args:
        name: The option; the command line shows its flag instead.
        problem: Its value and what was expected, as it follows the name.
    """

    def __init__(self, name: str, problem: str) -> None:
        self.name = name
        self.problem = problem
        super().__init__(f"{name}{problem}")


def option(default: Any, help: str, **facts: Any) -> Any:
    """An option as a field of an options record.

    Args:
        default: Its value where it is not given, or REQUIRED.
        help: What it is, in one sentence.
        **facts: `unit`; `choices`; bounds that a number must not reach (`minimum`, `below`) or may reach (`least`,
            `most`), and `expected` where those are better said in other words; `names` that a list may hold, which help
            shows and the table of the docs does not; `shown`, the default in words.
            On the command line: `metavar`; `positional=True`; `many=True`, one or more words (a tuple);
            `repeated=True`, a flag that may be repeated (a tuple); `const`, the value of a bare flag; `flags` in place
            of the one made from the name, `aliases` beside it; `cli=False`, an option of Python alone.
            `recorded=False`, one that shapes no number and is left out of provenance and command.
            In a run file: `written`, where it is no plain value: "path" (relative to the file), "list"
            (words that the command line separates by commas), "interval" ([least, most]), "positions" (a mapping
            joint -> position) or "intervals" (a mapping name -> interval).
    """
    return dataclasses.field(default=default, metadata={"help": help, **facts})


def threshold(value: Any, meaning: str, *, unit: str = "", calibrated: str = "") -> Any:
    """A calibrated number as a field of the thresholds of a room.

    Args:
        value: The number.
        meaning: What it decides, in one sentence.
        unit: Such as "rad/s"; empty for shares, factors and counts.
        calibrated: What it was calibrated on: values of sound logs, a paper.
    """
    return dataclasses.field(default=value, metadata={"meaning": meaning, "unit": unit, "calibrated": calibrated})


def threshold_table(cls: type) -> str:
    """The thresholds of a room as a Markdown table for the docs."""
    lines = ["| threshold | value | meaning | calibrated on |", "|---|---|---|---|"]
    for entry in dataclasses.fields(cls):
        facts = entry.metadata
        value = f"{entry.default:g} {facts['unit']}".strip()
        lines.append(f"| `{entry.name}` | {value} | {facts['meaning']} | {facts['calibrated']} |")
    return "\n".join(lines)


def check_options(record: Any) -> None:
    """Refuse values outside their declared type, choices or bounds.

    Raises:
        OptionError: Naming the option, its value and what was expected.
    """
    for name, field in option_fields(type(record)).items():
        value, facts = getattr(record, name), field.metadata
        # A type of the library's own (an estimator, terms) passes as it is: whoever takes it knows it.
        kind = _PLAIN.get(str(field.type).removesuffix(" | None"))
        if value is None and (kind is None or str(field.type).endswith(" | None")):
            continue
        if "choices" in facts and (kind is str or isinstance(value, str)) and value not in facts["choices"]:
            raise OptionError(name, f": unknown choice '{value}'{suggestion(str(value), facts['choices'])}")
        if kind in (int, float) and not _is_number(value, kind):
            finite = f"a finite number in {facts['unit']}" if "unit" in facts else "a finite number"
            expected = facts.get("expected") or (_bounds(kind, facts) if kind is int else finite)
            raise OptionError(name, f" is {value!r}; expected {expected}")
        if isinstance(value, numbers.Real) and not _is_within(value, facts):
            raise OptionError(name, f" is {value}; expected {facts.get('expected') or _bounds(kind, facts)}")


def _is_number(value: object, kind: type | None) -> bool:
    expected = numbers.Integral if kind is int else numbers.Real
    return not isinstance(value, bool) and isinstance(value, expected) and math.isfinite(value)


def _is_within(value: Any, facts: Mapping[str, Any]) -> bool:
    """Whether a number is within `minimum` and `below`, which it must not reach, and `least` and `most`."""
    return bool(
        ("minimum" not in facts or value > facts["minimum"])
        and ("below" not in facts or value < facts["below"])
        and ("least" not in facts or value >= facts["least"])
        and ("most" not in facts or value <= facts["most"])
    )


def _bounds(kind: type | None, facts: Mapping[str, Any]) -> str:
    """What is expected of a number, in words; empty where there are no bounds."""
    if kind is int:
        least = facts.get("least")
        return "a whole number" + ("" if least is None else ", zero or more" if least == 0 else f", at least {least}")
    if "below" in facts or "most" in facts:
        upper = f"below {facts['below']:g}" if "below" in facts else f"up to {facts['most']:g}"
        lower = f"above {facts['minimum']:g}" if "minimum" in facts else f"from {facts.get('least', -math.inf):g}"
        return f"a number {lower} and {upper}"
    if "minimum" in facts:
        return f"more than {facts['minimum']:g}" if facts["minimum"] else "a positive number"
    if "least" in facts:
        return f"{facts['least']:g} or more" if facts["least"] else "zero or a positive number"
    return ""


def _given_repr(record: Any) -> str:
    """An options record by what differs from its defaults."""
    values = ((name, getattr(record, name), field.default) for name, field in option_fields(type(record)).items())
    own = (f"{name}={brief_value(value)}" for name, value, default in values if not _is_default(value, default))
    return f"{type(record).__name__}({', '.join(own)})"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Base of every options record."""

    def __init_subclass__(cls) -> None:
        cls.__repr__ = _given_repr  # type: ignore[method-assign]  # before dataclass makes one

    def __post_init__(self) -> None:
        check_options(self)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer(Options):
    """Of every verb."""

    json: bool = option(False, "print one JSON object and nothing else", recorded=False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Quiet(Options):
    """Of verbs that show progress."""

    quiet: bool = option(False, "no progress and nothing on the terminal", recorded=False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LogReading(Options):
    """Of verbs that read logs."""

    columns: str | None = option(None, "YAML file for logs with other column names", metavar="FILE", written="path")
    topic: tuple[str, ...] = option((), "topic of a bag to read, the main one first", metavar="TOPIC", repeated=True)
    window: str | None = option(
        None, "only this part of every log, by its own stamps", unit="s", metavar="START:STOP", written="interval"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class RobotReading(Options):
    """Of verbs that read a robot file."""

    fixed_base: bool = option(False, "confirm that a base which the robot file lets float is held (no warning then)")
    xacro_arg: tuple[str, ...] = option((), "argument of a xacro file", metavar="NAME:=VALUE", repeated=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LockedJoints(RobotReading):
    """Of verbs that take a robot."""

    locked: str = option("", "joints held at a position", unit="rad or m", metavar="q4=0.5,..", written="positions")


def option_fields(cls: Any) -> dict[str, dataclasses.Field[Any]]:
    """The fields of a record by name: its own before those that it inherits."""
    fields = {field.name: field for field in dataclasses.fields(cls)}
    order = [name for one in cls.__mro__ for name in vars(one).get("__annotations__", {}) if name in fields]
    return {name: fields[name] for name in dict.fromkeys(order)}


def option_type(field: dataclasses.Field[Any]) -> type:
    """The plain type of an option, by its annotation: what a command line can give."""
    words = re.findall(r"\w+", str(field.type))
    return next((_PLAIN[word] for word in words if word in _PLAIN), str)


def option_flags(name: str, field: dataclasses.Field[Any]) -> tuple[str, ...]:
    """Flags of an option, the usual one first: `rest_velocity` -> `--rest-velocity`."""
    facts = field.metadata
    return (*facts.get("flags", (f"--{name.replace('_', '-')}",)), *facts.get("aliases", ()))


def from_mapping(cls: Callable[..., T], given: Mapping[str, Any], warn: Callable[[str], None] = warn_deprecated) -> T:
    """Options from keywords, a parsed command line or a section of a run file.

    Args:
        cls: Their record.
        given: Options by name; names and values of earlier versions are read too.
        warn: Called with a sentence for each of those.

    Raises:
        UnknownNameError: For a name that is no option, with the nearest one.
        OptionError: For a value that the record refuses.
    """
    fields, values = option_fields(cls), {}
    for key, value in current_options(cls, given, warn).items():  # type: ignore[arg-type]
        if key not in fields:
            raise UnknownNameError("option", key, fields)
        if option_type(fields[key]) is float and type(value) is int:
            value = float(value)
        several = isinstance(value, list) and {"many", "repeated"} & set(fields[key].metadata)
        values[key] = tuple(value) if several else value
    return cls(**values)


def plain_options(record: Any, cls: Any) -> dict[str, Any]:
    """Those options of a record that another one has, a base of it: keywords of the function."""
    return {name: getattr(record, name) for name in option_fields(cls)}


def given_options(record: Any) -> dict[str, Any]:
    """Options that differ from their defaults and shape the result: for provenance and the printed command."""
    values = ((name, getattr(record, name), field) for name, field in option_fields(type(record)).items())
    return {
        name: value
        for name, value, field in values
        if field.metadata.get("recorded", True) and not _is_default(value, field.default)
    }


def _is_default(value: object, default: object) -> bool:
    """Whether a value is the default; arrays and other objects only where they are the very same."""
    return value is default or (isinstance(value, str | bool | int | float | tuple) and value == default)


def option_help(field: dataclasses.Field[Any]) -> str:
    """What an option is, with the names that it may list and its unit."""
    facts = field.metadata
    names = f"; names: {', '.join(facts['names'])}" if "names" in facts else ""
    unit = f" [{facts['unit']}]" if "unit" in facts else ""
    return f"{facts['help']}{names}{unit}"


def shown_default(field: dataclasses.Field[Any]) -> str:
    """The default of an option as people read it; empty where there is nothing to say."""
    default = field.default
    nothing = default is REQUIRED or default is None or default is False or default in ("", ())
    text = f"{default:.12g}" if isinstance(default, float) else str(default)
    return str(field.metadata.get("shown", "" if nothing else text))


def option_table(cls: Any) -> str:
    """The options as a Markdown table: flag, default, unit, meaning."""
    lines = ["| option | default | unit | meaning |", "|---|---|---|---|"]
    for name, field in option_fields(cls).items():
        facts = field.metadata
        flags = ", ".join(f"`{flag}`" for flag in option_flags(name, field))
        positional = f"`{facts.get('metavar', name)}`" if facts.get("positional") else flags
        shown = positional if facts.get("cli", True) else f"`{name}`"
        cells = (shown, shown_default(field), facts.get("unit", ""), facts["help"])
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines)


def described_options(text: str, name: str, cls: Any) -> str:
    """A docstring with every option described where it has the record of the options: what `help()` shows."""
    entry = re.search(rf"^( +){name}: .*\n(?:\1 +.*\n)*", text, re.MULTILINE)
    if entry is None:
        return text
    indent, lines = entry[1], []
    for key, field in option_fields(cls).items():
        shown = shown_default(field)
        words = f"{key}: {option_help(field)}.{f' Default: {shown}.' if shown else ''}"
        lines += textwrap.wrap(words, 100, initial_indent=indent, subsequent_indent=f"{indent}    ")
    return f"{text[: entry.start()]}{chr(10).join(lines)}\n{text[entry.end() :]}"


class _Keywords(Generic[P, T]):
    """Decorator of `keywords`."""

    def __init__(self, cls: Callable[P, T], positional: tuple[str, ...]) -> None:
        self.cls, self.positional = cls, positional

    @overload
    def __call__(self, function: Callable[[A, B, T], R]) -> Callable[Concatenate[A, B, P], R]: ...

    @overload
    def __call__(self, function: Callable[[A, T], R]) -> Callable[Concatenate[A, P], R]: ...

    def __call__(self, function: Callable[..., R]) -> Callable[..., R]:
        own = inspect.signature(function)
        *positional, last = own.parameters.values()
        names = [parameter.name for parameter in positional]
        cls: Any = self.cls
        places = (*names, *self.positional)

        @functools.wraps(function)
        def call(*args: Any, **given: Any) -> R:
            if len(args) == len(names) + 1 and isinstance(args[-1], cls):  # the record itself
                args, given = args[:-1], {last.name: args[-1], **given}
            if len(args) > len(places):
                raise InputError(f"{function.__name__} takes {' and '.join(names)}; give options by name")
            bound = dict(zip(places, args, strict=False))
            given |= {name: bound[name] for name in self.positional if name in bound}
            for name in names:
                if name in given:
                    if name in bound:
                        raise InputError(f"{function.__name__}: {name} is given twice")
                    bound[name] = given.pop(name)
                elif name not in bound:
                    raise InputError(f"{function.__name__}: {name} is missing")
            record = given.pop(last.name, None)
            options = from_mapping(cls, given) if record is None else dataclasses.replace(record, **given)
            return function(*(bound[name] for name in names), options)

        call.__doc__ = described_options(function.__doc__ or "", last.name, cls)
        options = inspect.signature(cls).parameters.values()
        call.__signature__ = own.replace(parameters=[*positional, *options])  # type: ignore[attr-defined]
        return call


def keywords(cls: Callable[P, T], *positional: str) -> _Keywords[P, T]:
    """Give a function `f(robot, options)` or `f(robot, logs, options)` the fields of a record as keywords.

    They are typed for mypy and editors, and shown by `help()`, Sphinx and Jupyter; an unknown one names the nearest.
    The first arguments may be passed by name at run time, the record itself behind them or as `options=`, and the
    options in `positional` by their place.
    """
    return _Keywords(cls, positional)
