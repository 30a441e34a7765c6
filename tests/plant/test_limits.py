"""Limits that a robot file states without meaning them bind no simulated run and no experiment."""

from __future__ import annotations

import numpy as np

import dynident as di
from dynident.experiments.bench import Bounds
from tests.robot.test_placeholders import urdf

MEANT, NOT_MEANT = (
    'lower="-0.2" upper="0.2" velocity="2" effort="20"',
    'lower="0" upper="0" velocity="0" effort="20"',
)


class Swing:
    """Both joints to one side and back, from rest at zero, up to half a radian."""

    duration = 2.0

    def sample(self, t):
        w = np.pi * np.asarray(t)[:, None] * np.ones(2)
        return 0.25 * (1.0 - np.cos(w)), 0.25 * np.pi * np.sin(w), 0.25 * np.pi**2 * np.cos(w)


def test_a_range_of_nothing_binds_no_motion(tmp_path):
    robot = urdf(tmp_path / "made.urdf", NOT_MEANT, NOT_MEANT)
    assert di.simulate(robot, Swing()).warnings == ()
    assert Bounds.of(robot).broken(np.ones(2), np.ones(2)) is None


def test_limits_that_are_meant_do(tmp_path):
    robot = urdf(tmp_path / "made.urdf", MEANT, MEANT)
    warnings = di.simulate(robot, Swing()).warnings
    assert [text for text in warnings if "leaves its position limits by 0.3 rad" in text] == list(warnings)
    assert len(warnings) == 2
    assert Bounds.of(robot).broken(np.ones(2), np.zeros(2)) == ("bound", 0)
