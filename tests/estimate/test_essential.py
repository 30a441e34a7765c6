"""Essential parameters: who leaves, in which order, and what is left."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import dynident as di
from dynident.errors import InputError, UnknownNameError
from dynident.identifiability.regrouping import Regrouping
from dynident.information.row_source import GivenRows, MappedRows, accumulate_source

NAMES = ["big", "fair", "faint", "zero", "small"]
TRUE = np.array([5.0, 1.0, 0.02, 0.0, 0.5])


def coordinates(names=NAMES) -> Regrouping:
    return di.information.accumulate_rows(np.ones((1, 1, len(names))), np.ones((1, 1)), names).coordinates


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    W = rng.normal(size=(400, 2, 5))
    return W, W @ TRUE + np.array([0.3, 0.6]) * rng.normal(size=(400, 2))


@pytest.fixture(scope="module")
def information(data):
    return di.information.accumulate_rows(*data, NAMES)


def test_the_worst_leave_one_at_a_time(information):
    found = di.estimate.essential_parameters(information)
    assert found.essential == ("big", "fair", "small")
    assert {one.name for one in found.eliminated} == {"faint", "zero"}
    first = di.estimators.WeightedLeastSquares().fit(information)
    worst = NAMES[int(np.argmax(first.std_ / np.abs(first.values_)))]
    assert found.eliminated[0].name == worst
    assert found.eliminated[0].value == pytest.approx(first.values_[NAMES.index(worst)])
    assert found.eliminated[0].std == pytest.approx(first.std_[NAMES.index(worst)])
    assert all(one.relative_std >= 0.15 for one in found.eliminated)
    again = di.estimators.WeightedLeastSquares().fit(information.restrict([name for name in NAMES if name != worst]))
    assert found.eliminated[1].std == pytest.approx(again.std_[again.names_.index(found.eliminated[1].name)])


def test_what_stays_is_solved_again_and_what_left_is_zero(information, data):
    found = di.estimate.essential_parameters(information)
    alone = di.estimators.WeightedLeastSquares().fit(
        di.information.accumulate_rows(data[0][:, :, [0, 1, 4]], data[1], ["a", "b", "c"])
    )
    np.testing.assert_allclose(found.values[[0, 1, 4]], alone.values_, rtol=1e-9)
    np.testing.assert_allclose(found.std[[0, 1, 4]], alone.std_, rtol=1e-9)
    assert found.values[2] == found.values[3] == 0.0
    assert found["zero"] == 0.0
    left = {one.name: one.std for one in found.eliminated}
    assert found.std[2] == pytest.approx(left["faint"])  # how far from zero it may be


def test_the_effect_on_the_residual_is_that_of_the_rows(information, data):
    W, y = data
    found = di.estimate.essential_parameters(information)
    weights = np.sqrt(di.estimators.WeightedLeastSquares().fit(information).channel_weights_)

    def residual(names):
        fit = di.estimators.WeightedLeastSquares().fit(information.restrict(names))
        return np.linalg.norm((y - W[:, :, [NAMES.index(name) for name in fit.names_]] @ fit.values_) * weights)

    rest = [name for name in NAMES if name != found.eliminated[0].name]
    assert found.eliminated[0].residual == pytest.approx(residual(rest) / residual(NAMES) - 1.0, rel=1e-6)
    assert found.eliminated[1].total == pytest.approx(residual(found.essential) / residual(NAMES) - 1.0, rel=1e-6)


def test_correlated_residuals_make_more_leave(information):
    few = di.estimate.essential_parameters(information, inflation=[100.0, 100.0])
    assert "small" not in few.essential
    assert "big" in few.essential


@pytest.mark.parametrize(
    "estimator",
    [di.estimators.OrdinaryLeastSquares(), di.estimators.TotalLeastSquares(), di.estimators.RidgeLeastSquares(1e-3)],
    ids=repr,
)
def test_any_method(information, estimator):
    found = di.estimate.essential_parameters(information, estimator)
    assert found.essential == ("big", "fair", "small")
    assert type(found.fitted) is type(estimator)
    again = di.estimate.essential_parameters(estimator.clone().fit(information))
    np.testing.assert_array_equal(again.values, found.values)


def test_a_robust_method_weighs_its_rows_again(data):
    W, y = data
    spoiled = y.copy()
    spoiled[::40] += 30.0
    rows = GivenRows(W, spoiled, coordinates())
    found = di.estimate.essential_parameters(rows, di.estimators.RobustLeastSquares())
    assert found.essential == ("big", "fair", "small")
    np.testing.assert_allclose(found.values[[0, 1, 4]], TRUE[[0, 1, 4]], atol=0.1)
    alone = di.estimators.RobustLeastSquares().fit(MappedRows(rows, ("big", "fair", "small")))
    np.testing.assert_array_equal(found.fitted.values_, alone.values_)
    with pytest.raises(InputError, match="give the rows"):
        di.estimate.essential_parameters(accumulate_source(rows), di.estimators.RobustLeastSquares())


def test_restricted_rows_are_restricted_factors(data, information):
    rows = MappedRows(GivenRows(*data, coordinates()), ("small", "fair"))
    ours, theirs = (
        di.estimators.WeightedLeastSquares().fit(rows),
        di.estimators.WeightedLeastSquares().fit(information.restrict(rows.names)),
    )
    assert ours.names_ == theirs.names_ == ("fair", "small")
    np.testing.assert_allclose(ours.values_, theirs.values_, rtol=1e-10)


def test_of_dependent_parameters_the_last_leaves_and_the_others_are_reported(data):
    W, y = data
    twice = np.concatenate([W, W[:, :, :1], np.zeros_like(W[:, :, :1])], axis=2)
    found = di.estimate.essential_parameters(di.information.accumulate_rows(twice, y, [*NAMES, "copy", "silent"]))
    assert [one.name for one in found.eliminated][:2] == ["silent", "copy"]
    assert found.eliminated[0].reason == "not determined by the data"
    assert found.essential == ("big", "fair", "small")
    assert found["big"] == pytest.approx(5.0, abs=0.1)
    assert found.undetermined == ("copy", "silent")
    assert found.eliminated[0].as_dict()["std"] is None


def test_some_may_be_kept_whatever_their_deviation(information):
    assert "zero" in di.estimate.essential_parameters(information, keep=["zero"]).essential
    with pytest.raises(UnknownNameError, match="did you mean 'zero'"):
        di.estimate.essential_parameters(information, keep=["zeros"])


def test_what_makes_no_sense_is_refused(information):
    for share in (0.0, -1.0, float("nan"), "15 %", 1.01):
        with pytest.raises(InputError, match="essential share"):
            di.estimate.essential_parameters(information, share=share)
    with pytest.raises(InputError, match=r"15 % is 0\.15"):
        di.estimate.essential_parameters(information, share=15)
    with pytest.raises(InputError, match="no parameter has a relative standard deviation below 1e-07 %"):
        di.estimate.essential_parameters(information, share=1e-9)
    with pytest.raises(InputError, match="one inflation"):
        di.estimate.essential_parameters(information, inflation=[1.0])


@pytest.mark.parametrize("samples", [2, 4])  # fewer equations than parameters, and too few to determine std
def test_too_few_equations_are_refused(data, samples):
    short = di.information.accumulate_rows(*(x[:samples] for x in data), NAMES)
    with pytest.raises(InputError, match=f"{2 * samples} equations for 5 parameters .* at least 10"):
        di.estimate.essential_parameters(short)
    enough = di.information.accumulate_rows(*(x[:5] for x in data), NAMES)
    assert "big" in di.estimate.essential_parameters(enough, share=1.0).essential


def test_methods_by_name(information):
    found = di.estimate.essential_parameters(information, "ordinary")
    np.testing.assert_array_equal(
        found.values, di.estimate.essential_parameters(information, di.estimators.OrdinaryLeastSquares()).values
    )
    assert isinstance(found.fitted, di.estimators.OrdinaryLeastSquares)
    with pytest.raises(UnknownNameError, match="did you mean 'ordinary'"):
        di.estimate.essential_parameters(information, "ordinari")


def test_a_residual_that_shrinks_has_one_sign(information):
    found = di.estimate.essential_parameters(information)
    shrunk = dataclasses.replace(found, eliminated=(dataclasses.replace(found.eliminated[0], residual=-0.41),))
    line = shrunk.table().splitlines()[1]
    assert " -41 %" in line
    assert "+-" not in line
    assert "+" in found.table()


def test_the_table_tells_who_left_and_why(information):
    lines = di.estimate.essential_parameters(information).table().splitlines()
    assert lines[0].split()[0] == "left"
    assert "deviation of" in lines[1]
    assert lines[1].count("%") == 3
    assert [line.split()[0] for line in lines[3:]] == ["stayed", "big", "fair", "small"]


def test_a_model_needs_a_robot(information):
    with pytest.raises(InputError, match="does not know its robot"):
        _ = di.estimate.essential_parameters(information).model
