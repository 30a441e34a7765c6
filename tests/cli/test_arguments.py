"""Every verb's options are declared once: keywords, printed command, parser and help come from one record."""

from __future__ import annotations

import dataclasses
import shlex
import subprocess
import sys

import pytest

import dynident as di
from dynident.cli.arguments import command, parsed_options
from dynident.cli.command_line import VERBS, main, options_of, verb_parser
from dynident.errors import InputError
from dynident.options import given_options, option_fields, option_flags, option_type

SAMPLES = {"--taylor": 7, "--factor": 2.5, "--settle": 0.3}  # options whose record says more than bounds


def sample_value(name, field):
    """A value that an option takes and that is not its default."""
    facts, kind = field.metadata, option_type(field)
    if option_flags(name, field)[0] in SAMPLES:
        return SAMPLES[option_flags(name, field)[0]]
    if "choices" in facts:
        return next(one for one in reversed(facts["choices"]) if one != field.default)
    if kind is bool:
        return True
    if kind in (int, float):
        low = facts.get("minimum", facts.get("least"))
        high = facts.get("below", facts.get("most"))
        if low is None:
            return kind(-7)
        return kind(low + 7 if high is None else 0.25 * low + 0.75 * high - 1e-3)
    word = f"{name}.x" if facts.get("positional") else f"-{name} x"  # one that begins with a minus, and a space
    several = (f"{name}1", f"{name}2") if facts.get("many") else (word, "y") if facts.get("repeated") else None
    return word if several is None else several


def recorded(cls):
    """Options that a printed command has."""
    fields = option_fields(cls).items()
    return {
        name: sample_value(name, field)
        for name, field in fields
        if field.metadata.get("cli", True) and field.metadata.get("recorded", True)
    }


def parse_again(verb, record):
    words = shlex.split(command(verb, record))
    assert words[:2] == ["dynident", verb]
    return parsed_options(verb_parser(verb), type(record), words[2:])


@pytest.mark.parametrize("verb", VERBS)
class TestEveryVerb:
    def test_keywords_command_and_parser_give_the_same_record(self, verb):
        cls = options_of(verb)
        given = recorded(cls)
        record = cls(**given)
        assert given_options(record) == given
        assert parse_again(verb, record) == record

    def test_each_option_alone(self, verb):
        cls = options_of(verb)
        given = recorded(cls)
        needed = {
            name: given[name] for name, field in option_fields(cls).items() if field.default is dataclasses.MISSING
        }
        for name in given:
            record = cls(**needed, **({} if name in needed else {name: given[name]}))
            assert parse_again(verb, record) == record

    def test_help_shows_every_flag(self, verb, capsys):
        with pytest.raises(SystemExit) as end:
            main([verb, "--help"])
        assert end.value.code == 0
        text = capsys.readouterr().out
        for name, field in option_fields(options_of(verb)).items():
            if field.metadata.get("cli", True) and not field.metadata.get("positional"):
                for flag in option_flags(name, field):
                    assert flag in text

    def test_a_bound_is_refused_with_its_flag(self, verb):
        cls = options_of(verb)
        given = recorded(cls)
        needed = {
            name: given[name] for name, field in option_fields(cls).items() if field.default is dataclasses.MISSING
        }
        words = shlex.split(command(verb, cls(**needed)))[2:]
        for name, field in option_fields(cls).items():
            facts = field.metadata
            if facts.get("cli", True) and {"minimum", "least"} & set(facts) and option_type(field) is float:
                flag = option_flags(name, field)[-1]
                with pytest.raises(InputError, match=f"^{flag} is -1000000.0; expected "):
                    parsed_options(verb_parser(verb), cls, [*words, f"{flag}=-1e6"])


def test_help_of_every_verb_loads_nothing_heavy():
    code = (
        "import sys; from dynident.cli.command_line import VERBS, verb_parser\n"
        "for verb in VERBS: verb_parser(verb).format_help()\n"
        "print([name for name in ('numpy', 'scipy', 'yaml', 'rich', 'mujoco') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


FUNCTIONS = {
    "identify": ("robot", "logs", {"band": -1.0}),
    "validate": ("fit", "logs", {"band": -1.0}),
    "check_logs": ("robot", "logs", {"band": -1.0}),
    "identify_payload": ("fit", "loaded", {"band": -1.0}),
    "simulate": ("robot", "motion", {"rate": -1.0}),
    "stream": ("robot", "source", {"duration": -1.0}),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_first_arguments_by_place_or_by_name(name):
    first, second, wrong = FUNCTIONS[name]
    function, (option,) = getattr(di, name), wrong
    for args, given in ((("a", "b"), {}), (("a",), {second: "b"}), ((), {second: "b", first: "a"})):
        with pytest.raises(InputError, match=f"^{option} is -1.0; expected a positive number"):
            function(*args, **given, **wrong)
    with pytest.raises(InputError, match=f"{first} is missing"):
        function(**{second: "b"}, **wrong)
    with pytest.raises(di.DynidentError, match=rf"unknown option '{option}s'; did you mean '{option}'"):
        function("a", "b", **{f"{option}s": 1.0})
