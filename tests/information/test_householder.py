from __future__ import annotations

import numpy as np
import pytest

from dynident.information.factor import absorb, merge_factors, triangular


@pytest.mark.parametrize("p", [1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 42])
@pytest.mark.parametrize("n", [1, 3, 4, 5, 64, 201])
def test_absorbing_keeps_the_inner_products(p, n):
    rng = np.random.default_rng(100 * p + n)
    first, second = rng.normal(size=(n, p)), rng.normal(size=(n + 2, p))
    R = np.zeros((p, p))
    absorb(R, np.array(first.T, order="C"))
    absorb(R, np.array(second.T, order="C"))
    rows = np.vstack([first, second])
    np.testing.assert_allclose(R.T @ R, rows.T @ rows, atol=1e-12 * n * p)
    assert not np.tril(R, -1).any()


def test_zero_columns_and_zero_rows():
    rows = np.zeros((10, 5))
    rows[:, 2] = np.arange(10)
    R = triangular(rows)
    assert R[2, 2] == pytest.approx(-np.linalg.norm(rows[:, 2]))
    assert np.count_nonzero(R) == 1
    np.testing.assert_array_equal(triangular(np.zeros((4, 3))), np.zeros((3, 3)))


def test_as_accurate_as_lapack():
    """Backward error of the factor on badly scaled rows."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3000, 25)) * np.logspace(0, -9, 25)
    R = triangular(rows)
    reference = np.linalg.qr(rows, mode="r")
    sign = np.sign(np.diag(R) * np.diag(reference))
    np.testing.assert_allclose(R, reference * sign[:, None], rtol=1e-9, atol=1e-24)


def test_merging_aligns_columns():
    from dynident.information.factor import factor_of

    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(20, 4)), rng.normal(size=(30, 4))
    a[:, 1], b[:, 0] = 0.0, 0.0
    both = merge_factors([factor_of(a, (0, 2), 20), factor_of(b, (1, 2), 30)])
    assert both.columns == (0, 1, 2)
    assert both.n_rows == 50
    rows = np.vstack([a, b])
    np.testing.assert_allclose(both.R.T @ both.R, rows.T @ rows, atol=1e-12)
