from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import dynident as di
from dynident.estimate import ESTIMATORS
from dynident.information.row_source import GivenRows
from tests.estimate.test_sequential_estimation import sample

NOMINAL = "table3-initial"


@pytest.fixture(scope="module")
def robot():
    return di.load_robot("cmu-dd-arm-3")


@pytest.fixture(scope="module")
def data(robot):
    q, dq, ddq, tau = sample(robot, values="table3")
    return q, dq, ddq, tau + 0.1 * np.random.default_rng(0).normal(size=tau.shape)


@pytest.fixture(scope="module")
def information(robot, data):
    return di.accumulate(robot, *data, "rigid")


def nothing(robot):
    """No data, over all base parameters of the free robot."""
    return di.accumulate(robot, *np.zeros((4, 1, 3)), "rigid").weighted([0.0] * 3)


@pytest.fixture(scope="module")
def held(robot):
    """Only joint 3 moves: its torque feels three parameters."""
    locked = robot.lock(q1=0.2, q2=0.3)
    q, dq, ddq, tau = sample(locked, values="table3")
    return di.accumulate(locked, q, dq, ddq, tau, "rigid") + nothing(robot)


@pytest.mark.parametrize("estimator", ["ordinary", "weighted"])
def test_nominal_values_do_not_matter_when_the_data_determines_everything(information, estimator):
    plain = ESTIMATORS[estimator]().fit(information)
    for nominal in (NOMINAL, {"M1": 100.0, "XY3": -5.0}):
        found = di.estimate.torque_error_model(information, nominal, estimator)
        np.testing.assert_allclose(found.values, plain.values_, atol=1e-8)
        np.testing.assert_allclose(found.std, plain.std_, rtol=1e-6)
        np.testing.assert_allclose(found.values, found.nominal + found.correction)


def test_the_correction_is_the_truth_minus_the_nominal(robot):
    information = di.accumulate(robot, *sample(robot, values="table3"), "rigid")
    found = di.estimate.torque_error_model(information, NOMINAL)
    base = information.coordinates
    np.testing.assert_allclose(found.correction, base.base_values("table3") - base.base_values(NOMINAL), atol=1e-9)


def test_what_the_data_does_not_feel_keeps_its_nominal_value(robot, held):
    found = di.estimate.torque_error_model(held, robot.value_set(NOMINAL))
    assert set(found.names) - set(found.kept) == {"YY3", "MX3", "MZ3"}
    assert found.undetermined == found.kept
    for i, name in enumerate(found.names):
        if name in found.kept:
            assert found.values[i] == found.nominal[i]
            assert found.std[i] == np.inf
    assert found["YY3"] == pytest.approx(0.2, abs=1e-9)
    assert "nominal values are kept" in found.warnings[0]
    table = found.table().splitlines()
    assert sum("kept" in line and "not known" in line for line in table) == len(found.kept)


def test_an_undetermined_combination_is_corrected_as_little_as_possible(robot):
    locked = robot.lock(q1=0.3, q3=0.0)
    one = di.accumulate(locked, *sample(locked, values="table3"), "rigid")
    both = one + nothing(robot)
    assert di.estimate.torque_error_model(both, robot.value_set("table3")).correction == pytest.approx(0.0, abs=1e-9)
    found = di.estimate.torque_error_model(both, robot.value_set(NOMINAL))
    truth = both.coordinates.K @ di.parameters(robot, "rigid", "table3")
    combination = both.channel_factors()[both.channels.index("joint2")].dense(both.coordinates.n)[:, :-1]
    np.testing.assert_allclose(combination @ found.values, combination @ truth, atol=1e-8)
    assert len(found.undetermined) > len(found.kept)


def test_ridge_pulls_to_the_nominal_values(held, robot):
    strong = di.estimators.RidgeLeastSquares(1e4)
    found = di.estimate.torque_error_model(held, robot.value_set(NOMINAL), strong)
    np.testing.assert_allclose(found.values, found.nominal, atol=1e-6)


@pytest.mark.parametrize("std", [0.2, {"XX3": 0.01, "M3": 0.5, "YY2": 0.1}])
def test_a_prior_keeps_its_own_values(robot, information, std):
    values = {"XX3": 0.19, "M3": 3.0, "YY2": 0.4}
    prior = di.estimators.PriorLeastSquares(values, std)
    plain = prior.clone().fit(information)
    found = di.estimate.torque_error_model(information, NOMINAL, prior)
    np.testing.assert_allclose(found.values, plain.values_, atol=1e-7)
    np.testing.assert_allclose(found.std, plain.std_, rtol=1e-5)
    assert prior.values == values


def test_the_robust_method_on_rows(robot, data):
    q, dq, ddq, tau = data
    base = di.base_parameters(robot, "rigid")
    spoiled = tau.copy()
    spoiled[::10] += 50.0
    rows = GivenRows(base.regressor(q, dq, ddq), spoiled, base)
    plain = di.estimators.RobustLeastSquares().fit(rows)
    found = di.estimate.torque_error_model(rows, NOMINAL, "robust")
    np.testing.assert_allclose(found.values, plain.values_, atol=1e-4)
    assert np.abs(found.values - base.base_values("table3")).max() < 0.2


def test_total_least_squares(robot, information):
    found = di.estimate.torque_error_model(information, NOMINAL, "total")
    truth = information.coordinates.base_values("table3")
    assert (np.abs(found.values - truth) < 4.0 * found.std).all()


class TestRefusals:
    def test_a_value_set_needs_a_robot(self, held):
        with pytest.raises(di.InputError, match=r"robot.value_set\('table3'\)"):
            di.estimate.torque_error_model(held, "table3")

    def test_unknown_names(self, held, information):
        for one in (held, information):
            with pytest.raises(di.UnknownNameError, match="parameter 'XX9'"):
                di.estimate.torque_error_model(one, {"XX9": 1.0})
        with pytest.raises(di.UnknownNameError, match="base parameter 'XX9'"):
            di.estimate.torque_error_model(information, NOMINAL)["XX9"]

    def test_wrong_vector(self, held):
        with pytest.raises(di.InputError, match="30 finite values"):
            di.estimate.torque_error_model(held, [1.0, 2.0])

    @pytest.mark.parametrize(("estimator", "message"), [("prior", "needs nominal values"), ("best", "unknown estima")])
    def test_estimators(self, information, estimator, message):
        with pytest.raises(di.DynidentError, match=message):
            di.estimate.torque_error_model(information, NOMINAL, estimator)

    def test_around(self, information):
        with pytest.raises(di.InputError, match="11 finite values"):
            information.around([1.0, 2.0])


def test_fixed_values_are_no_part_of_it(robot):
    known = dataclasses.replace(robot, fixed={"M1": 13.5})
    information = di.accumulate(known, *sample(known, values="table3"), "rigid")
    for mass in (10.0, 13.5):
        found = di.estimate.torque_error_model(information, {**robot.value_set(NOMINAL), "M1": mass})
        assert found["ZZR1"] == pytest.approx(9.625 - 0.25 * 13.5, abs=1e-8)
