"""Friction as the user says: recipes, lists, and where torque was measured if nobody knows."""

from __future__ import annotations

import dataclasses

import pytest

from dynident.estimate.candidates import GROUPS
from dynident.pipeline.friction import candidate_groups, select_friction
from tests.pipeline.made import STOP, made, training


def keys(choice):
    return {term.key for term in choice.terms}


@pytest.fixture(scope="module")
def unsaid(robot):
    """The same robot, of which nobody said where its torque is measured."""
    return dataclasses.replace(robot, drive=dataclasses.replace(robot.drive, source=None))


def test_parameters_are_those_of_basic_friction_unless_somebody_wants_more(robot):
    data = training(robot, made(robot, STOP))
    for friction in ("auto", "basic"):
        choice = select_friction(friction, data)
        assert choice.terms == ()
        assert choice.to_record().side == "motor"
    assert data.rows.n_passes == 0


def test_full_has_every_group(robot):
    choice = select_friction("full", training(robot, made(robot, {})))
    names = {key.partition("(")[0] for key in keys(choice)}
    assert names == {group.name for group in GROUPS}
    assert "jerk" not in {group.name for group in candidate_groups(training(robot, made(robot, {})).basic)}


def test_generic_friction_of_a_known_side(robot):
    choice = select_friction("generic", training(robot, made(robot, {})))
    assert choice.side == "motor"
    assert keys(choice) == {"stop(0.0003,0.003)", "stribeck(0.2,0.5)", "sign(0.2)", "load"}


def test_generic_friction_of_an_unknown_side_is_decided_on_left_out_folds(unsaid):
    """Friction that grows with the load is in the recipe of the motor alone."""
    loaded = {"load_2": 0.3, "load_3": 0.3}
    motor = select_friction("generic", training(unsaid, made(unsaid, loaded)))
    assert motor.side == "motor"
    assert "load" in keys(motor)
    assert motor.errors["motor"] < motor.errors["sensor"]
    assert motor.folds
    sensor = select_friction("generic", training(unsaid, made(unsaid, {})))
    assert sensor.side == "sensor"
    assert keys(sensor) == {"stop(0.003)", "stribeck(0.2)", "tilt"}
    assert "torque_source" in sensor.reason
