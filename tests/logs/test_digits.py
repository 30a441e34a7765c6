from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dynident.logs import read_log, stream_log, text
from dynident.logs.text import decimal_table


def same_bits(found, cells) -> None:
    expected = np.array([[float(cell) for cell in row] for row in cells])
    np.testing.assert_array_equal(found.view(np.uint64), expected.view(np.uint64))


def lines(cells, delimiter=",") -> str:
    return "".join(delimiter.join(row) + "\n" for row in cells)


def test_numbers_of_all_lengths_are_the_nearest_doubles():
    rng = np.random.default_rng(0)
    patterns = ["%.9g", "%.6f", "%.3f", "%.15g", "%d", "%.12f", "%.1f", "+%.4f"]
    values = rng.normal(size=(2000, 8)) * 10.0 ** rng.integers(-6, 7, size=(2000, 8))
    cells = [
        [pattern % abs(x) if "+" in pattern else pattern % x for pattern, x in zip(patterns, row, strict=True)]
        for row in values
    ]
    for delimiter in ",;\t":
        same_bits(decimal_table(lines(cells, delimiter), delimiter, 8), cells)


@pytest.mark.parametrize(
    "cell",
    [
        *("0", "-0", "-0.0", "5.", ".5", "-.5", "+1", "007", "1e3", "-1E-3", "1e999", "-1e-999", "1.e5"),
        *("9007199254740992", "9007199254740993", "0.9007199254740993", "12345678.1234567890123456"),
        *("0.00000000000000001", "99999999.99999999", "0.3", "123456789.5", "1700000000.123456789"),
    ],
)
def test_odd_cells(cell):
    cells = [["1", "2.5", "3", "4"], ["5", cell, "6.25", "7"]]
    same_bits(decimal_table(lines(cells), ",", 4), cells)


@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12), min_size=1))
def test_any_decimal_number(numbers):
    cells = [[format(x, "f"), "1", "2", "3", "4"] for x in numbers]
    same_bits(decimal_table(lines(cells), ",", 5), cells)


@pytest.mark.parametrize(
    "cell",
    ["", "-", ".", "1-2", "--1", "1.2.3", "1e", "e5", "1 ", "nan", "0x1p3", "1_0", '"1"', "#", "1,2", "1\n2", "é"],
)
def test_what_is_no_plain_number_is_left_to_the_other_reader(cell):
    assert decimal_table(lines([["1", "2"]] * 50 + [[cell, "3"]] + [["1", "2"]] * 50), ",", 2) is None


def test_long_numbers_are_left_to_the_other_reader():
    assert decimal_table(lines([["0.12345678901234567", "0.76543210987654321"]] * 9), ",", 2) is None
    assert decimal_table("", ",", 2) is None


def test_rows_that_make_up_for_each_other_are_still_refused(tmp_path):
    """Three cells and one cell are not two rows of two."""
    assert decimal_table("1,2\n3,4,5\n6\n", ",", 2) is None


def test_both_readers_give_the_same_log(tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    values = rng.normal(size=(3000, 5)) * [1, 1e-3, 1e3, 1e-7, 1]
    values[:, 0] = np.arange(3000) / 1000
    path = tmp_path / "log.csv"
    cells = [",".join(f"{x:.9g}" for x in row) for row in values]
    cells[1500] += "\n# a remark\n"
    path.write_text("t,q1,dq1,note,tau1\n" + "\n".join(cells))
    monkeypatch.setattr(text, "PART", 1 << 13)
    used = []
    read = text.decimal_table
    monkeypatch.setattr(text, "decimal_table", lambda *a: used.append(read(*a)) or used[-1])
    quick = read_log(path)
    assert sum(part is None for part in used) == 1  # that with the remark
    assert sum(part is not None for part in used) > 10
    monkeypatch.setattr(text, "decimal_table", lambda *a: None)
    slow = read_log(path)
    np.testing.assert_array_equal(quick.time, slow.time)
    for name, own in slow.channels.items():
        np.testing.assert_array_equal(quick.channels[name], own)
    assert quick.unused == ("note",)
    assert sum(map(len, stream_log(path).blocks())) == 3000
