"""Irregular stamps: onto a grid, as they come."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.online.filters import Regridder, irregular
from tests.online.made import TERMS, arm, feed, motion, torque, truth
from tests.signals.made import Fourier


def jittered(n=500, step=0.01, size=0.1):
    rng = np.random.default_rng(4)
    return step * np.arange(n) + rng.uniform(-size, size, n) * step


def test_a_cubic_is_met_exactly_wherever_the_samples_are():
    t = jittered()
    stamps, values = Regridder(0.01).push_many(t, np.stack([t**3 - t, 2.0 * t], 1))
    np.testing.assert_allclose(np.diff(stamps), 0.01, rtol=1e-9)
    np.testing.assert_allclose(values, np.stack([stamps**3 - stamps, 2.0 * stamps], 1), rtol=1e-9, atol=1e-12)
    assert stamps[-1] > t[-1] - 0.025


def test_faults_are_counted_and_gaps_start_again():
    t = np.delete(jittered(), [100, 101, *range(200, 230)])
    t = np.insert(t, 50, t[40])
    own = Regridder(0.01)
    stamps, _ = own.push_many(t, t[:, None])
    assert (own.late, own.filled) == (1, 2)
    assert np.sum(np.diff(stamps) > 0.011) == 1


@pytest.mark.parametrize(("size", "expected"), [(0.0, False), (0.001, False), (0.05, True)])
def test_what_counts_as_irregular(size, expected):
    assert irregular(np.delete(jittered(size=size), [7, 8]), 0.01) is expected


def test_an_arm_with_irregular_stamps_and_late_torque(tmp_path):
    """Stamps scatter by a tenth of a step and torque is 4 ms late: both are corrected, across a checkpoint too."""
    t = jittered(2000)
    late, exact = 0.004, Fourier.random(6, 1, velocity=1.2)
    q, tau = exact(t)[0], torque(arm(), *exact(t - late))
    found = di.OnlineIdentifier(arm(), terms=TERMS, band=5.0, torque_delay=late, forgetting="none")
    found.update_many(t[:777], q[:777], tau[:777])
    found.save(tmp_path / "c.npz")
    found = di.OnlineIdentifier.load(tmp_path / "c.npz", arm())
    feed(found, t[777:], q[777:], tau[777:])
    plain = di.OnlineIdentifier(arm(), terms=TERMS, band=5.0, sample_time=0.01, forgetting="none")
    plain.update_many(t, q, tau)
    W = di.base_parameters(arm(), terms=TERMS).regressor(*motion(5.0, 20.0, seed=8)[1:])
    off = [
        np.linalg.norm(W @ (one.state().values - truth(arm()))) / np.linalg.norm(W @ truth(arm()))
        for one in (found, plain)
    ]
    assert off[0] < 0.01 < off[1]
