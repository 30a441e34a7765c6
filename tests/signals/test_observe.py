from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.signals import SignalOptions, observe, observe as observe_function

RATE = 400.0


@pytest.fixture
def robot():
    return di.load_robot("cmu-dd-arm-3")


def motion(t):
    """Harmonics of 0.2 Hz, different for each joint, with exact derivatives."""
    w = 2 * np.pi * 0.2 * np.array([1, 2, 3])
    phase = np.array([[0.0, 0.7, 1.9], [1.1, 0.2, 0.5], [0.3, 2.2, 1.0]])
    q = dq = ddq = 0.0
    for k in range(3):
        arg = w[k] * t[:, None] + phase[k]
        q = q + 0.6 / (k + 1) * np.sin(arg)
        dq = dq + 0.6 / (k + 1) * w[k] * np.cos(arg)
        ddq = ddq - 0.6 / (k + 1) * w[k] ** 2 * np.sin(arg)
    return q, dq, ddq


def make_log(robot, seconds=20.0, noise=0.0, delay=0.0, seed=0):
    t = np.arange(0.0, seconds, 1 / RATE)
    q, _, _ = motion(t)
    tau = di.inverse_dynamics(robot, *motion(t - delay), terms="rigid")
    rng = np.random.default_rng(seed)
    channels = {f"q{i + 1}": q[:, i] + noise * 1e-4 * rng.normal(size=len(t)) for i in range(3)}
    channels |= {f"tau{i + 1}": tau[:, i] + noise * rng.normal(size=len(t)) for i in range(3)}
    return di.Log("made", "0", t, channels)


def collected(observations, base, **options):
    blocks = list(observations.rows(base, **options))
    return [np.concatenate([getattr(block, name) for block in blocks]) for name in ("time", "W", "tau", "moving")]


def test_rows_obey_the_model(robot):
    """Filtered torque equals filtered regressor times the true base parameters, away from the ends and at them."""
    base = di.base_parameters(robot, "rigid")
    time, W, tau, _ = collected(observe(make_log(robot), robot), base)
    inner = np.concatenate([block.inner for block in observe(make_log(robot), robot).rows(base)])
    assert 0.9 < inner.mean() < 1.0
    residual = np.linalg.norm(W @ base.base_values() - tau, axis=1) / np.linalg.norm(tau, axis=1).mean()
    assert residual[inner].max() < 1e-3
    inner = (time > 0.5) & (time < 19.5)
    assert residual[inner].max() < 2e-3
    assert residual[(time > 0.2) & (time < 19.8)].max() < 0.02


def test_band_follows_the_motion(robot):
    slow = observe(make_log(robot), robot).band
    assert 0.2 * 12 <= slow <= 0.6 * 12 + 1
    log = make_log(robot)
    fast = observe(di.Log("fast", "0", log.time / 3, log.channels), robot).band
    assert fast == pytest.approx(3 * slow, rel=0.1)
    assert observe(log, robot, SignalOptions(band=9.0)).band == 9.0


@pytest.mark.parametrize("block", [64, 100, 1000])
def test_blocks_do_not_show(robot, monkeypatch, block):
    import sys

    module = sys.modules[observe_function.__module__]
    base = di.base_parameters(robot, "rigid")
    observations = observe(make_log(robot, noise=0.1), robot)
    whole = collected(observations, base)
    monkeypatch.setattr(module, "_BLOCK", block)
    pieces = collected(observations, base)
    for a, b in zip(whole, pieces, strict=True):
        np.testing.assert_allclose(a.astype(float), b.astype(float), atol=1e-10 * np.abs(a).max())


def test_delay_is_taken_back(robot):
    base = di.base_parameters(robot, "rigid")
    late = make_log(robot, delay=0.0123)
    errors = {}
    for delay in (0.0, 0.0123):
        time, W, tau, _ = collected(observe(late, robot, SignalOptions(delay=delay)), base)
        inner = (time > 0.5) & (time < 19.5)
        errors[delay] = np.linalg.norm((W @ base.base_values() - tau)[inner])
    assert errors[0.0123] < 0.05 * errors[0.0]


def test_rest_is_marked_per_joint(robot):
    t = np.arange(0.0, 10.0, 1 / RATE)
    q, _, _ = motion(t)
    q[:, 1] = 0.4
    log = di.Log("rest", "0", t, {f"q{i + 1}": q[:, i] for i in range(3)})
    observations = observe(log, robot, torque=False)
    _, _, tau, moving = collected(observations, di.base_parameters(robot, "rigid"))
    assert not moving[:, 1].any()
    assert moving[:, 0].mean() > 0.9
    assert not tau.any()


def test_a_short_stretch_is_left_out_and_counted(robot):
    log = make_log(robot, 10.0)
    gap = np.where(np.arange(len(log)) < len(log) - 30, 0.0, 5.0)
    cut = di.Log("cut", "0", log.time + gap, log.channels)
    observations = observe(cut, robot, SignalOptions(band=4.0))
    assert len(observations.pieces) == 1
    assert observations.timing.too_short == 30
    short = di.Log("short", "0", log.time[:40], {name: x[:40] for name, x in log.channels.items()})
    with pytest.raises(di.LogError, match="no stretch is long enough for a band of 1 Hz"):
        observe(short, robot, SignalOptions(band=1.0))


def test_every_sample_gives_a_row_when_asked(robot):
    base = di.base_parameters(robot, "rigid")
    observations = observe(make_log(robot), robot)
    time, W, _, _ = collected(observations, base, every=True)
    assert len(time) == sum(len(piece.q) for piece in observations.pieces)
    sparse, W_sparse, _, _ = collected(observations, base)
    np.testing.assert_allclose(W[np.searchsorted(time, sparse - 1e-9)], W_sparse, atol=1e-10)
