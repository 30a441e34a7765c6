"""Options declared once: what is derived from the fields of a record."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import shlex
from collections.abc import Sequence

import pytest

from dynident.errors import InputError
from dynident.options import (
    add_arguments,
    check_options,
    command,
    from_mapping,
    given_options,
    keywords,
    option,
    option_table,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    terms: str | Sequence[str] | None = option(None, "terms", shown="rigid")
    band: float | None = option(None, "bandwidth", unit="Hz", minimum=0.0, shown="from the motion")
    rest: float = option(0.01, "rest", unit="rad/s", least=0.0)
    method: str = option("weighted", "method", choices=("weighted", "robust"), aliases=("--estimator",))
    essential: float | None = option(None, "share", const=0.15)
    fast: bool = option(False, "faster")
    store: str | None = option(None, "folder", cli=False, recorded=False)

    def __post_init__(self) -> None:
        check_options(self)


@keywords(Options)
def solve(robot: str, logs: str, options: Options) -> tuple[str, str, Options]:
    """Solve it."""
    return robot, logs, options


def parsed(line: str) -> Options:
    parser = argparse.ArgumentParser()
    add_arguments(parser, Options)
    return from_mapping(Options, vars(parser.parse_args(shlex.split(line))))


class TestOneDeclaration:
    def test_keywords_command_and_parser_give_the_same_record(self):
        for given in ({}, {"band": 12.5}, {"fast": True, "method": "robust"}, {"essential": 0.3, "terms": "rigid,Fv"}):
            record = Options(**given)
            line = command("solve", ["arm.yaml"], record)
            assert line.startswith("dynident solve arm.yaml")
            assert parsed(line.removeprefix("dynident solve arm.yaml")) == record
            assert given_options(record) == given

    def test_a_run_file_gives_the_same_record(self):
        section = {"band": 12, "terms": ["rigid", "Fv"]}
        assert from_mapping(Options, section, "run.yaml:7") == Options(band=12.0, terms="rigid,Fv")

    def test_flags(self):
        assert parsed("--essential").essential == 0.15
        assert parsed("--estimator robust").method == "robust"
        with pytest.raises(SystemExit):
            parsed("--store here")

    def test_what_shapes_no_number_is_not_recorded(self):
        assert given_options(Options(store="here")) == {}

    def test_table(self):
        table = option_table(Options)
        assert "| `--band` | from the motion | Hz | bandwidth |" in table
        assert "| `store` | None |  | folder |" in table


class TestKeywords:
    def test_first_arguments_by_name(self):
        for found in (solve("a", "b", band=3.0), solve("a", logs="b", band=3.0), solve(logs="b", band=3.0, robot="a")):
            assert found == ("a", "b", Options(band=3.0))

    def test_signature_shows_every_option(self):
        names = list(inspect.signature(solve).parameters)
        assert names == ["robot", "logs", *(field.name for field in dataclasses.fields(Options))]
        assert solve.__doc__ == "Solve it."

    def test_wrong_calls(self):
        for args, given, words in (
            (("a",), {}, "logs is missing"),
            (("a", "b", 3.0), {}, "give options by name"),
            (("a", "b"), {"robot": "c"}, "robot is given twice"),
            (("a", "b"), {"bnad": 3.0}, "unknown option 'bnad'; did you mean band"),
        ):
            with pytest.raises(InputError, match=words):
                solve(*args, **given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"band": "wide"}, "band is 'wide'; expected a finite number in Hz"),
        ({"band": float("nan")}, "expected a finite number"),
        ({"band": True}, "expected a finite number"),
        ({"band": 0.0}, "band is 0 Hz; expected more than 0 Hz"),
        ({"rest": -1.0}, "rest is -1 rad/s; expected 0 rad/s or more"),
        ({"method": "weigthed"}, "did you mean weighted"),
    ],
)
def test_values_that_are_refused(given, words):
    with pytest.raises(InputError, match=words):
        Options(**given)
    with pytest.raises(InputError, match=f"run.yaml:7: .*{words}"):
        from_mapping(Options, given, "run.yaml:7")
