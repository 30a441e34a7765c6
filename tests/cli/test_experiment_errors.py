"""Whatever a user can do wrong with `excite` and `simulate`: one clear line, exit 2, nothing written."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dynident as di
from dynident.cli.command_line import main
from dynident.plant import Feedforward, MujocoPlant, record, simulation as module
from dynident.plant.simulation import simulate

ARM = """name: arm
convention: dh
joints:
  - {name: lift, sigma: 1}
  - {name: shoulder, a: 0.4, alpha: pi/2}
  - {name: elbow, a: 0.3}
limits:
  lift: {lower: 0, upper: 1, velocity: 1, effort: 400}
  shoulder: {lower: -2, upper: 2, velocity: 2, effort: 100}
  elbow: {lower: -2, upper: 2, velocity: 2, effort: 60}
parameters:
  own:
    links:
      1: {mass: 5, com: [0, 0, 0.1], inertia: [0.1, 0, 0, 0.1, 0, 0.1]}
      2: {mass: 3, com: [-0.2, 0, 0], inertia: [0.01, 0, 0, 0.05, 0, 0.05]}
      3: {mass: 2, com: [-0.1, 0, 0], inertia: [0.01, 0, 0, 0.02, 0, 0.02]}
"""
JOINTS = ("lift", "shoulder", "elbow")


def motion(path, points, joints=JOINTS, duration=1.0):
    di.trajectories.save_trajectory(
        di.trajectories.PointToPoint(points=points, durations=[duration], joints=joints), path
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.yaml").write_text(ARM)
    (tmp_path / "weightless.yaml").write_text(ARM[: ARM.index("parameters:")])
    (tmp_path / "endless.yaml").write_text(ARM.replace("elbow: {lower: -2, upper: 2, velocity", "elbow: {velocity"))
    (tmp_path / "weak.yaml").write_text(ARM.replace("effort: 400", "effort: 20"))
    motion("good.yaml", [[0.2, 0.0, 0.0], [0.5, 0.8, -0.6]])
    motion("outside.yaml", [[0.2, 2.5, 0.0], [0.5, 0.8, -0.6]])
    motion("other.yaml", [[0.2, 0.0, 0.0], [0.5, 0.8, -0.6]], ("lift", "shoulder", "wrist"))
    motion("turned.yaml", [[0.2, 0.0, 0.0], [0.5, 0.8, -0.6]], ("shoulder", "lift", "elbow"))
    motion("two.yaml", [[0.2, 0.0], [0.5, 0.8]], JOINTS[:2])
    motion("nameless.yaml", [[0.2, 0.0], [0.5, 0.8]], ())
    (tmp_path / "nan.yaml").write_text((tmp_path / "good.yaml").read_text().replace("0.8", ".nan"))
    (tmp_path / "few.csv").write_text("t,q1,q2,q3\n0,0,0,0\n0.1,0,0,0\n0.2,0,0,0\n")
    (tmp_path / "taken.yaml").mkdir()
    (tmp_path / "taken.csv").mkdir()
    return tmp_path


def complaint(words, capsys, folder) -> str:
    """The one line on stderr of a run that must fail and leave nothing."""
    before = sorted(path.name for path in folder.rglob("*"))
    try:
        code = main(words)
    except SystemExit as stop:
        code = stop.code
    printed = capsys.readouterr()
    assert code == 2
    assert printed.out == ""
    assert printed.err.startswith("dynident: ")
    assert printed.err.count("\n") == 1
    assert sorted(path.name for path in folder.rglob("*")) == before
    return printed.err


SIMULATE = {
    "joints of another robot": ("other.yaml", "the motion is for joints lift, shoulder, wrist; robot arm moves lift,"),
    "another order": ("turned.yaml", "the motion is for joints shoulder, lift, elbow"),
    "too few joints": ("two.yaml", "the motion is for joints lift, shoulder; robot arm moves lift, shoulder, elbow"),
    "too few without names": ("nameless.yaml", "the motion is for 2 joints"),
    "locked": ("good.yaml --locked lift=0", "robot arm moves shoulder, elbow: give a motion that was made for it"),
    "locked outside": ("two.yaml --locked elbow=-2.5", "joint elbow is locked outside its limits: at -2.5 rad, 0.5"),
    "too fast a loop": ("good.yaml --bandwidth 1200", "jumps between its effort limits"),
    "start outside": ("outside.yaml", "joint shoulder at 2.5 rad, 0.5 beyond -2 to 2"),
    "nan": ("nan.yaml", "nan.yaml: motion"),
    "not there": ("gone.yaml", "gone.yaml: no such file"),
    "no motion": ("arm.yaml", "expected 'dynident motion 1'"),
    "few rows": ("few.csv", "few.csv: motion: has 3 samples"),
    "endless": ("good.yaml --rate 1e9", "1e+09 steps of the controller"),
    "no sample": ("good.yaml --rate 0.5", "gives no sample in the 1 s of the motion"),
    "late": ("good.yaml --delay 3", "delay is 3 s, but the motion lasts only 1 s"),
    "payload too late": ("good.yaml --payload 1 --payload-at 2", "payload_at is 2 s, but the motion lasts only 1 s"),
    "bias": ("good.yaml --bias nan", "bias is nan"),
    "seed": ("good.yaml --seed -1", "seed is -1; expected a whole number, zero or more"),
    "channels": ("good.yaml --kinds q,foo", "unknown kind of channel 'foo'"),
    "no breakaway": ("good.yaml --breakaway 0.5", "expected 1 or more"),
    "payload that breaks it": ("good.yaml --payload 1e6", "at t = "),
}


@pytest.mark.parametrize(("words", "fragment"), SIMULATE.values(), ids=SIMULATE)
def test_simulate(words, fragment, folder, capsys):
    assert fragment in complaint(["simulate", "arm.yaml", *words.split(), "-o", "log.csv"], capsys, folder)


def test_a_robot_without_inertia_or_torque(folder, capsys):
    line = complaint(["simulate", "weightless.yaml", "good.yaml", "-o", "log.csv"], capsys, folder)
    assert "joint lift moves no inertia" in line
    line = complaint(["simulate", "weak.yaml", "good.yaml", "-o", "log.csv"], capsys, folder)
    assert "the robot lost its motion at t = " in line
    assert "joint lift is 0.2 m away, and lift reached the effort limit" in line


TARGETS = {"gone/x": "the folder gone does not exist", "taken": "is a folder", "arm.yaml/x": "does not exist"}


@pytest.mark.parametrize(("target", "fragment"), TARGETS.items(), ids=TARGETS)
def test_targets_are_looked_at_first(target, fragment, folder, capsys, monkeypatch):
    def never(*given, **options):
        raise AssertionError("the work began")

    monkeypatch.setattr(module, "simulate", never)
    monkeypatch.setattr("dynident.motion.excitation.optimize_excitation", never)
    assert fragment in complaint(["simulate", "arm.yaml", "good.yaml", "-o", f"{target}.csv"], capsys, folder)
    assert fragment in complaint(["excite", "arm.yaml", "-o", f"{target}.yaml"], capsys, folder)
    assert fragment in complaint(["excite", "arm.yaml", "-o", "m.yaml", "--csv", f"{target}.csv"], capsys, folder)


EXCITE = {
    "floor": ("--floor 3", "above the floor broken by "),
    "start outside": ("--start lift=0.5,shoulder=2.5,elbow=0", "shoulder at 2.5 is above its upper limit by 0.6"),
    "start of some": ("--start lift=0.5", "start is not given for shoulder, elbow; give it for every joint"),
    "locked outside": ("--locked lift=3", "joint lift is locked outside its limits: at 3 m, 2 beyond 0 to 1"),
    "box round all": ("--box=-9,-9,-9,9,9,9", "broken by "),
    "box with a minus": ("--box -9,-9,-9,9,9,9", "one that begins with a minus is written --box=-1"),
    "seed": ("--seed -1", "seed is -1; expected a whole number, zero or more"),
    "clearance": ("--clearance -1", "clearance is -1.0; expected zero or a positive number"),
    "radius": ("--radius nan --floor 0", "radius is nan; expected zero or a positive number"),
    "frequency": ("--frequency 99.97", "oscillations; the search takes up to 300"),
    "too fast to move": ("--frequency 1e6", "5 harmonics of 1e+06 Hz break a limit however small the motion is"),
    "harmonics": ("--harmonics 500", "oscillations; the search takes up to 300"),
    "duration": ("--duration 1e9", "duration is 1000000000.0; expected a number above 0 and up to 3600"),
    "same file": ("--csv m.yaml", "would write the same file m.yaml"),
}


@pytest.mark.parametrize(("words", "fragment"), EXCITE.values(), ids=EXCITE)
def test_excite(words, fragment, folder, capsys):
    quick = ["--starts", "1", "--kicks", "0"]
    assert fragment in complaint(["excite", "arm.yaml", "-o", "m.yaml", *words.split(), *quick], capsys, folder)


def test_a_joint_without_limits_is_asked_for(folder, capsys):
    line = complaint(["excite", "endless.yaml", "-o", "m.yaml"], capsys, folder)
    assert "no position limits are known for elbow" in line
    assert "not guessed" in line


def test_a_motion_that_determines_nothing_says_so(folder, capsys):
    words = ["excite", "arm.yaml", "-o", "m.yaml", "--rate", "1", "--duration", "3", "--starts", "1", "--kicks", "0"]
    assert main([*words, "--quiet"]) == 0
    assert "parameters undetermined; give it a longer --duration" in capsys.readouterr().err


def test_what_is_given_by_joint_is_checked_like_a_list(folder):
    robot = di.load_robot("arm.yaml")
    for noise, message in (({"lift": -1, "shoulder": 1, "elbow": 1}, "must be positive"), ("much", "one number")):
        with pytest.raises(di.InputError, match=message):
            di.optimize_excitation(robot, noise=noise)
    with pytest.raises(di.InputError, match="pairs of corners"):
        di.optimize_excitation(robot, boxes=[[[0, 0], [1, 1, 1]]])
    with pytest.raises(di.InputError, match="a position for each of lift, shoulder, elbow"):
        di.optimize_excitation(robot, start=["home"])


def test_a_motion_file_has_its_ending(folder, capsys):
    assert "must end in .yaml" in complaint(["excite", "arm.yaml", "-o", "m.csv"], capsys, folder)


def test_interrupted(folder, capsys, monkeypatch):
    def stop(*given, **options):
        raise KeyboardInterrupt

    before = sorted(folder.rglob("*"))
    monkeypatch.setattr(module, "record", stop)
    assert main(["simulate", "arm.yaml", "good.yaml", "-o", "log.csv"]) == 130
    assert capsys.readouterr().err == "dynident: interrupted\n"
    assert sorted(folder.rglob("*")) == before


def test_rounded_angles_are_reported_before_the_motion_is_run(folder, capsys):
    """A URDF with 1.5708 for pi/2 makes parameters that no motion can show."""
    rows = "  - {name: a, d: 0.3, alpha: 1.5708}\n  - {name: b, a: 0.4}\n"
    limits = "limits: {a: {lower: -1, upper: 1, velocity: 1}, b: {lower: -1, upper: 1, velocity: 1}}\n"
    (folder / "r.yaml").write_text(f"name: r\nconvention: dh\njoints:\n{rows}gravity: [0, 0, -9.81]\n{limits}")
    words = ["excite", "r.yaml", "-o", "m.yaml", "--duration", "3", "--starts", "1", "--kicks", "0", "--json"]
    assert main(words) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["kind"] == "determinant"
    assert "angles are rounded" in printed.err


def test_gains_are_tuned_on_the_machine(folder):
    """A description that lacks most of the inertia, as URDFs lack rotors, must not make the feedback soft."""
    robot, way = di.load_robot("arm.yaml"), di.load_trajectory("good.yaml")
    rotors = {**robot.value_set(), "Ia2": 4.0, "Ia3": 2.0}
    machine = simulate(robot.with_values("rotors", rotors), way, values="rotors", relative_noise=0.0, encoder=0.0)
    assert machine.tracking.max() < 0.03
    plant = MujocoPlant(robot, rotors)
    record(plant, Feedforward(robot, way))  # tuned to the description
    soft = np.abs(plant.truth().q - way.sample(plant.truth().time)[0]).max(axis=0)
    assert soft.max() > 3.0 * machine.tracking.max()
