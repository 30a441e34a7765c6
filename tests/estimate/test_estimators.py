"""One contract for every estimator of the least-squares family, then what is special to each."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from dynident.dynamics.terms import Column
from dynident.errors import DynidentError, InputError, SingularError, UnknownNameError
from dynident.estimate.estimators import (
    ESTIMATORS,
    NotFittedError,
    OrdinaryLeastSquares,
    PriorLeastSquares,
    RidgeLeastSquares,
    RobustLeastSquares,
    TotalLeastSquares,
    WeightedLeastSquares,
)
from dynident.estimate.least_squares import scaled_solution
from dynident.estimate.priors import nominal_std
from dynident.estimate.thresholds import THRESHOLDS
from dynident.identifiability.regrouping import Regrouping
from dynident.information.factor import triangular
from dynident.information.row_source import GivenRows, accumulate_source

NAMES = ("a", "b", "c", "d")
TRUTH = np.array([1.0, -2.0, 0.5, 3.0])
SIGMA = np.array([0.1, 1.0, 5.0])  # of the channels
LEARNED = (
    *("names_", "units_", "values_", "std_", "covariance_", "inverse_", "channel_weights_", "sigma_", "channels_"),
    *("rank_", "condition_", "gap_", "determined_", "undetermined_", "n_rows_", "iterations_", "warnings_"),
    "information_",
)


def coordinates(names=NAMES, K=None, units=None):
    n = len(names)
    units = units or [""] * n
    columns = tuple(Column(x, u, x[0], x[1:], "given", "given column") for x, u in zip(names, units, strict=True))
    K = np.eye(n) if K is None else K
    return Regrouping(columns, tuple(range(len(K))), K)


def rows(W, tau, names=NAMES, **options):
    return GivenRows(W, tau, coordinates(names), **options)


def arrays(seed=0, n=300, noise=SIGMA, truth=TRUTH):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(n, len(noise), len(truth))) @ np.diag([1.0, 10.0, 0.1, 1.0])
    return W, W @ truth + rng.normal(size=(n, len(noise))) * noise


def make(name, **options):
    """An estimator with a pull too weak to see."""
    given = {"ridge": {"strength": 1e-9}, "prior": {"values": dict.fromkeys(NAMES, 1.0), "std": 1e7}}
    return ESTIMATORS[name](**(given.get(name, {}) | options))


every = pytest.mark.parametrize("name", list(ESTIMATORS))


def learned(estimator):
    return {name: getattr(estimator, name) for name in LEARNED if name != "information_"}


class TestManners:
    @every
    def test_constructor_only_stores(self, name):
        marker = object()
        params = dict.fromkeys(make(name).get_params(), marker)
        estimator = ESTIMATORS[name](**params)
        assert all(value is marker for value in vars(estimator).values())
        assert set(vars(estimator)) == set(params)
        assert estimator.get_params() == params

    @every
    def test_params_round_trip_and_clone(self, name):
        estimator = make(name).fit(rows(*arrays()))
        assert estimator.set_params(rank_tolerance=1e-5) is estimator
        copy = estimator.clone()
        assert type(copy) is type(estimator)
        assert copy.get_params() == estimator.get_params()
        assert copy.rank_tolerance == 1e-5
        assert not hasattr(copy, "values_")
        assert hasattr(estimator, "values_")

    @every
    def test_unknown_param(self, name):
        estimator = make(name)
        with pytest.raises(UnknownNameError, match=r"rank_tolerence.*did you mean 'rank_tolerance'"):
            estimator.set_params(rank_tolerence=1.0)
        assert "rank_tolerence" not in vars(estimator)

    @every
    def test_fit_returns_itself_and_learns_everything(self, name):
        estimator = make(name)
        params = dict(estimator.get_params())
        assert estimator.fit(rows(*arrays(), channels=("x", "y", "z"))) is estimator
        assert estimator.get_params() == params
        assert estimator.names_ == NAMES
        assert estimator.units_ == ("",) * 4
        assert estimator.channels_ == ("x", "y", "z")
        assert estimator.n_rows_ == 900
        assert estimator.undetermined_ == ()
        assert estimator.iterations_ >= 1
        assert estimator.warnings_ == ()
        shapes = {"values_": (4,), "std_": (4,), "covariance_": (4, 4), "inverse_": (4, 4), "determined_": (4,)}
        for attribute, shape in (shapes | {"channel_weights_": (3,), "sigma_": (3,)}).items():
            value = getattr(estimator, attribute)
            assert value.shape == shape
            assert not value.flags.writeable
        np.testing.assert_allclose(estimator.std_, np.sqrt(np.diag(estimator.covariance_)))

    @every
    @pytest.mark.parametrize("attribute", LEARNED)
    def test_not_fitted(self, name, attribute):
        with pytest.raises(NotFittedError, match=rf"{attribute} yet; call fit\(data\) first"):
            getattr(make(name), attribute)
        with pytest.raises(AttributeError, match="has no attribute nonsense_") as caught:
            _ = make(name).nonsense_
        assert not isinstance(caught.value, DynidentError)

    @every
    def test_refit_is_identical_and_forgets(self, name):
        estimator, data, other = make(name), rows(*arrays()), rows(*arrays(1))
        first = learned(estimator.fit(data))
        between = learned(estimator.fit(other))
        again = learned(estimator.fit(data))
        for key, value in first.items():
            np.testing.assert_array_equal(again[key], value)
        assert not np.array_equal(between["values_"], first["values_"])

    @every
    def test_input_is_not_modified(self, name):
        data = rows(*arrays())
        before = pickle.dumps(data)
        information = accumulate_source(data)
        held = [factor.R.copy() for factor in information.channel_factors()]
        make(name).fit(data)
        assert pickle.dumps(data) == before
        if name != "robust":
            make(name).fit(information)
        for factor, R in zip(information.channel_factors(), held, strict=True):
            np.testing.assert_array_equal(factor.R, R)

    @every
    def test_a_failed_fit_leaves_what_was_learned(self, name):
        estimator = make(name).fit(rows(*arrays()))
        before = estimator.values_
        with pytest.raises(InputError):
            estimator.set_params(rank_tolerance=2.0).fit(rows(*arrays(1)))
        assert estimator.values_ is before

    @every
    def test_repr_shows_what_was_changed(self, name):
        assert repr(make(name, rank_tolerance=1e-5)).startswith(ESTIMATORS[name].__name__ + "(")
        assert "rank_tolerance=1e-05" in repr(make(name, rank_tolerance=1e-5))
        assert "rank_tolerance" not in repr(make(name))

    @every
    def test_pickles(self, name):
        estimator = make(name).fit(rows(*arrays()))
        copy = pickle.loads(pickle.dumps(estimator))
        np.testing.assert_array_equal(copy.values_, estimator.values_)

    @every
    def test_wrong_data_is_named(self, name):
        with pytest.raises(InputError, match="data is list; expected an Information or a source of rows"):
            make(name).fit([1.0])
        with pytest.raises(InputError, match=r"rank_tolerance is 2\.0"):
            make(name, rank_tolerance=2.0).fit(rows(*arrays()))

    def test_long_mappings_are_shortened(self):
        estimator = PriorLeastSquares({f"p{i}": 1.0 for i in range(60)}, 0.1)
        assert repr(estimator) == "PriorLeastSquares(values={'p0': 1.0, 'p1': 1.0, 'p2': 1.0, ... 60 in all}, std=0.1)"
        assert repr(RobustLeastSquares("bisquare")) == "RobustLeastSquares(loss='bisquare')"


class TestMathematics:
    @every
    def test_noise_free_data_recovers_the_truth(self, name):
        W, tau = arrays(noise=np.zeros(3))
        estimator = make(name).fit(rows(W, tau))
        np.testing.assert_allclose(estimator.values_, TRUTH, rtol=1e-9)
        assert estimator.rank_ == 4
        assert (estimator.sigma_ < 1e-8).all()
        assert (estimator.std_ < 1e-8).all()

    @every
    def test_information_and_rows_agree(self, name):
        data = rows(*arrays(), segment=70)
        if name == "robust":
            with pytest.raises(InputError, match="an Information has forgotten its rows"):
                make(name).fit(accumulate_source(data))
            return
        a, b = make(name).fit(data), make(name).fit(accumulate_source(data))
        np.testing.assert_array_equal(a.values_, b.values_)
        assert len(a.information_.segments) == 5

    @every
    def test_order_of_segments_does_not_matter(self, name):
        W, tau = arrays()
        whole = make(name).fit(rows(W, tau))
        order = np.concatenate(np.split(np.arange(300), [50, 180])[::-1])
        other = make(name).fit(rows(W[order], tau[order], segment=60, block=7))
        np.testing.assert_allclose(other.values_, whole.values_, rtol=1e-10)
        np.testing.assert_allclose(other.std_, whole.std_, rtol=1e-8)

    @pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "robust"])
    def test_merging_does_not_matter(self, name):
        W, tau = arrays()
        whole = make(name).fit(accumulate_source(rows(W, tau)))
        parts = [accumulate_source(rows(W[part], tau[part])) for part in (slice(0, 3), slice(3, 200), slice(200, 300))]
        merged = make(name).fit(parts[2] + parts[0] + parts[1])
        joined = make(name).fit((parts[0] + parts[1] + parts[2]).joined())
        for other in (merged, joined):
            np.testing.assert_allclose(other.values_, whole.values_, rtol=1e-10)
            np.testing.assert_allclose(other.covariance_, whole.covariance_, rtol=1e-7, atol=1e-9)

    @every
    def test_unit_of_a_channel(self, name):
        """Torque of one channel in other units: only ordinary least squares, which trusts numbers, may notice."""
        W, tau = arrays()
        units = np.array([1.0, 1e3, 1.0])
        plain, scaled = make(name).fit(rows(W, tau)), make(name).fit(rows(W * units[:, None], tau * units))
        if name == "ordinary":
            assert np.abs(scaled.values_ - plain.values_).max() > 1e-3
            return
        np.testing.assert_allclose(scaled.values_, plain.values_, rtol=1e-7)
        np.testing.assert_allclose(scaled.std_, plain.std_, rtol=1e-7)
        np.testing.assert_allclose(scaled.sigma_, plain.sigma_ * units, rtol=1e-7)
        np.testing.assert_allclose(scaled.channel_weights_, plain.channel_weights_ / units**2, rtol=1e-7)

    @every
    def test_unit_of_a_parameter(self, name):
        W, tau = arrays()
        units = np.array([1.0, 1e3, 1.0, 1e-3])
        other = make(name)
        if name == "prior":
            other.set_params(values={"a": 1.0, "b": 1e3, "c": 1.0, "d": 1e-3})
        plain, scaled = make(name).fit(rows(W, tau)), other.fit(rows(W / units, tau))
        np.testing.assert_allclose(scaled.values_, plain.values_ * units, rtol=1e-8)
        np.testing.assert_allclose(scaled.std_, plain.std_ * units, rtol=1e-8)
        assert scaled.condition_ == pytest.approx(plain.condition_, rel=1e-8)

    @every
    def test_inverse_is_that_of_the_weighted_information(self, name):
        estimator = make(name).fit(rows(*arrays()))
        factors = estimator.information_.channel_factors()
        matrix = sum(
            w * (f.dense(4)[:, :4].T @ f.dense(4)[:, :4])
            for w, f in zip(estimator.channel_weights_, factors, strict=True)
        )
        if name == "total":  # the smallest singular value of [A b] is taken off
            norms = np.sqrt(np.diag(matrix))
            shift = (matrix - np.linalg.inv(estimator.inverse_)) / np.outer(norms, norms)
            np.testing.assert_allclose(shift, shift[0, 0] * np.eye(4), atol=1e-10)
            assert shift[0, 0] > 1e-6
            return
        np.testing.assert_allclose(estimator.inverse_ @ matrix, np.eye(4), atol=1e-6)

    @every
    def test_rank_deficient_data_is_reported(self, name):
        W, tau = arrays(truth=np.array([1.0, -2.0, 0.5, 0.0]))
        W[:, :, 3] = W[:, :, 0] - W[:, :, 1]
        estimator = make(name).fit(rows(W, tau))
        assert estimator.rank_ == 3
        assert estimator.undetermined_ == ("a", "b", "d")
        assert estimator.determined_.tolist() == [False, False, True, False]
        assert estimator.gap_[1] < 1e-12 < estimator.gap_[0]
        assert "leaves open a, b, d; add motion" in estimator.warnings_[0]
        assert np.isfinite(estimator.values_).all()
        assert np.isfinite(estimator.covariance_).all()
        assert estimator.values_[2] == pytest.approx(0.5, abs=6 * estimator.std_[2])
        if name in ("ridge", "prior"):  # the prior says something about what the data leaves open
            assert (estimator.std_[[0, 1, 3]] > 1e5 * estimator.std_[2]).all()
        else:
            assert np.isinf(estimator.std_[[0, 1, 3]]).all()
        together = estimator.values_[:2] + estimator.values_[3] * np.array([1.0, -1.0])
        np.testing.assert_allclose(together, [1.0, -2.0], atol=0.2)

    @every
    def test_a_column_nobody_feels(self, name):
        W, tau = arrays(truth=np.array([1.0, -2.0, 0.5, 0.0]))
        W[:, :, 3] = 0.0
        estimator = make(name).fit(rows(W, tau))
        assert estimator.undetermined_ == ("d",)
        if name == "prior":  # all that is known of it
            assert estimator.values_[3] == pytest.approx(1.0)
            assert estimator.std_[3] == pytest.approx(1e7)
        else:
            assert estimator.values_[3] == 0.0
            assert np.isinf(estimator.std_[3])
        assert np.isfinite(estimator.std_[:3]).all()

    @every
    def test_nothing_visible_at_all_is_never_nan(self, name):
        estimator = make(name).fit(rows(np.zeros((5, 1, 4)), np.ones((5, 1))))
        assert estimator.rank_ == 0
        assert estimator.condition_ == np.inf
        for key in ("values_", "covariance_", "inverse_", "sigma_", "channel_weights_"):
            assert np.isfinite(getattr(estimator, key)).all(), key
        assert not np.isnan(estimator.std_).any()

    @every
    def test_fewer_rows_than_parameters(self, name):
        W, tau = arrays(n=1, noise=SIGMA[:2])
        estimator = make(name).fit(rows(W, tau))
        assert estimator.rank_ == 2
        assert np.isfinite(estimator.values_).all()
        assert not np.isnan(estimator.std_).any()

    @every
    def test_no_rows(self, name):
        with pytest.raises(InputError, match="there is no row for training"):
            make(name).fit(rows(np.zeros((0, 1, 4)), np.zeros((0, 1))))

    @every
    def test_numbers_that_are_not_finite_are_refused(self, name):
        W, tau = arrays()

        class Spoilt(GivenRows):
            def blocks(self):
                for block in super().blocks():
                    block.columns_first[1][-1, 3] = np.inf
                    yield block

        with pytest.raises(InputError, match="channel 2 are not all finite"):
            make(name).fit(Spoilt(W, tau, coordinates()))

    @every
    def test_channels_without_rows_or_torque(self, name):
        W, tau = arrays()
        alone = make(name).fit(rows(W[:, :1], tau[:, :1]))
        W[:, 1], tau[:, 1] = 0.0, 0.0
        with_empty = make(name).fit(rows(W[:, :2], tau[:, :2]))
        np.testing.assert_allclose(with_empty.values_, alone.values_, rtol=1e-9)
        assert np.isfinite(with_empty.channel_weights_).all()
        dead = make(name).fit(rows(W[:, :1], tau[:, 1:2]))
        assert "channel 1 has no torque at all" in dead.warnings_[0]
        assert dead.values_ == pytest.approx(0.0, abs=1e-6)

    @pytest.mark.parametrize("name", ["ordinary", "weighted", "robust"])
    def test_stated_deviations_cover_the_truth(self, name):
        """Twenty seeds of twelve parameters, channels of very different noise."""
        truth, scores = np.linspace(-3.0, 3.0, 12), []
        mixing = np.diag(np.logspace(-1.0, 1.0, 12)) + 0.1  # a weak direction of its own would be one score, not twelve
        for seed in range(20):
            rng = np.random.default_rng(seed)
            W = rng.normal(size=(300, 3, 12)) @ mixing
            tau = W @ truth + rng.normal(size=(300, 3)) * SIGMA
            estimator = ESTIMATORS[name]().fit(rows(W, tau, [f"p{i}" for i in range(12)]))
            scores.append((estimator.values_ - truth) / estimator.std_)
        size = np.abs(scores)
        assert np.mean(size > 3.0) <= 0.01
        assert size.max() < 5.0
        assert np.mean(np.square(scores)) == pytest.approx(1.0, abs=0.25)


def stacked(W, tau, weights=1.0):
    root = np.broadcast_to(np.sqrt(weights), tau.shape)
    return (W * root[..., None]).reshape(-1, W.shape[-1]), (tau * root).ravel()


def lstsq(A, b):
    return np.linalg.lstsq(A, b, rcond=None)[0]


class TestOrdinary:
    def test_equals_lstsq(self):
        W, tau = arrays()
        estimator = OrdinaryLeastSquares().fit(rows(W, tau))
        np.testing.assert_allclose(estimator.values_, lstsq(*stacked(W, tau)), rtol=1e-10)
        np.testing.assert_array_equal(estimator.channel_weights_, 1.0)
        residual = tau - W @ estimator.values_
        hat = np.einsum("njk,kl,njl->j", W, estimator.inverse_, W)
        np.testing.assert_allclose(estimator.sigma_, np.sqrt(np.sum(residual**2, 0) / (300 - hat)), rtol=1e-9)

    def test_deviations_of_one_channel_are_the_usual_ones(self):
        W, tau = arrays(n=30, noise=SIGMA[1:2])
        estimator = OrdinaryLeastSquares().fit(rows(W, tau))
        A, b = stacked(W, tau)
        variance = np.sum((b - A @ lstsq(A, b)) ** 2) / (30 - 4)
        np.testing.assert_allclose(estimator.covariance_, variance * np.linalg.inv(A.T @ A), rtol=1e-8)

    def test_deviations_follow_each_channels_noise(self):
        """Two channels that share no parameter: each has the standard deviations it has alone."""
        W, tau = arrays(noise=np.array([0.1, 5.0]))
        W[:, 0, 2:], W[:, 1, :2] = 0.0, 0.0
        both = OrdinaryLeastSquares().fit(rows(W, tau))
        for channel in range(2):
            alone = OrdinaryLeastSquares().fit(rows(W[:, channel : channel + 1], tau[:, channel : channel + 1]))
            np.testing.assert_allclose(both.std_[alone.determined_], alone.std_[alone.determined_], rtol=1e-9)


class TestWeighted:
    def test_equals_generalised_least_squares(self):
        W, tau = arrays()
        estimator = WeightedLeastSquares().fit(rows(W, tau))
        A, b = stacked(W, tau, 1.0 / estimator.sigma_**2)
        np.testing.assert_allclose(estimator.values_, lstsq(A, b), rtol=1e-8)
        np.testing.assert_allclose(estimator.covariance_, np.linalg.inv(A.T @ A), rtol=1e-6)
        np.testing.assert_allclose(estimator.channel_weights_, estimator.sigma_**-2.0, rtol=1e-6)
        residual = tau - W @ estimator.values_
        hat = np.einsum("njk,kl,njl->j", W, estimator.inverse_, W) * estimator.channel_weights_
        np.testing.assert_allclose(estimator.sigma_, np.sqrt(np.sum(residual**2, 0) / (300 - hat)), rtol=1e-6)

    def test_is_what_information_solves(self):
        information = accumulate_source(rows(*arrays()))
        solution, estimator = information.solve(), WeightedLeastSquares().fit(information)
        np.testing.assert_array_equal(estimator.values_, solution.values)
        np.testing.assert_array_equal(estimator.std_, solution.std)
        assert estimator.gap_ == solution.solve.gap


def with_outliers(seed=0, share=0.1):
    W, tau = arrays(seed, noise=np.array([0.1, 1.0]))
    rng = np.random.default_rng(100 + seed)
    hit = rng.uniform(size=tau.shape) < share
    return W, np.where(hit, tau + 50.0 * np.array([0.1, 1.0]) * (1.0 + rng.uniform(size=tau.shape)), tau)


def bisquare(u):
    return u * np.clip(1 - (u / 4.685) ** 2, 0, None) ** 2


class TestRobust:
    @pytest.mark.parametrize("loss", ["huber", "bisquare"])
    def test_resists_outliers(self, loss):
        W, tau = with_outliers()
        W[:, :, 3] = 1.0  # an offset, which one-sided outliers would move
        tau = tau - (arrays(0, noise=np.zeros(2))[0][:, :, 3] - 1.0) * TRUTH[3]
        robust, plain = RobustLeastSquares(loss).fit(rows(W, tau)), WeightedLeastSquares().fit(rows(W, tau))
        error, of_plain = np.abs(robust.values_ - TRUTH), np.abs(plain.values_ - TRUTH)
        assert error[3] < 0.05
        assert of_plain[3] > 0.5
        assert (error < {"huber": 8.0, "bisquare": 4.0}[loss] * robust.std_).all()
        np.testing.assert_allclose(robust.sigma_, [0.1, 1.0], rtol=0.35)
        assert (robust.row_weight_share_ < 0.96).all()
        assert (robust.row_weight_share_ > 0.8).all()
        assert robust.warnings_ == ()

    @pytest.mark.parametrize("loss", ["huber", "bisquare"])
    def test_solves_the_equation_of_the_loss(self, loss):
        """sum psi(r / s) w / s = 0, with s the median standard deviation of the residuals."""
        W, tau = with_outliers(1)
        estimator = RobustLeastSquares(loss).fit(rows(W, tau))
        residual = tau - W @ estimator.values_
        scale = np.median(np.abs(residual), axis=0) / 0.6744897501960817
        np.testing.assert_allclose(estimator.sigma_, scale, rtol=1e-4)
        u = residual / scale
        psi = np.clip(u, -1.345, 1.345) if loss == "huber" else bisquare(u)
        score = np.einsum("nj,njk->k", psi / scale, W)
        assert np.abs(score * estimator.std_).max() < 1e-4

    @pytest.mark.parametrize("loss", ["huber", "bisquare"])
    def test_covariance_against_hubers_formula(self, loss):
        W, tau = arrays(n=400, noise=SIGMA[1:2])
        estimator = RobustLeastSquares(loss).fit(rows(W, tau))
        A, b = stacked(W, tau)
        u = (b - A @ estimator.values_) / estimator.sigma_[0]
        if loss == "huber":
            psi, slope = np.clip(u, -1.345, 1.345), np.abs(u) <= 1.345
        else:
            psi, h = bisquare(u), 1e-5
            slope = (bisquare(u + h) - bisquare(u - h)) / (2 * h)
        small = 1 + 4 / 400 * slope.var() / slope.mean() ** 2
        variance = small**2 * np.sum(psi**2) / (400 - 4) / slope.mean() ** 2 * estimator.sigma_[0] ** 2
        np.testing.assert_allclose(estimator.covariance_, variance * np.linalg.inv(A.T @ A), rtol=1e-4)

    def test_bisquare_covers_the_truth_in_spite_of_outliers(self):
        scores = []
        for seed in range(10):
            estimator = RobustLeastSquares("bisquare").fit(rows(*with_outliers(seed)))
            scores.append((estimator.values_ - TRUTH) / estimator.std_)
        assert np.abs(scores).max() < 4.0
        assert np.mean(np.square(scores)) == pytest.approx(1.0, abs=0.5)

    def test_exact_data_with_outliers_is_recovered(self):
        W, tau = arrays(noise=np.zeros(1))
        tau = tau.copy()
        tau[::10] += 7.0
        estimator = RobustLeastSquares("bisquare").fit(rows(W, tau))
        np.testing.assert_allclose(estimator.values_, TRUTH, rtol=1e-7)
        assert estimator.row_weight_share_[0] == pytest.approx(0.9, abs=0.05)

    def test_blocks_do_not_matter_even_where_residuals_are_thinned(self):
        n = 2 * THRESHOLDS.max_residuals + 1234
        rng = np.random.default_rng(0)
        W = rng.normal(size=(n, 1, 2))
        data = W, W @ np.array([1.0, 2.0]) + rng.standard_t(2, size=(n, 1))
        small, large = (RobustLeastSquares().fit(rows(*data, NAMES[:2], block=block)) for block in (997, 50_000))
        np.testing.assert_allclose(small.values_, large.values_, rtol=1e-12)
        np.testing.assert_allclose(small.sigma_, large.sigma_, rtol=1e-12)
        residual = np.abs(data[1] - data[0] @ small.values_)[::3]
        np.testing.assert_allclose(small.sigma_, np.median(residual) / 0.6744897501960817, rtol=1e-4)

    def test_rows_of_zeros_say_nothing_about_the_noise(self):
        W, tau = arrays(noise=np.array([0.1, 1.0]))

        class Padded(GivenRows):
            """Twice as many rows of zeros as others in the second channel."""

            def blocks(self):
                for block in super().blocks():
                    n = len(block.time)
                    lines = tuple(np.column_stack([own, np.zeros((5, 2 * n))]) for own in block.columns_first)
                    usable = np.concatenate([block.usable, np.tile([False, True], (2 * n, 1))])
                    yield replace(block, time=np.arange(3.0 * n), columns_first=lines, usable=usable)

        plain, padded = (RobustLeastSquares().fit(kind(W, tau, coordinates())) for kind in (GivenRows, Padded))
        np.testing.assert_allclose(padded.sigma_, plain.sigma_, rtol=1e-6)
        np.testing.assert_allclose(padded.values_, plain.values_, rtol=1e-6)

    @pytest.mark.parametrize("seed", [3, 4, 10])
    def test_bisquare_starts_with_huber(self, seed):
        """Two rows of five are far off, to one side: from ordinary residuals alone bisquare ends up 10 away."""
        rng = np.random.default_rng(seed)
        W = rng.normal(size=(40, 1, 4))
        tau = W @ TRUTH + 0.1 * rng.normal(size=(40, 1))
        tau[:16] += 50.0
        estimator = RobustLeastSquares("bisquare", max_iterations=100).fit(rows(W, tau))
        np.testing.assert_allclose(estimator.values_, TRUTH, atol=0.1)

    def test_rounds_that_do_not_settle_are_mentioned(self):
        estimator = RobustLeastSquares(max_iterations=2).fit(rows(*with_outliers()))
        assert estimator.iterations_ == 2
        assert "not settled after 2 rounds" in estimator.warnings_[0]

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"loss": "hubert"}, "unknown loss 'hubert'; did you mean 'huber'"),
            ({"tuning": 0.0}, "tuning is 0.0; expected a finite number above 0"),
            ({"tolerance": "small"}, "tolerance is 'small'"),
            ({"max_iterations": 0}, "max_iterations is 0; expected a whole number from 1"),
        ],
    )
    def test_wrong_options(self, options, words):
        with pytest.raises(DynidentError, match=words):
            RobustLeastSquares(**options).fit(rows(*arrays()))


def errors_in_variables(seed, n=400, noise=0.3):
    """Columns of different size, each and the torque with an error of the same share of its norm."""
    rng = np.random.default_rng(seed)
    size, truth = np.array([1.0, 20.0, 0.05]), np.array([2.0, -0.1, 30.0])
    A = rng.normal(size=(n, 3)) * size
    b = A @ truth
    b = b + rng.normal(size=n) * noise * np.sqrt(np.mean(b**2))
    return A + rng.normal(size=A.shape) * noise * size, b, truth


class TestTotal:
    def test_equals_the_textbook_solution(self):
        A, b, _ = errors_in_variables(0, n=12)
        estimator = TotalLeastSquares().fit(rows(A[:, None], b[:, None], NAMES[:3]))
        size = np.append(np.linalg.norm(A, axis=0), np.linalg.norm(b))
        weakest = np.linalg.svd(np.column_stack([A, b]) / size)[2][-1]
        expected = -weakest[:3] / weakest[3] * size[3] / size[:3]
        np.testing.assert_allclose(estimator.values_, expected, rtol=1e-10)

    def test_less_biased_than_ordinary(self):
        total, ordinary, scores = [], [], []
        for seed in range(30):
            A, b, truth = errors_in_variables(seed)
            data = rows(A[:, None], b[:, None], NAMES[:3])
            estimator = TotalLeastSquares().fit(data)
            total.append(estimator.values_ / truth - 1.0)
            ordinary.append(OrdinaryLeastSquares().fit(data).values_ / truth - 1.0)
            scores.append((estimator.values_ - truth) / estimator.std_)
        assert (np.mean(ordinary, axis=0) < -0.06).all()
        assert (np.abs(np.mean(total, axis=0)) < 0.02).all()
        assert np.mean(np.square(scores)) == pytest.approx(1.0, abs=0.35)

    def test_covariance_where_scales_are_known(self):
        """Errors as large as in the columns themselves, nearly: what they add to the spread is half of it."""
        scores = []
        for seed in range(300):
            rng = np.random.default_rng(seed)
            A = rng.normal(size=(400, 3))
            noisy = np.column_stack([A, A @ [1.0, -1.0, 0.5]]) + 0.7 * rng.normal(size=(400, 4))
            x, _, covariance = scaled_solution(triangular(noisy), 3, 400.0)
            scores.append((x - [1.0, -1.0, 0.5]) / np.sqrt(np.diag(covariance)))
        assert np.mean(np.square(scores)) == pytest.approx(1.0, abs=0.15)

    def test_rank_deficient_is_the_shortest(self):
        A, b, _ = errors_in_variables(1)
        A = np.column_stack([A, A[:, 0]])
        estimator = TotalLeastSquares().fit(rows(A[:, None], b[:, None]))
        without = TotalLeastSquares().fit(rows(A[:, None, :3], b[:, None], NAMES[:3]))
        assert estimator.undetermined_ == ("a", "d")
        assert estimator.values_[0] == pytest.approx(estimator.values_[3])  # the shortest shares alike
        # Two columns that share an error are not one column with that error: close, no more.
        np.testing.assert_allclose(estimator.values_[1:3], without.values_[1:3], rtol=0.1)

    def test_nongeneric_problem_is_refused(self):
        """Two columns differ less than the torque is off, in a direction the torque has no part in."""
        W = np.array([[1.0, 1.0], [0.1, -0.1], [0.0, 0.0]])[:, None]
        tau = np.array([1.0, 0.0, 1.0])[:, None]
        with pytest.raises(SingularError, match=r"raise rank_tolerance.*or use WeightedLeastSquares"):
            TotalLeastSquares().fit(rows(W, tau, NAMES[:2]))
        estimator = TotalLeastSquares(rank_tolerance=0.2).fit(rows(W, tau, NAMES[:2]))
        assert estimator.rank_ == 1
        assert estimator.values_[0] == pytest.approx(estimator.values_[1])


class TestRidge:
    def test_a_faint_pull_does_not_disturb_the_channel_weights(self):
        """Where only the pull holds a direction the inverse is huge, and W C W' with it would be all rounding."""
        W, tau = arrays(truth=np.array([1.0, -2.0, 0.5, 0.0]))
        W[:, :, 3] = W[:, :, 0] - W[:, :, 1]
        faint, plain = RidgeLeastSquares(1e-10).fit(rows(W, tau)), WeightedLeastSquares().fit(rows(W, tau))
        np.testing.assert_allclose(faint.sigma_, plain.sigma_, rtol=1e-6)
        assert faint.iterations_ < 10

    @pytest.mark.parametrize("strength", [1e-3, 0.3])
    def test_equals_rows_added_by_hand(self, strength):
        W, tau = arrays()
        estimator = RidgeLeastSquares(strength).fit(rows(W, tau))
        A, b = stacked(W, tau, estimator.channel_weights_)
        pull = np.diag(strength * np.linalg.norm(A, axis=0))
        np.testing.assert_allclose(estimator.values_, lstsq(np.vstack([A, pull]), np.append(b, np.zeros(4))), rtol=1e-9)
        np.testing.assert_allclose(estimator.covariance_, np.linalg.inv(A.T @ A + pull @ pull), rtol=1e-7, atol=1e-12)
        assert np.linalg.norm(estimator.values_) < np.linalg.norm(WeightedLeastSquares().fit(rows(W, tau)).values_)

    def test_no_strength_is_weighted_least_squares(self):
        data = rows(*arrays())
        np.testing.assert_allclose(
            RidgeLeastSquares(0.0).fit(data).values_, WeightedLeastSquares().fit(data).values_, rtol=1e-12
        )

    @pytest.mark.parametrize("strength", [-1.0, np.nan, np.inf, "much", True])
    def test_wrong_strength(self, strength):
        with pytest.raises(InputError, match=r"strength is .*; expected a finite number from 0"):
            RidgeLeastSquares(strength).fit(rows(*arrays()))


# a + 2 e and b - f have an effect, c and d on their own
REGROUPED = coordinates((*NAMES, "e", "f"), np.column_stack([np.eye(4), [2.0, 0.0, 0.0, 0.0], [0.0, -1.0, 0.0, 0.0]]))
NOMINAL = {"a": 0.9, "b": -1.0, "c": 0.6, "d": 2.5, "e": 0.1, "f": 1.1}
DEVIATIONS = {"a": 0.2, "b": 0.01, "c": 0.1, "d": 0.5, "e": 0.3, "f": 0.02}


class TestPrior:
    def fit(self, estimator):
        W, tau = arrays(n=20)
        estimator.fit(GivenRows(W, tau, REGROUPED))
        return estimator, *stacked(W, tau, estimator.channel_weights_)

    def test_equals_rows_added_by_hand_and_the_posterior_formula(self):
        estimator, A, b = self.fit(PriorLeastSquares(NOMINAL, DEVIATIONS))
        K = REGROUPED.K
        S = K @ np.diag(np.square(list(DEVIATIONS.values()))) @ K.T
        mean = K @ np.array(list(NOMINAL.values()))
        half = np.linalg.inv(np.linalg.cholesky(S))
        expected = lstsq(np.vstack([A, half]), np.append(b, half @ mean))
        np.testing.assert_allclose(estimator.values_, expected, rtol=1e-9)
        posterior = np.linalg.inv(A.T @ A + np.linalg.inv(S))
        np.testing.assert_allclose(estimator.covariance_, posterior, rtol=1e-7, atol=1e-12)
        assert estimator.names_ == ("aR", "bR", "c", "d")

    def test_parameters_without_a_value_are_open(self):
        """With e open, a + 2 e is open too; the others keep their prior."""
        given = [name for name in NOMINAL if name != "e"]
        estimator, A, b = self.fit(PriorLeastSquares({n: NOMINAL[n] for n in given}, {n: DEVIATIONS[n] for n in given}))
        half = np.diag([0.0, 1 / np.hypot(0.01, 0.02), 10.0, 2.0])
        expected = lstsq(np.vstack([A, half]), np.append(b, half @ [0.0, -2.1, 0.6, 2.5]))
        np.testing.assert_allclose(estimator.values_, expected, rtol=1e-9)

    def test_an_open_parameter_shared_by_two_leaves_their_difference(self):
        shared = coordinates(("a", "b", "e"), np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]))
        rng = np.random.default_rng(0)
        W = rng.normal(size=(50, 1, 2))
        tau = W @ np.array([1.0, 3.0]) + rng.normal(size=(50, 1))
        estimator = PriorLeastSquares({"a": 0.0, "b": 5.0}, {"a": 3e-5, "b": 4e-5}).fit(GivenRows(W, tau, shared))
        difference = np.array([1.0, -1.0])
        assert difference @ estimator.values_ == pytest.approx(-5.0, abs=1e-3)
        assert difference @ estimator.covariance_ @ difference == pytest.approx(25e-10, rel=1e-3)
        assert (estimator.std_ > 0.05).all()

    def test_data_decides_rank_and_the_prior_fills_the_rest(self):
        W, tau = arrays(truth=np.array([1.0, -2.0, 0.5, 0.0]))
        W[:, :, 3] = 0.0
        estimator = PriorLeastSquares({"d": 4.0}, {"d": 0.5}).fit(rows(W, tau))
        assert (estimator.rank_, estimator.undetermined_) == (3, ("d",))
        assert estimator.values_[3] == pytest.approx(4.0)
        assert estimator.std_[3] == pytest.approx(0.5)
        np.testing.assert_allclose(estimator.values_[:3], WeightedLeastSquares().fit(rows(W, tau)).values_[:3])

    def test_an_empty_prior_is_weighted_least_squares(self):
        data = rows(*arrays())
        np.testing.assert_allclose(
            PriorLeastSquares({}, 0.1).fit(data).values_, WeightedLeastSquares().fit(data).values_, rtol=1e-12
        )

    def test_deviations_as_a_share_of_the_values(self):
        names, units = ("x1", "y1", "x2", "y2", "m2"), ("kg", "kg", "kg", "kg", "m")
        values = {"x1": -3.0, "y1": 0.0, "x2": 0.0, "y2": 0.0, "m2": 5.0}
        found = nominal_std(coordinates(names, units=units), values, 0.1)
        np.testing.assert_allclose(found, [0.3, 0.3, 0.3, 0.3, 0.5])
        near = nominal_std(coordinates(names, units=units), values | {"y2": 0.2}, 0.1)
        np.testing.assert_allclose(near, [0.3, 0.3, 0.02, 0.02, 0.5])
        with pytest.raises(InputError, match="m2 and all values of its unit are zero"):
            nominal_std(coordinates(names, units=units), values | {"m2": 0.0}, 0.1)

    @pytest.mark.parametrize(
        ("values", "std", "words"),
        [
            ({"aa": 1.0}, 0.1, r"unknown standard parameter 'aa'.*valid: a, b"),
            ({"a": 1.0}, {"b": 1.0}, "values and std must name the same parameters; a is"),
            ({"a": 1.0}, {"a": 0.0}, r"the std of a \(for an exact value use `Information.known`\) is 0.0"),
            ({"a": np.nan}, 0.1, "the nominal value of a is nan"),
            ({"a": 1.0}, -0.1, "std is -0.1; expected a finite number above 0"),
            ([1.0], 0.1, "values must be a mapping"),
        ],
    )
    def test_wrong_priors(self, values, std, words):
        with pytest.raises(DynidentError, match=words):
            PriorLeastSquares(values, std).fit(rows(*arrays()))


class TestGivenRows:
    def test_same_factors_as_accumulated_at_once(self):
        W, tau = arrays()
        W[:, 0, 2] = 0.0
        W[5:9], tau[5:9] = 0.0, 0.0
        information = accumulate_source(rows(W, tau, segment=100, block=33))
        assert len(information.segments) == 3
        for channel, factor in enumerate(information.channel_factors()):
            table = np.column_stack([W[:, channel], tau[:, channel]])
            dense = factor.dense(4)
            np.testing.assert_allclose(dense.T @ dense, table.T @ table, rtol=1e-9, atol=1e-9)
            assert factor.n_rows == 296
        assert information.channel_factors()[0].columns == (0, 1, 3)

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda W, tau: rows(W[:, :, :3], tau), r"W must have shape \(n_samples, n_channels, 4\)"),
            (lambda W, tau: rows(W, tau, channels=("x", "x", "y")), "give 3 different channel names"),
            (lambda W, tau: rows(W, tau, definitions=("x",)), "1 definitions do not fit 4"),
            (lambda W, tau: rows(W, tau, block=0), "block is 0"),
            (lambda W, tau: rows(np.where(W[3, 1, 2] == W, np.nan, W), tau), "W is not finite at sample 3, channel 2"),
        ],
    )
    def test_wrong_rows(self, change, words):
        with pytest.raises(InputError, match=words):
            change(*arrays())


def test_covariance_of_total_least_squares_where_noise_is_as_large_as_the_columns():
    """Against the spread of 3000 draws: noise in the columns makes the covariance smaller along the values."""
    rng, truth, n, noise = np.random.default_rng(0), np.array([2.0, -1.0]), 400, 0.3
    A = 0.5 * rng.normal(size=(n, 2))
    b = A @ truth
    drawn, stated = [], []
    for _ in range(3000):
        R = np.linalg.qr(np.column_stack([A, b]) + noise * rng.normal(size=(n, 3)), mode="r")
        values, _, covariance = scaled_solution(R, 2, n)
        drawn.append(values)
        stated.append(covariance)
    spread = np.cov(np.array(drawn).T)
    assert np.linalg.norm(np.median(stated, axis=0) - spread) < 0.1 * np.linalg.norm(spread)


@pytest.mark.parametrize("size", [1e-140, 1e-20, 1e-12, 1e-9, 1e100])
def test_values_follow_the_unit_of_the_torque(size):
    """A torque of 1e-12 N·m says as much as one of 1 N·m: nothing is compared with an absolute number."""
    rng = np.random.default_rng(1)
    W = rng.normal(size=(300, 2, 3)) * [1.0, 30.0, 0.1]
    tau = W @ np.array([1.0, -2.0, 0.5]) + rng.normal(size=(300, 2)) * [0.01, 0.3]
    plain, scaled = (WeightedLeastSquares().fit(rows(W, factor * tau, NAMES[:3])) for factor in (1.0, size))
    np.testing.assert_allclose(scaled.values_ / size, plain.values_, rtol=1e-9)
    np.testing.assert_allclose(scaled.std_ / size, plain.std_, rtol=1e-9)
