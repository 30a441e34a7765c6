from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.signals import uniform_stretches


@pytest.fixture
def robot():
    return di.load_robot("kr5-planar")


def make_log(t, q, tau=None, dq=None):
    channels = {f"q{i + 1}": q[:, i] for i in range(3)}
    if tau is not None:
        channels |= {f"tau{i + 1}": tau[:, i] for i in range(3)}
    if dq is not None:
        channels |= {f"dq{i + 1}": dq[:, i] for i in range(3)}
    return di.Log("made.csv", "0", t, channels)


def motion(t):
    return np.column_stack([np.sin(2 * t), np.cos(3 * t), 0.3 * t])


def test_uniform_data_is_left_as_it_is(robot):
    t = np.arange(300) * 0.01
    stretches, timing = uniform_stretches(make_log(t, motion(t), motion(t)), robot)
    assert len(stretches) == 1
    assert not timing.resampled
    np.testing.assert_array_equal(stretches[0].q, motion(t))
    np.testing.assert_allclose(stretches[0].time, t, atol=1e-12)


def test_jitter_is_resampled(robot):
    rng = np.random.default_rng(0)
    t = np.arange(500) * 0.01 + rng.uniform(-0.003, 0.003, 500)
    stretches, timing = uniform_stretches(make_log(t, motion(t), motion(t), motion(t)), robot)
    assert timing.resampled
    stretch = stretches[0]
    np.testing.assert_allclose(stretch.q, motion(stretch.time), atol=1e-5)
    np.testing.assert_allclose(stretch.tau, motion(stretch.time), atol=1e-5)
    np.testing.assert_allclose(stretch.dq, motion(stretch.time), atol=1e-5)


def test_a_gap_starts_a_new_stretch(robot):
    t = np.concatenate([np.arange(200) * 0.01, 5 + np.arange(100) * 0.01, 9 + np.arange(5) * 0.01])
    stretches, timing = uniform_stretches(make_log(t, motion(t), motion(t)), robot)
    assert [len(s.q) for s in stretches] == [200, 100]
    assert stretches[1].start == pytest.approx(5.0)
    np.testing.assert_allclose(timing.gaps, [1.99, 5.99])
    assert timing.too_short == 5


def test_stuttering_rows_are_dropped_and_standstill_is_kept(robot):
    t = np.arange(400) * 0.01
    q = motion(t)
    q[50], q[120] = q[49], q[119]
    q[200:300] = q[200]
    stretches, timing = uniform_stretches(make_log(t, q, q), robot)
    assert timing.repeated == 2
    assert len(stretches) == 1
    assert np.ptp(stretches[0].q[205:295], axis=0).max() < 1e-6


def test_repeated_stamps_are_dropped(robot):
    t = np.repeat(np.arange(100) * 0.01, 2)
    rng = np.random.default_rng(0)
    stretches, timing = uniform_stretches(make_log(t, rng.normal(size=(200, 3)), rng.normal(size=(200, 3))), robot)
    assert timing.repeated == 100
    assert len(stretches[0].q) == 100


def test_torque_is_not_looked_at_when_not_wanted(robot):
    t = np.arange(100) * 0.01
    stretches, _ = uniform_stretches(make_log(t, motion(t)), robot, torque=False)
    assert stretches[0].tau is None
    with pytest.raises(di.LogError, match="has no column tau1, tau2, tau3"):
        uniform_stretches(make_log(t, motion(t)), robot)


def test_too_short_is_named(robot):
    t = np.arange(10) * 0.01
    with pytest.raises(di.LogError, match=r"made\.csv: has 10 different samples; at least 16"):
        uniform_stretches(make_log(t, motion(t), motion(t)), robot)
