from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.estimate import estimate_delay, gather
from dynident.signals import SignalOptions, observe
from tests.signals.test_observe import make_log


@pytest.fixture
def robot():
    return di.load_robot("cmu-dd-arm-3")


@pytest.fixture
def base(robot):
    return di.base_parameters(robot, "rigid")


@pytest.mark.parametrize("delay", [-0.0061, 0.0034, 0.0123])
def test_a_delay_is_found(robot, base, delay):
    log = make_log(robot, noise=0.05, delay=delay)
    found = estimate_delay([observe(log, robot)], base)
    assert found.delay == pytest.approx(delay, abs=3e-4)
    assert found.gain > 0.05
    assert "late against position" in found.reason
    corrected = observe(log, robot, SignalOptions(delay=found.delay))
    assert abs(estimate_delay([corrected], base).delay) < 3e-4


def test_no_delay_is_invented(robot, base):
    """With torque noise that hides milliseconds, nothing is claimed."""
    found = estimate_delay([observe(make_log(robot, noise=30.0), robot)], base)
    assert found.delay == 0.0
    assert "none is used" in found.reason


def test_a_delay_out_of_reach_is_not_guessed(robot, base):
    found = estimate_delay([observe(make_log(robot, noise=0.05, delay=0.05), robot)], base)
    assert found.delay == 0.0
    assert "beyond 20 ms" in found.reason


def test_several_logs_are_used_together(robot, base):
    logs = [make_log(robot, noise=0.05, delay=0.004, seed=seed) for seed in range(3)]
    assert estimate_delay([observe(log, robot) for log in logs], base).delay == pytest.approx(0.004, abs=3e-4)


def test_gathered_information_recovers_the_parameters(robot, base):
    logs = [make_log(robot, noise=0.2, seed=seed) for seed in range(2)]
    info = gather([observe(log, robot) for log in logs], base)
    assert {segment.label for segment in info.segments} == {"made"}
    assert 8 <= len(info.segments) <= 12
    solution = info.solve(covariance="segments")
    error = np.abs(solution.values - base.base_values())
    assert (error < 6 * solution.std + 0.02 * np.abs(base.base_values()).max()).all()
    assert solution.rank == base.n


def test_rest_alone_teaches_nothing(robot, base):
    t = np.arange(0.0, 5.0, 0.01)
    still = {f"{kind}{i}": np.full(len(t), 0.3 * i) for kind in ("q", "tau") for i in (1, 2, 3)}
    log = di.Log("rest", "0", t, still)
    with pytest.raises(di.InputError, match="no joint is in motion for long enough"):
        gather([observe(log, robot)], base)
