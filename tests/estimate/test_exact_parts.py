"""Parts of estimation against what they must give exactly, where a whole fit hides a factor or a sign."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.estimate.covariance import covariance_root
from dynident.estimate.essential import _solvers_on_covariance
from dynident.estimate.lack_of_fit import _repeated_runs
from dynident.identifiability.excitation_quality import _direction
from dynident.signals.repeats import MotionStates
from tests.estimate.test_storage import estimate_of, noisy_log


@pytest.fixture(scope="module")
def fit():
    return estimate_of("pendulum-2")


def test_elimination_on_a_covariance_begins_with_the_fit_itself(fit):
    coordinates, solve, _ = _solvers_on_covariance(fit)
    found, _ = solve(coordinates.names)
    np.testing.assert_allclose(found.values, fit.beta, rtol=1e-6)
    np.testing.assert_allclose(found.std, fit.std, rtol=1e-6)


def test_a_band_of_torque_is_as_wide_as_its_level(fit):
    """Half widths at two levels are as their normal quantiles: 1.645 and 1.96."""
    log = noisy_log(fit.robot, 3, "c.csv", seconds=5.0)
    (low, high), (lower, higher) = (fit.torque_band(log, level) for level in (0.90, 0.95))
    np.testing.assert_allclose((high + low) / 2.0, fit.predict(log), rtol=0.2, atol=0.05 * np.abs(high).max())
    ratio = (higher - lower) / (high - low)
    np.testing.assert_allclose(ratio, 1.959964 / 1.644854, rtol=1e-4)
    assert covariance_root(fit.predictive.covariance).shape[0] == fit.predictive_base.n
    residual = np.sqrt(np.mean((fit.predict(log) - np.column_stack([log.channels[f"tau{i}"] for i in (1, 2)])) ** 2, 0))
    half = (high - low).mean(0) / 2.0
    assert (half > 0.5 * residual).all()
    assert (half < 5.0 * residual).all()


@pytest.mark.parametrize("size", [1.0, 1e-3])
def test_runs_of_one_motion_are_as_far_apart_whatever_its_size(size):
    """Two runs of a motion, the second a third of the spacing of the states later."""
    spacing = 0.02
    t = np.arange(0.0, 6.0, spacing)
    behind = spacing / 3.0

    def states(at):
        return size * np.column_stack([np.sin(2.0 * at) + 0.3 * np.sin(5.1 * at), 2.0 * np.cos(2.0 * at)])

    both = np.vstack([states(t), states(t - behind)])
    found = MotionStates(both, np.concatenate([t, t]), np.repeat([0, 1], len(t)), np.array([2.0 * size]), 3.0)
    between = [run.offset for run in _repeated_runs(found) if run.first != run.second]
    assert between
    np.testing.assert_allclose(np.median(between), behind, atol=0.05 * spacing)


def test_the_largest_part_of_a_weak_direction_is_positive():
    found = _direction(("a", "b", "c"), np.array([0.3, -0.9, 0.05]), 0.1)
    assert found.parts == (("b", 0.9), ("a", -0.3))


@pytest.mark.parametrize("key", ["Fc(0.1,0.2,0.3)", "Fv(0.1)"])
def test_a_term_takes_its_numbers_and_no_more(key):
    with pytest.raises(di.InputError, match=r"cannot be understood; F. takes"):
        di.base_parameters(di.load_robot("pendulum-2"), key)
