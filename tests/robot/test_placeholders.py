"""Limits that files state without meaning them, on robots as people write them."""

from __future__ import annotations

import pytest

import dynident as di
from dynident.robot.placeholders import believed_limits, placeholder_limits

LINK = (
    '<link name="{0}"><inertial><mass value="{1}"/><origin xyz="0 0 0.1"/>'
    '<inertia ixx="1e-3" iyy="1e-3" izz="1e-3" ixy="0" ixz="0" iyz="0"/></inertial></link>'
)
JOINT = (
    '<joint name="{0}" type="{1}"><parent link="{2}"/><child link="{3}"/><origin xyz="0 0 0.3"/><axis xyz="{4}"/>{5}'
    "</joint>"
)


def urdf(path, *limits, kinds=None, mass=0.5):
    """A chain of links of `mass`, one joint for each `<limit>`."""
    kinds = kinds or ["revolute"] * len(limits)
    parts = ['<link name="l0"/>']
    for i, (limit, kind) in enumerate(zip(limits, kinds, strict=True), 1):
        axis = "0 1 0" if i % 2 else "1 0 0"
        parts.append(LINK.format(f"l{i}", mass))
        parts.append(JOINT.format(f"j{i}", kind, f"l{i - 1}", f"l{i}", axis, f"<limit {limit}/>" if limit else ""))
    path.write_text(f'<robot name="made">{"".join(parts)}</robot>')
    return di.load_robot(path)


FOUND = {
    "boilerplate": ('lower="-10" upper="10" velocity="1000" effort="1000"', {"position", "velocity", "effort"}),
    "zeros": ('lower="-1" upper="1" velocity="0" effort="0"', {"velocity", "effort"}),
    "no range": ('lower="0" upper="0" velocity="2" effort="9"', {"position"}),
    "tutorial": ('lower="0" upper="3.14" velocity="0.5" effort="1000"', {"effort"}),
    "hundreds": ('lower="-3" upper="3" velocity="100" effort="100"', {"velocity", "effort"}),
    "far": ('lower="-9999" upper="9999" velocity="5" effort="9"', {"position"}),
    "two turns of a wrist": ('lower="-12.566" upper="12.566" velocity="12" effort="30"', set()),
    "a small, fast leg": ('lower="-3" upper="3" velocity="40" effort="17"', set()),
}


@pytest.mark.parametrize(("limit", "kinds"), FOUND.values(), ids=FOUND)
def test_what_no_joint_does_is_a_placeholder(tmp_path, limit, kinds):
    robot = urdf(tmp_path / "r.urdf", limit, limit)
    found = placeholder_limits(robot)
    assert {item.kind for item in found} == kinds
    assert all(item.joints == ("j1", "j2") for item in found)
    (limits, _) = believed_limits(robot)
    assert (limits.lower is None) == ("position" in kinds)
    assert (limits.velocity is None) == ("velocity" in kinds)
    assert (limits.effort is None) == ("effort" in kinds)


def test_strong_drives_of_heavy_robots_are_believed(tmp_path):
    limit = 'lower="-2" upper="2" velocity="2" effort="2000"'
    assert placeholder_limits(urdf(tmp_path / "heavy.urdf", limit, mass=60)) == ()
    (light,) = placeholder_limits(urdf(tmp_path / "light.urdf", limit))
    # 0.5 kg at most 0.4 m away: 1.96 N·m hold it
    assert str(light) == (
        "the effort limit 2000 N·m of j1 is a placeholder and not used (1019 times what holds the outstretched robot)"
    )


def test_slides_have_their_own_measure_and_share_what_others_state(tmp_path):
    slow, fast = (f'lower="-10" upper="10" velocity="{v}" effort="50"' for v in (2, 12))
    assert placeholder_limits(urdf(tmp_path / "rail.urdf", slow, kinds=["prismatic"])) == ()
    found = placeholder_limits(urdf(tmp_path / "both.urdf", fast, fast, kinds=["prismatic", "revolute"]))
    assert [(item.kind, item.unit, item.joints) for item in found] == [
        ("position", "rad", ("j2",)),
        ("position", "m", ("j1",)),
        ("velocity", "rad/s", ("j2",)),
        ("velocity", "m/s", ("j1",)),
    ]


def test_an_effort_that_dry_friction_takes_lets_nothing_move(tmp_path):
    limit = 'lower="-2" upper="2" velocity="2" effort="1"'
    robot = urdf(tmp_path / "sticky.urdf", limit, limit)
    text = (tmp_path / "sticky.urdf").read_text()
    (tmp_path / "sticky.urdf").write_text(text.replace("<limit", '<dynamics damping="1" friction="1"/><limit'))
    assert placeholder_limits(robot) == ()
    (found,) = placeholder_limits(di.load_robot(tmp_path / "sticky.urdf"))
    assert str(found) == (
        "the effort limit 1 N·m of j1, j2 is a placeholder and not used (its own dry friction of 1 N·m takes "
        "all of it: the joint could not move)"
    )
    robot = di.load_robot(tmp_path / "sticky.urdf")
    quick = {"duration": 4.0, "starts": 1, "kicks": 0, "iterations": 5}
    motion = di.optimize_excitation(robot, **quick)
    run = di.simulate(robot, motion.trajectory)  # the simulated machine can move as well
    assert run.tracking.max() < 0.01
    with pytest.raises(di.trajectories.InfeasibleError, match=r"j1 cannot move: dry friction of 1 N·m takes all of"):
        di.optimize_excitation(robot, max_effort=1.02, **quick)


@pytest.mark.parametrize("name", ["ur10e", "panda", "sr400", "tx40", "kr5", "cylindrical", "puma560"])
def test_bundled_robots_mean_their_limits(name):
    assert placeholder_limits(di.load_robot(name)) == ()
