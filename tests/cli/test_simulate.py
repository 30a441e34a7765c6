from __future__ import annotations

import json
import re

import numpy as np
import pytest

import dynident as di
from dynident.cli.command_line import main
from dynident.cli.inputs import parse_payload
from dynident.plant import Payload
from dynident.plant.simulation import read_motion, simulate
from tests.robots import random_urdf
from tests.strangers import skewed_arm
from tests.strangers.stranger import HERE


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A robot that is not bundled, and a motion for it."""
    folder = tmp_path_factory.mktemp("simulate")
    (folder / "arm.urdf").write_text(random_urdf(1))
    robot = di.load_robot(folder / "arm.urdf")
    t = np.linspace(0.0, 1.0, 51)
    ramp = 0.3 * np.sin(np.pi * t) ** 4
    q = np.column_stack([ramp * np.sin((2.0 + k) * t + k) for k in range(len(robot.joint_names))])
    header = ",".join(["t", *robot.position_names])
    np.savetxt(folder / "motion.csv", np.column_stack([t, q]), delimiter=",", header=header, comments="")
    return folder


def ran(folder, *arguments, capsys=None):
    words = ["simulate", str(folder / "arm.urdf"), str(folder / "motion.csv"), "-o", str(folder / "log.csv")]
    return main([*words, *arguments])


def test_a_log_that_identify_reads(folder, capsys):
    assert ran(folder, "--rate", "250", "--relative-noise", "0", "--encoder", "0", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    robot = di.load_robot(folder / "arm.urdf")
    assert answer["samples"] == 250
    assert answer["rate"] == pytest.approx(250.0)
    assert answer["loop_gap"] == 0.0
    log = di.read_log(folder / "log.csv", robot)
    fit = di.identify(robot, log, terms="rigid")
    assert fit.train.as_dict()["relative_error"] < 1e-3


def test_words_and_warnings(folder, capsys):
    assert ran(folder, "--payload", "1.5,0,0,0.1", "--payload-at", "0.5") == 0
    printed = capsys.readouterr()
    assert "500 samples at 500 Hz" in printed.out
    assert "largest distance from the motion" in printed.out
    (folder / "wide.csv").write_text((folder / "motion.csv").read_text())
    robot = di.load_robot("pendulum-1")
    t = np.linspace(0.0, 1.0, 30)
    np.savetxt(folder / "wide.csv", np.column_stack([t, 4.0 * t**2]), delimiter=",", header="t,q1", comments="")
    assert main(["simulate", "pendulum-1", str(folder / "wide.csv"), "-o", str(folder / "wide-log.csv")]) == 0
    warning = capsys.readouterr().err
    assert "joint joint1: the motion leaves its position limits by 0.9 rad" in warning
    assert robot.joints[0].limits.upper == 3.1


def test_a_motion_that_is_lost_is_an_error(tmp_path, capsys):
    """A feedback that hardly holds the weight: up to 0.6 rad off, which was a log like any other."""
    motion = skewed_arm().motion(0, 3.0)
    t = motion.times(100.0)
    columns, header = np.column_stack([t, motion.sample(t)[0]]), ",".join(["t", *skewed_arm().described.position_names])
    np.savetxt(tmp_path / "motion.csv", columns, delimiter=",", header=header, comments="")
    words = ["simulate", str(HERE / "skewed.urdf"), str(tmp_path / "motion.csv"), "-o", str(tmp_path / "log.csv")]
    assert main([*words, "--controller", "pd"]) == 0
    (tmp_path / "log.csv").unlink()
    assert main([*words, "--controller", "pd", "--bandwidth", "0.5"]) == 2
    assert re.search(r"lost its motion at t = .* s: joint a\d is .* rad away", capsys.readouterr().err)
    assert not (tmp_path / "log.csv").exists()


def test_seeds_repeat(folder):
    robot = di.load_robot(folder / "arm.urdf")
    motion = read_motion(folder / "motion.csv", robot)
    options = {"relative_noise": 0.02, "jitter": 5e-4, "rate": 200.0}
    one, same, other = (simulate(robot, motion, seed=seed, **options).log for seed in (1, 1, 2))
    assert one.digest == same.digest != other.digest
    error = one.array("tau", robot) - other.array("tau", robot)
    rms = np.sqrt(np.mean(one.array("tau", robot) ** 2, axis=0))
    assert error.std(axis=0) / rms == pytest.approx(0.02 * np.sqrt(2.0), rel=0.3)


def test_motion_in_yaml_comes_through_the_motion_room(folder, monkeypatch):
    import sys
    import types

    room = types.ModuleType("dynident.motion")
    room.load_trajectory = lambda path: ("loaded", str(path))
    monkeypatch.setitem(sys.modules, "dynident.motion", room)
    assert read_motion("x.yaml", None) == ("loaded", "x.yaml")


BAD = {
    "unknown robot": (["nonsense", "{motion}"], "neither a file nor a bundled robot"),
    "no motion": (["{robot}", "nowhere.csv"], "no such file"),
    "wrong joints": (["pendulum-1", "{motion}"], "robot pendulum-1 has joints 1"),
    "rate": (["{robot}", "{motion}", "--rate", "-5"], "rate is -5.0; expected a positive number"),
    "noise": (["{robot}", "{motion}", "--relative-noise", "-1"], "relative-noise is -1.0"),
    "jitter": (["{robot}", "{motion}", "--jitter", "0.1"], "less than the time between samples"),
    "controller": (["{robot}", "{motion}", "--controller", "magic"], "--controller: unknown choice 'magic'"),
    "values": (["{robot}", "{motion}", "--values", "magic"], "unknown parameter set 'magic'"),
    "payload": (["{robot}", "{motion}", "--payload", "heavy"], "--payload heavy: expected MASS"),
    "payload alone": (["{robot}", "{motion}", "--payload-at", "1"], "--payload-at needs --payload"),
    "channels": (["{robot}", "{motion}", "--kinds", "q,i"], "has no current"),
    "unstable": (
        ["{robot}", "{motion}", "--controller", "pd", "--bandwidth", "30000"],
        "reached the effort limit; slow the motion down or lower the bandwidth",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_exit_2(case, folder, capsys, tmp_path):
    words, message = BAD[case]
    words = [word.format(robot=folder / "arm.urdf", motion=folder / "motion.csv") for word in words]
    assert main(["simulate", *words, "-o", str(tmp_path / "log.csv")]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_an_ending_that_is_no_log(folder, capsys):
    words = ["simulate", str(folder / "arm.urdf"), str(folder / "motion.csv"), "-o", str(folder / "log.doc")]
    assert main(words) == 2
    assert "must end in .csv" in capsys.readouterr().err


def test_options_in_python(folder):
    robot = di.load_robot(folder / "arm.urdf")
    with pytest.raises(di.UnknownNameError, match="unknown option 'relative_nois'; did you mean 'relative_noise'"):
        simulate(robot, None, relative_nois=1)
    assert parse_payload("2") == Payload(2.0)
    assert parse_payload("2,0,0,0.1,1,0,0,1,0,1") == Payload(2.0, (0, 0, 0.1), (1, 0, 0, 1, 0, 1))


class TestEffects:
    def test_friction_of_gears_in_a_log(self, folder, capsys):
        """From words, from a file and in Python it is the same machine."""
        robot = di.load_robot(folder / "arm.urdf")
        label = robot.elements[0].label
        quiet = ("--rate", "250", "--relative-noise", "0")
        assert ran(folder, *quiet) == 0
        plain = di.read_log(folder / "log.csv", robot)
        assert ran(folder, *quiet, "--effects", f"stop1_{label}=0.5, quadratic_{label}=0.2") == 0
        words = di.read_log(folder / "log.csv", robot)
        (folder / "effects.yaml").write_text(f"stop1_{label}: 0.5\nquadratic_{label}: 0.2\n")
        assert ran(folder, *quiet, "--effects", str(folder / "effects.yaml")) == 0
        assert di.read_log(folder / "log.csv", robot).digest == words.digest != plain.digest
        effects = {f"stop1_{label}": 0.5, f"quadratic_{label}": 0.2}
        run = simulate(
            robot, read_motion(folder / "motion.csv", robot), rate=250.0, relative_noise=0.0, effects=effects
        )
        assert run.log.array("tau", robot) == pytest.approx(words.array("tau", robot), abs=1e-6)
        assert np.abs(words.array("tau", robot) - plain.array("tau", robot)).max() > 0.3

    def test_a_joint_zero_is_no_distance_from_the_motion(self, folder):
        robot = di.load_robot(folder / "arm.urdf")
        name = f"zero_{robot.joints[robot.active[0]].number}"
        run = simulate(robot, read_motion(folder / "motion.csv", robot), effects={name: 0.3})
        assert run.tracking.max() < 0.05
        assert run.truth.q[0, 0] - run.log.array("q", robot)[0, 0] == pytest.approx(0.3, abs=0.01)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("load_1", "--effects load_1: no such file; expected a YAML file, or stop0.3_1=4,load_2=0.05"),
            ("load_1=much", "--effects load_1=much: expected name=number"),
            ("load_1=1,load_1=2", "load_1 is given twice"),
            ("lod_1=1", "unknown effect 'lod_1'; did you mean 'load_1'"),
        ],
    )
    def test_bad_effects(self, folder, capsys, text, message):
        assert ran(folder, "--effects", text) == 2
        assert message in capsys.readouterr().err
