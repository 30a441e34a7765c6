"""The verdict on fits: one rule, from the best data there is, with reasons and a next step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynident as di
from dynident.estimate.records import Diagnosis, Diagnostic
from dynident.estimate.torque_errors import TorqueErrors
from dynident.validation.thresholds import THRESHOLDS
from dynident.validation.verdict import errors_verdict, fit_verdict
from tests.cli.fits import FIRST, fit_of


def with_errors(fit: di.Fit, error: float, **joints: float) -> di.Fit:
    """The fit with another error on its held-out log, the same for all joints but those that are named."""
    ((label, own),) = fit.validation.items()
    shares = np.array([joints.get(name, error) for name in own.joints])
    square = np.ones(len(shares)) / len(shares)
    changed = replace(own, torque_square=square, torque=0.0 * square, error_square=shares**2 * square)
    return fit.replace(validation={label: changed})


@pytest.fixture(scope="module")
def fit():
    return fit_of(FIRST)


@pytest.mark.parametrize(
    ("error", "grade"),
    [(0.005, "good"), (0.0999, "good"), (0.1001, "usable"), (0.15, "usable"), (0.2999, "usable"), (0.3001, "poor")],
)
def test_errors_that_shared_one_box_have_three_grades(fit, error, grade):
    found = fit_verdict(with_errors(fit, error).replace(nominal=None))
    assert found.grade == grade
    assert bool(found.reasons) == (grade != "good")
    assert found.next_steps
    assert found.error == pytest.approx(error)
    assert found.basis == "held-out data"


def test_a_useless_model_is_poor_and_says_what_to_check(fit):
    found = fit_verdict(with_errors(fit, 9.99).replace(nominal=None))
    assert found.grade == "poor"
    assert "misses 999 % of the torque" in found.reasons[0]
    assert "dynident check" in found.next_steps[0]


def test_a_joint_that_hides_behind_the_others_is_named(fit):
    found = fit_verdict(with_errors(fit, 0.02, wrist_3=0.4).replace(nominal=None))
    assert found.error == pytest.approx(np.sqrt((5 * 0.02**2 + 0.4**2) / 6))
    assert found.grade == "usable"
    assert any("of wrist_3" in reason for reason in found.reasons)


def test_nothing_held_out_is_usable_at_best(fit):
    found = fit_verdict(fit.replace(validation={}, cross_validation=None))
    assert (found.grade, found.basis) == ("usable", "training data")
    assert "no log was held out" in found.reasons[0]
    assert "dynident validate FIT LOG" in found.next_steps[0]


def test_cross_validation_assesses_joints_too(fit):
    crossed = fit.cross_validation
    errors = np.array(crossed.errors)
    errors[:, 4] = 0.5
    found = fit_verdict(fit.replace(validation={}, cross_validation=replace(crossed, errors=errors)))
    assert (found.grade, found.basis) == ("usable", "cross-validation")
    assert "wrist_2" in found.reasons[0]


def test_parameters_that_the_data_leaves_open_are_a_reason(fit):
    found = fit_verdict(fit.replace(determined=np.arange(len(fit.names)) > 1))
    assert found.grade == "usable"
    assert "does not determine 2 parameters" in found.reasons[0]
    assert "--extend FIT" in found.next_steps[0]


def test_a_robot_file_that_fits_better_makes_a_model_poor(fit):
    better = replace(fit.train, error_square=0.25 * fit.train.error_square)
    found = fit_verdict(fit.replace(nominal=better))
    assert found.grade == "poor"
    assert "robot file fit the training data better" in found.reasons[0]


def test_an_overridden_stop_is_poor(fit):
    stop = Diagnosis((Diagnostic("gravity", "stop", "points up"),), ())
    found = fit_verdict(fit.replace(diagnosis=stop))
    assert found.grade == "poor"
    assert "overridden" in found.reasons[0]


def test_torque_of_zero_is_not_good(fit):
    ((label, own),) = fit.validation.items()
    found = fit_verdict(fit.replace(validation={label: TorqueErrors.of(own.joints, own.band)}))
    assert found.grade == "usable"
    assert np.isnan(found.error)


def test_thresholds_come_in_order():
    assert 0.0 < THRESHOLDS.good_error < THRESHOLDS.usable_error < 0.5


def test_a_validation_has_the_verdict_of_its_logs(fit):
    arm = fit.robot
    found = di.validate(fit, di.read_log(FIRST, arm))
    assert found.verdict.grade == "good"
    assert found.as_dict()["grade"] == "good"
    worse = fit.replace(predictive=fit.predictive.replace(values=0.8 * fit.predictive.values))
    found = di.validate(worse, di.read_log(FIRST, arm))
    assert 0.15 < found.relative_error < 0.25
    assert found.verdict.grade == "usable"
    assert found.as_dict()["next_steps"]


def test_values_of_the_file_that_fit_no_better_than_noise_say_nothing(fit):
    train = fit.train.relative
    alike = with_errors(fit, 0.01)
    for share, grade in ((0.97, "good"), (0.5, "poor")):
        errors = replace(alike.train, error_square=np.array(alike.train.error_square) * share**2)
        assert errors.relative == pytest.approx(share * train)
        assert fit_verdict(alike.replace(nominal=errors, validation=alike.validation)).grade == grade


def test_intervals_that_miss_the_torque_are_no_good_model(fit):
    ((_, own),) = fit.validation.items()
    for share, grade in ((0.93, "good"), (0.1, "usable")):
        found = errors_verdict(own, fit.usefulness, np.full(6, share))
        assert found.grade == grade
    assert "contain only 10 % of the torque" in found.reasons[0]
