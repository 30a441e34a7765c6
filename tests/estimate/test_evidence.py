"""Priors from data: known scales make ridge regression, unknown ones are found, and little data goes further."""

from __future__ import annotations

import numpy as np
import pytest

from dynident.estimate.evidence import EmpiricalPrior, PriorGroup, fit_evidence, soft_deviations
from dynident.estimate.thresholds import THRESHOLDS
from dynident.information.factor import triangular

SIZES = (10, 10, 20)  # columns of the groups
GROUPS = tuple(
    PriorGroup(name, tuple(range(sum(SIZES[:g]), sum(SIZES[: g + 1]))), scale)
    for g, (name, scale) in enumerate(zip(("large", "small", "none"), (10.0, 0.05, 0.05), strict=True))
)
N = sum(SIZES)


def made(seed: int, rows: int, scales=(0.5, 0.1, 0.0), noise: float = 0.05):
    """Two channels whose coefficients have the scales of their groups, and these."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=N) * np.repeat(scales, SIZES)
    channels = []
    for size in (1.0, 0.3):
        X = rng.normal(size=(rows, N)) * size
        channels.append(np.column_stack([X, X @ x + size * noise * rng.normal(size=rows)]))
    return channels, x


def test_with_known_scales_it_is_ridge_regression():
    channels, _ = made(0, 60)
    rng = np.random.default_rng(1)
    units, scales, sigma = rng.uniform(0.5, 2.0, N), np.array([0.5, 0.1, 0.02]), np.array([0.05, 0.02])
    prior = EmpiricalPrior(GROUPS, units, scales, sigma, np.zeros(3), 0)
    found = prior.solve([prior.compress([triangular(rows) for rows in channels])], N)
    weight = 1.0 / soft_deviations(sigma) ** 2
    precision = 1.0 / (units * np.repeat(scales, SIZES)) ** 2
    G = sum(w * rows[:, :N].T @ rows[:, :N] for w, rows in zip(weight, channels, strict=True)) + np.diag(precision)
    right = sum(w * rows[:, :N].T @ rows[:, N] for w, rows in zip(weight, channels, strict=True))
    np.testing.assert_allclose(found.values, np.linalg.solve(G, right), rtol=1e-9)
    np.testing.assert_allclose(found.covariance, np.linalg.inv(G), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(found.reduction, 1.0 - precision * np.diag(np.linalg.inv(G)), atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_scales_are_found_and_what_is_not_there_goes(seed):
    channels, x = made(seed, 2000)
    prior, found = fit_evidence(channels, np.array([2000.0, 2000.0]), GROUPS)
    torque = [np.sqrt(np.mean(rows[:, N] ** 2)) for rows in channels]
    unit = 1.0 / max(1.0 / torque[0], 0.3 / torque[1])
    drawn = [np.sqrt(np.mean(x[list(group.columns)] ** 2)) for group in GROUPS[:2]]
    np.testing.assert_allclose(prior.scales[:2] * unit, drawn, rtol=0.1)
    assert prior.scales[2] < 0.01 * prior.scales[1]
    np.testing.assert_allclose(prior.determined, [10.0, 10.0, 0.0], atol=0.3)
    np.testing.assert_allclose(prior.sigma, [0.05, 0.015], rtol=0.1)
    np.testing.assert_allclose(found.values, x, atol=0.01)


def test_triangles_say_what_rows_do():
    channels, _ = made(4, 300)
    rows = np.array([300.0, 300.0])
    one, two = (fit_evidence(parts, rows, GROUPS) for parts in (channels, [triangular(own) for own in channels]))
    np.testing.assert_allclose(one[0].scales, two[0].scales, rtol=1e-6)
    np.testing.assert_allclose(one[1].values, two[1].values, atol=1e-9)


def test_on_short_data_it_beats_free_least_squares():
    """Of which neighboring rows are alike, as those of filtered signals are."""
    ratios = []
    for seed in range(10):
        channels, x = made(seed, 30, noise=0.3)
        channels = [np.repeat(rows, int(THRESHOLDS.correlated_rows), axis=0) for rows in channels]
        _, found = fit_evidence(channels, np.array([len(rows) for rows in channels], dtype=float), GROUPS)
        rows = np.vstack(channels)
        free = np.linalg.lstsq(rows[:, :N], rows[:, N], rcond=None)[0]
        ratios.append(np.linalg.norm(found.values - x) / np.linalg.norm(free - x))
    assert np.exp(np.mean(np.log(ratios))) < 0.6


def test_columns_that_cannot_be_distinguished_and_exact_data():
    """Twins share what there is; data without noise is followed to rounding; a dead column and channel do no harm."""
    channels, x = made(5, 500, noise=0.0)
    for rows in channels:
        rows[:, 11] = rows[:, 10]
        rows[:, 39] = 0.0
    x[11] = x[10]
    channels = [np.column_stack([rows[:, :N], rows[:, :N] @ x]) for rows in channels]
    channels.append(np.zeros((1, N + 1)))
    prior, found = fit_evidence(channels, np.array([500.0, 500.0, 0.0]), GROUPS)
    for rows in channels:
        error = np.linalg.norm(rows[:, N] - rows[:, :N] @ found.values)
        assert error <= 1e-4 * np.linalg.norm(rows[:, N])
    assert found.values[10] == pytest.approx(found.values[11], rel=1e-6)
    assert found.values[39] == 0.0
    assert np.isfinite(prior.scales).all()


def test_a_channel_is_not_trusted_far_beyond_the_worst():
    soft = soft_deviations(np.array([1.0, 1e-3]))
    assert soft[1] == pytest.approx(np.sqrt(THRESHOLDS.correlated_rows) * THRESHOLDS.softening, rel=1e-3)


def test_groups_without_a_scale_are_left_out_when_moved():
    channels, _ = made(6, 1000)
    prior, found = fit_evidence(channels, np.array([1000.0, 1000.0]), GROUPS)
    kept = [column for group in GROUPS[:2] for column in group.columns]
    less = prior.moved({column: place for place, column in enumerate(kept)})
    assert [group.key for group in less.groups] == ["large", "small"]
    fewer = less.solve([less.compress([rows[:, [*kept, N]] for rows in channels])], len(kept))
    np.testing.assert_allclose(fewer.values, found.values[kept], atol=1e-3)


def passive(noise: float, rows: int = 400):
    """Two columns that cancel in a joint without torque, and drive another; the first is in no other joint."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, rows))
    x = np.array([0.6, 0.3])
    free = np.column_stack([a, -2.0 * a + 0.02 * rng.normal(size=rows), noise * rng.normal(size=rows)])
    driven = np.column_stack([0.0 * b, b, b * x[1] + 0.02 * rng.normal(size=rows)])
    return [free, driven], np.array([rows, rows], dtype=float), x


@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_terms_of_a_passive_joint_cancel(noise):
    channels, n_rows, x = passive(noise)
    _, found = fit_evidence(channels, n_rows, [PriorGroup("inertias", (0, 1), 10.0)])
    np.testing.assert_allclose(found.values, x, rtol=0.02)


def test_a_column_that_hardly_moves_is_expected_no_larger():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)) * [1.0, 1e-4]
    rows = np.column_stack([X, X[:, 0] + 0.05 * rng.normal(size=200)])
    prior, found = fit_evidence([rows], np.array([200.0]), [PriorGroup("inertias", (0, 1), 10.0)])
    assert prior.units[1] == pytest.approx(prior.units[0] / THRESHOLDS.least_excitation, rel=0.1)
    assert found.values[0] == pytest.approx(1.0, abs=0.02)
    assert abs(found.values[1]) < 10.0  # least squares gives hundreds
    assert abs(np.linalg.lstsq(X, rows[:, 2], rcond=None)[0][1]) > 10.0
