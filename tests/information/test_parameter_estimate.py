"""`ParameterEstimate`: what every method that estimates parameters returns."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import dynident as di
from dynident.errors import InputError, UnknownNameError


@pytest.fixture(scope="module")
def estimate():
    robot = di.load_robot("pendulum-2")
    rng = np.random.default_rng(1)
    q, dq, ddq = rng.normal(size=(3, 200, 2))
    tau = di.inverse_dynamics(robot, q, dq, ddq) + 0.1 * rng.normal(size=(200, 2))
    return di.accumulate(robot, q, dq, ddq, tau).solve()


def test_values_by_name_and_what_is_unknown(estimate):
    assert estimate[estimate.names[0]] == estimate.values[0]
    assert estimate.undetermined == ()
    assert estimate.rank == estimate.solve.rank == len(estimate.names)
    with pytest.raises(UnknownNameError, match="unknown base parameter 'nope'"):
        _ = estimate["nope"]
    with pytest.raises(ValueError, match="read-only"):
        estimate.values[0] = 1.0


def test_parameters_that_are_not_determined_have_no_standard_deviation(estimate):
    poor = estimate.replace(determined=np.arange(len(estimate.names)) > 0)
    assert poor.undetermined == estimate.names[:1]
    assert poor.rows()[0]["std"] is None
    assert "not known" in poor.table().splitlines()[1]
    assert np.isinf(poor.interval()[1][0])


def test_intervals_are_those_of_the_normal_distribution(estimate):
    low, high = estimate.interval(0.95)
    np.testing.assert_allclose(high - low, 2 * 1.959963984540054 * estimate.std, rtol=1e-12)
    with pytest.raises(InputError, match="level is 95"):
        estimate.interval(95)


def test_combinations_carry_the_covariance(estimate):
    n = len(estimate.names)
    mix = np.zeros((1, n))
    mix[0, :2] = 1.0, -1.0
    (own,) = estimate.transform(mix, ["difference"], ["kg"]).std
    C = estimate.covariance
    assert own == pytest.approx(np.sqrt(C[0, 0] + C[1, 1] - 2 * C[0, 1]))
    part = estimate.restrict(estimate.names[1:3])
    np.testing.assert_allclose(part.covariance, C[1:3, 1:3])
    with pytest.raises(InputError, match="matrix must have shape"):
        estimate.transform(mix[:, :1], ["difference"], ["kg"])


def test_a_combination_with_an_undetermined_parameter_is_not_determined(estimate):
    poor = estimate.replace(determined=np.arange(len(estimate.names)) > 0)
    both = poor.transform(np.eye(2, len(estimate.names)), ["first", "second"], ["", ""])
    assert both.undetermined == ("first",)


def test_plain_data(estimate):
    data = estimate.to_dict()
    assert [row["name"] for row in data["parameters"]] == list(estimate.names)
    assert set(data["parameters"][0]) == {
        *("name", "value", "std", "relative_std", "white_std", "unit", "category", "determined", "expression")
    }
    assert data["rank"] == estimate.rank


def test_frame_has_the_rows(estimate):
    pytest.importorskip("pandas")
    assert list(estimate.to_frame().index) == list(estimate.names)


def test_a_frame_needs_pandas(estimate, monkeypatch):
    for library in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InputError, match="to_frame needs pandas or polars: pip install pandas"):
        estimate.to_frame()
