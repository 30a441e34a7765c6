"""Options declared once: what is derived from the fields of a record."""

from __future__ import annotations

import dataclasses
import inspect
import shlex
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from dynident.cli.arguments import Parser, add_arguments, command, parsed_options
from dynident.errors import DynidentError, InputError
from dynident.options import REQUIRED, Answer, Options, given_options, keywords, option, option_table


@dataclasses.dataclass(frozen=True, kw_only=True)
class SolveOptions(Options):
    terms: str | Sequence[str] | None = option(None, "terms", shown="rigid")
    band: float | None = option(None, "bandwidth", unit="Hz", minimum=0.0, shown="from the motion")
    rest: float = option(0.01, "rest", unit="rad/s", least=0.0)
    method: str = option("weighted", "method", choices=("weighted", "robust"), aliases=("--estimator",))
    essential: float | None = option(None, "share", const=0.15, metavar="SHARE")
    fast: bool = option(False, "faster")
    share: float = option(0.95, "part", minimum=0.0, most=1.0)
    tolerance: float = option(1e-8, "part", minimum=0.0, below=1.0, expected="a share between 0 and 1")
    seed: int = option(0, "of chance", least=0)
    by_name: float | Mapping[str, float] = option(0.05, "one number, or by name", least=0.0)
    boxes: Sequence[object] = option((), "corners", repeated=True, flags=("--box",))
    store: str | None = option(None, "folder", cli=False, recorded=False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SolveArguments(SolveOptions, Answer):
    robot: str = option(REQUIRED, "robot", positional=True)
    logs: tuple[str, ...] = option(REQUIRED, "logs", positional=True, many=True, metavar="LOG")
    output: str = option(REQUIRED, "folder", flags=("-o", "--output"))
    held_out: tuple[str, ...] = option((), "more logs", flags=("--from",), many=True)
    pose: tuple[str, ...] = option((), "poses", repeated=True)
    count: int = option(3, "how many", least=1)


@keywords(SolveOptions)
def solve(robot: str, logs: str, options: SolveOptions) -> tuple[str, str, SolveOptions]:
    """Solve it."""
    return robot, logs, options


@keywords(SolveOptions)
def look(robot: str, options: SolveOptions) -> tuple[str, SolveOptions]:
    return robot, options


def parsed(line: str) -> SolveArguments:
    parser = Parser(prog="dynident solve")
    add_arguments(parser, SolveArguments)
    return parsed_options(parser, SolveArguments, shlex.split(line))


NEEDED = {"robot": "arm.yaml", "logs": ("a.csv", "b.csv"), "output": "out"}
GIVEN = (
    {},
    {"band": 12.5},
    {"fast": True, "method": "robust"},
    {"essential": 0.3, "terms": "rigid,Fv"},
    {"held_out": ("c.csv", "d.csv"), "pose": ("q1=0", "-1"), "count": 4},
)


class TestOneDeclaration:
    @pytest.mark.parametrize("given", GIVEN)
    def test_keywords_command_and_parser_give_the_same_record(self, given):
        record = SolveArguments(**NEEDED, **given)
        line = command("solve", record)
        assert line.startswith("dynident solve arm.yaml a.csv b.csv -o out")
        assert parsed(line.removeprefix("dynident solve ")) == record
        assert given_options(record) == {**NEEDED, **given}

    def test_flags(self):
        assert parsed("r a -o o --essential").essential == 0.15
        assert parsed("r a -o o --estimator robust").method == "robust"
        assert parsed("r a -o o --json").json
        with pytest.raises(InputError, match="unknown argument '--store'"):
            parsed("r a -o o --store here")

    @pytest.mark.parametrize(
        ("line", "words"),
        [
            ("r a -o o --rest=-1", "^--rest is -1.0; expected zero or a positive number"),
            ("r a -o o --method weigthed", "--estimator: unknown choice 'weigthed'; did you mean 'weighted'"),
            ("r a -o o --count 0", "--count is 0; expected a whole number, at least 1"),
        ],
    )
    def test_a_refused_value_is_reported_with_its_flag(self, line, words):
        with pytest.raises(InputError, match=words):
            parsed(line)

    @pytest.mark.parametrize(
        ("line", "words"),
        [
            ("r a", "missing -o/--output; see dynident solve --help"),
            ("r a --outptu o", "unknown argument '--outptu'; did you mean '--output'"),
            ("r --essential a -o o", "SHARE must be a number, got 'a'; put --essential after the logs"),
            ("r a -o", "argument -o/--output: expected one argument; one that begins with a minus is written --output"),
        ],
    )
    def test_words_that_are_refused(self, line, words):
        with pytest.raises(InputError) as error:
            parsed(line)
        assert words in str(error.value)

    def test_what_shapes_no_number_is_not_recorded(self):
        assert given_options(SolveOptions(store="here")) == {}

    def test_types_by_the_first_plain_word_of_the_annotation(self):
        assert parsed("r a -o o --by-name 0.1").by_name == 0.1
        assert SolveOptions(by_name={"arm": 0.1}).by_name == {"arm": 0.1}
        assert parsed("r a -o o --box 1,2 --box=-1,2").boxes == ("1,2", "-1,2")

    def test_what_cannot_be_compared_is_given(self):
        boxes = np.zeros((1, 2))
        assert given_options(SolveOptions(boxes=boxes))["boxes"] is boxes

    def test_table(self):
        table = option_table(SolveOptions)
        assert "| `--band` | from the motion | Hz | bandwidth |" in table
        assert "| `store` |  |  | folder |" in table


class TestKeywords:
    def test_first_arguments_by_name(self):
        for found in (solve("a", "b", band=3.0), solve("a", logs="b", band=3.0), solve(logs="b", band=3.0, robot="a")):
            assert found == ("a", "b", SolveOptions(band=3.0))

    def test_one_argument_before_them(self):
        assert look("a", band=3) == look(robot="a", band=3.0) == ("a", SolveOptions(band=3.0))

    def test_signature_shows_every_option(self):
        names = list(inspect.signature(solve).parameters)
        assert names == ["robot", "logs", *(field.name for field in dataclasses.fields(SolveOptions))]
        assert solve.__doc__ == "Solve it."

    def test_wrong_calls(self):
        for args, given, words in (
            (("a",), {}, "logs is missing"),
            (("a", "b", 3.0), {}, "give options by name"),
            (("a", "b"), {"robot": "c"}, "robot is given twice"),
            (("a", "b"), {"bnad": 3.0}, "unknown option 'bnad'; did you mean 'band'"),
        ):
            with pytest.raises(DynidentError, match=words):
                solve(*args, **given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"band": "wide"}, "band is 'wide'; expected a finite number in Hz"),
        ({"band": float("nan")}, "expected a finite number"),
        ({"band": True}, "expected a finite number"),
        ({"rest": None}, "rest is None; expected a finite number in rad/s"),
        ({"method": 3}, "method: unknown choice '3'"),
        ({"share": 1.5}, "share is 1.5; expected a number above 0 and up to 1"),
        ({"tolerance": float("nan")}, "tolerance is nan; expected a share between 0 and 1"),
        ({"seed": -1}, "seed is -1; expected a whole number, zero or more"),
        ({"seed": 1.5}, "seed is 1.5; expected a whole number, zero or more"),
        ({"band": 0.0}, "band is 0.0; expected a positive number"),
        ({"rest": -1.0}, "rest is -1.0; expected zero or a positive number"),
        ({"method": "weigthed"}, "did you mean 'weighted'"),
    ],
)
def test_values_that_are_refused(given, words):
    with pytest.raises(InputError, match=words):
        SolveOptions(**given)
