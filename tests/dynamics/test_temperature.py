"""Friction that changes with temperature: columns, keys, and what is missing."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.dynamics.linearization import TermCourse
from dynident.dynamics.terms import resolve_terms
from dynident.dynamics.terms.temperature import TemperatureFriction
from dynident.dynamics.terms.term import MotionSamples, all_places
from dynident.errors import InputError, UnknownNameError


def samples(n, n_joints, temperature=True):
    rng = np.random.default_rng(1)
    q, dq, ddq = rng.normal(size=(3, n, n_joints))
    warm = rng.uniform(20.0, 45.0, (n, n_joints)) if temperature else None
    return MotionSamples(q, dq, ddq, np.zeros((n, 0)), True, temperature=warm)


def test_columns_are_velocity_and_sign_times_what_temperature_does():
    robot, motion = di.load_robot("puma560"), samples(50, 6)
    term = TemperatureFriction.about({"2": (30.0, 0.03), "5": (25.0, 0.0)})
    assert [column.name for column in term.columns(robot)] == ["FvT_2", "FcT_2", "FvT_5", "FcT_5"]
    assert [column.unit for column in term.columns(robot)] == ["N·m·s/rad/K", "N·m/K"] * 2
    above = motion.temperature - np.array([0, 30.0, 0, 0, 25.0, 0])
    expected = {
        (1, 0): motion.dq[:, 1] * (1.0 - np.exp(-0.03 * above[:, 1])) / 0.03,
        (1, 1): np.tanh(motion.dq[:, 1] / 0.02) * above[:, 1],
        (4, 2): motion.dq[:, 4] * above[:, 4],
        (4, 3): np.tanh(motion.dq[:, 4] / 0.02) * above[:, 4],
    }
    lines = TermCourse(robot, [term]).columns_first(motion)
    places = all_places(robot, [term])
    assert set(places) == set(expected)
    for place, line in zip(places, lines, strict=True):
        np.testing.assert_allclose(line, expected[place], rtol=1e-12)


def test_a_motor_of_a_coupled_wrist_has_the_temperature_of_its_joint():
    robot, motion = di.load_robot("tx40"), samples(20, 6)
    term = TemperatureFriction.about({"m6": (30.0, 0.0)})
    ((element, *_),) = term.elements(robot)
    lines = dict(zip(all_places(robot, [term]), TermCourse(robot, [term]).columns_first(motion), strict=True))
    velocity = motion.dq @ (element.velocity @ robot.coupling)
    for row in np.flatnonzero(element.torque):
        expected = element.torque[row] * velocity * (motion.temperature[:, 5] - 30.0)
        np.testing.assert_allclose(lines[int(row), 0], expected, rtol=1e-12)


def test_friction_is_that_at_the_reference_where_no_temperature_is_known():
    robot = di.load_robot("puma560")
    term = TemperatureFriction.about({"1": (30.0, 0.02)})
    assert not TermCourse(robot, [term]).columns_first(samples(5, 6, temperature=False)).any()


def test_a_key_says_everything_and_what_is_lacking_is_named():
    robot = di.load_robot("puma560")
    term = TemperatureFriction.about({"1": (30.5, 0.021), "4": (40.0, 0.0)})
    assert term.key == "temperature(30.5,0.021,40,0)@1|4"
    assert resolve_terms(term.key) == (term,)
    assert term.restricted_to(["4"]).key == "temperature(40,0)@4"
    with pytest.raises(InputError, match="identify adds it by itself where logs have temp1"):
        resolve_terms("temperature")
    with pytest.raises(UnknownNameError, match="element of term temperature"):
        TemperatureFriction.about({"9": (30.0, 0.0)}).columns(robot)
