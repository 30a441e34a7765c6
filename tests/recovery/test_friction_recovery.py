"""Friction effects on the MuJoCo plant: recovered by their term, found by `auto`, and not found where they are not.

The light version of `benchmarks/friction_recovery.py`, whose tables are in docs/reference/friction.md.
"""

from __future__ import annotations

import pytest
from benchmarks.friction_recovery import CASES, chosen, logs_of, machine, recovered, run_of

import dynident as di

SEEDS = 5
pytestmark = pytest.mark.full
REVERSALS = {"sign(0.005)", "stop(0.0003)", "stop(0.001)", "jerk"}  # how dry friction changes its sign, in fine


@pytest.fixture(scope="module")
def robot():
    return machine()


@pytest.mark.parametrize("effect", ["stop3", "load", "tilt"])
def test_effect_is_recovered_and_found(robot, effect):
    case = next(case for case in CASES if case.effect == (effect,))
    logs = logs_of(run_of(robot, case.values(), dry=False, without=case.without), range(2))
    for name, found, _, true in recovered(case, robot, logs):
        assert found == pytest.approx(true, rel=0.1), name
    assert all(case.group in chosen(di.identify(robot, log)) for log in logs)


@pytest.mark.parametrize("dry", [False, True])
def test_nothing_is_found_where_nothing_is(robot, dry):
    """Of dry friction that sticks, finer curves of its reversal are found, which are there; nothing else is."""
    for log in logs_of(run_of(robot, {}, dry), range(SEEDS)):
        assert chosen(di.identify(robot, log)) <= (REVERSALS if dry else set())
