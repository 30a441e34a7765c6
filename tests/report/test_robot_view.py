"""The robot in space: every bundled one can be drawn, and ellipsoids have the inertia of their links."""

from __future__ import annotations

import re

import numpy as np
import pytest

import dynident as di
from dynident.report.robot_view import View, bodies, half_axes, pose, robot_view
from dynident.robot.parameters import from_classical


@pytest.mark.parametrize("name", di.bundled_names())
def test_every_bundled_robot_is_drawn_within_the_frame(name):
    robot = di.load_robot(name)
    values = "plant" if "plant" in robot.values else None
    shown = bodies(robot, robot.link_parameters(values), [True] * len(robot.joints), pose(robot))
    drawn = robot_view(robot, shown, "key")
    places = [[int(x) for x in d] for d in re.findall(r'd="M(-?\d+) (-?\d+)L(-?\d+) (-?\d+)" class="link"', drawn)]
    assert len(places) >= len(robot.joints) - 1
    corners = np.array(places).reshape(-1, 2)
    assert (corners >= 0).all()
    assert (corners <= [960, 640]).all()
    assert drawn.count("<ellipse") == len(shown)
    for joint in robot.joints:
        assert f"{joint.number} {joint.name}" in drawn


def test_the_pose_respects_limits():
    robot = di.load_robot("panda")
    limits = [robot.joints[i].limits for i in robot.active]
    assert all(one.lower <= q <= one.upper for one, q in zip(limits, pose(robot), strict=True))


def test_half_axes_give_the_inertia_back():
    a, b, c, mass, center = 0.3, 0.2, 0.1, 5.0, np.array([0.1, -0.2, 0.05])
    inertia = mass / 5.0 * np.diag([b**2 + c**2, a**2 + c**2, a**2 + b**2])
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    chi = from_classical(mass, center, turn @ inertia @ turn.T)
    found, axes = half_axes(chi)
    np.testing.assert_allclose(found, center, atol=1e-12)
    np.testing.assert_allclose(np.sort(np.linalg.norm(axes, axis=0)), [c, b, a], atol=1e-9)
    np.testing.assert_allclose(
        np.abs(axes[:, np.argmax(np.linalg.norm(axes, axis=0))]), np.abs(a * turn[:, 0]), atol=1e-9
    )


def test_what_is_no_body_is_not_drawn():
    assert half_axes(np.zeros(10)) is None
    assert half_axes(from_classical(1.0, np.zeros(3), np.diag([1.0, 0.1, 0.1]))) is None  # breaks the triangle rule


def test_an_outline_is_the_shadow_of_the_ellipsoid():
    view = View(np.zeros(3), 100.0)
    axes = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0] * [0.5, 0.3, 0.1]
    large, small, turn = view.outline(axes)
    points = np.random.default_rng(2).normal(size=(20000, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    flat = view.place(points @ axes.T) - view.place(np.zeros(3))
    along = np.array([np.cos(np.radians(turn)), np.sin(np.radians(turn))])
    assert np.abs(flat @ along).max() == pytest.approx(large, rel=5e-3)
    assert np.abs(flat @ [-along[1], along[0]]).max() == pytest.approx(small, rel=5e-3)
