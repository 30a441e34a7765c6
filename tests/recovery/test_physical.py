"""Simulated robots made physical: the truth lies within the stated standard deviations, and every link is a body."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.physical import SERIAL, recover


@pytest.mark.full
def test_a_small_arm():
    one = recover("pendulum-2", seeds=3)
    assert one.bodies
    assert one.errors.max() < 5.0
    assert np.sqrt(np.mean(one.errors**2)) <= 1.05 * np.sqrt(np.mean(one.plain**2))


@pytest.mark.full
def test_whole_arms():
    found = [recover(name, seeds=20) for name in SERIAL]
    errors = np.concatenate([one.errors.ravel() for one in found])
    assert all(one.bodies for one in found)
    assert np.mean(errors > 3.0) <= 0.01
    assert errors.max() < 5.0
