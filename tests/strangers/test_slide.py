"""A slide counts in meters what a joint that turns counts in radians: 0.1 m are one."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import yaml

import dynident as di
from tests.strangers import calibration, scara

LIFT = 2  # place of the slide among the joints
BASIC = "rigid,Ia,Fv,Fc(0.02),Fo"


@pytest.fixture(scope="module")
def log():
    return scara().log(3)


@pytest.fixture(scope="module")
def fit(log):
    return di.identify(scara().described, log, friction="basic")


def test_errors_of_the_slide_are_within_their_standard_deviations(fit):
    """Smoothed over 0.02 m/s, Fc3 is 5.6 and Fv3 4.3 standard deviations off."""
    truth = scara().base_truth(fit.base)
    own = [i for i, name in enumerate(fit.names) if name.endswith("3")]
    names = [fit.names[i] for i in own]
    assert {"Fv3", "Fc3"} < set(names)
    found = calibration(names, fit.beta[own], fit.std[own], truth[own])
    assert found.rms < 1.3
    assert abs(found.worst[1]) < 4.0


@pytest.mark.parametrize(("terms", "width"), [("Fc(0.02)", 0.002), ("Fc(0.02,0.005)", 0.005), ("Fc(0,0.01)", 0.01)])
def test_the_column_of_a_slide_is_smoothed_in_metres_per_second(terms, width):
    dq = np.array([[0.01, -0.02, 0.003, 0.04]])
    column = di.regressor(scara().described, 0.0 * dq, dq, 0.0 * dq, terms)[0, LIFT, LIFT]
    assert column == pytest.approx(np.tanh(0.003 / width))
    (term,) = di.base_parameters(scara().described, terms).terms
    assert term.key == terms.replace("(0,", "(0.0,")


def test_a_stored_fit_says_what_was_used(fit, log, tmp_path):
    fit.save(tmp_path)
    assert "Fc(0.02,0.002)" in yaml.safe_load((tmp_path / "fit.yaml").read_text())["terms"]
    again = di.load_fit(tmp_path)
    assert [term.key for term in again.base.terms] == [term.key for term in fit.base.terms]
    np.testing.assert_array_equal(again.predict(log), fit.predict(log))


def test_a_fit_that_was_stored_with_one_number_predicts_what_it_did(fit, log, tmp_path):
    """Files of earlier versions have Fc(0.02), which was 0.02 m/s on slides."""
    terms = tuple(di.dynamics.Coulomb(0.02, 0.02) if term.name == "Fc" else term for term in fit.base.terms)
    old = dataclasses.replace(fit, base=dataclasses.replace(fit.base, terms=terms))
    old.save(tmp_path)
    assert "Fc(0.02)" in yaml.safe_load((tmp_path / "fit.yaml").read_text())["terms"]
    again = di.load_fit(tmp_path)
    np.testing.assert_array_equal(again.predict(log), old.predict(log))
    assert np.abs(again.predict(log) - fit.predict(log))[:, LIFT].max() > 1.0
    assert np.abs(again.predict(log) - fit.predict(log))[:, 0].max() == 0.0


def test_factors_of_other_widths_do_not_mix():
    robot, rng = scara().described, np.random.default_rng(0)
    q, dq, ddq, tau = rng.normal(size=(4, 200, 4))
    data = [di.accumulate(robot, q, dq, ddq, tau, terms) for terms in (BASIC, BASIC.replace("0.02", "0.02,0.02"))]
    with pytest.raises(di.DynidentError, match="means different things"):
        data[0] + data[1]


def test_a_slide_that_is_slow_throughout_is_identified_too(log):
    """What rests is reported by an element's own velocity, not by a number of meters per second."""
    slow = dataclasses.replace(log, channels={**log.channels, "q3": 0.1 + 0.03 * (log.channels["q3"] - 0.1)})
    fit = di.identify(scara().described, slow, friction="basic", check="off", delay=0.0)
    assert not [one for one in fit.warnings if "rest velocity" in one]
    assert fit.determined[fit.names.index("Fc3")]


def test_a_slide_that_moves_by_millimetres_moves(log):
    """It is the range of a joint that turns by hundredths of a radian."""
    small = dataclasses.replace(log, channels={**log.channels, "q3": 0.1 + 0.012 * (log.channels["q3"] - 0.1)})
    assert np.ptp(small.channels["q3"]) < 0.005
    found = di.check_logs(scara().described, small)
    assert not [one.message for one in found.diagnostics if "never move" in one.message]
