"""Causal filters: the paper's differentiator, one delay for all signals, faults of a stream."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.online import CausalFilter

T = 0.002


def signals(n=400):
    t = T * np.arange(n)
    q = np.stack([np.sin(3.0 * t), np.cos(2.0 * t)], axis=1)
    return t, q, 1.7 * q + 0.3


class TestFivePoint:
    def test_the_taps_of_the_paper(self):
        """f'(x - 2T) = (-2 f(x-4T) - f(x-3T) + f(x-T) + 2 f(x)) / 10T; the second derivative is the same twice."""
        own = CausalFilter(1, T, cutoff=None, differentiator="five-point")
        once = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]) / (10.0 * T)
        assert own.delay == 4
        np.testing.assert_allclose(own.taps[1][2:7], once, atol=1e-9)
        assert not own.taps[1][[0, 1, 7, 8]].any()
        np.testing.assert_allclose(own.taps[2], np.convolve(once, once), atol=1e-6)
        np.testing.assert_array_equal(own.taps[0], np.eye(9)[4])

    def test_exact_on_parabolas_four_samples_late(self):
        own = CausalFilter(1, T, cutoff=None)
        t = T * np.arange(20)
        found = own.push_many(t, (1.0 + 2.0 * t + 3.0 * t**2)[:, None], t[:, None])
        np.testing.assert_allclose(found.time, t[4:-4], atol=1e-12)
        np.testing.assert_allclose(found.dq[:, 0], 2.0 + 6.0 * found.time, rtol=1e-9)
        np.testing.assert_allclose(found.ddq[:, 0], 6.0, rtol=1e-6)
        np.testing.assert_allclose(found.tau[:, 0], found.time, atol=1e-12)


@pytest.mark.parametrize("differentiator", ["low-pass", "five-point"])
def test_motion_and_torque_speak_of_the_same_instant(differentiator):
    t, q, tau = signals()
    own = CausalFilter(2, T, 40.0, differentiator=differentiator)
    found = own.push_many(t, q, tau)
    at = found.time[:, None] * np.array([3.0, 2.0])
    bend = 1e-7 if differentiator == "low-pass" else 1e-4  # the five-point differentiator flattens fast motion
    np.testing.assert_allclose(found.q, np.stack([np.sin(at[:, 0]), np.cos(at[:, 1])], 1), atol=1e-7)
    np.testing.assert_allclose(found.dq, np.stack([3 * np.cos(at[:, 0]), -2 * np.sin(at[:, 1])], 1), atol=3 * bend)
    np.testing.assert_allclose(found.ddq, np.stack([-9 * np.sin(at[:, 0]), -4 * np.cos(at[:, 1])], 1), atol=2e2 * bend)
    np.testing.assert_allclose(found.tau, 1.7 * found.q + 0.3, atol=1e-12)


def test_blocks_are_the_same_as_samples():
    t, q, tau = signals()
    one, many = (CausalFilter(2, T, 60.0) for _ in range(2))
    single = [found for i in range(len(t)) if (found := one.push(t[i], q[i], tau[i])) is not None]
    parts = [many.push_many(t[a:b], q[a:b], tau[a:b]) for a, b in ((0, 30), (30, 31), (31, 260), (260, 400))]
    for name in ("time", "q", "dq", "ddq", "tau"):
        left = np.concatenate([getattr(part, name) for part in single])
        np.testing.assert_allclose(left, np.concatenate([getattr(part, name) for part in parts]), atol=1e-9)


def test_measured_velocities_are_differentiated_once():
    t, q, tau = signals()
    dq = np.stack([3.0 * np.cos(3.0 * t), -2.0 * np.sin(2.0 * t)], axis=1)
    own = CausalFilter(2, T, 40.0, velocity_source="measured")
    found = own.push_many(t, np.zeros_like(q), tau, dq)
    np.testing.assert_allclose(found.dq[:, 0], 3.0 * np.cos(3.0 * found.time), atol=1e-6)
    np.testing.assert_allclose(found.ddq[:, 0], -9.0 * np.sin(3.0 * found.time), atol=1e-4)
    with pytest.raises(di.InputError, match="has no dq"):
        own.push(1.0, q[0], tau[0])


class TestFaults:
    def run(self, keep):
        t, q, tau = signals()
        own = CausalFilter(2, T, 60.0)
        return own, own.push_many(t[keep], q[keep], tau[keep])

    def test_a_few_missing_samples_are_filled_in(self):
        keep = np.delete(np.arange(400), [200, 201])
        own, found = self.run(keep)
        assert (own.filled, own.restarts, own.late) == (2, 0, 0)
        np.testing.assert_allclose(found.q[:, 0], np.sin(3.0 * found.time), atol=1e-4)

    def test_after_a_gap_the_filters_start_again(self):
        own, found = self.run(np.r_[0:200, 210:400])
        assert own.restarts == 1
        assert len(found.time) == 390 - 2 * (own.length - 1)
        np.testing.assert_allclose(found.q[:, 0], np.sin(3.0 * found.time), atol=1e-7)

    def test_repeated_and_late_samples_are_left_out(self):
        own, found = self.run(np.r_[0:200, 198:400])
        _, clean = self.run(np.arange(400))
        assert own.late == 2
        np.testing.assert_allclose(found.q, clean.q, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"sample_time": 0.0}, "sample_time"), ({"sample_time": T, "cutoff": 400.0}, "at most 225 Hz")],
)
def test_what_cannot_be_filtered_is_refused(options, words):
    with pytest.raises(di.InputError, match=words):
        CausalFilter(2, **options)
