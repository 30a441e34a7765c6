"""Limits and distances: their derivatives, the geometry behind them, and the search that stays inside."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
import pytest

import dynident as di
from dynident.dynamics.terms import resolve_terms
from dynident.errors import InputError, UnknownNameError
from dynident.motion.demands import Demands
from dynident.motion.geometry import CapsuleDistances, LinkPoints, closest, link_capsules, segment_to_box, to_box
from dynident.motion.interior_point import minimize
from dynident.motion.limits import gather_limits
from dynident.motion.options import ExcitationOptions
from dynident.motion.space import Space
from dynident.robot.model import Limits
from tests.robots import tree_model

pytestmark = pytest.mark.usefixtures("without_compiling")
BOX = np.array([[[0.4, -0.3, 0.0], [0.9, 0.3, 0.4]]])


def demands_of(name, robot=None, start=None):
    robot = robot or di.load_robot(name)
    space = Space(robot.joint_names, 4.0, 0.25, 4, start)
    terms = resolve_terms("rigid,Ia,Fv,Fc(0.3),Fo")
    torque = (terms, terms, di.parameters(robot, terms))
    options = ExcitationOptions(floor=-0.2, boxes=tuple(BOX), clearance=0.02, radius={"default": 0.04})
    return Demands(robot, gather_limits(robot, acceleration=10.0), torque, space, options), space


def passive_limits(name):
    robot = di.load_robot(name)
    joints = [
        dataclasses.replace(j, limits=Limits(-3.0, 3.0, 4.0)) if i not in robot.active else j
        for i, j in enumerate(robot.joints)
    ]
    return dataclasses.replace(robot, joints=tuple(joints))


@pytest.mark.parametrize("name", ["sr400", "tx40", "cylindrical"])
@pytest.mark.parametrize("fixed", [False, True])
def test_every_limit_has_its_derivative(name, fixed):
    robot = passive_limits(name)
    start = np.linspace(0.1, 0.4, len(robot.moving)) if fixed else None
    demands, space = demands_of(name, robot, start)
    waves = space.waves(np.linspace(0.0, 4.0, 23))
    rng = np.random.default_rng(0)
    x, way, h = 0.2 * rng.normal(size=space.size), rng.normal(size=space.size), 1e-6
    seen = set()
    for limit in demands.on(waves):
        limit.evaluate(space.states(x, waves))
        limit.linearize()
        difference = limit.evaluate(space.states(x + h * way, waves)) - limit.evaluate(space.states(x - h * way, waves))
        change = limit.times(way)
        np.testing.assert_allclose(change, difference.ravel() / (2 * h), atol=2e-6 * max(1.0, np.abs(change).max()))
        v = rng.random(len(change))
        assert limit.pull(v) @ way == pytest.approx(v @ change)
        assert way @ limit.gram(v) @ way == pytest.approx(np.sum(v * change**2))
        assert len(limit.labels) == len(limit.sizes) == len(change) / 23
        seen.add(limit.kind)
    assert seen == {"position", "velocity", "acceleration", "torque", "keep-out", "clearance"}


@pytest.mark.parametrize("name", ["sr400", "cylindrical", "panda"])
def test_links_are_where_pinocchio_has_them(name):
    robot = di.load_robot(name)
    rng = np.random.default_rng(1)
    q = rng.normal(size=(3, len(robot.moving)))
    places = rng.normal(size=(len(robot.joints), 3))
    found = LinkPoints(robot, range(len(robot.joints)), places).at(q)
    model = tree_model(robot)
    data = model.createData()
    for k, tree in enumerate(q @ robot.follow.T + robot.follow_offset):
        pin.forwardKinematics(model, data, tree)
        for i, joint in enumerate(robot.joints):
            frame = data.oMi[model.getJointId(joint.name)] * pin.SE3(joint.after.rotation, joint.after.translation)
            np.testing.assert_allclose(found[i, k], frame.act(places[i]), atol=1e-12)


def test_closest_points_of_segments():
    rng = np.random.default_rng(2)
    ends = rng.normal(size=(4, 60, 3))
    ends[1, :5] = ends[0, :5]  # points instead of segments
    ends[3, 3:8] = ends[2, 3:8]
    ends[3, 10:13] = ends[2, 10:13] + 2.0 * (ends[1, 10:13] - ends[0, 10:13])  # parallel
    s, t = closest(*ends)
    found = np.linalg.norm(
        ends[0] + s[:, None] * (ends[1] - ends[0]) - ends[2] - t[:, None] * (ends[3] - ends[2]), axis=1
    )
    grid = np.linspace(0.0, 1.0, 81)
    a = ends[0][:, None] + grid[:, None] * (ends[1] - ends[0])[:, None]
    b = ends[2][:, None] + grid[:, None] * (ends[3] - ends[2])[:, None]
    brute = np.linalg.norm(a[:, :, None] - b[:, None, :], axis=-1).min((1, 2))
    assert np.all(found <= brute + 1e-12)
    assert np.all(found >= brute - 0.1)
    assert s.min() >= 0.0
    assert t.max() <= 1.0


def test_distance_to_a_box():
    lower, upper = np.array([0.0, 0.0, 0.0]), np.array([2.0, 1.0, 1.0])
    p = np.array([[3.0, 0.5, 0.5], [3.0, 2.0, 0.5], [1.0, 0.5, 0.9], [-0.5, 0.5, -0.5]])
    distance, direction = to_box(p, lower, upper)
    np.testing.assert_allclose(distance, [1.0, np.sqrt(2.0), -0.1, np.sqrt(0.5)])
    np.testing.assert_allclose(direction[[0, 2]], [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


def test_distance_of_a_segment_to_a_box():
    """Against a thousand points along it: through the box, beside it, across its edges, points; and how it changes."""
    rng = np.random.default_rng(4)
    lower, upper = np.array([-0.3, -0.2, -0.5]), np.array([0.4, 0.2, 0.1])
    a, b = rng.normal(size=(2, 300, 3)) * 0.8
    b[:20] = a[:20]
    share, distance, away = segment_to_box(a, b, lower, upper)
    assert np.sum(distance < 0.0) > 30
    grid = np.linspace(0.0, 1.0, 1001)[:, None]
    for k in range(len(a)):
        along = to_box(a[k] + grid * (b[k] - a[k]), lower, upper)[0]
        step = np.linalg.norm(b[k] - a[k]) / 1000
        assert along.min() - step <= distance[k] <= along.min() + 1e-9
        assert distance[k] == pytest.approx(to_box(a[k] + share[k] * (b[k] - a[k]), lower, upper)[0], abs=1e-8)
        h, ways = 1e-5, rng.normal(size=(2, 3))
        ways[1] = ways[0] if k < 20 else ways[1]  # a point stays a point
        ahead, behind = (
            segment_to_box(a[None, k] + sign * h * ways[0], b[None, k] + sign * h * ways[1], lower, upper)[1][0]
            for sign in (1, -1)
        )
        slope = away[k] @ ((1.0 - share[k]) * ways[0] + share[k] * ways[1])
        assert slope == pytest.approx((ahead - behind) / (2 * h), abs=1e-3)


def test_links_of_a_wrist_are_no_pair():
    robot = di.load_robot("puma560")  # three axes meet: links 4, 5 and 6 begin at one point
    limits = gather_limits(robot)
    poses = limits.lower + (limits.upper - limits.lower) * np.random.default_rng(0).random((100, 6))
    pairs = CapsuleDistances(robot, link_capsules(robot, 0.05), 0.0, poses)
    assert pairs.labels
    assert not any("4 clear of" in label for label in pairs.labels)


def test_missing_limits_are_asked_for_by_name():
    robot = di.load_robot("panda")
    joints = [dataclasses.replace(j, limits=Limits()) if i in (2, 4) else j for i, j in enumerate(robot.joints)]
    bare = dataclasses.replace(robot, joints=tuple(joints))
    with pytest.raises(InputError, match="no position limits are known for joint3, joint5"):
        gather_limits(bare)
    given = {"joint3": {"lower": -1.0, "upper": 1.0}, "q5": {"lower": -2.0, "upper": 2.0}}
    with pytest.raises(InputError, match="no velocity limits are known for joint3, joint5"):
        gather_limits(bare, given)
    found = gather_limits(bare, {name: {**record, "velocity": 1.5} for name, record in given.items()})
    assert found.lower[2] == -1.0
    assert found.upper[4] == 2.0
    assert found.velocity[2] == 1.5
    assert found.effort[2] == np.inf


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"joint9": {}}, "unknown joint 'joint9'"),
        ({"joint1": {"velocty": 1.0}}, "unknown limit of joint1 'velocty'"),
        ({"joint1": {"velocity": "fast"}}, "velocity limit of joint1 is 'fast'"),
        ({"joint1": {"velocity": 0.0}}, "velocity limit of joint1 is 0"),
        ({"joint1": {"lower": 3.0}}, "joint1 cannot move"),
    ],
)
def test_bad_limits_are_named(given, message):
    with pytest.raises((InputError, UnknownNameError), match=message):
        gather_limits(di.load_robot("panda"), given)


class Corner:
    """Maximise x + 2 y inside the unit disc and x < 0.3, where both limits are active."""

    def value(self, x):
        return -float(x[0] + 2.0 * x[1])

    def gradient(self):
        return np.array([-1.0, -2.0])

    def slack(self, x):
        self.x = x
        return np.array([1.0 - x @ x, 0.3 - x[0]])

    def linearize(self):
        self.J = np.array([-2.0 * self.x, [-1.0, 0.0]])

    def times(self, dx):
        return self.J @ dx

    def pull(self, v):
        return v @ self.J

    def gram(self, d):
        return (self.J.T * d) @ self.J


def test_the_interior_point_method_finds_a_corner_and_never_leaves():
    problem, seen = Corner(), []
    found, _, settled = minimize(
        problem, np.array([-0.5, -0.5]), last_barrier=1e-8, tolerance=1e-10, report=lambda x, f: seen.append(x)
    )
    np.testing.assert_allclose(found, [0.3, np.sqrt(1 - 0.09)], atol=1e-5)
    assert all((problem.slack(x) > 0.0).all() for x in seen)
    assert settled
