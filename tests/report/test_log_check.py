"""The page of `check`: which channel of which joint, raw ranges, what is wrong first."""

from __future__ import annotations

import re

import numpy as np
import pytest

import dynident as di
from dynident.cli.command_line import main
from dynident.report.log_check import check_html
from tests.cli.fits import ARM, FIRST
from tests.report.test_page import NOT_A_NUMBER, Balance, without_scripts


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    """A log whose second position has the wrong sign."""
    log = di.read_log(FIRST)
    path = tmp_path_factory.mktemp("logs") / "turned.npz"
    np.savez(path, t=log.time, **{**log.channels, "q2": -log.channels["q2"]})
    return str(path)


@pytest.fixture(scope="module")
def page(wrong, tmp_path_factory):
    target = tmp_path_factory.mktemp("page") / "check.html"
    assert main(["check", ARM, FIRST, wrong, "--report", str(target), "--json"]) == 1
    return target.read_text()


def row(page: str, channel: str, log: str) -> list[str]:
    """Cells of a channel's row in the section of a log."""
    (own,) = [part for part in page.split("<section") if f"<h2>{log}</h2>" in part]
    cells = re.search(rf'<tr><th scope="row">{channel}</th>(.*?)</tr>', own, re.DOTALL)[1]
    return re.findall(r"<td[^>]*>(.*?)</td>", cells)


def test_it_is_a_page(page):
    found = Balance(page)
    assert len(found.ids) == len(set(found.ids))
    assert set(found.links) <= set(found.ids)
    assert not NOT_A_NUMBER.search(without_scripts(page))


def test_problems_come_first_with_a_mark_and_what_passed_is_folded(page):
    assert re.search(r'<section id="verdict" class="verdict weak">\s*<h2><b[^>]*>●○○</b>stop: fix this first', page)
    assert page.index('id="wrong"') < page.index('id="passed"') < page.index('id="log0"')
    assert not re.search(r'id="passed">\s*<details open', page)
    assert "overridden" not in page


def test_the_channel_and_the_joint_are_named_with_raw_ranges(page):
    log = di.read_log(FIRST)
    column, joint, unit, low, high, *_, limits, remark = row(page, "q2", "turned.npz")
    assert (column, joint, unit, remark) == ("q2", "shoulder_lift", "rad", "sign")
    assert float(low) == pytest.approx(-log.channels["q2"].max(), rel=1e-3)
    assert float(high) == pytest.approx(-log.channels["q2"].min(), rel=1e-3)
    assert limits == "-6.28 to 6.28"
    assert row(page, "q1", "turned.npz")[-1] == ""
    assert row(page, "q2", "fourier_1.csv.gz")[-1] == ""  # that log is right


def test_raw_signals_are_drawn_from_time_zero(page):
    assert "Raw signals: q1, q2, q3, q4, q5, q6" in page
    assert page.count("Raw q2, shoulder_lift") >= 2


def test_without_a_robot_ranges_alone(tmp_path, capsys):
    target = tmp_path / "log.html"
    assert main(["check", FIRST, "--report", str(target)]) == 0
    assert f"Page: {target}" in capsys.readouterr().out
    assert "No robot was given" in target.read_text()


def test_values_that_are_no_numbers_are_counted():
    t = np.arange(200) * 0.01
    q = np.sin(t)
    q[17] = np.nan
    log = di.Log("made", "", t + 100.0, {"q1": q, "tau1": 0.0 * t})
    text = Balance(check_html([log])).text
    assert "1 not finite, from row 18" in text
    assert "constant" in text
    assert "the first stamp is 100 s" in text


def test_a_page_of_another_kind_is_refused(tmp_path, capsys):
    assert main(["check", ARM, FIRST, "--report", str(tmp_path / "a.pdf")]) == 2
    assert "ends in .html" in capsys.readouterr().err
