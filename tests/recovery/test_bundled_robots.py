"""Bundled robots on the MuJoCo plant: identified with defaults, the truth lies within the stated deviations."""

from __future__ import annotations

import pytest

import dynident as di
from benchmarks.recovery import BEGIN, END, Recovery, as_page, has_dry_friction, recover, write

QUICK, FULL = range(4), range(20)
SOME = [("pendulum-3", False), ("minnesota", True), ("puma560", True)]  # a chain, a loop, a whole arm
EVERY = [(name, dry) for name in di.bundled_names() for dry in (False, True) if not dry or has_dry_friction(name)]


def judge(one: Recovery) -> None:
    assert one.rank == one.n
    assert one.delay == 0.0  # nothing was late: dry friction must not pass for a delay
    assert one.torque < (0.006 if one.dry else 0.002)
    assert one.median_error < (0.01 if one.dry else 0.005)


@pytest.mark.parametrize(("name", "dry"), SOME)
def test_a_few(name, dry):
    one = recover(name, dry, QUICK)
    judge(one)
    assert one.coverage > 0.85
    assert 0.5 < one.ratio < 1.4
    assert (one.loop_gap > 0.0) == (name == "minnesota")
    assert one.loop_gap < 1e-6  # [rad]


@pytest.mark.full
@pytest.mark.parametrize(("name", "dry"), EVERY)
def test_every_robot(name, dry):
    one = recover(name, dry, FULL)
    judge(one)
    assert one.coverage > (0.85 if dry else 0.9)
    assert 0.3 < one.ratio < (1.5 if dry else 1.25)
    assert one.bias < (1.4 if dry else 0.6)


def test_the_tables_go_where_the_page_has_its_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    numbers = dict.fromkeys(Recovery.__dataclass_fields__, 0.0)
    names = {"robot": "sr400", "worst": "ZZ1", "farthest": "Fc1"}
    results = [Recovery(**{**numbers, **names, "dry": dry, "n": 3, "rank": 3}) for dry in (False, True)]
    write(as_page(results), page)
    text = page.read_text()
    assert text.startswith("before") and text.endswith("after\n") and "old" not in text
    assert text.count("| sr400 | 3, 3 | ZZ1 0 % |") == 2
    assert text.index("viscous friction only") < text.index("With dry friction")
