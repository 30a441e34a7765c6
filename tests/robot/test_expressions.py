from __future__ import annotations

import math
import time
import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dynident.robot.expressions import ExpressionError, evaluate, linear_form, parse
from dynident.schema import plain_number, quote

NAMES = {"d3": 0.5, "RL4": 2.0}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("pi/2", math.pi / 2),
        ("-d3", -0.5),
        ("+d3", 0.5),
        ("2*d3 + RL4/4", 1.5),
        ("RL4^3", 8.0),
        ("RL4**3", 8.0),
        ("RL4^-1", 0.5),
        ("d3^0.5", math.sqrt(0.5)),
        ("-2^2", -4.0),
        ("(1 + 2)*3 - 4", 5.0),
        ("sqrt(RL4) * cos(0)", math.sqrt(2.0)),
        ("deg(180)", math.pi),
        ("atan(tan(0.3)) + asin(sin(0.2)) + acos(cos(0.1))", 0.6),
        ("1e-3", 1e-3),
        ("  .5 ", 0.5),
        ("2.", 2.0),
        (3, 3.0),
        (0.25, 0.25),
    ],
)
def test_values(text, value):
    result = evaluate(text, NAMES)
    assert isinstance(result, float)
    assert result == pytest.approx(value, abs=1e-15)


def test_names_may_stand_for_arrays():
    np.testing.assert_allclose(evaluate("2*a^2 - 1", {"a": np.array([1.0, 2.0])}), [1.0, 7.0])


def test_a_name_hides_no_function_and_a_function_no_name():
    assert evaluate("sin(0) + cos", {"cos": 3.0}) == 3.0
    with pytest.raises(ExpressionError, match="'sin' is not a known name"):
        evaluate("sin + 1", NAMES)


NOT_ARITHMETIC = [
    *("d3.real", "d3.__class__", "().__class__.__bases__[0].__subclasses__()", "'a'.join(d3)", "d3.__init__()"),
    *(
        "__import__('os').system('true')",
        "open('/etc/passwd')",
        "eval('1')",
        "exec('1')",
        "print(1)",
        "getattr(d3, 'x')",
    ),
    *("max(1, 2)", "abs(1)", "pow(2, 3)", "sin(1, 2)", "sin()", "sin(x=1)", "sin(*d3)", "sin(**d3)", "(sin)(1)(2)"),
    *(
        "lambda: 1",
        "[1, 2]",
        "[x for x in d3]",
        "{1: 2}",
        "{1}",
        "(1, 2)",
        "d3[0]",
        "1 if d3 else 2",
        "d3 and 1",
        "not d3",
    ),
    *(
        "1 < 2",
        "d3 == 1",
        "~1",
        "1 // 2",
        "7 % 2",
        "1 << 60",
        "1 | 2",
        "1 & 2",
        "2 @ 3",
        "(y := 3)",
        "*d3",
        "...",
        "f'{d3}'",
    ),
    *("'text'", "b'text'", "True", "None", "1j", "2 + 3j", "await d3", "yield", "f'''{d3!r:\n}'''"),
]


@pytest.mark.parametrize("text", NOT_ARITHMETIC)
def test_nothing_but_arithmetic_is_evaluated(text):
    with pytest.raises(ExpressionError) as caught:
        evaluate(text, NAMES)
    message = str(caught.value)
    assert "\n" not in message
    assert "may only contain" in message or "is not an arithmetic expression" in message


def test_the_message_says_what_is_allowed():
    with pytest.raises(
        ExpressionError, match=r"'abs\(1\)' may only contain numbers, known names, \+ - \* / \^ and sin"
    ):
        evaluate("abs(1)", NAMES)


@pytest.mark.parametrize(
    "text", ["", " ", "1 +", "1 2", "(1", "1)", "d3 d3", "a = 1", "import os", "1; 2", "\0", "#", "\\", "0x", "1..2"]
)
def test_broken_text(text):
    with pytest.raises(ExpressionError, match=r"is not an arithmetic expression|plain decimal notation"):
        evaluate(text, NAMES)


@pytest.mark.parametrize("text", ["0x10", "0b11", "0o17", "1_000", "1_0.5", "2*1e1_0", "d3 + 0x1"])
def test_numbers_are_decimal(text):
    with pytest.raises(ExpressionError, match="plain decimal notation"):
        evaluate(text, NAMES)


def test_digits_with_underscores_are_fine_in_names():
    assert evaluate("L1_2 + x0b1", {"L1_2": 1.0, "x0b1": 2.0}) == 3.0


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "NaN", "infinity"])
def test_words_for_numbers_are_unknown_names(text):
    with pytest.raises(ExpressionError, match="is not a known name"):
        evaluate(text, NAMES)


@pytest.mark.parametrize("value", [True, False, None, [1], (1, 2), {"a": 1}, b"1", {1}, 1j, object])
def test_other_types(value):
    with pytest.raises(ExpressionError, match="is not a number"):
        evaluate(value, NAMES)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1/0", "cannot be computed"),
        ("0^-1", "cannot be computed"),
        ("d3/(d3 - 0.5)", "cannot be computed"),
        ("1e300^8", "cannot be computed"),
        ("sqrt(-1)", r"sqrt\(-1\) is not defined"),
        ("acos(2)", r"acos\(2\) is not defined"),
        ("sin(1e999)", r"sin\(inf\) is not defined"),
        ("(-1)^0.5", r"negative number to the power 0.5 is not defined"),
        ("2^9", "exponents must be numbers up to 8"),
        ("2^-9", "exponents must be numbers up to 8"),
        ("9^9^9^9", "exponents must be numbers up to 8"),
        ("9^(8*8)", "exponents must be numbers up to 8"),
        ("2^1e999", "exponents must be numbers up to 8"),
    ],
)
def test_impossible_numbers(text, words):
    with pytest.raises(ExpressionError, match=words):
        evaluate(text, NAMES)


def test_exponents_that_are_arrays_are_refused():
    with pytest.raises(ExpressionError, match="exponents must be numbers"):
        evaluate("2^a", {"a": np.array([1.0, 2.0])})


def test_whole_numbers_beyond_floats():
    with pytest.raises(ExpressionError, match="too large"):
        evaluate(10**400, NAMES)
    with pytest.raises(ExpressionError, match="cannot be computed"):
        evaluate("1 + " + "9" * 190 + "^8", NAMES)


def test_unknown_names_come_with_the_nearest_one():
    with pytest.raises(
        ExpressionError, match=r"'RL3' is not a known name; did you mean 'RL4'\? \(valid: d3, RL4, pi\)"
    ):
        evaluate("RL3 + 1", NAMES)
    with pytest.raises(ExpressionError) as caught:
        evaluate("zz", dict.fromkeys((f"L{i}" for i in range(1000)), 1.0))
    assert str(caught.value).endswith("and 961 more)")


@pytest.mark.parametrize(
    "text", ["(" * 150 + "1" + ")" * 40, "-" * 199 + "1", "sin(" * 39 + "1" + ")" * 39, "+".join(["1"] * 100)]
)
def test_nested_expressions_end_in_a_number_or_an_error(text):
    try:
        result = evaluate(text, {})
    except ExpressionError as error:
        result = str(error)
    assert isinstance(result, float) or "is not an arithmetic expression" in result or "too deeply" in result


def test_length_is_limited_and_the_message_short():
    assert evaluate("1" + "+1" * 99, {}) == 100.0
    with pytest.raises(ExpressionError, match="longer than 200 characters") as caught:
        evaluate("1+" * 100_000 + "1", {})
    assert len(str(caught.value)) < 200


def test_refusing_takes_no_time():
    start = time.perf_counter()
    for text in (
        "9^9^9^9^9",
        "(" * 10_000,
        "((((((8^8)^8)^8)^8)^8)^8)^8",
        "1" * 100_000,
        "1_" * 99,
        "0.0" * 60,
        " " * 100_000,
    ):
        with pytest.raises(ExpressionError):
            evaluate(text + "+ nothing", {})
    assert time.perf_counter() - start < 2.0


def test_python_keeps_its_remarks_to_itself():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for text in ("1if 2else 3", "'\\d'", "1is 1", "0x1for x in 2"):
            with pytest.raises(ExpressionError):
                evaluate(text, {})


def test_parse_gives_a_tree_without_running_it():
    assert type(parse("open('x')")).__name__ == "Call"


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.text("0123456789.eE+-*/^() dpisncoqrt_,[]{}'\":@", max_size=40))
def test_any_text_is_a_number_or_an_expression_error(text):
    try:
        result = evaluate(text, NAMES)
    except ExpressionError as error:
        result = str(error)
    assert isinstance(result, float | str)


class TestLinearForms:
    VARIABLES = {"q1": "0", "q2": "1", "q3": "2"}

    def test_coefficients_and_constant(self):
        terms, constant = linear_form("pi/2 - q2 + 3*(q3 - q2)/2", self.VARIABLES)
        assert terms == pytest.approx({"1": -2.5, "2": 1.5})
        assert constant == pytest.approx(math.pi / 2)
        assert linear_form(0.5, self.VARIABLES) == ({}, 0.5)

    @pytest.mark.parametrize(
        "text",
        ["q1*q2", "q1^2", "q1^3", "sin(q1)", "q1*(q1 - 1)*(q1 - 2)", "q1*q2*q3", "1/(q1 + 1)", "2^q1", "q1 - q1*q2"],
    )
    def test_everything_else_is_refused(self, text):
        with pytest.raises(ExpressionError, match=r"is not linear in q"):
            linear_form(text, self.VARIABLES)

    @pytest.mark.parametrize(
        "value", [math.nan, math.inf, "1e999", "1e999*q1", "1e999*q1 - 1e999*q1", "1e7", "1e7*q2", -1e7]
    )
    def test_numbers_that_are_not_finite_or_absurd(self, value):
        with pytest.raises(ExpressionError, match=r"not finite or beyond 1e\+06"):
            linear_form(value, self.VARIABLES)

    @pytest.mark.parametrize("value", [None, [1], True, {"q1": 1}, "1/q1", "(-1)^0.5*q1", "q4", "q1.real"])
    def test_what_is_no_expression(self, value):
        with pytest.raises(ExpressionError):
            linear_form(value, self.VARIABLES)


@pytest.mark.parametrize(
    ("text", "number"), [("1", 1.0), ("-1.5e-3", -1.5e-3), (" 2 ", 2.0), ("+.5", 0.5), ("3.", 3.0)]
)
def test_plain_numbers(text, number):
    assert plain_number(text) == number


@pytest.mark.parametrize("text", ["", "nan", "inf", "1_0", "0x1", "1,5", "１", "1 2", "e3", ".", "1e", "--1", "pi"])
def test_texts_that_are_no_plain_numbers(text):
    assert plain_number(text) is None


@pytest.mark.parametrize(
    ("value", "text"), [(None, "empty"), ("a", "'a'"), ("a\nb", r"'a\nb'"), (1.5, "1.5"), ([1], "[1]"), (True, "True")]
)
def test_quoted_values(value, text):
    assert quote(value) == text


@pytest.mark.parametrize(
    "value", ["x" * 10_000, list(range(10_000)), {i: [i] * 99 for i in range(99)}, [[["x" * 99] * 99] * 99]]
)
def test_quoted_values_are_short(value):
    assert len(quote(value)) < 250
    assert "\n" not in quote(value)
