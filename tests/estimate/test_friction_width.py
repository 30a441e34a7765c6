from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.dynamics.terms import Coulomb
from dynident.estimate.friction_width import WIDTH_SHARES, trial_columns
from tests.signals.made import Fourier, exact_torque, make_log, stamps


@pytest.fixture(scope="module")
def pendulum():
    return di.load_robot("pendulum-2").with_values(
        "mine",
        {"ZZ1": 1.3, "MX1": 1.5, "ZZ2": 0.33, "MX2": 0.5, "MY2": 0.1, "Fv1": 0.4, "Fv2": 0.2, "Fc1": 0.5, "Fc2": 0.3},
    )


def identified(robot, width, **options):
    t, motion = stamps(60.0, 200.0), Fourier.random(2, 1)
    tau = exact_torque(robot, motion, t, f"rigid,Ia,Fv,Fc({width}),Fo")
    noisy = tau + 0.005 * np.random.default_rng(0).normal(size=tau.shape)
    return di.identify(robot, make_log(robot, t, motion(t)[0], noisy), check="off", delay=0.0, **options)


def widths_of(fit):
    return next(term.widths for term in fit.base.terms if isinstance(term, Coulomb))


def test_columns_are_tried_in_shares_of_the_velocity():
    tried = trial_columns({"1": 2.0, "2": 0.01})
    assert len(tried) == 2 * (1 + len(WIDTH_SHARES))
    assert [one.width for one in tried if one.element == "2"][1:] == [0.01 * share for share in WIDTH_SHARES]


@pytest.mark.parametrize("width", [0.07, 0.3])
def test_a_width_between_those_tried_is_found(pendulum, width):
    found = widths_of(identified(pendulum, width, friction="basic"))
    assert found["1"] == pytest.approx(width, rel=0.15)
    assert found["2"] == pytest.approx(width, rel=0.15)


def test_values_come_back_whatever_the_width(pendulum):
    for width in (0.0, 0.07, 0.3):
        fit = identified(pendulum, width)
        off = (fit.beta - fit.base.base_values()) / fit.std
        assert np.abs(off).max() < 4.0


def test_a_width_that_was_given_is_kept(pendulum):
    fit = identified(pendulum, 0.07, terms="rigid,Ia,Fv,Fc(0.05),Fo")
    assert "Fc(0.05)" in [term.key for term in fit.base.terms]
