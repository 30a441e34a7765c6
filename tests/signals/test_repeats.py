"""Repeats of a motion: found wherever they are, but not where motions merely cross."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.signals import SignalOptions, observe
from dynident.signals.repeats import MotionStates, find_repeats, motion_states
from dynident.signals.thresholds import THRESHOLDS
from tests.signals.made import Fourier, make_log, stamps


def states(*motions, period=1.0, spacing=0.08):
    """States of logs, given as functions of time and their lengths [s]."""
    parts, times, logs = [], [], []
    for number, (motion, seconds) in enumerate(motions):
        t = np.arange(0.0, seconds, spacing)
        q, dq, _ = motion(t)
        parts.append(np.hstack([q, dq]))
        times.append(t)
        logs.append(np.full(len(t), float(number)))
    found = np.vstack(parts)
    return MotionStates(found, np.concatenate(times), np.concatenate(logs), np.abs(found).max(0)[-3:], period)


def test_a_second_run_is_found_and_another_motion_is_not():
    one, other = Fourier.random(3, 1, base=0.2), Fourier.random(3, 2, base=0.2)
    found = states((one, 5.0), (other, 5.0), (lambda t: one(t + 1.3), 3.0))
    repeats = find_repeats(found)
    again = repeats.any(0)
    first, second, third = (again[found.log == number] for number in range(3))
    assert third.all()
    assert not second.any()
    inside = (found.time[found.log == 0] > 1.4) & (found.time[found.log == 0] < 4.1)
    assert first[inside].all()
    assert not first[found.time[found.log == 0] < 1.0].any()
    np.testing.assert_array_equal(repeats[:, found.log == 1], False)


def test_periods_of_one_log_repeat_each_other():
    found = states((Fourier.random(3, 3, base=0.5), 6.0))  # three periods
    repeats = find_repeats(found)
    assert repeats.any(1).all()
    apart = np.abs(found.time[:, None] - found.time)[repeats]
    assert np.abs(apart / 2.0 - np.round(apart / 2.0)).max() < 0.1


def test_states_that_recur_for_a_moment_are_no_repeat():
    """One joint goes through the same state with another acceleration; near in time is no repeat either."""
    found = states((Fourier.random(1, 5, base=0.013, harmonics=70), 60.0))
    lasting = find_repeats(found)
    x = found.states / found.states.std(0) / np.sqrt(2.0)
    near = np.linalg.norm(x[:, None] - x, axis=2) < THRESHOLDS.repeat_distance
    near &= np.abs(found.time[:, None] - found.time) > 0.5
    assert near.any(1).mean() > 0.5
    assert lasting.sum() < 0.5 * near.sum()


def test_a_joint_that_is_held_and_shakes_does_not_hide_them():
    one, rng = Fourier.random(3, 1, base=0.2), np.random.default_rng(1)

    def shaking(t):
        q, dq, ddq = one(t)
        q[:, 1], dq[:, 1] = 1e-5 * rng.normal(size=len(t)), 1e-3 * rng.normal(size=len(t))
        return q, dq, ddq

    found = states((shaking, 5.0), (shaking, 5.0))
    assert find_repeats(found).any(0).mean() > 0.9


@pytest.mark.parametrize("seconds", [20.0, 400.0])
def test_states_of_logs_are_evenly_spaced_and_not_too_many(seconds):
    robot = di.load_robot("pendulum-2")
    motion = Fourier.random(2, 1, base=0.1)
    t = stamps(seconds, 50.0)
    log = make_log(robot, t, motion(t)[0], np.zeros((len(t), 2)))
    found = motion_states([observe(log, robot, SignalOptions(band=4.0))])
    assert len(found.states) <= 1.1 * THRESHOLDS.max_states
    np.testing.assert_allclose(np.diff(found.time), np.diff(found.time)[0], rtol=1e-6)
    assert np.diff(found.time)[0] == pytest.approx(max(0.1 * found.period, seconds / THRESHOLDS.max_states), rel=0.2)
    expected = np.hstack(motion(found.time)[:2])
    np.testing.assert_allclose(found.states[5:-5], expected[5:-5], atol=0.03)
    np.testing.assert_allclose(found.fastest, np.abs(motion(t)[1]).max(0), rtol=0.05)
    half = motion_states([observe(log, robot, SignalOptions(band=4.0))], 0.5 * seconds)
    assert half.time[-1] < 0.9 * seconds
