"""`dynident friction` on the command line: the answer, the page, and whatever a user can do wrong with it."""

from __future__ import annotations

import json

import pytest

from dynident.cli.command_line import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_answer_runs_and_page(folder, capsys):
    words = ["friction", "cylindrical", "--joints", "q1", "--velocities", "0.5,1", "-o", "out"]
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {one["name"] for one in found["estimates"]} == {"Fv1", "Fc1"}
    assert set(found["estimates"][0]) == {"name", "value", "std", "unit", "true"}
    assert found["fits"][0]["rank"] == 2
    assert len(found["fits"][0]["points"]) == 2
    assert json.loads((folder / "out" / "result.json").read_text()) == found
    page = (folder / "out" / "report.html").read_text()
    assert "Friction against velocity" in page
    assert "--velocities 0.5,1" in page
    runs = sorted(str(path) for path in (folder / "out" / "runs").iterdir())
    assert len(runs) == 2
    assert main(["friction", "cylindrical", "--joints", "q1", "--from", *runs]) == 0
    printed = capsys.readouterr()
    assert "Fc1" in printed.out
    assert "from 2 points at constant velocity" in printed.out


@pytest.mark.parametrize(
    ("words", "fragment"),
    [
        ("sr400 --joints q5", "test them together: --joints q5,q6"),
        ("ur10e --joints q9", "unknown joint 'q9'"),
        ("ur10e --joints q1 --velocities fast", "--velocities fast: expected numbers"),
        ("ur10e --joints q1 --velocities 99", "faster than 95% of its limit"),
        ("ur10e --joints elbwo", "unknown joint 'elbwo'; did you mean 'elbow'?"),
        ("ur10e --joints q1 --range q9=0:1", "unknown joint 'q9'"),
        ("ur10e --joints q1 --range q2=0:1", "q2 has a range, but is held; under test are q1"),
        ("ur10e --joints q1 --velocities q2=1", "q2 has velocities, but is held; under test are q1"),
        ("ur10e --joints q1 --at shoulder_pan=1", "shoulder_pan is under test and not held"),
        ("ur10e --joints q1 --range q1=1", "--range q1=1: expected joint=lower:upper"),
        ("ur10e --joints q1 --range q1=0:0.1 --velocities 1", "too short to reach this velocity"),
        ("ur10e --joints q1 --at q2=99", "its limits are"),
        ("ur10e --joints q1 --cruise 0.1", "at least 0.6 s"),
        ("ur10e --window 0:1", "--window is for logs"),
        ("ur10e --from a.csv --velocities 1", "--velocities is for runs on a machine"),
        ("ur10e --from a.csv", "a.csv"),
        ("ur10e --fit nowhere", "nowhere"),
        ("ur10e --plant arm.py:plant", "say where q1, q2, q3, q4, q5, q6 are held with --at"),
        ("ur10e --joints q1 --friction stop(0.001)", "does not show at constant velocity"),
    ],
)
def test_bad_input_is_one_clear_line(folder, capsys, words, fragment):
    assert main(["friction", *words.split()]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert fragment in printed.err


def test_an_experiment_without_an_answer_tells_where_its_runs_are(folder, capsys):
    locked = "q1=0,q2=-1.57,q3=0,q4=0,q5=0"
    words = ["friction", "ur10e", "--locked", locked, "--velocities", "0.15,0.2", "--breakaway", "30", "-o", "out"]
    assert main(words) == 2
    printed = capsys.readouterr()
    assert "no run could be used; q6_+0.15: the command of joint wrist_3 reached its limit" in printed.err
    assert "what was recorded so far is in out/runs" in printed.err
    assert len(list((folder / "out" / "runs").iterdir())) == 1


OWN = """
from dynident.plant import MujocoPlant

def machine(robot):
    return MujocoPlant(robot, {**robot.value_set(), "Fv1": 0.5, "Fc1": 1.0}, sample_time=2e-3)
"""


def test_a_machine_of_the_users_own(folder, capsys):
    (folder / "own.py").write_text(OWN)
    words = ["friction", "pendulum-1", "--plant", "own.py:machine", "--velocities", "0.5,1", "--range", "q1=-1.2:1.2"]
    assert main([*words, "--json"]) == 0
    found = {one["name"]: one for one in json.loads(capsys.readouterr().out)["estimates"]}
    assert found["Fc1"]["value"] == pytest.approx(1.0, abs=0.01)
    assert found["Fv1"]["value"] == pytest.approx(0.5, abs=0.01)
    assert "true" not in found["Fc1"]  # nobody knows
    assert main([*words, "--noise", "1"]) == 2
    assert "leave it out with --plant" in capsys.readouterr().err
