"""Torque bands: as wide as held-out data says, around the prediction, and wider where parameters are uncertain."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.errors import InputError

T = np.arange(0.0, 24.0, 0.005)
NOISE = np.array([0.5, 0.1])


@pytest.fixture(scope="module")
def robot():
    return di.load_robot("pendulum-2")


def log_of(robot, seed: int) -> di.Log:
    rng = np.random.default_rng(seed)
    w, size, phase = (
        2.0 * np.pi * rng.uniform(0.1, 0.6, (3, 2)),
        rng.uniform(0.3, 0.7, (3, 2)),
        rng.uniform(0, 6, (3, 2)),
    )
    angle = T[:, None, None] * w + phase
    q, dq, ddq = (
        (size * np.sin(angle)).sum(1),
        (size * w * np.cos(angle)).sum(1),
        -(size * w**2 * np.sin(angle)).sum(1),
    )
    tau = di.inverse_dynamics(robot, q, dq, ddq) + NOISE * rng.normal(size=q.shape)
    channels = {f"q{k + 1}": q[:, k] for k in range(2)} | {f"tau{k + 1}": tau[:, k] for k in range(2)}
    return di.Log(f"made {seed}", str(seed), T, channels, label=f"log {seed}")


@pytest.fixture(scope="module")
def fit(robot):
    return di.identify(robot, [log_of(robot, seed) for seed in range(4)], friction="basic")


def test_bands_cover_what_they_say_on_data_left_out(fit):
    shares = fit.cross_validation.band_coverage
    assert shares.shape == (2,)
    assert ((shares > 0.8) & (shares < 0.97)).all()
    np.testing.assert_allclose(fit.levels, fit.sigma, rtol=0.3)  # the model is right, so noise is all there is


def test_the_prediction_is_in_the_middle_and_a_higher_level_is_wider(robot, fit):
    log = log_of(robot, 9)
    low, high = fit.torque_band(log)
    np.testing.assert_allclose(0.5 * (low + high), fit.predict(log), atol=1e-9)
    assert (high - low > 2.0 * 1.6 * fit.levels - 1e-9).all()
    wide = np.subtract(*fit.torque_band(log, level=0.99)[::-1])
    np.testing.assert_allclose(wide / (high - low), 2.5758 / 1.6449, rtol=1e-3)


def test_a_saved_fit_has_the_same_bands(robot, fit, tmp_path):
    fit.save(tmp_path)
    again = di.load_fit(tmp_path)
    log = log_of(robot, 9)
    for ours, theirs in zip(fit.torque_band(log), again.torque_band(log), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, float("nan"), "wide"])
def test_a_level_that_is_no_share_is_refused(robot, fit, level):
    with pytest.raises(InputError, match="level is"):
        fit.torque_band(log_of(robot, 9), level=level)
