from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.information.solution import solve_iterated, trust_as_driven
from tests.information import nist


def names(n):
    return [f"b{i}" for i in range(n)]


def information(W, y):
    return di.information.accumulate_rows(W[:, None, :], y[:, None], names(W.shape[1]))


def digits(values, certified):
    error = np.abs(values - certified) / np.where(certified == 0.0, 1.0, np.abs(certified))
    return -np.log10(np.maximum(error, 1e-16)).min()


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (nist.filip(), 7.0),
        (nist.wampler(0.0), 8.5),
        (nist.wampler(1.0), 8.5),
        (nist.wampler(100.0), 7.0),
        (nist.wampler(1e4), 5.0),
        (nist.longley(), 10.0),
    ],
    ids=["Filip", "Wampler1", "Wampler3", "Wampler4", "Wampler5", "Longley"],
)
def test_nist_certified_regressions(data, wanted):
    W, y, values, deviations = data
    solution = information(W, y).solve(weighting="equal")
    assert digits(solution.values, values) >= wanted
    if deviations.any():
        assert digits(solution.std, deviations) >= min(wanted, 7.0)
    assert solution.rank == W.shape[1]
    assert solution.solve.gap[0] > 0.0
    assert solution.solve.gap[1] == 0.0


@pytest.mark.parametrize("condition", [1e1, 1e5, 1e6, 1e7])
def test_error_stays_near_that_of_lstsq(condition):
    """The condition is a property of directions, so that scaling columns cannot correct it."""
    ours, theirs = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        U = np.linalg.qr(rng.normal(size=(2000, 30)))[0]
        V = np.linalg.qr(rng.normal(size=(30, 30)))[0]
        W = U * np.logspace(0, -np.log10(condition), 30) @ V.T * 50
        truth = rng.normal(size=30)
        y = W @ truth
        solution = information(W, y).solve(weighting="equal")
        ours.append(np.linalg.norm(solution.values - truth))
        theirs.append(np.linalg.norm(np.linalg.lstsq(W, y, rcond=None)[0] - truth))
        assert solution.rank == 30
    assert np.median(ours) <= 10 * np.median(theirs)
    if condition == 1e1:
        assert max(ours) < 1e-9


def test_residual_variance_of_noise_free_data_is_rounding():
    """Never y'y - z'z: the difference of two large numbers would leave 1e-8 of their size."""
    rng = np.random.default_rng(0)
    W = rng.normal(size=(5000, 20)) * 1e3
    y = W @ rng.normal(size=20)
    solution = information(W, y).solve(weighting="equal")
    assert solution.sigma[0] < 1e-12 * np.abs(y).max()
    noisy = information(W, y + rng.normal(size=5000) * 1e-6).solve(weighting="equal")
    assert noisy.sigma[0] == pytest.approx(1e-6, rel=0.05)


def test_rank_deficiency_is_reported_and_settled_as_asked():
    rng = np.random.default_rng(1)
    W = rng.normal(size=(200, 4))
    W = np.column_stack([W, W[:, 1] - 2 * W[:, 2], np.zeros(200)])
    y = W[:, :4] @ np.array([1.0, 2.0, 3.0, 4.0])
    info = information(W, y)
    shortest = info.solve(weighting="equal")
    assert shortest.rank == 4
    assert shortest.undetermined == ("b1", "b2", "b4", "b5")
    assert np.isinf(shortest.std[[1, 2, 4, 5]]).all()
    assert np.isfinite(shortest.std[[0, 3]]).all()
    assert shortest.solve.gap[0] > 1e-3
    assert shortest.solve.gap[1] < 1e-13
    np.testing.assert_allclose(W @ shortest.values, y, atol=1e-10)
    base = info.solve(weighting="equal", method="base")
    np.testing.assert_allclose(base.values, [1, 2, 3, 4, 0, 0], atol=1e-10)
    assert base.undetermined == ("b4", "b5")


def test_iterated_weighting_finds_the_channels_noise():
    rng = np.random.default_rng(2)
    W = rng.normal(size=(4000, 3, 5))
    truth = rng.normal(size=5)
    sigma = np.array([0.01, 1.0, 20.0])
    y = W @ truth + rng.normal(size=(4000, 3)) * sigma
    info = di.information.accumulate_rows(W, y, names(5))
    solution = info.solve()
    np.testing.assert_allclose(solution.sigma, sigma, rtol=0.05)
    reference = np.linalg.lstsq((W / sigma[:, None]).reshape(-1, 5), (y / sigma).ravel(), rcond=None)[0]
    np.testing.assert_allclose(solution.values, reference, atol=2e-5)
    assert np.abs(solution.values - truth).max() < 5 * solution.std.max()
    assert solution.std.max() < info.solve(weighting="equal").std.min()


def test_deviations_cover_the_truth():
    """Over 40 noise seeds, errors in units of the stated standard deviation have unit variance."""
    rng = np.random.default_rng(3)
    W = rng.normal(size=(300, 2, 6)) @ rng.normal(size=(6, 6))
    truth = rng.normal(size=6)
    scores = []
    for _ in range(40):
        y = W @ truth + rng.normal(size=(300, 2)) * [0.5, 3.0]
        solution = di.information.accumulate_rows(W, y, names(6)).solve()
        scores.append((solution.values - truth) / solution.std)
    assert np.mean(np.square(scores)) == pytest.approx(1.0, abs=0.25)


def test_segment_covariance_sees_correlated_residuals():
    """A residual that drifts slowly: white-noise standard deviations are far too small, segment ones are right."""
    rng = np.random.default_rng(4)
    truth = np.array([1.0, -2.0])
    errors, white, segments = [], [], []
    for _ in range(60):
        noise = np.repeat(rng.normal(size=40), 50)
        W = np.column_stack([np.ones(2000), np.repeat(rng.normal(size=40), 50)])
        y = W @ truth + noise
        info = None
        for s in range(40):
            part = slice(50 * s, 50 * s + 50)
            piece = information(W[part], y[part])
            info = piece if info is None else info + piece
        errors.append(info.solve(weighting="equal").values - truth)
        white.append(info.solve(weighting="equal").std)
        segments.append(info.solve(weighting="equal", covariance="segments").std)
    spread = np.std(errors, axis=0)
    assert (spread > 4 * np.mean(white, axis=0)).all()
    np.testing.assert_allclose(np.mean(segments, axis=0), spread, rtol=0.3)


def test_deviations_of_nist_match_the_white_formula():
    W, y, _, _ = nist.longley()
    solution = information(W, y).solve(weighting="equal")
    residual = y - W @ solution.values
    expected = np.sqrt(np.diag(np.linalg.inv(W.T @ W)) * (residual @ residual) / (16 - 7))
    np.testing.assert_allclose(solution.std, expected, rtol=1e-4)  # the normal equations are the inexact side
    assert solution["b6"] == pytest.approx(1829.15146461355)
    assert solution.relative_std[6] == pytest.approx(455.478499142212 / 1829.15146461355)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"weighting": "best"}, "expected iterated or equal"),
        ({"method": "svd"}, "expected minimum norm or base"),
        ({"covariance": "robust"}, "expected white or segments"),
        ({"covariance": "segments"}, "at least two segments"),
    ],
)
def test_wrong_options_are_named(options, words):
    W, y, _, _ = nist.longley()
    with pytest.raises(di.InputError, match=words):
        information(W, y).solve(**options)


def test_equations_without_torque_do_not_become_law():
    """Noise of the columns makes zero the best answer to them; weighted by their residual they would take over."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 500))
    free = np.column_stack([a + 0.5 * rng.normal(size=500), -2.0 * a + 0.5 * rng.normal(size=500), np.zeros(500)])
    driven = np.column_stack([np.zeros(500), b, 0.3 * b + 0.3 * rng.normal(size=500)])
    found, sigma, _ = solve_iterated([free, driven], np.array([500.0, 500.0]), 1e-7)
    assert sigma[0] >= sigma[1]
    assert 0.1 < found.x[1] < 0.35
    assert trust_as_driven(np.array([0.1, 0.4, 0.2]), np.array([False, True, True])).tolist() == [0.2, 0.4, 0.2]
    assert trust_as_driven(np.array([0.1, 0.4]), np.zeros(2, dtype=bool)).tolist() == [0.1, 0.4]
