"""Bundled robots on the MuJoCo plant: identified with defaults, the truth lies within the stated std."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.recovery import (
    BEGIN,
    END,
    Recovery,
    as_page,
    exciting_motion,
    has_dry_friction,
    machine,
    recover,
    write,
)

import dynident as di
from tests.signals.made import make_log

QUICK, FULL = range(4), range(20)
SOME = [("pendulum-3", False), ("minnesota", True), ("puma560", True)]  # a chain, a loop, a whole arm
EVERY = [(name, dry) for name in di.bundled_names() for dry in (False, True) if not dry or has_dry_friction(name)]


def check_recovery(one: Recovery) -> None:
    assert one.rank == one.n
    assert abs(one.delay) < 1.5e-3  # [s] nothing was late: dry friction must not pass for more than that
    assert one.torque < (0.006 if one.dry else 0.002)
    assert one.median_error < (0.01 if one.dry else 0.005)


@pytest.mark.parametrize(("name", "dry"), SOME)
def test_a_few(name, dry):
    one = recover(name, dry, QUICK)
    check_recovery(one)
    assert one.coverage > 0.85
    assert 0.5 < one.ratio < 1.4
    assert (one.loop_gap > 0.0) == (name == "minnesota")
    assert one.loop_gap < 1e-6  # [rad]


@pytest.mark.parametrize("name", ["pendulum-2", "pendulum-3"])
def test_signals_alone_put_nothing_off(name):
    """A fast motion without noise, torque by our own equations: what is wrong now the filters have done."""
    robot = di.load_robot(name)
    motion, t = exciting_motion(robot, machine(robot, False), 1), np.arange(0.0, 10.0, 0.002)
    q, dq, ddq = motion.sample(t)
    fit = di.identify(robot, make_log(robot, t, q, di.inverse_dynamics(robot, q, dq, ddq)))
    truth = fit.base.base_values()
    weighty = np.abs(truth) > 0.1
    assert np.abs(fit.beta / np.where(weighty, truth, 1.0) - 1.0)[weighty].max() < 1e-4


@pytest.mark.full
@pytest.mark.parametrize(("name", "dry"), EVERY)
def test_every_robot(name, dry):
    one = recover(name, dry, FULL)
    check_recovery(one)
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
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert text.count("| sr400 | 3, 3 | ZZ1 0 % |") == 2
    assert text.index("viscous friction only") < text.index("With dry friction")
