"""Limits that a description lacks or does not mean: asked for by option, given by option."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident.cli.command_line import main
from dynident.errors import InputError
from dynident.motion.limits import gather_limits
from tests.robot.test_placeholders import urdf

MJCF = """<mujoco model="made"><compiler angle="radian"/><worldbody><body name="a" pos="0 0 0.2">
<joint name="pan" axis="0 0 1" armature="0.01"/><inertial pos="0.05 0 0.1" mass="2" diaginertia="0.02 0.02 0.01"/>
<body name="b" pos="0 0 0.3"><joint name="tilt" axis="0 1 0" range="-1 1.5" limited="true" armature="0.01"/>
<inertial pos="0 0.02 0.15" mass="1" diaginertia="0.01 0.01 0.003"/></body></body></worldbody></mujoco>"""
QUICK = ["--starts", "1", "--kicks", "0", "--duration", "4", "--harmonics", "4"]
BOILERPLATE = 'lower="-10" upper="10" velocity="1000" effort="1000"'


@pytest.fixture
def arm(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.xml").write_text(MJCF)
    return di.load_robot("arm.xml")


def test_the_error_names_joints_and_options(arm, capsys):
    assert main(["excite", "arm.xml", "-o", "m.yaml"]) == 2
    line = capsys.readouterr().err
    assert "no position limits are known for pan: give --position-range pan=-1.5:1.5" in line
    assert "no velocity limits are known for pan, tilt: give --max-velocity pan=2" in line
    assert "not guessed" in line


def test_a_robot_from_mjcf_goes_through(arm, capsys):
    given = ["--max-velocity", "pan=2,q2=pi/2", "--position-range", "pan=-1:0.5", "--max-effort", "9"]
    assert main(["excite", "arm.xml", "-o", "m.yaml", *QUICK, *given, "--json", "--report", "m.html"]) == 0
    assert json.loads(capsys.readouterr().out)["warnings"] == []
    q, dq, ddq = (motion := di.load_trajectory("m.yaml")).sample(motion.times(1000.0))
    assert (q.min(0) >= [-1.0, -1.0]).all()
    assert (q.max(0) <= [0.5, 1.5]).all()
    fastest = np.abs(dq).max(0)
    assert (fastest <= [2.0, np.pi / 2]).all()
    assert (fastest > [0.5, 0.5]).any()
    assert np.abs(di.inverse_dynamics(arm, q, dq, ddq, "rigid,Ia,Fv,Fc,Fo")).max() <= 9.0
    page = Path("m.html").read_text()
    assert "--position-range pan=-1:0.5" in page
    assert "--max-velocity pan=2,q2=pi/2" in page


def test_one_number_for_all_narrows_and_by_joint_replaces(arm):
    all_alike = gather_limits(arm, position_range=1.2, max_velocity=2.0)
    np.testing.assert_array_equal([all_alike.lower, all_alike.upper], [[-1.2, -1.0], [1.2, 1.2]])
    np.testing.assert_array_equal(all_alike.velocity, [2.0, 2.0])
    by_joint = gather_limits(arm, position_range={"pan": 3.0, "tilt": (-2.0, 2.0)}, max_velocity=[1.0, 3.0])
    np.testing.assert_array_equal([by_joint.lower, by_joint.upper], [[-3.0, -2.0], [3.0, 2.0]])
    np.testing.assert_array_equal(by_joint.velocity, [1.0, 3.0])
    panda = di.load_robot("panda")
    assert gather_limits(panda, max_velocity=2.2).velocity.tolist() == [2.175] * 4 + [2.2] * 3
    assert gather_limits(panda, max_velocity={"joint1": 3.0}).velocity[0] == 3.0
    assert gather_limits(panda, max_effort=50.0).effort.tolist() == [50.0] * 4 + [12.0] * 3


BAD = {
    "not a range": ("--position-range pan=far --max-velocity 1", "--position-range pan=far: 'far'"),
    "turned": ("--position-range pan=2:1 --max-velocity 1", "position_range of pan is 2 to 1; expected the lower end"),
    "another joint": ("--position-range 1 --max-velocity elbow=1", "unknown joint 'elbow'"),
    "zero": ("--position-range 1 --max-velocity 0", "max_velocity must be positive and finite"),
    "zero by joint": ("--position-range 1 --max-velocity pan=0,tilt=1", "the velocity limit of pan is 0"),
    "too many": ("--position-range 1 --max-velocity 1,2,3", "max_velocity must be one number or one for each of pan"),
    "twice": ("--position-range pan=1,pan=2 --max-velocity 1", "pan is given twice"),
    "half a pair": ("--position-range 1,pan=2 --max-velocity 1", "expected joint=LOWER:UPPER"),
    "nothing left": ("--position-range=2:3 --max-velocity 1", "tilt cannot move"),
}


@pytest.mark.parametrize(("words", "fragment"), BAD.values(), ids=BAD)
def test_bad_options_are_named(arm, words, fragment, capsys):
    assert main(["excite", "arm.xml", "-o", "m.yaml", *words.split()]) == 2
    assert fragment in capsys.readouterr().err


def test_placeholders_are_named_and_not_believed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    robot = urdf(tmp_path / "leg.urdf", BOILERPLATE, BOILERPLATE)
    with pytest.raises(InputError, match=r"velocity limit 1000 rad/s of j1, j2 is a placeholder.*--max-velocity j1=2"):
        di.optimize_excitation(robot, position_range=1.0)
    with pytest.raises(
        InputError, match=r"limits -10 to 10 rad of j1, j2 are placeholders.*--position-range j1=-1.5:1.5"
    ):
        di.optimize_excitation(robot, max_velocity=4.0)
    given = ["--max-velocity", "4", "--position-range", "1.2", "--json", "--report", "leg.html"]
    assert main(["excite", "leg.urdf", "-o", "m.yaml", *QUICK, *given]) == 0
    printed = capsys.readouterr()
    assert len(json.loads(printed.out)["warnings"]) == 3
    assert "the effort limit 1000 N·m of j1, j2 is a placeholder and not used" in printed.err
    assert "N·m of j1, j2 is a placeholder and not used" in (tmp_path / "leg.html").read_text()
    motion = di.load_trajectory("m.yaml")
    q, dq, _ = motion.sample(motion.times(1000.0))
    assert np.abs(q).max() <= 1.2
    assert np.abs(dq).max() <= 4.0


def test_limits_given_by_the_user_are_believed(tmp_path):
    robot = urdf(tmp_path / "leg.urdf", BOILERPLATE)
    found = gather_limits(robot, {"j1": {"lower": -10.0, "upper": 10.0, "velocity": 200.0, "effort": 1000.0}})
    assert (found.lower[0], found.upper[0], found.velocity[0], found.effort[0]) == (-10.0, 10.0, 200.0, 1000.0)
