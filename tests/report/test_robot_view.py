"""The robot in space: every bundled one can be drawn, and ellipsoids have the inertia of their links."""

from __future__ import annotations

import re

import numpy as np
import pytest

import dynident as di
from dynident.report.space_view import View, bodies, half_axes, pose, robot_view
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


def test_a_slide_is_drawn_as_far_as_it_is_out():
    robot = di.load_robot("cylindrical")
    drawn = robot_view(robot, [], "key")
    ends = [np.array([float(x) for x in d.split()]) for d in re.findall(r'class="link" data-p="([^"]+)"', drawn)]
    longest = sorted(float(np.linalg.norm(one[:3] - one[3:])) for one in ends)[-2:]
    out = [q for q, i in zip(pose(robot), robot.moving, strict=True) if robot.joints[i].kind == "prismatic"]
    np.testing.assert_allclose(longest, sorted(out), atol=1e-3)


def test_a_body_larger_than_the_robot_is_not_cut():
    robot = di.load_robot("pendulum-1")
    link = from_classical(2.0, np.array([0.5, 0.0, 0.0]), np.diag([0.01, 0.2, 0.2]))
    (body,) = bodies(robot, link[None], [True], pose(robot))
    drawn = robot_view(robot, [body], "key")
    x, y = (float(v) for v in re.search(r"translate\(([-\d.]+) ([-\d.]+)\)", drawn).groups())
    reach = float(re.search(r'rx="([\d.]+)"', drawn)[1])
    assert 0 <= y - reach < y + reach <= 640
    assert 0 <= x - reach < x + reach <= 960


def test_the_name_of_an_axis_keeps_clear_of_the_numbers_of_joints():
    drawn = robot_view(di.load_robot("ur10e"), [], "key")
    words = [(int(x), int(y), t) for x, y, t in re.findall(r'<text x="(-?\d+)" y="(-?\d+)"[^>]*>([^<]+)<', drawn)]
    (zx, zy, _) = next(one for one in words if one[2] == "z")
    assert all(abs(zx - x) > 20 or abs(zy - y) > 20 for x, y, t in words if t != "z")


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
