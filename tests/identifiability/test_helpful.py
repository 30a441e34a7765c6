"""Which motion shows a combination: the answers that a pendulum and an arm must give."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.identifiability.excitation_quality import helpful_motions


def ways(robot, terms, **direction):
    base = di.base_parameters(robot, terms)
    vector = np.zeros(base.n)
    for name, value in direction.items():
        vector[base.names.index(name)] = value
    return helpful_motions(base, vector, np.ones(len(robot.joint_names)))


@pytest.fixture(scope="module")
def pendulum():
    return di.load_robot("pendulum-1")


def test_inertia_is_shown_by_acceleration(pendulum):
    (one,) = ways(pendulum, "rigid,Fv,Fc", ZZ1=1.0)
    assert (one.joint, one.way, one.share) == (pendulum.joint_names[0], "accelerated", 1.0)


def test_a_first_moment_is_shown_by_poses(pendulum):
    (one,) = ways(pendulum, "rigid,Fv,Fc", MX1=1.0)
    assert one.way == "held in other poses"


def test_viscous_friction_is_shown_by_velocity(pendulum):
    (one,) = ways(pendulum, "rigid,Fv,Fc", Fv1=1.0)
    assert one.way == "turned steadily"


def test_a_smoothed_law_against_a_sharp_one_is_shown_by_slow_motion(pendulum):
    found = ways(pendulum, "rigid,Fc(0.02),Fo", Fc1=1.0)
    assert {"turned steadily", "turned slowly"} >= {one.way for one in found}


def test_the_joint_that_moves_the_link_is_named():
    robot = di.load_robot("ur10e")
    base = di.base_parameters(robot, "rigid,Ia,Fv")
    vector = np.zeros(base.n)
    vector[base.names.index("Ia5" if "Ia5" in base.names else "Fv5")] = 1.0
    found = helpful_motions(base, vector, np.ones(6))
    assert found[0].joint == robot.joint_names[4]


def test_nothing_shows_what_has_no_effect(pendulum):
    base = di.base_parameters(pendulum, "rigid,Fv")
    assert helpful_motions(base, np.zeros(base.n), np.ones(1)) == ()
