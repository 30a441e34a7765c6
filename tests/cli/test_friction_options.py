"""What `friction` can be, and what it cannot: errors that name the term, the joint and what to do."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import dynident as di
from dynident.dynamics.terms import resolve_terms
from dynident.errors import DynidentError, InputError, UnknownNameError
from dynident.pipeline.friction import moving_elements
from dynident.signals import observe
from tests.signals.made import Fourier, exact_log, make_log, stamps

T = stamps(12.0, 100.0)


@pytest.fixture(scope="module")
def robot():
    return di.load_robot("puma560").lock(q4=0, q5=0, q6=0)


@pytest.fixture(scope="module")
def log(robot):
    return exact_log(robot, Fourier.random(3, 1), T)


def keys(fit):
    return [term.key for term in fit.base.terms[5:]]


class TestWhatItCanBe:
    def test_list_text_and_terms(self, robot, log):
        for friction in (
            "stop(0.001)@1,quadratic",
            ["stop(0.001)@1", "quadratic"],
            resolve_terms("stop(0.001)@1,quadratic"),
        ):
            assert keys(di.identify(robot, log, friction=friction)) == ["stop(0.001)@1", "quadratic"]

    def test_nothing_beside_the_basic_terms(self, robot, log):
        for friction in ("basic", [], ()):
            assert keys(di.identify(robot, log, friction=friction)) == []

    def test_basic_terms_named_once_more(self, robot, log):
        assert keys(di.identify(robot, log, friction="Fv,Fc(0.02),quadratic")) == ["quadratic"]

    def test_in_terms(self, robot, log):
        fit = di.identify(robot, log, terms="rigid,Ia,Fv,Fc(0.02),Fo,quadratic@2")
        assert keys(fit) == ["quadratic@2"]


class TestWhatItCannotBe:
    @pytest.mark.parametrize(
        ("friction", "message"),
        [
            ("nonsense", r"unknown friction 'nonsense' \(valid: auto, basic, generic, full, .*stop"),
            ("autos", "unknown friction 'autos'; did you mean 'auto'"),
            ("Load", "unknown friction 'Load'; did you mean 'load'"),
            ("", "unknown friction ''"),
            ("auto,load", "auto is a recipe and stands alone"),
            (0, "terms is 0; expected names"),
            (3.5, "terms is 3.5; expected names"),
            ("stop(0)", r"a radius \[rad\] of term stop is 0; expected a positive number"),
            ("stop(-0.001)", r"a radius \[rad\] of term stop is -0.001; expected a positive number"),
            ("stop(nan)", r"a radius \[rad\] of term stop is nan; expected a positive number"),
            ("stop", r"term stop needs a radius \[rad\], as in stop\(0.0003,0.003\)"),
            ("load,load", "term load is given twice"),
            ("stop(0.001)@1,stop(0.002)@2", "term stop is given twice"),
            ("load@7", "unknown element of term load '7'"),
            ("zero@9", "unknown joint of term zero '9'"),
            ("zero@1", "no torque depends on the position of joint 1"),
            ("Fc(0.5)", r"Fc\(0.5\) is a basic term and there as Fc\(0.02\); change it in terms"),
            ("ripple(1000)", r"1000 waves per turn pass .* times as fast as the band of the fit"),
        ],
    )
    def test_is_reported(self, robot, log, friction, message):
        with pytest.raises(DynidentError, match=message):
            di.identify(robot, log, friction=friction)

    def test_ripple_depends_on_the_rate_of_the_log(self, robot):
        """What sampling supports: the same waves are fine on a log of ten times the rate, with the band for them."""
        motion = Fourier.random(3, 1)
        slow, fast = (exact_log(robot, motion, stamps(12.0, rate), source=f"{rate}") for rate in (20.0, 400.0))
        with pytest.raises(InputError, match=r"term ripple\(100\): at the velocities of element 1, 100 waves per turn"):
            di.identify(robot, slow, friction="ripple(100)")
        assert keys(di.identify(robot, fast, friction="ripple(100)@1", band=60.0)) == ["ripple(100)@1"]

    def test_tilt_without_gravity(self, robot):
        floating = dataclasses.replace(robot, gravity=np.zeros(3))
        log = exact_log(floating, Fourier.random(3, 1), T)
        with pytest.raises(InputError, match="term tilt: the robot has no gravity that could be tilted; leave it out"):
            di.identify(floating, log, friction="tilt")
        assert "tilt" not in keys(di.identify(floating, log, friction="full"))


class TestJointsThatNeverMove:
    def still(self, robot, joint):
        """A log in which one joint stands; its torque is noise, which a check would refuse."""
        q = Fourier.random(len(robot.joint_names), 1)(T)[0]
        q[:, joint] = 0.3
        return make_log(robot, T, q, np.random.default_rng(0).normal(size=q.shape))

    def test_a_term_on_it_is_refused(self, robot):
        with pytest.raises(
            InputError, match=r"term stop\(0.001\)@2: element 2 never moves in these logs; leave it out"
        ):
            di.identify(robot, self.still(robot, 1), friction="stop(0.001)@2", check="off")

    def test_a_term_on_all_is_for_those_that_move(self, robot):
        assert keys(di.identify(robot, self.still(robot, 1), friction="stop(0.001),load", check="off")) == [
            "stop(0.001)@1|3",
            "load@1|3",
        ]

    def test_motors_that_turn_with_two_joints(self):
        """Motor 6 of the TX40 turns with joint 5 while joint 6 stands, and the other way round."""
        robot = di.load_robot("tx40")
        found = [moving_elements(robot, [observe(self.still(robot, joint), robot)]) for joint in (4, 5)]
        assert found == [("1", "2", "3", "4", "6", "m6"), ("1", "2", "3", "4", "5", "m6")]

    def test_recipes_with_joint_zeros_on_coupled_motors(self):
        robot = di.load_robot("tx40")
        terms = keys(di.identify(robot, self.still(robot, 5), friction="full", check="off"))
        assert "zero" in terms
        assert "load@1|2|3|4|5|m6" in terms

    def test_nonsense_element_of_a_motor(self):
        robot = di.load_robot("tx40")
        with pytest.raises(UnknownNameError, match="unknown element of term load 'm5'"):
            di.identify(robot, exact_log(robot, Fourier.random(6, 1), T), friction="load@m5")
