"""The command line of a verb from its options record, and the command that gives the same record again.

Every default is left to the record: what was not given leaves no trace in what argparse returns.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from dynident.deprecated import current_words
from dynident.errors import InputError, suggestion
from dynident.options import (
    REQUIRED,
    OptionError,
    from_mapping,
    given_options,
    option,
    option_fields,
    option_flags,
    option_help,
    option_type,
    shown_default,
)


def robot_argument(default: Any = REQUIRED) -> Any:
    """The robot of a verb, its first argument."""
    return option(default, "robot file or bundled name", positional=True, metavar="ROBOT")


def fit_argument() -> Any:
    """The stored fit of a verb, its first argument."""
    return option(REQUIRED, "fit.yaml, or the folder that identify wrote", positional=True, metavar="FIT")


def output_argument(default: Any, help: str, metavar: str, **facts: Any) -> Any:
    """Where a verb writes to."""
    return option(default, help, flags=("-o", "--output"), metavar=metavar, **facts)


def complain(message: object) -> None:
    """An error: one line on stderr, whatever a file or an argument put into the message."""
    print(f"dynident: {_one_line(message)}", file=sys.stderr)


def warn(message: object) -> None:
    """A warning: one line on stderr."""
    print(f"Warning: {_one_line(message)}", file=sys.stderr)


def _one_line(message: object) -> str:
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(message))


def print_answer(options: Any, answer: Callable[[], Mapping[str, Any]], show: Callable[[], None]) -> int:
    """The answer of a verb: one JSON object, or what `show` prints unless it is to be quiet; exit code 0."""
    if options.json:
        print(json.dumps(answer(), allow_nan=False))
    elif not getattr(options, "quiet", False):
        show()
    return 0


class Parser(argparse.ArgumentParser):
    """argparse with one-line errors and the nearest valid word; its epilog keeps its lines."""

    _given: Sequence[str] = ()

    def format_help(self) -> str:
        """Usage, arguments and options, and the epilog as it is."""
        last, self.epilog = self.epilog, None
        try:
            return f"{super().format_help()}\n{last}\n" if last else super().format_help()
        finally:
            self.epilog = last

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does; remembers the words for messages."""
        self._given = list(args or ())
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Refuse the words: one sentence that names what is wrong.

        Raises:
            InputError: Always.
        """
        known = list(self._option_string_actions)
        if message.startswith("unrecognized arguments: "):
            word = message.removeprefix("unrecognized arguments: ").split(" ")[0]
            message = f"unknown argument '{word}'{suggestion(_name(word), known)}; see {self.prog} --help"
        elif message.startswith("the following arguments are required: "):
            need = message.removeprefix("the following arguments are required: ")
            message = f"missing {need}; see {self.prog} --help"
            wrong = [x for x in self._given if x.startswith("--") and not any(o.startswith(_name(x)) for o in known)]
            if wrong:  # a misspelt option may be why something is missing
                message = f"unknown argument '{wrong[0]}'{suggestion(_name(wrong[0]), known)}; see {self.prog} --help"
        elif message.endswith(": expected one argument"):
            option = message.removeprefix("argument ").split(":")[0].split("/")[-1]
            message += f"; one that begins with a minus is written {option}=-1"
        raise InputError(" ".join(message.split()))


def _name(argument: str) -> str:
    """An option without its value."""
    return argument.split("=")[0]


def add_arguments(parser: argparse.ArgumentParser, cls: Any) -> None:
    """Every option of a record as an argument."""
    fields = option_fields(cls)
    before = [name for name, field in fields.items() if field.metadata.get("positional")]
    groups: dict[str, Any] = {"": parser}
    for name, field in fields.items():
        facts, kind, required = field.metadata, option_type(field), field.default is REQUIRED
        if not facts.get("cli", True):
            continue
        title = _group_title(cls, name)
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        target = groups[title]
        how: dict[str, Any] = {"default": argparse.SUPPRESS, "help": _help(field)}
        if kind is bool:
            target.add_argument(*option_flags(name, field), dest=name, action="store_true", **how)
            continue
        choices = f"{{{','.join(facts['choices'])}}}" if "choices" in facts else name.upper()
        how |= {"type": kind, "metavar": facts.get("metavar", choices)}
        how |= {"nargs": "+"} if facts.get("many") else {}
        if facts.get("positional"):
            how |= {} if required or facts.get("many") else {"nargs": "?"}
            target.add_argument(name, **how)
            continue
        how |= {"action": "append"} if facts.get("repeated") else {}
        if "const" in facts:
            how |= {"nargs": "?", "const": facts["const"], "type": _bare(name, field, before)}
        target.add_argument(*option_flags(name, field), dest=name, required=required, **how)


def _group_title(cls: Any, name: str) -> str:
    """Heading under which help lists an option: that of the record that declares it; empty for the usual ones."""
    home = next(one for one in cls.__mro__ if name in vars(one).get("__annotations__", {}))
    return str(vars(home).get("HELP_GROUP", ""))


def _help(field: dataclasses.Field[Any]) -> str:
    shown = shown_default(field)
    bare = f" (bare: {field.metadata['const']})" if "const" in field.metadata else ""
    return f"{option_help(field)}{bare}{f' (default: {shown})' if shown else ''}".replace("%", "%%")


def _bare(name: str, field: dataclasses.Field[Any], positional: Sequence[str]) -> Callable[[str], Any]:
    """Type of an option whose value may be left out: it takes what was meant as an argument for its value."""
    kind, facts, flag = option_type(field), field.metadata, option_flags(name, field)[0]

    def read(text: str) -> Any:
        if text not in facts.get("choices", (text,)) and os.path.exists(text):
            raise argparse.ArgumentTypeError(
                f"unknown choice '{text}'{suggestion(text, facts['choices'])}; put {flag} after the {positional[-1]}, "
                f"or write {flag}={facts['const']}"
            )
        try:
            return kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"{facts.get('metavar', name.upper())} must be a number, got {text!r}; put {flag} after the "
                f"{positional[-1]}, or write {flag}={facts['const']}"
            ) from None

    return read


def check_inputs_stay(options: Any) -> None:
    """Refuse a file to write that the verb reads: a log or a robot file would be gone.

    Raises:
        InputError: Naming the file.
    """
    fields = option_fields(type(options))
    read, written = set(), []
    for name, field in fields.items():
        value, shown = getattr(options, name), field.metadata.get("metavar")
        if field.metadata.get("positional") or (shown == "LOG" and name != "output"):
            given = value if isinstance(value, tuple) else (value,)
            read |= {os.path.realpath(one) for one in given if isinstance(one, str) and os.path.isfile(one)}
        elif isinstance(value, str) and (name == "output" or str(shown).startswith("F.")):
            written.append(value)
    for path in written:
        if os.path.realpath(path) in read:
            raise InputError(f"{path}: is read by this command and would be overwritten; give the output another name")


def parsed_options(parser: Parser, cls: Any, words: Sequence[str]) -> Any:
    """The record that the words of a command line give."""
    flags = {name: option_flags(name, field)[-1] for name, field in option_fields(cls).items()}
    given = vars(parser.parse_args(current_words(cls, words, flags, warn)))
    try:
        return from_mapping(cls, given, warn)
    except OptionError as error:
        field = option_fields(cls)[error.name]
        shown = field.metadata.get("metavar") if field.metadata.get("positional") else None
        raise InputError(f"{shown or option_flags(error.name, field)[-1]}{error.problem}") from None


def command(verb: str, record: Any) -> str:
    """The command line that gives the same result again."""
    fields, given = option_fields(type(record)), given_options(record)
    words = ["dynident", verb]
    for name in sorted(given, key=lambda one: not fields[one].metadata.get("positional")):
        value, facts = given[name], fields[name].metadata
        several = list(value) if {"many", "repeated"} & set(facts) else [value]
        if facts.get("positional"):
            words += map(str, several)
        elif facts.get("cli", True):
            flag = option_flags(name, fields[name])[0]
            if value is True:
                words.append(flag)
            elif facts.get("many"):
                words += [flag, *map(str, several)]
            else:  # a value that begins with a minus must not stand alone
                words += [w for x in several for w in ([f"{flag}={x}"] if str(x).startswith("-") else [flag, str(x)])]
    return shlex.join(words)
