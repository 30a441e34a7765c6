from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.linalg import toeplitz

from dynident.estimate.covariance import (
    LagSums,
    autocorrelation_model,
    common_inflation,
    correlated_covariance,
    gain_covariance,
    residual_correlation,
    serial_covariance,
)
from dynident.estimate.estimators import OrdinaryLeastSquares, PriorLeastSquares, WeightedLeastSquares
from dynident.estimate.thresholds import THRESHOLDS
from dynident.information.row_source import GivenRows
from tests.estimate.test_estimators import NAMES, SIGMA, TRUTH, arrays, coordinates, rows


def autoregressive(n, rho, seed=0):
    """x_k = rho x_{k-1} + noise, of variance one."""
    noise = np.random.default_rng(seed).normal(size=n) * np.sqrt(1.0 - rho**2)
    x = np.empty(n)
    x[0] = noise[0] / np.sqrt(1.0 - rho**2)
    for k in range(1, n):
        x[k] = rho * x[k - 1] + noise[k]
    return x


def inflation_of(x, **options):
    sums = LagSums(1, **options)
    sums.add(0, x)
    return sums.correlation(("a",))


class TestLagSums:
    @pytest.mark.parametrize("rho", [0.3, 0.6, 0.85])
    def test_first_order_series_inflate_as_theory_says(self, rho):
        """f = 1 + 2 (rho + rho^2 + ...) = (1 + rho) / (1 - rho)."""
        found = inflation_of(autoregressive(60_000, rho))
        assert found.inflation[0] == pytest.approx((1 + rho) / (1 - rho), rel=0.12)
        np.testing.assert_allclose(found.autocorrelation[0, :6], rho ** np.arange(6), atol=0.04)

    def test_white_noise_is_white(self):
        whites = [inflation_of(np.random.default_rng(seed).normal(size=2000)) for seed in range(100)]
        assert np.mean([one.inflation[0] for one in whites]) == pytest.approx(1.0, abs=0.05)

    def test_negative_correlation_does_not_deflate(self):
        assert inflation_of(autoregressive(5000, -0.7)).inflation[0] == 1.0

    def test_sums_are_the_definition(self):
        x = np.random.default_rng(0).normal(size=50)
        sums = LagSums(1, most_lags=7)
        sums.add(0, x)
        np.testing.assert_allclose(sums.products[0], [x[k:] @ x[: 50 - k] for k in range(8)], atol=1e-12)
        np.testing.assert_array_equal(sums.counts[0], 50 - np.arange(8))

    @given(
        sizes=st.lists(st.integers(0, 30), min_size=1, max_size=40), most=st.sampled_from([3, 20, THRESHOLDS.max_lags])
    )
    @settings(max_examples=60, deadline=None)
    def test_blocks_do_not_show(self, sizes, most):
        x = np.random.default_rng(1).normal(size=(2, sum(sizes)))
        whole, pieces = LagSums(2, most), LagSums(2, most)
        first = 0
        for number in (0, 1):
            whole.add(number, x[number])
        for size in sizes:
            for number in (1, 0):
                pieces.add(number, x[number, first : first + size])
            first += size
        np.testing.assert_array_equal(whole.counts, pieces.counts)
        np.testing.assert_allclose(whole.products, pieces.products, atol=1e-10)

    def test_restart_forgets_what_was_before(self):
        x = np.random.default_rng(0).normal(size=100)
        both, alone = LagSums(1, 10), LagSums(1, 10)
        both.add(0, x[:60])
        both.add(0, x[60:], restart=True)
        for part in (x[:60], x[60:]):
            one = LagSums(1, 10)
            one.add(0, part)
            alone.products += one.products
            alone.counts += one.counts
        np.testing.assert_allclose(both.products, alone.products, atol=1e-12)
        np.testing.assert_array_equal(both.counts, alone.counts)

    def test_restart_with_nothing(self):
        """A stretch whose first block has no sample of a joint still begins again."""
        sums = LagSums(1, 10)
        sums.add(0, np.ones(5))
        sums.add(0, np.zeros(0), restart=True)
        sums.add(0, np.ones(5))
        np.testing.assert_array_equal(sums.counts[0, :6], [10, 8, 6, 4, 2, 0])

    def test_series_of_nothing_or_zeros(self):
        found = LagSums(1).correlation(("a",))
        assert found.inflation.tolist() == [1.0]
        assert inflation_of(np.zeros(100)).inflation.tolist() == [1.0]

    def test_several_data_sets_count_by_their_rows(self):
        long, short = inflation_of(autoregressive(9000, 0.8)), inflation_of(autoregressive(1000, 0.0, 1))
        expected = 0.9 * long.inflation + 0.1 * short.inflation
        np.testing.assert_allclose(common_inflation([long, short]), expected)
        np.testing.assert_array_equal(common_inflation([LagSums(2).correlation(("a", "b"))]), [1.0, 1.0])


class TestCorrelated:
    @pytest.mark.parametrize("make", [WeightedLeastSquares, OrdinaryLeastSquares])
    def test_without_correlation_it_is_the_white_one(self, make):
        fitted = make().fit(rows(*arrays()))
        np.testing.assert_allclose(correlated_covariance(fitted, np.ones(3)), fitted.covariance_, rtol=1e-9, atol=1e-15)

    def test_common_inflation_scales_everything(self):
        fitted = WeightedLeastSquares().fit(rows(*arrays()))
        found = correlated_covariance(fitted, np.full(3, 4.0))
        np.testing.assert_allclose(found, 4.0 * fitted.covariance_, rtol=1e-9)
        np.testing.assert_allclose(correlated_covariance(fitted, np.full(3, 0.3)), fitted.covariance_, rtol=1e-9)

    def test_stated_deviations_are_those_of_many_trials(self):
        """Rows and residuals that both change slowly: the white formula is far too small, the correlated one right."""
        rho, n, trials = 0.9, 600, 150
        W = np.stack([autoregressive(n, 0.97, seed) for seed in range(2)], axis=1)[:, None, :]
        found, stated, white = [], [], []
        for trial in range(trials):
            noise = autoregressive(n, rho, 100 + trial)
            tau = W @ np.array([1.0, -2.0]) + noise[:, None]
            fitted = WeightedLeastSquares().fit(GivenRows(W, tau, coordinates(("a", "b"))))
            inflation = inflation_of(tau[:, 0] - W[:, 0] @ fitted.values_).inflation
            found.append(fitted.values_)
            stated.append(np.sqrt(np.diag(correlated_covariance(fitted, inflation))))
            white.append(fitted.std_)
        spread = np.std(found, axis=0)
        assert (np.mean(white, axis=0) < 0.45 * spread).all()
        # The rows, too, are correlated but not constant, so that f is an upper estimate here.
        np.testing.assert_array_less(0.8 * spread, np.mean(stated, axis=0))
        np.testing.assert_array_less(np.mean(stated, axis=0), 1.6 * spread)

    def test_prior_holds_what_data_does_not_know(self):
        estimator = PriorLeastSquares(dict(zip(NAMES, TRUTH, strict=True)), 1e-3).fit(rows(*arrays(n=5)))
        found = correlated_covariance(estimator, np.full(3, 2.0))
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found, found.T, atol=1e-18)


class TestSerial:
    """Covariance by the whole autocorrelation, for residuals that swing."""

    @staticmethod
    def differences(n, seed):
        """(n,) noise that was differentiated and smoothed, of white noise: it swings."""
        return np.convolve(np.random.default_rng(seed).normal(size=n + 3), [0.5, 0.5, -0.4, -0.2], "valid")

    def test_without_correlation_it_is_the_white_one(self):
        source = rows(*arrays())
        fitted = WeightedLeastSquares().fit(source)
        np.testing.assert_allclose(
            serial_covariance(fitted, [(source, np.eye(4))], np.ones((3, 1))), fitted.covariance_, rtol=1e-9, atol=1e-15
        )

    @pytest.mark.parametrize("block", [7, 1024])
    def test_is_the_formula_with_whole_matrices(self, block):
        """Two sources, one of them with scaled columns, and rows that are left out."""
        rng, model = np.random.default_rng(0), np.array([[1.0, 0.4, -0.3, -0.1], [1.0, -0.5, 0.2, 0.0]])
        parts = [(rng.normal(size=(n, 2, 3)), np.diag(scale)) for n, scale in ((90, [1, 1, 1]), (40, [1, 0.5, 2]))]
        parts[0][0][rng.random((90, 2)) < 0.3] = 0.0  # masked out
        together = np.concatenate([W @ chart for W, chart in parts])
        tau = together @ np.array([1.0, 2.0, 3.0]) + rng.normal(size=together.shape[:2]) * [0.1, 1.0]
        fitted = WeightedLeastSquares().fit(GivenRows(together, tau, coordinates(("a", "b", "c"))))
        sources = [
            (GivenRows(W, np.zeros(W.shape[:2]), coordinates(("a", "b", "c")), block=block), chart)
            for W, chart in parts
        ]
        C = np.linalg.inv(sum(w * together[:, j].T @ together[:, j] for j, w in enumerate(fitted.channel_weights_)))
        middle = np.zeros((3, 3))
        for j, (weight, sigma) in enumerate(zip(fitted.channel_weights_, fitted.sigma_, strict=True)):
            for W, chart in parts:
                row = np.zeros(len(W))
                row[:4] = model[j]
                X = W[:, j] @ chart
                middle += (weight * sigma) ** 2 * X.T @ toeplitz(row) @ X
        np.testing.assert_allclose(serial_covariance(fitted, sources, model), C @ middle @ C, rtol=1e-8, atol=1e-14)

    def test_stated_deviations_are_those_of_many_trials(self):
        """A constant column loses, one that swings with the residuals gains; one inflation is wrong for both."""
        n, trials, t = 400, 200, np.arange(400)
        W = np.stack([np.ones(n), np.sin(2 * np.pi * 0.17 * t)], axis=1)[:, None, :]
        found, stated, common = [], [], []
        for trial in range(trials):
            tau = (W @ np.array([1.0, -2.0])) + self.differences(n, trial)[:, None]
            source = GivenRows(W, tau, coordinates(("a", "b")))
            fitted = WeightedLeastSquares().fit(source)
            correlation = residual_correlation(source, fitted.values_)
            model = autocorrelation_model([correlation])
            found.append(fitted.values_)
            stated.append(np.sqrt(np.diag(serial_covariance(fitted, [(source, np.eye(2))], model))))
            common.append(np.sqrt(np.diag(correlated_covariance(fitted, correlation.inflation))))
        spread = np.std(found, axis=0)
        np.testing.assert_allclose(np.mean(stated, axis=0), spread, rtol=0.25)
        assert np.mean(common, axis=0)[0] > 2.0 * spread[0]

    @given(seed=st.integers(0, 1000), n=st.integers(2, 300), share=st.floats(0.0, 0.9))
    @settings(max_examples=60, deadline=None)
    def test_no_frequency_has_negative_power(self, seed, n, share):
        rng = np.random.default_rng(seed)
        sums = LagSums(1)
        sums.add(0, self.differences(n, seed), used=rng.random(n) > share)
        model = autocorrelation_model([sums.correlation(("a",))])
        row = np.zeros(3 * model.shape[1])
        row[: model.shape[1]] = model[0]
        assert np.linalg.eigvalsh(toeplitz(row))[0] > -1e-12 * row.size
        assert model[0, 0] >= 1.0 - 1e-12

    def test_correlation_that_lasts_is_followed(self):
        """Of first order with 0.9, 19 rows weigh as one."""
        model = autocorrelation_model([inflation_of(autoregressive(20_000, 0.9))])
        assert 2.0 * model[0].sum() - 1.0 == pytest.approx(19.0, rel=0.25)
        white = autocorrelation_model([inflation_of(autoregressive(20_000, 0.0))])
        assert 2.0 * white[0].sum() - 1.0 == pytest.approx(1.0, abs=0.1)


class TestGains:
    TOLERANCES = np.array([0.03, 0.01, 0.05])

    def test_against_finite_differences(self):
        """Torque of a channel made larger by a share: the estimates move by what the formula says, weights held."""
        W, tau = arrays(noise=0.01 * SIGMA)
        fitted = OrdinaryLeastSquares().fit(rows(W, tau))
        total = np.zeros((4, 4))
        for channel, tolerance in enumerate(self.TOLERANCES):
            scaled = tau.copy()
            scaled[:, channel] *= 1.0 + tolerance
            moved = OrdinaryLeastSquares().fit(rows(W, scaled)).values_ - fitted.values_
            total += np.outer(moved, moved)
        np.testing.assert_allclose(gain_covariance(fitted, self.TOLERANCES), total, rtol=1e-6, atol=1e-12)

    def test_against_many_trials_of_the_weighted_estimator(self):
        """The noise, the same in all trials, outweighs what the gains leave; weights move by twice the tolerance."""
        W, tau = arrays(noise=np.array([10.0, 20.0, 5.0]))
        fitted = WeightedLeastSquares().fit(rows(W, tau))
        rng = np.random.default_rng(0)
        trials = [
            WeightedLeastSquares().fit(rows(W, tau * (1.0 + self.TOLERANCES * rng.normal(size=3)))).values_
            for _ in range(200)
        ]
        stated = np.sqrt(np.diag(gain_covariance(fitted, self.TOLERANCES)))
        slack = 2.0 * self.TOLERANCES.max() * fitted.std_ + 0.15 * stated
        assert (np.abs(np.std(trials, axis=0) - stated) < slack).all()

    def test_all_gains_alike_scale_the_estimates(self):
        """One tolerance for one channel that decides everything: all values have the same relative std."""
        W, tau = arrays(noise=np.array([1e-6]))
        fitted = WeightedLeastSquares().fit(GivenRows(W, tau, coordinates()))
        stated = np.sqrt(np.diag(gain_covariance(fitted, [0.02])))
        np.testing.assert_allclose(stated, 0.02 * np.abs(TRUTH), rtol=1e-4)

    def test_exact_gains_add_nothing(self):
        fitted = WeightedLeastSquares().fit(rows(*arrays()))
        assert not gain_covariance(fitted, np.zeros(3)).any()

    def test_more_data_does_not_average_it_out(self):
        few, many = (
            gain_covariance(WeightedLeastSquares().fit(rows(*arrays(n=n, noise=0.01 * SIGMA))), self.TOLERANCES)
            for n in (100, 10_000)
        )
        ratio = np.sqrt(np.diag(many) / np.diag(few))
        assert ((ratio > 0.6) & (ratio < 1.7)).all()


def test_records_are_read_only():
    found = inflation_of(np.arange(10.0))
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.inflation = 1.0
    assert not found.inflation.flags.writeable
