"""What page, terminal and JSON say where parameters and prediction are two answers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident.cli.identify import identify_answer
from dynident.report.fit import report_html
from dynident.validation.comparison import difference_note
from tests.estimate.test_friction_view import friction_log
from tests.estimate.test_two_answers import two_answers
from tests.report.test_friction import printed
from tests.report.test_page import NOT_A_NUMBER, Balance

SENTENCE = "The fit holds two sets of values."


@pytest.fixture(scope="module")
def fits():
    robot = di.load_robot("pendulum-2")
    return two_answers(robot, [friction_log(robot, seed) for seed in (1, 2)])


@pytest.fixture(scope="module")
def apart(fits):
    """The same, with a prediction that has other links."""
    both, _, rich = fits
    values = np.array(rich.beta)
    values[rich.names.index("ZZR1")] *= 1.1
    return both.replace(predictive=rich.estimate.replace(values=values))


def test_the_page_explains_them_and_shows_each_where_it_belongs(fits):
    both, basic, _ = fits
    found = Balance(report_html(both))
    assert SENTENCE in found.text
    assert "friction terms under empirical priors" in found.text
    assert "Friction torque at the median and the highest velocity" in found.text
    assert "By the parameters" in found.text
    assert "Terms of the prediction" in found.text
    assert not NOT_A_NUMBER.search(found.text)
    assert f"{len(basic.names)} base parameters" in found.text
    plain = Balance(report_html(basic)).text
    assert SENTENCE not in plain
    assert "Terms of the prediction" not in plain
    assert "Friction torque at" not in plain


def test_the_terminal_does_too(fits):
    both, basic, _ = fits
    shown = " ".join(printed(both).split())
    assert SENTENCE in shown
    assert "Friction torque" in shown
    assert "stop1_1" not in shown  # no coefficient of the prediction by itself
    assert SENTENCE not in " ".join(printed(basic).split())


def test_differences_stand_beside_the_parameters(fits, apart):
    words = "Parameters and prediction differ by more than their standard deviations: ZZR1 ("
    assert words in Balance(report_html(apart.replace(notes=(difference_note(apart),)))).text
    assert words not in Balance(report_html(fits[0])).text


def test_narrow_intervals_are_said_to_be_widened(fits):
    both, _, _ = fits
    crossed = both.cross_validation
    narrow = replace(crossed, interval_coverage=np.array([0.6, 0.94]), levels=3.0 * both.predictive.sigma)
    text = Balance(report_html(both.replace(cross_validation=narrow))).text
    assert "too narrow and have been widened from cross-validation: joint1 3 times (60.0 % held)." in text
    wide = replace(crossed, interval_coverage=np.array([0.93, 0.94]))
    text = Balance(report_html(both.replace(cross_validation=wide))).text
    assert "hold 93.5 % of the torque on held-out folds" in text
    assert "widened" not in text


def test_json_has_both(fits, apart):
    both, basic, rich = fits
    found = json.loads(json.dumps(identify_answer(apart, Path("out")), allow_nan=False))
    assert [row["name"] for row in found["parameters"]] == list(basic.names)
    prediction = found["prediction"]
    assert prediction["terms"] == [term.key_on(rich.robot) for term in rich.base.terms]
    assert prediction["weight"] == both.selection.weight
    assert not prediction["same_as_parameters"]
    assert prediction["errors"]["train"] == found["train"]["relative_error"]
    assert prediction["differs_from_parameters"][0]["name"] == "ZZR1"
    assert len(prediction["friction_torque"]) == 4
    plain = identify_answer(basic, Path("out"))["prediction"]
    assert plain["same_as_parameters"]
    assert plain["differs_from_parameters"] == []
