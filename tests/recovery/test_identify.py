"""Simulate a known robot, identify it, and find the truth within the stated standard deviations."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.estimate import WeightedLeastSquares
from dynident.logs.log import BLOCK
from dynident.pipeline.identification import identify
from tests.signals.made import Fourier, exact_log, exact_torque, make_log, pinocchio_torque, stamps

RATE = 500.0
T = stamps(30.0, RATE)
NOISE = np.array([1.0, 2.0, 1.0, 0.2, 0.2, 0.1])  # [N·m]
QUANTUM = 2.0 * np.pi / (4 * 1000 * 70)  # [rad] 1000 lines behind a gear of 70
QUICK, FULL = 5, 20


@pytest.fixture(scope="module")
def robot():
    return di.load_robot("puma560")


@pytest.fixture(scope="module")
def exact(robot):
    """Positions, and torque with links by Pinocchio and drives by hand."""
    q, dq, ddq = Fourier.random(6, 1)(T)
    return q, pinocchio_torque(robot, q, dq, ddq)


def identified(robot, exact, seed, **options):
    q, tau = exact
    rng = np.random.default_rng(seed)
    dither = rng.uniform(-0.5, 0.5, 6) * QUANTUM  # where the counts begin is chance
    log = make_log(
        robot,
        T,
        QUANTUM * np.round((q + dither) / QUANTUM) - dither,
        tau + NOISE * rng.normal(size=tau.shape),
        source=f"seed {seed}",
    )
    return identify(robot, log, **options)


def deviations(estimate):
    """How far each parameter is from the truth, in stated standard deviations."""
    return (estimate.beta - estimate.base.base_values()) / estimate.std


@pytest.mark.parametrize(
    "seeds", [range(QUICK), pytest.param(range(FULL), marks=pytest.mark.full)], ids=["quick", "full"]
)
def test_truth_lies_within_the_stated_deviations(robot, exact, seeds):
    found = [identified(robot, exact, seed) for seed in seeds]
    off = np.abs([deviations(one) for one in found])
    assert off.shape == (len(seeds), 58)
    assert all(one.rank == 58 for one in found)
    # Normal errors: of 290 numbers more than three lie beyond three standard deviations one time in a hundred.
    assert np.sum(off > 3.0) <= max(3, 0.01 * off.size)
    assert off.max() < 5.0
    # Standard deviations are not merely generous: errors fill them.
    assert 0.6 < np.sqrt(np.mean(off**2)) < 1.3
    assert 0.9 < np.mean(off < 2.0) <= 0.995


def test_weighty_parameters_are_found_to_a_per_cent(robot, exact):
    estimate = identified(robot, exact, 0)
    truth = estimate.base.base_values()
    for name in ("ZZR1", "ZZR2", "MXR2", "Fv1", "Fv2", "Fc1", "Fc2", "Fc3"):
        assert estimate[name] == pytest.approx(truth[estimate.names.index(name)], rel=0.02)
    assert estimate.train.relative < 0.015


def test_a_known_delay_is_found_on_the_way(robot):
    motion, delay = Fourier.random(6, 1), 0.004
    tau = pinocchio_torque(robot, *motion(T - delay))
    estimate = identified(robot, (motion(T)[0], tau), 3)
    assert estimate.signals.delay == pytest.approx(delay, abs=5e-4)
    shown = f"torque is stamped {1e3 * estimate.signals.delay:.1f} ms after its motion"
    assert any(shown in note for note in estimate.notes)
    off = np.abs(deviations(estimate))
    assert np.mean(off > 3.0) <= 0.02
    assert off.max() < 5.0


@pytest.mark.parametrize(
    "estimator", ["robust", "total", *(pytest.param(name, marks=pytest.mark.full) for name in ("ordinary", "ridge"))]
)
def test_every_method_comes_near_the_truth(robot, exact, estimator):
    estimate = identified(robot, exact, 1, estimator=estimator, delay=0.0, velocity_source="position")
    truth = estimate.base.base_values()
    big = np.abs(truth) > 0.55
    np.testing.assert_allclose(estimate.beta[big], truth[big], rtol=0.03)


def test_outliers_do_not_move_the_robust_estimate(robot, exact):
    q, tau = exact
    rng = np.random.default_rng(0)
    spoiled = tau + NOISE * rng.normal(size=tau.shape)
    for start in rng.integers(500, len(T) - 500, 12):
        spoiled[start : start + 150] += 80.0  # for a third of a second a collision
    log = make_log(robot, T, q, spoiled)
    errors = {}
    for estimator in ("weighted", "robust"):
        estimate = identify(robot, log, estimator=estimator, delay=0.0)
        big = np.abs(estimate.base.base_values()) > 0.3
        errors[estimator] = np.abs(estimate.beta - estimate.base.base_values())[big].mean()
    # The delay, which outliers move too, is open in both.
    assert errors["robust"] < 0.7 * errors["weighted"]


def test_a_held_out_log_validates_and_is_not_fitted(robot, exact):
    q, tau = exact
    rng = np.random.default_rng(5)
    train = make_log(robot, T, q, tau + NOISE * rng.normal(size=tau.shape), source="train")
    other = Fourier.random(6, 2)(T)
    held = make_log(
        robot,
        T,
        other[0],
        pinocchio_torque(robot, *other) + NOISE * rng.normal(size=tau.shape),
        source="held",
        role="validation",
    )
    alone, evaluated = identify(robot, train), identify(robot, [train, held])
    np.testing.assert_array_equal(alone.beta, evaluated.beta)
    assert evaluated.validation["held"].relative < 1.5 * evaluated.train.relative
    assert evaluated.validation["held"].relative < 0.02


def test_a_repeated_stamp_where_a_block_ends():
    robot, motion = di.load_robot("pendulum-2"), Fourier.random(2, 1)
    t = np.insert(np.arange(BLOCK + 4000) / RATE, BLOCK - 1, (BLOCK - 2) / RATE)
    q = motion(t)[0]
    q[BLOCK - 1] += 1e-6  # the same stamp, another value
    estimate = identify(robot, make_log(robot, t, q, exact_torque(robot, motion, t)), delay=0.0)
    assert (estimate.data[0].repeated, estimate.data[0].resampled) == (1, False)


def test_the_store_tells_logs_in_memory_apart(tmp_path):
    robot, motion, t = di.load_robot("pendulum-2"), Fourier.random(2, 1), stamps(20.0, 200.0)
    other = robot.with_values("other", {**robot.value_set(), "MX2": 0.9})
    found = [
        identify(robot, exact_log(one, motion, t, digest=""), store=tmp_path, delay=0.0)["MX2"]
        for one in (robot, other)
    ]
    np.testing.assert_allclose(found, [0.5, 0.9], rtol=1e-3)


def test_a_method_of_ones_own(robot, exact):
    class Mine(WeightedLeastSquares):
        """Another name for the same."""

    assert identified(robot, exact, 0, estimator=Mine()).rank == 58
