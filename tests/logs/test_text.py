"""Numbers in text: the nearest doubles, whoever reads them, and one message for what is wrong."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from dynident.logs import LogError, read_log, stream_log, text
from dynident.logs.text import TextTable


@pytest.fixture(params=["pyarrow", "numpy"])
def reader(request, monkeypatch):
    """Who reads the text behind its first part."""
    monkeypatch.setattr(text, "FIRST_ARROW_PART", 0)
    if request.param == "pyarrow":
        pytest.importorskip("pyarrow")
    else:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    return request.param


def numbers(path, cells, delimiter=","):
    """What a table of these cells is read as, (n_rows, n_columns)."""
    names = delimiter.join(f"c{i}" for i in range(len(cells[0])))
    path.write_text(names + "\n" + "".join(delimiter.join(row) + "\n" for row in cells), encoding="utf-8")
    return np.concatenate(list(TextTable(path).parts(range(len(cells[0])))), axis=1).T


def same_bits(found, cells) -> None:
    expected = np.array([[float(cell) for cell in row] for row in cells])
    np.testing.assert_array_equal(np.ascontiguousarray(found).view(np.uint64), expected.view(np.uint64))


def test_numbers_of_all_lengths_are_the_nearest_doubles(tmp_path, reader):
    rng = np.random.default_rng(0)
    patterns = ["%.9g", "%.6f", "%.3f", "%.15g", "%d", "%.12f", "%.1f", "+%.4f"]
    values = rng.normal(size=(2000, 8)) * 10.0 ** rng.integers(-6, 7, size=(2000, 8))
    cells = [
        [pattern % abs(x) if "+" in pattern else pattern % x for pattern, x in zip(patterns, row, strict=True)]
        for row in values
    ]
    for delimiter in ",;\t":
        same_bits(numbers(tmp_path / "log.csv", cells, delimiter), cells)


@pytest.mark.parametrize(
    "cell",
    [
        *("0", "-0", "-0.0", "5.", ".5", "-.5", "+1", "007", "1e3", "-1E-3", "1e999", "-1e-999", "1.e5", "1 ", " 2"),
        *("9007199254740992", "9007199254740993", "0.9007199254740993", "12345678.1234567890123456"),
        *("0.00000000000000001", "99999999.99999999", "0.3", "123456789.5", "1700000000.123456789"),
        *("0.12345678901234567", "0.76543210987654321", "inf", "-inf"),
    ],
)
def test_odd_cells(tmp_path, reader, cell):
    cells = [["1", "2.5", "3", "4"], ["5", cell, "6.25", "7"]]
    same_bits(numbers(tmp_path / "log.csv", cells), cells)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12), min_size=2))
def test_any_decimal_number(tmp_path, reader, values):
    cells = [[format(x, "f"), "1", "2", "3", "4"] for x in values]
    same_bits(numbers(tmp_path / "log.csv", cells), cells)


@pytest.mark.parametrize(
    "cell", ["", "-", ".", "1-2", "--1", "1.2.3", "1e", "e5", "0x1p3", "1_0", '"1"', "x", "é", "null", "NA"]
)
def test_what_is_no_number_is_named_with_its_row(tmp_path, reader, monkeypatch, cell):
    monkeypatch.setattr(text, "PART", 64)
    cells = [["1", "2"]] * 50 + [[cell, "3"]] + [["1", "2"]] * 50
    with pytest.raises(LogError, match=r"row 51 of the numbers, column 'c0': .* is not a number"):
        numbers(tmp_path / "log.csv", cells)


@pytest.mark.parametrize("rows", ["1,2\n3,4,5\n6\n", "1,2\n3,4,5\n6,7\n"])
def test_rows_with_other_numbers_of_cells_are_refused(tmp_path, reader, rows):
    (tmp_path / "log.csv").write_text("a,b\n" + rows)
    with pytest.raises(LogError, match="row 2 of the numbers has 3 cells, but the header has 2"):
        list(TextTable(tmp_path / "log.csv").parts([0]))


def test_both_readers_give_the_same_log(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(1)
    values = rng.normal(size=(3000, 5)) * [1, 1e-3, 1e3, 1e-7, 1]
    values[:, 0] = np.arange(3000) / 1000
    path = tmp_path / "log.csv"
    cells = [",".join(f"{x:.9g}" for x in row) for row in values]
    cells[1500] += "\n# a remark\n"
    path.write_text("t,q1,dq1,note,tau1\n" + "\n".join(cells))
    monkeypatch.setattr(text, "PART", 1 << 13)
    monkeypatch.setattr(text, "FIRST_ARROW_PART", 2)
    quick = read_log(path)
    assert sum(map(len, stream_log(path).blocks())) == 3000
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    slow = read_log(path)
    np.testing.assert_array_equal(quick.time, slow.time)
    for name, own in slow.channels.items():
        np.testing.assert_array_equal(quick.channels[name], own)
    assert quick.unused == ("note",)
