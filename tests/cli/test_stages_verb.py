"""`identify --sequential`, `--stages` and `--model` on the command line, and `dynident gains`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident.cli.command_line import main
from dynident.pipeline.stage_file import StageRule
from tests.cli.test_export_verb import complaint

DEMO = Path(__file__).parents[2] / "examples" / "demo"
ARM = str(DEMO / "arm.yaml")
FIRST, SECOND, LOADED = (str(DEMO / f"{name}.csv.gz") for name in ("fourier_1", "fourier_2", "payload"))
TERMS = "rigid,Fv"


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """A planar arm of two joints: both moving, and the first one braked."""
    place = tmp_path_factory.mktemp("stages")
    robot = di.load_robot("pendulum-2")
    time = np.arange(1600) / 100.0
    for name, held in (("both", False), ("tip", True)):
        arm = robot.lock(q1=0.3) if held else robot
        phases = np.arange(1, 3) if not held else np.array([2])
        q = np.column_stack([np.sin(1.3 * p * time) + 0.5 * np.cos(2.9 * time + p) for p in phases])
        dq = np.column_stack([1.3 * p * np.cos(1.3 * p * time) - 1.45 * np.sin(2.9 * time + p) for p in phases])
        ddq = np.column_stack([-1.69 * p**2 * np.sin(1.3 * p * time) - 4.205 * np.cos(2.9 * time + p) for p in phases])
        tau = di.inverse_dynamics(arm, q, dq, ddq, TERMS) + 1e-3 * np.random.default_rng(held).normal(size=q.shape)
        if held:
            q, tau = (np.column_stack([first, x]) for first, x in ((np.full(1600, 0.3), q), (np.zeros(1600), tau)))
        table = np.column_stack([time, q, tau])
        np.savetxt(place / f"{name}.csv", table, delimiter=",", header="t,q1,q2,tau1,tau2", comments="")
    (place / "stages.yaml").write_text("tip: {logs: tip.csv, locked: [q1]}\nboth: {logs: bo*.csv, outputs: [q1]}\n")
    (place / "steps.yaml").write_text("all: {logs: both.csv, outputs: [q2]}\nrest: {outputs: [q1], logs: both.csv}\n")
    return place


@pytest.fixture
def folder(logs, monkeypatch):
    monkeypatch.chdir(logs)
    return logs


WAYS = {
    "online": ("both.csv", "--sequential"),
    "offline": ("tip.csv both.csv", "--sequential offline"),
    "stages": ("tip.csv both.csv", "--stages stages.yaml"),
    "essential": ("both.csv", "--stages steps.yaml --essential"),
    "energy": ("both.csv", "--model energy"),
    "power": ("both.csv", "--model power"),
    "filtered": ("both.csv", "--filter butterworth --decimation 5"),
}


@pytest.mark.parametrize(("given", "way"), WAYS.values(), ids=WAYS)
def test_every_way_finds_the_parameters(given, way, folder, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["identify", "pendulum-2", *given.split(), *way.split(), "--terms", TERMS, "--check", "off"]
    assert main([*words, "-o", str(out), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    fit = di.load_fit(out)
    truth = fit.base.base_values()
    assert answer["train"]["relative_error"] < 0.01
    # Torque hardly has noise here: what is left is of filters and integrals.
    assert np.all(np.abs(fit.beta - truth) < 5.0 * fit.std + 1e-3)
    assert set(way.split()) - {"offline", "energy", "power"} <= set(fit.command.split()) | {"--essential"}
    assert main(["validate", str(out), "both.csv", "--json"]) == 0
    assert main(["report", str(out), "--quiet"]) == 0
    if "--stages" in way:  # the file is part of the provenance, with its hash
        assert any(file.what == "stages" for file in fit.provenance.files)


def test_notes_say_what_each_stage_found(folder, tmp_path, capsys):
    words = ["identify", "pendulum-2", "tip.csv", "both.csv", "--sequential", "offline", "--terms", TERMS]
    assert main([*words, "-o", str(tmp_path / "out"), "--json", "--check", "off"]) == 0
    notes = [note for note in json.loads(capsys.readouterr().out)["notes"] if "identifies" in note]
    assert notes == [
        "tip.csv: identifies 4 new parameters from the torque of joint2",
        "both.csv: identifies 4 new parameters from the torque of joint1, joint2",
    ]


def test_braked_joints_are_no_warning_of_stages(folder, tmp_path):
    """Logs for stages have joints that stand still on purpose; other methods warn of them."""
    words = ["identify", "pendulum-2", "tip.csv", "both.csv", "--terms", TERMS, "--check", "warn", "--quiet"]
    for way, expected in ((["--sequential", "offline"], False), (["--stages", "stages.yaml"], False), ([], True)):
        assert main([*words, *way, "-o", str(tmp_path / "out")]) == 0
        assert any("never moves" in one for one in di.load_fit(tmp_path / "out").warnings) is expected


def test_a_run_file_takes_the_same_options(folder, tmp_path):
    run = "robot: pendulum-2\ntraining: [tip.csv, both.csv]\noutput: out\nidentify:\n"
    (folder / "run.yaml").write_text(f"{run}  stages: stages.yaml\n  terms: [rigid, Fv]\n  check: off\n")
    assert main(["run", "run.yaml", "--quiet"]) == 0
    by_file = di.load_fit(folder / "out")
    robot = di.load_robot("pendulum-2")
    rules = [StageRule("tip", ["tip.csv"], locked=["q1"]), StageRule("both", ["both.csv"], outputs=["joint1"])]
    logs = [di.read_log(name, robot) for name in ("tip.csv", "both.csv")]
    by_python = di.identify(robot, logs, stages=rules, terms=TERMS, check="off")
    assert np.allclose(by_file.beta, by_python.beta, rtol=1e-12)


BAD = {
    "two ways": ("both.csv --sequential --model energy", "--sequential and --model are two ways"),
    "no log with locked joints": ("both.csv --sequential offline", "all joints move in every log"),
    "a log for the way": ("--sequential both.csv", "put --sequential after the logs, or write --sequential=online"),
    "essential": ("both.csv --sequential --essential", "--essential has no meaning with --sequential"),
    "estimator": ("both.csv --model energy --estimator robust", "takes the estimators weighted, ordinary"),
    "friction": ("both.csv --sequential --friction full", "has the friction of its terms alone"),
    "model": ("both.csv --model heat", "--model: unknown choice 'heat' (valid: torque, energy, power)"),
    "no file": ("both.csv --stages gone.yaml", "gone.yaml: no such file"),
    "a log as the file": ("both.csv --stages tip.csv", "tip.csv: line 1: a file of stages must be a mapping"),
    "unused log": ("tip.csv both.csv --stages steps.yaml", "tip.csv: is in no stage"),
    "decimation": ("both.csv --decimation 0", "--decimation is 0; expected a whole number, at least 1"),
    "too coarse": ("both.csv --decimation 200", "a decimation of 200 leaves 0.5 rows per second"),
    "band and decimation": ("both.csv --decimation 20 --band 4", "a decimation of 20; at most 2.5 Hz"),
    "filter": ("both.csv --filter chebyshev", "--filter: unknown choice 'chebyshev'"),
}


@pytest.mark.parametrize(("words", "fragment"), BAD.values(), ids=BAD)
def test_bad_input(words, fragment, folder, capsys):
    given = ["identify", "pendulum-2", *words.split(), "-o", "nothing", "--check", "off"]
    assert fragment in complaint(given, capsys, folder)
    assert not (folder / "nothing").exists()


FILES = {
    "unknown key": ("a: {lgos: x}", "line 1: unknown key 'lgos'; did you mean 'logs'?"),
    "not a mapping": ("a:\n  - x", "line 2: stage a must be a mapping"),
    "nothing named": ("a: {}\nb: {outputs: []}", "line 2: outputs of stage b names nothing"),
    "twice": ("a: {}\na: {}", "line 2: key 'a' is there twice"),
    "no YAML": ("a: {", "is not valid YAML"),
    "empty": ("", "is empty"),
    "no such log": ("a: {logs: gone.csv}", "stage a: none of the training logs is gone.csv; given are both.csv"),
    "it moves": ("a: {locked: [q1]}", "stage a: joint1 moves in both.csv"),
    "no such joint": ("a: {outputs: [q9]}", "unknown output of stage a 'q9'"),
    "nothing left": ("a: {}\nb: {}", "experiment b has no unknown parameter left"),
}


@pytest.mark.parametrize(("text", "fragment"), FILES.values(), ids=FILES)
def test_files_of_stages_that_cannot_be_followed(text, fragment, folder, capsys):
    (folder / "bad.yaml").write_text(text)
    given = ["identify", "pendulum-2", "both.csv", "--stages", "bad.yaml", "-o", "nothing", "--terms", TERMS]
    assert fragment in complaint([*given, "--check", "off"], capsys, folder)


def test_stages_that_lock_a_joint_each_are_refused(folder, capsys):
    (folder / "bad.yaml").write_text("a: {locked: [q1]}")
    given = ["identify", "pendulum-2", "tip.csv", "--stages", "bad.yaml", "-o", "nothing", "--terms", TERMS]
    assert "no stage lets all joints move" in complaint([*given, "--check", "off"], capsys, folder)


# ----------------------------------------------------------------------------------------------------------------------
# dynident gains


@pytest.fixture(scope="module")
def gains(tmp_path_factory):
    """The answer for the demo's currents, of a robot file that knows no gains."""
    place = tmp_path_factory.mktemp("gains")
    (place / "bare.yaml").write_text("base: ur10e\nname: bare\n")
    words = ["gains", str(place / "bare.yaml"), LOADED, "--unloaded", SECOND, "--known", "2"]
    assert main([*words, "-o", str(place / "out"), "--quiet"]) == 0
    return place


def test_gains_are_found_from_currents_alone(gains):
    answer = json.loads((gains / "out" / "result.json").read_text())
    truth = di.load_robot(ARM).drive.gains
    found = np.array([(one["gain"], one["std"]) for one in answer["gains"]])
    assert answer["logged"] == "i"
    assert {one["unit"] for one in answer["gains"]} == {"N·m/A"}
    assert np.abs(found[:3, 0] / truth[:3] - 1.0).max() < 0.02
    assert np.sqrt(np.mean(((found[:, 0] - truth) / found[:, 1]) ** 2)) < 1.5
    assert "found whole" in " ".join(answer["notes"])


def test_the_robot_file_has_them(gains):
    answer = json.loads((gains / "out" / "result.json").read_text())
    drive = di.load_robot(gains / "out" / "robot.yaml").drive
    assert drive.gains.tolist() == [one["gain"] for one in answer["gains"]]
    assert drive.gain_tolerances.tolist() == [one["std"] for one in answer["gains"]]
    page = (gains / "out" / "report.html").read_text()
    assert "Drive gains of bare" in page


BAD_GAINS = {
    "no weight": (f"{ARM} {LOADED} --unloaded {SECOND}", "missing --known"),
    "no unloaded log": (f"{ARM} {LOADED} --known 2", "missing --unloaded"),
    "no mass": (f"{ARM} {LOADED} --unloaded {SECOND} --known 0", "known mass of the payload is 0 kg"),
    "two numbers": (f"{ARM} {LOADED} --unloaded {SECOND} --known 2,3", "expected MASS, MASS,CX,CY,CZ"),
    "the same log": (f"{ARM} {SECOND} --unloaded {SECOND} --known 2", "is given as loaded and as unloaded"),
    "another tool": (f"{ARM} {LOADED} --unloaded {SECOND} --known 2 --tool gone", "unknown tool frame 'gone'"),
    "known_std": (f"{ARM} {LOADED} --unloaded {SECOND} --known 2 --known-std -1", "--known-std is -1.0"),
    "logs of another robot": ("sr400 both.csv --unloaded tip.csv --known 2", "tip.csv: has no column tau4"),
    "friction with a memory": (f"{ARM} {LOADED} --unloaded {SECOND} --known 2 --terms rigid,load", "functions of"),
}


@pytest.mark.parametrize(("words", "fragment"), BAD_GAINS.values(), ids=BAD_GAINS)
def test_bad_input_of_gains(words, fragment, folder, capsys):
    assert fragment in complaint(["gains", *words.split()], capsys, folder)
