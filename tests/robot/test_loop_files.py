"""Descriptions of loops that are closed numerically: what is read, and what is refused with which words."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from tests.loops import FOUR_BAR, load

LOOP = "{cut: 4, closes_on: 5, solve: [q2, q3], branch: {q1: 1, q2: -0.5, q3: 1.3}}"
BETWEEN = (
    "{first: {link: 2, position: [coupler, 0, 0]}, second: {link: 3, position: [rocker, 0, 0]},"
    " solve: [q2, rocker], branch: {crank: 1, q2: -0.5, q3: 1.3}}"
)
WITHOUT_CUT = FOUR_BAR.replace("  - {name: pin, antecedent: 2, d: coupler}\n", "").replace(
    "  - {name: end, antecedent: 3, sigma: 2, d: rocker}\n", ""
)

PARALLELOGRAM = FOUR_BAR.replace("rocker: 0.4, ground: 0.45", "rocker: 0.2, ground: 0.5").replace(
    "q1: 1, q2: -0.5, q3: 1.3", "q1: pi/2, q2: -pi/2, q3: pi/2"
)

BAD = {
    "no branch": (", branch: {q1: 1, q2: -0.5, q3: 1.3}", "", ["loops[1] branch", "no position for q2, q3", "q2: 1.2"]),
    "half a branch": (", q3: 1.3", "", ["loops[1] branch", "no position for q3"]),
    "branch without solve": ("solve: [q2, q3], ", "", ["loops[1]", "no joints to solve for", "'solve'"]),
    "nothing to solve for": ("solve: [q2, q3]", "solve: []", ["loops[1] solve", "is []", "a list of passive joints"]),
    "unknown joint": ("solve: [q2, q3]", "solve: [q2, q9]", ["loops[1] solve", "no joint 'q9'"]),
    "a joint twice": ("solve: [q2, q3]", "solve: [q2, q2, q3]", ["loops[1] solve", "already solved for"]),
    "a motor on a solved joint": ("d: crank, mu: 0", "d: crank, mu: 1", ["joint 2", "mu = 1 and a loop is solved"]),
    "unknown key": ("solve:", "solved:", ["loops[1]", "unknown key 'solved'", "mean 'solve'?"]),
    "affine as well": ("loops:", "passive: {q3: q1}\nloops:", ["loops[1] solve", "'q3' already follows", "'passive'"]),
    "a joint that is neither": (
        "solve: [q2, q3], branch: {q1: 1, q2: -0.5,",
        "solve: [q3], branch: {q2: 1,",
        ["joint 2", "is passive", "'solve' of a loop"],
    ),
    "too long": ("coupler: 0.5", "coupler: 5", ["loop 4-5", "does not close near its branch", "a gap of", "q2 ="]),
    "the other branch": ("q2: -0.5, q3: 1.3", "q2: 0.2, q3: 2.0", ["loop 4-5", "leads to q2 = -0.55", "far from"]),
    "not plane": ("{name: coupler, d", "{name: coupler, alpha: 0.1, d", ["loop 4-5", "does not close"]),
    "a number for a pose": ("q1: 1,", "q1: up,", ["loops[1] branch crank", "'up'"]),
    "friction pushes elsewhere": (
        "loops:",
        "elements: [{label: p, velocity: q3, torque: q1}]\nloops:",
        ["element 'p'", "along its own velocity only"],
    ),
    "a gear on a passive joint": ("loops:", "gear_ratios: {q3: 2}\nloops:", ["gear_ratios", "'q3' is passive"]),
}


@pytest.mark.parametrize("name", list(BAD))
def test_bad_loops_are_refused(name, tmp_path):
    old, new, words = BAD[name]
    assert old in FOUR_BAR
    with pytest.raises(di.RobotFileError) as caught:
        load(FOUR_BAR.replace(old, new), tmp_path)
    message = str(caught.value)
    assert message.startswith(str(tmp_path))
    assert "\n" not in message
    for word in words:
        assert word in message


def test_ranks_are_checked(tmp_path):
    with pytest.raises(di.RobotFileError, match="holds q1 fast; name more passive joints under 'solve'"):
        load(PARALLELOGRAM.replace("d: crank, mu: 0", "d: crank").replace("[q2, q3]", "[q3]"), tmp_path)
    with pytest.raises(di.RobotFileError, match=r"does not determine q\d at its branch"):
        load(PARALLELOGRAM.replace("q1: pi/2, q2: -pi/2, q3: pi/2", "q1: 0, q2: 0, q3: 0"), tmp_path)
    loose = FOUR_BAR.replace("antecedent: 2, d: coupler", "antecedent: 6, d: 0").replace(
        "loops:", "  - {name: loose, antecedent: 2, d: coupler, mu: 0}\nloops:"
    )
    with pytest.raises(di.RobotFileError, match="does not determine q6 at its branch; solve for fewer joints"):
        load(loose.replace("[q2, q3], branch: {", "[q2, q3, q6], branch: {q6: 0, "), tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("link: 2", "link: 7", "there is no moving link '7'"),
        ("link: 2", "lnk: 2", "unknown key 'lnk'"),
        ("first: {link: 2, position: [coupler, 0, 0]}, ", "", "needs the key 'first'"),
        ("link: 3", "link: 2", "both its frames are on one link"),
        ("solve: [q2, rocker]", "joint: hinge, solve: [q2, q3]", "is 'hinge'; expected revolute, prismatic"),
        ("position: [coupler, 0, 0]", "position: [coupler, 0]", "a list of 3 numbers"),
    ],
)
def test_bad_frames_are_refused(old, new, words, tmp_path):
    assert old in BETWEEN
    with pytest.raises(di.RobotFileError, match="loops") as caught:
        load(WITHOUT_CUT.replace(LOOP, BETWEEN.replace(old, new)), tmp_path)
    assert words in str(caught.value)


def test_frames_of_the_table_and_frames_on_links_say_the_same(tmp_path):
    one, other = load(FOUR_BAR, tmp_path), load(WITHOUT_CUT.replace(LOOP, BETWEEN), tmp_path)
    assert one.fingerprint == other.fingerprint
    assert other.closes == ("2-3",)


URDF = """
<robot name="four-bar">
  <link name="ground"/>
  <link name="crank"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
    <inertia ixx="0.001" iyy="0.004" izz="0.0045" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="coupler"/><link name="rocker"/>
  <joint name="j1" type="continuous"><parent link="ground"/><child link="crank"/><axis xyz="0 1 0"/></joint>
  <joint name="j2" type="continuous"><parent link="crank"/><child link="coupler"/><origin xyz="0.2 0 0"/>
    <axis xyz="0 1 0"/></joint>
  <joint name="j3" type="continuous"><parent link="ground"/><child link="rocker"/><origin xyz="0.45 0 0"/>
    <axis xyz="0 1 0"/><dynamics damping="0.3"/></joint>
</robot>
"""


def test_an_overlay_closes_the_loop_of_a_urdf(tmp_path):
    (tmp_path / "arm.urdf").write_text(URDF)
    text = """
base: arm.urdf
loops:
  - first: {link: coupler, position: [0.5, 0, 0], rpy: [pi/2, 0, 0]}
    second: {link: rocker, position: [0.4, 0, 0], rpy: [pi/2, 0, 0]}
    solve: [j2, j3]
    branch: {j1: -1, j2: 0.5, j3: -1.3}
"""
    robot = load(text, tmp_path)
    assert robot.joint_names == ("j1",)
    assert robot.closes == ("coupler-rocker",)
    assert robot.value_set()["Fv3"] == 0.3  # the friction of a passive joint is kept
    assert "Fv2" not in robot.parameter_names
    q = np.linspace(-3, 3, 20)[:, None]
    angles = di.dynamics.tree_motion(robot, -q).q  # about y: the plane is x-z, and turns the other way
    table = load(FOUR_BAR, tmp_path)
    np.testing.assert_allclose(np.exp(-1j * angles), np.exp(1j * di.dynamics.tree_motion(table, q).q), atol=1e-12)
    with pytest.raises(di.RobotFileError, match="name two links here, under 'first' and 'second'"):
        load("base: arm.urdf\nloops: [{cut: 1, closes_on: 2}]\n", tmp_path)


def test_a_mimic_joint_may_follow_a_solved_one(tmp_path):
    text = FOUR_BAR.replace("loops:", "  - {name: gear, antecedent: 0, d: 1, mu: 0}\npassive: {q6: 2*q3 + 0.1}\nloops:")
    robot = load(text, tmp_path)
    motion = di.dynamics.tree_motion(robot, [[1.2]], [[2.0]], [[0.5]])
    np.testing.assert_allclose(motion.q[0, 3], 2 * motion.q[0, 2] + 0.1, atol=1e-12)
    np.testing.assert_allclose(motion.ddq[0, 3], 2 * motion.ddq[0, 2], atol=1e-12)
