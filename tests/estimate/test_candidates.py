"""Gear ripple in residuals: found where it is, with its own number of waves, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.estimate.candidates import find_ripple

T = np.arange(0.0, 40.0, 0.004)


@pytest.fixture(scope="module")
def robot():
    return di.load_robot("pendulum-2")


def log_with(robot, ripple: float, seed: int = 0) -> di.Log:
    """A motion by our own equations, with a wave on joint 1 that no term of the state makes."""
    w = 2.0 * np.pi * np.array([0.11, 0.17])
    q = np.sin(np.outer(T, w)) * [1.5, 1.2] + 0.3 * np.sin(np.outer(T, 2.3 * w))
    dq = np.cos(np.outer(T, w)) * w * [1.5, 1.2] + 0.3 * 2.3 * w * np.cos(np.outer(T, 2.3 * w))
    ddq = -np.sin(np.outer(T, w)) * w**2 * [1.5, 1.2] - 0.3 * (2.3 * w) ** 2 * np.sin(np.outer(T, 2.3 * w))
    tau = di.inverse_dynamics(robot, q, dq, ddq)
    tau[:, 0] += ripple * np.cos(22.3 * q[:, 0])
    tau += 0.05 * np.random.default_rng(seed).normal(size=tau.shape)
    channels = {f"q{k + 1}": q[:, k] for k in range(2)} | {f"tau{k + 1}": tau[:, k] for k in range(2)}
    return di.Log("made", "", T, channels)


def test_the_wave_is_found_with_its_number_and_size(robot):
    log = log_with(robot, 0.3)
    fit = di.identify(robot, log, friction="basic", band=10.0)
    (found,) = find_ripple(fit.model, [fit.observe(log)])
    assert found.label == "1"
    assert found.waves == pytest.approx(22.3, abs=0.5)
    assert found.amplitude == pytest.approx(0.3, rel=0.2)


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_no_ripple(robot, seed):
    log = log_with(robot, 0.0, seed)
    fit = di.identify(robot, log, friction="basic", band=10.0)
    assert find_ripple(fit.model, [fit.observe(log)]) == ()


def test_a_list_with_ripple_looks_for_it_and_the_column_explains_it(robot):
    log = log_with(robot, 0.3)
    plain, found = (di.identify(robot, log, friction=list_, band=10.0) for list_ in ("basic", "ripple"))
    assert "gear ripple" in found.selection.reason
    assert found.train.relative < 0.7 * plain.train.relative
    none = di.identify(robot, log_with(robot, 0.0), friction="ripple", band=10.0)
    assert "no gear ripple stands out" in none.selection.reason
    assert none.names == plain.names
