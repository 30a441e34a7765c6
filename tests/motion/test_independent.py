"""Optimized motions against everything they promise, with nothing of the search and nothing of our equations.

The saved file is read as plain YAML and its series summed here; torque and link positions come from Pinocchio, motor
couplings and friction from the robots' files by hand, distances from plain loops over points.
"""

from __future__ import annotations

import json
import re

import numpy as np
import pinocchio as pin
import pytest
import yaml

import dynident as di
from dynident.cli.command_line import main
from tests.robots import tree_model

SAFETY, FLOOR, RADIUS, CLEARANCE, ACCELERATION = 0.9, -0.3, 0.04, 0.02, 12.0
BOX = np.array([[0.5, 0.4, -0.3], [1.0, 0.8, 0.3]])
COUPLED = {"sr400": ("joint6", "joint5")}  # motor 6 turns with joints 5 and 6 together
ALWAYS = 0.75  # share of poses in which a pair of links touches that cannot be asked to keep apart
QUICK = ["--starts", "1", "--kicks", "0", "--duration", "6"]
FULL = ("ur10e", "panda", "sr400", "puma560")
ROBOTS = [pytest.param((name, QUICK), id=name) for name in ("ur10e", "sr400")]
ROBOTS += [pytest.param((name, []), marks=pytest.mark.full, id=f"{name} in full") for name in FULL]


@pytest.fixture(scope="module", params=ROBOTS)
def made(request, tmp_path_factory):
    """Robot, the file as plain data, the answer of the command, and the files' folder."""
    name, effort = request.param
    folder = tmp_path_factory.mktemp("motion")
    words = ["excite", name, "-o", folder / "m.yaml", "--csv", folder / "m.csv", "--rate", "1000", "--json"]
    words += ["--safety", SAFETY, "--floor", FLOOR, "--radius", RADIUS, "--acceleration", ACCELERATION]
    words += ["--box", ",".join(str(x) for x in BOX.ravel()), "--report", folder / "m.html"]
    if name != "sr400":  # whose parallelogram has bars side by side
        words += ["--clearance", CLEARANCE]
    with pytest.MonkeyPatch.context() as patch:
        said: list[str] = []
        patch.setattr("builtins.print", lambda *texts, **_: said.append(str(texts[0])))
        assert main([str(word) for word in (*words, *effort)]) == 0
    return di.load_robot(name), yaml.safe_load((folder / "m.yaml").read_text()), json.loads(said[-1]), folder


def sampled(data, t):
    """The series of the file, summed as the formula says."""
    motion = data["motion"]
    q = np.tile(np.array(motion["offset"], dtype=float), (len(t), 1))
    dq, ddq = np.zeros_like(q), np.zeros_like(q)
    for h, (a, b) in enumerate(zip(motion["sine"], motion["cosine"], strict=True), start=1):
        w = 2.0 * np.pi * h * motion["frequency"]
        s, c = np.sin(w * t)[:, None], np.cos(w * t)[:, None]
        a, b = np.array(a), np.array(b)
        q += a * s + b * c
        dq += w * (a * c - b * s)
        ddq -= w * w * (a * s + b * c)
    return q, dq, ddq


@pytest.fixture(scope="module")
def states(made):
    _, data, _, _ = made
    t = np.arange(0.0, data["duration"] + 5e-4, 1e-3)
    return t, *sampled(data, t)


def test_joint_limits_at_1_khz(made, states):
    robot, data, _, _ = made
    _, q, dq, ddq = states
    assert data["motion"]["joints"] == list(robot.joint_names)
    for i, name in enumerate(robot.joint_names):
        limits = next(joint.limits for joint in robot.joints if joint.name == name)
        middle, half = (limits.lower + limits.upper) / 2, (limits.upper - limits.lower) / 2
        assert np.abs(q[:, i] - middle).max() <= SAFETY * half
        assert np.abs(dq[:, i]).max() <= SAFETY * limits.velocity
    assert np.abs(ddq).max() <= SAFETY * ACCELERATION
    assert np.abs(dq).max(0).min() > 0.3  # every joint really moves


def test_rest_at_both_ends_and_derivatives(made, states):
    t, q, dq, ddq = states
    assert np.abs(dq[[0, -1]]).max() < 1e-9
    assert np.abs(ddq[[0, -1]]).max() < 1e-9
    h = t[1] - t[0]
    third = np.abs(np.gradient(ddq, h, axis=0)).max()
    assert np.abs((q[2:] - q[:-2]) / (2 * h) - dq[1:-1]).max() < h * h * third
    assert np.abs((dq[2:] - dq[:-2]) / (2 * h) - ddq[1:-1]).max() < h * third


def test_the_table_is_the_series(made, states):
    _, _, _, folder = made
    header, *rows = (folder / "m.csv").read_text().splitlines()
    table = np.array([[float(x) for x in row.split(",")] for row in rows])
    np.testing.assert_allclose(table, np.column_stack([states[0], *states[1:]]), atol=1e-7)
    assert header.split(",")[0] == "t"
    assert len(header.split(",")) == table.shape[1]


def motor_torque(robot, q, dq, ddq):
    """Links by Pinocchio, loops by virtual work on the file's relations, drives and friction by hand."""
    model = tree_model(robot)
    data = model.createData()
    tree = [x @ robot.follow.T for x in (q, dq, ddq)]
    tree[0] = tree[0] + robot.follow_offset
    tau = np.array([pin.rnea(model, data, *state) for state in zip(*tree, strict=True)]) @ robot.follow
    names, values = list(robot.joint_names), robot.value_set()
    dqm, ddqm = dq.copy(), ddq.copy()
    labels = [joint.variable[1:] for joint in robot.joints if joint.name in names]
    if robot.name in COUPLED:
        last, before = (names.index(name) for name in COUPLED[robot.name])
        dqm[:, last], ddqm[:, last] = dq[:, last] + dq[:, before], ddq[:, last] + ddq[:, before]
        tau[:, before] -= tau[:, last]
        own = values["Fv6"] * dq[:, last] + values["Fc6"] * np.sign(dq[:, last])
        tau[:, before] += own
        tau[:, last] -= own
        for symbol, of in (("Fv", lambda x: x), ("Fc", np.sign)):
            tau[:, last] += values[f"{symbol}m6"] * of(dqm[:, last])
    for i, label in enumerate(labels):
        tau[:, i] += values.get(f"Ia{label}", 0.0) * ddqm[:, i]
        if robot.name not in COUPLED or i != last:
            tau[:, i] += values.get(f"Fv{label}", 0.0) * dqm[:, i] + values.get(f"Fc{label}", 0.0) * np.sign(dqm[:, i])
            tau[:, i] += values.get(f"Fo{label}", 0.0)
    return tau


def test_torque_by_pinocchio(made, states):
    robot, _, answer, _ = made
    _, q, dq, ddq = states
    tau = motor_torque(robot, q, dq, ddq)
    efforts = [next(joint.limits.effort for joint in robot.joints if joint.name == name) for name in robot.joint_names]
    used = np.abs(tau).max(0) / (SAFETY * np.array(efforts))
    assert used.max() <= 1.0
    assert 1.0 - used.max() == pytest.approx(answer["slack"]["torque"], abs=1e-3)


class Body:
    """Links as segments between the joints' origins, by Pinocchio's kinematics."""

    def __init__(self, robot):
        self.robot, self.model = robot, tree_model(robot)
        self.data = self.model.createData()
        parents = [joint.parent for joint in robot.joints]
        self.parents = parents
        self.segments = [(parents[i], i) for i in range(len(parents))]  # owned by the parent, base is -1
        last = [i for i in range(len(parents)) if i not in parents]
        tool = () if robot.tool is None else (robot.tool[0],)
        self.segments += [(i, "tool" if i in tool else "end") for i in sorted({*last, *tool})]

    def at(self, q):
        """(n_segments, 2, 3) for one pose."""
        robot = self.robot
        pin.forwardKinematics(self.model, self.data, robot.follow @ q + robot.follow_offset)

        def origin(i):
            return np.zeros(3) if i < 0 else self.data.oMi[i + 1].translation

        result = []
        for own, end in self.segments:
            if isinstance(end, int):
                far = origin(end)
            else:
                after = robot.joints[own].after
                frame = self.data.oMi[own + 1] * pin.SE3(after.rotation, after.translation)
                far = frame.act(robot.tool[1].translation if end == "tool" else np.zeros(3))
            result.append((origin(own), far))
        return np.array(result)

    def near(self, a, b):
        own, other = self.segments[a][0], self.segments[b][0]
        return own == other or (own >= 0 and self.parents[own] == other) or (other >= 0 and self.parents[other] == own)


def spread(segments, count=25):
    """Points along segments, (..., count, 3)."""
    s = np.linspace(0.0, 1.0, count)[:, None]
    return segments[..., None, 0, :] * (1.0 - s) + segments[..., None, 1, :] * s


def test_links_keep_out_of_floor_and_box(made, states):
    robot, _, answer, _ = made
    body = Body(robot)
    poses = np.array([body.at(q) for q in states[1][::5]])  # 200 Hz is less than 6 mm between poses
    moving = [i for i, (own, _) in enumerate(body.segments) if own >= 0]
    points = spread(poses[:, moving])
    stirred = np.ptp(points, axis=0).max(-1) > 1e-6
    heights = np.where(stirred, points[..., 2], np.inf)
    beyond = np.maximum(np.maximum(BOX[0] - points, points - BOX[1]), 0.0)
    distance = np.linalg.norm(beyond, axis=-1)
    assert heights.min() - FLOOR >= RADIUS - 1e-9
    assert distance.min() >= RADIUS - 1e-9
    assert answer["slack"]["keep-out"] >= 0.0


def test_links_keep_clear_of_each_other(made, states):
    robot, _, answer, _ = made
    if "clearance" not in answer["slack"]:
        pytest.skip(f"{robot.name} was not asked for clearance")
    body = Body(robot)
    ranges = np.array(
        [(j.limits.lower, j.limits.upper) for n in robot.joint_names for j in robot.joints if j.name == n]
    )
    rng = np.random.default_rng(99)
    anywhere = np.array([body.at(rng.uniform(ranges[:, 0], ranges[:, 1])) for _ in range(200)])
    along = np.array([body.at(q) for q in states[1][::20]])
    checked = 0
    for a in range(len(body.segments)):
        for b in range(a + 1, len(body.segments)):
            if body.near(a, b):
                continue
            touching = np.mean([gap(pose[a], pose[b]) < 2 * RADIUS + CLEARANCE for pose in anywhere])
            if touching < ALWAYS:
                checked += 1
                assert min(gap(pose[a], pose[b]) for pose in along) >= 2 * RADIUS + CLEARANCE - 1e-9
    assert checked >= 3


def gap(first, second):
    """Least distance of points along two segments; a little more than that of the segments."""
    p, r = spread(first), spread(second)
    return np.linalg.norm(p[:, None] - r[None], axis=-1).min()


def test_the_promise_is_reported(made):
    robot, _, answer, folder = made
    assert answer["kind"] == "determinant"
    assert 1.0 < answer["condition"] < 200.0
    assert min(answer["slack"].values()) >= 0.0
    assert len(answer["deviations"]) == di.base_parameters(robot, "rigid,Ia,Fv,Fc(0.02),Fo").n
    assert min(answer["deviations"].values()) > 0.0
    page = (folder / "m.html").read_text()
    assert page.count("<svg") >= 2 * len(robot.joint_names) + 4
    assert not re.search(r"\b(nan|inf|None)\b", page)
