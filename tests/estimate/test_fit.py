"""Combinations of parameters about which data says nothing, kept with an estimate."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.estimate.covariance import null_space
from dynident.physical.fitting import rows_of
from tests.signals.made import Fourier, make_log, stamps


@pytest.fixture(scope="module")
def still():
    """A fit of an arm whose wrist stands still, and what its motion says about parameters."""
    robot = di.load_robot("pendulum-3")
    t = stamps(8.0, 200.0)
    q, dq, ddq = Fourier.random(3, 1, velocity=1.5)(t)
    q[:, 2], dq[:, 2], ddq[:, 2] = 0.7, 0.0, 0.0
    tau = di.inverse_dynamics(robot, q, dq, ddq)
    tau = tau + 0.01 * tau.std(0) * np.random.default_rng(0).normal(size=tau.shape)
    fit = di.identify(robot, make_log(robot, t, q, tau), friction="basic", delay=0.0)
    W = fit.base.regressor(q[::20], dq[::20], ddq[::20])[:, :2].reshape(-1, fit.base.n)  # the joints that move
    return fit, W


def test_along_them_the_torque_does_not_change(still):
    fit, W = still
    open_ = fit.null_space
    assert open_.shape == (fit.base.n, fit.base.n - fit.rank)
    assert np.abs(W @ open_).max() < 1e-9 * np.linalg.norm(W, axis=0).max() * np.abs(open_).max()


def test_rows_of_an_estimate_know_what_its_covariance_knows(still):
    fit, _ = still
    R = rows_of(fit).R
    assert R.shape == (fit.rank, fit.base.n)
    assert np.abs(R).max() > 100.0
    assert np.abs(R @ fit.null_space).max() < 0.01  # standard deviations; some columns are rounding errors
    np.testing.assert_allclose(R @ fit.covariance @ R.T, np.eye(fit.rank), atol=1e-6)


def test_bodies_keep_the_torque_and_stay_near_the_prior(still):
    """A covariance alone held undetermined values where minimum norm had put them, which made links of 700 kg."""
    fit, W = still
    found = di.physical_fit(fit)
    assert found.distance < found.usual
    assert np.linalg.norm(W @ (found.beta - fit.beta)) < 0.01 * np.linalg.norm(W @ fit.beta)
    assert all(0.5 < one.mass < 2.0 for one in found.links)  # of 1 kg each
    assert any("leaves open" in line for line in found.sentences())


def test_they_are_saved_with_the_estimate(still, tmp_path):
    fit, _ = still
    fit.save(tmp_path)
    np.testing.assert_array_equal(di.load_fit(tmp_path).null_space, fit.null_space)
    stored = dict(np.load(tmp_path / "fit.npz"))
    del stored["dynident"]  # as in files of versions without a seal
    np.savez(tmp_path / "fit.npz", **(stored | {"open": stored["open"][1:]}))
    with pytest.raises(di.DynidentError, match="open has shape"):
        di.load_fit(tmp_path)


def test_there_are_none_where_data_speaks_of_all():
    robot = di.load_robot("pendulum-2")
    rng = np.random.default_rng(0)
    information = di.accumulate(robot, *rng.normal(size=(3, 200, 2)), rng.normal(size=(200, 2)))
    fitted = di.estimators.WeightedLeastSquares().fit(information)
    assert null_space(fitted)[0].shape == (len(fitted.values_), 0)
